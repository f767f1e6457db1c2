"""`topoplace replay`: a job log through an allocator."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from topoplace.cli.options import (
    Json,
    Seed,
    TimeLimit,
    require_seed,
    require_time_limit,
    require_writable,
)
from topoplace.cli.output import json_text, print_json, say
from topoplace.cli.progress_bar import progress_bar
from topoplace.cli.replay_options import DEFAULT_MIX, empty_tree, patterns_of, snapshot_writer
from topoplace.errors import InputError

if TYPE_CHECKING:
    from topoplace.study.replay import MethodRun, Setup, SnapshotWriter


def replay(
    log: Annotated[Path, typer.Argument(metavar="LOG", help="A job log (SWF).")],
    *,
    machine: Annotated[
        str, typer.Option("--on", metavar="MACHINE", help="A tree: file, topology.conf, tree:24x16")
    ],
    method: Annotated[str, typer.Option(metavar="NAME", help="The allocation method.")],
    against: Annotated[
        str,
        typer.Option(metavar="NAME", help="The method whose run times are the log's."),
    ] = "default",
    protocol: Annotated[
        str,
        typer.Option(
            metavar="continuous|individual",
            help="All jobs together, or each alone beside the same running jobs.",
        ),
    ] = "continuous",
    mix: Annotated[
        str | None,
        typer.Option(metavar="A..E", help=f"Patterns of Mishra 2020; default {DEFAULT_MIX}."),
    ] = None,
    pattern: Annotated[
        str | None, typer.Option(metavar="NAME", help="One pattern, instead of a mix.")
    ] = None,
    share: Annotated[
        int | None,
        typer.Option(metavar="PERCENT", min=1, max=100, help="Its share of the time; default 100."),
    ] = None,
    intensive: Annotated[
        int, typer.Option(metavar="PERCENT", min=0, max=100, help="Jobs that communicate.")
    ] = 90,
    occupancy: Annotated[
        int,
        typer.Option(metavar="PERCENT", min=0, max=100, help="individual: nodes held beforehand."),
    ] = 50,
    limit: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Take the first N jobs only.")
    ] = None,
    procs_per_node: Annotated[
        int, typer.Option(metavar="N", min=1, help="Processors of a node in the log.")
    ] = 1,
    time_limit: TimeLimit = None,
    seed: Seed = 0,
    snapshots: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write snapshots on the way here.")
    ] = None,
    every: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="A snapshot after every N starts.")
    ] = None,
    at: Annotated[
        str | None, typer.Option(metavar="S,S,...", help="Snapshots at these seconds.")
    ] = None,
    csv: Annotated[
        Path | None, typer.Option(metavar="F", help="Write a line per job as CSV here.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="F", help="Write the JSON document here."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Replay LOG on a tree machine through an allocation method (docs/replay.md)."""
    from topoplace.placement.tree.problem import TreeOptions  # noqa: PLC0415 - heavy
    from topoplace.placement.tree.solve import tree_method  # noqa: PLC0415 - heavy
    from topoplace.report.replay import (  # noqa: PLC0415 - heavy
        replay_csv,
        replay_document,
        replay_table,
    )
    from topoplace.snapshot.files import write_text  # noqa: PLC0415 - heavy
    from topoplace.study.replay import (  # noqa: PLC0415 - heavy
        Protocol,
        Setup,
        read_log,
        with_intensive,
    )

    begin = time.perf_counter()
    require_time_limit(time_limit)
    require_seed(seed)
    if protocol not in list(Protocol):
        raise InputError(f"one of {', '.join(Protocol)}", field="--protocol", value=protocol)
    if protocol == Protocol.INDIVIDUAL and snapshots is not None:
        raise InputError("a continuous run beside it", field="--snapshots", value=str(snapshots))
    require_writable(csv, "--csv")
    require_writable(output, "--output")
    for name in (method, against):
        tree_method(name)
    patterns = patterns_of(mix, pattern, share)
    read = read_log(log, procs_per_node=procs_per_node)
    jobs = with_intensive(read.jobs[:limit], intensive, patterns, seed)
    if not jobs:
        raise InputError("at least one job of known size and times", file=str(log))
    setup = Setup(
        empty_tree(machine),
        jobs,
        Protocol(protocol),
        against,
        occupancy,
        TreeOptions(time_limit, seed),
    )
    writer = snapshot_writer(snapshots, every, at, log)
    runs = [
        _run(setup, name, writer if name == method else None) for name in {against: 0, method: 0}
    ]
    if csv is not None:
        write_text(csv, replay_csv(runs))
    document = {
        **replay_document(setup, runs),
        "log": str(log),
        "jobs_unknown": read.num_left_out,
        "patterns": [use.model_dump(mode="json") for use in patterns],
        "intensive_percent": intensive,
        "snapshots": [] if writer is None else [str(path) for path in writer.written],
        "seconds": round(time.perf_counter() - begin, 3),
    }
    if output is not None:
        write_text(output, json_text(document) + "\n")
    say(replay_table(runs), as_json=as_json)
    without_room = len(jobs) - len(runs[-1].records)
    for label, text in (
        ("jobs without room", without_room),
        ("jobs of unknown size or times", read.num_left_out),
        ("snapshots", None if writer is None else f"{len(writer.written)} in {snapshots}"),
        ("table", csv),
        ("document", output),
    ):
        if text:
            say(f"{label}: {text}", as_json=as_json)
    if as_json:
        print_json(document)


def _run(setup: Setup, method: str, writer: SnapshotWriter | None) -> MethodRun:
    from topoplace.study.replay import run_method  # noqa: PLC0415 - heavy

    with progress_bar(len(setup.jobs), method) as progress:
        return run_method(setup, method, progress, writer)
