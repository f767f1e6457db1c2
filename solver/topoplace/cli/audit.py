"""`topoplace audit`: decisions of schedulers against the rules and the proven optimum."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from topoplace.cli.options import (
    argument,
    listed,
    option,
    require_writable,
    solve_options,
    with_options,
)
from topoplace.cli.output import counted, print_json, say, say_files
from topoplace.errors import InputError

if TYPE_CHECKING:
    from topoplace.study.audit.run import Audit


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
    from topoplace.kernels import compile_for
    from topoplace.report.audit import audit_csv, audit_text
    from topoplace.snapshot.files import write_text
    from topoplace.study.audit.cases import counting
    from topoplace.study.audit.live import cases_of
    from topoplace.study.audit.run import ResultFiles, audit_cases, require_contract

    options = solve_options(time_limit, "strict", seed)
    if not (math.isfinite(tolerate) and tolerate >= 0):
        raise InputError("a percentage of at least 0", field="--tolerate", value=tolerate)
    require_contract(contract)
    require_writable(*(sources or ()), after, csv=csv, html=html)
    cases, notes = cases_of(sources or [], after, command, states, seed, on, listed(ignore))
    names = None if levels is None else [name.strip() for name in levels.split(",")]
    cases = [counting(case, names) for case in cases]
    files = ResultFiles(output)
    compile_for("hierarchy", ["exact"])
    with counted("audit") as progress:
        found = audit_cases(
            cases,
            contract=contract,
            options=options,
            notes=notes,
            keep=files.keep,
            progress=progress,
        )
    if csv is not None:
        write_text(csv, audit_csv(found))
    if html is not None:
        from topoplace.report.page.audits import audit_page

        write_text(html, audit_page(found, files.names, html.parent))
    say(audit_text(found))
    say_files({"table": csv, "page": html, "results": output})
    _end(found, tolerate)


def _end(found: Audit, tolerate: float) -> None:
    code = found.exit_code(tolerate)
    print_json(found.document() | {"tolerate": tolerate, "exit_code": int(code)})
    raise typer.Exit(code)
