"""`topoplace place`: place the queue of a snapshot."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from topoplace import front
from topoplace.cli.options import (
    argument,
    listed,
    option,
    require_one,
    require_writable,
    with_options,
)
from topoplace.cli.output import end_with, print_json, shown, tell_trials
from topoplace.cli.shipped_names import methods_like, snapshots_like

if TYPE_CHECKING:
    from topoplace.study.external.trial import Trial
from topoplace.errors import refuse


@with_options(
    snapshot=argument(
        "SNAPSHOT",
        "A snapshot file, the name of a shipped one, or - for stdin.",
        autocompletion=snapshots_like,
    ),
    method=option(
        "NAME",
        "The placement method, or an installed allocator; default exact.",
        autocompletion=methods_like,
    ),
    output=option("RESULT", "Write the result file here.", "-o", "--output"),
    png=option("F", "Draw the machine and its jobs into a PNG file."),
    hostlist=option("F", "Write a line per request that starts: its name, its nodes."),
    csv=option("F", "Write what starts as CSV: request, nodes, prism, hosts, cost, score."),
    required=option(
        "'LEVEL>=N,..'", "Require this of a level (quote it), instead of its optimum.", "--set"
    ),
    objective=option(
        "NAME",
        "On tori nodes,hop-bytes: map the applications of requests; most nodes, then fewest bytes "
        "x hops. On switch trees domains, the fewest switches, or contention; by default that "
        "where requests have patterns.",
    ),
    rank_files=option("DIR", "Write the mapping of every job here, as DIR/REQUEST.csv."),
    pareto=option("A,B[,C]", "Trade these levels off: all their best placements, and the proof."),
    most=option("N", "Find up to N placements that are as good as any, and prove it.", "--all"),
    distinct=option(
        "started|prisms|nodes",
        "--all: what tells placements apart; default prisms on tori, else started.",
    ),
    levels=option("A[,B]", "--all: the first levels, which count; default all."),
)
def place(
    snapshot: Path,
    *,
    method: str | None = None,
    command: str | None = None,
    stderr: Path | None = None,
    time_limit: float | None = None,
    thorough: bool = False,
    interference: str = "strict",
    contract: str | None = None,
    ignore: str = "",
    seed: int = 0,
    output: Path | None = None,
    png: Path | None = None,
    hostlist: Path | None = None,
    csv: Path | None = None,
    required: str | None = None,
    objective: str | None = None,
    rank_files: Path | None = None,
    pareto: str | None = None,
    most: int | None = None,
    distinct: str | None = None,
    levels: str | None = None,
    as_json: bool = False,
) -> None:
    """Place the queue of SNAPSHOT on its machine and prove how good the answer is."""
    mapped = (objective or "").replace(" ", "") == "nodes,hop-bytes"
    if not mapped:
        refuse("--objective nodes,hop-bytes with this option", rank_files=rank_files)
    files = {"output": output, "png": png, "hostlist": hostlist, "csv": csv}
    require_writable(snapshot, **files, stderr=stderr)
    require_one(method, command)
    asked: dict[str, Any] = {
        "time_limit": time_limit, "interference": interference, "contract": contract,
        "objective": objective, "ignore": listed(ignore), "seed": seed,
    }  # fmt: skip
    label = "result"
    if pareto is None and most is None:
        refuse("--all with it", distinct=distinct, levels=levels)
        asked |= {"thorough": thorough, "required": required, "command": command}
        trials: list[Trial] = []
        with shown() as watch:
            try:
                found: Any = front.placing.place(
                    snapshot, method or "exact", tried=trials.append, callback=watch, **asked
                )
            finally:
                for trial in trials:
                    tell_trials([trial], stderr)
                    if trial.refusal is not None:
                        print_json(trial.refusal.document)
    else:
        refuse(
            f"no other than -o and --png with {'--all' if pareto is None else '--pareto'}",
            method=method, command=command, set=required, hostlist=hostlist, csv=csv,
            objective=objective if mapped else None,
            all=None if pareto is None else most,
        )  # fmt: skip
        with shown() as watch:
            if pareto is not None:
                label, traded = "frontier", pareto.split(",")
                found = front.several.frontier(snapshot, traded, callback=watch, **asked)
            else:
                label, first = "optima", levels.split(",") if levels else ()
                asked |= {"levels": first, "distinct": distinct}
                found = front.several.optima(snapshot, most or 0, callback=watch, **asked)
    front.writing.write(found, **files, rank_files=rank_files)
    end_with(
        found,
        {label: output, "picture": png, "host lists": hostlist, "csv": csv, "stderr": stderr},
    )
