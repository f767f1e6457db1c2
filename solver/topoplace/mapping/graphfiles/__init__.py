"""Communication graphs, and machines as matrices, from other tools' files (docs/formats.md)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from topoplace.errors import InputError, unknown_name
from topoplace.mapping.graphfiles.lists import read_edge_list, read_grf_graph, read_metis_graph
from topoplace.mapping.graphfiles.matrices import (
    Qaplib,
    read_csv_graph,
    read_matrix_machine,
    read_qaplib,
)
from topoplace.mapping.graphfiles.sniff import GRAPH_FORMATS, graph_format
from topoplace.snapshot.schema import GraphApplication

__all__ = [
    "GRAPH_FORMATS",
    "Qaplib",
    "graph_format",
    "read_csv_graph",
    "read_edge_list",
    "read_graph",
    "read_grf_graph",
    "read_matrix_machine",
    "read_metis_graph",
    "read_qaplib",
]

_READERS: dict[str, Callable[[str | Path], GraphApplication]] = {
    "csv": read_csv_graph,
    "metis": read_metis_graph,
    "grf": read_grf_graph,
    "edges": read_edge_list,
}


def read_graph(
    path: str | Path, format: str | None = None, *, flow: str | None = None
) -> GraphApplication:
    """Read a communication graph.

    Parameters
    ----------
    path
        The file.
    format
        One of `GRAPH_FORMATS`: ``csv`` (a square matrix of directed bytes), ``qaplib`` (its
        flows), ``metis``, ``grf`` (Scotch) or ``edges`` (a list); by default what `graph_format`
        makes of the file.
    flow
        QAPLIB: which matrix is the flows (`read_qaplib`).

    Raises
    ------
    InputError
        Naming the file, the line or field, and the value at fault.
    """
    known = format or graph_format(path)
    if known == "qaplib":
        return read_qaplib(path, flow).graph
    if known not in _READERS:
        raise unknown_name(format, GRAPH_FORMATS, field="graph format")
    if flow is not None:
        raise InputError("a QAPLIB file with --flow", file=str(path), field="--flow", value=flow)
    return _READERS[known](path)
