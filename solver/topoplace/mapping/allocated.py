"""What a job got, as its ranks see it: from machines, snapshots and results to a `Topology`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from topoplace.errors import InputError, unknown_name
from topoplace.machine.hierarchy import Hierarchy
from topoplace.machine.hostlist import expand_host_list
from topoplace.machine.topology import AnyMachine, Topology, num_nodes_of
from topoplace.machine.tree import SwitchTree
from topoplace.mapping.onto import MATRIX, Source, load_places, problem_on
from topoplace.mapping.problem import machine_of
from topoplace.mapping.rankfiles import read_mapping
from topoplace.result import RESULT_SCHEMA, Result
from topoplace.result.mapping import MappingResult
from topoplace.result.reading import parse_result
from topoplace.result.tree import AllocationResult
from topoplace.snapshot.files import file_meant, parse_object, read_bytes, read_document
from topoplace.snapshot.hierarchy_state import HierarchyState, hierarchy_of
from topoplace.snapshot.machines import AnyState, load_machine, prepare_any, resolve_machine
from topoplace.snapshot.schema import (
    SNAPSHOT_SCHEMA,
    CubesModel,
    GraphApplication,
    HierarchyModel,
    MatrixModel,
    Snapshot,
    TreeModel,
)
from topoplace.snapshot.tree_state import TreeState, tree_of
from topoplace.types import IntArray

AnyResult = Result[Any, Any, Any]
Allocated = Source | MatrixModel | HierarchyModel | AnyResult
Ranks = str | Path | Sequence[int] | Sequence[str] | IntArray
"""The node of every rank: numbers or names, or a file of theirs."""


def topology_of(
    on: Allocated,
    *,
    job: str | None = None,
    node_class: str | None = None,
    within: str | None = None,
    cores: int = 1,
    ranks: Ranks | None = None,
    rank_format: str = "csv",
    num_ranks: int | None = None,
) -> Topology:
    """Return the topology of nodes (`topoplace.front.topology` says what may be given)."""
    document = _document(on) if isinstance(on, str) else on
    if isinstance(document, MappingResult):
        return _of_mapping(document, job, ranks)
    if not isinstance(document, str):
        elsewhere = _off_torus(document, job)
        if elsewhere is not None:
            for field, value in (("node_class", node_class), ("within", within)):
                if value is not None:
                    raise InputError("a torus or mesh beside it", field=field, value=value)
            return _ranked(*elsewhere, cores, ranks, num_ranks)
    places = load_places(on, job=job, node_class=node_class, within=within)  # type: ignore[arg-type]
    machine = machine_of(places.machine)
    if isinstance(ranks, str | Path):
        num = len(places.nodes) * cores if num_ranks is None else num_ranks
        silent = GraphApplication(num_tasks=num, sources=[], targets=[], bytes=[])
        ranks = read_mapping(ranks, rank_format, problem_on(places, silent, cores))
    return _ranked(machine, places.nodes, cores, ranks, num_ranks)


def _document(spec: str) -> Allocated:
    """Return what a text stands for, or the text where `load_places` reads it itself."""
    if spec.startswith(MATRIX):
        return spec
    schema = None
    if file_meant(spec).is_file():
        try:
            schema = parse_object(read_bytes(spec), spec).get("schema")
        except InputError:
            schema = None  # a topology.conf
    if schema == RESULT_SCHEMA:
        return parse_result(read_bytes(spec), spec)
    if schema == SNAPSHOT_SCHEMA:
        return resolve_machine(read_document(spec, Snapshot, SNAPSHOT_SCHEMA))
    machine = load_machine(spec)
    if isinstance(machine, CubesModel):
        raise InputError("a machine of one network", field="source", value=spec, found="cubes")
    return machine


def _of_mapping(result: MappingResult, job: str | None, ranks: Ranks | None) -> Topology:
    """Return the topology whose ranks are the tasks of a mapping."""
    if job is not None or ranks is not None:
        field = "job" if job is not None else "ranks"
        raise InputError("nothing beside a mapping, which has its ranks", field=field)
    if result.solution is None:
        raise InputError("a mapping that has a solution", field="solution", found="none")
    nodes = np.asarray(result.solution.nodes, dtype=np.int64)
    return Topology(machine_of(result.instance.machine), nodes, result.instance.tasks_per_node)


def _off_torus(document: object, job: str | None) -> tuple[AnyMachine, IntArray] | None:
    """Return a tree or hierarchy and the nodes meant, in rank order; None of a torus or matrix."""
    if isinstance(document, AllocationResult):
        return _of_allocation(document, job)
    if isinstance(document, TreeModel | HierarchyModel):
        if job is not None:
            raise InputError("a snapshot or a result that has jobs", field="job", value=job)
        machine = tree_of(document) if isinstance(document, TreeModel) else hierarchy_of(document)
        return machine, np.arange(num_nodes_of(machine))
    if isinstance(document, Snapshot):
        resolved = resolve_machine(document)
        if isinstance(resolved.machine, TreeModel | HierarchyModel):
            return _of_state(prepare_any(resolved), job)
    return None


def _of_allocation(result: AllocationResult, job: str | None) -> tuple[SwitchTree, IntArray]:
    machine = resolve_machine(result.instance).machine
    assert isinstance(machine, TreeModel)
    tree = tree_of(machine)
    started = result.solution.allocations if result.solution else []
    nodes_of = {own.request: own.nodes for own in started}
    job = next(iter(nodes_of)) if job is None and len(nodes_of) == 1 else job
    if job not in nodes_of:
        raise unknown_name(str(job), nodes_of, field="job")
    return tree, _numbers(tree, nodes_of[job])


def _of_state(state: AnyState, job: str | None) -> tuple[AnyMachine, IntArray]:
    """Return the free nodes of a snapshot of a tree or hierarchy, or those of a running job."""
    assert isinstance(state, TreeState | HierarchyState)
    machine = state.tree if isinstance(state, TreeState) else state.machine
    if job is not None:
        nodes_of = {running.id: running.nodes for running in state.snapshot.running}
        if job not in nodes_of:
            raise unknown_name(job, nodes_of, field="job")
        return machine, _numbers(machine, expand_host_list(nodes_of[job] or ""))
    free = state.free if isinstance(state, TreeState) else state.free.any(axis=1)
    return machine, np.flatnonzero(free)


def _numbers(machine: AnyMachine, names: Iterable[str]) -> IntArray:
    """Return the numbers of nodes of a tree or hosts of a hierarchy."""
    assert isinstance(machine, SwitchTree | Hierarchy)
    known = machine.node_names if isinstance(machine, SwitchTree) else machine.host_names
    numbers = {name: number for number, name in enumerate(known)}
    listed = list(names)
    strange = [name for name in listed if name not in numbers]
    if strange:
        raise InputError("nodes of the machine", field="ranks", value=strange[0], known=numbers)
    return np.array([numbers[name] for name in listed], dtype=np.int64)


def _ranked(
    machine: AnyMachine,
    nodes: IntArray,
    cores: int,
    ranks: Ranks | None,
    num_ranks: int | None,
) -> Topology:
    """Return the topology of ranks on nodes, by default filling one after the other (SMP order)."""
    if isinstance(ranks, str | Path):
        raise InputError("ranks in a list, not in a file, on trees", field="ranks")
    if ranks is None:
        num = len(nodes) * cores if num_ranks is None else num_ranks
        if not 1 <= num <= len(nodes) * cores:
            expected = f"from 1 to {len(nodes) * cores} ranks, the places on {len(nodes)} nodes"
            raise InputError(expected, field="num_ranks", value=num)
        return Topology(machine, np.repeat(nodes, cores)[:num], cores)
    listed = list(ranks)
    if isinstance(machine, SwitchTree | Hierarchy) and all(isinstance(x, str) for x in listed):
        given = _numbers(machine, map(str, listed))
    else:
        given = np.asarray(listed)
    if given.dtype.kind not in "iu":
        raise InputError("numbers of nodes", field="ranks", found=f"an array of {given.dtype}")
    outside = given[~np.isin(given, nodes)]
    if len(outside):
        expected = f"some of the {len(nodes)} nodes of the job"
        raise InputError(expected, field="ranks", value=int(outside[0]))
    if num_ranks is not None and num_ranks != len(given):
        raise InputError(f"a node for each of {num_ranks} ranks", field="ranks", value=len(given))
    return Topology(machine, given, cores)
