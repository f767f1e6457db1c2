"""Pages: of a comparison, methods over all instances and then each instance; of one result.

A page is one file that loads nothing from anywhere. It is light or dark as the reader's system asks
for, its pictures too. Its text stands in `templates`. Its one script, `table.js`, sorts and filters
tables, which are whole without it; browsers run no other, since the page names its hash.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from topoplace.errors import InputError, number_of, unknown_name
from topoplace.report.figure import figures_of as figures_of_result
from topoplace.report.figure import png_of, title
from topoplace.report.page.exhibits import Exhibits, swatches
from topoplace.report.page.plots import NUM_COLOURS, Plot, gap_strips, profiles, time_strips
from topoplace.report.studies import BREAKS_RULE, SUMMARY_COLUMNS, columns_of
from topoplace.report.summary import LEVEL_HEADER, figures_of, headline, level_rows
from topoplace.report.text import Table, gap_text
from topoplace.report.view import AnyResult, view_of
from topoplace.study.compare import Comparison
from topoplace.study.ranking import Row, by_instance, certified_gap, summaries
from topoplace.version import __version__

_WORDS = {
    "breaks_rule": BREAKS_RULE,
    "number_of": number_of,
    "summary_columns": SUMMARY_COLUMNS,
}
_FILTERS: dict[str, Callable[..., object]] = {
    "by_instance": by_instance,
    "certified_gap": certified_gap,
    "columns": columns_of,
    "gap_strips": gap_strips,
    "profiles": profiles,
    "summaries": summaries,
    "swatches": swatches,
    "time_strips": time_strips,
}
"""What templates ask of the rows of a problem."""


def comparison_page(comparison: Comparison, exhibits: Exhibits, folder: Path) -> str:
    """Return the page of a comparison as HTML that needs no other file and no network.

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

    def link(row: Row) -> str | None:
        file = exhibits.file_of(row)
        return None if file is None else quote(Path(os.path.relpath(file, folder)).as_posix())

    return rendered(
        "comparison.html",
        title=f"{number_of(len({row.method for row in rows}), 'method')} on "
        f"{number_of(len(by_instance(rows)), 'instance')}",
        comparison=comparison,
        broken=any(row.breaks_rule for row in rows),
        exhibits=exhibits,
        link=link,
    )


_PLOTS: dict[str, tuple[str, Callable[..., Plot | None]]] = {
    "gaps": ("gap distribution", gap_strips),
    "seconds": ("time", time_strips),
    "profile": ("performance profile", profiles),
}
_TITLE, _LEGEND = 36, 18  # pixels above a plot, and of a name below a profile


def comparison_svg(comparison: Comparison, what: str) -> str:
    """Return a plot of each problem of a comparison as one SVG file, as its page draws them.

    Raises
    ------
    InputError
        If there is no such plot, or no method proved a bound, so that there are no gaps.
    """
    if what not in _PLOTS:
        raise unknown_name(what, _PLOTS, field="what")
    title, draw = _PLOTS[what]
    plots, height = [], 0.0
    for rows in comparison.by_problem:
        methods = list(dict.fromkeys(row.method for row in rows))
        plot = draw(rows, methods)
        if plot is not None:
            plots.append((rows[0].problem, plot, height))
            names = _LEGEND * (len(methods) + 1) if what == "profile" else 0
            height += plot.height + _TITLE + names
    if not plots:
        raise InputError("a comparison in which a method proved a bound", field="what", value=what)
    return rendered(
        "plot.svg",
        title=title,
        plots=plots,
        is_profile=what == "profile",
        width=plots[0][1].width,
        height=height,
    )


def result_page(result: AnyResult) -> str:
    """Return a result as HTML that needs no other file and no network.

    Raises
    ------
    InputError
        If the instance inside is not valid.
    """
    view = view_of(result)
    return rendered(
        "result.html",
        title=f"{result.instance.name}, {result.method}",
        result=result,
        headline=headline(result),
        levels=Table(LEVEL_HEADER, level_rows(result), (1, 2, 3)),
        summary="\n".join([*view.about(), *figures_of(view)]),
        alt="; ".join(title(result)),
        listings=view.listings,
        light=png_of(*figures_of_result(result)),
        dark=png_of(*figures_of_result(result, dark=True)),
    )


def rendered(template: str, **values: Any) -> str:
    """Return a page of a template."""
    folder = Path(__file__).parent / "templates"
    script = (folder / "table.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    pages = Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    pages.globals |= {
        "version": __version__,
        "num_colours": NUM_COLOURS,
        "script": script,
        "script_hash": f"sha256-{digest}",
        **_WORDS,
    }
    pages.filters |= {"gap_text": gap_text, "image_url": _image_url, **_FILTERS}
    return pages.get_template(template).render(values) + "\n"


def _image_url(png: bytes) -> str:
    """Return a PNG image as an address that holds the image itself."""
    return f"data:image/png;base64,{base64.b64encode(png).decode('ascii')}"
