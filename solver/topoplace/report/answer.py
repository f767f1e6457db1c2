"""What starts, and where: rows for the screen and the page, host lists and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from topoplace.machine import Prism
from topoplace.machine.hostlist import format_host_list
from topoplace.report.text import plain_table
from topoplace.result import PlacementResult
from topoplace.result.tree import AllocationResult
from topoplace.snapshot import prepare
from topoplace.snapshot.machines import resolve_machine
from topoplace.snapshot.schema import TorusModel

WIDTH = 100
"""Of a table where the width of the terminal is not known."""

_MOST_ROWS = 15
_LEAST_PLACE = 24
"""Characters of a place that are shown however narrow a terminal is."""

CSV_COLUMNS = ("request", "nodes", "prism", "hosts", "cost", "score")


@dataclass(frozen=True)
class Start:
    """A request that starts.

    Attributes
    ----------
    hosts
        Its nodes: on a tree a host list as Slurm has it, in the order of its ranks, on a torus
        ranges of node numbers.
    prism
        Extents and origin; None on trees, and where the nodes form no prism.
    node_class
        On a torus.
    cost
        By eq. (6) of Mishra 2020, on a tree.
    score
        Of the prism on level `shape`.
    """

    request: str
    nodes: int
    hosts: str
    prism: str | None = None
    node_class: str | None = None
    cost: Fraction | None = None
    score: int | None = None


@dataclass(frozen=True)
class Rows:
    """A table of text: its header, its rows, and which columns are numbers."""

    header: Sequence[str]
    cells: Sequence[Sequence[str]]
    numbers: Sequence[int]


def starts_of(result: PlacementResult | AllocationResult) -> list[Start]:
    """Return the requests that start, in the order of the result; none without a solution."""
    return _on_tree(result) if isinstance(result, AllocationResult) else _on_torus(result)


def _on_tree(result: AllocationResult) -> list[Start]:
    if result.solution is None:
        return []
    return [
        Start(
            own.request,
            len(own.nodes),
            format_host_list(own.nodes),
            cost=Fraction(own.cost.numerator, own.cost.denominator),
        )
        for own in result.solution.allocations
    ]


def _on_torus(result: PlacementResult) -> list[Start]:
    if result.solution is None:
        return []
    snapshot = resolve_machine(result.instance)
    assert isinstance(snapshot.machine, TorusModel)
    default = snapshot.machine.default_class
    queue = {request.id: request for request in snapshot.queue}
    scores = _scores(result)
    starts = []
    for own in result.solution.placements:
        request, prism = queue[own.request], own.prism
        text = None if prism is None else Prism(tuple(prism.origin), tuple(prism.extents)).text
        kind = request.node_class or default
        score = scores.get(own.request)
        starts.append(
            Start(own.request, request.nodes, own.nodes, text, node_class=kind, score=score)
        )
    return starts


def _scores(result: PlacementResult) -> dict[str, int]:
    """Return the shape score of every request that starts on a prism."""
    from topoplace.placement.problem import Candidate, PlacementProblem  # noqa: PLC0415 - heavy

    assert result.solution is not None
    prisms = {own.request: own.prism for own in result.solution.placements if own.prism is not None}
    if not prisms:
        return {}
    state = prepare(resolve_machine(result.instance))
    problem = PlacementProblem(state, result.limits.interference)
    numbers = {request.id: number for number, request in enumerate(problem.requests)}
    candidates = [
        Candidate(numbers[name], Prism(tuple(prism.origin), tuple(prism.extents)))
        for name, prism in prisms.items()
    ]
    return dict(zip(prisms, problem.values_of(candidates)[:, 1].tolist(), strict=True))


def rows_of(result: PlacementResult | AllocationResult) -> Rows:
    """Return the table of what starts, every place in full."""
    if isinstance(result, AllocationResult):
        header = ["request", "nodes", "cost", "hosts"]
        cells = [[s.request, f"{s.nodes:,}", _cost(s), s.hosts] for s in starts_of(result)]
        return Rows(header, cells, (1, 2))
    header = ["request", "nodes", "class", "prism"]
    cells = [
        [s.request, f"{s.nodes:,}", s.node_class or "-", s.prism or f"nodes {s.hosts}"]
        for s in starts_of(result)
    ]
    return Rows(header, cells, (1,))


def decimal_text(value: Fraction) -> str:
    """Return a number as a decimal, a whole one without decimals."""
    return f"{value.numerator:,}" if value.denominator == 1 else f"{float(value):,.3f}"


def _cost(start: Start) -> str:
    return "-" if start.cost is None else decimal_text(start.cost)


def answer_table(result: PlacementResult | AllocationResult, width: int = WIDTH) -> list[str]:
    """Return lines that say what starts and where, shortened where there is much of it.

    Parameters
    ----------
    width
        Characters of a line; places that are longer are cut.
    """
    rows = rows_of(result)
    if not rows.cells:
        return []
    shown = [list(row) for row in rows.cells[:_MOST_ROWS]]
    columns = list(zip(rows.header, *shown, strict=True))[:-1]
    room = width - sum(max(map(len, column)) + 2 for column in columns)
    for row in shown:
        row[-1] = shortened(row[-1], max(_LEAST_PLACE, room))
    lines = [plain_table(rows.header, shown, right=rows.numbers)]
    more = len(rows.cells) - len(shown)
    if more:
        lines.append(f"... and {more:,} more in the result file")
    return lines


def shortened(text: str, most: int) -> str:
    """Return a text, or the start of it with dots where it has too many characters."""
    return text if len(text) <= most else f"{text[: most - 4].rstrip(',')} ..."


def hostlist_text(result: PlacementResult | AllocationResult) -> str:
    """Return a line per request that starts: its name and its nodes."""
    return "".join(f"{start.request} {start.hosts}\n" for start in starts_of(result))


def csv_text(result: PlacementResult | AllocationResult) -> str:
    """Return what starts as CSV with a header line; absent values are empty."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for start in starts_of(result):
        cost = None if start.cost is None else float(start.cost)
        writer.writerow(
            [start.request, start.nodes, start.prism, start.hosts, cost, start.score],
        )
    return stream.getvalue()
