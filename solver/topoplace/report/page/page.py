"""The page of a comparison: methods over all instances, then every instance with its pictures."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from topoplace.report.page.exhibits import Exhibit, Exhibits
from topoplace.report.page.markup import Markup, element, framed, image_url, join
from topoplace.report.page.plots import gap_plot, legend, profile_plot, time_plot
from topoplace.report.page.thumbnails import picture_legend
from topoplace.report.table import BREAKS_RULE, SUMMARY_COLUMNS, Column, columns_of
from topoplace.report.text import gap_text
from topoplace.snapshot.files import write_text
from topoplace.study.compare import Comparison
from topoplace.study.ranking import Row, by_instance, certified_gap, summaries

_SHOWN_PIXELS = 300
_OPEN_INSTANCES = 2


def write_comparison_page(path: Path, comparison: Comparison, exhibits: Exhibits) -> None:
    """Write the page of a comparison, all of it or nothing (see `comparison_page`)."""
    write_text(path, comparison_page(comparison, exhibits, path.parent))


def comparison_page(comparison: Comparison, exhibits: Exhibits, folder: Path) -> str:
    """Return the page of a comparison as HTML that needs no other file, network or script.

    Parameters
    ----------
    comparison
        Its problems follow one another.
    exhibits
        The pictures and files of the results behind it.
    folder
        Where the page will be: links to result files are relative to it.
    """
    rows = comparison.rows
    methods = dict.fromkeys(row.method for row in rows)
    notes = [f"* {BREAKS_RULE}"] if any(row.breaks_rule for row in rows) else []
    notes += comparison.notes
    if exhibits.left_out:
        notes.append(f"{exhibits.left_out:,} pictures are left out to keep the page small")
    return framed(
        f"{_count(len(methods), 'method')} on {_count(len(by_instance(rows)), 'instance')}",
        _settings(exhibits),
        *(element("p", note, class_="note") for note in notes),
        *(part for own in comparison.by_problem for part in _problem(own, exhibits, folder)),
    )


def _problem(rows: Sequence[Row], exhibits: Exhibits, folder: Path) -> list[Markup]:
    groups = by_instance(rows)
    methods = list(dict.fromkeys(row.method for row in rows))
    columns = columns_of(rows, whole=True)
    opened = len(groups) <= _OPEN_INSTANCES
    return [
        element("h2", f"Methods of {rows[0].problem}"),
        _methods(rows),
        *_plots(rows, methods),
        element("h2", "Gap by instance"),
        _gaps(groups, methods),
        element("h2", "Instances"),
        picture_legend(rows),
        *(_instance(group, columns, exhibits, folder, opened=opened) for group in groups),
    ]


def _settings(exhibits: Exhibits) -> Markup:
    found = exhibits.settings.items()
    text = "; ".join(f"{name}: {', '.join(sorted(values))}" for name, values in found)
    return element("p", text, class_="note")


def _methods(rows: Sequence[Row]) -> Markup:
    entries = summaries(rows)
    most = max((entry.wins for entry in entries), default=0)
    body = [
        element(
            "tr",
            *_cells(SUMMARY_COLUMNS, entry),
            class_="win" if entry.wins == most > 0 else None,
        )
        for entry in entries
    ]
    note = (
        "A win is rank 1 on an instance, shared or not. Gaps are to the best bound that any of "
        "the methods proved, over conforming answers only."
    )
    return join(_table(SUMMARY_COLUMNS, body), element("p", note, class_="note"))


def _plots(rows: Sequence[Row], methods: Sequence[str]) -> list[Markup]:
    return [
        element("h2", "Gap distribution"),
        gap_plot(rows, methods),
        element("h2", "Performance profile"),
        profile_plot(rows, methods),
        legend(methods),
        element(
            "p",
            "Share of its instances on which a method is within a factor of the best one "
            "(Dolan and More 2002); instances without a ranked answer count as failures.",
            class_="note",
        ),
        element("h2", "Time"),
        time_plot(rows, methods),
    ]


def _gaps(groups: Sequence[Sequence[Row]], methods: Sequence[str]) -> Markup:
    """Return the table of instances by methods: the gap of each pair, winners bold."""
    head = [element("th", "instance"), *(element("th", m, class_="num") for m in methods)]
    body = []
    for group in groups:
        of_method = {row.method: row for row in group}
        link = element("a", group[0].label, href=f"#{_anchor(group[0])}")
        cells = [_gap(of_method.get(method)) for method in methods]
        body.append(element("tr", element("td", link), *cells))
    return element("div", element("table", element("tr", *head), *body), class_="wide")


def _gap(row: Row | None) -> Markup:
    if row is None:
        return element("td")
    gap = certified_gap(row)
    win = " win" if row.rank == 1 else ""
    if gap is None:
        return element("td", "*" if row.breaks_rule else "-", class_=f"num{win}")
    shade = f"--far:{min(0.45, 0.04 + 0.8 * gap):.2f}"
    kind = f"num gap{' zero' if gap == 0 else ''}{win}"
    return element("td", gap_text(gap), class_=kind, style=None if gap == 0 else shade)


def _anchor(row: Row) -> str:
    return "-".join(filter(None, ("i", row.sha256[:16], row.interference)))


def _instance(
    group: Sequence[Row],
    columns: Sequence[Column],
    exhibits: Exhibits,
    folder: Path,
    *,
    opened: bool,
) -> Markup:
    taken = [(row, exhibits.of(row)) for row in group]
    body = []
    for row, exhibit in taken:
        link = Markup("")
        if exhibit is not None and exhibit.file is not None:
            link = element("a", "result", href=_relative(exhibit.file, folder))
        best = "win" if row.rank == 1 else None
        body.append(element("tr", *_cells(columns, row), element("td", link), class_=best))
    table = _table((*columns, Column("", str, number=False)), body)
    pictures = [_picture(row, exhibit) for row, exhibit in taken if exhibit is not None]
    winners = ", ".join(row.method for row in group if row.rank == 1) or "none"
    summary = element("summary", group[0].label, element("span", f"best: {winners}"))
    # Links lead inside: browsers open a closed element around the target of a link.
    gallery = element("div", *pictures, class_="gallery")
    inside = element("div", table, gallery, id=_anchor(group[0]))
    return element("details", summary, inside, open=opened)


def _picture(row: Row, exhibit: Exhibit) -> Markup:
    picture = exhibit.picture
    if picture is None:
        return Markup("")
    scale = max(1, _SHOWN_PIXELS // max(picture.width, picture.height))
    image = element(
        "img",
        src=image_url(picture.png),
        width=picture.width * scale,
        height=picture.height * scale,
        alt=f"{row.method} on {row.instance}",
        loading="lazy",
        decoding="async",
    )
    return element("figure", image, element("figcaption", row.method))


def _cells(columns: Sequence[Column], entry: object) -> list[Markup]:
    return [
        element("td", column.text(entry), class_="num" if column.number else None)
        for column in columns
    ]


def _table(columns: Sequence[Column], body: Sequence[Markup]) -> Markup:
    head = [element("th", c.name, class_="num" if c.number else None) for c in columns]
    return element("div", element("table", element("tr", *head), *body), class_="wide")


def _relative(file: Path, folder: Path) -> str:
    return quote(Path(os.path.relpath(file, folder)).as_posix())


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
