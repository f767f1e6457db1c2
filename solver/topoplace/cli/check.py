"""`topoplace check`: verify a result file independently of the solver."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from topoplace.cli.options import Json
from topoplace.cli.output import print_json, say
from topoplace.errors import ExitCode


def check(
    result: Annotated[Path, typer.Argument(metavar="RESULT", help="A result file.")],
    *,
    as_json: Json = False,
) -> None:
    """Recompute every claim of RESULT from the instance inside; exit 0 only if all hold."""
    from topoplace.certify import check_file  # noqa: PLC0415 - heavy

    report = check_file(result)
    for claim in report.claims:
        mark = "holds" if claim.holds else "FAILS"
        say(f"{mark}  {claim.name}: {claim.detail}", as_json=as_json)
    say("every claim holds" if report.holds else "NOT verified", as_json=as_json)
    if as_json:
        print_json(
            {
                "schema": "topoplace.check/1",
                "holds": report.holds,
                "claims": [
                    {"name": c.name, "holds": c.holds, "detail": c.detail} for c in report.claims
                ],
            }
        )
    raise typer.Exit(ExitCode.DONE if report.holds else ExitCode.CHECK_FAILED)
