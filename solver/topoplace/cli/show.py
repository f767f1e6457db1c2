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
    """Draw the machine of RESULT and the jobs on it, or a plane of a mapping."""
    from topoplace.study.subject import (  # noqa: PLC0415 - heavy
        load_mapping_result,
        load_result,
        load_tree_result,
        problem_of,
    )

    require_writable(png, "--png")
    problem = problem_of(result)
    if problem == "mapping":
        from topoplace.report.mapping_picture import write_mapping_picture  # noqa: PLC0415 - heavy

        write_mapping_picture(load_mapping_result(result), png)
    elif problem == "allocation":
        from topoplace.report.tree_picture import write_tree_picture  # noqa: PLC0415 - heavy

        write_tree_picture(load_tree_result(result), png)
    else:
        from topoplace.report.torus import write_picture  # noqa: PLC0415 - heavy

        write_picture(*load_result(result), png)
    say(f"picture: {png}", as_json=as_json)
    if as_json:
        print_json({"schema": "topoplace.show/1", "png": str(png)})
