"""What the colours of small pictures mean."""

from __future__ import annotations

from collections.abc import Sequence

from topoplace.report.colours import (
    DOWN_COLOUR,
    FREE_COLOUR,
    RUNNING_COLOURS,
    SERVICE_COLOUR,
    job_colour,
)
from topoplace.report.page.markup import Markup, element
from topoplace.report.page.thumbnails import FAR_COLOURS
from topoplace.study.ranking import Row

_JOBS_SHOWN = 6


def picture_legend(rows: Sequence[Row]) -> Markup:
    """Return a line that says what the colours of the pictures of a comparison mean."""
    if rows[0].problem == "mapping":
        return _legend(
            "A pixel is a router, coloured by the mean hops of its messages:",
            (FAR_COLOURS, "none to the machine's diameter, square-root scale"),
            ((FREE_COLOUR,), "without tasks"),
            ((DOWN_COLOUR,), "not usable"),
        )
    jobs = tuple(_hex(job_colour(idx)) for idx in range(_JOBS_SHOWN))
    common = (
        (jobs, "jobs started, one colour each"),
        (RUNNING_COLOURS, "running"),
        ((FREE_COLOUR,), "free"),
        ((DOWN_COLOUR,), "down"),
    )
    if rows[0].problem == "placement":
        what = "A pixel is a router, a tile a slice of the machine:"
        return _legend(what, *common, ((SERVICE_COLOUR,), "service"))
    return _legend("A pixel is a node, a row of pixels a leaf switch:", *common)


def _legend(what: str, *entries: tuple[tuple[str, ...], str]) -> Markup:
    spans = []
    for colours, meaning in entries:
        swatches = [element("i", class_="swatch", style=f"background:{c}") for c in colours]
        spans.append(element("span", *swatches, meaning))
    return element("p", element("span", what), *spans, class_="legend")


def _hex(colour: tuple[float, float, float]) -> str:
    return "#" + "".join(f"{round(255 * part):02x}" for part in colour)
