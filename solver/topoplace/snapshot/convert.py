"""Turn other tools' files into snapshots and machines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from pydantic import BaseModel, TypeAdapter, ValidationError

from topoplace.errors import InputError, blamed_on, number_of
from topoplace.formats.cray import read_cray_neighbours
from topoplace.formats.fabrics import read_hwloc, read_ibnetdiscover, read_node_switch
from topoplace.formats.kubernetes.snapshots import read_kubernetes, read_kubernetes_machine
from topoplace.formats.slices import read_rfold, read_slice_scenario
from topoplace.formats.slurm.folder import SlurmFiles, read_slurm_cluster, slurm_files
from topoplace.formats.slurm.nodes import read_slurm_nodes
from topoplace.formats.slurm.topology import read_slurm_topology, topology_yaml_of
from topoplace.formats.slurm.topology_conf import topology_conf_of
from topoplace.formats.swf import read_swf, snapshot_of_swf
from topoplace.formats.text import name_of
from topoplace.formats.topograph import read_topograph
from topoplace.kinds import Kind, kind_of_machine, loaded, shipped
from topoplace.machine.hostlist import parse_node_set
from topoplace.options import ConvertOptions
from topoplace.snapshot.files import text_of_document, write_text
from topoplace.snapshot.held import left_out_text
from topoplace.snapshot.hierarchy_state import hierarchy_of
from topoplace.snapshot.machines import load_any, load_machine, load_torus
from topoplace.snapshot.normal import normal_snapshot
from topoplace.snapshot.schema import (
    CubesModel,
    HierarchyModel,
    MachineModel,
    Name,
    Snapshot,
    TorusModel,
    TreeModel,
)

File = str | Path
Made = tuple[BaseModel | str, tuple[str, ...]]
Conversion = Callable[["File", "ConvertOptions"], Made]


@dataclass(frozen=True, repr=False)
class Converted:
    """A document or a text, and what a person should know about how it was made."""

    document: BaseModel | str
    notes: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """What is written to a file."""
        return self.document if isinstance(self.document, str) else text_of_document(self.document)

    def save(self, path: File) -> Path:
        """Write it into a file, whose path is returned; `InputError` if that fails."""
        write_text(Path(path), self.text)
        return Path(path)

    def __repr__(self) -> str:
        called = getattr(self.document, "name", "")
        return "\n".join([f"{type(self.document).__name__} {called}".rstrip(), *self.notes])


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
    made = Converted(*conversion(given[0], options))
    if options.name is not None and isinstance(made.document, BaseModel):
        name = require_name(options.name, "--name")
        made = replace(made, document=made.document.model_copy(update={"name": name}))
    if not isinstance(made.document, Snapshot):
        return made
    held = left_out_text(made.document, "place --ignore")
    return made if held is None else replace(made, notes=(*made.notes, held))


def require_name(text: str, field: str) -> str:
    """Return a text that can be the name of a document."""
    try:
        return TypeAdapter(Name).validate_python(text)
    except ValidationError:
        expected = "a name of up to 128 characters without blanks, commas and semicolons"
        raise InputError(expected, field=field, value=text) from None


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


def _machine_for_jobs(options: ConvertOptions) -> str:
    if options.machine is None:
        raise InputError("the machine the jobs are for", field="--on", found="nothing")
    return options.machine


def _snapshot_of_log(source: File, options: ConvertOptions) -> Made:
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
    return snapshot, tuple(notes)


def _snapshot_of_cluster(source: File, options: ConvertOptions) -> Made:
    name = None
    if Path(source).is_dir():
        name = name_of(Path(source).resolve())
        files = slurm_files(source, options.topology_name)
        if files is None:
            expected = "a folder with topology.conf and squeue.json or nodes.txt"
            raise InputError(expected, file=str(source), found="none")
    else:
        files = SlurmFiles(source, options.topology_name)
    given = {
        name: getattr(options, name) for name in ("nodes", "jobs", "partitions", "reservations")
    }
    files = replace(files, **{name: path for name, path in given.items() if path is not None})
    return read_slurm_cluster(files, name)


def _part_of(options: ConvertOptions) -> str | None:
    """Return the Topology of a file of Kubernetes that is meant, or the labels in its place."""
    if options.levels is None:
        return options.topology_name
    if options.topology_name is not None:
        raise InputError("either --topology or --levels", field="--levels", found="both")
    return ",".join(options.levels)


def _machine_of_cray_table(source: File, _: ConvertOptions) -> Made:
    machine = read_cray_neighbours(source)
    num = machine.num_nodes
    note = f"{number_of(num, 'node')}; all {6 * num} neighbours are those of the torus"
    return machine, (note,)


def _machine_of_topology(source: File, options: ConvertOptions) -> MachineModel:
    names = None if options.nodes is None else [*read_slurm_nodes(options.nodes)]
    return read_slurm_topology(source, options.topology_name, names)


def _told(machine: MachineModel) -> Made:
    """Return a machine, and in a line what it has."""
    kind = kind_of_machine(machine.kind)
    about = None if kind is None else kind.get("about")
    return machine, () if about is None else (about(machine),)


def _of_kinds() -> Iterator[tuple[tuple[str, str], Conversion]]:
    """Yield the conversions that kinds name: of files of their own, and of switch trees."""
    trees: dict[str, Conversion] = {
        "slurm": _snapshot_of_cluster,
        "slurm-topology": lambda file, own: (_machine_of_topology(file, own), ()),
    }
    for kind in shipped().values():
        for form, ref in kind.read.items():
            yield (form, "machine"), partial(_read_by, ref)
        for form, read in trees.items() if kind.of_switches is not None else ():
            yield (form, str(kind.machine)), partial(_read_as, kind, read)


def _read_by(ref: str, source: File, _: ConvertOptions) -> Made:
    return _told(loaded(ref)(source))


def _read_as(kind: Kind, read: Conversion, source: File, options: ConvertOptions) -> Made:
    document, notes = read(source, options)
    return kind.get("of_switches")(document), notes


def about_tree(machine: TreeModel) -> str:
    """Return a line on a switch tree."""
    tree = hierarchy_of(machine)
    upper = number_of(len(machine.switches) - tree.num_leaves, "switch")
    nodes, leaves = number_of(tree.num_nodes, "node"), number_of(tree.num_leaves, "leaf")
    return f"{nodes} on {leaves} below {upper}"


def about_torus(machine: TorusModel) -> str:
    """Return a line on a torus or mesh."""
    num_service = len(parse_node_set(machine.service, machine.num_nodes, "service"))
    shape = "x".join(map(str, machine.shape))
    return f"{number_of(machine.num_nodes - num_service, 'node')} on {shape} routers"


def about_pod(machine: CubesModel) -> str:
    """Return a line on a pod of cubes."""
    cubes = number_of(machine.cubes, "cube")
    return f"{cubes} of {'x'.join(map(str, machine.side))} chips"


def about_hierarchy(machine: HierarchyModel) -> str:
    """Return a line on a hierarchy."""
    hierarchy = hierarchy_of(machine)
    pairs = zip(hierarchy.domain_names, hierarchy.levels, strict=True)
    return f"domains by level: {', '.join(f'{len(names)} {level}' for names, level in pairs)}"


def _text_of_machine(source: File, text_of: Callable[[MachineModel], str]) -> Made:
    machine = load_machine(str(source))
    with blamed_on(source):
        return text_of(machine), ()


def _yaml_of_machine(source: File, _: ConvertOptions) -> Made:
    with blamed_on(source):
        return _text_of_machine(source, topology_yaml_of)


_WITH_TOPOLOGIES = ("slurm", "slurm-topology", "kubernetes", "topograph")

CONVERSIONS: dict[tuple[str, str], Conversion] = {
    ("snapshot", "snapshot"): lambda file, _: (normal_snapshot(load_any(file).snapshot), ()),
    ("cray-neighbours", "machine"): _machine_of_cray_table,
    ("swf", "snapshot"): _snapshot_of_log,
    ("slurm", "snapshot"): _snapshot_of_cluster,
    ("slurm-topology", "machine"): lambda file, own: _told(_machine_of_topology(file, own)),
    ("machine", "slurm-topology"): lambda file, _: _text_of_machine(file, topology_conf_of),
    ("machine", "slurm-yaml"): _yaml_of_machine,
    ("kubernetes", "snapshot"): lambda file, own: read_kubernetes(file, _part_of(own)),
    ("kubernetes", "machine"): lambda file, own: _told(
        read_kubernetes_machine(file, _part_of(own))
    ),
    ("topograph", "machine"): lambda file, own: _told(read_topograph(file, own.topology_name)),
    ("ibnetdiscover", "machine"): lambda file, own: read_ibnetdiscover(file, own.without or ()),
    ("hwloc", "machine"): lambda file, _: _told(read_hwloc(file)),
    ("node-switch", "machine"): lambda file, _: _told(read_node_switch(file)),
    ("slice-packer", "snapshot"): lambda file, _: read_slice_scenario(file),
    ("rfold", "snapshot"): lambda file, own: read_rfold(
        file, load_torus(_machine_for_jobs(own)), own.limit
    ),
    **dict(_of_kinds()),
}
"""What makes a document, or a text, and notes of a file, by the formats of both."""
