"""`topoplace check`: verify a result file independently of the solver."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from topoplace.cli.options import Json
from topoplace.cli.output import print_json, say
from topoplace.errors import ExitCode


def check(
    result: Annotated[
        Path, typer.Argument(metavar="RESULT", help="A result file, or - for stdin.")
    ],
    *,
    instance: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Also check that RESULT is of the instance in FILE: a snapshot, a mapping "
            "instance or another result.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Recompute every claim of RESULT from the instance inside; exit 0 only if all hold."""
    from topoplace.certify import check_file  # noqa: PLC0415 - heavy

    report = check_file(result, instance)
    if report.sha256 is not None:
        say(f"sha256 of the instance inside: {report.sha256}", as_json=as_json)
    say(str(report), as_json=as_json)
    if as_json:
        print_json(
            {
                "schema": "topoplace.check/1",
                "holds": report.holds,
                "verified": report.verified,
                "instance_sha256": report.sha256,
                "claims": [
                    {
                        "name": c.name,
                        "holds": c.holds,
                        "by_search": c.by_search,
                        "detail": c.detail,
                    }
                    for c in report.claims
                ],
            }
        )
    raise typer.Exit(ExitCode.DONE if report.verified else ExitCode.CHECK_FAILED)
