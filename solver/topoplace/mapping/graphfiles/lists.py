"""Graphs from files that list them: edge lists, Scotch, METIS; and what all readers share."""

from __future__ import annotations

from pathlib import Path

from topoplace.errors import InputError
from topoplace.mapping.graphfiles.matrices import MAX_BYTES, Tokens, count, counts, split_fields
from topoplace.snapshot.readers.tables import text_of
from topoplace.snapshot.schema import MAX_TASKS, GraphApplication

# ---- Undirected graphs whose files list every edge at both of its ends ---------------------------


class Edges:
    """The arcs read so far; an edge is complete when it was seen from both ends.

    Parameters
    ----------
    file
        For messages.
    num_tasks
        Number of vertices.
    base
        Number of the first vertex, for messages.
    """

    def __init__(self, file: str, num_tasks: int, base: int) -> None:
        self.file, self.num_tasks, self.base = file, num_tasks, base
        self._weights: dict[tuple[int, int], tuple[int, str]] = {}
        self._once: set[tuple[int, int]] = set()

    def add(self, source: int, target: int, weight: int, field: str) -> None:
        """Add an arc between vertices counted from 0.

        Raises
        ------
        InputError
            For a loop, an edge listed again at the same end, or other weights at its two ends.
        """
        if source == target:
            raise self._error("no edge from a vertex to itself", field, source, target)
        edge = (min(source, target), max(source, target))
        if edge not in self._weights:
            self._weights[edge] = (weight, field)
            self._once.add((source, target))
            return
        if (target, source) not in self._once:
            raise self._error("each edge once at each of its ends", field, source, target)
        if self._weights[edge][0] != weight:
            found = f"{self._weights[edge][0]} and {weight}"
            raise InputError(
                f"the same weight at both ends of edge {self._name(*edge)}",
                file=self.file,
                field=field,
                value=found,
            )
        self._once.remove((target, source))

    def graph(self) -> GraphApplication:
        """Return one message per edge, of its weight in bytes, from its lower to its higher end.

        Raises
        ------
        InputError
            If an edge was seen from one end only.
        """
        if self._once:
            source, target = min(self._once)
            _, field = self._weights[min(source, target), max(source, target)]
            raise self._error("each edge at both of its ends", field, source, target)
        edges = sorted(self._weights)
        return GraphApplication(
            num_tasks=self.num_tasks,
            sources=[source for source, _ in edges],
            targets=[target for _, target in edges],
            bytes=[self._weights[edge][0] for edge in edges],
        )

    def _error(self, expected: str, field: str, source: int, target: int) -> InputError:
        return InputError(expected, file=self.file, field=field, value=self._name(source, target))

    def _name(self, source: int, target: int) -> str:
        return f"{source + self.base}-{target + self.base}"


# ---- Lists of messages: source, target and bytes, one message per line ---------------------------

_DIRECTIVE = "# tasks "


def read_edge_list(path: str | Path) -> GraphApplication:
    """Read lines ``source target bytes``, separated by blanks or by commas; tasks from 0.

    Every line is one directed message; without the third number it has one byte. A pair may come
    more than once: its messages add up. A first line of names, such as ``source,target,bytes``, is
    left out, and so are empty lines and comments (``#``, ``%``). There are as many tasks as the
    highest number says, or as a line ``# tasks N``, so that the last tasks may be silent.

    Raises
    ------
    InputError
        Naming file, line, field and value.
    """
    file = str(path)
    num_tasks = 0
    messages: list[tuple[int, int, int]] = []
    heading_allowed = True
    for number, text in enumerate(text_of(path).splitlines(), start=1):
        line, stripped = f"line {number}", text.strip()
        if stripped.startswith(_DIRECTIVE):
            told = stripped.removeprefix(_DIRECTIVE).strip()
            num_tasks = count(told, MAX_TASKS, file=file, field=f"{line}, tasks")
        if not stripped or stripped[0] in "#%":
            continue
        fields = split_fields(stripped)
        if heading_allowed and all(field[:1].isalpha() for field in fields):
            heading_allowed = False
            continue
        heading_allowed = False
        messages.append(_message(fields, file, line))
    most = max((max(source, target) + 1 for source, target, _ in messages), default=0)
    if num_tasks and most > num_tasks:
        raise InputError(f"tasks below {num_tasks}, as said", file=file, value=most - 1)
    if not (num_tasks or most):
        raise InputError("lines of source, target and bytes", file=file)
    kept = [message for message in messages if message[0] != message[1] and message[2]]
    return GraphApplication(
        num_tasks=num_tasks or most,
        sources=[source for source, _, _ in kept],
        targets=[target for _, target, _ in kept],
        bytes=[size for _, _, size in kept],
    )


def _message(fields: list[str], file: str, line: str) -> tuple[int, int, int]:
    if not 2 <= len(fields) <= 3:
        raise InputError("source, target and bytes", file=file, field=line, value=" ".join(fields))
    source, target = (
        count(text, MAX_TASKS - 1, file=file, field=f"{line}, {name}")
        for text, name in zip(fields, ("source", "target"), strict=False)
    )
    size = count(fields[2], MAX_BYTES, file=file, field=f"{line}, bytes") if fields[2:] else 1
    return source, target, size


# ---- Graphs in Scotch's format (Scotch user's guide, "Graph files"): undirected, free of lines ---


def read_grf_graph(path: str | Path) -> GraphApplication:
    """Read a Scotch ``.grf`` file; an edge of load w is one message of w bytes.

    The message goes from the lower to the higher task, so that hop-bytes counts an edge once. The
    file has the version 0, the numbers of vertices and of arcs (twice the edges), the base value
    and three flag digits: vertex labels, edge loads, vertex loads. Each vertex has its label, its
    load, its number of arcs, and for each arc the load and the other end. Without loads every edge
    has one byte; vertex loads are read and ignored. Tasks are the labels, else the numbers of the
    vertices, less the base value.

    Raises
    ------
    InputError
        Naming file, line and value: also if an edge is not listed at both of its ends with one
        load, or labels are not the vertex numbers in some order.
    """
    tokens = Tokens.of(path)
    if tokens.take("the version 0", MAX_TASKS):
        raise InputError("version 0 of the format", file=tokens.file, field="line 1")
    num_tasks = tokens.take("the number of vertices", MAX_TASKS, least=1)
    num_arcs = tokens.take("the number of arcs", MAX_BYTES)
    base = tokens.take("the base value", 1)
    flags = tokens.take("three flag digits", 111)
    if not set(str(flags)) <= {"0", "1"}:
        raise tokens.error("digits 0 or 1", "flags", flags)
    labelled, weighted, loaded = (digit == "1" for digit in f"{flags:03d}")
    edges = Edges(tokens.file, num_tasks, base)
    seen: set[int] = set()
    arcs = 0
    for vertex in range(num_tasks):
        task = vertex
        if labelled:
            task = _vertex(tokens, "vertex label", base, num_tasks)
            if task in seen:
                raise tokens.error("each label once", "vertex label", task + base)
            seen.add(task)
        if loaded:
            tokens.take("vertex load", MAX_BYTES)
        degree = tokens.take("number of arcs", num_tasks)
        for _ in range(degree):
            load = tokens.take("edge load", MAX_BYTES) if weighted else 1
            other = _vertex(tokens, "end of an arc", base, num_tasks)
            edges.add(task, other, load, tokens.line)
        arcs += degree
    tokens.end()
    if arcs != num_arcs:
        raise InputError(
            f"{arcs}, the number of arcs listed",
            file=tokens.file,
            field="number of arcs",
            value=num_arcs,
        )
    return edges.graph()


def _vertex(tokens: Tokens, what: str, base: int, num_tasks: int) -> int:
    """Return the next number as a vertex counted from 0."""
    number = tokens.take(what, num_tasks - 1 + base, least=base)
    return number - base


# ---- Graphs in the format of METIS (and of Chaco): undirected, one line per vertex ---------------

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
