"""`topoplace compare`: several methods on the same snapshots, in one table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from topoplace.cli.external import (
    COMMAND_HELP,
    Stderr,
    keep_stderr,
    tell_verdicts,
    verdict_documents,
)
from topoplace.cli.options import (
    InterferenceRule,
    Json,
    Seed,
    TimeLimit,
    require_writable,
    solve_options,
)
from topoplace.cli.output import print_json, say
from topoplace.cli.shipped_names import snapshots_like
from topoplace.errors import ExitCode, InputError

if TYPE_CHECKING:
    from topoplace.report.page.exhibits import Exhibits
    from topoplace.report.table import Rows
    from topoplace.solving import Options
    from topoplace.study.external.trial import AnyTrial

    Compared = tuple[Rows, dict[str, object], list[AnyTrial]]


def compare(
    snapshots: Annotated[
        list[Path],
        typer.Argument(
            metavar="SNAPSHOT...",
            help="Snapshot, mapping instance or result files, shipped snapshots, or - for stdin.",
            autocompletion=snapshots_like,
        ),
    ],
    *,
    methods: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,...", help="Methods to run, also installed allocators; default all ours."
        ),
    ] = None,
    command: Annotated[
        list[str] | None, typer.Option(metavar="TEXT", help=f"{COMMAND_HELP} May be repeated.")
    ] = None,
    stderr: Stderr = None,
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
    from topoplace.study.mapping_subject import is_mapping  # noqa: PLC0415 - heavy
    from topoplace.study.subject import has_tree  # noqa: PLC0415 - heavy

    options = solve_options(time_limit, interference, seed)
    require_writable(csv, "--csv")
    require_writable(html, "--html")
    require_writable(stderr, "--stderr")
    names = None if methods is None else [name.strip() for name in methods.split(",")]
    kinds = ["mappings" if is_mapping(p) else "trees" if has_tree(p) else "tori" for p in snapshots]
    for path, kind in zip(snapshots, kinds, strict=True):
        if kind != kinds[0]:
            expected = f"instances of one kind, here {kinds[0]}"
            raise InputError(expected, file=str(path), found=kind)
    exhibits = Exhibits(folder=results, pictures=html is not None)
    require_writable(None if results is None else results / "r.json", "--results")
    run = {"mappings": _mappings, "trees": _trees, "tori": _toruses}[kinds[0]]
    rows, document, trials = run(snapshots, names, command or [], options, exhibits)
    table = comparison_table(rows)
    if html is not None:
        from topoplace.report.page import write_comparison_page  # noqa: PLC0415 - heavy

        write_comparison_page(html, rows, exhibits)
    if csv is not None:
        write_text(csv, comparison_csv(rows))
    say(table, as_json=as_json)
    tell_verdicts(trials, as_json=as_json)
    keep_stderr(trials, stderr)
    for label, written in (
        ("table", csv),
        ("page", html),
        ("results", results),
        ("stderr", stderr),
    ):
        if written is not None:
            say(f"{label}: {written}", as_json=as_json)
    if as_json:
        verdicts = {"verdicts": verdict_documents(trials)} if trials else {}
        print_json(document | verdicts)
    faults = [trial.verdict.exit_code for trial in trials if trial.verdict is not None]
    raise typer.Exit(max(faults, default=ExitCode.DONE))


def _toruses(
    paths: list[Path],
    names: list[str] | None,
    commands: list[str],
    options: Options,
    exhibits: Exhibits,
) -> Compared:
    from topoplace.cli.kernels import compile_for  # noqa: PLC0415 - heavy
    from topoplace.solving import method_names  # noqa: PLC0415 - heavy
    from topoplace.study.compare import compare, rows_document  # noqa: PLC0415 - heavy
    from topoplace.study.external.comparison import Rivals  # noqa: PLC0415 - heavy

    rivals = Rivals(names, commands, method_names("placement"))
    compile_for("placement", method_names("placement") if rivals.own is None else rivals.own)
    rows = compare(rivals.on_tori(paths, options), rivals.own, options, exhibits.placement)
    return rows, rows_document(rows), rivals.trials


def _trees(
    paths: list[Path],
    names: list[str] | None,
    commands: list[str],
    options: Options,
    exhibits: Exhibits,
) -> Compared:
    from topoplace.cli.kernels import compile_for  # noqa: PLC0415 - heavy
    from topoplace.solving import method_names  # noqa: PLC0415 - heavy
    from topoplace.study.compare_tree import (  # noqa: PLC0415 - heavy
        compare_trees,
        tree_rows_document,
    )
    from topoplace.study.external.comparison import Rivals  # noqa: PLC0415 - heavy

    rivals = Rivals(names, commands, method_names("allocation"))
    compile_for("allocation", method_names("allocation") if rivals.own is None else rivals.own)
    rows = compare_trees(rivals.on_trees(paths, options), rivals.own, options, exhibits.allocation)
    return rows, tree_rows_document(rows), rivals.trials


def _mappings(
    paths: list[Path],
    names: list[str] | None,
    commands: list[str],
    options: Options,
    exhibits: Exhibits,
) -> Compared:
    from topoplace.cli.kernels import compile_for  # noqa: PLC0415 - heavy
    from topoplace.solving import method_names  # noqa: PLC0415 - heavy
    from topoplace.study.compare_mapping import (  # noqa: PLC0415 - heavy
        compare_mapping_files,
        mapping_rows_document,
    )

    if commands:
        raise InputError("snapshots: mappings are no placements", field="--command")
    compile_for("mapping", method_names("mapping") if names is None else names)
    rows = compare_mapping_files(paths, names, options, exhibits.mapping)
    return rows, mapping_rows_document(rows), []
