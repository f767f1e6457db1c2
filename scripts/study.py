"""What studies share: their command, records, tables, pages and pictures.

A study measures cases. What it finds of one is a record, kept with all others as CSV beside the
page, whose tables and pictures are made of the records.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import datetime
import importlib.metadata
import io
import multiprocessing
import platform
import shlex
import sys
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from types import SimpleNamespace as Record
from typing import TYPE_CHECKING, Any, TypeVar

from topoplace import __version__
from topoplace.snapshot.files import write_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

T = TypeVar("T")

ROOT = Path(__file__).resolve().parent.parent
STUDIES = ROOT / "docs" / "studies"
SNAPSHOTS = ROOT / "instances" / "snapshots"
FILLS = ["empty", "20", "30", "40", "50", "60", "70", "80"]
"""Of the shipped snapshots of Blue Waters, by the names of their files."""

END = "<!-- end of tables -->"
PACKAGES = ("numpy", "ortools")
UNSTAMPED = ("-o", "--output", "--work", "--before", "--data")
"""Options with folders of this machine, which say nothing to a reader."""

Column = str | tuple[str, str | Callable[[Any], object]]
"""A heading and what has the cell of a row, or a field; of a group that is the text that all its
records have in common, or the sum of their numbers."""


class Study:
    """One run of a study: what it was given, and the folder that it writes to.

    Parameters
    ----------
    name
        Of the page and the records.
    about
        The script's docstring.
    given
        Arguments, by default those of the command line.
    positional, options
        As of `parsed`.
    script
        With the part if it has several; by default `study_` and the name.
    """

    def __init__(
        self,
        name: str,
        about: str,
        given: Sequence[str] | None,
        positional: Mapping[str, Any] | None = None,
        script: str = "",
        **options: Any,
    ) -> None:
        self.name, self.script = name, script or f"study_{name}.py"
        self.options = parsed(about, given, positional, output=STUDIES, **options)
        self.folder: Path = self.options.output
        self.folder.mkdir(parents=True, exist_ok=True)
        self.stamp = stamp(self.script, given)

    def measured(self, run: Callable[[T], Any], cases: Iterable[T]) -> list[Any]:
        """Return what a run finds of every case, in `--jobs` processes if there are several.

        What it finds is a record, or begins with one, which is shown as soon as it is there.
        """
        found = []
        with contextlib.ExitStack() as stack:
            jobs = getattr(self.options, "jobs", 1)
            over = map if jobs == 1 else stack.enter_context(spawned(jobs)).map
            for one in over(run, cases):
                found.append(one)
                print(one[0] if isinstance(one, tuple) else one, file=sys.stderr, flush=True)
        return found

    def file(self, suffix: str) -> Path:
        """Return a file of the study, such as `.csv` or `_queue.png`."""
        return self.folder / f"{self.name}{suffix}"

    def write(self, rows: Sequence[Record], suffix: str = "") -> None:
        """Write records as CSV."""
        write_rows(self.file(f"{suffix}.csv"), rows)

    def page(
        self, *parts: str, title: str = "", part: str = "tables", page: Path | None = None
    ) -> None:
        """Put the stamp and paragraphs between the markers of the page, or of another `page`."""
        text = "\n\n".join(parts if page else (self.stamp, *parts))
        between_markers(page or self.file(".md"), self.begin(part), title, text)

    @contextlib.contextmanager
    def picture(
        self, suffix: str, rows: int, columns: int, **layout: Any
    ) -> Iterator[tuple[Figure, Any]]:
        """Yield a figure and its panels, by row and column, and write it as a PNG with a palette.

        That is a third of the bytes, and the same every time. All panels begin at 0 and have a
        grid. Files are named after the study and a suffix.
        """
        import matplotlib.pyplot as plt  # noqa: PLC0415 - heavy
        from PIL import Image  # noqa: PLC0415 - comes with matplotlib

        figure, panels = plt.subplots(rows, columns, squeeze=False, **layout)
        yield figure, panels
        for panel in panels.flat:
            panel.set_ylim(bottom=0)
            panel.grid(alpha=0.3)
        stream = io.BytesIO()
        figure.savefig(stream, dpi=100, bbox_inches="tight")
        picture = Image.open(stream).convert("RGB").quantize(64)
        picture.save(self.file(f"{suffix}.png"), optimize=True)
        plt.close(figure)

    def begin(self, part: str = "tables") -> str:
        """Return the marker before a part of the page."""
        return f"<!-- {part}: written by scripts/{self.script.partition(' ')[0]} -->"


def parsed(
    about: str,
    given: Sequence[str] | None,
    positional: Mapping[str, Any] | None = None,
    **options: Any,
) -> argparse.Namespace:
    """Read a command line of arguments and options by name; `-o` is short for `--output`.

    Each has its default, which says the type: of a list several values may be given, if they are
    texts only those of the list. False is a switch. A type has no default, nor has one in a list; a
    tuple has the choices.
    """
    parser = argparse.ArgumentParser(
        description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, default in (positional or {}).items():
        parser.add_argument(name, **_kind(default))
    for name, default in options.items():
        short = ["-o"] if name == "output" else []
        parser.add_argument(*short, f"--{name.replace('_', '-')}", **_kind(default))
    return parser.parse_args(given)


def _kind(default: Any) -> dict[str, Any]:
    """Return what argparse has to know of an option with a default."""
    if isinstance(default, bool):
        return {"action": "store_true"}
    if isinstance(default, type):
        return {"type": default}
    if isinstance(default, tuple):
        return {"choices": default}
    if isinstance(default, list) and isinstance(default[0], type):
        return {"nargs": "*", "type": default[0], "default": []}
    if isinstance(default, list):
        choices = {"choices": default} if isinstance(default[0], str) else {}
        return {"nargs": "*", "type": type(default[0]), "default": default, **choices}
    return {"type": Path if isinstance(default, Path) else type(default), "default": default}


def stamp(script: str, arguments: Sequence[str] | None) -> str:
    """Return what a run has to say of itself: date, versions and command.

    `arguments` are those given to the script's `main`; None for the command line's.
    """
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in PACKAGES)
    given = list(sys.argv[1:] if arguments is None else arguments)
    for option in UNSTAMPED:
        if option in given:
            at = given.index(option)
            del given[at : at + 2]
    command = shlex.join(["python", *f"scripts/{script}".split(), *given])
    return (
        f"{datetime.date.today()}, topoplace {__version__}, Python {platform.python_version()}, "
        f"{versions}. Command:\n\n```sh\n{command}\n```"
    )


def spawned(jobs: int) -> ProcessPoolExecutor:
    """Return processes that are spawned: OR-Tools and numba have threads that a fork would lose."""
    return ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn"))


def timed(call: Callable[[], T], clock: Callable[[], float] = time.perf_counter) -> tuple[T, float]:
    """Return what a call returns, and its seconds."""
    start = clock()
    found = call()
    return found, clock() - start


# ---- Records -------------------------------------------------------------------------------------


def write_rows(path: Path, rows: Sequence[Record]) -> None:
    """Write records with the same fields as a CSV file; None is empty."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, list(vars(rows[0])), lineterminator="\n")
    writer.writeheader()
    writer.writerows(map(vars, rows))
    write_text(path, stream.getvalue())


def read_rows(path: Path) -> list[Record]:
    """Return the records of a CSV file that `write_rows` wrote; none if there is no file."""
    if not path.exists():
        return []
    with path.open(newline="") as stream:
        rows = csv.DictReader(stream)
        return [Record(**{name: _value(text) for name, text in row.items()}) for row in rows]


def _value(text: str) -> Any:
    known = {"": None, "True": True, "False": False}
    if text in known:
        return known[text]
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text


def where(rows: Iterable[Record], **fields: Any) -> list[Record]:
    """Return the records with these values."""
    return [row for row in rows if all(getattr(row, k) == v for k, v in fields.items())]


def groups(rows: Iterable[T], key: str | Callable[[T], Hashable]) -> dict[Any, list[T]]:
    """Return rows by a field or key, in the order in which its values first occur."""
    found: dict[Any, list[T]] = {}
    for row in rows:
        found.setdefault(getattr(row, key) if isinstance(key, str) else key(row), []).append(row)
    return found


def total(rows: Iterable[Record], field: str) -> Any:
    """Return the sum of a field; None counts as 0."""
    return sum(getattr(row, field) or 0 for row in rows)


def sums(field: str, **fields: Any) -> Callable[[list[Record]], Any]:
    """Return what adds up a field of those records of a group that have these values."""
    return lambda rows: total(where(rows, **fields), field)


# ---- Pages ---------------------------------------------------------------------------------------


def between_markers(path: Path, begin: str, title: str, text: str) -> None:
    """Put text between the markers of a page, which is begun with a title if there is none."""
    page = path.read_text() if path.exists() else f"# {title}\n\n{begin}{END}\n"
    write_text(path, inserted(page, begin, text))


def inserted(page: str, begin: str, text: str) -> str:
    """Return a page with text behind a marker, up to `END`; what is around them by hand stays."""
    before, _, rest = page.partition(begin)
    return f"{before}{begin}\n{text}\n{END}{rest.partition(END)[2]}"


def table(rows: Iterable[Any], columns: Sequence[Column], texts: int = 1) -> str:
    """Return a Markdown table whose columns after the first `texts` are numbers."""
    pairs = [(column, column) if isinstance(column, str) else column for column in columns]
    rules = ["---"] * texts + ["---:"] * (len(pairs) - texts)
    lines = [line(head for head, _ in pairs), line(rules)]
    for row in rows:
        lines.append(line(_cell(row, of) for _, of in pairs))
    return "\n".join(lines)


def _cell(row: Any, of: str | Callable[[Any], object]) -> object:
    if not isinstance(of, str):
        return of(row)
    if not isinstance(row, list):
        return getattr(row, of)
    common = getattr(row[0], of)
    return common if isinstance(common, str) else total(row, of)


def line(cells: Iterable[object]) -> str:
    """Return a line of a Markdown table; see `number`."""
    escaped = (number(cell).replace("|", "\\|") for cell in cells)
    return f"| {' | '.join(escaped)} |"


def busy(snapshot: object) -> int:
    """Return the share of busy nodes that the name of a shipped snapshot states, in percent."""
    last = str(snapshot).rpartition("_")[2]
    return 0 if last == "empty" else int(last)


def number(value: object) -> str:
    """Return an integer with thousands set apart, a dash for None, and any text as it is."""
    return "-" if value is None else f"{value:,}" if isinstance(value, int) else str(value)


def percent(value: float | None, digits: int = 1) -> str:
    """Return a share in percent; a dash for None."""
    return "-" if value is None else f"{100 * value:.{digits}f} %"


# ---- Pictures ------------------------------------------------------------------------------------


def curve(
    panel: Axes, points: Iterable[tuple[float, float | None]], style: str = "o-", **look: Any
) -> None:
    """Draw a line with markers through the points that have a value."""
    known = [(x, y) for x, y in points if y is not None]
    panel.plot(*zip(*known, strict=True) if known else ((), ()), style, **{"ms": 4, **look})
