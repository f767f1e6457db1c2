"""`topoplace map`: map the tasks of an application onto an allocation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from topoplace.cli.options import Json, Seed, require_seed, require_time_limit, require_writable
from topoplace.cli.output import say
from topoplace.errors import InputError

if TYPE_CHECKING:
    from topoplace.mapping.allocation import Allocation
    from topoplace.mapping.problem import MappingProblem
    from topoplace.result.mapping import MappingResult
    from topoplace.snapshot.application import GraphApplication, GridApplication

MAP_HELP = "Rank files to write"
Output = Annotated[Path | None, typer.Option(metavar="F", rich_help_panel=MAP_HELP)]


def map_command(
    *,
    on: Annotated[
        str,
        typer.Option(
            metavar="MACHINE",
            help="A machine (file, shipped name, torus:4x4x4), a snapshot, or a placement result.",
        ),
    ],
    grid: Annotated[
        str | None, typer.Option(metavar="8x8x8", help="The virtual grid of the application.")
    ] = None,
    periodic: Annotated[
        str, typer.Option(metavar="xyz", help="Dimensions of the grid that close.")
    ] = "",
    message_bytes: Annotated[
        str | None,
        typer.Option("--bytes", metavar="8,8,8", help="Per dimension; 8/4 sends 8 up and 4 down."),
    ] = None,
    stencil: Annotated[
        str, typer.Option(metavar="nearest|full", help="full: the 9- or 27-point stencil.")
    ] = "nearest",
    diagonal_bytes: Annotated[
        str | None,
        typer.Option(metavar="1,1", help="To neighbours that differ in 2, 3.. dimensions."),
    ] = None,
    tasks_per_node: Annotated[int, typer.Option(metavar="N", help="Most tasks on a node.")] = 1,
    within: Annotated[
        str | None,
        typer.Option(metavar="12x8x12@0,0,0", help="Use the routers of this prism only."),
    ] = None,
    job: Annotated[
        str | None, typer.Option(metavar="ID", help="Map inside this job of the file.")
    ] = None,
    node_class: Annotated[
        str | None, typer.Option("--class", metavar="NAME", help="Class of nodes to use.")
    ] = None,
    method: Annotated[str, typer.Option(metavar="NAME", help="The mapping method.")] = "auto",
    mapping: Annotated[
        Path | None,
        typer.Option(metavar="F", help="Evaluate this mapping, or start the search from it."),
    ] = None,
    mapping_format: Annotated[
        str, typer.Option("--format", metavar="NAME", help="Format of --mapping.")
    ] = "csv",
    cell: Annotated[
        str | None, typer.Option("-c", "--cell", metavar="4x2", help="Cell of grid-order.")
    ] = None,
    column_major: Annotated[
        bool, typer.Option("-C", "--column-major", help="grid-order: first dimension fastest.")
    ] = False,
    max_depth: Annotated[
        int | None, typer.Option(metavar="N", help="Largest extent along the pencils.")
    ] = None,
    time_limit: Annotated[float | None, typer.Option(metavar="S", help="Seconds.")] = None,
    seed: Seed = 0,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="RESULT", help="Write the result file here."),
    ] = None,
    png: Annotated[
        Path | None, typer.Option(metavar="F", help="Draw a plane of the mapping.")
    ] = None,
    rank_order: Output = None,
    node_list: Output = None,
    hostfile: Output = None,
    csv: Output = None,
    as_json: Json = False,
) -> None:
    """Map the tasks of a grid onto MACHINE and bound the hop-bytes of any mapping."""
    from topoplace.cli.grid_options import grid_application, parse_extents  # noqa: PLC0415 - heavy
    from topoplace.mapping.outcome import MapOptions  # noqa: PLC0415 - heavy
    from topoplace.mapping.solve import evaluate_mapping, map_tasks  # noqa: PLC0415 - heavy
    from topoplace.report.mapping_summary import mapping_summary  # noqa: PLC0415 - heavy
    from topoplace.report.summary import exit_code_of  # noqa: PLC0415 - heavy

    require_time_limit(time_limit)
    require_seed(seed)
    files = {
        "--output": output,
        "--png": png,
        "--rank-order": rank_order,
        "--node-list": node_list,
        "--hostfile": hostfile,
        "--csv": csv,
    }
    for option, path in files.items():
        require_writable(path, option)
    if (rank_order is None) != (node_list is None):
        raise InputError("both or neither of --rank-order and --node-list", field="--node-list")
    if grid is None:
        raise InputError("the virtual grid of the application", field="--grid")
    problem = _problem(
        grid_application(grid, periodic, message_bytes, stencil, diagonal_bytes),
        _allocation(on, job, node_class, within),
        tasks_per_node,
    )
    start = None
    if mapping is not None:
        from topoplace.mapping.rankfiles import read_mapping  # noqa: PLC0415 - heavy

        start = read_mapping(mapping, mapping_format, problem)
    options = MapOptions(
        time_limit=time_limit,
        seed=seed,
        cell=None if cell is None else parse_extents(cell, "--cell"),
        column_major=column_major,
        max_depth=max_depth,
        start=start,
    )
    if start is not None and method == "auto":
        result = evaluate_mapping(problem, start, options)
    else:
        result = map_tasks(problem, method, options)
    _write(problem, result, files)
    say(mapping_summary(result), as_json=as_json)
    for option, path in files.items():
        if path is not None:
            say(f"{option[2:]}: {path}", as_json=as_json)
    if as_json:
        print(result.model_dump_json(by_alias=True))
    raise typer.Exit(exit_code_of(result))


def _allocation(on: str, job: str | None, node_class: str | None, within: str | None) -> Allocation:
    from topoplace.mapping.allocation import load_allocation, parse_prism  # noqa: PLC0415 - heavy

    allocation = load_allocation(on, job, node_class)
    if within is None:
        return allocation
    return allocation.within(parse_prism(within, allocation.machine, "--within"))


def _problem(
    application: GridApplication | GraphApplication, allocation: Allocation, tasks_per_node: int
) -> MappingProblem:
    from topoplace.mapping.problem import prepare_mapping  # noqa: PLC0415 - heavy
    from topoplace.snapshot.application import MappingInstance  # noqa: PLC0415 - heavy

    if not 1 <= tasks_per_node <= 1 << 20:
        raise InputError("from 1 to 1048576", field="--tasks-per-node", value=tasks_per_node)
    return prepare_mapping(
        MappingInstance(
            schema_version="topoplace.mapping/1",
            name=application.kind,
            machine=allocation.machine,
            nodes=allocation.node_set,
            tasks_per_node=tasks_per_node,
            application=application,
            source=allocation.source,
        )
    )


def _write(problem: MappingProblem, result: MappingResult, files: dict[str, Path | None]) -> None:
    """Write the files asked for: the result, the picture, and the rank files."""
    import numpy as np  # noqa: PLC0415 - heavy

    from topoplace.mapping.rankfiles import (  # noqa: PLC0415 - heavy
        write_csv,
        write_hostfile,
        write_rank_order,
    )
    from topoplace.report.mapping_picture import write_mapping_picture  # noqa: PLC0415 - heavy
    from topoplace.snapshot.files import write_document  # noqa: PLC0415 - heavy

    if (path := files["--output"]) is not None:
        write_document(path, result)
    if (path := files["--png"]) is not None:
        write_mapping_picture(result, path)
    if result.solution is None:
        return
    nodes = np.asarray(result.solution.nodes, dtype=np.int64)
    order, node_list = files["--rank-order"], files["--node-list"]
    if order is not None and node_list is not None:
        write_rank_order(problem, nodes, order, node_list)
    if (path := files["--hostfile"]) is not None:
        write_hostfile(problem, nodes, path)
    if (path := files["--csv"]) is not None:
        write_csv(problem, nodes, path)
