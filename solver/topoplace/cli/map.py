"""`topoplace map`: map the tasks of an application onto an allocation."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from topoplace.cli.grid import GRID, grid_application, parse_extents
from topoplace.cli.options import (
    flag,
    in_panel,
    option,
    refuse,
    require_writable,
    solve_options,
    with_options,
)
from topoplace.cli.output import end_with, shown
from topoplace.cli.shipped_names import machines_like, methods_like
from topoplace.errors import InputError

if TYPE_CHECKING:
    from topoplace.mapping.onto import Places
    from topoplace.mapping.problem import MappingProblem
    from topoplace.result.mapping import MappingResult
    from topoplace.snapshot.objects import ObjectsApplication
    from topoplace.snapshot.schema import AnyApplication

    Application = AnyApplication

Parts = dict[str, str | None]
"""Where to map to inside what `--on` names: a job, a class, a prism."""

OF_GRAPH_FILE = "qaplib"
"""The `--on` that stands for the distances of the graph file."""


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
    from topoplace.cli.objects import Loads, map_objects, phase_line
    from topoplace.formats.text import name_of
    from topoplace.kernels import compile_for
    from topoplace.mapping.onto import load_places, problem_on
    from topoplace.mapping.parallelism import parallelism as training_job
    from topoplace.mapping.rankfiles import read_mapping
    from topoplace.snapshot.objects import ObjectsApplication
    from topoplace.solving import solve

    options = solve_options(time_limit, "strict", seed)
    forms = {"hostfile": hostfile, "csv": csv, "maplib": maplib, "scotch_map": scotch_map}
    node_list = _node_list(rank_order, node_list)
    files = {"output": output, "png": png, "rank_order": rank_order, "node_list": node_list} | forms
    require_writable(on, graph, objects, fixed, **files)
    parts = {"job": job, "node_class": node_class, "within": within}
    shape = (periodic, message_bytes, stencil, diagonal_bytes)
    _refuse_beside(objects, grid, shape, graph, graph_format, flow, parallelism)
    application: Application | ObjectsApplication
    if parallelism is not None:
        application = training_job(parallelism, field="--parallelism")
        places = load_places(on, level_costs=_costs(level_costs), **parts)
    else:
        application, places = _application_and_places(
            grid, shape, graph, graph_format, flow, on, parts, _costs(level_costs), objects
        )
    if subset is not None:
        places = places.only(subset)
    if isinstance(application, ObjectsApplication) or balance is not None:
        expected = "no such option for objects"
        refuse(expected, cell=cell, column_major=column_major, max_depth=max_depth)
        refuse(expected, tasks_per_node=tasks_per_node > 1, mapping=mapping)
        refuse(expected, rank_order=rank_order, **forms | {"csv": None})
        how = Loads(balance, pooled, fixed)
        map_objects(application, places, how, method, options, progress, output, png, csv, figures)
    refuse("--objects or --balance with this option", pooled=pooled, fixed=fixed)
    name, file = (name_of(graph), str(graph)) if graph else (None, None)
    problem = problem_on(places, application, tasks_per_node, name=name, file=file)
    if maplib is not None:
        try:
            _ = problem.torus  # whose coordinates the file has
        except InputError as error:
            raise error.at("--maplib with --on") from None
    start = None if mapping is None else read_mapping(mapping, mapping_format, problem)
    if start is not None and method == "auto":
        method = "given"
    options = replace(
        options,
        cell=None if cell is None else parse_extents(cell, "--cell"),
        column_major=column_major,
        max_depth=max_depth,
        start=start,
    )
    compile_for("mapping", [method])
    with shown(progress) as watch:
        result = solve(problem, method, replace(options, watch=watch))
    _write(problem, result, files, forms)
    named = {name.replace("_", "-"): path for name, path in files.items()}
    end_with(result, named, phase_line(problem, result) if figures else [])


def _costs(text: str | None) -> tuple[int, ...] | None:
    """Return the costs of a text such as ``1:10:100``."""
    if text is None:
        return None
    if not re.fullmatch(r"\d{1,7}(:\d{1,7}){0,16}", text):
        raise InputError("costs such as 1:10:100", field="--level-costs", value=text)
    return tuple(map(int, text.split(":")))


def _node_list(rank_order: Path | None, node_list: Path | None) -> Path | None:
    """Return where the node list of a rank order goes: beside it, where ``--mapping`` looks."""
    from topoplace.mapping.rankfiles import node_list_beside

    if rank_order is None and node_list is not None:
        raise InputError("--rank-order with it", field="--node-list", found="--node-list alone")
    return node_list_beside(rank_order) if rank_order and not node_list else node_list


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


def _application_and_places(
    grid: str | None,
    shape: tuple[str, str | None, str, str | None],
    graph: Path | None,
    form: str | None,
    flow: str | None,
    on: str,
    parts: Parts,
    level_costs: tuple[int, ...] | None,
    objects: str | None,
) -> tuple[Application | ObjectsApplication, Places]:
    """Return objects, a grid, or the graph of a file, and the places: given, or that file's."""
    from topoplace.mapping.graphfiles import graph_format, read_graph, read_qaplib
    from topoplace.mapping.objects.applications import read_application
    from topoplace.mapping.onto import load_places

    if objects is not None:
        places = load_places(on, level_costs=level_costs, **parts)
        return read_application(objects), places
    if graph is None:
        if on == OF_GRAPH_FILE:
            raise InputError("a graph file with --on qaplib", field="--graph", found="none")
        if grid is None:
            expected = "a virtual grid, a graph file (--graph) or axes (--parallelism)"
            raise InputError(expected, field="--grid", found="none of these")
        places = load_places(on, level_costs=level_costs, **parts)
        return grid_application(grid, *shape), places
    if on != OF_GRAPH_FILE:
        places = load_places(on, level_costs=level_costs, **parts)
        return read_graph(graph, form, flow=flow), places
    if (form or graph_format(graph)) != OF_GRAPH_FILE:
        raise InputError("a QAPLIB file with --on qaplib", file=str(graph), field="--graph")
    instance = read_qaplib(graph, flow)
    return instance.graph, load_places(instance.machine, level_costs=level_costs, **parts)


def _write(
    problem: MappingProblem,
    result: MappingResult,
    files: dict[str, Path | None],
    forms: dict[str, Path | None],
) -> None:
    """Write the result, the picture, and the mapping in the formats asked for."""
    import numpy as np

    from topoplace.mapping.rankfiles import write_mapping
    from topoplace.snapshot.files import write_document

    if files["output"] is not None:
        write_document(files["output"], result)
    if files["png"] is not None:
        from topoplace.report.figure import write_figure

        write_figure(result, files["png"])
    if result.solution is None:
        return
    nodes = np.asarray(result.solution.nodes, dtype=np.int64)
    if files["rank_order"] is not None:
        order, node_list = files["rank_order"], files["node_list"]
        write_mapping(order, "rank-order", problem, nodes, node_list=node_list)
    for form, path in forms.items():
        if path is not None:
            write_mapping(path, form.removesuffix("_map"), problem, nodes)
