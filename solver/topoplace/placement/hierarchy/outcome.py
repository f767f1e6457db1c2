"""The value of a placement on a hierarchy, and its form in a result document."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

from topoplace.machine.hostlist import format_host_list
from topoplace.placement.hierarchy.problem import HierarchyProblem, Placed, Started
from topoplace.result.certificate import PlacedPart, Share
from topoplace.result.placement import (
    HierarchyLevel,
    HierarchyPlacement,
    HierarchyResult,
    HierarchySolution,
)
from topoplace.snapshot.hierarchy_state import HierarchyRequest
from topoplace.solving.solve import Frame


def worth(problem: HierarchyProblem, started: Started) -> list[int]:
    """Return the figures of the levels, as they are reported."""
    found = [0] * len(problem.levels)
    for idx, placed in started.items():
        values = problem.values_of(problem.requests[idx], placed)
        found = [a + b for a, b in zip(found, values, strict=True)]
    if problem.free_level is not None:
        found[problem.free_level] = problem.num_free(started)
    return found


def _solution(problem: HierarchyProblem, started: Started) -> HierarchySolution:
    placements = [
        HierarchyPlacement(
            request=problem.requests[idx].id,
            nodes=format_host_list(
                problem.machine.host_names[host] for host in sorted({*chain(*placed)})
            ),
            parts=parts_of(problem.requests[idx], placed, problem.machine.host_names),
        )
        for idx, placed in sorted(started.items())
    ]
    return HierarchySolution(placements=placements)


def parts_of(request: HierarchyRequest, placed: Placed, names: tuple[str, ...]) -> list[PlacedPart]:
    """Return where the parts of a request are, as in documents."""
    return [
        PlacedPart(part=part.name, shares=shares_of(hosts, names))
        for part, hosts in zip(request.parts, placed, strict=True)
    ]


def shares_of(hosts: Mapping[int, int], names: tuple[str, ...]) -> list[Share]:
    """Return units on hosts as in documents, with hosts grouped by their number of units."""
    of_units: dict[int, list[str]] = {}
    for host, units in sorted(hosts.items()):
        of_units.setdefault(units, []).append(names[host])
    return [
        Share(hosts=format_host_list(own), units=units) for units, own in sorted(of_units.items())
    ]


FRAME = Frame(
    worth,
    HierarchyResult,
    HierarchyLevel,
    _solution,
    decisive=lambda problem: max(1, len(problem.machine.counted) - 1),
)
