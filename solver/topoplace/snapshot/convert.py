"""Turn other tools' files into snapshots and machines."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import BaseModel

from topoplace.errors import InputError, number_of
from topoplace.formats import read_cray_neighbours, read_swf, snapshot_of_swf
from topoplace.formats.kubernetes.snapshots import read_kubernetes, read_kubernetes_machine
from topoplace.formats.slices import read_rfold, read_slice_scenario
from topoplace.formats.slurm.blocks import block_conf_of
from topoplace.formats.slurm.cluster import SlurmCluster, snapshot_of_slurm
from topoplace.formats.slurm.jobs import SlurmJobs, read_slurm_jobs
from topoplace.formats.slurm.nodes import (
    read_slurm_nodes,
    read_slurm_partitions,
    read_slurm_reservations,
)
from topoplace.formats.slurm.topology import read_slurm_topology
from topoplace.formats.slurm.topology_conf import topology_conf_of
from topoplace.formats.slurm.topology_yaml import topology_yaml_of
from topoplace.formats.slurm.torus import NamedTorus
from topoplace.formats.text import blamed_on, name_of
from topoplace.formats.topograph import read_topograph
from topoplace.machine.hostlist import parse_node_set
from topoplace.options import ConvertOptions
from topoplace.snapshot.files import text_of_document
from topoplace.snapshot.held import left_out_text
from topoplace.snapshot.hierarchy_state import hierarchy_of
from topoplace.snapshot.machines import load_any, load_machine, load_torus
from topoplace.snapshot.normal import normal_snapshot
from topoplace.snapshot.schema import (
    CubesModel,
    HierarchyModel,
    MachineModel,
    Snapshot,
    TorusModel,
    TreeModel,
)
from topoplace.snapshot.tree_state import tree_of

File = str | Path
Conversion = Callable[["File", "ConvertOptions"], "Converted"]


@dataclass(frozen=True)
class Converted:
    """A document or a text, and what a person should know about how it was made."""

    document: BaseModel | str
    notes: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """What is written to a file."""
        return self.document if isinstance(self.document, str) else text_of_document(self.document)


def converted(
    source: File | None,
    from_format: str,
    to_format: str | None = None,
    options: ConvertOptions | None = None,
) -> Converted:
    """Read a file of one format and turn it into another.

    Known pairs: ``snapshot`` to ``snapshot`` (checked, its machine written out, node sets in
    their shortest form), ``cray-neighbours`` to ``machine``, ``swf`` to ``snapshot`` (needs
    `ConvertOptions.machine`), ``slurm`` to ``snapshot`` (a topology.conf, and the files of
    `ConvertOptions`), ``slurm-topology`` to ``machine``, ``machine`` to ``slurm-topology``.

    Parameters
    ----------
    source
        The file; None to take `ConvertOptions.topology`.
    from_format, to_format
        The pair; `to_format` None for what `from_format` is turned into.
    options
        What else to read.

    Raises
    ------
    InputError
        For an unknown pair of formats or a bad file.
    """
    options = options or ConvertOptions()
    conversion = _conversion(from_format, to_format)
    if source is not None and options.topology is not None and from_format in _WITH_TOPOLOGIES:
        options = replace(options, topology=None, topology_name=str(options.topology))
    given = [path for path in (source, options.topology) if path is not None]
    if len(given) != 1:
        found = "both" if given else "neither"
        raise InputError("one file to read, FILE or --topology", field="FILE", found=found)
    made = conversion(given[0], options)
    if not isinstance(made.document, Snapshot):
        return made
    held = left_out_text(made.document, "place --ignore")
    return made if held is None else replace(made, notes=(*made.notes, held))


def _conversion(from_format: str, to_format: str | None) -> Conversion:
    for (one, other), conversion in CONVERSIONS.items():
        if one == from_format and to_format in {None, other}:
            return conversion
    sources = [source for source, _ in CONVERSIONS]
    raise InputError(
        f"a known conversion ({', '.join(f'{a} to {b}' for a, b in CONVERSIONS)})",
        field="--to" if from_format in sources else "--from",
        value=to_format if from_format in sources else from_format,
        known=[b for a, b in CONVERSIONS if a == from_format] or sources,
    )


def _normalised_snapshot(source: File, _: ConvertOptions) -> Converted:
    return Converted(normal_snapshot(load_any(source).snapshot))


def _machine_of_cray_table(source: File, _: ConvertOptions) -> Converted:
    table = read_cray_neighbours(source)
    num = len(table.router_of_nid)
    note = f"{number_of(num, 'node')}; all {6 * num} neighbours are those of the torus"
    return Converted(table.machine, (note,))


def _machine_for_jobs(options: ConvertOptions) -> str:
    if options.machine is None:
        raise InputError("the machine the jobs are for", field="--on", found="nothing")
    return options.machine


def _snapshot_of_log(source: File, options: ConvertOptions) -> Converted:
    spec = _machine_for_jobs(options)
    log = read_swf(source, procs_per_node=options.procs_per_node, node_class=options.node_class)
    machine = load_torus(spec)
    snapshot, too_large = snapshot_of_swf(log, machine, name_of(source), options.limit)
    left_out = {
        "larger than the machine": too_large,
        "without a size": log.num_without_size,
        "for a part of a job": log.num_partial,
    }
    notes = [f"{number_of(len(snapshot.queue), 'job')} queued"]
    notes += [f"left out, {why}: {count}" for why, count in left_out.items() if count]
    return Converted(snapshot, tuple(notes))


def _snapshot_of_cluster(source: File, options: ConvertOptions) -> Converted:
    nodes = None if options.nodes is None else read_slurm_nodes(options.nodes)
    names = None if nodes is None else [*nodes]
    machine = read_slurm_topology(source, topology=options.topology_name, nodes=names)
    cluster = SlurmCluster(
        nodes,
        SlurmJobs() if options.jobs is None else read_slurm_jobs(options.jobs),
        None if options.partitions is None else read_slurm_partitions(options.partitions),
        {} if options.reservations is None else read_slurm_reservations(options.reservations),
    )
    model = machine.machine if isinstance(machine, NamedTorus) else machine
    with blamed_on(str(options.jobs)):
        snapshot, notes = snapshot_of_slurm(machine, cluster, model.name)
    told = {
        "nodes": "nodes that are down",
        "partitions": "limits and states of partitions",
        "reservations": "reservations to come",
    }
    unseen = {name: what for name, what in told.items() if getattr(options, name) is None}
    if snapshot.queue and unseen:
        given = ", ".join(f"--{name}" for name in unseen)
        notes = (*notes, f"not seen, without {given}: {', '.join(unseen.values())}")
    return Converted(snapshot, notes)


def _machine_of_topology(source: File, options: ConvertOptions) -> Converted:
    names = None if options.nodes is None else [*read_slurm_nodes(options.nodes)]
    machine = read_slurm_topology(source, topology=options.topology_name, nodes=names)
    if not isinstance(machine, NamedTorus):
        return Converted(machine, (_told_of(machine),))
    return Converted(machine.machine, (_told_of(machine.machine),))


def _told_of(machine: MachineModel) -> str:
    """Return in a line what a machine has."""
    if isinstance(machine, TreeModel):
        tree = tree_of(machine)
        upper = len(tree.switches) - tree.num_leaves
        return (
            f"{number_of(tree.num_nodes, 'node')} on {number_of(tree.num_leaves, 'leaf')} "
            f"below {number_of(upper, 'switch')}"
        )
    if isinstance(machine, TorusModel):
        num_nodes = math.prod(machine.shape) * machine.nodes_per_router
        num_service = len(parse_node_set(machine.service, num_nodes, "service"))
        shape = "x".join(map(str, machine.shape))
        return f"{number_of(num_nodes - num_service, 'node')} on {shape} routers"
    if isinstance(machine, CubesModel):
        return f"{number_of(machine.cubes, 'cube')} of {'x'.join(map(str, machine.side))} chips"
    hierarchy = hierarchy_of(machine)
    domains = [
        f"{len(names)} {level}"
        for level, names in zip(hierarchy.levels, hierarchy.domain_names, strict=True)
    ]
    return f"domains by level: {', '.join(domains)}"


def _topology_of_machine(source: File, _: ConvertOptions) -> Converted:
    machine = load_machine(str(source))
    if isinstance(machine, HierarchyModel):
        with blamed_on(source):
            return Converted(block_conf_of(machine))
    if not isinstance(machine, TreeModel):
        expected = "a tree machine, or one of blocks"
        raise InputError(expected, file=str(source), field="kind", value=machine.kind)
    return Converted(topology_conf_of(machine))


def _yaml_of_machine(source: File, _: ConvertOptions) -> Converted:
    with blamed_on(source):
        return Converted(topology_yaml_of(load_machine(str(source))))


def _snapshot_of_kubernetes(source: File, options: ConvertOptions) -> Converted:
    return Converted(*read_kubernetes(source, options.topology_name))


def _machine_of_kubernetes(source: File, options: ConvertOptions) -> Converted:
    machine = read_kubernetes_machine(source, options.topology_name)
    return Converted(machine, (_told_of(machine),))


def _machine_of_topograph(source: File, options: ConvertOptions) -> Converted:
    machine = read_topograph(source, options.topology_name)
    return Converted(machine, (_told_of(machine),))


def _snapshot_of_slices(source: File, _: ConvertOptions) -> Converted:
    return Converted(*read_slice_scenario(source))


def _snapshot_of_trace(source: File, options: ConvertOptions) -> Converted:
    machine = load_torus(_machine_for_jobs(options))
    return Converted(*read_rfold(source, machine, options.limit))


_WITH_TOPOLOGIES = ("slurm", "slurm-topology", "kubernetes", "topograph")

CONVERSIONS: dict[tuple[str, str], Conversion] = {
    ("snapshot", "snapshot"): _normalised_snapshot,
    ("cray-neighbours", "machine"): _machine_of_cray_table,
    ("swf", "snapshot"): _snapshot_of_log,
    ("slurm", "snapshot"): _snapshot_of_cluster,
    ("slurm-topology", "machine"): _machine_of_topology,
    ("machine", "slurm-topology"): _topology_of_machine,
    ("machine", "slurm-yaml"): _yaml_of_machine,
    ("kubernetes", "snapshot"): _snapshot_of_kubernetes,
    ("kubernetes", "machine"): _machine_of_kubernetes,
    ("topograph", "machine"): _machine_of_topograph,
    ("slice-packer", "snapshot"): _snapshot_of_slices,
    ("rfold", "snapshot"): _snapshot_of_trace,
}
"""What makes a document of a file, by the formats of both."""
