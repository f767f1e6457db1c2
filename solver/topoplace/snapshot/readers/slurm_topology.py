"""Slurm's topology in any of its forms: topology.conf, or what scontrol show topology prints."""

from __future__ import annotations

from pathlib import Path

from topoplace.errors import InputError
from topoplace.snapshot.readers.slurm import conf_lines, tree_of_lines
from topoplace.snapshot.readers.slurm_blocks import machine_of_block_lines
from topoplace.snapshot.readers.tables import blamed_on, name_of, text_of
from topoplace.snapshot.schema import HierarchyModel, TreeModel

_OF_BLOCKS = {"blockname", "blocksizes", "aggregatedblock"}


def read_slurm_topology(path: str | Path, name: str | None = None) -> TreeModel | HierarchyModel:
    """Read a topology of switches as a tree, one of blocks as a hierarchy.

    Parameters
    ----------
    path
        A topology.conf, or what ``scontrol show topology`` printed.
    name
        Of the machine; by default the file's.

    Raises
    ------
    InputError
        With the file, the line and the switch or block at fault.
    """
    with blamed_on(path):
        return topology_of_text(text_of(path), name or name_of(path))


def topology_of_text(text: str, name: str) -> TreeModel | HierarchyModel:
    """Return the machine of a text, as `read_slurm_topology`; errors name line and field."""
    lines = [*conf_lines(text)]
    if not any(_OF_BLOCKS & line.settings.keys() for line in lines):
        return tree_of_lines(lines, name)
    for line in lines:
        if "switchname" in line.settings:
            expected = "blocks alone or switches alone"
            raise InputError(expected, field=line.place, value=line.text)
    return machine_of_block_lines(lines, name)
