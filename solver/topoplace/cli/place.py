"""`topoplace place`: place the queue of a snapshot."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from topoplace.cli.options import (
    argument,
    listed,
    option,
    refuse,
    require_one,
    require_writable,
    solve_options,
    with_options,
)
from topoplace.cli.output import end_with, end_with_several, print_json, shown, tell_trials
from topoplace.cli.shipped_names import methods_like, snapshots_like

if TYPE_CHECKING:
    from topoplace.result import PlacementResult
    from topoplace.result.cubes import CubesResult
    from topoplace.result.hierarchy import HierarchyResult
    from topoplace.result.tree import AllocationResult
    from topoplace.snapshot.machines import AnyState
    from topoplace.solving import Options

DEFAULT_METHOD = "exact"


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
    from topoplace.report.view import csv_text, hostlist_text
    from topoplace.snapshot.files import write_document, write_text
    from topoplace.snapshot.machines import load_any
    from topoplace.snapshot.state import SnapshotState
    from topoplace.solving.solve import maps_in, on_trees, required_in

    options = solve_options(time_limit, interference, seed, thorough=thorough)
    options = replace(options, maps=maps_in(objective))
    if rank_files is not None and not options.maps:
        refuse("--objective nodes,hop-bytes with this option", rank_files=rank_files)
    files = {"output": output, "png": png, "stderr": stderr, "hostlist": hostlist, "csv": csv}
    require_writable(snapshot, **files)
    state = load_any(snapshot, on_trees(objective), listed(ignore))
    if interference != "strict" and not isinstance(state, SnapshotState):
        refuse("no interference rule but on tori and meshes", interference=interference)
    if contract is not None:
        from topoplace.placement.hierarchy.contract import prepared_under

        state = prepared_under(state.snapshot, contract)
    if pareto is None and most is None:
        refuse("--all with it", distinct=distinct, levels=levels)
    else:
        refuse(
            f"no other than -o and --png with {'--all' if pareto is None else '--pareto'}",
            method=method, command=command, set=required, hostlist=hostlist, csv=csv,
            objective=objective if options.maps else None,
            all=None if pareto is None else most,
        )  # fmt: skip
        _several(state, pareto, (most, levels, distinct), options, output, png)
    if required is not None:
        options = replace(options, required=required_in(required, state, options))
    with shown() as watch:
        result = _placed(state, method, command, stderr, replace(options, watch=watch))
    if output is not None:
        write_document(output, result)
    if hostlist is not None:
        write_text(hostlist, hostlist_text(result))
    if csv is not None:
        write_text(csv, csv_text(result))
    if rank_files is not None:
        from topoplace.report.rank_files import write_rank_files

        write_rank_files(result, rank_files)
    if png is not None:
        from topoplace.report.figure import write_figure

        write_figure(result, png)
    files = {"result": output, "picture": png, "host lists": hostlist, "csv": csv, "stderr": stderr}
    end_with(result, files)


def _several(
    state: AnyState,
    pareto: str | None,
    wanted: tuple[int | None, str | None, str | None],
    options: Options,
    output: Path | None,
    png: Path | None,
) -> NoReturn:
    """Trade levels off, or find placements as good as any, and end the command."""
    from topoplace.kernels import compile_for
    from topoplace.placement.optima import optima_of
    from topoplace.placement.trade_off import traded_off
    from topoplace.result.several import Several

    compile_for(state.kind, [DEFAULT_METHOD])
    with shown() as watch:
        options = replace(options, watch=watch)
        most, levels, distinct = wanted
        found: Several
        if pareto is not None:
            found = traded_off(state, pareto.split(","), options)
        else:
            chosen = levels.split(",") if levels else ()
            found = optima_of(state, most or 0, chosen, distinct, options)
    end_with_several(found, "frontier" if pareto else "optima", output, png)


def _placed(
    state: AnyState,
    method: str | None,
    command: str | None,
    stderr: Path | None,
    options: Options,
) -> PlacementResult | AllocationResult | HierarchyResult | CubesResult:
    """Place the queue by a method, an installed allocator or a command; a verdict is raised."""
    from topoplace.kernels import compile_for
    from topoplace.solving import method_names, solve
    from topoplace.study.external.allocator import chosen

    require_one(method, command)
    problem = state.kind
    who = chosen(method or DEFAULT_METHOD, command, method_names(problem))
    if isinstance(who, str):
        compile_for(problem, [who])
        return solve(state, who, options)
    from topoplace.study.external.trial import try_on

    trial = try_on(state, who, options)
    tell_trials([trial], stderr)
    if trial.refusal is not None:
        print_json(trial.refusal.document)
        raise trial.refusal
    return trial.result
