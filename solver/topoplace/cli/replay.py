"""`topoplace replay`: a job log through an allocator."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from topoplace.cli.options import (
    argument,
    flag,
    option,
    refuse,
    require_one,
    require_writable,
    solve_options,
    with_options,
)
from topoplace.cli.output import counted, json_text, print_json, say, say_files, tell_breaches
from topoplace.cli.shipped_names import machines_like, methods_like
from topoplace.errors import InputError, number_of, unknown_name
from topoplace.interrupts import Interrupted, heeded

if TYPE_CHECKING:
    from topoplace.snapshot.schema import PatternUse, TreeObjective
    from topoplace.study.external.allocator import Allocator
    from topoplace.study.external.verdict import VerdictError
    from topoplace.study.replay import LogJob, MethodRun, Setup, SnapshotWriter

DEFAULT_MIX = "B"


@with_options(
    log=argument("LOG", "A job log (SWF), or a trace of RFold (CSV)."),
    machine=option(
        "MACHINE",
        "A machine: a file, a shipped name, tree:24x16 or torus:8x8x8.",
        "--on",
        autocompletion=machines_like,
    ),
    method=option(
        "NAME",
        "The method of allocation or placement, or an installed allocator.",
        autocompletion=methods_like,
    ),
    prisms=flag("torus: an allocator of your own needs a free prism for every job.", "--prisms"),
    against=option(
        "NAME",
        "On a tree, the method whose run times are the log's; default Slurm's. On a torus, one to "
        "compare with.",
    ),
    protocol=option(
        "continuous|individual", "All jobs together, or each alone with the same running jobs."
    ),
    mix=option("A..E", f"Patterns of Mishra 2020; default {DEFAULT_MIX}."),
    pattern=option("NAME", "One pattern, instead of a mix."),
    share=option("PERCENT", "Its share of the time; default 100.", min=1, max=100),
    intensive=option("PERCENT", "Jobs that communicate.", min=0, max=100),
    occupancy=option("PERCENT", "individual: nodes held beforehand.", min=0, max=100),
    limit=option("N", "Take the first N jobs only.", min=1),
    procs_per_node=option("N", "Processors of a node in the log.", min=1),
    fill_interior=flag(
        "torus: offer idle nodes inside prisms to jobs without links.", "--fill-interior"
    ),
    snapshots=option("DIR", "Write snapshots on the way here."),
    every=option("N", "A snapshot after every N starts.", min=1),
    at=option("S,S,...", "Snapshots at these seconds."),
    csv=option("F", "Write a line per job as CSV here."),
    timeline=option("F", "Write a line per event as CSV here."),
    output=option("F", "Write the JSON document here.", "-o", "--output"),
)
def replay(
    log: Path,
    *,
    machine: str,
    method: str | None = None,
    command: str | None = None,
    prisms: bool = False,
    against: str | None = None,
    protocol: str = "continuous",
    mix: str | None = None,
    pattern: str | None = None,
    share: int | None = None,
    intensive: int = 90,
    occupancy: int = 50,
    limit: int | None = None,
    procs_per_node: int = 1,
    time_limit: float | None = None,
    interference: str = "strict",
    objective: str | None = None,
    fill_interior: bool = False,
    seed: int = 0,
    snapshots: Path | None = None,
    every: int | None = None,
    at: str | None = None,
    csv: Path | None = None,
    timeline: Path | None = None,
    output: Path | None = None,
    as_json: bool = False,
) -> None:
    """Replay LOG on a machine through an allocation or placement method (docs/guide/replay.md)."""
    from topoplace.kernels import compile_for
    from topoplace.report.replay import replay_document
    from topoplace.snapshot.machines import load_machine, prepare_empty
    from topoplace.snapshot.schema import TorusModel
    from topoplace.snapshot.state import SnapshotState
    from topoplace.snapshot.tree_state import TreeState
    from topoplace.solving.solve import tree_objective
    from topoplace.study.external.verdict import VerdictError
    from topoplace.study.replay import Protocol, Setup, read_log, with_intensive

    begin = time.perf_counter()
    options = solve_options(time_limit, interference, seed)
    if protocol not in list(Protocol):
        raise unknown_name(protocol, Protocol, field="--protocol")
    if protocol == Protocol.INDIVIDUAL:
        refuse("a continuous run with it", snapshots=snapshots, timeline=timeline)
    require_writable(log, csv=csv, timeline=timeline, output=output)
    model = load_machine(machine)
    state = prepare_empty(model)
    if not isinstance(state, SnapshotState | TreeState):
        raise InputError("a torus, mesh or tree", field="--on", value=machine)
    if isinstance(state, TreeState):
        refuse("a torus, whose jobs have prisms", fill_interior=fill_interior)
        shared = interference if interference != "strict" else None
        refuse("a torus to share links on", interference=shared)
    else:
        refuse("a switch tree beside it", objective=objective)
    counts = tree_objective(objective) or _by_default(intensive)
    kind = _PROBLEMS[counts] if isinstance(state, TreeState) else "placement"
    allocators = _methods_to_run(kind, method, command, against, in_prisms=prisms)
    patterns = _patterns_of(mix, pattern, share)
    torus = model if isinstance(model, TorusModel) else None
    read = read_log(log, procs_per_node=procs_per_node, machine=torus)
    jobs = with_intensive(read.jobs[:limit], intensive, patterns, seed)
    if not jobs:
        raise InputError("at least one job of known size and times", file=str(log))
    reference = allocators[0] if isinstance(allocators[0], str) else ""  # of no use on a torus
    setup = Setup(
        state,
        jobs,
        Protocol(protocol),
        reference,
        occupancy,
        options,
        fill_interior,
        objective=counts,
    )
    ours = [one for one in allocators if isinstance(one, str)]
    begin += compile_for(kind, ours)
    writer = _snapshot_writer(snapshots, every, at, log)
    try:
        runs, interrupted = _runs(setup, allocators, writer)
    except VerdictError as refused:
        _tell_refused(refused, snapshots)
        raise
    _require_started(runs, jobs, log)
    document = {
        **replay_document(setup, runs),
        "log": str(log),
        "command": command,
        "jobs_unknown": read.num_left_out,
        "jobs_unknown_why": read.why_left_out,
        "not_modelled": dict(sorted(read.not_modelled.items())),
        "patterns": [use.model_dump(mode="json") for use in patterns],
        "intensive_percent": intensive,
        "objective": counts if isinstance(state, TreeState) else None,
        "snapshots": [] if writer is None else [str(path) for path in writer.written],
        "interrupted": interrupted,
        "seconds": round(time.perf_counter() - begin, 3),
    }
    _tell(setup, runs, document, snapshots, csv, timeline, output)


def _tell_refused(refused: VerdictError, snapshots: Path | None) -> None:
    from topoplace.snapshot.files import write_document

    tell_breaches(refused)
    if snapshots is not None:
        path = snapshots / f"{refused.snapshot.name}-refused.json"
        write_document(path, refused.snapshot)
        say(f"snapshot: {path}")
    print_json(refused.document)


def _tell(
    setup: Setup,
    runs: list[MethodRun],
    document: dict[str, Any],
    snapshots: Path | None,
    csv: Path | None,
    timeline: Path | None,
    output: Path | None,
) -> None:
    """Write the files asked for, and say what came of the runs."""
    from topoplace.report.replay import (
        decisions_text,
        efficiency_table,
        replay_csv,
        replay_table,
        timeline_csv,
    )
    from topoplace.snapshot.files import write_text
    from topoplace.snapshot.tree_state import TreeState

    if csv is not None:
        write_text(csv, replay_csv(runs))
    if timeline is not None:
        write_text(timeline, timeline_csv(runs))
    if output is not None:
        write_text(output, json_text(document) + "\n")
    say(replay_table(runs))
    if not isinstance(setup.state, TreeState):
        say("\n" + efficiency_table(runs))
    missing = "interrupted: jobs left out" if document["interrupted"] else "jobs without room"
    counts = {
        "decisions": decisions_text(runs),
        missing: len(setup.jobs) - len(runs[-1].records),
        f"jobs {document['jobs_unknown_why']}": document["jobs_unknown"],
        "not modelled": ", ".join(f"{name} {n}" for name, n in document["not_modelled"].items()),
        "snapshots": snapshots and f"{len(document['snapshots'])} in {snapshots}",
    }
    say_files({label: count or None for label, count in counts.items()})
    say_files({"table": csv, "time line": timeline, "document": output})
    print_json(document)


def _runs(
    setup: Setup, allocators: Sequence[str | Allocator], writer: SnapshotWriter | None
) -> tuple[list[MethodRun], bool]:
    """Return the run of each allocator, and whether a signal ended them early."""
    from topoplace.study.replay import run_method

    runs: list[MethodRun] = []
    with heeded() as interrupt:
        for one in allocators:
            if interrupt:
                break
            with counted(one if isinstance(one, str) else one.name) as show:
                progress = partial(show, total=len(setup.jobs))
                runs.append(
                    run_method(setup, one, progress, writer if one is allocators[-1] else None)
                )
        if interrupt and not any(run.records for run in runs):
            raise Interrupted
    return runs, bool(interrupt)


def _patterns_of(mix: str | None, pattern: str | None, share: int | None) -> tuple[PatternUse, ...]:
    """Return the patterns of the jobs that communicate."""
    from topoplace.snapshot.schema import Pattern, PatternUse
    from topoplace.study.replay import MIXES

    if pattern is not None:
        if mix is not None:
            raise InputError("either --mix or --pattern", field="--mix", found="both")
        if pattern not in list(Pattern):
            raise unknown_name(pattern, Pattern, field="--pattern")
        return (PatternUse(pattern=Pattern(pattern), share=100 if share is None else share),)
    refuse("--pattern with it", share=share)
    mix = DEFAULT_MIX if mix is None else mix
    if mix not in MIXES:
        raise unknown_name(mix, MIXES, field="--mix")
    return MIXES[mix]


_PROBLEMS = {"domains": "hierarchy", "contention": "allocation"}
"""Whose methods place jobs on a switch tree, by what counts there."""


def _by_default(intensive: int) -> TreeObjective:
    """Return what counts on a switch tree, by the share of jobs that have patterns."""
    from topoplace.snapshot.schema import TreeObjective

    return TreeObjective.CONTENTION if intensive else TreeObjective.DOMAINS


def _methods_to_run(
    kind: str,
    method: str | None,
    command: str | None,
    against: str | None,
    *,
    in_prisms: bool,
) -> list[str | Allocator]:
    """Return who places in a replay, each once, the one that others are compared with first."""
    from topoplace.solving import method_names, method_of
    from topoplace.study.external.allocator import chosen

    require_one(method, command)
    if method is None and command is None:
        raise InputError("--method NAME or --command TEXT", field="--method", found="neither")
    on_tree = kind != "placement"
    known = method_names(kind)
    main = chosen(method or "", command, known)
    if in_prisms:
        if isinstance(main, str) or on_tree:
            raise InputError("an allocator that is not ours, on a torus", field="--prisms")
        main = dataclasses.replace(main, in_prisms=True)
    if on_tree:  # its costs are what others' run times are reckoned with
        method_of(kind, against or "default")
        found = [against or "default", main]
    else:
        found = [main if against is None else chosen(against, None, known), main]
    return found[1:] if found[0] == main else found


def _require_started(runs: Sequence[MethodRun], jobs: Sequence[LogJob], log: Path) -> None:
    """Raise `InputError` if the machine had room for no job: there is nothing to report."""
    if not any(run.records for run in runs):
        least = min(job.nodes for job in jobs)
        found = f"none of {len(jobs)}, the smallest of {number_of(least, 'node')}"
        raise InputError("at least one job that fits the machine", file=str(log), found=found)


def _snapshot_writer(
    folder: Path | None, every: int | None, at: str | None, log: Path
) -> SnapshotWriter | None:
    """Return what writes the snapshots, None if none is wanted; makes their folder."""
    from topoplace.formats.text import integer, name_of
    from topoplace.study.replay import SnapshotWriter

    if folder is None:
        refuse("--snapshots with it", every=every, at=at)
        return None
    if every is None and at is None:
        raise InputError("--every or --at with it", field="--snapshots", found="neither")
    times = [] if at is None else [integer(text.strip(), 0, field="--at") for text in at.split(",")]
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        expected = f"a folder that can be made ({error.strerror})"
        raise InputError(expected, field="--snapshots", value=str(folder)) from None
    return SnapshotWriter(folder, name_of(log), every, times)
