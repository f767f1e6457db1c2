"""`topoplace map`: map the tasks of an application onto an allocation."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from topoplace import front
from topoplace.cli.grid import GRID, grid_application, parse_extents
from topoplace.cli.options import (
    flag,
    in_panel,
    option,
    require_writable,
    with_options,
)
from topoplace.cli.output import end_with, shown
from topoplace.cli.shipped_names import machines_like, methods_like
from topoplace.errors import InputError, refuse

RANK_FILE = "The mapping in this form (docs/reference/formats.md)."


@with_options(
    **in_panel(
        "Application",
        grid=option("8x8x8", "A virtual grid."),
        **GRID,
        graph=option("FILE", "A communication graph, instead of a grid."),
        parallelism=option(
            "pipeline=4,data=16,tensor=8",
            "A training job, instead of a grid: its axes, the slowest first; data=16:ring:1000 "
            "says what ranks send (all, ring or line, bytes).",
        ),
        graph_format=option(
            "csv|qaplib|metis|grf|edges",
            "Format of --graph; by default its ending or content tells.",
        ),
        flow=option(
            "first|second",
            "qaplib: which matrix is the flows; by default the one with more zeros.",
        ),
    ),
    **in_panel(
        "Objects with loads, any number on a node",
        objects=option(
            "APPLICATION", "Arrays of objects: a file or a shipped name (docs/guide/objects.md)."
        ),
        balance=option(
            "1.1", "Most load of a node, in averages; with a grid or graph, tasks are objects too."
        ),
        pooled=flag("The nodes of a router share their loads.", "--pooled"),
        fixed=option("CSV", "Objects that stay: columns object and node."),
    ),
    **in_panel(
        "Where to map to",
        on=option(
            "MACHINE",
            "A machine (file, shipped name, torus:4x4x4), a snapshot, a placement result, "
            "matrix:FILE (distances), sharedmap:4:8:6/1:10:100, or qaplib (those of the graph "
            "file).",
            autocompletion=machines_like,
        ),
        level_costs=option(
            "1:10:100",
            "Tree or hierarchy: cost of a byte by the level at which its ends meet, lowest first.",
        ),
        tasks_per_node=option("N", "Most tasks on a node."),
        within=option("12x8x12@0,0,0", "Use the routers of this prism only."),
        subset=option("0-47,60", "Use these nodes only."),
        job=option("ID", "Map inside this job of the file."),
        node_class=option("NAME", "Class of nodes.", "--class"),
    ),
    **in_panel(
        "Method",
        method=option("NAME", "The mapping method.", autocompletion=methods_like),
        mapping=option("F", "Evaluate this mapping, or start the search from it."),
        mapping_format=option(
            "csv|maplib|scotch|hostfile|rank-order", "Format of --mapping.", "--format"
        ),
        cell=option("4x2", "Cell of grid-order.", "-c", "--cell"),
        column_major=flag("grid-order: first dimension fastest.", "-C", "--column-major"),
        max_depth=option("N", "Largest extent along the pencils."),
        time_limit=option(
            "S", "Seconds; then, as on Ctrl-C, the best answer so far is the result."
        ),
        figures=flag("Estimate, too, how long all messages at once take, by a model.", "--figures"),
        progress=flag(
            "Progress on stderr; by default at a terminal only.", "--progress/--no-progress"
        ),
    ),
    **in_panel(
        "Files to write",
        output=option("RESULT", "The result file.", "-o", "--output"),
        png=option("F", "A plane of the mapping."),
        rank_order=option(
            "F", "MPICH_RANK_ORDER; its node list goes to F.nodes, or where --node-list says."
        ),
        node_list=option("F", "The node list of --rank-order."),
        hostfile=option("F", RANK_FILE),
        csv=option("F", RANK_FILE),
        maplib=option("F", RANK_FILE),
        scotch_map=option("F", RANK_FILE),
    ),
)
def map_command(
    *,
    on: str,
    grid: str | None = None,
    periodic: str = "",
    message_bytes: str | None = None,
    stencil: str = "nearest",
    diagonal_bytes: str | None = None,
    graph: Path | None = None,
    graph_format: str | None = None,
    flow: str | None = None,
    objects: str | None = None,
    balance: str | None = None,
    pooled: bool = False,
    fixed: Path | None = None,
    parallelism: str | None = None,
    level_costs: str | None = None,
    tasks_per_node: int = 1,
    within: str | None = None,
    subset: str | None = None,
    job: str | None = None,
    node_class: str | None = None,
    method: str = "auto",
    mapping: Path | None = None,
    mapping_format: str = "csv",
    cell: str | None = None,
    column_major: bool = False,
    max_depth: int | None = None,
    time_limit: float | None = None,
    seed: int = 0,
    figures: bool = False,
    progress: bool | None = None,
    output: Path | None = None,
    png: Path | None = None,
    rank_order: Path | None = None,
    node_list: Path | None = None,
    hostfile: Path | None = None,
    csv: Path | None = None,
    maplib: Path | None = None,
    scotch_map: Path | None = None,
    as_json: bool = False,
) -> None:
    """Map a grid, a graph, a training job or objects onto MACHINE, and bound any mapping."""
    forms = {"hostfile": hostfile, "csv": csv, "maplib": maplib, "scotch_map": scotch_map}
    node_list = _node_list(rank_order, node_list)
    files = {"output": output, "png": png, "rank_order": rank_order, "node_list": node_list} | forms
    require_writable(on, graph, objects, fixed, **files)
    shape = (periodic, message_bytes, stencil, diagonal_bytes)
    _refuse_beside(objects, grid, shape, graph, graph_format, flow, parallelism)
    of_objects = objects is not None or balance is not None
    if of_objects:
        expected = "no such option for objects"
        refuse(expected, cell=cell, column_major=column_major, max_depth=max_depth)
        refuse(expected, tasks_per_node=tasks_per_node > 1, mapping=mapping)
        refuse(expected, rank_order=rank_order, **forms | {"csv": None})
    else:
        refuse("--objects or --balance with this option", pooled=pooled, fixed=fixed)
    options = front.arguments.options_of(time_limit, seed)
    application, where = _application(
        (objects, grid, parallelism), shape, graph, graph_format, flow, on
    )
    problem: Any = front.mapping.asked(
        application,
        where,
        tasks_per_node=tasks_per_node,
        balance=balance,
        pooled=pooled,
        fixed=None if fixed is None else front.mapping.read_fixed(fixed),
        subset=subset,
        named={"name": front.mapping.name_of(graph), "file": str(graph)} if graph else {},
        level_costs=_costs(level_costs),
        job=job,
        node_class=node_class,
        within=within,
    )
    if not of_objects:
        if maplib is not None:
            _require_coordinates(problem)
        start = None
        if mapping is not None:
            start = front.mapping.read_mapping(mapping, mapping_format, problem)
            method = "given" if method == "auto" else method
        cells = None if cell is None else parse_extents(cell, "--cell")
        options = replace(
            options, cell=cells, column_major=column_major, max_depth=max_depth, start=start
        )
    with shown(progress) as watch:
        result = front.mapping.solved(problem, method, options, callback=watch)
    front.writing.write(result, output=output, png=png)
    front.mapping.write_nodes(problem, result, node_list, rank_order=rank_order, **forms)
    named = {name.replace("_", "-"): path for name, path in files.items()}
    end_with(result, named, front.mapping.figures_of(problem, result) if figures else [])


def _require_coordinates(problem: Any) -> None:
    """Raise `InputError` unless nodes have the coordinates that a file of maplib holds."""
    try:
        _ = problem.torus
    except InputError as error:
        raise error.at("--maplib with --on") from None


def _costs(text: str | None) -> tuple[int, ...] | None:
    """Return the costs of a text such as ``1:10:100``."""
    if text is None:
        return None
    if not re.fullmatch(r"\d{1,7}(:\d{1,7}){0,16}", text):
        raise InputError("costs such as 1:10:100", field="--level-costs", value=text)
    return tuple(map(int, text.split(":")))


def _node_list(rank_order: Path | None, node_list: Path | None) -> Path | None:
    """Return where the node list of a rank order goes: beside it, where ``--mapping`` looks."""
    if rank_order is None and node_list is not None:
        raise InputError("--rank-order with it", field="--node-list", found="--node-list alone")
    return front.mapping.node_list_beside(rank_order) if rank_order and not node_list else node_list


def _refuse_beside(
    objects: str | None,
    grid: str | None,
    shape: tuple[str, str | None, str, str | None],
    graph: Path | None,
    form: str | None,
    flow: str | None,
    parallelism: str | None,
) -> None:
    """Refuse options of grids and graph files beside applications of another kind."""
    given = dict(zip(("periodic", "bytes", "stencil", "diagonal_bytes"), shape, strict=True))
    given["stencil"] = shape[2].replace("nearest", "")
    if objects is not None:
        refuse("no such option with --objects", parallelism=parallelism)
    if parallelism is not None:
        refuse("no such option with --parallelism", grid=grid, graph=graph)
        refuse("a grid (--grid) with this option", **given)
    if objects is not None:
        refuse("no such option with --objects", grid=grid, graph=graph, **given)
    if graph is None:
        refuse("a graph file (--graph) with this option", graph_format=form, flow=flow)
    else:
        refuse("no such option with --graph", grid=grid, **given)


def _application(
    given: tuple[str | None, str | None, str | None],
    shape: tuple[str, str | None, str, str | None],
    graph: Path | None,
    form: str | None,
    flow: str | None,
    on: str,
) -> tuple[Any, Any]:
    """Return objects, a grid, a training job or the graph of a file, and where to map it to."""
    objects, grid, parallelism = given
    if parallelism is not None:
        return front.mapping.training_job(parallelism, field="--parallelism"), on
    if objects is not None:
        return front.mapping.read_application(objects), on
    if graph is not None:
        return front.mapping.graph_of_file(graph, form, flow, on)
    if on == "qaplib":
        raise InputError("a graph file with --on qaplib", field="--graph", found="none")
    if grid is None:
        expected = "a virtual grid, a graph file (--graph) or axes (--parallelism)"
        raise InputError(expected, field="--grid", found="none of these")
    return grid_application(grid, *shape), on
