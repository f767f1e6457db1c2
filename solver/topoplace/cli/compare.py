"""`topoplace compare`: several methods on the same snapshots, in one table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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
from topoplace.errors import InputError

if TYPE_CHECKING:
    from topoplace.placement.problem import Options
    from topoplace.study.compare import ComparisonRow
    from topoplace.study.compare_tree import TreeComparisonRow


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
    from topoplace.report.table import comparison_csv  # noqa: PLC0415 - heavy
    from topoplace.snapshot.files import write_text  # noqa: PLC0415 - heavy
    from topoplace.study.subject import has_tree  # noqa: PLC0415 - heavy

    options = solve_options(time_limit, interference, seed)
    require_writable(csv, "--csv")
    names = None if methods is None else [name.strip() for name in methods.split(",")]
    trees = [has_tree(path) for path in snapshots]
    if any(trees) and not all(trees):
        other = snapshots[trees.index(False)]
        raise InputError("machines of one kind: here trees", field="SNAPSHOT", value=str(other))
    rows: list[ComparisonRow] | list[TreeComparisonRow]
    if all(trees):
        rows, table, document = _trees(snapshots, names, options)
    else:
        rows, table, document = _toruses(snapshots, names, options)
    if csv is not None:
        write_text(csv, comparison_csv(rows))
    say(table, as_json=as_json)
    if csv is not None:
        say(f"table: {csv}", as_json=as_json)
    if as_json:
        print_json(document)


def _toruses(
    paths: list[Path], names: list[str] | None, options: Options
) -> tuple[list[ComparisonRow], str, dict[str, object]]:
    from topoplace.report.table import comparison_table  # noqa: PLC0415 - heavy
    from topoplace.study.compare import compare_files, rows_document  # noqa: PLC0415 - heavy

    rows = compare_files(paths, names, options)
    return rows, comparison_table(rows), rows_document(rows)


def _trees(
    paths: list[Path], names: list[str] | None, options: Options
) -> tuple[list[TreeComparisonRow], str, dict[str, object]]:
    from topoplace.placement.tree.problem import TreeOptions  # noqa: PLC0415 - heavy
    from topoplace.report.table import tree_comparison_table  # noqa: PLC0415 - heavy
    from topoplace.study.compare_tree import (  # noqa: PLC0415 - heavy
        compare_tree_files,
        tree_rows_document,
    )

    rows = compare_tree_files(paths, names, TreeOptions(options.time_limit, options.seed))
    return rows, tree_comparison_table(rows), tree_rows_document(rows)
