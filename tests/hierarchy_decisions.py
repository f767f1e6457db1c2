"""Recorded decisions of schedulers as snapshots of hierarchies, each with the answer it got."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from topoplace.machine.hostlist import expand_host_list
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


# ---- Slurm


def slurm_problem(decision: Mapping[str, Any]) -> HierarchyProblem:
    """Return the problem that a decision of Slurm answers."""
    lines = decision["topology"].splitlines()
    machine_of = _switches if decision["plugin"] == "topology/tree" else _blocks
    wanted = decision["request"]
    request: dict[str, Any] = {"id": "job", "nodes": wanted["nodes"]}
    if wanted["segment"]:
        request["segments"] = [{"size": wanted["segment"], "level": "block"}]
    running = [{"id": "busy", "nodes": ",".join(decision["busy"])}] if decision["busy"] else []
    return problem_of(machine_of(lines), request, running=running, down=",".join(decision["down"]))


def _values(line: str) -> dict[str, str]:
    return dict(word.split("=", 1) for word in line.split())


def _blocks(lines: list[str]) -> dict[str, Any]:
    """Return the machine of topology/block, with a level for every enforced size."""
    values = [_values(line) for line in lines]
    blocks = [own for own in values if "BlockName" in own]
    sizes = [own["BlockSizes"] for own in values if "BlockSizes" in own]
    given = [int(size) for size in sizes[0].split(",")] if sizes else None
    base = given[0] if given else min(len(expand_host_list(b["Nodes"], "Nodes")) for b in blocks)
    above = given[:0:-1] if given else [base << k for k in (4, 3, 2, 1)]
    hosts = [
        {
            "hosts": block["Nodes"],
            "domains": [*(f"g{k // (size // base)}" for size in above), block["BlockName"]],
        }
        for k, block in enumerate(blocks)
    ]
    levels = [*(f"block{size}" for size in above), "block", "node"]
    machine = {"kind": "hierarchy", "name": "recorded", "levels": levels, "hosts": hosts}
    return machine | ({"block_sizes": given} if given else {})


def _switches(lines: list[str]) -> dict[str, Any]:
    """Return the machine of topology/tree, with a level for every height of its switches."""
    values = [_values(line) for line in lines if line]
    parents = {
        child: own["SwitchName"]
        for own in values
        if "Switches" in own
        for child in expand_host_list(own["Switches"], "Switches")
    }
    hosts = []
    for own in values:
        if "Nodes" in own:
            path = [own["SwitchName"]]
            while path[0] in parents:
                path.insert(0, parents[path[0]])
            hosts.append({"hosts": own["Nodes"], "domains": path})
    levels = [*(f"switch{k}" for k in range(len(hosts[0]["domains"]) - 1, 0, -1)), "block", "node"]
    return {"kind": "hierarchy", "name": "recorded", "levels": levels, "hosts": hosts}
