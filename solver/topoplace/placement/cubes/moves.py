"""Where running jobs of pods may go: to as many whole cubes, or to a part of a cube."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from topoplace.errors import InputError
from topoplace.machine import parse_node_set
from topoplace.machine.cubes import Cubes, Extents
from topoplace.packing.positions import Positions
from topoplace.placement.cubes.packing import CubesPacking
from topoplace.placement.cubes.problem import CubesProblem, Placed, placement_of
from topoplace.placement.repack.problem import Offer, Site, Wishes, may_change
from topoplace.result import Interference
from topoplace.result.placement import CubesPlacement
from topoplace.snapshot.cubes_state import CubesState, prepare_cubes
from topoplace.snapshot.machines import resolve_machine
from topoplace.snapshot.running import restricted
from topoplace.snapshot.schema import (
    DefragmentInstance,
    KeepShape,
    RepackInstance,
    Request,
    Snapshot,
)
from topoplace.snapshot.state import require_none
from topoplace.types import BoolArray, IntArray

_WORK = 1e-3  # seconds of a call
Place = tuple[int, ...]
"""Positions of the packing: of whole cubes, or of one part."""


@dataclass(frozen=True)
class _Mover:
    """A running job as a request, and its cubes, with the part of one if it has no whole ones."""

    request: Request
    cubes: tuple[int, ...]
    part: tuple[Extents, Extents] | None = None


class CubesMoves(Site):
    """Running jobs and requests on positions of a pod whose chips are all distinguished.

    A part of a cube takes a pair with each mover that it displaces, a whole cube a pair with each
    mover in it (docs/proofs/cubes.md, "Moves").
    """

    packing: CubesPacking
    own: Sequence[Place]

    def __init__(
        self,
        snapshot: Snapshot,
        wanted: Sequence[Request],
        instance: RepackInstance | DefragmentInstance,
        interference: Interference,
    ) -> None:
        for request in wanted:
            require_none(request, ["one_of"], "cubes where jobs move", request.id)
        movers, replaced = movers_of(snapshot, instance), replaced_of(snapshot, instance)
        gone = {mover.request.id for mover in (*movers, *replaced)}
        queue = [*(m.request for m in movers), *wanted, *(m.request for m in replaced)]
        update = {
            "running": [job for job in snapshot.running if job.id not in gone],
            "queue": queue,
            "left_out": [],
        }
        self.state = prepare_cubes(snapshot.model_copy(update=update))
        self.problem, num = CubesProblem(self.state), len(movers)
        self.packing = CubesPacking(self.problem, merges=False)
        self._places = [place for place in self.packing.positions.places if place is not None]
        self.names = self.packing.names
        self.nodes = [request.nodes for request in self.state.requests]
        self.values = [request.value for request in self.state.requests[num:]]
        known = {place: k for k, place in enumerate(self._places)}
        self.own = [self._positions(mover, known) for mover in movers]
        first = len(self.names) - len(replaced)
        self._kept = {
            first + k: self._positions(one, known) for k, one in enumerate(replaced) if one.cubes
        }
        self._set_up_pairs(movers)

    def _positions(self, mover: _Mover, known: Mapping[Placed, int]) -> Place:
        if mover.part is not None:
            return (known[Placed(0, mover.cubes, *mover.part)],)
        return tuple(sorted(known[Placed(0, (cube,))] for cube in mover.cubes))

    def _set_up_pairs(self, movers: Sequence[_Mover]) -> None:
        """Number the pairs: by request of a part and mover, then by mover and cube."""
        num, requests = len(movers), self.state.requests
        marks = np.zeros((num, self.packing.num_rows), dtype=np.int64)
        for j, own in enumerate(self.own):
            marks[j, self.packing.rows_of(Positions(j, own))] = 1
        self._displaced = np.asarray((self.packing.amounts @ marks.T) > 0)  # by position and mover
        parts = [q for q in range(num, len(requests)) if requests[q].parts]
        self._first = {q: k * num for k, q in enumerate(parts)}
        cubes = [(j, c) for j, mover in enumerate(movers) for c in mover.cubes]
        self._in_cubes = np.zeros((len(self._places), len(cubes)), dtype=bool)
        if len(parts) < len(requests) - num:
            start = len(parts) * num
            for k, place in enumerate(self._places):
                if place.extents is None:
                    self._in_cubes[k] = [cube == place.cubes[0] for _, cube in cubes]
        else:
            cubes, start = [], len(parts) * num
        self._of_cubes = slice(start, start + len(cubes))
        self.num_pairs = start + len(cubes)
        self._of_mover = [
            np.array(
                [*range(j, start, num), *(start + k for k, (i, _) in enumerate(cubes) if i == j)]
            )
            for j in range(num)
        ]

    def candidate(self, q: int, place: Place) -> Positions:
        """Return a place as a candidate."""
        return Positions(q, place)

    def _pairs_of(self, q: int) -> tuple[int, BoolArray]:
        """Return the first pair of a request, and which from there on each position takes."""
        if q in self._first:
            return self._first[q], self._displaced
        if q >= len(self.own):
            return self._of_cubes.start, self._in_cubes[:, : self.num_pairs - self._of_cubes.start]
        return 0, np.zeros((len(self._places), 0), dtype=bool)

    def pairs(self, q: int, place: Place, *, stays: bool = False) -> IntArray:
        """Return the pairs of a mover that stays, or of a place that displaces movers."""
        if stays:
            return self._of_mover[q].astype(np.int64)
        first, takes = self._pairs_of(q)
        return first + np.flatnonzero(takes[[*place]].any(axis=0))

    def priced(self, rows: IntArray, pairs: IntArray) -> Callable[[int, int, Wishes], list[Offer]]:
        """Return what finds the cheapest places: the cheapest positions."""
        costs, ends = np.asarray(self.packing.amounts @ rows), self.packing.num_rows

        def cheapest(q: int, number: int, wishes: Wishes) -> list[Offer]:
            first, takes = self._pairs_of(q)
            prices = pairs[first : first + takes.shape[1]]
            marks = []
            for row, inside in wishes:
                if row < ends:
                    marks.append((self.packing.taking(row), inside))
                    continue
                mine = first <= row - ends < first + takes.shape[1]
                marks.append((takes[:, row - ends - first] if mine else _none(takes), inside))
            marks += [(np.arange(len(takes)) == k, True) for k in self._kept.get(q, ())]
            own = costs + takes @ prices
            return self.packing.cheapest(self.packing.forms[q], own, number, marks)[1]

        return cheapest

    def refuge(self, q: int, left: IntArray, avoided: IntArray) -> Place | None:
        """Return the place for a job that takes least of what is to be avoided."""
        full = np.asarray(self.packing.amounts @ (left < 1).astype(np.int64)) > 0
        marks = [(full, False)]
        marks += [(np.arange(len(full)) == k, True) for k in self._kept.get(q, ())]
        costs = np.asarray(self.packing.amounts @ avoided)
        found = self.packing.cheapest(self.packing.forms[q], costs, 1, marks)[1]
        return found[0][1] if found else None

    def key(self, q: int) -> Hashable:
        """Return the form of a mover; a request has pairs of its own."""
        return (q,) if q >= len(self.own) else id(self.packing.forms[q])

    def work(self) -> float:
        """Return what a call takes."""
        return _WORK

    def placement(self, q: int, place: Place) -> CubesPlacement:
        """Return a place as documents have it."""
        places = [self._places[k] for k in place]
        cubes = tuple(sorted(cube for one in places for cube in one.cubes))
        placed = Placed(q, cubes, places[0].origin, places[0].extents)
        return placement_of(self.problem, placed)

    def taken(self, q: int, place: Place) -> Mapping[Hashable, int]:
        """Return the chips of a job."""
        return dict.fromkeys(self.packing.rows_of(Positions(q, place)).tolist(), 1)

    def left(self, of: Hashable) -> int:
        """Return whether a chip is free beside jobs that are no movers."""
        assert isinstance(of, int)
        return int(self.packing.capacities[of])


def _none(takes: BoolArray) -> BoolArray:
    return np.zeros(len(takes), dtype=bool)


# ---- Who may move --------------------------------------------------------------------------------


def movers_of(snapshot: Snapshot, instance: RepackInstance | DefragmentInstance) -> list[_Mover]:
    """Return the jobs that may move or end: on whole cubes or a part of one, none of it down."""
    state = prepare_cubes(snapshot.model_copy(update={"queue": [], "left_out": []}))
    down, changes = _down(snapshot, state), may_change(instance)
    pairs = zip(snapshot.running, state.held, strict=True)
    movers = [
        _mover(job.id, chips, state.machine, instance.keep_shape)
        for job, chips in pairs
        if changes(job.id) and not down[chips].any()
    ]
    return [mover for mover in movers if mover is not None]


def replaced_of(snapshot: Snapshot, instance: RepackInstance | DefragmentInstance) -> list[_Mover]:
    """Return the jobs that get other chips for those that are down, with the cubes they keep.

    Raises
    ------
    InputError
        If one has no chip that is down, or is not on whole cubes or a part of one.
    """
    names = instance.replace if isinstance(instance, RepackInstance) else []
    state = prepare_cubes(snapshot.model_copy(update={"queue": [], "left_out": []}))
    down, stays, found = _down(snapshot, state), restricted(snapshot), []
    held = {job.id: chips for job, chips in zip(snapshot.running, state.held, strict=True)}
    for idx, name in enumerate(names):
        mover = _mover(name, held[name], state.machine, instance.keep_shape)
        if mover is None or name in stays or not down[held[name]].any():
            expected = "jobs with chips that are down, on whole cubes or a part of one"
            raise InputError(expected, field=f"replace[{idx}]", value=name)
        up = [c for c in mover.cubes if not down[state.machine.chips_of(c)].any()]
        found.append(_Mover(mover.request, tuple(up)))
    return found


def _down(snapshot: Snapshot, state: CubesState) -> BoolArray:
    found = np.zeros(state.machine.num_chips, dtype=bool)
    found[parse_node_set(snapshot.down, state.machine.num_chips, "down")] = True
    return found


def _mover(name: str, chips: IntArray, machine: Cubes, keep: KeepShape) -> _Mover | None:
    """Return a job as a request; None if its chips are no whole cubes and no part of one."""
    cubes = tuple(np.unique(chips // machine.volume).tolist())
    if len(chips) == len(cubes) * machine.volume:
        return _Mover(Request(id=name, nodes=len(chips)), cubes)
    if len(cubes) > 1:
        return None
    inside = np.sort(chips % machine.volume).tolist()
    for extents in itertools.product(*(range(1, n + 1) for n in machine.side)):
        if math.prod(extents) != len(chips):
            continue
        for origin in machine.origins(extents):
            if machine.inside(origin, extents).tolist() == inside:
                text = "/".join("x".join(map(str, own)) for own in _kept(extents, machine, keep))
                request = Request(id=name, nodes=len(chips), shapes=text)
                return _Mover(request, cubes, (origin, extents))
    return None


def _kept(extents: Extents, machine: Cubes, keep: KeepShape) -> Iterable[Extents]:
    """Return the extents that a job may have elsewhere: the same, turned, or any of its size."""
    if keep is KeepShape.SAME:
        return [extents]
    every = itertools.product(*(range(1, n + 1) for n in machine.side))
    same = [own for own in every if math.prod(own) == math.prod(extents)]
    return same if keep is KeepShape.ANY else [e for e in same if sorted(e) == sorted(extents)]


def shown(
    instance: RepackInstance | DefragmentInstance, names: set[str]
) -> tuple[list[CubesPlacement], list[Request]]:
    """Return where some jobs are, and what they ask for."""
    snapshot = resolve_machine(instance.snapshot)
    state = prepare_cubes(snapshot.model_copy(update={"queue": [], "left_out": []}))
    placements, asked = [], []
    for job, chips in zip(snapshot.running, state.held, strict=True):
        mover = (
            _mover(job.id, chips, state.machine, instance.keep_shape) if job.id in names else None
        )
        if mover is not None:
            asked.append(mover.request)
            part = (None, None) if mover.part is None else mover.part
            update = {"queue": [mover.request], "running": [], "left_out": []}
            own = CubesProblem(prepare_cubes(snapshot.model_copy(update=update)))
            placements.append(placement_of(own, Placed(0, mover.cubes, *part)))
    return placements, asked
