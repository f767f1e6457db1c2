"""Why a request did not start (docs/proofs.md, "Explanations")."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from topoplace import clock
from topoplace.machine import Prism, parse_node_set, prism_links
from topoplace.placement.torus.footprints import footprints_of, quickest_footprints
from topoplace.placement.torus.heuristics.nearest import nearest_prisms
from topoplace.placement.torus.outcome import prism_model
from topoplace.placement.torus.problem import Candidate, PlacementProblem
from topoplace.result import Explanation
from topoplace.snapshot import Communication, QueuedState
from topoplace.types import BoolArray, IntArray

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
    torus, running = problem.torus, problem.state.running
    in_the_way = {
        "outbid": _Jobs(
            problem,
            [
                (r.id, r.communication, c.prism.routers(torus), problem.links_of(c))
                for c in sorted(started)
                for r in [problem.requests[c.request_idx]]
            ],
        ),
        "blocked": _Jobs(
            problem,
            [
                (job.id, job.communication, job.routers, links)
                for job, links in zip(running, problem.running_links, strict=True)
            ],
        ),
    }
    explanations = []
    for idx in left:
        request = problem.requests[idx]
        reason = "outbid" if idx in outbid else "blocked" if idx in blocked else "no-shape"
        if reason == "no-shape":
            text = (
                f"no prism of this machine{_where(request)} holds {_wanted(problem, request)}, "
                "even with nothing running"
            )
            explanations.append(Explanation(request=request.id, reason="no-shape", text=text))
            continue
        prism, nodes = (outbid if reason == "outbid" else blocked)[idx]
        jobs = in_the_way[reason].on(prism, request.communication)
        say = _outbid if reason == "outbid" else _blocked
        explanations.append(
            Explanation(
                request=request.id,
                reason=reason,
                text=say(problem, request, prism, nodes, jobs),
                prism=prism_model(prism),
                jobs=jobs,
                nodes_to_free=nodes,
            )
        )
    return explanations


Nearest = dict[int, tuple[Prism, int]]
"""By request: its prism nearest to free, and the nodes others hold inside."""


def _nearest_beside_running(
    problem: PlacementProblem, started: Sequence[Candidate], left: Sequence[int], deadline: float
) -> Nearest:
    per = problem.torus.nodes_per_router
    held = np.zeros(problem.torus.num_routers, dtype=np.int64)
    for candidate in started:
        np.add.at(held, problem.choose_nodes(candidate) // per, 1)

    def closed(request: QueuedState) -> tuple[BoolArray, BoolArray]:
        return ~problem.allowed_routers(request), problem.closed_links(request.communication)

    return _nearest(problem, left, closed, problem.state.usable_per_router, held, deadline)


def _nearest_without_running(
    problem: PlacementProblem, left: Sequence[int], deadline: float
) -> Nearest:
    state, torus = problem.state, problem.torus
    up = np.ones(torus.num_nodes, dtype=bool)
    up[parse_node_set(state.snapshot.down, torus.num_nodes)] = False
    classes = np.arange(len(state.classes))[:, None]
    usable = (up & (state.node_class == classes)).reshape(len(classes), torus.num_routers, -1)
    held = np.zeros(torus.num_routers, dtype=np.int64)
    for job in state.running:
        np.add.at(held, job.nodes // torus.nodes_per_router, 1)

    def closed(request: QueuedState) -> tuple[BoolArray, BoolArray]:
        outside = np.zeros(torus.num_routers, dtype=bool)
        if request.region is not None:
            outside = ~state.regions[request.region]
        return outside, np.zeros(torus.num_links, dtype=bool)

    return _nearest(problem, left, closed, usable.sum(axis=2), held, deadline)


def _nearest(
    problem: PlacementProblem,
    left: Sequence[int],
    closed: Callable[[QueuedState], tuple[BoolArray, BoolArray]],
    usable: IntArray,
    held: IntArray,
    deadline: float,
) -> Nearest:
    """Search once for all requests of a class that the same routers and links are closed to."""
    groups: dict[object, list[int]] = {}
    for idx in left:
        request = problem.requests[idx]
        masks = tuple(mask.tobytes() for mask in closed(request))
        groups.setdefault((*masks, request.class_idx, bool(request.geometries)), []).append(idx)
    found: Nearest = {}
    for members in groups.values():
        clock.check(deadline)
        requests = [problem.requests[idx] for idx in members]
        first = requests[0]
        # a geometry's depths are those along the machine's last dimension
        view = (footprints_of if first.geometries else quickest_footprints)(problem.torus)
        reach = view.reach(*closed(first))
        prisms = nearest_prisms(view, requests, reach, usable[first.class_idx], held, deadline)
        found |= {idx: p for idx, p in zip(members, prisms, strict=True) if p is not None}
    return found


class _Jobs:
    """Jobs by what they hold: (name, communication, routers, links)."""

    def __init__(
        self,
        problem: PlacementProblem,
        jobs: Sequence[tuple[str, Communication, IntArray, IntArray]],
    ) -> None:
        self._problem, self._jobs = problem, jobs
        nothing = np.zeros(0, dtype=np.int64)
        self._routers = np.concatenate([nothing, *(job[2] for job in jobs)])
        self._links = np.concatenate([nothing, *(job[3] for job in jobs)])
        numbers = np.arange(len(jobs))
        self._router_owner = np.repeat(numbers, [len(job[2]) for job in jobs])
        self._link_owner = np.repeat(numbers, [len(job[3]) for job in jobs])

    def on(self, prism: Prism, communication: Communication) -> list[str]:
        """Return the names of those that a job on a prism could not run beside."""
        problem, torus = self._problem, self._problem.torus
        inside = np.zeros(torus.num_routers, dtype=bool)
        inside[prism.routers(torus)] = True
        meet = np.zeros(len(self._jobs), dtype=bool)
        meet[self._router_owner[inside[self._routers]]] = True
        if problem.uses_links(communication):
            used = np.zeros(torus.num_links, dtype=bool)
            used[prism_links(torus, prism)] = True
            tolerant = problem.is_tolerant(communication)
            for number in np.unique(self._link_owner[used[self._links]]).tolist():
                meet[number] |= not (tolerant and problem.is_tolerant(self._jobs[number][1]))
        return [job[0] for job, meets in zip(self._jobs, meet, strict=True) if meets]


def _blocked(
    problem: PlacementProblem, request: QueuedState, prism: Prism, nodes: int, jobs: Sequence[str]
) -> str:
    if nodes:
        what = f"{_counted(nodes, 'node')} of running {_names(jobs)} would have to be freed"
    else:
        what = f"routers or links of running {_names(jobs)} would have to be freed, but no nodes"
    return (
        f"on {prism.text}, the prism nearest to free{_where(request)} for "
        f"{_wanted(problem, request)}, {what}"
    )


def _outbid(
    problem: PlacementProblem, request: QueuedState, prism: Prism, nodes: int, jobs: Sequence[str]
) -> str:
    if not jobs:
        what = "is still free: the method left the request out"
    elif nodes:
        what = f"holds {_counted(nodes, 'node')} of started {_names(jobs)}"
    else:
        what = f"takes routers or links, but no nodes, of started {_names(jobs)}"
    return (
        f"it would fit beside the running jobs, but {prism.text}, the prism nearest to "
        f"free for {_wanted(problem, request)}, {what}"
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


def _names(names: Sequence[str]) -> str:
    if len(names) == 1:
        return f"job {names[0]}"
    if len(names) <= _NAMES_IN_TEXT:
        return f"jobs {', '.join(names[:-1])} and {names[-1]}"
    shown = ", ".join(names[: _NAMES_IN_TEXT - 1])
    return f"jobs {shown} and {len(names) - _NAMES_IN_TEXT + 1} others"
