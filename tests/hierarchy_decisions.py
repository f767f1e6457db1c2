"""Recorded decisions of schedulers as snapshots of hierarchies, each with the answer it got."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from topoplace.placement.hierarchy.problem import HierarchyProblem
from topoplace.snapshot.hierarchy_state import prepare_hierarchy
from topoplace.snapshot.schema import Snapshot

Hosts = dict[str, int]
"""Units by the name of the host."""


def recorded(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the lines of a file of decisions."""
    with path.open() as lines:
        for line in lines:
            yield json.loads(line)


def problem_of(machine: Mapping[str, Any], request: Mapping[str, Any], **state: Any) -> Any:
    """Return the problem of one request on a machine."""
    given = {"schema": "topoplace.snapshot/1", "name": "decision", "machine": machine}
    snapshot = Snapshot.model_validate({**given, "queue": [request], **state})
    return HierarchyProblem(prepare_hierarchy(snapshot))


def named(problem: HierarchyProblem, hosts: Mapping[int, int]) -> Hosts:
    """Return units by the name of the host."""
    return {problem.machine.host_names[host]: units for host, units in hosts.items()}


# ---- Kueue


def kueue_problem(decision: Mapping[str, Any]) -> HierarchyProblem:
    """Return the problem that a decision of Kueue answers: one request, with its podsets."""
    hosts, running = [], []
    for idx, node in enumerate(decision["nodes"]):
        path = list(node["path"])
        hosts.append(
            {"hosts": node["name"], "domains": path[:-1], "capacity": {"units": node["capacity"]}}
        )
        busy = node["capacity"] - node["free"]
        if busy:
            running.append({"id": f"busy{idx}", "nodes": node["name"], "takes": {"units": busy}})
    machine = {"kind": "hierarchy", "name": "recorded", "hosts": hosts}
    podsets = decision.get("requests") or [{"name": "main", **decision["request"]}]
    parts = [_part(podset) for podset in podsets]
    request = {"id": "job", "nodes": sum(part["nodes"] for part in parts), "parts": parts}
    return problem_of({**machine, "levels": decision["levels"]}, request, running=running)


def _part(podset: Mapping[str, Any]) -> dict[str, Any]:
    part: dict[str, Any] = {
        "id": podset["name"],
        "nodes": podset["count"],
        "takes": {"units": podset["pod_units"]},
        "segments": [
            {"size": layer["size"], "level": layer["level"]}
            for layer in podset.get("slice_layers", [])
        ],
    }
    if podset.get("slice_size"):
        part["segments"] = [{"size": podset["slice_size"], "level": podset["slice_level"]}]
    if podset["mode"] in ("required", "preferred"):
        part[podset["mode"]] = podset["level"]
    if podset.get("group"):
        part["group"] = podset["group"]
    return part


def kueue_answer(decision: Mapping[str, Any]) -> dict[str, Hosts] | None:
    """Return what hosts the podsets got, by the name of the podset; None if they were refused."""
    if "request" in decision:
        assignments = {"main": decision.get("assignment")}
    else:
        assignments = decision.get("assignments") or {}
        if len(assignments) < len(decision["requests"]):
            return None
    if None in assignments.values():
        return None
    return {
        name: {entry["path"][-1]: entry["count"] for entry in entries}
        for name, entries in assignments.items()
    }


def is_balanced(decision: Mapping[str, Any]) -> bool:
    """Whether the decision was taken with balanced placement switched on."""
    podsets = decision.get("requests") or [decision["request"]]
    return any(podset.get("balanced") for podset in podsets)


def kueue_mode(decision: Mapping[str, Any]) -> str:
    """Return what kind of request a decision is about."""
    podsets = decision.get("requests") or [decision["request"]]
    first = podsets[0]
    words = [first["mode"]]
    words += ["balanced"] if is_balanced(decision) else []
    words += ["slices"] if any("slice_size" in p or "slice_layers" in p for p in podsets) else []
    if len(podsets) > 1:
        words.append("group" if first.get("group") else f"{len(podsets)} podsets")
    return ", ".join(words)
