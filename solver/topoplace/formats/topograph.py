"""Models of NVIDIA's topograph: switches, and blocks of nodes with accelerator domains, in YAML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import Field

from topoplace.errors import InputError
from topoplace.formats.declared import table
from topoplace.formats.slurm.blocks import Block, machine_of_blocks
from topoplace.formats.text import name_of
from topoplace.formats.yaml_text import YamlModel, only_document
from topoplace.machine.hostlist import NodeLists, format_host_list
from topoplace.snapshot.hierarchy_state import hierarchy_of
from topoplace.snapshot.schema import HierarchyModel, Name, SwitchModel, TreeModel

DOMAIN = "accelerator.topology.test/domain"
"""The annotation that names the accelerator domain of nodes."""

MODEL = table(
    "Models of topograph",
    f"""
    read switches: by name, the switches of a tree
    read switches.NAME.switches: those below it
    read switches.NAME.annotations.{DOMAIN}: the domain of the nodes \
        below it
    neutral switches.NAME.name, switches.NAME.labels
    read blocks[].nodes, blocks[].switch: nodes, and the switch they are on
    read blocks[].annotations.{DOMAIN}: the accelerator domain of the \
        nodes
    neutral blocks[].labels
    """,
)

_SOURCE = "a model of topograph"
_FORMS = ("tree", "block")

_Texts = dict[str, str]


class _Switch(YamlModel):
    name: Name | None = None
    labels: _Texts | None = None
    annotations: _Texts | None = None
    switches: list[Name] = Field(default_factory=list)


class _Block(YamlModel):
    switch: Name | None = None
    nodes: Annotated[list[str], Field(min_length=1)]
    labels: _Texts | None = None
    annotations: _Texts | None = None


class _Model(YamlModel):
    switches: dict[Name, _Switch | None] = Field(default_factory=dict)
    blocks: Annotated[list[_Block], Field(min_length=1)]


def read_topograph(path: str | Path, form: str | None = None) -> TreeModel | HierarchyModel:
    """Read a model: its switches as a tree, or its accelerator domains as Slurm's blocks.

    Switches without nodes below are left out. Domains are blocks in the order in which they come,
    with the sizes that Slurm takes where none are told.

    Parameters
    ----------
    form
        ``tree`` or ``block``; by default ``tree`` if there are switches.

    Raises
    ------
    InputError
        With the line and the field at fault.
    """
    with only_document(path, _Model) as model:
        if form not in (None, *_FORMS):
            expected = f"one of {', '.join(_FORMS)}"
            raise InputError(expected, field="--topology", value=form, known=_FORMS)
        nodes = _nodes_of(model)
        by_switches = form == "tree" if form else bool(model.switches)
        return (_tree if by_switches else _blocks)(model, nodes, name_of(path))


def _nodes_of(model: _Model) -> list[list[str]]:
    """Return by block its nodes, of which each is in one."""
    place_of: dict[str, str] = {}
    found = []
    lists = NodeLists()
    for idx, block in enumerate(model.blocks):
        own = []
        for k, text in enumerate(block.nodes):
            field = f"blocks[{idx}].nodes[{k}]"
            named = lists.hosts(text, field)
            if not named:
                raise InputError("at least one node", field=field, value=text)
            for node in named:
                if node in place_of:
                    expected = f"each node once (it stands at {place_of[node]} too)"
                    raise InputError(expected, field=field, value=node)
                place_of[node] = field
                own.append(node)
        found.append(own)
    return found


def _tree(model: _Model, nodes: Sequence[Sequence[str]], name: str) -> TreeModel:
    below = {key: list(own.switches) if own else [] for key, own in model.switches.items()}
    parent_of = _parents(model, below)
    known = {*below, *parent_of}
    nodes_on: dict[str, list[str]] = {}  # in the order in which blocks name the switches
    for idx, (block, own) in enumerate(zip(model.blocks, nodes, strict=True)):
        if block.switch is None or block.switch not in known:
            found = "nothing" if block.switch is None else None
            field = f"blocks[{idx}].switch"
            expected = "a switch that is described"
            raise InputError(expected, field=field, value=block.switch, found=found, known=known)
        nodes_on.setdefault(block.switch, []).extend(own)
    nodes_on |= {key: [] for key in (*below, *parent_of) if key not in nodes_on}
    used = _used(nodes_on, parent_of)
    switches = []
    for key in filter(used.__contains__, nodes_on):
        children = [child for child in below.get(key, ()) if child in used]
        if children and nodes_on[key]:
            expected = "either nodes or switches with nodes"
            raise InputError(expected, field=f"switches.{key}", found="both")
        switches.append(
            SwitchModel(name=key, switches=format_host_list(children))
            if children
            else SwitchModel(name=key, nodes=format_host_list(nodes_on[key]))
        )
    machine = TreeModel(kind="tree", name=name, switches=switches, source=_SOURCE)
    try:
        hierarchy_of(machine)
    except InputError as error:
        raise error.at(f"switches.{(error.field or '').removeprefix('switch ')}") from None
    return machine


def _parents(model: _Model, below: Mapping[str, Sequence[str]]) -> dict[str, str]:
    parent_of: dict[str, str] = {}
    for key, switch in model.switches.items():
        if switch is not None and switch.name not in (None, key):
            raise InputError(f"the name {key}", field=f"switches.{key}.name", value=switch.name)
        for idx, child in enumerate(below[key]):
            if child in parent_of:
                expected = f"each switch below one other (it is below {parent_of[child]} too)"
                raise InputError(expected, field=f"switches.{key}.switches[{idx}]", value=child)
            parent_of[child] = key
    return parent_of


def _used(nodes_on: Mapping[str, Sequence[str]], parent_of: Mapping[str, str]) -> set[str]:
    """Return the switches with nodes on or below them."""
    used: set[str] = set()
    for key in nodes_on:
        at: str | None = key if nodes_on[key] else None
        while at is not None and at not in used:
            used.add(at)
            at = parent_of.get(at)
    return used


def _blocks(model: _Model, nodes: Sequence[Sequence[str]], name: str) -> HierarchyModel:
    inherited = _annotations_above(model)
    domains: dict[str, list[str]] = {}
    for idx, (block, own) in enumerate(zip(model.blocks, nodes, strict=True)):
        above = inherited.get(block.switch or "")
        domain = (block.annotations or {}).get(DOMAIN, above)
        if not domain:
            raise InputError(f"the annotation {DOMAIN}", field=f"blocks[{idx}]", found="nothing")
        domains.setdefault(domain, []).extend(own)
    own_blocks = [Block(domain, format_host_list(own)) for domain, own in domains.items()]
    return machine_of_blocks(own_blocks, None, name, _SOURCE)


def _annotations_above(model: _Model) -> dict[str, str]:
    """Return by switch the accelerator domain that it hands down, if it has one."""
    found: dict[str, str] = {}
    parents = {child: key for key, own in model.switches.items() if own for child in own.switches}
    for key in {*model.switches, *parents}:
        at: str | None = key
        seen: set[str] = set()
        while at is not None and at not in seen:
            seen.add(at)
            own = model.switches.get(at)
            domain = (own.annotations or {}).get(DOMAIN) if own else None
            if domain:
                found[key] = domain
                break
            at = parents.get(at)
    return found
