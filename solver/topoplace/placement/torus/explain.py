"""Why a request did not start (docs/proofs.md, "Explanations")."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from topoplace import clock
from topoplace.machine import Prism, parse_node_set, prism_links
from topoplace.placement.torus.heuristics.footprints import (
    Footprints,
    footprints_of,
    quickest_footprints,
)
from topoplace.placement.torus.heuristics.nearest import nearest_prisms
from topoplace.placement.torus.heuristics.room import Reach, reach_of
from topoplace.placement.torus.outcome import prism_model
from topoplace.placement.torus.problem import Candidate, PlacementProblem, job_links
from topoplace.result import Explanation
from topoplace.snapshot import Communication, QueuedState
from topoplace.types import IntArray

Nearest = dict[int, tuple[Prism, int]]
"""By request: its prism nearest to free, and the nodes others hold inside."""

_NAMES_IN_TEXT = 4


def explain(
    problem: PlacementProblem, started: Sequence[Candidate], deadline: float = math.inf
) -> list[Explanation]:
    """Return an explanation for every request that is not started, in queue order.

    Parameters
    ----------
    started
        A placement: candidates that neither share a router nor break the interference rule.
    deadline
        When to do without explanations.

    Returns
    -------
    list of Explanation
        `outbid` if the request has a candidate, beside the running jobs alone; else `blocked` if
        it would have one without them; else `no-shape`. None at all if the time is over.
    """
    there = {candidate.request_idx for candidate in started}
    left = [idx for idx in range(len(problem.requests)) if idx not in there]
    if not left:
        return []
    try:
        outbid = _nearest_beside_running(problem, started, left, deadline)
        others = [idx for idx in left if idx not in outbid]
        blocked = _nearest_without_running(problem, others, deadline)
    except clock.OutOfTimeError:
        return []
    links = _LinksOfRunning(problem)
    explanations = []
    for idx in left:
        if idx in outbid:
            explanations.append(_outbid(problem, started, idx, *outbid[idx]))
        elif idx in blocked:
            explanations.append(_blocked(problem, links, idx, *blocked[idx]))
        else:
            request = problem.requests[idx]
            text = (
                f"no prism of this machine{_where(request)} holds {_wanted(problem, request)}, "
                "even with nothing running"
            )
            explanations.append(Explanation(request=request.id, reason="no-shape", text=text))
    return explanations


def _nearest_beside_running(
    problem: PlacementProblem, started: Sequence[Candidate], left: Sequence[int], deadline: float
) -> Nearest:
    per = problem.torus.nodes_per_router
    held = np.zeros(problem.torus.num_routers, dtype=np.int64)
    for candidate in started:
        np.add.at(held, problem.choose_nodes(candidate) // per, 1)

    def key(request: QueuedState) -> object:
        return (
            request.region,
            problem.uses_links(request.communication),
            problem.is_tolerant(request.communication),
        )

    def reach(footprints: Footprints, request: QueuedState) -> Reach:
        closed = problem.closed_links(request.communication)
        return reach_of(footprints, ~problem.allowed_routers(request), closed)

    return _nearest(
        problem,
        left,
        key=key,
        reach=reach,
        usable=problem.state.usable_per_router,
        held=held,
        deadline=deadline,
    )


def _nearest_without_running(
    problem: PlacementProblem, left: Sequence[int], deadline: float
) -> Nearest:
    state, torus = problem.state, problem.torus
    up = np.ones(torus.num_nodes, dtype=bool)
    up[parse_node_set(state.snapshot.down, torus.num_nodes)] = False
    usable = np.stack(
        [
            ((state.node_class == c) & up).reshape(torus.num_routers, -1).sum(axis=1)
            for c in range(len(state.classes))
        ]
    )
    held = np.zeros(torus.num_routers, dtype=np.int64)
    for job in state.running:
        np.add.at(held, job.nodes // torus.nodes_per_router, 1)
    no_links = np.zeros(torus.num_links, dtype=bool)

    def reach(footprints: Footprints, request: QueuedState) -> Reach:
        outside = np.zeros(torus.num_routers, dtype=bool)
        if request.region is not None:
            outside = ~state.regions[request.region]
        return reach_of(footprints, outside, no_links)

    return _nearest(
        problem,
        left,
        key=lambda request: request.region,
        reach=reach,
        usable=usable,
        held=held,
        deadline=deadline,
    )


def _nearest(
    problem: PlacementProblem,
    left: Iterable[int],
    *,
    key: Callable[[QueuedState], object],
    reach: Callable[[Footprints, QueuedState], Reach],
    usable: IntArray,
    held: IntArray,
    deadline: float,
) -> Nearest:
    """Search once for all requests of a class that share their reach."""
    groups: dict[object, list[int]] = {}
    for idx in left:
        request = problem.requests[idx]
        shaped = bool(request.geometries)
        groups.setdefault((key(request), request.class_idx, shaped), []).append(idx)
    found: Nearest = {}
    for members in groups.values():
        clock.check(deadline)
        requests = [problem.requests[idx] for idx in members]
        torus, first = problem.torus, requests[0]
        # a geometry's depths are those along the machine's last dimension
        footprints = footprints_of(torus) if first.geometries else quickest_footprints(torus)
        prisms = nearest_prisms(
            footprints, requests, reach(footprints, first), usable[first.class_idx], held, deadline
        )
        for idx, prism in zip(members, prisms, strict=True):
            if prism is not None:
                found[idx] = prism
    return found


class _LinksOfRunning:
    """Links of running jobs, computed when first asked for."""

    def __init__(self, problem: PlacementProblem) -> None:
        self._problem = problem
        self._links: dict[int, IntArray] = {}

    def __getitem__(self, job_idx: int) -> IntArray:
        if job_idx not in self._links:
            job = self._problem.state.running[job_idx]
            self._links[job_idx] = job_links(self._problem.torus, job)
        return self._links[job_idx]


def _may_not_share(problem: PlacementProblem, a: Communication, b: Communication) -> bool:
    """Tell whether two jobs may not use one link."""
    both_use = problem.uses_links(a) and problem.uses_links(b)
    return both_use and not (problem.is_tolerant(a) and problem.is_tolerant(b))


def _blocked(
    problem: PlacementProblem, links: _LinksOfRunning, idx: int, prism: Prism, nodes: int
) -> Explanation:
    request = problem.requests[idx]
    inside = np.zeros(problem.torus.num_routers, dtype=bool)
    inside[prism.routers(problem.torus)] = True
    used = np.zeros(problem.torus.num_links, dtype=bool)
    used[prism_links(problem.torus, prism)] = True
    crossed = bool((used & problem.closed_links(request.communication)).any())
    jobs = [
        job.id
        for k, job in enumerate(problem.state.running)
        if inside[job.routers].any()
        or (
            crossed
            and _may_not_share(problem, request.communication, job.communication)
            and used[links[k]].any()
        )
    ]
    if nodes:
        what = f"{_counted(nodes, 'node')} of running {_jobs(jobs)} would have to be freed"
    else:
        what = f"routers or links of running {_jobs(jobs)} would have to be freed, but no nodes"
    return Explanation(
        request=request.id,
        reason="blocked",
        text=f"on {prism.text}, the prism nearest to free{_where(request)} for "
        f"{_wanted(problem, request)}, {what}",
        prism=prism_model(prism),
        jobs=jobs,
        nodes_to_free=nodes,
    )


def _outbid(
    problem: PlacementProblem, started: Sequence[Candidate], idx: int, prism: Prism, nodes: int
) -> Explanation:
    request = problem.requests[idx]
    torus = problem.torus
    inside = np.zeros(torus.num_routers, dtype=bool)
    inside[prism.routers(torus)] = True
    used = np.zeros(torus.num_links, dtype=bool)
    used[prism_links(torus, prism)] = True
    jobs = []
    for candidate in sorted(started):
        other = problem.requests[candidate.request_idx]
        if inside[candidate.prism.routers(torus)].any() or (
            _may_not_share(problem, request.communication, other.communication)
            and used[prism_links(torus, candidate.prism)].any()
        ):
            jobs.append(other.id)
    if not jobs:
        what = "is still free: the method left the request out"
    elif nodes:
        what = f"holds {_counted(nodes, 'node')} of started {_jobs(jobs)}"
    else:
        what = f"takes routers or links, but no nodes, of started {_jobs(jobs)}"
    return Explanation(
        request=request.id,
        reason="outbid",
        text=f"it would fit beside the running jobs, but {prism.text}, the prism nearest to "
        f"free for {_wanted(problem, request)}, {what}",
        prism=prism_model(prism),
        jobs=jobs,
        nodes_to_free=nodes,
    )


def _wanted(problem: PlacementProblem, request: QueuedState) -> str:
    name = problem.state.classes[request.class_idx]
    shapes = "/".join(geometry.text for geometry in request.geometries)
    text = _counted(request.nodes, f"{name} node")
    return f"{text} as {shapes}" if shapes else text


def _where(request: QueuedState) -> str:
    return "" if request.region is None else f" in region {request.region}"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _jobs(names: Sequence[str]) -> str:
    if len(names) == 1:
        return f"job {names[0]}"
    if len(names) <= _NAMES_IN_TEXT:
        return f"jobs {', '.join(names[:-1])} and {names[-1]}"
    shown = ", ".join(names[: _NAMES_IN_TEXT - 1])
    return f"jobs {shown} and {len(names) - _NAMES_IN_TEXT + 1} others"
