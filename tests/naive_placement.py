"""Plain-Python readings of docs/proofs.md on tiny machines, sharing no code with the searches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product

from topoplace.machine import Prism, all_origins, parse_node_set, prism_links
from topoplace.placement.torus.problem import Candidate, PlacementProblem, job_links
from topoplace.result import Interference
from topoplace.snapshot import Communication, QueuedState


def all_prisms(problem: PlacementProblem) -> Iterator[Prism]:
    torus = problem.torus
    for extents in product(*(range(1, n + 1) for n in torus.shape)):
        for origin in all_origins(torus, extents):
            yield Prism(origin, extents)


def ever_usable(problem: PlacementProblem) -> list[bool]:
    """Nodes of a class that are up, whether or not running jobs hold them."""
    state = problem.state
    down = set(parse_node_set(state.snapshot.down, problem.torus.num_nodes).tolist())
    return [state.node_class[n] >= 0 and n not in down for n in range(problem.torus.num_nodes)]


def holds(
    problem: PlacementProblem, request: QueuedState, prism: Prism, usable: Sequence[bool]
) -> bool:
    """Tell whether a prism has the region, extents and nodes a request asks for."""
    per = problem.torus.nodes_per_router
    inside = [int(r) for r in prism.routers(problem.torus)]
    if request.region is not None and not all(
        problem.state.regions[request.region][r] for r in inside
    ):
        return False
    fit = [
        [
            bool(usable[r * per + k]) and problem.state.node_class[r * per + k] == request.class_idx
            for k in range(per)
        ]
        for r in inside
    ]
    enough = sum(map(sum, fit)) >= request.nodes
    if not request.geometries:
        return enough
    depth = prism.extents[-1]
    whole = [all(nodes) for nodes in fit]
    pencils = [sum(whole[i : i + depth]) for i in range(0, len(inside), depth)]
    for geometry in request.geometries:
        if geometry.extents[:-1] != prism.extents[:-1]:
            continue
        if geometry.max_depth is None:
            if enough and geometry.extents[-1] == depth:
                return True
        elif geometry.extents[-1] <= depth <= geometry.max_depth and all(
            count >= geometry.extents[-1] for count in pencils
        ):
            return True
    return False


Job = tuple[set[int], set[int], Communication]
"""Routers, links and communication of a job."""


def running_jobs(problem: PlacementProblem) -> list[Job]:
    return [
        (
            set(job.routers.tolist()),
            set(job_links(problem.torus, job).tolist()),
            job.communication,
        )
        for job in problem.state.running
    ]


def placed_job(problem: PlacementProblem, candidate: Candidate) -> Job:
    return (
        set(candidate.prism.routers(problem.torus).tolist()),
        set(prism_links(problem.torus, candidate.prism).tolist()),
        problem.requests[candidate.request_idx].communication,
    )


def in_conflict(mode: Interference, a: Job, b: Job) -> bool:
    """Tell whether two jobs may not run side by side."""
    if a[0] & b[0]:
        return True
    if mode is Interference.OFF or Communication.NONE in (a[2], b[2]):
        return False
    if mode is Interference.TOLERANT and a[2] == b[2] == Communication.TOLERANT:
        return False
    return bool(a[1] & b[1])


def free_prisms(
    problem: PlacementProblem, request_idx: int, others: Iterable[Job]
) -> Iterator[Candidate]:
    """Yield the candidates of a request that no other job is in conflict with."""
    others = list(others)
    request = problem.requests[request_idx]
    usable = problem.state.usable.tolist()
    for prism in all_prisms(problem):
        if holds(problem, request, prism, usable):
            candidate = Candidate(request_idx, prism)
            job = placed_job(problem, candidate)
            if not any(in_conflict(problem.interference, job, other) for other in others):
                yield candidate
