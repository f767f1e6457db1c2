"""Aligned text and percentages; imports nothing heavy, as every command needs them."""

from __future__ import annotations

from collections.abc import Collection, Sequence


def gap_text(gap: float | None) -> str:
    """Return a gap as a percentage; a gap that is not zero never reads as zero."""
    if gap is None:
        return "-"
    text = f"{100 * gap:.2f} %"
    return "< 0.01 %" if gap > 0 and text == "0.00 %" else text


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
