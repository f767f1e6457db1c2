"""`topoplace batch`: thousands of instances, solved once each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from topoplace.cli.external import COMMAND_HELP, require_one
from topoplace.cli.options import InterferenceRule, Json, Seed, Thorough, TimeLimit, solve_options
from topoplace.cli.output import counted, print_json, say
from topoplace.cli.shipped_names import methods_like
from topoplace.errors import InputError

if TYPE_CHECKING:
    from topoplace.study.batch.pool import Pool
    from topoplace.study.batch.run import Batch
    from topoplace.study.batch.task import Limits

BATCH_SCHEMA = "topoplace.batch/1"

SPARE_SECONDS = 60.0
"""What an instance gets beyond twice its time limit before its process is killed."""


def batch(
    sources: Annotated[
        list[Path],
        typer.Argument(
            metavar="DIR|FILES",
            help="Snapshots and mapping instances, folders of them, or shipped snapshots by name.",
        ),
    ],
    *,
    output: Annotated[
        Path,
        typer.Option("-o", "--output", metavar="OUTDIR", help="The folder of results and table."),
    ],
    method: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The method, or an installed allocator; default exact, for mappings auto.",
            autocompletion=methods_like,
        ),
    ] = None,
    command: Annotated[str | None, typer.Option(metavar="TEXT", help=COMMAND_HELP)] = None,
    time_limit: TimeLimit = None,
    thorough: Thorough = False,
    interference: InterferenceRule = "strict",
    seed: Seed = 0,
    jobs: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Worker processes; default one per core."),
    ] = None,
    kill_after: Annotated[
        float | None,
        typer.Option(
            metavar="S",
            min=0.1,
            help="Kill an instance's process after S seconds; default twice the time limit and "
            "60, or never without one.",
        ),
    ] = None,
    memory: Annotated[
        float | None,
        typer.Option(metavar="GIB", min=0.001, help="Most memory that an instance may take."),
    ] = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Try again what failed in earlier runs.")
    ] = False,
    dask: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Run on the Dask cluster of this scheduler."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Solve every instance that has no result in OUTDIR yet; killed, it goes on when run again."""
    solve_options(time_limit, interference, seed)  # checks them
    require_one(method, command)
    from topoplace.study.batch.run import run_batch  # noqa: PLC0415 - heavy
    from topoplace.study.batch.task import Limits, Settings  # noqa: PLC0415 - heavy

    if dask is not None and jobs is not None:
        raise InputError("either --jobs or --dask", field="--jobs", found="both")
    if kill_after is None and time_limit is not None:
        kill_after = 2 * time_limit + SPARE_SECONDS
    limits = Limits(kill_after, None if memory is None else int(memory * 2**30))
    limit = None if time_limit is None else float(time_limit)
    with counted("batch") as progress:
        done = run_batch(
            sources,
            output,
            Settings(method, limit, interference, seed, command, thorough=thorough),
            executor=_executor(dask, jobs, limits),
            retry_failed=retry_failed,
            progress=progress,
            prepare=compile_ahead if dask is None else None,
        )
    _report(done, as_json=as_json)
    raise typer.Exit(done.exit_code)


def compile_ahead(problem: str, method: str) -> None:
    """Compile what a method needs; workers on other machines compile what they miss."""
    from topoplace.kernels.ahead import compile_for  # noqa: PLC0415 - heavy

    compile_for(problem, [method])


def _executor(dask: str | None, jobs: int | None, limits: Limits) -> Pool:
    from topoplace.study.batch.pool import Cluster, Pool  # noqa: PLC0415 - heavy
    from topoplace.study.batch.run import SOLVER, num_cores  # noqa: PLC0415 - heavy

    if dask is not None:
        return Cluster(dask, SOLVER, limits)
    return Pool(SOLVER, jobs or num_cores(), limits)


def _report(done: Batch, *, as_json: bool) -> None:
    counts = ", ".join(f"{count} {status}" for status, count in done.counts.items())
    say(f"{len(done.rows)} instances: {counts}", as_json=as_json)
    say(f"solved {done.num_solved}, kept {done.num_kept}, {done.seconds:.1f} s", as_json=as_json)
    say(f"table: {done.table}", as_json=as_json)
    if done.num_left:
        text = f"interrupted: {done.num_left} instances left out; the same command goes on"
        say(text, as_json=as_json)
    if as_json:
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
