"""The page of one result: its figures and its picture."""

from __future__ import annotations

from pathlib import Path

from topoplace.report.answer import rows_of
from topoplace.report.figure import figure_png
from topoplace.report.page.markup import Markup, element, framed, image_url
from topoplace.report.summary import AnyResult, summary
from topoplace.result.mapping import MappingResult
from topoplace.snapshot.files import write_text


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
    facts = {
        "instance": result.instance.name,
        "method": result.method,
        "status": str(result.status),
        "proof": str(result.proof),
        "seconds": f"{result.seconds:,.2f}",
        "time limit": _seconds(result.limits.time_limit),
        "seed": "-" if result.seed is None else str(result.seed),
        "versions": ", ".join(f"{name} {number}" for name, number in result.versions.items()),
    }
    lines = [element("tr", element("th", k), element("td", v)) for k, v in facts.items()]
    return framed(
        f"{result.instance.name}, {result.method}",
        element("div", element("table", *lines), class_="wide"),
        element("h2", "Figures"),
        element("pre", summary(result, table=False)),
        *_answer(result),
        element("h2", "Picture"),
        _picture(result),
    )


def _answer(result: AnyResult) -> list[Markup]:
    """Return the table of all requests that start, every place in full."""
    if isinstance(result, MappingResult):
        return []
    rows = rows_of(result)
    if not rows.cells:
        return []
    kinds = ["num" if k in rows.numbers else None for k in range(len(rows.header))]
    head = [element("th", name, class_=k) for name, k in zip(rows.header, kinds, strict=True)]
    body = [
        element("tr", *(element("td", text, class_=k) for text, k in zip(row, kinds, strict=True)))
        for row in rows.cells
    ]
    table = element("table", element("tr", *head), *body)
    return [element("h2", "What starts"), element("div", table, class_="wide")]


def _picture(result: AnyResult) -> Markup:
    """Return the picture of a result, a light and a dark one: the reader's browser chooses."""
    light, dark = (image_url(figure_png(result, dark=dark)) for dark in (False, True))
    source = element("source", srcset=dark, media="(prefers-color-scheme: dark)")
    image = element("img", src=light, alt=f"{result.method} on {result.instance.name}")
    return element("figure", element("picture", source, image), class_="drawn")


def _seconds(limit: float | None) -> str:
    return "none" if limit is None else f"{limit:g} s"
