"""`topoplace map`: map the tasks of an application onto an allocation."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from topoplace.cli import map_options as option
from topoplace.cli.map_files import MapFiles
from topoplace.cli.options import Json, Seed, require_seed, require_time_limit
from topoplace.cli.output import say, shown
from topoplace.errors import InputError

if TYPE_CHECKING:
    from topoplace.mapping.onto import Places
    from topoplace.snapshot.schema import GraphApplication, GridApplication

OF_GRAPH_FILE = "qaplib"
"""The `--on` that stands for the distances of the graph file."""


def map_command(
    *,
    on: option.On,
    grid: option.Grid = None,
    periodic: option.Periodic = "",
    message_bytes: option.MessageBytes = None,
    stencil: option.Stencil = "nearest",
    diagonal_bytes: option.DiagonalBytes = None,
    graph: option.Graph = None,
    graph_format: option.GraphFormat = None,
    flow: option.Flow = None,
    tasks_per_node: option.TasksPerNode = 1,
    within: option.Within = None,
    subset: option.Subset = None,
    job: option.Job = None,
    node_class: option.NodeClass = None,
    method: option.Method = "auto",
    mapping: option.Start = None,
    mapping_format: option.StartFormat = "csv",
    cell: option.Cell = None,
    column_major: option.ColumnMajor = False,
    max_depth: option.MaxDepth = None,
    time_limit: option.Limit = None,
    seed: Seed = 0,
    progress: option.ShowProgress = None,
    output: option.Output = None,
    png: option.Png = None,
    rank_order: option.RankOrder = None,
    node_list: option.NodeList = None,
    hostfile: option.RankFile = None,
    csv: option.RankFile = None,
    maplib: option.RankFile = None,
    scotch_map: option.RankFile = None,
    as_json: Json = False,
) -> None:
    """Map the tasks of a grid or graph onto MACHINE and bound the hop-bytes of any mapping."""
    from topoplace.cli.grid_options import grid_application, parse_extents  # noqa: PLC0415 - heavy
    from topoplace.kernels.ahead import compile_for  # noqa: PLC0415 - heavy
    from topoplace.mapping.onto import load_places, problem_on  # noqa: PLC0415 - heavy
    from topoplace.mapping.rankfiles import read_mapping  # noqa: PLC0415 - heavy
    from topoplace.report.summary import exit_code_of, summary  # noqa: PLC0415 - heavy
    from topoplace.snapshot.readers.tables import name_of  # noqa: PLC0415 - heavy
    from topoplace.solving import Options, solve  # noqa: PLC0415 - heavy

    require_time_limit(time_limit)
    require_seed(seed)
    files = MapFiles(output, png, rank_order, node_list, hostfile, csv, maplib, scotch_map)
    files.require_writable()
    application: GraphApplication | GridApplication
    if graph is not None:
        shape = [
            ("--grid", grid),
            ("--periodic", periodic),
            ("--bytes", message_bytes),
            ("--diagonal-bytes", diagonal_bytes),
            ("--stencil", stencil.replace("nearest", "")),
        ]
        _refuse("no such option beside --graph", shape)
        application, places = _graph_and_places(
            graph, graph_format, flow, on, job, node_class, within
        )
    else:
        of_file = [("--graph-format", graph_format), ("--flow", flow)]
        _refuse("a graph file (--graph) with this option", of_file)
        if on == OF_GRAPH_FILE:
            raise InputError("a graph file with --on qaplib", field="--graph", found="none")
        if grid is None:
            raise InputError(
                "a virtual grid, or a graph file (--graph)", field="--grid", found="neither"
            )
        application = grid_application(grid, periodic, message_bytes, stencil, diagonal_bytes)
        places = load_places(on, job=job, node_class=node_class, within=within)
    if subset is not None:
        places = places.only(subset)
    problem = problem_on(
        places,
        application,
        tasks_per_node,
        name=name_of(graph) if graph else None,
        file=str(graph) if graph else None,
    )
    files.require_suited(problem)
    start = None if mapping is None else read_mapping(mapping, mapping_format, problem)
    options = Options(
        time_limit=time_limit,
        seed=seed,
        cell=None if cell is None else parse_extents(cell, "--cell"),
        column_major=column_major,
        max_depth=max_depth,
        start=start,
    )

    if start is not None and method == "auto":
        method = "given"
    compile_for("mapping", [method])
    with shown(progress) as watch:
        result = solve(problem, method, replace(options, watch=watch))
    files.write(problem, result)
    say(summary(result), as_json=as_json)
    for name, path in files.asked.items():
        say(f"{name}: {path}", as_json=as_json)
    if as_json:
        print(result.model_dump_json())
    raise typer.Exit(exit_code_of(result))


def _graph_and_places(
    path: Path,
    form: str | None,
    flow: str | None,
    on: str,
    job: str | None,
    node_class: str | None,
    within: str | None,
) -> tuple[GraphApplication, Places]:
    """Return the graph of a file, and the places to map it to: given, or of the same file."""
    from topoplace.mapping.graphfiles import (  # noqa: PLC0415 - heavy
        graph_format,
        read_graph,
        read_qaplib,
    )
    from topoplace.mapping.onto import load_places, places_of_qaplib  # noqa: PLC0415 - heavy

    if on != OF_GRAPH_FILE:
        places = load_places(on, job=job, node_class=node_class, within=within)
        return read_graph(path, form, flow=flow), places
    if (form or graph_format(path)) != OF_GRAPH_FILE:
        raise InputError("a QAPLIB file with --on qaplib", file=str(path), field="--graph")
    instance = read_qaplib(path, flow)
    return instance.graph, places_of_qaplib(instance, job=job, node_class=node_class, within=within)


def _refuse(expected: str, options: list[tuple[str, str | None]]) -> None:
    for name, value in options:
        if value:
            raise InputError(expected, field=name, value=value)
