"""`topoplace compare`: methods and results on the same instances, in one table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

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
    Thorough,
    TimeLimit,
    require_writable,
    solve_options,
)
from topoplace.cli.output import print_json, say, shown
from topoplace.cli.shipped_names import snapshots_like
from topoplace.errors import ExitCode


def compare(
    snapshots: Annotated[
        list[Path],
        typer.Argument(
            metavar="SNAPSHOT...",
            help="Snapshots, mapping instances or results: files, folders of them, shipped "
            "snapshots, or - for stdin.",
            autocompletion=snapshots_like,
        ),
    ],
    *,
    methods: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,...|none",
            help="Methods to run, also installed allocators; none holds only results against each "
            "other; default all ours.",
        ),
    ] = None,
    command: Annotated[
        list[str] | None, typer.Option(metavar="TEXT", help=f"{COMMAND_HELP} May be repeated.")
    ] = None,
    stderr: Stderr = None,
    time_limit: TimeLimit = None,
    thorough: Thorough = False,
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
    """Run methods on each SNAPSHOT and hold all its results against the best certified bound."""
    from topoplace.kernels.ahead import compile_for  # noqa: PLC0415 - heavy
    from topoplace.report.page.exhibits import Exhibits  # noqa: PLC0415 - heavy
    from topoplace.report.table import comparison_csv, comparison_table  # noqa: PLC0415 - heavy
    from topoplace.snapshot.files import write_text  # noqa: PLC0415 - heavy
    from topoplace.solving import method_names  # noqa: PLC0415 - heavy
    from topoplace.study import compare as study  # noqa: PLC0415 - heavy
    from topoplace.study.case import load_cases  # noqa: PLC0415 - heavy
    from topoplace.study.external.allocator import (  # noqa: PLC0415 - heavy
        command_allocators,
        split_methods,
    )

    options = solve_options(time_limit, interference, seed, thorough=thorough)
    require_writable(csv, "--csv")
    require_writable(html, "--html")
    require_writable(stderr, "--stderr")
    names = None if methods is None else [name.strip() for name in methods.split(",")]
    names = [] if names == ["none"] else names
    cases, skipped = load_cases(snapshots)
    for note in skipped:
        say(note, as_json=as_json)
    exhibits = Exhibits(folder=results, pictures=html is not None)
    require_writable(None if results is None else results / "r.json", "--results")
    kinds = list(dict.fromkeys(case.kind for case in cases))
    ours = [name for kind in kinds for name in method_names(kind)]
    own, _ = split_methods(names or (), ours)
    allocators = command_allocators(command or [], [*ours, *(names or ())])
    for kind in kinds:
        known = method_names(kind)
        compile_for(kind, known if names is None else [name for name in own if name in known])
    with shown() as watch:
        options = replace(options, watch=watch)
        comparison = study.compare(cases, names, options, exhibits.keep, allocators)
    if html is not None:
        from topoplace.report.page import write_comparison_page  # noqa: PLC0415 - heavy

        write_comparison_page(html, comparison, exhibits)
    if csv is not None:
        write_text(csv, comparison_csv(comparison))
    say(comparison_table(comparison), as_json=as_json)
    tell_verdicts(comparison.trials, as_json=as_json)
    keep_stderr(comparison.trials, stderr)
    files = {"table": csv, "page": html, "results": results, "stderr": stderr}
    for label, written in files.items():
        if written is not None:
            say(f"{label}: {written}", as_json=as_json)
    verdicts = verdict_documents(comparison.trials)
    if as_json:
        print_json(comparison.document() | ({"verdicts": verdicts} if verdicts else {}))
    faults = [t.refusal.exit_code for t in comparison.trials if t.refusal is not None]
    raise typer.Exit(max(faults, default=ExitCode.DONE))
