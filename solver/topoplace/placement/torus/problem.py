"""The placement problem as solvers see it: a snapshot's arrays plus the interference rule."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np

from topoplace.machine import Prism, Torus, bisection_per_node, prism_links, scattered_links
from topoplace.placement.torus.box_counts import BoxCounts
from topoplace.result import Interference
from topoplace.snapshot import Communication, Geometry, QueuedState, RunningState, SnapshotState
from topoplace.types import BoolArray, IntArray


@dataclass(frozen=True, order=True)
class Candidate:
    """A request (by queue position) on a prism."""

    request_idx: int
    prism: Prism


@dataclass(frozen=True)
class PlacementProblem:
    """A snapshot under an interference rule (docs/proofs.md, "The problem")."""

    state: SnapshotState
    interference: Interference = Interference.STRICT
    kind: ClassVar[str] = "placement"
    _memo: dict[object, object] = field(default_factory=dict, repr=False, compare=False)

    @property
    def torus(self) -> Torus:
        """The machine."""
        return self.state.torus

    @property
    def requests(self) -> tuple[QueuedState, ...]:
        """The queue."""
        return self.state.queue

    def uses_links(self, communication: Communication) -> bool:
        """Tell whether a job's links matter under the rule."""
        return self.interference is not Interference.OFF and communication is not Communication.NONE

    def is_tolerant(self, communication: Communication) -> bool:
        """Tell whether a job may share links with its like under the rule."""
        return (
            self.interference is Interference.TOLERANT and communication is Communication.TOLERANT
        )

    @cached_property
    def _links_of_running(self) -> dict[bool, BoolArray]:
        """Links used by running jobs, by whether the job may share them."""
        used = {kind: np.zeros(self.torus.num_links, dtype=bool) for kind in (False, True)}
        for job in self.state.running:
            if self.uses_links(job.communication):
                used[self.is_tolerant(job.communication)][job_links(self.torus, job)] = True
        return used

    def closed_links(self, communication: Communication) -> BoolArray:
        """Return the links running jobs close to such a request, shape ``(num_links,)``."""
        if not self.uses_links(communication):
            return np.zeros(self.torus.num_links, dtype=bool)
        used = self._links_of_running
        if self.is_tolerant(communication):
            return used[False]
        return used[False] | used[True]

    @cached_property
    def free_routers(self) -> BoolArray:
        """Routers with a usable node of any class, shape ``(num_routers,)``."""
        return np.asarray((self.state.usable_per_router > 0).any(axis=0))

    def allowed_routers(self, request: QueuedState) -> BoolArray:
        """Routers a prism of the request may contain, shape ``(num_routers,)``."""
        allowed = ~self.state.occupied
        return allowed if request.region is None else allowed & self.state.regions[request.region]

    def whole_routers(self, class_idx: int) -> BoolArray:
        """Routers all of whose nodes are usable by a class, shape ``(num_routers,)``."""
        whole = self.state.usable_per_router[class_idx] == self.torus.nodes_per_router
        return np.asarray(whole)

    def shape_part(self, extents: tuple[int, ...]) -> int:
        """Return the shape score of a prism without its idle-nodes term."""
        memo = self._memo.get(extents)
        if memo is None:
            memo = self._memo[extents] = self._shape_part(extents)
        assert isinstance(memo, int)
        return memo

    def _shape_part(self, extents: tuple[int, ...]) -> int:
        weights = self.state.snapshot.weights
        prism = Prism((0,) * len(extents), extents)
        per_node = 1000 * bisection_per_node(self.torus, extents) / min(self.torus.bandwidth)
        return (
            weights.bisection * math.floor(per_node)
            - weights.volume * prism.volume
            - weights.hops * prism.max_hops(self.torus)
            - weights.wrap * prism.num_wrapping_dims(self.torus)
        )

    def usable_inside(self, candidate: Candidate) -> int:
        """Count the usable nodes of the request's class inside the prism."""
        class_idx = self.requests[candidate.request_idx].class_idx
        inside = candidate.prism.routers(self.torus)
        return int(self.state.usable_per_router[class_idx][inside].sum())

    def shape_score(self, candidate: Candidate) -> int:
        """Return the level-2 value of a candidate (docs/proofs.md, "The objective")."""
        return self.values(candidate)[1]

    def values(self, candidate: Candidate) -> tuple[int, int, int]:
        """Return the values of a candidate on the three levels, all to be maximised."""
        nodes, shape, fragmentation = self.values_of([candidate])[0].tolist()
        return nodes, shape, fragmentation

    def values_of(self, candidates: Sequence[Candidate]) -> IntArray:
        """Return the values of candidates, shape ``(num_candidates, 3)``.

        Those are the value of the request, the shape score, and the links from the prism to free
        routers outside it, negated (docs/proofs.md, "The objective").
        """
        origins, extents = _boxes(candidates, self.torus)
        wanted = np.array([self.requests[c.request_idx].nodes for c in candidates], dtype=np.int64)
        idle = self._usable_inside(candidates, origins, extents) - wanted
        parts = np.array([self.shape_part(c.prism.extents) for c in candidates], dtype=np.int64)
        values = np.empty((len(candidates), 3), dtype=np.int64)
        values[:, 0] = [self.requests[c.request_idx].value for c in candidates]
        values[:, 1] = parts - self.state.snapshot.weights.idle * idle
        values[:, 2] = -self._boundary(origins, extents)
        return values

    @cached_property
    def _usable_counts(self) -> list[BoxCounts]:
        """Usable nodes inside prisms, by class."""
        return [BoxCounts(self.torus, usable) for usable in self.state.usable_per_router]

    @cached_property
    def _free_counts(self) -> BoxCounts:
        """Free routers inside prisms."""
        return BoxCounts(self.torus, self.free_routers.astype(np.int64))

    def _usable_inside(
        self, candidates: Sequence[Candidate], origins: IntArray, extents: IntArray
    ) -> IntArray:
        """Count the usable nodes of each request's class inside its prism."""
        class_idx = np.array([self.requests[c.request_idx].class_idx for c in candidates])
        found = np.zeros(len(candidates), dtype=np.int64)
        for k in np.unique(class_idx).tolist():
            here = class_idx == k
            found[here] = self._usable_counts[k].inside(origins[here], extents[here])
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
        counts = self._free_counts.inside(beside.reshape(-1, num_dims), faces.reshape(-1, num_dims))
        return np.asarray(counts.reshape(-1, num_faces).sum(axis=1), dtype=np.int64)

    def links_of(self, candidate: Candidate) -> IntArray:
        """Return the links a started candidate uses under the rule."""
        if not self.uses_links(self.requests[candidate.request_idx].communication):
            return np.zeros(0, dtype=np.int64)
        return prism_links(self.torus, candidate.prism)

    def choose_nodes(self, candidate: Candidate) -> IntArray:
        """Return the nodes a started job takes: the lowest usable ones its geometry admits."""
        request = self.requests[candidate.request_idx]
        routers = candidate.prism.routers(self.torus)
        geometry = self.matching_geometry(candidate)
        if geometry is not None and geometry.max_depth is not None:
            pencils = routers.reshape(-1, candidate.prism.extents[-1])
            whole = self.whole_routers(request.class_idx)[pencils]
            first = whole & (whole.cumsum(axis=1) <= geometry.extents[-1])
            routers = pencils[first]
        per = self.torus.nodes_per_router
        nodes = (np.sort(routers)[:, None] * per + np.arange(per)).ravel()
        fits = self.state.usable[nodes] & (self.state.node_class[nodes] == request.class_idx)
        chosen: IntArray = nodes[fits][: request.nodes]
        assert len(chosen) == request.nodes, "a candidate holds the nodes of its request"
        return chosen

    def matching_geometry(self, candidate: Candidate) -> Geometry | None:
        """Return the first alternative of the request's geometry that the prism fits."""
        request = self.requests[candidate.request_idx]
        extents = candidate.prism.extents
        for geometry in request.geometries:
            if extents[:-1] != geometry.extents[:-1] or extents[-1] not in geometry.depths:
                continue
            if geometry.max_depth is None:
                if self.usable_inside(candidate) >= request.nodes:
                    return geometry
                continue
            pencils = candidate.prism.routers(self.torus).reshape(-1, extents[-1])
            whole = self.whole_routers(request.class_idx)[pencils].sum(axis=1)
            if whole.min() >= geometry.extents[-1]:
                return geometry
        return None


def _boxes(candidates: Sequence[Candidate], torus: Torus) -> tuple[IntArray, IntArray]:
    """Return the origins and extents of candidates, each of shape ``(num, num_dims)``."""
    shape = (len(candidates), torus.num_dims)
    origins = np.array([c.prism.origin for c in candidates], dtype=np.int64)
    extents = np.array([c.prism.extents for c in candidates], dtype=np.int64)
    return origins.reshape(shape), extents.reshape(shape)


def job_links(torus: Torus, job: RunningState) -> IntArray:
    """Return the links a running job uses: its prism's, or those of all its routes."""
    if job.prism is not None:
        return prism_links(torus, job.prism)
    return scattered_links(torus, job.routers)
