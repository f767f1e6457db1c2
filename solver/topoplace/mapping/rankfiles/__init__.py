"""Mappings as files of other tools: rank orders, host files, tables, MapLib's and Scotch's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from topoplace.errors import unknown_name
from topoplace.mapping.graph import IntArray
from topoplace.mapping.problem import MappingProblem
from topoplace.mapping.rankfiles.formats import (
    node_list_beside,
    read_hostfile,
    read_maplib,
    read_rank_order,
    read_scotch_map,
    write_hostfile,
    write_maplib,
    write_rank_order,
    write_scotch_map,
)
from topoplace.mapping.rankfiles.places import Numbering, read_csv, require_mapping, write_csv

__all__ = [
    "FORMATS",
    "Numbering",
    "node_list_beside",
    "read_csv",
    "read_hostfile",
    "read_maplib",
    "read_mapping",
    "read_rank_order",
    "read_scotch_map",
    "require_mapping",
    "write_csv",
    "write_hostfile",
    "write_maplib",
    "write_mapping",
    "write_rank_order",
    "write_scotch_map",
]

_PLAIN: dict[
    str,
    tuple[
        Callable[[MappingProblem, str | Path], IntArray],
        Callable[[MappingProblem, IntArray, str | Path], None],
    ],
] = {
    "csv": (read_csv, write_csv),
    "maplib": (read_maplib, write_maplib),
    "scotch": (read_scotch_map, write_scotch_map),
}
"""Reader and writer of the formats that have our own numbers of nodes or routers."""

FORMATS = ("rank-order", "hostfile", *_PLAIN)
"""Names of the formats that `read_mapping` and `write_mapping` know."""


def read_mapping(
    path: str | Path,
    format: str,
    problem: MappingProblem,
    node_of_nid: Mapping[int, int] | None = None,
) -> IntArray:
    """Read a mapping file and return the node of every task.

    The node list of a rank order is expected beside it (`node_list_beside`). `node_of_nid` is
    explained at `Numbering`; the other formats have our own numbers.

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
    if format in _PLAIN:
        return _PLAIN[format][0](problem, path)
    raise unknown_name(format, FORMATS, field="format")


def write_mapping(
    path: str | Path,
    format: str,
    problem: MappingProblem,
    nodes: IntArray,
    node_of_nid: Mapping[int, int] | None = None,
) -> None:
    """Write a mapping file that `read_mapping` reads back unchanged.

    (``maplib`` says on which router a task is, not on which of its nodes.)

    Raises
    ------
    InputError
        If the format is unknown or `nodes` is no mapping of the instance.
    """
    if format == "rank-order":
        write_rank_order(problem, nodes, path, node_of_nid=node_of_nid)
    elif format == "hostfile":
        write_hostfile(problem, nodes, path, node_of_nid)
    elif format in _PLAIN:
        _PLAIN[format][1](problem, nodes, path)
    else:
        raise unknown_name(format, FORMATS, field="format")
