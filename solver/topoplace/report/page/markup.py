"""HTML and SVG from Python calls: what is not markup already is escaped, always."""

from __future__ import annotations

import html


class Markup(str):
    """Text that is markup and stands as it is; any other text is escaped."""

    __slots__ = ()


_EMPTY = frozenset({"img", "meta", "link", "circle", "line", "path", "rect"})


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
