"""`topoplace show`: draw a result."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from topoplace.cli.options import Json, require_writable
from topoplace.cli.output import print_json, say
from topoplace.errors import InputError

if TYPE_CHECKING:
    pass


def show(
    result: Annotated[
        Path, typer.Argument(metavar="RESULT", help="A result file, or - for stdin.")
    ],
    *,
    png: Annotated[Path | None, typer.Option(metavar="F", help="The PNG file to write.")] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="F", help="The page to write: figures and picture.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Draw the machine of RESULT and the jobs on it, or a plane of a mapping."""
    if png is None and html is None:
        raise InputError("a file to write, --png F or --html F", field="--png", found="neither")
    require_writable(png, "--png")
    require_writable(html, "--html")
    from topoplace.study.case import load_result  # noqa: PLC0415 - heavy

    document = load_result(result)
    if png is not None:
        from topoplace.report.figure import write_figure  # noqa: PLC0415 - heavy

        write_figure(document, png)
    if html is not None:
        from topoplace.report.page import write_result_page  # noqa: PLC0415 - heavy

        write_result_page(html, document)
    for label, path in (("picture", png), ("page", html)):
        if path is not None:
            say(f"{label}: {path}", as_json=as_json)
    if as_json:
        files = {"png": png, "html": html}
        named = {name: str(path) for name, path in files.items() if path is not None}
        print_json({"schema": "topoplace.show/1", **named})
