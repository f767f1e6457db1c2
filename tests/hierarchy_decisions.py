"""Problems of hierarchies: of one request, or that a recorded decision answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from topoplace.formats.decisions import Decision
from topoplace.placement.hierarchy.problem import HierarchyProblem
from topoplace.snapshot.hierarchy_state import prepare_hierarchy
from topoplace.snapshot.schema import Snapshot

Hosts = dict[str, int]
"""Units by the name of the host."""


def problem_of(machine: Mapping[str, Any], request: Mapping[str, Any], **state: Any) -> Any:
    """Return the problem of one request on a machine."""
    given = {"schema": "topoplace.snapshot/1", "name": "decision", "machine": machine}
    snapshot = Snapshot.model_validate({**given, "queue": [request], **state})
    return HierarchyProblem(prepare_hierarchy(snapshot))


def named(problem: HierarchyProblem, hosts: Mapping[int, int]) -> Hosts:
    """Return units by the name of the host."""
    return {problem.machine.host_names[host]: units for host, units in hosts.items()}


def problem_of_decision(decision: Decision) -> HierarchyProblem:
    """Return the problem that a recorded decision answers."""
    return HierarchyProblem(prepare_hierarchy(decision.snapshot))
