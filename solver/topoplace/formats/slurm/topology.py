"""Slurm's topologies: what file has one, and topology.yaml (25.05 and later), which has several."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BeforeValidator, ConfigDict, Field, RootModel

from topoplace.errors import UNSEEN, InputError, blamed_on
from topoplace.formats.beginnings import is_topology_yaml
from topoplace.formats.slurm.blocks import (
    NODE,
    Block,
    blocks_of_machine,
    machine_of_blocks,
)
from topoplace.formats.slurm.topology_conf import topology_of_text
from topoplace.formats.slurm.torus import (
    Region,
    Xyz,
    named_torus,
    regions_of,
    ring_of,
    torus_of_regions,
)
from topoplace.formats.text import name_of, text_of
from topoplace.formats.yaml_text import YamlModel, only_document
from topoplace.kinds import kind_of_machine
from topoplace.machine.hostlist import count_hosts, expand_host_list, format_host_list
from topoplace.snapshot.hierarchy_state import hierarchy_of
from topoplace.snapshot.schema import (
    AnchoredModel,
    HierarchyModel,
    HostsModel,
    MachineModel,
    SwitchModel,
    TorusModel,
    TreeModel,
)

_SOURCE = "a Slurm topology.yaml"

SlurmMachine = TreeModel | HierarchyModel | TorusModel
"""What Slurm describes: a tree of switches, blocks or a flat set of nodes, or a torus or ring."""

# ---- The document --------------------------------------------------------------------------------


def _as_text(value: object) -> object:
    """Take a plain number for the text it is: names may be numbers."""
    return str(value) if type(value) is int else value


_Label = Annotated[
    str,
    BeforeValidator(_as_text),
    Field(min_length=1, max_length=128, pattern=rf"^[^\s,;/{UNSEEN}]+$"),
]
_Nodes = Annotated[str, BeforeValidator(_as_text), Field(max_length=4_000_000)]
_Size = Annotated[int, Field(ge=1, le=1 << 21)]


class _Block(YamlModel):
    block: _Label
    nodes: _Nodes = ""


class _Blocks(YamlModel):
    block_sizes: Annotated[list[_Size], Field(max_length=16)] = Field(default_factory=list)
    blocks: Annotated[list[_Block], Field(min_length=1)]


class _Switch(YamlModel):
    switch: _Label
    children: _Nodes | None = None
    nodes: _Nodes | None = None


class _Tree(YamlModel):
    switches: Annotated[list[_Switch], Field(min_length=1)]


class _Ring(YamlModel):
    ring: _Label
    nodes: _Nodes


class _Rings(YamlModel):
    rings: Annotated[list[_Ring], Field(min_length=1)]


_Along = Annotated[int, Field(ge=0, le=1 << 16)]


class _Offset(YamlModel):
    x: _Along = 0
    y: _Along = 0
    z: _Along = 0

    @property
    def xyz(self) -> Xyz:
        return self.x, self.y, self.z


class _Dims(YamlModel):
    x: Annotated[int, Field(ge=1, le=1 << 16)]
    y: Annotated[int, Field(ge=1, le=1 << 16)]
    z: Annotated[int, Field(ge=1, le=1 << 16)]

    @property
    def xyz(self) -> Xyz:
        return self.x, self.y, self.z


class _Region(YamlModel):
    anchor: _Offset = Field(default_factory=_Offset)
    dims: _Dims
    nodes: _Nodes


class _Placement(YamlModel):
    dims: _Dims
    anchor_seed: _Offset = Field(default_factory=_Offset)
    anchor_spacing: _Offset = Field(default_factory=_Offset)


class _Torus(YamlModel):
    name: _Label
    dims: _Dims
    nodes: _Nodes | None = None
    regions: list[_Region] | None = None
    placements: list[_Placement] = Field(default_factory=list)


class _Toruses(YamlModel):
    toruses: Annotated[list[_Torus], Field(min_length=1)]


class _Flat(YamlModel):
    alpha_step_rank: bool = False


class _Topology(YamlModel):
    topology: _Label
    cluster_default: bool = False
    block: _Blocks | None = None
    tree: _Tree | None = None
    ring: _Rings | None = None
    torus3d: _Toruses | None = None
    flat: _Flat | bool | None = None


class _Document(RootModel[Annotated[list[_Topology], Field(min_length=1)]]):
    model_config = ConfigDict(defer_build=True)


_KINDS = ("block", "tree", "ring", "torus3d", "flat")

# ---- Reading -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Choice:
    """The topology that is meant, and of its rings or toruses the one."""

    idx: int
    topology: _Topology
    unit: str | None


@dataclass(frozen=True)
class SlurmTopology:
    """A topology of a cluster.

    Attributes
    ----------
    names
        As partitions call it, or several that are one machine; empty if the file does not say.
    nodes
        By name the nodes of each of several; a single one has those of the machine.
    flat
        Those of several that have no switches.
    default
        The name of the one that the jobs of partitions have which name none; None if that is not
        known, or it is the only one.
    """

    machine: SlurmMachine
    names: tuple[str, ...] = ()
    nodes: Mapping[str, frozenset[str]] = field(default_factory=dict)
    flat: frozenset[str] = frozenset()
    default: str | None = None


def read_slurm_topology(
    path: str | Path, topology: str | None = None, nodes: Sequence[str] | None = None
) -> SlurmMachine:
    """Return the machine of a topology (`read_topology`)."""
    return read_topology(path, topology, nodes).machine


def read_topology(
    path: str | Path,
    topology: str | None = None,
    nodes: Sequence[str] | None = None,
    partitions: Mapping[str, frozenset[str]] | None = None,
) -> SlurmTopology:
    """Read a topology: of switches a tree, of blocks a hierarchy, or what a topology.yaml has.

    The machine is named as the file, or as the topology in a topology.yaml.

    Parameters
    ----------
    path
        A topology.conf or topology.yaml, or what ``scontrol show topology`` printed.
    topology
        Which one of a topology.yaml; of one of several toruses or rings ``NAME/TORUS``. By default
        all trees and flat ones that have no node in common, as one machine of several fabrics, if
        the one with ``cluster_default`` is among them; else that one, or the only one.
    nodes
        Names of the cluster's nodes, where the topology is flat and does not tell them.
    partitions
        By name of a topology the nodes of the partitions that have it, those that name none by an
        empty name; only with these are several topologies one machine.

    Raises
    ------
    InputError
        With the file, the line and the switch, block or field at fault.
    """
    text = text_of(path, or_json=True)
    if is_topology_yaml(text):
        with only_document(path, _Document) as document:
            every = document.root
            first = next((one for one in every if one.cluster_default), every[0])
            known = first.cluster_default or len(every) == 1
            default = first.topology if known else None
            if topology is None and partitions is not None:
                _require_kinds(every)
                joined = _joined_trees(every, default, partitions, name_of(path))
                if joined is not None:
                    return joined
            chosen = _chosen(every, topology)
            own = (chosen.topology.topology,)
            return SlurmTopology(_machine(chosen, nodes), own, default=default)
    with blamed_on(path):
        if topology is not None:
            expected = "a topology.yaml, if one of its topologies is named"
            raise InputError(expected, field="--topology", value=topology)
        return SlurmTopology(topology_of_text(text_of(path), name_of(path)))


def _chosen(topologies: Sequence[_Topology], wanted: str | None) -> _Choice:
    """Return the topology that is meant, after checking that each has one name and one kind."""
    _require_kinds(topologies)
    names = [one.topology for one in topologies]
    if wanted is None:
        default = [idx for idx, one in enumerate(topologies) if one.cluster_default]
        if not default and len(topologies) > 1:
            expected = f"the name of one topology of {', '.join(names)}"
            raise InputError(expected, field="--topology", found="nothing")
        idx = default[0] if default else 0
        return _Choice(idx, topologies[idx], None)
    name, _, unit = wanted.partition("/")
    if name not in names:
        expected = f"one of {', '.join(names)}"
        raise InputError(expected, field="--topology", value=wanted, known=names)
    return _Choice(names.index(name), topologies[names.index(name)], unit or None)


def _require_kinds(topologies: Sequence[_Topology]) -> None:
    names = [one.topology for one in topologies]
    for idx, one in enumerate(topologies):
        if one.topology in names[:idx]:
            expected = "each topology once"
            raise InputError(expected, field=f"[{idx}].topology", value=one.topology)
        kinds = [kind for kind in _KINDS if getattr(one, kind) not in (None, False)]
        if len(kinds) != 1:
            expected = f"one of {', '.join(_KINDS)}"
            found = " and ".join(kinds) or "none"
            raise InputError(expected, field=f"[{idx}]", found=found)


def _joined_trees(
    topologies: Sequence[_Topology],
    default: str | None,
    partitions: Mapping[str, frozenset[str]],
    name: str,
) -> SlurmTopology | None:
    """Return all trees and flat topologies as one machine; None if there are not two of them.

    No two may have a node in common, and one that is the default has to be among them. The nodes of
    a flat one are those of its partitions. Nothing joins two topologies, so each root is a fabric.
    """
    switches: list[SwitchModel] = []
    nodes: dict[str, frozenset[str]] = {}
    flat: set[str] = set()
    for idx, one in enumerate(topologies):
        own: Sequence[SwitchModel] = []
        inside = partitions.get(one.topology, frozenset())
        inside |= partitions.get("", frozenset()) if one.topology == default else frozenset()
        if one.tree is not None:
            own = _of_switches(one.tree, one.topology, f"[{idx}].tree").switches
            inside = frozenset(n for s in own for n in expand_host_list(s.nodes or ""))
        elif one.flat is not None and inside and _PLAIN.fullmatch(one.topology):
            own = [SwitchModel(name=one.topology, nodes=format_host_list(sorted(inside)))]
            flat.add(one.topology)
        names = {switch.name for switch in switches}
        apart = all(inside.isdisjoint(others) for others in nodes.values())
        if own and apart and names.isdisjoint(switch.name for switch in own):
            switches += own
            nodes[one.topology] = inside
    if len(nodes) < 2 or default not in (None, *nodes):
        return None
    machine = TreeModel(kind="tree", name=name, switches=switches, source=_SOURCE)
    hierarchy_of(machine)
    return SlurmTopology(machine, (*nodes,), nodes, frozenset(flat & nodes.keys()), default)


_PLAIN = re.compile(r"[A-Za-z0-9_.-]+")


def _machine(choice: _Choice, nodes: Sequence[str] | None) -> SlurmMachine:
    one, field = choice.topology, f"[{choice.idx}]"
    if choice.unit is not None and one.ring is None and one.torus3d is None:
        expected = "a topology of rings or toruses before the slash"
        raise InputError(expected, field="--topology", value=f"{one.topology}/{choice.unit}")
    if one.block is not None:
        return _of_blocks(one.block, one.topology, f"{field}.block")
    if one.tree is not None:
        return _of_switches(one.tree, one.topology, f"{field}.tree")
    if one.ring is not None:
        rings = one.ring.rings
        idx, name = _unit(choice, [ring.ring for ring in rings], f"{field}.ring.rings")
        with blamed_on(inside=f"{field}.ring.rings[{idx}]"):
            return ring_of(name, rings[idx].nodes)
    if one.torus3d is not None:
        toruses = one.torus3d.toruses
        idx, name = _unit(choice, [torus.name for torus in toruses], f"{field}.torus3d.toruses")
        with blamed_on(inside=f"{field}.torus3d.toruses[{idx}]"):
            return _of_torus(toruses[idx], name)
    return flat_machine(nodes, one.topology, f"{field}.flat")


def _unit(choice: _Choice, names: Sequence[str], field: str) -> tuple[int, str]:
    """Return which ring or torus is meant, and the name of its machine."""
    for idx, name in enumerate(names):
        if name in names[:idx]:
            raise InputError("each name once", field=f"{field}[{idx}]", value=name)
    topology = choice.topology.topology
    if choice.unit is None and len(names) == 1:
        return 0, topology
    if choice.unit not in names:
        expected = f"one of {', '.join(f'{topology}/{name}' for name in names)}"
        found = topology if choice.unit is None else f"{topology}/{choice.unit}"
        raise InputError(expected, field="--topology", value=found)
    return names.index(choice.unit), f"{topology}-{choice.unit}"


def _of_blocks(blocks: _Blocks, name: str, field: str) -> HierarchyModel:
    own = [Block(block.block, _joined(block.nodes)) for block in blocks.blocks]
    places = {f"block {block.name}": f"{field}.blocks[{idx}]" for idx, block in enumerate(own)}
    places["block sizes"] = f"{field}.block_sizes"
    with _placed(places):
        return machine_of_blocks(own, blocks.block_sizes or None, name, _SOURCE)


def _of_switches(tree: _Tree, name: str, field: str) -> TreeModel:
    switches = []
    places: dict[str, str] = {}
    for idx, switch in enumerate(tree.switches):
        own = f"{field}.switches[{idx}]"
        if (switch.nodes is None) == (switch.children is None):
            found = "neither" if switch.nodes is None else "both"
            raise InputError("either nodes or children", field=own, found=found)
        places[f"switch {switch.switch}"] = own
        with _placed({}, own):
            nodes, children = (
                None if text is None else _joined(text) for text in (switch.nodes, switch.children)
            )
        switches.append(SwitchModel(name=switch.switch, nodes=nodes, switches=children))
    machine = TreeModel(kind="tree", name=name, switches=switches, source=_SOURCE)
    with _placed(places, f"{field}.switches"):
        hierarchy_of(machine)
    return machine


def _joined(text: str) -> str:
    """Return a host list without blanks, which fits the model if it can be expanded."""
    count_hosts(text)
    return "".join(text.split())


@contextlib.contextmanager
def _placed(places: Mapping[str, str], otherwise: str | None = None) -> Iterator[None]:
    """Blame what is said of a block or switch on its place in the document."""
    try:
        yield
    except InputError as error:
        place = places.get(error.field or "", otherwise)
        raise (error if place is None else error.at(place)) from None


def _of_torus(torus: _Torus, name: str) -> TorusModel:
    if (torus.nodes is None) == (torus.regions is None):
        found = "neither" if torus.nodes is None else "both"
        raise InputError("either nodes or regions", field="nodes", found=found)
    placements = [_placement(placement) for placement in torus.placements]
    if torus.nodes is None:
        regions = [Region(one.anchor.xyz, one.dims.xyz, one.nodes) for one in torus.regions or ()]
        return torus_of_regions(name, torus.dims.xyz, regions, placements)
    whole = Region((0, 0, 0), torus.dims.xyz, torus.nodes)
    with _placed({"regions[0].nodes": "nodes"}):
        return torus_of_regions(name, torus.dims.xyz, [whole], placements)


def _placement(placement: _Placement) -> AnchoredModel:
    """Return a placement; a spacing of 0 is that of the shape."""
    dims, spacing = placement.dims.xyz, placement.anchor_spacing.xyz
    steps = [own or length for own, length in zip(spacing, dims, strict=True)]
    return AnchoredModel(dims=list(dims), seed=list(placement.anchor_seed.xyz), spacing=steps)


def flat_machine(nodes: Sequence[str] | None, name: str, field: str | None) -> HierarchyModel:
    """Return nodes without any structure, as a hierarchy of one level."""
    if not nodes:
        expected = "a topology with nodes, or the nodes in --nodes FILE"
        raise InputError(expected, field=field, found="flat")
    hosts = [HostsModel(hosts=format_host_list(nodes))]
    return HierarchyModel(kind="hierarchy", name=name, levels=[NODE], hosts=hosts, source=_SOURCE)


# ---- Writing -------------------------------------------------------------------------------------


FORM = "slurm-yaml"
"""What `topoplace convert` and `Kind.written` call a topology.yaml."""


def topology_yaml_of(model: MachineModel) -> str:
    """Return a machine as the text of a topology.yaml: of blocks, switches, or a torus.

    Raises
    ------
    InputError
        If Slurm has no such topology.
    """
    kind = kind_of_machine(model.kind)
    write = None if kind is None else kind.writer(FORM)
    if write is None:
        expected = "blocks, a switch tree or a torus"
        raise InputError(expected, field="machine.kind", value=model.kind)
    topology = {"topology": model.name, "cluster_default": True, **write(model)}
    text = yaml.safe_dump([topology], explicit_start=True, sort_keys=False, width=2**31)
    return str(text)


def switches_written(machine: TreeModel) -> dict[str, Any]:
    """Return a switch tree as a topology of a topology.yaml."""
    hierarchy_of(machine)
    return {"tree": {"switches": [_written_switch(switch) for switch in machine.switches]}}


def blocks_written(machine: HierarchyModel) -> dict[str, Any]:
    """Return blocks as a topology of a topology.yaml."""
    blocks = [{"block": one.name, "nodes": one.nodes} for one in blocks_of_machine(machine)]
    return {"block": {"block_sizes": list(machine.block_sizes or ()), "blocks": blocks}}


def torus_written(machine: TorusModel) -> dict[str, Any]:
    """Return a torus as a topology of a topology.yaml."""
    torus = named_torus(machine)
    if len(torus.shape) == 1:
        return {"ring": {"rings": [{"ring": torus.name, "nodes": torus.names}]}}
    return {"torus3d": {"toruses": [_written_torus(torus)]}}


def _written_switch(switch: SwitchModel) -> dict[str, str]:
    below = {"children": switch.switches} if switch.nodes is None else {"nodes": switch.nodes}
    return {"switch": switch.name, **{key: text or "" for key, text in below.items()}}


def _written_torus(torus: TorusModel) -> dict[str, Any]:
    x, y, z = torus.shape
    regions = regions_of(torus)
    written: dict[str, Any] = {"name": torus.name, "dims": _axes((x, y, z))}
    if [region.dims for region in regions] == [(x, y, z)]:
        written["nodes"] = regions[0].nodes
    else:
        written["regions"] = [
            {"anchor": _axes(one.anchor), "dims": _axes(one.dims), "nodes": one.nodes}
            for one in regions
        ]
    if torus.anchored:
        written["placements"] = [
            {
                "dims": _axes(one.dims),
                "anchor_seed": _axes(one.seed or (0, 0, 0)),
                "anchor_spacing": _axes(one.spacing or one.dims),
            }
            for one in torus.anchored
        ]
    return written


def _axes(values: Sequence[int]) -> dict[str, int]:
    return dict(zip("xyz", values, strict=True))
