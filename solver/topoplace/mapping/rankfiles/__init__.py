"""Mappings as files of other tools: rank orders, host files and tables."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from topoplace.errors import InputError
from topoplace.mapping.graph import IntArray
from topoplace.mapping.problem import MappingProblem
from topoplace.mapping.rankfiles.check import require_mapping
from topoplace.mapping.rankfiles.hostfile import read_hostfile, write_hostfile
from topoplace.mapping.rankfiles.numbering import Numbering
from topoplace.mapping.rankfiles.rank_order import (
    node_list_beside,
    read_rank_order,
    write_rank_order,
)
from topoplace.mapping.rankfiles.table import read_csv, write_csv

__all__ = [
    "FORMATS",
    "Numbering",
    "node_list_beside",
    "read_csv",
    "read_hostfile",
    "read_mapping",
    "read_rank_order",
    "require_mapping",
    "write_csv",
    "write_hostfile",
    "write_mapping",
    "write_rank_order",
]

FORMATS = ("rank-order", "hostfile", "csv")
"""Names of the formats that `read_mapping` and `write_mapping` know."""


def read_mapping(
    path: str | Path,
    format: str,
    problem: MappingProblem,
    node_of_nid: Mapping[int, int] | None = None,
) -> IntArray:
    """Read a mapping file and return the node of every task.

    The node list of a rank order is expected beside it (`node_list_beside`). `node_of_nid` is
    explained at `Numbering`; a table has our own node numbers.

    Raises
    ------
    InputError
        If the format is unknown, or the file is no mapping of the instance; it names file, line
        and value.
    """
    if format == "rank-order":
        return read_rank_order(problem, path, node_of_nid=node_of_nid)
    if format == "hostfile":
        return read_hostfile(problem, path, node_of_nid)
    if format == "csv":
        return read_csv(problem, path)
    raise InputError(f"one of {', '.join(FORMATS)}", field="format", value=format)


def write_mapping(
    path: str | Path,
    format: str,
    problem: MappingProblem,
    nodes: IntArray,
    node_of_nid: Mapping[int, int] | None = None,
) -> None:
    """Write a mapping file that `read_mapping` reads back unchanged.

    Raises
    ------
    InputError
        If the format is unknown or `nodes` is no mapping of the instance.
    """
    if format == "rank-order":
        write_rank_order(problem, nodes, path, node_of_nid=node_of_nid)
    elif format == "hostfile":
        write_hostfile(problem, nodes, path, node_of_nid)
    elif format == "csv":
        write_csv(problem, nodes, path)
    else:
        raise InputError(f"one of {', '.join(FORMATS)}", field="format", value=format)
