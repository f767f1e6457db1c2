"""Slurm's topology in any of its forms: topology.conf, topology.yaml, scontrol show topology."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from topoplace.errors import InputError, blamed_on
from topoplace.formats.slurm.blocks import machine_of_block_lines
from topoplace.formats.slurm.topology_conf import conf_lines, tree_of_lines
from topoplace.formats.slurm.topology_yaml import SlurmMachine, read_topology_yaml
from topoplace.formats.text import first_said, name_of, text_of
from topoplace.snapshot.schema import HierarchyModel, TreeModel

_OF_BLOCKS = {"blockname", "blocksizes", "aggregatedblock"}

_CONF = re.compile(r"(SwitchName|BlockName|BlockSizes|AggregatedBlock)\s*=", re.IGNORECASE)
_YAML = re.compile(r"(%YAML|\[|-\s)")


def is_topology_conf(text: str) -> bool:
    """Tell whether a text begins as a topology.conf, or as what scontrol show topology prints."""
    return _CONF.match(first_said(text)) is not None


def is_topology_yaml(text: str) -> bool:
    """Tell whether a text begins as a topology.yaml: as a list."""
    return _YAML.match(first_said(text)) is not None


def read_slurm_topology(
    path: str | Path,
    name: str | None = None,
    *,
    topology: str | None = None,
    nodes: Sequence[str] | None = None,
) -> SlurmMachine:
    """Read a topology: of switches a tree, of blocks a hierarchy, or what a topology.yaml has.

    Parameters
    ----------
    path
        A topology.conf or topology.yaml, or what ``scontrol show topology`` printed.
    name
        Of the machine; by default the file's, or that of a topology in a topology.yaml.
    topology
        Which one of a topology.yaml; see `read_topology_yaml`.
    nodes
        Names of the cluster's nodes, where the topology is flat and does not tell them.

    Raises
    ------
    InputError
        With the file, the line and the switch or block at fault.
    """
    text = text_of(path, or_json=True)
    if is_topology_yaml(text):
        return read_topology_yaml(path, topology, nodes)
    with blamed_on(path):
        if topology is not None:
            expected = "a topology.yaml, if one of its topologies is named"
            raise InputError(expected, field="--topology", value=topology)
        return topology_of_text(text_of(path), name or name_of(path))


def topology_of_text(text: str, name: str) -> TreeModel | HierarchyModel:
    """Return the machine of a topology.conf, or what scontrol prints; errors name line and field.

    Raises
    ------
    InputError
        If it has both switches and blocks, or either is malformed.
    """
    lines = [*conf_lines(text)]
    if not any(_OF_BLOCKS & line.settings.keys() for line in lines):
        return tree_of_lines(lines, name)
    for line in lines:
        if "switchname" in line.settings:
            expected = "blocks alone or switches alone"
            raise InputError(expected, field=line.place, value=line.text)
    return machine_of_block_lines(lines, name)
