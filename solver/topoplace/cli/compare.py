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
    from topoplace.report.page.exhibits import Exhibits
    from topoplace.report.table import Rows


def compare(
    snapshots: Annotated[
        list[Path], typer.Argument(metavar="SNAPSHOT...", help="Snapshot, mapping instance or result files.")
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
    html: Annotated[
        Path | None,
        typer.Option(metavar="F", help="Write a page with tables, plots and pictures here."),
    ] = None,
    results: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write all results here; the page links to them."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Run methods on each SNAPSHOT and hold all of them against the best certified bound."""
    from topoplace.report.page.exhibits import Exhibits  # noqa: PLC0415 - heavy
    from topoplace.report.table import comparison_csv, comparison_table  # noqa: PLC0415 - heavy
    from topoplace.snapshot.files import write_text  # noqa: PLC0415 - heavy
    from topoplace.study.compare_mapping import is_mapping  # noqa: PLC0415 - heavy
    from topoplace.study.subject import has_tree  # noqa: PLC0415 - heavy

    options = solve_options(time_limit, interference, seed)
    require_writable(csv, "--csv")
    require_writable(html, "--html")
    names = None if methods is None else [name.strip() for name in methods.split(",")]
    kinds = ["mappings" if is_mapping(p) else "trees" if has_tree(p) else "tori" for p in snapshots]
    for path, kind in zip(snapshots, kinds, strict=True):
        if kind != kinds[0]:
            raise InputError(f"instances of one kind: here {kinds[0]}", file=str(path), value=kind)
    exhibits = Exhibits(folder=results, pictures=html is not None)
    run = {"mappings": _mappings, "trees": _trees, "tori": _toruses}[kinds[0]]
    rows, document = run(snapshots, names, options, exhibits)
    table = comparison_table(rows)
    if html is not None:
        from topoplace.report.page import write_comparison_page  # noqa: PLC0415 - heavy

        write_comparison_page(html, rows, exhibits)
    if csv is not None:
        write_text(csv, comparison_csv(rows))
    say(table, as_json=as_json)
    for label, path in (("table", csv), ("page", html), ("results", results)):
        if path is not None:
            say(f"{label}: {path}", as_json=as_json)
    if as_json:
        print_json(document)


def _toruses(
    paths: list[Path], names: list[str] | None, options: Options, exhibits: Exhibits
) -> tuple[Rows, dict[str, object]]:
    from topoplace.study.compare import compare_files, rows_document  # noqa: PLC0415 - heavy

    rows = compare_files(paths, names, options, exhibits.placement)
    return rows, rows_document(rows)


def _trees(
    paths: list[Path], names: list[str] | None, options: Options, exhibits: Exhibits
) -> tuple[Rows, dict[str, object]]:
    from topoplace.placement.tree.problem import TreeOptions  # noqa: PLC0415 - heavy
    from topoplace.study.compare_tree import (  # noqa: PLC0415 - heavy
        compare_tree_files,
        tree_rows_document,
    )

    tree_options = TreeOptions(options.time_limit, options.seed)
    rows = compare_tree_files(paths, names, tree_options, exhibits.allocation)
    return rows, tree_rows_document(rows)


def _mappings(
    paths: list[Path], names: list[str] | None, options: Options, exhibits: Exhibits
) -> tuple[Rows, dict[str, object]]:
    from topoplace.mapping.outcome import MapOptions  # noqa: PLC0415 - heavy
    from topoplace.study.compare_mapping import (  # noqa: PLC0415 - heavy
        compare_mapping_files,
        mapping_rows_document,
    )

    map_options = MapOptions(time_limit=options.time_limit, seed=options.seed)
    rows = compare_mapping_files(paths, names, map_options, exhibits.mapping)
    return rows, mapping_rows_document(rows)
