"""Graphs in the format of METIS (and of Chaco): undirected, one line per vertex."""

from __future__ import annotations

from pathlib import Path

from topoplace.errors import InputError
from topoplace.mapping.graphfiles._fields import MAX_BYTES, count, counts
from topoplace.mapping.graphfiles._undirected import Edges
from topoplace.snapshot.application import MAX_TASKS, GraphApplication
from topoplace.snapshot.readers.lines import text_of

_FORMATS = ("0", "1", "10", "11", "100", "101", "110", "111")


def read_metis_graph(path: str | Path) -> GraphApplication:
    """Read a METIS graph file; an edge of weight w is one message of w bytes.

    The message goes from the lower to the higher task, so that hop-bytes counts an edge once.
    Vertices are numbered from 1 in the file, tasks from 0. Without edge weights (the units of
    ``fmt``) every edge has one byte; vertex sizes and weights are read and ignored. ``%`` starts a
    comment line; an empty line is a vertex without edges.

    Raises
    ------
    InputError
        Naming file, line and value: also if an edge is not listed at both of its ends with one
        weight, or their number is not that of the header.
    """
    file = str(path)
    lines = [
        (f"line {number}", line.split())
        for number, line in enumerate(text_of(path).splitlines(), start=1)
        if not line.lstrip().startswith("%")
    ]
    while lines and not lines[0][1]:
        lines.pop(0)
    if not lines:
        raise InputError("a header: vertices, edges, fmt, ncon", file=file)
    field, header = lines.pop(0)
    num_tasks, num_edges, skipped, weighted = _header(header, file, field)
    while len(lines) > num_tasks and not lines[-1][1]:
        lines.pop()
    if len(lines) != num_tasks:
        raise InputError(
            f"a line for each of the {num_tasks} vertices", file=file, value=f"{len(lines)} lines"
        )
    edges = Edges(file, num_tasks, 1)
    step = 2 if weighted else 1
    for task, (line, texts) in enumerate(lines):
        numbers = counts(texts, MAX_BYTES, file=file, line=line) if texts else []
        arcs = numbers[skipped:]
        if len(numbers) < skipped or len(arcs) % step:
            expected = f"{skipped} numbers, then " if skipped else ""
            expected += "pairs of neighbour and weight" if weighted else "neighbours"
            raise InputError(expected, file=file, field=line, value=" ".join(texts))
        for at in range(0, len(arcs), step):
            if not 1 <= arcs[at] <= num_tasks:
                raise InputError(
                    f"neighbours from 1 to {num_tasks}", file=file, field=line, value=arcs[at]
                )
            edges.add(task, arcs[at] - 1, arcs[at + 1] if weighted else 1, line)
    graph = edges.graph()
    if len(graph.bytes) != num_edges:
        raise InputError(
            f"{len(graph.bytes)}, the number of edges listed",
            file=file,
            field=f"{field}, edges",
            value=num_edges,
        )
    return graph


def _header(header: list[str], file: str, field: str) -> tuple[int, int, int, bool]:
    """Return vertices, edges, the numbers before a vertex's edges, and if these have weights."""
    if not 2 <= len(header) <= 4:
        raise InputError(
            "vertices, edges, fmt, ncon", file=file, field=field, value=" ".join(header)
        )
    num_tasks = count(header[0], MAX_TASKS, file=file, field=f"{field}, vertices")
    if not num_tasks:
        raise InputError("at least one vertex", file=file, field=field, value=0)
    num_edges = count(header[1], MAX_BYTES, file=file, field=f"{field}, edges")
    flags = header[2] if len(header) > 2 else "0"
    if (flags.lstrip("0") or "0") not in _FORMATS or len(flags) > 3:
        raise InputError("fmt of three digits 0 or 1", file=file, field=field, value=flags)
    sizes, weights, weighted = (digit == "1" for digit in flags.zfill(3))
    constraints = (
        count(header[3], MAX_TASKS, file=file, field=f"{field}, ncon") if header[3:] else 1
    )
    return num_tasks, num_edges, sizes + (constraints if weights else 0), weighted
