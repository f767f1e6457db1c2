"""What the studies share when they write: pages, tables, CSV files and pictures."""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import datetime
import importlib.metadata
import io
import multiprocessing
import platform
import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_type_hints

from topoplace import __version__
from topoplace.snapshot.files import write_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Record = TypeVar("Record")

STUDIES = Path(__file__).resolve().parent.parent / "docs" / "studies"
PACKAGES = ("numpy", "ortools")


def stamp(script: str, arguments: Sequence[str] | None) -> str:
    """Return what a run has to say of itself: date, versions and command.

    `arguments` are those given to the script's `main`; None for the command line's.
    """
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in PACKAGES)
    given = list(sys.argv[1:] if arguments is None else arguments)
    for option in ("-o", "--output", "--work", "--before", "--data"):  # nobody's business
        if option in given:
            at = given.index(option)
            del given[at : at + 2]
    command = shlex.join(["python", f"scripts/{script}", *given])
    return (
        f"{datetime.date.today()}, topoplace {__version__}, Python {platform.python_version()}, "
        f"{versions}. Command:\n\n```sh\n{command}\n```"
    )


def write_between_markers(path: Path, begin: str, end: str, title: str, text: str) -> None:
    """Put text between the markers of a page; what is written around them by hand stays."""
    page = path.read_text() if path.exists() else f"# {title}\n\n{begin}{end}\n"
    before, _, rest = page.partition(begin)
    after = rest.partition(end)[2]
    write_text(path, f"{before}{begin}\n{text}\n{end}{after}")


def write_rows(path: Path, rows: Sequence[Any]) -> None:
    """Write dictionaries, or dataclass instances of one type, as a CSV file; None is empty."""
    stream = io.StringIO()
    records = [row if isinstance(row, dict) else dataclasses.asdict(row) for row in rows]
    writer = csv.DictWriter(stream, list(records[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    write_text(path, stream.getvalue())


def read_rows(path: Path, of: type[Record]) -> list[Record]:
    """Return the records of a CSV file that `write_rows` wrote; none if there is no file.

    Fields are texts, numbers or truth values, or None.
    """
    if not path.exists():
        return []
    kinds = {name: get_args(kind) or (kind,) for name, kind in get_type_hints(of).items()}
    with path.open(newline="") as stream:
        return [
            of(**{name: _value(text, kinds[name]) for name, text in row.items()})
            for row in csv.DictReader(stream)
        ]


def _value(text: str, kinds: Sequence[Any]) -> Any:
    if not text and NoneType in kinds:
        return None
    return text == "True" if kinds[0] is bool else kinds[0](text)


def markdown(head: Sequence[str], num_texts: int, rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table whose columns after the first `num_texts` are numbers."""
    rules = ["---"] * num_texts + ["---:"] * (len(head) - num_texts)
    return "\n".join(line(cells) for cells in [head, rules, *rows])


def line(cells: Iterable[object]) -> str:
    """Return a line of a Markdown table."""
    return f"| {' | '.join(map(str, cells))} |"


def table_head(head: Sequence[str]) -> list[str]:
    """Return the two lines with which a Markdown table of texts begins."""
    return [line(head), line(["---"] * len(head))]


def say(lines: list[str]) -> list[str]:
    """Print the lines of a table as they come about, and return them."""
    for one in lines:
        print(one, flush=True)
    return lines


def number(value: int | None) -> str:
    """Return an integer with thousands set apart; a dash for None."""
    return "-" if value is None else f"{value:,}"


def percent(value: float | None) -> str:
    """Return a share in percent; a dash for None."""
    return "-" if value is None else f"{100 * value:.1f} %"


def spawned(jobs: int) -> ProcessPoolExecutor:
    """Return processes that are spawned: OR-Tools and numba have threads that a fork would lose."""
    return ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn"))


@contextlib.contextmanager
def picture(path: Path, rows: int, columns: int, **layout: Any) -> Iterator[tuple[Figure, Any]]:
    """Yield a figure and its panels, by row and column, and write it as a PNG with a palette.

    That is a third of the bytes, and the same every time. All panels begin at 0 and have a grid.
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
    Image.open(stream).convert("RGB").quantize(64).save(path, optimize=True)
    plt.close(figure)
