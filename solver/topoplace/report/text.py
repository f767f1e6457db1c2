"""Tables of text, numbers and percentages; light, as every command needs them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from topoplace.snapshot.files import csv_of

_LONG = 32


def gap_text(gap: float | None) -> str:
    """Return a gap as a percentage; a gap that is not zero never reads as zero."""
    if gap is None:
        return "-"
    text = f"{100 * gap:.2f} %"
    return "< 0.01 %" if gap > 0 and text == "0.00 %" else text


def count_text(value: object, form: str = ",") -> str:
    """Return a number with thousands set apart, or in another form; a dash for None."""
    if value is None:
        return "-"
    return f"{value:{form}}" if isinstance(value, int | float) else str(value)


def records_csv(records: Sequence[Mapping[str, object]]) -> str:
    """Return records as CSV with a header line of all their names; absent values are empty."""
    names = dict.fromkeys(name for record in records for name in record)
    return csv_of(names, ([record.get(name) for name in names] for record in records))


@dataclass(frozen=True)
class Table:
    """A table of text: its header, its rows, and which columns are numbers, set flush right."""

    header: Sequence[str]
    cells: Sequence[Sequence[str]]
    numbers: Collection[int]

    @property
    def long(self) -> set[int]:
        """Columns of long texts, which take some width of a page."""
        columns = range(len(self.header))
        return {k for k in columns if any(len(row[k]) > _LONG for row in self.cells)}

    def __str__(self) -> str:
        return plain_table(self.header, self.cells, self.numbers)


def plain_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], right: Collection[int] = ()
) -> str:
    """Return an aligned table of text; `right` lists the columns set flush right."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    lines = []
    for row in [header, ["-" * width for width in widths], *rows]:
        cells = [
            cell.rjust(width) if k in right else cell.ljust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)
