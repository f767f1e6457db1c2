"""What all pages share: the head, the style, and a rule that nothing may be loaded from outside."""

from __future__ import annotations

import base64

from topoplace import __version__
from topoplace.report.page.markup import Markup, element, join
from topoplace.report.page.style import STYLE

_ONLY_OWN = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


def framed(title: str, *body: Markup) -> str:
    """Return a page: one file, nothing loaded from anywhere, without scripts."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        # Browsers then refuse to load anything, whatever a name in the data may hold.
        element("meta", http_equiv="Content-Security-Policy", content=_ONLY_OWN),
        element("link", rel="icon", href="data:,"),
        element("title", title),
        element("style", Markup(STYLE)),
    )
    foot = element("p", f"topoplace {__version__}", class_="note")
    page = join(head, element("body", element("h1", title), *body, foot))
    return f'<!DOCTYPE html>\n<html lang="en">{page}</html>\n'


def image_url(png: bytes) -> str:
    """Return a PNG image as an address that holds the image itself."""
    return f"data:image/png;base64,{base64.b64encode(png).decode('ascii')}"
