"""Requests so much alike that proofs may take them for the same but for their values.

Counting each as needing only the fewest nodes among them can only raise what is placed, so that a
bound holds all the more. Their prisms are then the same, and any of them may take another's place:
a branch need not ask which (docs/proofs.md, "Alike requests").
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from topoplace.placement.problem import PlacementProblem
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
