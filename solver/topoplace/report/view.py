"""What a person sees of a result: what starts and where, why the rest waits, and the picture.

Each kind of problem has a view (`Kind.view`); tables, pages, host lists, CSV and pictures are drawn
from it, whatever the kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from topoplace.errors import number_of
from topoplace.kinds import kind_named
from topoplace.machine import Prism, parse_node_set
from topoplace.machine.hostlist import count_hosts, expand_host_list, format_host_list
from topoplace.report.text import Table, plain_table
from topoplace.report.tiles import (
    DOWN,
    FREE,
    RGB,
    RUNNING,
    Cells,
    Tiles,
    colour_of,
    job_colour,
    machine_tiles,
)
from topoplace.result import Fraction as FractionModel
from topoplace.result import Result, Status, level_label
from topoplace.result.base import Start
from topoplace.result.certificate import Reserved, Share
from topoplace.snapshot.files import csv_of
from topoplace.snapshot.held import hold_text, holds_of
from topoplace.snapshot.machines import resolve_machine
from topoplace.snapshot.running import job_name
from topoplace.snapshot.schema import Counted, Order, RunningJob, TasksModel
from topoplace.snapshot.value import value_of
from topoplace.types import FloatArray, IntArray

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

    from topoplace.report.domains import Boxes

AnyResult = Result[Any, Any, Any]

WIDTH = 100
"""Width of a table if the width of the terminal is not known."""

_GIVEN = {
    "class": "node_class",
    "priority": "priority",
    "nodes it may have": "eligible",
    "one of": "one_of",
    "within one": "required",
}
"""Columns that a page has if a request has such a field, which is neither null nor 1."""

_NUMBERS = ("priority", "value", "cost")
_MOST_NODES = 1 << 31
_MOST_ROWS = 15
_LEAST_PLACE = 24
"""Characters of a place that are shown however narrow a terminal is."""


def exact(value: int | FractionModel) -> Fraction:
    """Return a number of a document."""
    if isinstance(value, FractionModel):
        return Fraction(value.numerator, value.denominator)
    return Fraction(value)


def decimal_text(value: Fraction) -> str:
    """Return a number as a decimal, a whole one without decimals."""
    return f"{value.numerator:,}" if value.denominator == 1 else f"{float(value):,.3f}"


def _cell(value: object) -> str:
    """Return a field of a request as a cell of a table."""
    if isinstance(value, list):
        return " or ".join(map(str, value))
    return "" if value is None else str(value)


@dataclass(frozen=True)
class Picture:
    """The essential picture of a result: how to draw it, its height in inches, its legend.

    Beside it, a full figure has a torus in space, or the loads of all links of a mapping.
    """

    draw: Callable[[Axes], None]
    height: float
    entries: list[Artist]
    space: Cells | None = None
    loads: FloatArray | None = None


@dataclass(frozen=True)
class Listing:
    """A table that a page lists whole, to sort and to filter.

    Attributes
    ----------
    title, table
        What it is headed, and its rows.
    choices
        Columns of few different values, by which to filter.
    colours
        By row its colour in the picture for CSS, or nothing; empty if no row has one.
    """

    title: str
    table: Table
    choices: Sequence[int] = ()
    colours: Sequence[str] = ()


class View:
    """What tables and pictures show of a result that places the queue of a snapshot.

    By default placements have `nodes`, numbers of the cells that they take, and the state has those
    that are `free`, and `held` by every running job. A kind replaces `_starts` and `ground` if not,
    problems without a queue more.

    Attributes
    ----------
    columns
        Attributes of `Start` that a data frame has besides nodes and hosts.
    cell
        What a picture has a cell for.
    height
        Inches of a picture at most.
    greys
        Codes of cells without a started job that may occur.
    num_inked
        Colours of a legend of small pictures.
    named
        Whether nodes have names, rather than numbers.
    """

    columns: ClassVar[Sequence[str]] = ()
    cell: ClassVar[str] = "node"
    height: ClassVar[float] = 7.0
    greys: ClassVar[Sequence[int]] = (FREE, RUNNING, DOWN)
    num_inked: ClassVar[int] = 6
    named: ClassVar[bool] = False

    def __init__(self, result: Any, state: Any = None) -> None:
        self.result = result
        self._state = state

    @cached_property
    def state(self) -> Any:
        """The instance, checked and ready (`Kind.prepare`)."""
        if self._state is not None:
            return self._state
        prepare = kind_named(self.result.problem).get("prepare")
        return prepare(resolve_machine(self.result.instance))

    @property
    def unit(self) -> str:
        """What requests are counted in."""
        return "node"

    @property
    def rule(self) -> str:
        """What bounded the search besides the time limit, as the headline has it."""
        has_rule = kind_named(self.result.problem).has_rule
        return f"{self.result.limits.interference} interference, " if has_rule else ""

    # ---- What starts

    @property
    def started(self) -> set[str]:
        """The names of requests that start."""
        solution = self.result.solution
        return set() if solution is None else {one.request for one in solution.placements}

    @cached_property
    def starts(self) -> list[Start]:
        """The requests that start, in the order of the result; none without a solution."""
        return [] if self.result.solution is None else self._starts()

    def _starts(self) -> list[Start]:
        """Return `starts` if there is a solution, each with the cells that it takes as `nodes`."""
        own = [(one, parse_node_set(one.nodes, _MOST_NODES)) for one in self.placements]
        names = self.state.snapshot.written.node_names
        return [
            Start(
                one.request,
                tuple(nodes.tolist()),
                format_host_list(names[node] for node in nodes) if names else one.nodes,
            )
            for one, nodes in own
        ]

    @property
    def placements(self) -> Sequence[Any]:
        """The placements of the solution, if there is one."""
        return () if self.result.solution is None else self.result.solution.placements

    def mapped(self) -> Iterator[tuple[str, TasksModel, IntArray]]:
        """Yield the requests whose tasks are mapped, with these, and the node of each; none."""
        return iter(())

    @property
    def header(self) -> tuple[str, ...]:
        """The header of the table of what starts."""
        return ("request", f"{self.unit}s", "hosts")

    numbers: ClassVar[Sequence[int]] = (1,)

    def row(self, start: Start) -> list[str]:
        """Return the row of a request that starts."""
        return [start.request, f"{len(start.nodes):,}", start.hosts]

    @property
    def rows(self) -> Table:
        """The table of what starts, every place in full."""
        return Table(self.header, [self.row(start) for start in self.starts], self.numbers)

    def frame(self) -> dict[str, list[Any]]:
        """Return the result as named columns, with a row for every request."""
        starts = {start.request: start for start in self.starts}
        names = [request.id for request in self.result.instance.queue]
        waits = self.waits
        return {
            "request": names,
            "num_nodes": [request.nodes for request in self.result.instance.queue],
            "starts": [name in starts for name in names],
            **{
                column: [getattr(starts.get(name), column, None) for name in names]
                for column in (*self.columns, "nodes", "hosts")
            },
            "waits": [waits.get(name) for name in names],
        }

    # ---- What waits

    def reasons(self) -> Mapping[str, str]:
        """Return by request that is not held why it waits, as far as that is known."""
        return {}

    @cached_property
    def waits(self) -> dict[str, str]:
        """By request why it waits, in the order of the queue, where that is known."""
        instance = self.result.instance
        texts = {name: hold_text(holds) for name, holds in holds_of(instance).items()}
        if self.result.solution is not None:
            texts |= self.reasons()
        return {one.id: texts[one.id] for one in instance.queue if one.id in texts}

    @property
    def outbid(self) -> str:
        """Why a request waits that would fit alone."""
        if self.result.levels[0].status is Status.OPTIMAL:
            return "outbid: it fits alone, but the started jobs have the same value or more"
        return "it fits alone, but not alongside the started jobs"

    # ---- What a page lists

    @property
    def listings(self) -> list[Listing]:
        """What a page lists: every request and running job, with its status."""
        instance, held = self.result.instance, holds_of(self.result.instance)
        starts = {start.request: start for start in self.starts}
        given = {
            name: field
            for name, field in _GIVEN.items()
            if name not in self.header
            and any(getattr(one, field, None) not in (None, 1) for one in instance.queue)
        }
        places, valued = self.header[2:], instance.value is not Counted.NODES
        rows = []
        for one in instance.queue:
            start = starts.get(one.id)
            status = "started" if start else "held" if one.id in held else "waits"
            own = [one.node_class or "" if name == "class" else "" for name in places]
            why = self._ignored.get(one.id, "")
            if start is None:
                why = self.waits.get(one.id, "no reason is known")
            number = "" if start is None else str(self.ranks[one.id] + 1)
            more = [_cell(getattr(one, field)) for field in given.values()]
            more += [f"{value_of(one, instance.value):,}"] * valued
            place = own if start is None else self.row(start)[2:]
            rows.append([number, one.id, status, f"{one.nodes:,}", *more, why, *place])
        gangs: dict[str, list[RunningJob]] = {}
        for job in instance.running:
            gangs.setdefault(job_name(job), []).append(job)
        for name, entries in gangs.items():
            job, where = entries[0], entries[0].nodes
            if len(entries) > 1 and self.named:
                hosts = {host for one in entries for host in expand_host_list(one.nodes, "nodes")}
                where = format_host_list(sorted(hosts))
            count = count_hosts(where) if self.named else len(parse_node_set(where, _MOST_NODES))
            why = "" if job.ends is None else f"ends in {job.ends:,} s at the latest"
            if job.prism is not None:
                where = Prism(tuple(job.prism.origin), tuple(job.prism.extents)).text
            more = [""] * (len(given) + valued + 1 + len(places))
            more[len(given) + valued], more[-1] = why, where
            rows.append(["", name, "running", f"{count:,}", *more])
        header = [
            "no.",
            "request",
            "status",
            f"{self.unit}s",
            *given,
            *["value"] * valued,
            "why",
            *places,
        ]
        numbers = [k for k, name in enumerate(header) if k in (0, 3) or name in _NUMBERS]
        colours = [self.css(int(row[0]) - 1) if row[0] else "" for row in rows]
        return [Listing("Requests", Table(header, rows, numbers), (2,), colours)]

    @property
    def _ignored(self) -> dict[str, str]:
        """By request, which of its options are ignored."""
        found: dict[str, list[str]] = {}
        for one in self.result.instance.left_out:
            if one.request is not None and one.option in self.result.instance.ignored:
                found.setdefault(one.request, []).append(f"{one.option} {one.value}".rstrip())
        return {name: f"ignored: {'; '.join(options)}" for name, options in found.items()}

    def reserved(self) -> dict[str, str]:
        """Return when and where the first request that waits starts, if it has a reservation."""
        own = getattr(self.result.levels[0].certificate, "reserved", None)
        if own is None:
            return {}
        return {own.request: f"reserved: {self.room(own)} in {own.at:,} s at the latest"}

    def room(self, reserved: Reserved) -> str:
        """Return the place of a reservation."""
        return with_units([share for part in reserved.parts for share in part.shares])

    # ---- What the screen shows

    def about(self) -> list[str]:
        """Return lines before the table of levels: what has no reservation, if so."""
        snapshot = self.result.instance
        if getattr(snapshot, "order", None) is not Order.BACKFILL:
            return []
        limits = [job.ends for job in snapshot.running] + [one.walltime for one in snapshot.queue]
        if any(limit is not None for limit in limits):
            return self._beyond()
        return ["backfill: no job has a time limit, so none that waits has a reservation"]

    def _beyond(self) -> list[str]:
        """Return a line on the requests that cannot start within the window of reservations."""
        window = self.result.instance.window
        waits = getattr(self.result.levels[0].certificate, "waits", ())
        names = [wait.request for wait in waits if wait.ever]
        if window is None or not names:
            return []
        text = ", ".join([*names[:8], *(["..."] if len(names) > 8 else [])])
        return [f"backfill: no reservation, as none could begin within {window:,} s: {text}"]

    def left(self) -> str:
        """Return what a line says of the room that is left, after who starts; most say nothing."""
        return ""

    def found(self) -> list[str] | None:
        """Return lines after the table of levels; None for those of a queue."""
        return None

    def total(self) -> str:
        """Return what follows the number of requests that start."""
        return ""

    def title(self) -> list[str]:
        """Return what a picture says below the headline, of a result with a solution."""
        queue = number_of(len(self.result.instance.queue), "request")
        return [f"{len(self.started)} of {queue} started{self.value_text}"]

    @property
    def value_text(self) -> str:
        """How much of what counts starts, to end a line; nothing where nodes do."""
        snapshot = self.result.instance
        if snapshot.value is Counted.NODES:
            return ""
        values = {one.id: value_of(one, snapshot.value) for one in snapshot.queue}
        started, label = sum(values[name] for name in self.started), level_label(snapshot, "nodes")
        return f"; {label} started {started:,} of {sum(values.values()):,}"

    # ---- What pictures show

    def ground(self) -> tuple[IntArray, Sequence[IntArray]]:
        """Return what stands on every cell without what starts, and the cells of running jobs."""
        return np.where(self.state.free.ravel(), FREE, DOWN), self.state.held

    @cached_property
    def cells(self) -> Cells:
        """What stands on every cell; of several jobs the smallest is shown."""
        codes, running = self.ground()
        owner = np.full(codes.shape, -1, dtype=np.int64)
        for idx, held in enumerate(running, start=len(self.ranks)):
            codes[held], owner[held] = RUNNING, idx
        jobs: dict[int, str] = {}
        on: dict[int, list[int]] = {
            host: [RUNNING] for host in np.flatnonzero(codes == RUNNING).tolist()
        }
        for start in sorted(self.starts, key=lambda start: self.ranks[start.request]):
            code, own = self.ranks[start.request], sorted(set(start.nodes))
            codes[own] = owner[own] = code
            jobs[code] = f"{start.request}: {len(start.nodes):,}"
            for host in own:
                on.setdefault(host, []).append(code)
        several = {host: held for host, held in on.items() if len(held) > 1}
        return Cells(codes, owner, np.zeros(codes.shape, dtype=bool), jobs=jobs, several=several)

    @cached_property
    def ranks(self) -> dict[str, int]:
        """The rank of every request by size, the largest 0; of one size in queue order."""
        queue = self.result.instance.queue
        by_size = sorted((-request.nodes, place) for place, request in enumerate(queue))
        return {queue[place].id: rank for rank, (_, place) in enumerate(by_size)}

    @property
    def tiles(self) -> Tiles | Boxes:
        """The machine laid out flat."""
        return machine_tiles((len(self.cells.codes),), self.cell)

    @property
    def has_space(self) -> bool:
        """Whether the cells are also shown in space."""
        return False

    def most(self) -> int | None:
        """Return up to which value of its first level a frontier goes on, if it does."""
        return None

    def curve(self) -> list[str] | None:
        """Return a frontier as lines; None for the table of its points."""
        return None

    def picture(self) -> Picture | None:
        """Return the essential picture; None for the tiles with a legend of jobs."""
        return None

    def figures(self) -> list[tuple[AnyResult, list[str] | None]]:
        """Return the results that a full picture shows one above the other, and their heads."""
        return [(self.result, None)]

    @classmethod
    def inked(cls, code: int) -> RGB:
        """Return the colour of a code from 0 on."""
        return job_colour(code)

    @classmethod
    def css(cls, code: int) -> str:
        """Return the colour of a code for CSS."""
        *mixed, opacity = colour_of(code, cls.inked)
        return f"rgb({' '.join(str(round(255 * part)) for part in mixed)} / {opacity:g})"


def view_of(result: Any, state: Any = None) -> View:
    """Return the view of a result; `state` is its instance, if that is prepared already."""
    view: View = kind_named(result.problem).get("view")(result, state)
    return view


def answer_table(result: AnyResult, width: int = WIDTH) -> list[str]:
    """Return lines that say what starts and where, shortened where there is much of it.

    Parameters
    ----------
    width
        Characters of a line; places that are longer are cut.
    """
    rows = view_of(result).rows
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


def with_units(shares: Sequence[Share]) -> str:
    """Return hosts as text, each list with its units where these are more than one."""
    return " ".join(f"{s.hosts}*{s.units}" if s.units > 1 else s.hosts for s in shares)


def hostlist_text(result: AnyResult) -> str:
    """Return a line per request that starts: its name and its nodes, as launchers take them."""
    return "".join(f"{s.request} {s.plain or s.hosts}\n" for s in view_of(result).starts)


def csv_text(result: AnyResult) -> str:
    """Return what starts, then what waits and why, as CSV with a header line.

    Absent values are empty.
    """
    rows: list[list[object]] = []
    view = view_of(result)
    for start in view.starts:
        cost = None if start.cost is None else float(start.cost)
        place = [start.prism, start.hosts, cost, start.score, None]
        rows.append([start.request, len(start.nodes), *place])
    for one in result.instance.queue:
        if one.id not in view.started:
            rows.append([one.id, one.nodes, *[None] * 4, view.waits.get(one.id)])
    return csv_of(("request", "nodes", "prism", "hosts", "cost", "score", "waits"), rows)
