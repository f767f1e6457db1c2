"""Symmetry and dominance: requests that may take each other's place, so that branches ask once.

Alike requests differ in little but their values. Counting each as needing only the fewest nodes
among them can only raise what is placed, so that a bound holds all the more. Their prisms are then
the same, and any of them may take another's place: a branch need not ask which (docs/proofs.md,
"Alike requests").

A request that needs no more nodes than another, is worth no less and is like it in all else can
take its place. On the first level some best placement never starts the other without it
(docs/proofs.md, "A tree of leaves").
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from topoplace.placement.exact.branching import Branch, split_start
from topoplace.placement.exact.relaxation import Subproblem
from topoplace.placement.torus.problem import PlacementProblem
from topoplace.snapshot import QueuedState

_LEAST_SHARE = 0.97  # of the nodes of the largest: fewer would loosen the bound


@dataclass(frozen=True)
class _Resized(QueuedState):
    """A request that counts as needing another number of nodes, for the value it has."""

    worth: int = 0

    @property
    def value(self) -> int:
        """What starting the request adds to the first objective level."""
        return self.worth


def groups_of_alike(problem: PlacementProblem, among: Iterable[int]) -> list[tuple[int, ...]]:
    """Return groups of two requests or more that differ by few nodes and in nothing else."""
    groups: list[list[int]] = []
    open_groups: dict[object, list[int]] = {}
    for q in sorted(among, key=lambda q: (-problem.requests[q].nodes, q)):
        request = problem.requests[q]
        if request.geometries:
            continue
        kind = (request.class_idx, request.region, request.communication)
        group = open_groups.get(kind)
        if group is None or request.nodes < _LEAST_SHARE * problem.requests[group[0]].nodes:
            group = open_groups[kind] = []
            groups.append(group)
        group.append(q)
    return [tuple(group) for group in groups if len(group) > 1]


def with_fewest_nodes(
    problem: PlacementProblem, groups: Sequence[tuple[int, ...]]
) -> PlacementProblem:
    """Return the problem in which each request needs the fewest nodes of its group."""
    queue = list(problem.requests)
    for group in groups:
        fewest = min(queue[q].nodes for q in group)
        for q in group:
            queue[q] = resized(queue[q], fewest)
    return PlacementProblem(replace(problem.state, queue=tuple(queue)), problem.interference)


def resized(request: QueuedState, nodes: int) -> QueuedState:
    """Return a request as if it needed so many nodes, on prisms of any shape."""
    r = request
    return _Resized(
        r.id, nodes, r.class_idx, r.priority, (), r.region, r.communication, worth=r.value
    )


class Dominance:
    """The requests of a problem that are preferred to others, among those that can start."""

    def __init__(self, problem: PlacementProblem, startable: frozenset[int]) -> None:
        self._problem = problem
        self.better: dict[int, frozenset[int]] = {}
        """By request, those preferred to it."""
        self.worse: dict[int, frozenset[int]] = {}
        """By request, those it is preferred to."""
        alike: dict[object, list[int]] = {}
        for q in sorted(startable):
            request = problem.requests[q]
            if not request.geometries:
                kind = (request.class_idx, request.region, request.communication)
                alike.setdefault(kind, []).append(q)
        for members in alike.values():
            members.sort(key=lambda q: (-problem.requests[q].value, problem.requests[q].nodes, q))
            for k, q in enumerate(members):
                nodes = problem.requests[q].nodes
                fits = {b: problem.requests[b].nodes <= nodes for b in members[:k]}
                self.better[q] = frozenset(b for b, small in fits.items() if small)
        for q, above in self.better.items():
            for b in above:
                self.worse[b] = self.worse.get(b, frozenset()) | {q}

    def branch(self, sub: Subproblem, q: int) -> Branch:
        """Return the sides of a branch on a start with what follows, and what writes it."""
        decided = sub.forced | sub.excluded
        (out, into), write = split_start(self._problem, sub, q)
        also_out = self.worse.get(q, frozenset()) - decided
        also_in = self.better.get(q, frozenset()) - decided
        out = replace(out, excluded=out.excluded | also_out)
        into = replace(into, forced=into.forced | also_in)
        return (out, into), write
