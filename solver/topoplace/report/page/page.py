"""Pages: of a comparison, methods over all instances and then each instance; of one result.

A page is one file that loads nothing from anywhere and has no scripts. It is light or dark as the
reader's system asks for, its pictures too. Its text stands in `templates`.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from topoplace import __version__
from topoplace.report.answer import rows_of
from topoplace.report.figure import figure_png
from topoplace.report.page.exhibits import Exhibits
from topoplace.report.page.plots import NUM_COLOURS, gap_strips, profiles, time_strips
from topoplace.report.page.thumbnails import picture_legend
from topoplace.report.summary import AnyResult, summary
from topoplace.report.table import BREAKS_RULE, SUMMARY_COLUMNS, columns_of
from topoplace.report.text import gap_text
from topoplace.result.mapping import MappingResult
from topoplace.snapshot.files import write_text
from topoplace.study.compare import Comparison
from topoplace.study.ranking import Row, by_instance, certified_gap, summaries


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
    notes = [f"* {BREAKS_RULE}"] if any(row.breaks_rule for row in rows) else []
    notes += comparison.notes
    if exhibits.left_out:
        notes.append(f"{exhibits.left_out:,} pictures are left out to keep the page small")

    def link(row: Row) -> str | None:
        file = exhibits.file_of(row)
        return None if file is None else quote(Path(os.path.relpath(file, folder)).as_posix())

    num_methods, num_instances = len({row.method for row in rows}), len(by_instance(rows))
    return _rendered(
        "comparison.html",
        title=f"{_count(num_methods, 'method')} on {_count(num_instances, 'instance')}",
        settings="; ".join(
            f"{name}: {', '.join(sorted(values))}" for name, values in exhibits.settings.items()
        ),
        notes=notes,
        parts=[_part(own) for own in comparison.by_problem],
        summary_columns=SUMMARY_COLUMNS,
        certified_gap=certified_gap,
        anchor=lambda row: "-".join(filter(None, ("i", row.sha256[:16], row.interference))),
        picture_of=exhibits.picture_of,
        link=link,
    )


def _part(rows: Sequence[Row]) -> dict[str, Any]:
    """Return what a page says of one problem."""
    methods = list(dict.fromkeys(row.method for row in rows))
    return {
        "problem": rows[0].problem,
        "methods": methods,
        "summaries": summaries(rows),
        "gaps": gap_strips(rows, methods),
        "profile": profiles(rows, methods),
        "times": time_strips(rows, methods),
        "groups": by_instance(rows),
        "columns": columns_of(rows, whole=True),
        "legend": picture_legend(rows[0].problem),
    }


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def write_result_page(path: Path, result: AnyResult) -> None:
    """Write the page of a result, all of it or nothing (see `result_page`)."""
    write_text(path, result_page(result))


def result_page(result: AnyResult) -> str:
    """Return a result as HTML that needs no other file, network or script.

    Raises
    ------
    InputError
        If the instance inside is not valid.
    """
    limit = result.limits.time_limit
    facts = {
        "instance": result.instance.name,
        "method": result.method,
        "status": result.status,
        "proof": result.proof,
        "seconds": f"{result.seconds:,.2f}",
        "time limit": "none" if limit is None else f"{limit:g} s",
        "seed": "-" if result.seed is None else result.seed,
        "versions": ", ".join(f"{name} {number}" for name, number in result.versions.items()),
    }
    return _rendered(
        "result.html",
        title=f"{result.instance.name}, {result.method}",
        facts=facts,
        summary=summary(result, table=False),
        starts=None if isinstance(result, MappingResult) else rows_of(result),
        light=figure_png(result),
        dark=figure_png(result, dark=True),
    )


def _rendered(template: str, **values: Any) -> str:
    pages = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    pages.globals |= {"version": __version__, "num_colours": NUM_COLOURS}
    pages.filters |= {"gap_text": gap_text, "image_url": _image_url}
    return pages.get_template(template).render(values) + "\n"


def _image_url(png: bytes) -> str:
    """Return a PNG image as an address that holds the image itself."""
    return f"data:image/png;base64,{base64.b64encode(png).decode('ascii')}"
