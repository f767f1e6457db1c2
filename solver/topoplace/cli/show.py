"""`topoplace show`: draw a result."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from topoplace.cli.options import Json, require_writable
from topoplace.cli.output import print_json, say


def show(
    result: Annotated[Path, typer.Argument(metavar="RESULT", help="A result file.")],
    *,
    png: Annotated[Path, typer.Option(metavar="F", help="The PNG file to write.")],
    as_json: Json = False,
) -> None:
    """Draw the machine of RESULT and the jobs on it."""
    from topoplace.report.torus import write_picture  # noqa: PLC0415 - heavy
    from topoplace.study.subject import load_result  # noqa: PLC0415 - heavy

    require_writable(png, "--png")
    write_picture(*load_result(result), png)
    say(f"picture: {png}", as_json=as_json)
    if as_json:
        print_json({"schema": "topoplace.show/1", "png": str(png)})
