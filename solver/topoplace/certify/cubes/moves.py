"""Running jobs of pods that may move (docs/proofs/cubes.md, "Moves")."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from topoplace.certify.cubes.check import chips_of
from topoplace.certify.cubes.instance import Instance, Shape, read_instance
from topoplace.certify.moves import Ground, may_change
from topoplace.certify.moves import Instance as Document
from topoplace.certify.packing import Covers, Prices
from topoplace.certify.report import RefusedError, require_none
from topoplace.errors import number_of
from topoplace.machine import parse_node_set
from topoplace.machine.hostlist import NodeLists
from topoplace.result import Interference
from topoplace.result.placement import CubesPlacement
from topoplace.snapshot.schema import CubesModel, KeepShape, RunningJob, Snapshot
from topoplace.snapshot.schema import Request as RequestModel
from topoplace.types import BoolArray, IntArray

Chips = Sequence[int]


@dataclass(frozen=True)
class _Mover:
    """A job as a request, its chips, and those of its cubes that are up."""

    request: RequestModel
    chips: Chips
    cubes_up: frozenset[int]


class CubesGround(Ground):
    """Jobs as whole cubes, or as a part of one."""

    def __init__(
        self,
        snapshot: Snapshot,
        wanted: Sequence[RequestModel],
        document: Document,
        interference: Interference,
    ) -> None:
        if interference is not Interference.STRICT:
            raise RefusedError("a rule that only tori have")
        whole = read_instance(snapshot)  # raises if it contradicts itself
        for request in wanted:
            require_none(request, "one_of")
        movers, replaced = _jobs(snapshot, document, whole)
        gone = {one.request.id for one in (*movers, *replaced)}
        asked = [*wanted, *(one.request for one in replaced)]
        update = {
            "running": [job for job in snapshot.running if job.id not in gone],
            "queue": [*(one.request for one in movers), *asked],
            "left_out": [],
        }
        self._instance = read_instance(snapshot.model_copy(update=update))
        own = self._instance.by_id
        sizes = {one.request.id: one.request.nodes for one in movers}
        side = "x".join(map(str, self._instance.side))
        self.text = f"{number_of(len(self._instance.free), 'cube')} of {side}"
        self.num_running = len(snapshot.running)
        self.movers = sizes
        self.present = {one.request.id: one.chips for one in movers}
        self.wanted = {request.id: own[request.id].value for request in asked}
        self.rows = {"chips": self._instance.free.ravel().astype(np.int64)}
        self.coverable = self._instance.free.size
        self._keep = {one.request.id: one.cubes_up for one in replaced}
        self._held = {name: self._mark(chips) for name, chips in self.present.items()}
        # by pair: the mover, and the request that has it, or the cube that has it for whole cubes
        self._pairs: list[tuple[str, str | int]] = [
            (mover, name) for name in self.wanted if not own[name].count for mover in sizes
        ]
        if any(own[name].count for name in self.wanted):
            self._pairs += [
                (mover, cube)
                for mover in sizes
                for cube in np.flatnonzero(self._held[mover].any(axis=1)).tolist()
            ]
        self.num_pairs = len(self._pairs)

    def _mark(self, chips: Chips) -> BoolArray:
        found = np.zeros(self._instance.free.shape, dtype=bool)
        found.ravel()[list(chips)] = True
        return found

    def placed(self, placement: Any) -> Chips:
        """Return the chips of a mover or request."""
        if not isinstance(placement, CubesPlacement):
            raise RefusedError("a place of another machine")
        name, instance = placement.request, self._instance
        chips = chips_of(instance, placement)
        if not instance.by_id[name].may_have(chips):
            raise RefusedError(f"{name} has a chip that it may not have")
        if NodeLists().numbers(placement.nodes, instance.free.size, name).tolist() != chips:
            raise RefusedError(f"{name} has other nodes than its place has")
        if not {*self._keep.get(name, ())} <= {*placement.cubes}:
            raise RefusedError(f"{name} loses cubes that are up")
        return chips

    def require_together(self, places: Sequence[tuple[str, Chips]]) -> None:
        """Raise unless all chips are free, and none has two jobs."""
        users = np.zeros(self._instance.free.size, dtype=np.int64)
        for name, chips in places:
            users[list(chips)] += 1
            if not self._instance.free.ravel()[list(chips)].all():
                raise RefusedError(f"{name} has a chip that is not free")
        if (users > 1).any():
            raise RefusedError(f"chip {int(users.argmax())} has two jobs")

    def staying(self, name: str) -> tuple[Mapping[int, int], set[int]]:
        """Return the chips of a mover, and its pairs."""
        mine = {k for k, (mover, _) in enumerate(self._pairs) if mover == name}
        return dict.fromkeys(self.present[name], 1), mine

    def paid_staying(self, name: str, prices: Prices) -> int:
        """Return what a mover pays for its chips."""
        return int(self._chip_prices(prices).ravel()[list(self.present[name])].sum())

    def _chip_prices(self, prices: Prices) -> IntArray:
        none = np.zeros(self._instance.free.size, dtype=np.int64)
        return prices.rows.get("chips", none).reshape(self._instance.free.shape)

    def least(
        self, names: Mapping[str, tuple[Covers, Covers]], prices: Prices, pairs: IntArray
    ) -> dict[str, int | None]:
        """Return what jobs pay in their cheapest places, by going through all of them."""
        of_chips = self._chip_prices(prices)
        found: dict[str, int | None] = {}
        for name, (rows, of_pairs) in names.items():
            request = self._instance.by_id[name]
            named = {k: k in of_pairs.inside for k in (*of_pairs.inside, *of_pairs.outside)}
            if request.count:
                found[name] = self._of_cubes(name, of_chips, rows, pairs, named)
            else:
                each = [
                    self._of_parts(name, shape, of_chips, rows, pairs, named)
                    for shape in request.shapes
                ]
                found[name] = min((cost for cost in each if cost is not None), default=None)
        return found

    def _of_parts(
        self,
        name: str,
        shape: Shape,
        of_chips: IntArray,
        rows: Covers,
        pairs: IntArray,
        named: Mapping[int, bool],
    ) -> int | None:
        """Return what the cheapest part of a shape pays, None if there is none."""
        instance = self._instance
        parts = np.zeros((len(instance.origins(shape)), instance.volume), dtype=np.int64)
        for k, origin in enumerate(instance.origins(shape)):
            parts[k, instance.chips(0, origin, shape)] = 1
        closed = ~(instance.free & self._allowed(name))
        may: BoolArray = np.asarray((closed @ parts.T) == 0)
        costs = of_chips @ parts.T
        for row, inside in rows.named:
            cube, chip = divmod(row, instance.volume)
            taken = np.zeros_like(may)
            taken[cube] = parts[:, chip] > 0
            may &= taken == inside
        mine = {k: mover for k, (mover, own) in enumerate(self._pairs) if own == name}
        for k, inside in named.items():
            if k not in mine:
                may &= not inside
        for k, mover in mine.items():
            displaced = (self._held[mover].astype(np.int64) @ parts.T) > 0
            costs = np.asarray(costs + int(pairs[k]) * displaced)
            if k in named:
                may &= displaced == named[k]
        return int(costs[may].min()) if may.any() else None

    def _of_cubes(
        self,
        name: str,
        of_chips: IntArray,
        rows: Covers,
        pairs: IntArray,
        named: Mapping[int, bool],
    ) -> int | None:
        """Return what the cheapest whole cubes pay, None if there are too few."""
        instance, request = self._instance, self._instance.by_id[name]
        whole: BoolArray = np.asarray((instance.free & self._allowed(name)).all(axis=1))
        usable = {int(cube) for cube in np.flatnonzero(whole)}
        costs = [int(n) for n in of_chips.sum(axis=1)]
        must = {*self._keep.get(name, ())}
        told = [(row // instance.volume, inside) for row, inside in rows.named]
        is_wanted = name in self.wanted
        for k, (_, cube) in enumerate(self._pairs):
            if isinstance(cube, int) and is_wanted:
                costs[cube] += int(pairs[k])
                told += [(cube, named[k])] if k in named else []
            elif named.get(k):
                return None
        for cube, inside in told:
            if inside:
                must.add(cube)
            else:
                usable.discard(cube)
        if len(must) > request.count or not must <= usable:
            return None
        rest = sorted(costs[c] for c in usable - must)
        if len(rest) < request.count - len(must):
            return None
        total: int = sum(costs[c] for c in must) + sum(rest[: request.count - len(must)])
        return total

    def _allowed(self, name: str) -> BoolArray:
        [allowed] = self._instance.by_id[name].allowed
        if allowed is None:
            return np.ones_like(self._instance.free)
        return self._mark(sorted(allowed))


# ---- Who may move --------------------------------------------------------------------------------


def _jobs(
    snapshot: Snapshot, document: Document, whole: Instance
) -> tuple[list[_Mover], list[_Mover]]:
    """Return the jobs that may move or end, and those that are replaced."""
    size = snapshot.on(CubesModel, "a pod of cubes").cubes * whole.volume
    down, changes, lists = (
        {*parse_node_set(snapshot.down, size, "down")},
        may_change(document),
        NodeLists(),
    )
    every = {}
    for job in snapshot.running:
        chips = sorted(int(chip) for chip in lists.numbers(job.nodes, size, "running"))
        every[job.id] = _mover(job, chips, down, document.keep_shape, whole)
    movers = [
        one
        for name, one in every.items()
        if one is not None and changes(name) and down.isdisjoint(one.chips)
    ]
    replaced = []
    for name in getattr(document, "replace", ()):
        one = every[name]
        if one is None or down.isdisjoint(one.chips):
            raise RefusedError(f"{name} is no job of whole cubes, or of a part, with chips down")
        replaced.append(one)
    return movers, replaced


def _mover(
    job: RunningJob, chips: Chips, down: set[int], keep: KeepShape, whole: Instance
) -> _Mover | None:
    """Return a job as a request; None if it has neither whole cubes nor a part of one."""
    volume = whole.volume
    cubes = {chip // volume for chip in chips}
    if len(chips) == volume * len(cubes):
        failed = {chip // volume for chip in chips if chip in down}
        return _Mover(RequestModel(id=job.id, nodes=len(chips)), chips, frozenset(cubes - failed))
    if len(cubes) > 1:
        return None
    within = [*itertools.product(*(range(1, n + 1) for n in whole.side))]
    sizes = [shape for shape in within if math.prod(shape) == len(chips)]
    [cube] = cubes
    own = [
        shape
        for shape in sizes
        if any(whole.chips(cube, origin, shape) == [*chips] for origin in whole.origins(shape))
    ]
    if not own:
        return None
    if keep is KeepShape.SAME:
        sizes = own[:1]
    elif keep is KeepShape.AS_GOOD:
        sizes = [shape for shape in sizes if sorted(shape) == sorted(own[0])]
    text = "/".join("x".join(map(str, shape)) for shape in sizes)
    return _Mover(RequestModel(id=job.id, nodes=len(chips), shapes=text), chips, frozenset())
