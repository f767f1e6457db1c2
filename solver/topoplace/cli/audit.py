"""`topoplace audit`: decisions of schedulers against the rules and the proven optimum."""

from __future__ import annotations

import math
from pathlib import Path

import typer

from topoplace import front
from topoplace.cli.options import (
    argument,
    listed,
    option,
    require_writable,
    with_options,
)
from topoplace.cli.output import counted, print_json, say, say_files
from topoplace.errors import InputError


@with_options(
    sources=argument(
        "SOURCE...",
        "Recorded decisions (JSON lines), results and folders of them, or the snapshot before.",
    ),
    after=option("SNAPSHOT", "The snapshot after: what of the queue of SOURCE runs was started."),
    levels=option("A,B,...", "Count the domains of these levels; default those that matter."),
    command=option(
        "TEXT",
        "A live allocator, '[NAME=]PROG ARGS': states on stdin, decisions on stdout, JSON lines.",
    ),
    states=option("N", "Draw N states for --command; without it, those of SOURCE.", min=1),
    on=option("MACHINE", "Draw the states on a pod of cubes, such as cubes:64."),
    tolerate=option("PERCENT", "Most domains above the fewest, in percent of these."),
    csv=option("F", "Write a row per decision as CSV here."),
    html=option("F", "Write a page with tables and all decisions here."),
    output=option("DIR", "Write the result that proves each optimum here.", "-o", "--output"),
)
def audit(
    sources: list[Path] | None = None,
    *,
    after: Path | None = None,
    contract: str | None = None,
    levels: str | None = None,
    command: str | None = None,
    states: int | None = None,
    on: str | None = None,
    ignore: str = "",
    tolerate: float = 0.0,
    time_limit: float | None = None,
    seed: int = 0,
    csv: Path | None = None,
    html: Path | None = None,
    output: Path | None = None,
    as_json: bool = False,
) -> None:
    """Hold decisions of schedulers against the rules and the proven optimum; exit 0, 5 or 6."""
    if not (math.isfinite(tolerate) and tolerate >= 0):
        raise InputError("a percentage of at least 0", field="--tolerate", value=tolerate)
    require_writable(*(sources or ()), after, csv=csv, html=html)
    with counted("audit") as progress:
        found, names = front.studies.audited(
            sources or [],
            after=after,
            contract=contract,
            levels=None if levels is None else [name.strip() for name in levels.split(",")],
            command=command,
            states=states,
            on=on,
            ignore=listed(ignore),
            time_limit=time_limit,
            seed=seed,
            results=output,
            progress=progress,
        )
    front.writing.write(found, csv=csv, html=html, files=names)
    say(str(found))
    say_files({"table": csv, "page": html, "results": output})
    code = found.exit_code(tolerate)
    print_json(found.document() | {"tolerate": tolerate, "exit_code": int(code)})
    raise typer.Exit(code)
