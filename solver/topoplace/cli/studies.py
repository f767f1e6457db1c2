"""The commands about many instances: `topoplace compare` and `topoplace batch`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from topoplace.cli.options import (
    COMMAND,
    argument,
    flag,
    listed,
    option,
    require_one,
    require_writable,
    solve_options,
    with_options,
)
from topoplace.cli.output import counted, print_json, say, say_files, shown, tell_trials
from topoplace.cli.shipped_names import methods_like, snapshots_like
from topoplace.errors import ExitCode, InputError, number_of

if TYPE_CHECKING:
    from topoplace.study.batch.run import Batch

BATCH_SCHEMA = "topoplace.batch/1"

SPARE_SECONDS = 60.0
"""What an instance of a batch gets beyond twice its time limit before its process is killed."""


@with_options(
    snapshots=argument(
        "SNAPSHOT...",
        "Snapshots, mapping instances or results: files, folders of them, shipped snapshots, or - "
        "for stdin.",
        autocompletion=snapshots_like,
    ),
    methods=option(
        "A,B,...|none",
        "Methods to run, also installed allocators; none holds only results against each other; "
        "default all ours.",
    ),
    command=option("TEXT", f"{COMMAND} May be repeated."),
    csv=option("F", "Write the table as CSV here."),
    html=option("F", "Write a page with tables, plots and pictures here."),
    results=option("DIR", "Write all results here; the page links to them."),
)
def compare(
    snapshots: list[Path],
    *,
    methods: str | None = None,
    command: list[str] | None = None,
    stderr: Path | None = None,
    time_limit: float | None = None,
    thorough: bool = False,
    interference: str = "strict",
    objective: str | None = None,
    ignore: str = "",
    seed: int = 0,
    csv: Path | None = None,
    html: Path | None = None,
    results: Path | None = None,
    as_json: bool = False,
) -> None:
    """Run methods on each SNAPSHOT and hold all its results against the best certified bound."""
    from topoplace.kernels import compile_for
    from topoplace.report.page.exhibits import Exhibits
    from topoplace.report.table import comparison_csv, comparison_table
    from topoplace.snapshot.files import write_text
    from topoplace.solving import method_names
    from topoplace.solving.solve import tree_objective
    from topoplace.study import compare as study
    from topoplace.study.case import load_cases
    from topoplace.study.external.allocator import command_allocators

    options = solve_options(time_limit, interference, seed, thorough=thorough)
    require_writable(*snapshots, csv=csv, html=html, stderr=stderr)
    names = None if methods is None else [name.strip() for name in methods.split(",")]
    names = [] if names == ["none"] else names
    cases, skipped = load_cases(snapshots, tree_objective(objective), listed(ignore))
    for note in skipped:
        say(note)
    exhibits = Exhibits(folder=results, pictures=html is not None)
    require_writable(results=None if results is None else results / "r.json")
    kinds = list(dict.fromkeys(case.kind for case in cases))
    known = {kind: method_names(kind) for kind in kinds}
    ours = [name for kind in kinds for name in known[kind]]
    allocators = command_allocators(command or [], [*ours, *(names or ())])
    for kind in kinds:
        compile_for(kind, [name for name in known[kind] if names is None or name in names])
    with shown() as watch:
        options = replace(options, watch=watch)
        comparison = study.compare(cases, names, options, exhibits.keep, allocators)
    if html is not None:
        from topoplace.report.page.pages import comparison_page

        write_text(html, comparison_page(comparison, exhibits, html.parent))
    if csv is not None:
        write_text(csv, comparison_csv(comparison))
    say(comparison_table(comparison))
    tell_trials(comparison.trials, stderr, verdicts=True)
    say_files({"table": csv, "page": html, "results": results, "stderr": stderr})
    refused = [trial.refusal for trial in comparison.trials if trial.refusal is not None]
    verdicts = {"verdicts": [one.document for one in refused]} if refused else {}
    print_json(comparison.document() | verdicts)
    raise typer.Exit(max((one.exit_code for one in refused), default=ExitCode.DONE))


@with_options(
    sources=argument(
        "DIR|FILES",
        "Snapshots and mapping instances, folders of them, or shipped snapshots by name.",
    ),
    output=option("OUTDIR", "The folder of results and table.", "-o", "--output"),
    method=option(
        "NAME",
        "The method, or an installed allocator; default exact, for mappings auto.",
        autocompletion=methods_like,
    ),
    jobs=option("N", "Worker processes; default one per core.", min=1),
    kill_after=option(
        "S",
        "Kill an instance's process after S seconds; default twice the time limit and 60, or never "
        "without one.",
        min=0.1,
    ),
    memory=option("GIB", "Most memory that an instance may take.", min=0.001),
    retry_failed=flag("Try again what failed in earlier runs.", "--retry-failed"),
    dask=option("ADDRESS", "Run on the Dask cluster of this scheduler."),
)
def batch(
    sources: list[Path],
    *,
    output: Path,
    method: str | None = None,
    command: str | None = None,
    time_limit: float | None = None,
    thorough: bool = False,
    interference: str = "strict",
    objective: str | None = None,
    ignore: str = "",
    seed: int = 0,
    jobs: int | None = None,
    kill_after: float | None = None,
    memory: float | None = None,
    retry_failed: bool = False,
    dask: str | None = None,
    as_json: bool = False,
) -> None:
    """Solve every instance that has no result in OUTDIR yet; killed, it goes on when run again."""
    solve_options(time_limit, interference, seed)  # checks them
    require_one(method, command)
    from topoplace.kernels import compile_for
    from topoplace.solving.solve import tree_objective
    from topoplace.study.batch.pool import Cluster, Pool
    from topoplace.study.batch.run import SOLVER, num_cores, run_batch
    from topoplace.study.batch.task import Limits, Settings

    tree_objective(objective)  # checks it
    if dask is not None and jobs is not None:
        raise InputError("either --jobs or --dask", field="--jobs", found="both")
    if kill_after is None and time_limit is not None:
        kill_after = 2 * time_limit + SPARE_SECONDS
    limits = Limits(kill_after, None if memory is None else int(memory * 2**30))
    executor = Cluster(dask, SOLVER, limits) if dask else Pool(SOLVER, jobs or num_cores(), limits)
    with counted("batch") as progress:
        done = run_batch(
            sources,
            output,
            Settings(
                method,
                time_limit,
                interference,
                seed,
                command,
                thorough=thorough,
                objective=objective,
            ),
            executor=executor,
            retry_failed=retry_failed,
            ignore=listed(ignore),
            progress=progress,
            # Workers on other machines compile what they miss.
            prepare=None if dask else lambda problem, method: compile_for(problem, [method]),
        )
    _report(done)
    raise typer.Exit(done.exit_code)


def _report(done: Batch) -> None:
    counts = ", ".join(f"{count} {status}" for status, count in done.counts.items())
    held = f"; {number_of(done.num_held, 'request')} held" if done.num_held else ""
    say(f"{number_of(len(done.rows), 'instance')}: {counts}{held}")
    say(f"solved {done.num_solved}, kept {done.num_kept}, {done.seconds:.1f} s")
    say(f"table: {done.table}")
    if done.num_left:
        say(
            f"interrupted: {number_of(done.num_left, 'instance')} left out; the same "
            "command goes on"
        )
    print_json(
        {
            "schema": BATCH_SCHEMA,
            "table": str(done.table),
            "instances": len(done.rows),
            "statuses": done.counts,
            "solved": done.num_solved,
            "kept": done.num_kept,
            "left": done.num_left,
            "seconds": done.seconds,
            "exit_code": int(done.exit_code),
        }
    )
