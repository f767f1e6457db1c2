"""The commands about many instances: `topoplace compare`, `batch`, `audit` and `replay`."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from topoplace import front, options
from topoplace.cli.options import command, require_writable
from topoplace.cli.output import (
    counted,
    print_json,
    say,
    say_files,
    shown,
    tell_breaches,
    tell_trials,
)
from topoplace.errors import ExitCode, InputError, refuse
from topoplace.options import option

if TYPE_CHECKING:
    from topoplace.study.batch.run import Batch
    from topoplace.study.external.allocator import VerdictError

BATCH_SCHEMA = "topoplace.batch/1"


@dataclass(frozen=True, kw_only=True)
class CompareFiles:
    """What `topoplace compare` writes."""

    csv: Path | None = option("F", "Write the table as CSV here.")
    html: Path | None = option("F", "Write a page with tables, plots and pictures here.")
    stderr: Path | None = option("F", "Keep what allocators of your own say here.")
    results: Path | None = option("DIR", "Write all results here; the page links to them.")


@command
def compare(asked: options.Compare, files: CompareFiles) -> None:
    """Run methods on each SNAPSHOT and hold all its results against the best certified bound."""
    results = files.results
    require_writable(*asked.sources, csv=files.csv, html=files.html, stderr=files.stderr)
    exhibits = front.writing.Exhibits(folder=results, pictures=files.html is not None)
    require_writable(results=None if results is None else results / "r.json")
    with shown() as watch:
        default = watch is None and asked.methods is None  # nobody chose what to wait for
        begin = partial(say, aside=True) if default else None
        given = vars(replace(asked, keep=exhibits.keep, callback=watch, begin=begin))
        comparison = front.studies.compare(*given.pop("sources"), **given)
    front.writing.write(comparison, csv=files.csv, html=files.html, files=exhibits)
    say(str(comparison))
    tell_trials(comparison.trials, files.stderr, verdicts=True)
    told = {"table": files.csv, "page": files.html, "results": results, "stderr": files.stderr}
    say_files(told)
    refused = [trial.refusal for trial in comparison.trials if trial.refusal is not None]
    verdicts = {"verdicts": [one.document for one in refused]} if refused else {}
    print_json(comparison.document() | verdicts)
    raise typer.Exit(max((one.exit_code for one in refused), default=ExitCode.DONE))


@command
def batch(asked: options.Batch) -> None:
    """Solve every instance that has no result in OUTDIR yet; killed, it goes on when run again."""
    with counted("batch") as progress:
        done = front.studies.batched(asked, progress)
    _report(done)
    raise typer.Exit(done.exit_code)


def _report(done: Batch) -> None:
    say(str(done))
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


@dataclass(frozen=True, kw_only=True)
class AuditFiles:
    """What `topoplace audit` tolerates, and what it writes."""

    tolerate: float = option(
        "PERCENT", "Most domains above the fewest, in percent of these.", default=0.0
    )
    csv: Path | None = option("F", "Write a row per decision as CSV here.")
    html: Path | None = option("F", "Write a page with tables and all decisions here.")


@command
def audit(asked: options.Audit, files: AuditFiles) -> None:
    """Hold decisions of schedulers against the rules and the proven optimum; exit 0, 5 or 6."""
    tolerate, csv, html = files.tolerate, files.csv, files.html
    if not (math.isfinite(tolerate) and tolerate >= 0):
        raise InputError("a percentage of at least 0", field="--tolerate", value=tolerate)
    require_writable(*asked.sources, asked.after, csv=csv, html=html)
    with counted("audit") as progress:
        found, names = front.studies.audited(asked, progress)
    front.writing.write(found, csv=csv, html=html, files=names)
    say(str(found))
    say_files({"table": csv, "page": html, "results": asked.results})
    code = found.exit_code(tolerate)
    print_json(found.document() | {"tolerate": tolerate, "exit_code": int(code)})
    raise typer.Exit(code)


@dataclass(frozen=True, kw_only=True)
class ReplayFiles:
    """What `topoplace replay` writes."""

    csv: Path | None = option("F", "Write a line per job as CSV here.")
    timeline: Path | None = option("F", "Write a line per event as CSV here.")
    output: Path | None = option("F", "Write the JSON document here.", "-o", "--output")


@command
def replay(asked: options.Replay, files: ReplayFiles) -> None:
    """Replay LOG on a machine through an allocation or placement method (docs/guide/replay.md)."""
    if asked.protocol == "individual":
        refused = {"snapshots": asked.snapshots, "timeline": files.timeline}
        refuse("a continuous run with it", **refused)
    require_writable(asked.log, **vars(files))
    found = front.replaying.replay(asked, counted, _tell_refused)
    front.replaying.write(found, **vars(files))
    say(str(found))
    say_files(found.counts(asked.snapshots))
    say_files({"table": files.csv, "time line": files.timeline, "document": files.output})
    print_json(found.document)


def _tell_refused(refused: VerdictError, path: Path | None) -> None:
    tell_breaches(refused)
    if path is not None:
        say(f"snapshot: {path}")
    print_json(refused.document)
