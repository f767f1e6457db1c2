"""`topoplace compare`: several methods on the same snapshots, in one table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from topoplace.cli.options import (
    InterferenceRule,
    Json,
    Seed,
    TimeLimit,
    require_writable,
    solve_options,
)
from topoplace.cli.output import print_json, say


def compare(
    snapshots: Annotated[
        list[Path], typer.Argument(metavar="SNAPSHOT...", help="Snapshot or result files.")
    ],
    *,
    methods: Annotated[
        str | None, typer.Option(metavar="A,B,...", help="Methods to run; default all.")
    ] = None,
    time_limit: TimeLimit = None,
    interference: InterferenceRule = "strict",
    seed: Seed = 0,
    csv: Annotated[
        Path | None, typer.Option(metavar="F", help="Write the table as CSV here.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Run methods on each SNAPSHOT and hold all of them against the best certified bound."""
    from topoplace.report.table import comparison_csv, comparison_table  # noqa: PLC0415 - heavy
    from topoplace.snapshot.files import write_text  # noqa: PLC0415 - heavy
    from topoplace.study.compare import compare_files, rows_document  # noqa: PLC0415 - heavy

    options = solve_options(time_limit, interference, seed)
    require_writable(csv, "--csv")
    names = None if methods is None else [name.strip() for name in methods.split(",")]
    rows = compare_files(snapshots, names, options)
    if csv is not None:
        write_text(csv, comparison_csv(rows))
    say(comparison_table(rows), as_json=as_json)
    if csv is not None:
        say(f"table: {csv}", as_json=as_json)
    if as_json:
        print_json(rows_document(rows))
