"""`topoplace replay`: a job log through an allocator."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from topoplace.cli.external import COMMAND_HELP, require_one, tell_refused
from topoplace.cli.options import (
    InterferenceRule,
    Json,
    Seed,
    TimeLimit,
    require_writable,
    solve_options,
)
from topoplace.cli.output import counted, json_text, print_json, say
from topoplace.cli.shipped_names import machines_like, methods_like
from topoplace.errors import InputError, unknown_name
from topoplace.interrupts import Interrupted, heeded

if TYPE_CHECKING:
    from topoplace.snapshot.schema import PatternUse
    from topoplace.snapshot.state import SnapshotState
    from topoplace.snapshot.tree_state import TreeState
    from topoplace.study.external.allocator import Allocator
    from topoplace.study.replay import LogJob, MethodRun, Setup, SnapshotWriter

DEFAULT_MIX = "B"


def replay(
    log: Annotated[Path, typer.Argument(metavar="LOG", help="A job log (SWF).")],
    *,
    machine: Annotated[
        str,
        typer.Option(
            "--on",
            metavar="MACHINE",
            help="A machine: a file, a shipped name, tree:24x16 or torus:8x8x8.",
            autocompletion=machines_like,
        ),
    ],
    method: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The method of allocation or placement, or an installed allocator.",
            autocompletion=methods_like,
        ),
    ] = None,
    command: Annotated[str | None, typer.Option(metavar="TEXT", help=COMMAND_HELP)] = None,
    prisms: Annotated[
        bool,
        typer.Option(
            "--prisms", help="torus: an allocator of your own needs a free prism for every job."
        ),
    ] = False,
    against: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="On a tree, the method whose run times are the log's; default Slurm's. On a "
            "torus, one to compare with.",
        ),
    ] = None,
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
    interference: InterferenceRule = "strict",
    fill_interior: Annotated[
        bool,
        typer.Option(
            "--fill-interior", help="torus: offer idle nodes inside prisms to jobs without links."
        ),
    ] = False,
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
    timeline: Annotated[
        Path | None, typer.Option(metavar="F", help="Write a line per event as CSV here.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="F", help="Write the JSON document here."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Replay LOG on a machine through an allocation or placement method (docs/replay.md)."""
    from topoplace.kernels.ahead import compile_for  # noqa: PLC0415 - heavy
    from topoplace.report.replay import (  # noqa: PLC0415 - heavy
        decisions_text,
        efficiency_table,
        replay_csv,
        replay_document,
        replay_table,
        timeline_csv,
    )
    from topoplace.snapshot import TreeState  # noqa: PLC0415 - heavy
    from topoplace.snapshot.files import write_text  # noqa: PLC0415 - heavy
    from topoplace.study.external.verdict import VerdictError  # noqa: PLC0415 - heavy
    from topoplace.study.replay import (  # noqa: PLC0415 - heavy
        Protocol,
        Setup,
        read_log,
        with_intensive,
    )

    begin = time.perf_counter()
    options = solve_options(time_limit, interference, seed)
    if protocol not in list(Protocol):
        raise unknown_name(protocol, Protocol, field="--protocol")
    for option, path in (("--snapshots", snapshots), ("--timeline", timeline)):
        if protocol == Protocol.INDIVIDUAL and path is not None:
            raise InputError("a continuous run beside it", field=option, value=str(path))
    require_writable(csv, "--csv")
    require_writable(timeline, "--timeline")
    require_writable(output, "--output")
    state = _empty_machine(machine)
    _require_options_of(state, protocol, interference, fill_interior)
    allocators = _methods_to_run(state, method, command, against, in_prisms=prisms)
    patterns = _patterns_of(mix, pattern, share)
    read = read_log(log, procs_per_node=procs_per_node)
    jobs = with_intensive(read.jobs[:limit], intensive, patterns, seed)
    if not jobs:
        raise InputError("at least one job of known size and times", file=str(log))
    reference = allocators[0] if isinstance(allocators[0], str) else ""  # of no use on a torus
    setup = Setup(state, jobs, Protocol(protocol), reference, occupancy, options, fill_interior)
    problem = "allocation" if isinstance(state, TreeState) else "placement"
    begin += compile_for(problem, [one for one in allocators if isinstance(one, str)])
    writer = _snapshot_writer(snapshots, every, at, log)
    try:
        runs, interrupted = _runs(setup, allocators, writer)
    except VerdictError as refused:
        tell_refused(refused, snapshots, as_json=as_json)
        raise
    _require_started(runs, jobs, log)
    if csv is not None:
        write_text(csv, replay_csv(runs))
    if timeline is not None:
        write_text(timeline, timeline_csv(runs))
    document = {
        **replay_document(setup, runs),
        "log": str(log),
        "command": command,
        "jobs_unknown": read.num_left_out,
        "patterns": [use.model_dump(mode="json") for use in patterns],
        "intensive_percent": intensive,
        "snapshots": [] if writer is None else [str(path) for path in writer.written],
        "interrupted": interrupted,
        "seconds": round(time.perf_counter() - begin, 3),
    }
    if output is not None:
        write_text(output, json_text(document) + "\n")
    say(replay_table(runs), as_json=as_json)
    if not isinstance(state, TreeState):
        say("\n" + efficiency_table(runs), as_json=as_json)
    left_out = len(jobs) - len(runs[-1].records)
    for label, text in (
        ("decisions", decisions_text(runs)),
        ("interrupted: jobs left out" if interrupted else "jobs without room", left_out),
        ("jobs of unknown size or times", read.num_left_out),
        ("snapshots", None if writer is None else f"{len(writer.written)} in {snapshots}"),
        ("table", csv),
        ("time line", timeline),
        ("document", output),
    ):
        if text:
            say(f"{label}: {text}", as_json=as_json)
    if as_json:
        print_json(document)


def _runs(
    setup: Setup, allocators: Sequence[str | Allocator], writer: SnapshotWriter | None
) -> tuple[list[MethodRun], bool]:
    """Return the run of each allocator, and whether a signal ended them early."""
    runs: list[MethodRun] = []
    with heeded() as interrupt:
        for one in allocators:
            if not interrupt:
                runs.append(_run(setup, one, writer if one is allocators[-1] else None))
        if interrupt and not any(run.records for run in runs):
            raise Interrupted
    return runs, bool(interrupt)


def _run(setup: Setup, allocator: str | Allocator, writer: SnapshotWriter | None) -> MethodRun:
    from topoplace.study.replay import run_method  # noqa: PLC0415 - heavy

    name = allocator if isinstance(allocator, str) else allocator.name
    with counted(name) as progress:
        total = len(setup.jobs)
        return run_method(setup, allocator, lambda done: progress(done, total), writer)


def _patterns_of(mix: str | None, pattern: str | None, share: int | None) -> tuple[PatternUse, ...]:
    """Return the patterns of the jobs that communicate."""
    from topoplace.snapshot.schema import Pattern, PatternUse  # noqa: PLC0415 - heavy
    from topoplace.study.replay import MIXES  # noqa: PLC0415 - heavy

    if pattern is not None:
        if mix is not None:
            raise InputError("either --mix or --pattern", field="--mix", found="both")
        if pattern not in list(Pattern):
            raise unknown_name(pattern, Pattern, field="--pattern")
        return (PatternUse(pattern=Pattern(pattern), share=100 if share is None else share),)
    if share is not None:
        raise InputError("--pattern beside it", field="--share", value=share)
    mix = DEFAULT_MIX if mix is None else mix
    if mix not in MIXES:
        raise unknown_name(mix, MIXES, field="--mix")
    return MIXES[mix]


def _empty_machine(spec: str) -> TreeState | SnapshotState:
    """Return a machine on which nothing runs."""
    from topoplace.snapshot import Snapshot, load_machine, prepare_any  # noqa: PLC0415 - heavy

    machine = load_machine(spec)
    return prepare_any(
        Snapshot(schema_version="topoplace.snapshot/1", name=machine.name, machine=machine)
    )


def _methods_to_run(
    state: TreeState | SnapshotState,
    method: str | None,
    command: str | None,
    against: str | None,
    *,
    in_prisms: bool,
) -> list[str | Allocator]:
    """Return who places in a replay, each once, the one that others are compared with first."""
    from topoplace.snapshot import TreeState  # noqa: PLC0415 - heavy
    from topoplace.solving import method_names, method_of  # noqa: PLC0415 - heavy
    from topoplace.study.external.allocator import chosen  # noqa: PLC0415 - heavy

    require_one(method, command)
    if method is None and command is None:
        raise InputError("--method NAME or --command TEXT", field="--method", found="neither")
    on_tree = isinstance(state, TreeState)
    known = method_names("allocation" if on_tree else "placement")
    main = chosen(method or "", command, known)
    if in_prisms:
        if isinstance(main, str) or on_tree:
            raise InputError("an allocator that is not ours, on a torus", field="--prisms")
        main = dataclasses.replace(main, in_prisms=True)
    if on_tree:  # its costs are what others' run times are reckoned with
        method_of("allocation", against or "default")
        found = [against or "default", main]
    else:
        found = [main if against is None else chosen(against, None, known), main]
    return found[1:] if found[0] == main else found


def _require_options_of(
    state: TreeState | SnapshotState, protocol: str, interference: str, fill_interior: bool
) -> None:
    """Raise `InputError` for an option that machines of this kind do not have."""
    from topoplace.snapshot import TreeState  # noqa: PLC0415 - heavy

    if not isinstance(state, TreeState):
        if protocol == "individual":
            raise InputError("a tree machine beside it", field="--protocol", value=protocol)
        return
    if fill_interior:
        raise InputError("a torus, whose jobs have prisms", field="--fill-interior")
    if interference != "strict":
        raise InputError("a torus to share links on", field="--interference", value=interference)


def _require_started(runs: Sequence[MethodRun], jobs: Sequence[LogJob], log: Path) -> None:
    """Raise `InputError` if the machine had room for no job: there is nothing to report."""
    if not any(run.records for run in runs):
        least = min(job.nodes for job in jobs)
        raise InputError(
            "at least one job that fits the machine",
            file=str(log),
            found=f"none of {len(jobs)}, the smallest of {least} nodes",
        )


def _snapshot_writer(
    folder: Path | None, every: int | None, at: str | None, log: Path
) -> SnapshotWriter | None:
    """Return what writes the snapshots, None if none is wanted; makes their folder."""
    from topoplace.snapshot.readers.tables import integer, name_of  # noqa: PLC0415 - heavy
    from topoplace.study.replay import SnapshotWriter  # noqa: PLC0415 - heavy

    if folder is None:
        for option, value in (("--every", every), ("--at", at)):
            if value is not None:
                raise InputError("--snapshots beside it", field=option, value=value)
        return None
    if every is None and at is None:
        raise InputError("--every or --at beside it", field="--snapshots", found="neither")
    times = [] if at is None else [integer(text.strip(), 0, field="--at") for text in at.split(",")]
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise InputError(
            f"a folder that can be made ({error.strerror})",
            field="--snapshots",
            value=str(folder),
        ) from None
    return SnapshotWriter(folder, name_of(log), every, times)
