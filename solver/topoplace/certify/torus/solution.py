"""Whether a solution is a placement, and what it is worth (docs/proofs.md)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from topoplace.certify.report import RefusedError
from topoplace.certify.torus.instance import Instance, Job, Request, crowded_prism, job_on
from topoplace.machine import (
    Prism,
    parse_node_set,
    prism_links,
    uses_whole_ring,
)
from topoplace.result import Placement, Solution
from topoplace.snapshot.geometry import Geometry
from topoplace.snapshot.schema import Communication
from topoplace.types import BoolArray, IntArray


@dataclass(frozen=True)
class Start(Job):
    """A started request."""

    request: Request


def read_starts(instance: Instance, solution: Solution) -> list[Start]:
    """Return the placements after checking each on its own.

    Raises
    ------
    RefusedError, InputError
        At the first placement that is not a candidate with the right nodes.
    """
    starts = []
    for placement in solution.placements:
        if placement.request not in instance.by_id:
            raise RefusedError(f"{placement.request} is no request of the queue")
        starts.append(_start(instance, placement))
    ids = [start.id for start in starts]
    if len(set(ids)) < len(ids):
        raise RefusedError("a request is started twice")
    return starts


def _start(instance: Instance, placement: Placement) -> Start:
    torus = instance.torus
    request = instance.by_id[placement.request]
    nodes = parse_node_set(placement.nodes, torus.num_nodes, placement.request)
    if len(nodes) != request.nodes:
        raise RefusedError(f"{request.id} has {len(nodes)} nodes and wants {request.nodes}")
    wrong = nodes[~instance.usable[nodes] | (instance.node_class[nodes] != request.class_idx)]
    if len(wrong):
        raise RefusedError(f"{request.id} may not use node {wrong[0]}")
    job = job_on(torus, request.id, nodes, placement.prism, request.sharing)
    if job.prism is not None:
        if reason := why_no_candidate(instance, request, job.prism):
            raise RefusedError(f"the prism of {request.id} {reason}")
        if not _takes(instance, request, job):
            raise RefusedError(f"{request.id} has nodes that its geometry leaves out")
    return Start(**vars(job), request=request)


def why_no_candidate(instance: Instance, request: Request, prism: Prism) -> str | None:
    """Return why a prism is no candidate of a request (rules 1 to 4 of "The problem")."""
    inside = prism.routers(instance.torus)
    outside = inside[~instance.allowed(request)[inside]]
    if len(outside):
        reason = "held by a running job" if instance.held[outside[0]] else "outside its region"
        return f"has router {outside[0]}, {reason}"
    if instance.closed(request.sharing)[prism_links(instance.torus, prism)].any():
        return "uses a link that a running job closes to it"
    if not fits(instance, request, prism):
        return "is none that its geometry allows"
    if instance.usable_counts[request.class_idx][inside].sum() < request.nodes:
        return "has too few usable nodes"
    return None


def fits(instance: Instance, request: Request, prism: Prism) -> bool:
    """Tell whether a prism fits an alternative of the geometry, if there is one (rule 3)."""
    alternatives = request.geometries
    return not alternatives or any(_fits(instance, request, g, prism) for g in alternatives)


def _fits(instance: Instance, request: Request, geometry: Geometry, prism: Prism) -> bool:
    if prism.extents[:-1] != geometry.extents[:-1] or prism.extents[-1] not in geometry.depths:
        return False
    if geometry.max_depth is None:
        inside = prism.routers(instance.torus)
        return int(instance.usable_counts[request.class_idx][inside].sum()) >= request.nodes
    whole = _whole(instance, request, prism)
    return bool((whole.sum(axis=1) >= geometry.extents[-1]).all())


def _whole(instance: Instance, request: Request, prism: Prism) -> BoolArray:
    """Return which routers of every pencil of a prism are whole, shape ``(pencils, depth)``."""
    pencils = prism.routers(instance.torus).reshape(-1, prism.extents[-1])
    return instance.whole(request.class_idx)[pencils]


def _takes(instance: Instance, request: Request, job: Job) -> bool:
    """Tell whether the nodes lie where the geometry, if there is one, wants them in the prism."""
    assert job.prism is not None
    taken = job.nodes // instance.torus.nodes_per_router
    for geometry in request.geometries:
        if _fits(instance, request, geometry, job.prism):
            whole = _whole(instance, request, job.prism)
            first = whole & (np.cumsum(whole, axis=1) <= geometry.extents[-1])
            if geometry.max_depth is None or np.isin(taken, job.routers[first.ravel()]).all():
                return True
    return not request.geometries


def check_exclusive(instance: Instance, starts: list[Start]) -> str:
    """Raise unless no node has two jobs and no prism holds a router of another start."""
    node_users = np.zeros(instance.torus.num_nodes, dtype=np.int64)
    for start in starts:
        node_users[start.nodes] += 1
    if (node_users > 1).any():
        raise RefusedError(f"node {int(node_users.argmax())} has two jobs")
    if crowded := crowded_prism(instance.torus, starts):
        raise RefusedError(f"another started request stands in the prism of {crowded}")
    return "no node and no router of a prism has two jobs"


def count_shared_links(instance: Instance, starts: list[Start]) -> int:
    """Count the links that a started job shares, against the rule, with any other job."""
    users = np.zeros(instance.torus.num_links, dtype=np.int64)
    strict = np.zeros(instance.torus.num_links, dtype=bool)
    started = np.zeros(instance.torus.num_links, dtype=bool)
    for job in (*instance.jobs, *starts):
        users[job.links] += 1
        strict[job.links] |= job.sharing is Communication.STRICT
    for start in starts:
        started[start.links] = True
    return int(((users > 1) & strict & started).sum())


def worth(instance: Instance, starts: list[Start]) -> list[int | None]:
    """Return the value of the solution per level, maximising; None where scattered has none."""
    if any(start.prism is None for start in starts):
        return [sum(start.request.value for start in starts), None, None]
    each = [values(instance, s.request, s.prism) for s in starts if s.prism is not None]
    return [sum(v[k] for v in each) for k in range(3)]


@dataclass(frozen=True)
class ShapeTables:
    """What every single extent adds to the shape score.

    A prism's bisection per node is the least over the dimensions of
    ``bandwidth * f / (extent * nodes_per_router)`` (the other extents cancel), so it, the hops
    and the wraps are put together from one table per dimension, indexed by extent.
    """

    instance: Instance

    @cached_property
    def bisection(self) -> list[IntArray]:
        """Thousandths of the slowest link per node, rounded down; the prism's is the least."""
        torus = self.instance.torus
        tables = []
        for n, wraps, bandwidth in zip(torus.shape, torus.wrap, torus.bandwidth, strict=True):
            table = np.zeros(n + 1, dtype=np.int64)
            for e in range(1, n + 1):
                up, down = 1, 1
                if wraps and n > 1:
                    if e == n:
                        up = 2
                    elif 2 * e > n:
                        up, down = 2 * (e - 1), n - 1
                below = down * e * torus.nodes_per_router * min(torus.bandwidth)
                table[e] = 1000 * bandwidth * up // below
            tables.append(table)
        return tables

    @cached_property
    def hops(self) -> list[IntArray]:
        """Largest distance inside along the dimension; the prism's is the sum."""
        torus = self.instance.torus
        return [
            np.minimum(np.maximum(np.arange(n + 1) - 1, 0), n // 2 if wraps else n)
            for n, wraps in zip(torus.shape, torus.wrap, strict=True)
        ]

    @cached_property
    def wraps(self) -> list[IntArray]:
        """Whether traffic leaves the prism along the dimension; the prism's is the sum."""
        torus = self.instance.torus
        return [
            np.array([e < n and uses_whole_ring(torus, d, e) for e in range(n + 1)], dtype=np.int64)
            for d, n in enumerate(torus.shape)
        ]

    def link_length(self, dim: int, extent: int) -> int:
        """Return how many links of each of its rows a prism uses along a dimension."""
        n = self.instance.torus.shape[dim]
        return n if uses_whole_ring(self.instance.torus, dim, extent) else extent - 1

    def scores(self, extents: IntArray) -> IntArray:
        """Return the shape scores, idle nodes left out, of rows of extents."""
        weights = self.instance.snapshot.weights
        dims = range(self.instance.torus.num_dims)
        bisection = np.min([self.bisection[d][extents[:, d]] for d in dims], axis=0)
        hops = np.sum([self.hops[d][extents[:, d]] for d in dims], axis=0)
        wraps = np.sum([self.wraps[d][extents[:, d]] for d in dims], axis=0)
        return np.asarray(
            weights.bisection * bisection
            - weights.volume * extents.prod(axis=1)
            - weights.hops * hops
            - weights.wrap * wraps
        )

    @cached_property
    def largest(self) -> int:
        """An upper bound on the absolute shape score of any candidate."""
        weights, torus = self.instance.snapshot.weights, self.instance.torus
        return (
            weights.bisection * max(int(table.max()) for table in self.bisection)
            + weights.volume * torus.num_routers
            + weights.hops * sum(torus.shape)
            + weights.idle * torus.num_nodes
            + weights.wrap * torus.num_dims
        )


def values(instance: Instance, request: Request, prism: Prism) -> tuple[int, int, int]:
    """Return the values of a candidate on the three levels, all to be maximised."""
    inside = prism.routers(instance.torus)
    idle = int(instance.usable_counts[request.class_idx][inside].sum()) - request.nodes
    extents = np.array([prism.extents], dtype=np.int64)
    part = int(ShapeTables(instance).scores(extents)[0])
    shape = part - instance.snapshot.weights.idle * idle
    return request.value, shape, -boundary(instance, inside)


def boundary(instance: Instance, inside: IntArray) -> int:
    """Count the links that lead from a router set to free routers outside it."""
    torus = instance.torus
    within = np.zeros(torus.num_routers, dtype=bool)
    within[inside] = True
    open_to = (instance.free & ~within).reshape(torus.shape)
    grid = within.reshape(torus.shape)
    total = 0
    for d, n in enumerate(torus.shape):
        for step in (1, -1):
            neighbour = np.roll(open_to, -step, axis=d)
            if not torus.wrap[d]:  # the routers at the end of a line have no neighbour there
                edge: list[slice | int] = [slice(None)] * torus.num_dims
                edge[d] = n - 1 if step == 1 else 0
                neighbour[tuple(edge)] = False
            total += int((grid & neighbour).sum())
    return total
