"""`topoplace replay`: a job log through an allocator."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from topoplace import front
from topoplace.cli.options import (
    argument,
    flag,
    option,
    require_writable,
    with_options,
)
from topoplace.cli.output import counted, print_json, say, say_files, tell_breaches
from topoplace.cli.shipped_names import machines_like, methods_like
from topoplace.errors import refuse

if TYPE_CHECKING:
    from topoplace.study.external.verdict import VerdictError

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
    if protocol == "individual":
        refuse("a continuous run with it", snapshots=snapshots, timeline=timeline)
    require_writable(log, csv=csv, timeline=timeline, output=output)
    asked = front.replaying.Asked(
        log, machine, method, command, prisms, against, protocol, mix, pattern, share, intensive,
        occupancy, limit, procs_per_node, time_limit, interference, objective, fill_interior, seed,
        snapshots, every, at,
    )  # fmt: skip
    found = front.replaying.replay(asked, counted, _tell_refused)
    front.replaying.write(found, csv=csv, timeline=timeline, output=output)
    say(str(found))
    say_files(found.counts(snapshots))
    say_files({"table": csv, "time line": timeline, "document": output})
    print_json(found.document)


def _tell_refused(refused: VerdictError, path: Path | None) -> None:
    tell_breaches(refused)
    if path is not None:
        say(f"snapshot: {path}")
    print_json(refused.document)
