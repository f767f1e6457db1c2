"""Why a request did not start (docs/proofs/placement.md, "Explanations")."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from topoplace import clock
from topoplace.errors import number_of
from topoplace.kernels import num_cores
from topoplace.machine import Prism, parse_node_set, prism_links
from topoplace.placement.torus import _kernels
from topoplace.placement.torus.anchored import candidates_of, prisms_of, whole_prisms
from topoplace.placement.torus.footprints import (
    Footprints,
    Reach,
    footprints_of,
    quickest_footprints,
)
from topoplace.placement.torus.heuristics.prism_search import entries_of
from topoplace.placement.torus.outcome import prism_model
from topoplace.placement.torus.problem import Candidate, PlacementProblem
from topoplace.result import Explanation
from topoplace.snapshot.schema import Communication
from topoplace.snapshot.state import QueuedState
from topoplace.types import BoolArray, IntArray

_NAMES_IN_TEXT = 4
_NOTHING = np.iinfo(np.int64).max
_WORTH_THREADS = 64  # footprints


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
        `outbid` if the request has a candidate with only the running jobs in place; else `blocked`
        if it would have one without them; else `no-shape`. Requests in several segments have none;
        if the time is over, no request has one.
    """
    there = {candidate.request_idx for candidate in started}
    one_prism = (idx for idx, r in enumerate(problem.requests) if r.num_prisms == 1)
    left = [idx for idx in one_prism if idx not in there]
    if not left:
        return []
    try:
        outbid = _nearest_beside_running(problem, started, left, deadline)
        others = [idx for idx in left if idx not in outbid]
        blocked = _nearest_without_running(problem, others, deadline)
    except clock.OutOfTimeError:
        return []
    torus, running = problem.torus, problem.state.running
    requests = {c: problem.requests[c.request_idx] for c in sorted(started)}
    placed = _Jobs(
        problem,
        [(r.id, r.communication) for r in requests.values()],
        [c.routers(torus) for c in requests],
        [problem.links_of(c) for c in requests],
    )
    others_jobs = _Jobs(
        problem,
        [(job.id, job.communication) for job in running],
        [job.routers for job in running],
        problem.running_links,
    )
    explanations = []
    for idx in left:
        request = problem.requests[idx]
        if idx not in outbid and idx not in blocked:
            kind = "anchored prism" if problem.is_anchored else "prism"
            holds = "holds exactly" if problem.is_anchored else "holds"
            text = (
                f"no {kind} of this machine{_where(request)} {holds} {_wanted(problem, request)}, "
                "even with nothing running"
            )
            explanations.append(Explanation(request=request.id, reason="no-shape", text=text))
            continue
        prism, nodes = outbid[idx] if idx in outbid else blocked[idx]
        jobs = (placed if idx in outbid else others_jobs).on(prism, request.communication)
        wanted = _wanted(problem, request)
        if idx in outbid:
            text = (
                f"it would fit alongside the running jobs, but {prism.text}, the prism nearest to "
                f"free for {wanted}, {_outbid(nodes, jobs)}"
            )
        else:
            text = (
                f"on {prism.text}, the prism nearest to free{_where(request)} for {wanted}, "
                f"{_blocked(nodes, jobs)}"
            )
        explanations.append(
            Explanation(
                request=request.id,
                reason="outbid" if idx in outbid else "blocked",
                text=text,
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
    if problem.is_anchored:
        return _nearest_anchored(problem, {q: candidates_of(problem, q) for q in left}, held)

    def closed(request: QueuedState) -> tuple[BoolArray, BoolArray]:
        return ~problem.allowed_routers(request), problem.closed_links(request.communication)

    usable = problem.state.usable_per_router
    return _nearest(problem, left, closed, usable, held, deadline, problem.reach)


def _nearest_without_running(
    problem: PlacementProblem, left: Sequence[int], deadline: float
) -> Nearest:
    state, torus = problem.state, problem.torus
    up = np.ones(torus.num_nodes, dtype=bool)
    up[parse_node_set(state.snapshot.down, torus.num_nodes)] = False
    of_kinds = np.stack([state.of_kind(kind) for kind in range(len(state.kinds))])
    usable = (up & of_kinds).reshape(len(of_kinds), torus.num_routers, -1)
    held = np.zeros(torus.num_routers, dtype=np.int64)
    for job in state.running:
        np.add.at(held, job.nodes // torus.nodes_per_router, 1)
    if problem.is_anchored:
        whole = usable.sum(axis=2) == torus.nodes_per_router
        admitted = {}
        for q in left:
            each = []
            for way in problem.requests[q].ways:
                inside = whole[way.class_idx]
                if way.region is not None:
                    inside = inside & state.regions[way.region]
                each.append(whole_prisms(problem, way.nodes, inside))
            admitted[q] = np.unique(np.concatenate(each))
        return _nearest_anchored(problem, admitted, held)

    def closed(request: QueuedState) -> tuple[BoolArray, BoolArray]:
        outside = np.zeros(torus.num_routers, dtype=bool)
        if request.region is not None:
            outside = ~state.regions[request.region]
        return outside, np.zeros(torus.num_links, dtype=bool)

    def reach(request: QueuedState, view: Footprints) -> Reach:
        return view.reach(*closed(request))

    problem.forget_reaches()  # these are larger
    return _nearest(problem, left, closed, usable.sum(axis=2), held, deadline, reach)


def _nearest_anchored(
    problem: PlacementProblem, admitted: Mapping[int, IntArray], held: IntArray
) -> Nearest:
    """Return by request the one of its anchored prisms with the fewest held nodes."""
    every = prisms_of(problem)
    nodes = every.inside @ held
    found: Nearest = {}
    for q, numbers in admitted.items():
        if len(numbers):
            best = int(numbers[int(np.argmin(nodes[numbers]))])
            found[q] = every.prisms[best], int(nodes[best])
    return found


def _nearest(
    problem: PlacementProblem,
    left: Sequence[int],
    closed: Callable[[QueuedState], tuple[BoolArray, BoolArray]],
    usable: IntArray,
    held: IntArray,
    deadline: float,
    reach: Callable[[QueuedState, Footprints], Reach],
) -> Nearest:
    """Search once for all requests of a class to which the same routers and links are closed."""
    groups: dict[object, list[tuple[int, QueuedState]]] = {}
    for idx in left:
        request = problem.requests[idx]
        masks = tuple(mask.tobytes() for mask in closed(request))
        for way in request.ways:
            key = *masks, way.class_idx, way.has_depths
            groups.setdefault(key, []).append((idx, way))
    found: Nearest = {}
    for members in groups.values():
        _, first = members[0]
        # depths that requests admit are those along the machine's last dimension
        view = (footprints_of if first.has_depths else quickest_footprints)(problem.torus)
        tables = reach(first, view), usable[first.class_idx], held
        prisms = _search(view, [way for _, way in members], *tables, deadline)
        for (idx, _), near in zip(members, prisms, strict=True):
            if near is not None:
                found[idx] = min(found.get(idx, near), near, key=lambda n: (n[1], n[0].volume))
    return found


def _search(
    view: Footprints,
    requests: Sequence[QueuedState],
    reach: Reach,
    usable: IntArray,
    held: IntArray,
    deadline: float,
) -> list[tuple[Prism, int] | None]:
    """Return per request the prism that holds the fewest nodes of others, and their number.

    Requests differ in nodes, geometries and routers near only; `usable` are the nodes per router
    that count for them, `held` those that other jobs hold. Ties go to the least volume, then to the
    smallest extents and origin in lexicographic order, the longest dimension last.
    """
    entries = entries_of(view, requests, usable == view.torus.nodes_per_router)
    every = np.arange(len(view.area))
    first = np.searchsorted(entries.table[:, 0], np.arange(len(every) + 1))
    need = np.array([request.nodes for request in requests], dtype=np.int64)
    sums, held_sums = view.sums(usable), view.sums(held)

    def search(part: IntArray) -> IntArray:
        """Return (fewest nodes of others, volume, code) of every request, of some footprints."""
        found = np.full((3, len(requests)), _NOTHING, dtype=np.int64)
        for some in view.chunks(len(view.bases), part):
            clock.check(deadline)
            _kernels.nearest(
                some, first, entries.table, entries.least, need, reach.row, reach.depths,
                reach.tops, reach.deepest, sums, held_sums,
                view.bases, view.box, view.signs, view.area, *found,
            )  # fmt: skip
        return found

    num_parts = min(8, num_cores()) if len(every) >= _WORTH_THREADS else 1
    with ThreadPoolExecutor(num_parts) as pool:
        parts_found = list(pool.map(search, [every[k::num_parts].copy() for k in range(num_parts)]))
    best = [min(rows) for rows in zip(*(found.T.tolist() for found in parts_found), strict=True)]
    return [None if b[0] == _NOTHING else (view.prism(b[2]), b[0]) for b in best]


class _Jobs:
    """Jobs by what they hold."""

    def __init__(
        self,
        problem: PlacementProblem,
        names: Sequence[tuple[str, Communication]],
        routers: Sequence[IntArray],
        links: Sequence[IntArray],
    ) -> None:
        self._problem, self._names = problem, names
        self._routers, self._links = _owned(routers), _owned(links)

    def on(self, prism: Prism, communication: Communication) -> list[str]:
        """Return the names of those with which a job on a prism could not run at the same time."""
        problem, torus = self._problem, self._problem.torus
        meet = set(_owners(*self._routers, prism.routers(torus), torus.num_routers))
        if problem.uses_links(communication):
            tolerant = problem.is_tolerant(communication)
            for number in _owners(*self._links, prism_links(torus, prism), torus.num_links):
                if not (tolerant and problem.is_tolerant(self._names[number][1])):
                    meet.add(number)
        return [self._names[number][0] for number in sorted(meet)]


def _owned(parts: Sequence[IntArray]) -> tuple[IntArray, IntArray]:
    """Return all that jobs hold, and by which job it is held."""
    held = np.concatenate([np.zeros(0, dtype=np.int64), *parts])
    return held, np.repeat(np.arange(len(parts)), [len(part) for part in parts])


def _owners(held: IntArray, owner: IntArray, wanted: IntArray, size: int) -> list[int]:
    """Return the jobs that hold some of what is wanted."""
    mask = np.zeros(size, dtype=bool)
    mask[wanted] = True
    return [int(q) for q in np.unique(owner[mask[held]])]


def _blocked(nodes: int, jobs: Sequence[str]) -> str:
    if nodes:
        return f"{number_of(nodes, 'node')} of running {_names(jobs)} would have to be freed"
    return f"routers or links of running {_names(jobs)} would have to be freed, but no nodes"


def _outbid(nodes: int, jobs: Sequence[str]) -> str:
    if not jobs:
        return "is still free: the method left the request out"
    if nodes:
        return f"holds {number_of(nodes, 'node')} of started {_names(jobs)}"
    return f"takes routers or links, but no nodes, of started {_names(jobs)}"


def _wanted(problem: PlacementProblem, request: QueuedState) -> str:
    name = problem.state.class_of(request)
    document = next(one for one in problem.state.snapshot.queue if one.id == request.id)
    shapes = "/".join(geometry.text for geometry in request.geometries)
    text = number_of(request.nodes, f"{name} node")
    if document.eligible is not None:
        text += f" of {document.eligible}"
    if document.one_of is not None:
        text += f", all of one of {', '.join(document.one_of)}"
    if document.near is not None:
        text += f" near {number_of(document.near.routers, 'router')} of {document.near.of}"
    return f"{text} as {shapes}" if shapes else text


def _where(request: QueuedState) -> str:
    return "" if request.region is None else f" in region {request.region}"


def _names(names: Sequence[str]) -> str:
    if len(names) == 1:
        return f"job {names[0]}"
    if len(names) <= _NAMES_IN_TEXT:
        return f"jobs {', '.join(names[:-1])} and {names[-1]}"
    shown = ", ".join(names[: _NAMES_IN_TEXT - 1])
    return f"jobs {shown} and {len(names) - _NAMES_IN_TEXT + 1} others"
