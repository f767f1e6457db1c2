"""The commands about many instances: `topoplace compare` and `topoplace batch`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from topoplace import front
from topoplace.cli.options import (
    COMMAND,
    argument,
    flag,
    listed,
    option,
    require_one,
    require_writable,
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
    require_writable(*snapshots, csv=csv, html=html, stderr=stderr)
    names = None if methods is None else [name.strip() for name in methods.split(",")]
    exhibits = front.writing.Exhibits(folder=results, pictures=html is not None)
    require_writable(results=None if results is None else results / "r.json")
    with shown() as watch:
        comparison = front.studies.compare(
            *snapshots,
            methods=[] if names == ["none"] else names,
            time_limit=time_limit,
            interference=interference,
            thorough=thorough,
            objective=objective,
            ignore=listed(ignore),
            seed=seed,
            commands=command or (),
            keep=exhibits.keep,
            callback=watch,
        )
    front.writing.write(comparison, csv=csv, html=html, files=exhibits)
    say(str(comparison))
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
    require_one(method, command)
    if dask is not None and jobs is not None:
        raise InputError("either --jobs or --dask", field="--jobs", found="both")
    if kill_after is None and time_limit is not None:
        kill_after = 2 * time_limit + SPARE_SECONDS
    with counted("batch") as progress:
        done = front.batching.batch(
            sources,
            output,
            method,
            command=command,
            time_limit=time_limit,
            thorough=thorough,
            interference=interference,
            objective=objective,
            ignore=listed(ignore),
            seed=seed,
            jobs=jobs,
            kill_after=kill_after,
            memory=None if memory is None else int(memory * 2**30),
            retry_failed=retry_failed,
            dask=dask,
            progress=progress,
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
