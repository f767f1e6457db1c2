"""Replay job logs through allocators, for the command line."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from topoplace.errors import InputError, number_of, refuse, unknown_name
from topoplace.formats.text import integer, name_of
from topoplace.front.documents import options_of, require_one
from topoplace.interrupts import Interrupted, heeded
from topoplace.kernels import compile_for
from topoplace.kinds import kind_named
from topoplace.mapping.onto import document_of
from topoplace.options import DEFAULT_MIX, Replay
from topoplace.report.replay import (
    decisions_text,
    efficiency_table,
    replay_csv,
    replay_document,
    replay_table,
    timeline_csv,
)
from topoplace.snapshot.files import make_folder, write_document, write_text
from topoplace.snapshot.machines import AnyState, prepare_empty
from topoplace.snapshot.schema import Pattern, PatternUse, Snapshot, TreeObjective
from topoplace.solving import method_names, method_of
from topoplace.solving.solve import tree_objective
from topoplace.study.external.allocator import Allocator, VerdictError, chosen
from topoplace.study.replay import (
    MIXES,
    LogJob,
    MethodRun,
    Protocol,
    Setup,
    SnapshotWriter,
    read_log,
    run_method,
    with_intensive,
)
from topoplace.study.replay.torus import Leaving, begun_at, leaving_job

__all__ = ["Replayed", "replay", "replay_csv", "timeline_csv"]

Counted = Callable[[str], AbstractContextManager[Callable[..., None]]]
"""Shows, for an allocator by name, how many of how many jobs are done."""


@dataclass(frozen=True)
class Replayed:
    """What came of it: the runs, and the document of them."""

    setup: Setup
    runs: Sequence[MethodRun]
    document: dict[str, Any]

    def __str__(self) -> str:
        tables = [replay_table(self.runs)]
        if self.setup.site.has_prisms:
            tables.append(efficiency_table(self.runs))
        return "\n\n".join(tables)

    def counts(self, snapshots: Path | None) -> dict[str, object]:
        """Return what is told below the tables, by its label; None of what there is none of."""
        document = self.document
        missing = "interrupted: jobs left out" if document["interrupted"] else "jobs without room"
        counts = {
            "decisions": decisions_text(self.runs),
            missing: len(self.setup.jobs) - len(self.runs[-1].records),
            f"jobs {document['jobs_unknown_why']}": document["jobs_unknown"],
            "not modelled": ", ".join(
                f"{name} {n}" for name, n in document["not_modelled"].items()
            ),
            "snapshots": snapshots and f"{len(document['snapshots'])} in {snapshots}",
        }
        return {label: count or None for label, count in counts.items()}


def write(found: Replayed, *, csv: Path | None, timeline: Path | None, output: Path | None) -> None:
    """Write the jobs, the events and the document, where that is asked for."""
    if csv is not None:
        write_text(csv, replay_csv(found.runs))
    if timeline is not None:
        write_text(timeline, timeline_csv(found.runs))
    if output is not None:
        text = json.dumps(found.document, ensure_ascii=False, allow_nan=False)
        write_text(output, text + "\n")


def replay(
    asked: Replay, counted: Counted, refused: Callable[[VerdictError, Path | None], None]
) -> Replayed:
    """Replay a log through the allocators asked for.

    `refused` is called with the verdict on an allocator that breaks a rule, before it is raised,
    and with where the snapshot is on which it did.
    """
    begin = time.perf_counter()
    state, model, counts, leaving = _machine(asked)
    site = kind_named(state.kind).get("site")
    kind = state.kind if counts is None else _PROBLEMS[counts]
    allocators, patterns = _methods_to_run(kind, asked), _patterns_of(asked)
    torus = model if site.has_prisms else None
    read = read_log(
        asked.log,
        procs_per_node=asked.procs_per_node,
        machine=torus,
        partitions=asked.partitions or {},
        queues=asked.queues or {},
    )
    jobs = with_intensive(read.jobs[: asked.limit], asked.intensive, patterns, asked.seed)
    if not jobs:
        raise InputError("at least one job of known size and times", file=str(asked.log))
    setup = Setup(
        state,
        jobs,
        Protocol(asked.protocol),
        allocators[0] if isinstance(allocators[0], str) else "",  # of no use on a torus
        asked.occupancy,
        options_of(asked),
        asked.fill_interior,
        objective=counts or TreeObjective.CONTENTION,
        sharing=asked.sharing,
        running=[leaving_job(state, one, ends, patterns, jobs) for one, ends in leaving],
        whole_queue=asked.whole_queue,
    )
    begin += compile_for(kind, [one for one in allocators if isinstance(one, str)])
    writer = _snapshot_writer(asked)
    try:
        runs, interrupted = _runs(setup, allocators, writer, counted)
    except VerdictError as error:
        path = None
        if asked.snapshots is not None:
            path = asked.snapshots / f"{error.snapshot.name}-refused.json"
            write_document(path, error.snapshot)
        refused(error, path)
        raise
    _require_started(runs, jobs, asked.log)
    document = {
        **replay_document(setup, runs),
        "log": str(asked.log),
        "command": asked.command,
        "jobs_unknown": read.num_left_out,
        "jobs_unknown_why": read.why_left_out,
        "not_modelled": dict(sorted(read.not_modelled.items())),
        "patterns": [use.model_dump(mode="json") for use in patterns],
        "intensive_percent": asked.intensive,
        "objective": counts,
        "snapshots": [] if writer is None else [str(path) for path in writer.written],
        "interrupted": interrupted,
        "seconds": round(time.perf_counter() - begin, 3),
    }
    return Replayed(setup, runs, document)


def _machine(asked: Replay) -> tuple[AnyState, Any, TreeObjective | None, Leaving]:
    """Return the machine, ready and as a document, what counts if it is a tree, and who leaves."""
    options_of(asked)  # checks them
    if asked.protocol not in list(Protocol):
        raise unknown_name(asked.protocol, Protocol, field="--protocol")
    known = document_of(asked.machine)
    if isinstance(known, Snapshot):
        refuse("a switch tree beside it", objective=asked.objective)
        begun, leaving = begun_at(known)
        return begun, begun.snapshot.machine, None, leaving
    model: Any = known
    state = prepare_empty(model)
    site = kind_named(state.kind).offered("site", "a machine", field="--on", value=asked.machine)
    if site.has_prisms:
        refuse("a switch tree beside it", objective=asked.objective)
        return state, model, None, []
    refuse("a torus, whose jobs have prisms", fill_interior=asked.fill_interior)
    refuse("a torus", whole_queue=asked.whole_queue, partitions=asked.partitions)
    shared = asked.interference if asked.interference != "strict" else None
    refuse("a torus to share links on", interference=shared, sharing=asked.sharing)
    default = TreeObjective.CONTENTION if asked.intensive else TreeObjective.DOMAINS
    return state, model, tree_objective(asked.objective) or default, []


def _runs(
    setup: Setup,
    allocators: Sequence[str | Allocator],
    writer: SnapshotWriter | None,
    counted: Counted,
) -> tuple[list[MethodRun], bool]:
    """Return the run of each allocator, and whether a signal ended them early."""
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


def _patterns_of(asked: Replay) -> tuple[PatternUse, ...]:
    """Return the patterns of the jobs that communicate."""
    if asked.pattern is not None:
        if asked.mix is not None:
            raise InputError("either --mix or --pattern", field="--mix", found="both")
        if asked.pattern not in list(Pattern):
            raise unknown_name(asked.pattern, Pattern, field="--pattern")
        share = 100 if asked.share is None else asked.share
        return (PatternUse(pattern=Pattern(asked.pattern), share=share),)
    refuse("--pattern with it", share=asked.share)
    mix = DEFAULT_MIX if asked.mix is None else asked.mix
    if mix not in MIXES:
        raise unknown_name(mix, MIXES, field="--mix")
    return MIXES[mix]


_PROBLEMS = {"domains": "hierarchy", "contention": "allocation"}
"""Whose methods place jobs on a switch tree, by what counts there."""


def _methods_to_run(kind: str, asked: Replay) -> list[str | Allocator]:
    """Return who places in a replay, each once, the one that others are compared with first."""
    method, command, against = asked.method, asked.command, asked.against
    require_one(method, command)
    if method is None and command is None:
        raise InputError("--method NAME or --command TEXT", field="--method", found="neither")
    known = method_names(kind)
    main = chosen(method or "", command, known)
    if asked.prisms:
        if isinstance(main, str) or kind != "placement":
            raise InputError("an allocator that is not ours, on a torus", field="--prisms")
        main = dataclasses.replace(main, in_prisms=True)
    if kind != "placement":  # its costs are what others' run times are reckoned with
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


def _snapshot_writer(asked: Replay) -> SnapshotWriter | None:
    """Return what writes the snapshots, None if none is wanted; makes their folder."""
    folder, every, at = asked.snapshots, asked.every, asked.at
    if folder is None:
        refuse("--snapshots with it", every=every, at=at)
        return None
    if every is None and at is None:
        raise InputError("--every or --at with it", field="--snapshots", found="neither")
    times = [] if at is None else [integer(text.strip(), 0, field="--at") for text in at.split(",")]
    make_folder(folder, "--snapshots", parents=False)
    return SnapshotWriter(folder, name_of(asked.log), every, times)
