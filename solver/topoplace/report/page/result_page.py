"""The page of one result: its figures and its picture."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

from topoplace.machine import Torus
from topoplace.report.page.frame import framed, image_url
from topoplace.report.page.markup import Markup, element
from topoplace.report.summary import summary
from topoplace.result import PlacementResult
from topoplace.result.mapping import MappingResult
from topoplace.result.tree import AllocationResult
from topoplace.snapshot import prepare
from topoplace.snapshot.files import write_text
from topoplace.snapshot.machines import resolve_machine

if TYPE_CHECKING:
    from matplotlib.figure import Figure

AnyResult = PlacementResult | AllocationResult | MappingResult

_DPI = 100


def write_result_page(path: Path, result: AnyResult) -> None:
    """Write the page of a result, all of it or nothing (see `result_page`)."""
    write_text(path, result_page(result))


def result_page(result: AnyResult) -> str:
    """Return a result as HTML that needs no other file, network or script.

    Mappings onto a matrix of distances have no picture: such a machine has no places to draw.

    Raises
    ------
    InputError
        If the instance inside is not valid.
    """
    figure, text = _picture_and_text(result)
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
        element("pre", text),
        *_answer(result),
        *_pictures(figure, result),
    )


def _picture_and_text(result: AnyResult) -> tuple[Figure | None, str]:
    """Return the figure of a result, if its machine can be drawn, and its summary."""
    text = summary(result, table=False)
    if isinstance(result, MappingResult):
        from topoplace.mapping.problem import prepare_mapping  # noqa: PLC0415 - heavy
        from topoplace.report.mapping_picture import mapping_figure  # noqa: PLC0415 - heavy

        drawable = isinstance(prepare_mapping(result.instance).machine, Torus)
        return mapping_figure(result) if drawable else None, text
    if isinstance(result, AllocationResult):
        from topoplace.report.tree_picture import tree_figure  # noqa: PLC0415 - heavy

        return tree_figure(result), text
    from topoplace.report.torus import placement_figure  # noqa: PLC0415 - heavy

    state = prepare(resolve_machine(result.instance))
    return placement_figure(result, state), text


def _answer(result: AnyResult) -> list[Markup]:
    """Return the table of all requests that start, every place in full."""
    if isinstance(result, MappingResult):
        return []
    from topoplace.report.answer import rows_of  # noqa: PLC0415 - heavy

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


def _pictures(figure: Figure | None, result: AnyResult) -> list[Markup]:
    if figure is None:
        return []
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=_DPI)
    name = f"{result.method} on {result.instance.name}"
    image = element("img", src=image_url(stream.getvalue()), alt=name)
    return [element("h2", "Picture"), element("figure", image, class_="drawn")]


def _seconds(limit: float | None) -> str:
    return "none" if limit is None else f"{limit:g} s"
