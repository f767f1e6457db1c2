"""Help that shows its texts as they are written.

By itself, typer reads them as markup of rich, which makes an emoji of ``:ring:`` and drops what
stands in brackets.
"""

from __future__ import annotations

import inspect
from typing import Any

import typer.core


def _as_written(*, text: str, style: str = "", markup_mode: object = None) -> Any:
    """Return a text of the help, in place of typer's function that parses it."""
    from typer.rich_utils import highlighter

    shown = highlighter(inspect.cleandoc(text))
    shown.style = style
    return shown


def _show_texts_as_written() -> None:
    from typer import rich_utils  # which loads rich

    rich_utils._make_rich_text = _as_written


class PlainCommand(typer.core.TyperCommand):
    """A command whose help has no markup."""

    def format_help(self, *given: Any) -> None:
        """Write the help of the command."""
        _show_texts_as_written()
        super().format_help(*given)


class PlainGroup(typer.core.TyperGroup):
    """The commands under one name, whose help has no markup."""

    def format_help(self, *given: Any) -> None:
        """Write the help of the group."""
        _show_texts_as_written()
        super().format_help(*given)
