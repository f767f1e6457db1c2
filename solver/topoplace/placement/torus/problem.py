"""The placement problem as solvers see it: a snapshot's arrays plus the interference rule."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np

from topoplace.errors import InputError
from topoplace.machine import Prism, Torus, bisection_per_node, prism_links, scattered_links
from topoplace.placement.torus.footprints import (
    CountSums,
    Footprints,
    Reach,
    footprints_of,
    search_footprints,
)
from topoplace.result import Interference
from topoplace.snapshot.geometry import Geometry
from topoplace.snapshot.schema import Communication, ShapeWeights
from topoplace.snapshot.state import QueuedState, RunningState, SnapshotState
from topoplace.solving.registry import Options
from topoplace.types import BoolArray, IntArray, Levels

LEVELS: Levels = (("nodes", "max"), ("shape", "max"), ("fragmentation", "min"))
ANCHORED_LEVELS: Levels = (("nodes", "max"), ("fragmentation", "min"))
"""Levels of machines whose prisms are anchored: fragmentation counts the blocked ones."""
HOP_BYTES: Levels = (("nodes", "max"), ("hop-bytes", "min"))
"""Levels where the applications that start are mapped."""


@dataclass(frozen=True, order=True)
class Candidate:
    """A request (by queue position) on a prism; one in segments also on `others`, ascending."""

    request_idx: int
    prism: Prism
    others: tuple[Prism, ...] = field(default=(), kw_only=True)

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        """The hash: searches look for the same candidates again and again."""
        return hash((self.request_idx, self.prism, self.others))

    @property
    def prisms(self) -> tuple[Prism, ...]:
        """All its prisms."""
        return self.prism, *self.others

    def routers(self, torus: Torus) -> IntArray:
        """Return the routers inside, prism by prism."""
        if not self.others:
            return self.prism.routers(torus)
        return np.concatenate([prism.routers(torus) for prism in self.prisms])


def in_prisms(request_idx: int, prisms: Iterable[Prism]) -> Candidate:
    """Return a request on all of some prisms."""
    first, *others = sorted(prisms)
    return Candidate(request_idx, first, others=tuple(others))


@dataclass(frozen=True, order=True)
class MappedJob(Candidate):
    """A request on a prism, with its nodes (ascending) and the node of every task."""

    nodes: IntArray = field(compare=False, repr=False)
    tasks: IntArray = field(compare=False, repr=False)
    hop_bytes: int = field(compare=False)


@dataclass(frozen=True)
class PlacementProblem:
    """A snapshot under an interference rule (docs/proofs/placement.md, "The problem").

    Attributes
    ----------
    maps
        Whether the second level is the hop-bytes of the applications that start.
    costs
        By application (`SnapshotState.tasks`) its cost in a prism, by the extents of the prism less
        1, shape ``torus.shape``: with them, the second level of a candidate is its cost, negated.
    """

    state: SnapshotState
    interference: Interference = Interference.STRICT
    maps: bool = False
    costs: tuple[IntArray, ...] | None = None
    kind: ClassVar[str] = "placement"
    _memo: dict[object, object] = field(default_factory=dict, repr=False, compare=False)
    _reaches: dict[object, Reach] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Refuse segments that use links: messages between prisms have no links of their own."""
        for idx, request in enumerate(self.requests):
            if request.num_prisms > 1 and self.uses_links(request.communication):
                expected = "communication none, or interference off, for a request in segments"
                at, value = f"queue[{idx}].communication", request.communication.value
                raise InputError(expected, field=at, value=value)

    @property
    def torus(self) -> Torus:
        """The machine."""
        return self.state.torus

    @property
    def requests(self) -> tuple[QueuedState, ...]:
        """The queue."""
        return self.state.queue

    @property
    def is_anchored(self) -> bool:
        """Whether jobs have anchored prisms of exactly their size, or none (see `anchored`)."""
        return bool(self.state.anchored)

    @property
    def levels(self) -> Levels:
        """Name and sense of every level of the objective."""
        if self.maps and not self.is_anchored:
            return HOP_BYTES
        return ANCHORED_LEVELS if self.is_anchored else LEVELS

    def uses_links(self, communication: Communication) -> bool:
        """Return whether a job's links matter under the rule."""
        return self.interference is not Interference.OFF and communication is not Communication.NONE

    def is_tolerant(self, communication: Communication) -> bool:
        """Return whether a job may share links with others of its kind under the rule."""
        return (
            self.interference is Interference.TOLERANT and communication is Communication.TOLERANT
        )

    @cached_property
    def running_links(self) -> list[IntArray]:
        """Links that every running job uses under the rule."""
        nothing = np.zeros(0, dtype=np.int64)
        return [
            job_links(self.torus, job) if self.uses_links(job.communication) else nothing
            for job in self.state.running
        ]

    @cached_property
    def _links_of_running(self) -> dict[bool, BoolArray]:
        """Links used by running jobs, by whether the job may share them."""
        used = {kind: np.zeros(self.torus.num_links, dtype=bool) for kind in (False, True)}
        for job, links in zip(self.state.running, self.running_links, strict=True):
            used[self.is_tolerant(job.communication)][links] = True
        return used

    def closed_links(self, communication: Communication) -> BoolArray:
        """Return the links running jobs close to such a request, shape ``(num_links,)``."""
        if not self.uses_links(communication):
            return np.zeros(self.torus.num_links, dtype=bool)
        used = self._links_of_running
        return used[False] if self.is_tolerant(communication) else used[False] | used[True]

    @cached_property
    def free_routers(self) -> BoolArray:
        """Routers with a usable node of any class, shape ``(num_routers,)``."""
        return np.asarray((self.state.usable_per_router > 0).any(axis=0))

    def allowed_routers(self, request: QueuedState) -> BoolArray:
        """Routers a prism of the request may contain, shape ``(num_routers,)``."""
        allowed = ~self.state.occupied
        return allowed if request.region is None else allowed & self.state.regions[request.region]

    def reach(self, request: QueuedState, view: Footprints) -> Reach:
        """Return the depth of prisms of a request with the running jobs in place.

        Made once per region and kind of links: it must not be written to, as problems of another
        queue (`of_queue`) share it.
        """
        kind = request.communication
        key = request.region, self.uses_links(kind), self.is_tolerant(kind), view.axes
        found = self._reaches.get(key)
        if found is None:
            closed = self.closed_links(kind)
            found = self._reaches[key] = view.reach(~self.allowed_routers(request), closed)
        return found

    def forget_reaches(self) -> None:
        """Free what `reach` keeps, for a search that needs the memory."""
        self._reaches.clear()

    def of_queue(self, queue: Sequence[QueuedState]) -> PlacementProblem:
        """Return the problem of another queue on the same machine with the same jobs."""
        state = replace(self.state, queue=tuple(queue))
        return replace(self, state=state, _memo={})

    def whole_routers(self, class_idx: int) -> BoolArray:
        """Routers whose nodes are all usable by a class, shape ``(num_routers,)``."""
        whole = self.state.usable_per_router[class_idx] == self.torus.nodes_per_router
        return np.asarray(whole)

    @cached_property
    def shape_parts(self) -> IntArray:
        """Shape scores of all extents without idle nodes (see `shape_parts`)."""
        return shape_parts(self.torus, self.state.snapshot.weights)

    def extent_values(self, request_idx: int) -> IntArray:
        """Return what extents add to the second level of a request, shape ``torus.shape``."""
        if self.costs is None:
            return self.shape_parts
        tasks = self.requests[request_idx].tasks
        return np.zeros(self.torus.shape, dtype=np.int64) if tasks is None else -self.costs[tasks]

    @property
    def idle_weight(self) -> int:
        """The reduction of the second level by an idle node inside a prism."""
        return self.state.snapshot.weights.idle if self.costs is None else 0

    def priced_as(self, request_idx: int) -> int | None:
        """Return what requests have in common for which extents have the same value."""
        return None if self.costs is None else self.requests[request_idx].tasks

    @cached_property
    def view(self) -> Footprints:
        """The machine as searches see it that keep one prism per request.

        Depths that requests admit are those along the machine's last dimension.
        """
        has_depths = any(request.has_depths for request in self.requests)
        return (footprints_of if has_depths else search_footprints)(self.torus)

    @cached_property
    def usable_sums(self) -> list[CountSums]:
        """By class, the prefix sums of its usable nodes (see `Footprints.sums`)."""
        view = self.view
        return [view.sums(usable) for usable in self.state.usable_per_router]

    @cached_property
    def _free_sums(self) -> CountSums:
        """Prefix sums of free routers."""
        return self.view.sums(self.free_routers.astype(np.int64))

    @cached_property
    def kinds(self) -> list[Hashable]:
        """The kind of every request (see `PackingProblem.kinds`).

        Requests that may share links with their like have link rows of their own.
        """
        return [
            (
                *(r.classes, r.region, r.communication, r.nodes, r.value, r.geometries, r.near),
                self.priced_as(q),
            )
            if not self.is_tolerant(r.communication)
            else q
            for q, r in enumerate(self.requests)
        ]

    def way_of(self, candidate: Candidate) -> QueuedState:
        """Return the request with one of its kinds of nodes alone.

        It is the kind of which the prism holds enough and the fewest are left idle, the first one
        of equal ones. If it holds enough of no kind, it is the one of which it holds most.
        """
        request = self.requests[candidate.request_idx]
        if not request.others:
            return request
        held = [self._held(way, candidate) for way in request.ways]
        fits = [inside >= request.nodes for inside in held]
        if request.geometries:
            fits = [self._geometry_in(way, candidate.prism) is not None for way in request.ways]
        best = min(range(len(fits)), key=lambda k: (not fits[k], held[k] if fits[k] else -held[k]))
        return request.ways[best]

    def _held(self, way: QueuedState, candidate: Candidate) -> int:
        """Count the usable nodes that the prisms hold of the first kind of a request."""
        usable = self.state.usable_per_router[way.class_idx]
        return int(usable[candidate.routers(self.torus)].sum())

    def usable_inside(self, candidate: Candidate) -> int:
        """Count the usable nodes inside the prism: of the class, or kind, that the request has."""
        return self._held(self.way_of(candidate), candidate)

    def routers_of_use(self, candidate: Candidate) -> IntArray:
        """Return the routers of a prism that have usable nodes of a kind that the request has."""
        classes = [*self.requests[candidate.request_idx].classes]
        usable = np.asarray(self.state.usable_per_router[classes].any(axis=0))
        routers = candidate.routers(self.torus)
        return np.sort(routers[usable[routers]])

    def shape_score(self, candidate: Candidate) -> int:
        """Return the level-2 value of a candidate (docs/proofs/placement.md, "The objective")."""
        idle = self.usable_inside(candidate) - self.requests[candidate.request_idx].nodes
        values = self.extent_values(candidate.request_idx)
        return int(values[tuple(e - 1 for e in candidate.prism.extents)]) - self.idle_weight * idle

    def values(self, candidate: Candidate) -> tuple[int, int, int]:
        """Return the values of a candidate on the three levels, all to be maximised."""
        nodes, shape, fragmentation = self.values_of([candidate])[0].tolist()
        return nodes, shape, fragmentation

    def values_of(self, candidates: Sequence[Candidate]) -> IntArray:
        """Return the values of candidates, shape ``(num_candidates, 3)``.

        Those are the value of the request, the shape score, and the links from the prism to free
        routers outside it, negated (docs/proofs/placement.md, "The objective").
        """
        shape = (len(candidates), self.torus.num_dims)
        origins = np.array([c.prism.origin for c in candidates], dtype=np.int64).reshape(shape)
        extents = np.array([c.prism.extents for c in candidates], dtype=np.int64).reshape(shape)
        requests = [self.way_of(candidate) for candidate in candidates]
        class_idx = np.array([request.class_idx for request in requests])
        idle = -np.array([request.nodes for request in requests], dtype=np.int64)
        for k in np.unique(class_idx).tolist():
            mine, sums = class_idx == k, self.usable_sums[k]
            idle[mine] += self.view.inside(sums, origins[mine], extents[mine])
        values = np.empty((len(candidates), 3), dtype=np.int64)
        values[:, 0] = [request.value for request in requests]
        values[:, 1] = self._second_level(candidates, extents) - self.idle_weight * idle
        values[:, 2] = -self._boundary(origins, extents)
        return values

    def _second_level(self, candidates: Sequence[Candidate], extents: IntArray) -> IntArray:
        """Return what the extents of candidates add to their second level."""
        if self.costs is None:
            return np.asarray(self.shape_parts[tuple(extents.T - 1)])
        found = np.zeros(len(candidates), dtype=np.int64)
        tasks = [self.requests[c.request_idx].tasks for c in candidates]
        for k, costs in enumerate(self.costs):
            mine = np.array([t == k for t in tasks], dtype=bool)
            found[mine] = -costs[tuple(extents[mine].T - 1)]
        return found

    def _boundary(self, origins: IntArray, extents: IntArray) -> IntArray:
        """Count the links from prisms to free routers outside them."""
        num_dims = self.torus.num_dims
        num_faces = 2 * num_dims
        beside = np.repeat(origins[:, None, :], num_faces, axis=1)
        faces = np.repeat(extents[:, None, :], num_faces, axis=1)
        for d, (n, wraps) in enumerate(zip(self.torus.shape, self.torus.wrap, strict=True)):
            for k, at in ((2 * d, origins[:, d] - 1), (2 * d + 1, origins[:, d] + extents[:, d])):
                there = (extents[:, d] < n) & (wraps | ((at >= 0) & (at < n)))
                beside[:, k, d] = at % n
                faces[:, k, d] = there
        boxes = beside.reshape(-1, num_dims), faces.reshape(-1, num_dims)
        counts = self.view.inside(self._free_sums, *boxes)
        return np.asarray(counts.reshape(-1, num_faces).sum(axis=1))

    def links_of(self, candidate: Candidate) -> IntArray:
        """Return the links a started candidate uses under the rule."""
        if not self.uses_links(self.requests[candidate.request_idx].communication):
            return np.zeros(0, dtype=np.int64)
        return prism_links(self.torus, candidate.prism)

    def choose_nodes(self, candidate: Candidate) -> IntArray:
        """Return the nodes a started job takes: the lowest usable ones its geometry admits."""
        request = self.way_of(candidate)
        routers = candidate.routers(self.torus)
        geometry = self.matching_geometry(candidate)
        if geometry is not None and geometry.max_depth is not None:
            pencils = routers.reshape(-1, candidate.prism.extents[-1])
            whole = self.whole_routers(request.class_idx)[pencils]
            first = whole & (whole.cumsum(axis=1) <= geometry.extents[-1])
            routers = pencils[first]
        nodes = self.torus.nodes_of(np.sort(routers))
        fits = self.state.usable[nodes] & self.state.of_kind(request.class_idx)[nodes]
        chosen: IntArray = nodes[fits][: request.nodes]
        assert len(chosen) == request.nodes, "a candidate holds the nodes of its request"
        return chosen

    def matching_geometry(self, candidate: Candidate) -> Geometry | None:
        """Return the first alternative of the request's geometry that the prism fits."""
        return self._geometry_in(self.way_of(candidate), candidate.prism)

    def _geometry_in(self, way: QueuedState, prism: Prism) -> Geometry | None:
        """Return the first alternative that a prism fits, of a request with one kind of nodes."""
        for geometry in way.geometries:
            if prism.extents[:-1] != geometry.extents[:-1]:
                continue
            if prism.extents[-1] not in geometry.depths:
                continue
            routers = prism.routers(self.torus)
            if geometry.max_depth is None:
                if self.state.usable_per_router[way.class_idx][routers].sum() >= way.nodes:
                    return geometry
                continue
            pencils = routers.reshape(-1, prism.extents[-1])
            whole = self.whole_routers(way.class_idx)[pencils].sum(axis=1)
            if whole.min() >= geometry.extents[-1]:
                return geometry
        return None


def problem_of(state: SnapshotState, options: Options) -> PlacementProblem:
    """Return the problem of placing the queue under the rule of the options."""
    return PlacementProblem(state, options.interference, options.maps)


def job_links(torus: Torus, job: RunningState) -> IntArray:
    """Return the links a running job uses: its prism's, or those of all its routes."""
    if job.prism is not None:
        return prism_links(torus, job.prism)
    return scattered_links(torus, job.routers)


@lru_cache(maxsize=4)  # a replay asks at every decision
def shape_parts(torus: Torus, weights: ShapeWeights) -> IntArray:
    """Return the shape scores of all extents without their idle-nodes term, exactly.

    Read-only, of shape ``torus.shape``; entry ``[e_1 - 1, .., e_D - 1]`` belongs to those extents.
    Everything except the product of the extents splits by dimension: the bisection bandwidth per
    node is the least of what each dimension alone would have, and the floor of the least the least
    floor.
    """
    shape = torus.shape
    bisection = np.full(shape, np.iinfo(np.int64).max, dtype=np.int64)
    volume = np.ones(shape, dtype=np.int64)
    others = np.zeros(shape, dtype=np.int64)
    for d, n in enumerate(shape):
        along = [n if k == d else 1 for k in range(len(shape))]
        ring, alone = _alone(torus, d)
        lost = [
            weights.hops * prism.max_hops(ring) + weights.wrap * prism.num_wrapping_dims(ring)
            for prism in alone
        ]
        np.minimum(bisection, np.array(_per_node(torus, d)).reshape(along), out=bisection)
        volume *= np.arange(1, n + 1).reshape(along)
        others += np.array(lost, dtype=np.int64).reshape(along)
    parts: IntArray = weights.bisection * bisection - weights.volume * volume - others
    parts.flags.writeable = False
    return parts


def largest_shape_part(torus: Torus, weights: ShapeWeights) -> int:
    """Return an upper bound on the absolute shape score of any prism without its idle nodes."""
    return (
        weights.bisection * max(max(_per_node(torus, d)) for d in range(torus.num_dims))
        + weights.volume * torus.num_routers
        + weights.hops * sum(torus.shape)
        + weights.wrap * torus.num_dims
    )


def _alone(torus: Torus, dim: int) -> tuple[Torus, list[Prism]]:
    """Return one dimension of a machine, and its prisms at 0."""
    kept = slice(dim, dim + 1)
    ring = Torus(torus.shape[kept], torus.wrap[kept], torus.bandwidth[kept], torus.nodes_per_router)
    return ring, [Prism((0,), (extent,)) for extent in range(1, torus.shape[dim] + 1)]


@lru_cache(maxsize=64)
def _per_node(torus: Torus, dim: int) -> tuple[int, ...]:
    """Return one dimension's bisection per node by extent, in thousandths of the slowest link."""
    ring, prisms = _alone(torus, dim)
    slowest = min(torus.bandwidth)
    return tuple(math.floor(1000 * bisection_per_node(ring, p.extents) / slowest) for p in prisms)
