"""What all pages share: elements that escape what they hold, the style sheet, and the frame.

A page loads nothing from anywhere, has no scripts, and is light or dark as the reader's system asks
for, its pictures too.
"""

from __future__ import annotations

import base64
import html

from topoplace import __version__

# Of middle lightness, so that lines and points stand out on white and on near-black; further
# methods repeat them with dashed lines.
METHOD_COLOURS = (
    "#3b82f6", "#e8731a", "#1f9d61", "#d6409f", "#8b5cf6",
    "#b08900", "#0899ad", "#e5484d", "#7d8590", "#a1724e",
)  # fmt: skip
STYLE = (
    """
:root{color-scheme:light dark;--paper:#fff;--ink:#1c2024;--soft:#60646c;--rule:#d9dce1;
--panel:#f6f7f9;--link:#0b5cad;--best:29,158,97;--worst:229,72,77}
@media (prefers-color-scheme:dark){:root{--paper:#15171a;--ink:#e6e8eb;--soft:#9ba1a8;
--rule:#34383d;--panel:#1d2024;--link:#7ab7ff}}
*{box-sizing:border-box}
body{margin:0 auto;padding:1.5rem;max-width:76rem;background:var(--paper);color:var(--ink);
font:15px/1.5 system-ui,sans-serif}
h1{font-size:1.5rem;margin:0 0 .2rem}h2{font-size:1.15rem;margin:2rem 0 .5rem}
a{color:var(--link)}p{margin:.4rem 0}.note{color:var(--soft);font-size:.88rem;max-width:60rem}
.wide{overflow-x:auto}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.88rem}
th,td{padding:.22rem .65rem;border-bottom:1px solid var(--rule);text-align:left;white-space:nowrap}
th{color:var(--soft);font-weight:600}
.num{text-align:right}tr.win td:first-child,td.win{font-weight:700}
td.gap{background:rgba(var(--worst),var(--far))}td.gap.zero{background:rgba(var(--best),.22)}
details{border:1px solid var(--rule);border-radius:6px;margin:.5rem 0;background:var(--panel)}
summary{padding:.45rem .8rem;cursor:pointer;font-weight:600}
summary span{color:var(--soft);font-weight:400;margin-left:.7rem}
details>div{padding:.2rem .8rem .8rem}
.gallery{display:flex;flex-wrap:wrap;gap:1rem;margin-top:.8rem}
figure{margin:0}figcaption{font-size:.82rem;color:var(--soft);margin-top:.25rem}
figure img{display:block;image-rendering:pixelated;border:1px solid var(--rule);
background:var(--paper);max-width:100%}
figure.drawn img{image-rendering:auto;border:0;width:100%;max-width:60rem;height:auto}
.plot{display:block;width:100%;max-width:62rem;height:auto;overflow:visible}
svg text{font:12px system-ui,sans-serif;fill:var(--ink)}svg .title,svg .median{fill:var(--soft)}
.grid{stroke:var(--rule);stroke-width:1}.tick{stroke:var(--ink);stroke-width:2}
.dot{fill:var(--m);fill-opacity:.55;stroke:var(--m);stroke-opacity:.9}
.line{fill:none;stroke:var(--m);stroke-width:2.2}.line:hover{stroke-width:4}
.dash1{stroke-dasharray:7 4}.dash2{stroke-dasharray:2 3}
.legend span{display:inline-flex;align-items:center;gap:.4rem;margin-right:1.1rem;
font-size:.88rem}
.swatch{display:inline-block;width:.85rem;height:.85rem;border:1px solid var(--soft)}
pre{background:var(--panel);border:1px solid var(--rule);border-radius:6px;padding:.8rem;
white-space:pre-wrap;overflow-wrap:anywhere;font-size:.82rem}
""".strip()
    + "\n"
    + "".join(f".m{idx}{{--m:{colour}}}" for idx, colour in enumerate(METHOD_COLOURS))
)
_ONLY_OWN = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


class Markup(str):
    """Text that is markup and stands as it is; any other text is escaped."""

    __slots__ = ()


_EMPTY = frozenset({"img", "meta", "link", "source", "circle", "line", "path"})


def element(name: str, /, *children: str | Markup, **attributes: object) -> Markup:
    """Return an element.

    Parameters
    ----------
    name
        Its tag.
    children
        Escaped unless they are `Markup`.
    attributes
        Escaped. ``_`` stands for ``-``, and a ``_`` at the end is dropped (``class_``). True is
        an attribute without value; those that are None or False are left out.
    """
    text = name
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        text += f" {key.rstrip('_').replace('_', '-')}"
        if value is not True:
            text += f'="{html.escape(str(value))}"'
    if name in _EMPTY and not children:
        return Markup(f"<{text}/>")
    return Markup(f"<{text}>{join(*children)}</{name}>")


def join(*parts: str | Markup) -> Markup:
    """Return parts one after the other, escaped unless they are `Markup`."""
    return Markup(
        "".join(part if isinstance(part, Markup) else html.escape(part) for part in parts)
    )


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
