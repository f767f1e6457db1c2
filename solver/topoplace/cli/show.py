"""`topoplace show`: draw a result."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from topoplace.cli.options import Json, require_writable
from topoplace.cli.output import print_json, say
from topoplace.errors import InputError

if TYPE_CHECKING:
    from topoplace.report.page.result_page import AnyResult


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
    document = _drawn(result, png)
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


def _drawn(path: Path, png: Path | None) -> AnyResult:
    """Return the result in a file, drawn into a PNG file if one is named."""
    from topoplace.study.subject import (  # noqa: PLC0415 - heavy
        load_mapping_result,
        load_result,
        load_tree_result,
        problem_of,
    )

    problem = problem_of(path)
    if problem == "mapping":
        from topoplace.report.mapping_picture import write_mapping_picture  # noqa: PLC0415 - heavy

        mapping = load_mapping_result(path)
        if png is not None:
            write_mapping_picture(mapping, png)
        return mapping
    if problem == "allocation":
        from topoplace.report.tree_picture import write_tree_picture  # noqa: PLC0415 - heavy

        allocation = load_tree_result(path)
        if png is not None:
            write_tree_picture(allocation, png)
        return allocation
    from topoplace.report.torus import write_picture  # noqa: PLC0415 - heavy

    placement, state = load_result(path)
    if png is not None:
        write_picture(placement, state, png)
    return placement
