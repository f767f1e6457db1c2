"""Where running jobs of tori and meshes may go: prisms, at least as good as they have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace

import numpy as np

from topoplace import clock
from topoplace.errors import InputError
from topoplace.machine import Prism, format_node_set, parse_node_set
from topoplace.packing.budget import Budget
from topoplace.packing.search import Search
from topoplace.placement.repack.problem import GOES, Offer, Seat, Site, Wishes, may_change
from topoplace.placement.torus.outcome import prism_model
from topoplace.placement.torus.packing import TorusPacking
from topoplace.placement.torus.places import Places, Standing
from topoplace.placement.torus.problem import Candidate, PlacementProblem
from topoplace.result import Interference, Placement
from topoplace.snapshot.geometry import Geometry
from topoplace.snapshot.schema import (
    BY_SETS,
    OF_GANGS,
    Communication,
    DefragmentInstance,
    KeepShape,
    RepackInstance,
    Request,
    Room,
    Snapshot,
)
from topoplace.snapshot.state import QueuedState, RunningState, prepare, require_none
from topoplace.types import IntArray

_WORK = 1e-7  # nominal seconds of a call, by prism of the requests that have to start
_MOST_TRIES = 200  # prisms of a request that are cleared one after the other


class TorusMoves(Site):
    """Running jobs and requests on prisms: every pair is of a request and a mover.

    Attributes
    ----------
    movable
        The running jobs that may move.
    emptied
        The machine without them. They are the first of its queue.
    """

    packing: TorusPacking
    own: Sequence[Prism]

    def __init__(
        self,
        snapshot: Snapshot,
        wanted: Sequence[Request],
        instance: RepackInstance | DefragmentInstance,
        interference: Interference,
    ) -> None:
        for idx, job in enumerate(snapshot.running):
            require_none(job, OF_GANGS, "a torus or mesh where jobs move", f"running[{idx}]")
        if getattr(instance, "replace", ()):
            raise InputError("no jobs on a torus or mesh", field="replace", found="some")
        state = prepare(snapshot)
        if state.anchored:
            raise InputError("a machine on which any prism will do", field="machine.anchored")
        for idx, request in enumerate(snapshot.queue):
            if request.id not in {own.id for own in state.queue}:
                continue  # it is held
            require_none(
                request, (*BY_SETS, "near"), "a torus or mesh where jobs move", f"queue[{idx}]"
            )
        if any(isinstance(request.region, list) for request in wanted):
            raise InputError("one region of a request where jobs move", field="queue")
        whole = PlacementProblem(state, interference)
        self.movable = _may_move(whole, instance)
        names = {job.id for job in self.movable}
        update = {
            "running": [job for job in snapshot.running if job.id not in names],
            "queue": [*wanted],
        }
        left = prepare(snapshot.model_copy(update=update))
        movers = [_as_request(whole, job, instance.keep_shape) for job in self.movable]
        self._set_up(PlacementProblem(replace(left, queue=(*movers, *left.queue)), interference))
        # room for a prism: of one with any number of nodes
        self._of_any_size = isinstance(instance, DefragmentInstance) and instance.room is Room.PRISM

    def _set_up(self, emptied: PlacementProblem) -> None:
        self.emptied, num = emptied, len(self.movable)
        self.packing = TorusPacking(emptied)
        self.names = self.packing.names
        self.nodes = [request.nodes for request in emptied.requests]
        self.own = [_prism(job) for job in self.movable]
        self.values = [request.value for request in emptied.requests[num:]]
        self.num_pairs = num * len(self.values)
        self._places: dict[Hashable, Places] = {}
        self._holder = np.full(self.packing.num_rows, -1, dtype=np.int64)
        for q, prism in enumerate(self.own):
            self._holder[self.packing.rows_of(Candidate(q, prism))] = q

    def candidate(self, q: int, place: Prism) -> Candidate:
        """Return a prism as a candidate."""
        return Candidate(q, place)

    def _own_pairs(self, q: int) -> slice:
        """Return the pairs of a request that has to start; none for others."""
        movers = len(self.own)
        start = max(0, q - movers) * movers
        return slice(start, start + movers * (q >= movers))

    def pairs(self, q: int, place: Prism, *, stays: bool = False) -> IntArray:
        """Return the pairs of a mover that stays, or with those that a prism displaces."""
        if stays:
            return np.arange(q, self.num_pairs, len(self.own))
        if q < len(self.own):
            return np.zeros(0, dtype=np.int64)
        held = np.unique(self._holder[self.packing.rows_of(Candidate(q, place))])
        return np.asarray(self._own_pairs(q).start + held[held >= 0])

    def work(self) -> float:
        """Return what a call takes, by the prisms of those that have to start."""
        wanted = range(len(self.own), len(self.names))
        return 1e-3 + _WORK * sum(len(self.places(q).shape_of) for q in wanted)

    def places(self, q: int) -> Places:
        """Return the prisms of a request; requests with the same prisms share them."""
        r = self.emptied.requests[q]
        wanted = q >= len(self.own)
        key = wanted, r.nodes, r.class_idx, r.geometries, r.region, r.communication
        if key not in self._places:
            clock.check(self.packing.deadline)
            standing = self._standing(r.communication) if wanted else None
            self._places[key] = Places(self.emptied, q, standing)
        return self._places[key]

    def _standing(self, kind: Communication) -> Standing:
        """Return the jobs that may move, as they appear to requests of a kind of communication."""
        whole, shape = self.emptied, (len(self.own), self.emptied.torus.num_dims)
        others = [job.communication for job in self.movable]
        closes = [
            whole.uses_links(kind)
            and whole.uses_links(other)
            and not (whole.is_tolerant(kind) and whole.is_tolerant(other))
            for other in others
        ]
        return Standing(
            np.array([p.origin for p in self.own], dtype=np.int64).reshape(shape),
            np.array([p.extents for p in self.own], dtype=np.int64).reshape(shape),
            np.array(closes, dtype=bool),
        )

    def key(self, q: int) -> Hashable:
        """Return the prisms of a mover, and who pays for its links; a request has pairs."""
        return q if q >= len(self.own) else (id(self.places(q)), self._payer(q))

    def _payer(self, q: int) -> int | None:
        """Return the request that pays for links of its own, if it is tolerant."""
        return q if self.emptied.is_tolerant(self.emptied.requests[q].communication) else None

    def priced(self, rows: IntArray, pairs: IntArray) -> Callable[[int, int, Wishes], list[Offer]]:
        """Return what finds the cheapest prisms."""

        def cheapest(q: int, number: int, wishes: Wishes) -> list[Offer]:
            places, routers, mine = self.places(q), self.packing.num_covers, self._own_pairs(q)
            paid = self._paid(q, rows, pairs)
            allowed = np.ones(len(paid), dtype=bool)
            for row, inside in wishes:
                held = np.zeros(len(paid), dtype=bool)
                if row < routers:
                    held = places.holding(row)
                elif mine.start <= row - routers < mine.stop and places.clashes is not None:
                    held = places.clashes[:, [row - routers - mine.start]].toarray().ravel() > 0
                allowed &= held == inside
            at = np.flatnonzero(allowed)
            if number < len(at):
                at = np.sort(at[np.argpartition(paid[at], number)[:number]])
            at = at[np.argsort(paid[at], kind="stable")]
            return [(int(paid[k]), places.prism(k)) for k in at.tolist()]

        return cheapest

    def _paid(self, q: int, rows: IntArray, pairs: IntArray) -> IntArray:
        """Return what a request pays on each of its prisms."""
        clock.check(self.packing.deadline)
        links = None
        if self.emptied.uses_links(self.emptied.requests[q].communication):
            links = self.packing.priced(rows).seen_by(self._payer(q))
        routers = self.packing.num_covers
        return self.places(q).paid(rows[:routers], links, pairs[self._own_pairs(q)])

    def openings(self, q: int, rows: IntArray, pairs: IntArray, most: int) -> list[Prism]:
        """Return the cheapest prisms of a request that all displace other jobs."""
        places, paid = self.places(q), self._paid(q, rows, pairs)
        assert places.clashes is not None
        marks = np.random.default_rng(0).integers(1, 1 << 40, places.clashes.shape[1])
        kinds = places.clashes @ marks
        order = np.lexsort((paid, kinds))
        first = order[np.diff(kinds[order], prepend=-1) != 0]
        first = first[paid[first] < most]
        first = first[np.argsort(paid[first], kind="stable")][:_MOST_TRIES]
        return [places.prism(k) for k in first.tolist()]

    def refuge(self, q: int, left: IntArray, avoided: IntArray) -> Prism | None:
        """Return a free prism for a mover."""
        taken = len(left) + 1
        prices = np.where((left < 1) & (self.packing.capacities > 0), taken, avoided)
        [*found] = self.priced(prices, np.zeros(self.num_pairs, dtype=np.int64))(q, 1, ())
        return found[0][1] if found and found[0][0] < taken else None

    def begun(self, snapshot: Snapshot, budget: Budget, seed: int) -> list[Seat]:
        """Return what starts while no job moves, as a queue is placed."""
        now = PlacementProblem(prepare(snapshot), self.emptied.interference)
        found = Search(TorusPacking(now), budget, seed=seed, num_levels=1).run().placement
        return [Seat(len(self.own) + c.request_idx, GOES, c.prism) for c in found]

    def nodes_of(self, q: int, prism: Prism) -> IntArray:
        """Return the nodes that a job gets in a prism, ascending."""
        return np.sort(self.emptied.choose_nodes(Candidate(q, prism)))

    def placement(self, q: int, place: Prism) -> Placement:
        """Return a job on its prism; the job that room is made for has all nodes there."""
        site = self
        if self._of_any_size and q >= len(self.own):
            site = self.of_size(self.emptied.usable_inside(Candidate(q, place)))
        nodes = format_node_set(site.nodes_of(q, place).tolist())
        return Placement(request=self.names[q], prism=prism_model(place), nodes=nodes)

    def of_size(self, nodes: int) -> TorusMoves:
        """Return the same with another number of nodes for the last request."""
        *others, last = self.emptied.requests
        queue = (*others, replace(last, nodes=nodes, value=nodes))
        state = replace(self.emptied.state, queue=queue)
        found = copy(self)
        found._set_up(PlacementProblem(state, self.emptied.interference))
        return found

    def taken(self, q: int, place: Prism) -> Mapping[Hashable, int]:
        """Return the rows of a prism."""
        return Counter(self.packing.rows_of(Candidate(q, place)).tolist())

    def left(self, of: Hashable) -> int:
        """Return 1: a row is of one job."""
        return 1


def _prism(job: RunningState) -> Prism:
    assert job.prism is not None
    return job.prism


def _may_move(
    whole: PlacementProblem, instance: RepackInstance | DefragmentInstance
) -> list[RunningState]:
    """Return the jobs that may move: they have a prism, nodes of a class, and break no rule."""
    changes = may_change(instance)
    return [job for job in _unbroken(whole) if changes(job.id)]


def _unbroken(whole: PlacementProblem) -> Iterator[RunningState]:
    running, links = whole.state.running, whole.running_links
    users, strict = np.zeros((2, whole.torus.num_links), dtype=np.int64)
    for job, own in zip(running, links, strict=True):
        users[own] += 1
        strict[own] |= not whole.is_tolerant(job.communication)
    broken = (users > 1) & (strict > 0)
    for job, own in zip(running, links, strict=True):
        alike = len(np.unique(whole.state.node_class[job.nodes])) == 1
        if job.prism is not None and alike and not broken[own].any():
            yield job


def _as_request(whole: PlacementProblem, job: RunningState, keep: KeepShape) -> QueuedState:
    """Return a running job as a request for the prisms that it may move to."""
    torus, nodes = whole.torus, len(job.nodes)
    own = _prism(job).extents
    shapes: tuple[Geometry, ...] = ()
    if keep is KeepShape.SAME:
        shapes = (Geometry(own),)
    elif keep is KeepShape.AS_GOOD:
        score = whole.shape_parts
        least = int(score[tuple(e - 1 for e in own)])
        good = np.argwhere(score >= least) + 1
        large = good.prod(axis=1) * torus.nodes_per_router >= nodes
        shapes = tuple(Geometry(tuple(extents)) for extents in good[large].tolist())
    class_idx = int(whole.state.node_class[job.nodes[0]])
    return QueuedState(job.id, nodes, nodes, class_idx, shapes, None, job.communication)


def shown(
    instance: RepackInstance | DefragmentInstance, names: set[str]
) -> tuple[list[Placement], list[Request]]:
    """Return where some jobs are, and what they would ask for: nodes of the class of theirs."""
    old = [job for job in instance.snapshot.running if job.id in names]
    state = prepare(instance.snapshot.model_copy(update={"queue": []}))
    asked = []
    for job in old:
        nodes = parse_node_set(job.nodes, state.torus.num_nodes)
        name = state.classes[int(state.node_class[nodes[0]])]
        asked.append(
            Request(id=job.id, nodes=len(nodes), node_class=name, communication=job.communication)
        )
    return [Placement(request=job.id, prism=job.prism, nodes=job.nodes) for job in old], asked
