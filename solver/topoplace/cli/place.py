"""`topoplace place`: place the queue of a snapshot."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from topoplace.cli.options import (
    InterferenceRule,
    Json,
    Picture,
    Seed,
    TimeLimit,
    require_writable,
    solve_options,
)
from topoplace.cli.output import say


def place(
    snapshot: Annotated[Path, typer.Argument(metavar="SNAPSHOT", help="A snapshot file.")],
    *,
    method: Annotated[str, typer.Option(metavar="NAME", help="The placement method.")] = "exact",
    time_limit: TimeLimit = None,
    interference: InterferenceRule = "strict",
    seed: Seed = 0,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="RESULT", help="Write the result file here."),
    ] = None,
    png: Picture = None,
    as_json: Json = False,
) -> None:
    """Place the queue of SNAPSHOT on its machine and prove how good the answer is."""
    from topoplace.placement.solve import place as solve  # noqa: PLC0415 - heavy
    from topoplace.report.summary import exit_code_of, summary  # noqa: PLC0415 - heavy
    from topoplace.snapshot import load_snapshot  # noqa: PLC0415 - heavy
    from topoplace.snapshot.files import write_document  # noqa: PLC0415 - heavy

    options = solve_options(time_limit, interference, seed)
    require_writable(output, "--output")
    require_writable(png, "--png")
    state = load_snapshot(snapshot)
    result = solve(state, method, options)
    if output is not None:
        write_document(output, result)
    if png is not None:
        from topoplace.report.torus import write_picture  # noqa: PLC0415 - heavy

        write_picture(result, state, png)
    say(summary(result), as_json=as_json)
    for label, path in (("result", output), ("picture", png)):
        if path is not None:
            say(f"{label}: {path}", as_json=as_json)
    if as_json:
        print(result.model_dump_json(by_alias=True))
    raise typer.Exit(exit_code_of(result))
