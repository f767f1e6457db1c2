"""The commands about applications: `topoplace map`, `layouts` and `recognise`."""

from __future__ import annotations

import math
from dataclasses import MISSING, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from topoplace import front, options
from topoplace.cli.options import command, require_writable
from topoplace.cli.output import end_with, print_json, say, say_files, say_note, shown
from topoplace.errors import InputError, number_of, refuse, unknown_name
from topoplace.given import parse_bytes, parse_count, parse_extents
from topoplace.options import (
    FILES,
    GRAPH_FORMAT,
    METHOD,
    OBJECTS,
    again,
    argument,
    flag,
    option,
)

if TYPE_CHECKING:
    from topoplace.mapping.recognition import Recognition
    from topoplace.snapshot.schema import GridApplication

_LETTERS = "xyzt"
_APPLICATION = "Application"


@dataclass(frozen=True, kw_only=True)
class Grid:
    """The options of a grid besides its extents."""

    periodic: str = option(
        "xyz", "Letters of the periodic dimensions of the grid.", default="", panel=_APPLICATION
    )
    message_bytes: str | None = option(
        "8,8,8",
        "Bytes per message in each dimension; 8/4 for different directions.",
        "--bytes",
        panel=_APPLICATION,
    )
    stencil: str = option(
        "nearest|full",
        "Neighbours: along axes only, or diagonal too (9, 27 points).",
        default="nearest",
        panel=_APPLICATION,
    )
    diagonal_bytes: str | None = option(
        "1,1", "Bytes to neighbours that differ in 2, 3, ... dimensions (full).", panel=_APPLICATION
    )


@dataclass(frozen=True, kw_only=True)
class Application(Grid):
    """What `topoplace map` maps."""

    grid: str | None = option("8x8x8", "A virtual grid.", panel=_APPLICATION)
    graph: Path | None = option(
        "FILE", "A communication graph, instead of a grid.", panel=_APPLICATION
    )
    parallelism: str | None = option(
        "pipeline=4,data=16,tensor=8",
        "A training job, instead of a grid: its axes, the slowest first; data=16:ring:1000 "
        "says what ranks send (all, ring or line, bytes).",
        panel=_APPLICATION,
    )
    graph_format: str | None = option(
        GRAPH_FORMAT,
        "Format of --graph; by default found from its ending or content.",
        panel=_APPLICATION,
    )
    flow: str | None = again(options.FLOW, panel=_APPLICATION)
    objects: str | None = option(
        "APPLICATION",
        "Arrays of objects: a file or a shipped name (docs/guide/objects.md).",
        panel=OBJECTS,
    )


@dataclass(frozen=True, kw_only=True)
class MapFiles(options.RankFiles):
    """How `topoplace map` shows and writes what it finds."""

    figures: bool = flag(
        "Estimate, too, how long all messages at once take, by a model.", panel=METHOD
    )
    progress: bool | None = flag(
        "Progress on stderr; by default at a terminal only.",
        "--progress/--no-progress",
        default=None,
        panel=METHOD,
    )
    output: Path | None = option("RESULT", "The result file.", "-o", "--output", panel=FILES)
    png: Path | None = option("F", "A plane of the mapping.", panel=FILES)


@command
def map_command(application: Application, asked: options.Map, files: MapFiles) -> None:
    """Map a grid, a graph, a training job or objects onto MACHINE, and bound any mapping."""
    files = replace(files, node_list=front.mapping.node_list_for(files.rank_order, files.node_list))
    others = ("figures", "progress", "tpu_host")
    written = {name: path for name, path in vars(files).items() if name not in others}
    if files.ranks is None:
        refuse("--ranks with this option", tpu_host=files.tpu_host)
    graph = application.graph
    require_writable(str(asked.on), graph, application.objects, asked.fixed, **written)
    _refuse_beside(application)
    if application.objects is not None or asked.balance is not None:
        refuse(
            "no such option for objects",
            **{name: getattr(files, name) for name in front.mapping.RANKS_ALONE},
        )
    front.documents.options_of(asked)  # checks them
    given, on = _application(application, str(asked.on))
    named = {"name": front.mapping.name_of(graph), "file": str(graph)} if graph else {}
    problem: Any = front.mapping.problem_asked(replace(asked, application=given, on=on), named)
    if files.maplib is not None:
        _require_coordinates(problem)
    if files.tpu_host is not None:
        front.mapping.require_blocks(problem, files.tpu_host)
    with shown(files.progress, once=asked.time_limit is None) as watch:
        result = front.mapping.solved(problem, replace(asked, callback=watch))
    front.writing.write(result, output=written.pop("output"), png=written.pop("png"))
    note = front.mapping.write_nodes(problem, result, tpu_host=files.tpu_host, **written)
    say_note(note)
    every = {"output": files.output, "png": files.png, **written}
    said = {name.replace("_", "-"): path for name, path in every.items()}
    end_with(result, said, front.mapping.figures_of(problem, result) if files.figures else [])


def _require_coordinates(problem: Any) -> None:
    """Raise `InputError` unless nodes have the coordinates that a file of maplib holds."""
    try:
        _ = problem.torus
    except InputError as error:
        raise error.at("--maplib with --on") from None


def _refuse_beside(given: Application) -> None:
    """Refuse options of grids and graph files with applications of another kind."""
    shape = {
        "periodic": given.periodic,
        "bytes": given.message_bytes,
        "stencil": given.stencil.replace("nearest", ""),
        "diagonal_bytes": given.diagonal_bytes,
    }
    others = {"grid": given.grid, "graph": given.graph}
    if given.objects is not None:
        refuse("no such option with --objects", parallelism=given.parallelism)
    if given.parallelism is not None:
        refuse("no such option with --parallelism", **others)
        refuse("a grid (--grid) with this option", **shape)
    if given.objects is not None:
        refuse("no such option with --objects", **others, **shape)
    if given.graph is not None:
        refuse("no such option with --graph", grid=given.grid, **shape)
        return
    expected = "a graph file (--graph) with this option"
    refuse(expected, graph_format=given.graph_format, flow=given.flow)


def _application(given: Application, on: str) -> tuple[Any, Any]:
    """Return objects, a grid, a training job or the graph of a file, and where to map it to."""
    if given.parallelism is not None:
        return front.mapping.training_job(given.parallelism, field="--parallelism"), on
    if given.objects is not None:
        return front.mapping.read_application(given.objects), on
    if given.graph is not None:
        return front.mapping.graph_of_file(given.graph, given.graph_format, given.flow, on)
    if on == "qaplib":
        raise InputError("a graph file with --on qaplib", field="--graph", found="none")
    if given.grid is None:
        expected = "a virtual grid, a graph file (--graph) or axes (--parallelism)"
        raise InputError(expected, field="--grid", found="none of these")
    return grid_application(given.grid, given), on


def grid_application(extents: str, given: Grid) -> GridApplication:
    """Return the application that the options of a grid describe; an `InputError` names the option.

    With the stencil ``full``, diagonal neighbours get one byte without any given.
    """
    make, most = front.mapping.GridApplication, front.mapping.MAX_TASKS
    periodic, stencil, diagonal_bytes = given.periodic, given.stencil, given.diagonal_bytes
    shape = parse_extents(extents, "--grid")
    if len(shape) > len(_LETTERS):
        raise InputError(
            f"at most {number_of(len(_LETTERS), 'dimension')}", field="--grid", value=extents
        )
    if math.prod(shape) > most:
        raise InputError(f"at most {number_of(most, 'task')}", field="--grid", value=extents)
    letters = _LETTERS[: len(shape)]
    if len(set(periodic)) != len(periodic) or not set(periodic) <= set(letters):
        expected = f"some of the letters {letters}, each once"
        raise InputError(expected, field="--periodic", value=periodic)
    if stencil not in ("nearest", "full"):
        raise unknown_name(stencil, ("nearest", "full"), field="--stencil")
    diagonals = len(shape) - 1 if stencil == "full" else 0
    sizes = [1] * diagonals
    if diagonal_bytes is not None:
        sizes = [parse_count(part, "--diagonal-bytes") for part in diagonal_bytes.split(",")]
        if len(sizes) != diagonals:
            expected = (
                f"{number_of(diagonals, 'number')} with --stencil {stencil} in "
                f"{number_of(len(shape), 'dimension')}"
            )
            raise InputError(expected, field="--diagonal-bytes", value=diagonal_bytes)
    return make(
        shape=list(shape),
        periodic=[letter in periodic for letter in letters],
        bytes=parse_bytes(given.message_bytes or "1", len(shape), "--bytes"),
        stencil="full" if stencil == "full" else "nearest",
        diagonal_bytes=sizes,
    )


@dataclass(frozen=True, kw_only=True)
class Listed(Grid):
    """The grid for which `topoplace layouts` lists layouts, and how many it lists."""

    grid: str = option("32x32x32", "Tasks per dimension.", default=MISSING)
    limit: int = option("N", "List at most N.", default=20)


@command
def layouts(given: Listed, asked: options.Layouts) -> None:
    """List every admissible layout of a virtual grid in a region, best first."""
    limit = given.limit
    for name, number in (("--tasks-per-node", asked.tasks_per_node), ("--limit", limit)):
        if number < 1:
            raise InputError("a positive integer", field=name, value=number)
    found = front.mapping.layouts(grid_application(given.grid, given), asked)
    there = found.obtained(limit)
    if found.numbered:
        say(found.table(limit, there))
        count = number_of(len(found.numbered), "layout")
        say(f"{min(limit, len(found.numbered))} of {count}, best first")
        say(f"geometry: {found.geometry}")
    else:
        say(f"no admissible layout of {given.grid} in {asked.within or asked.on}")
    if asked.rank_files is not None:
        written = found.write(asked.rank_files, there)
        say(f"rank orders: {number_of(len(written), 'layout')} in {asked.rank_files}")
    print_json(found.document(limit, there))


@dataclass(frozen=True, kw_only=True)
class Graph:
    """The graph that `topoplace recognise` looks at, and what it writes."""

    graph: Path = argument(
        "GRAPH", "A communication graph, a mapping instance or the result of one."
    )
    graph_format: str | None = option(
        GRAPH_FORMAT, "Format of GRAPH; by default found from its ending or content."
    )
    flow: str | None = again(options.FLOW)
    csv: Path | None = option("F", "Write the task of every cell as CSV here.")


@command
def recognise(given: Graph) -> None:
    """Say whether GRAPH is a grid, all-to-all in parts or a tree, and how it is numbered."""
    graph, form, flow, csv = given.graph, given.graph_format, given.flow, given.csv
    require_writable(graph, csv=csv)
    told = form is not None or flow is not None
    found = front.mapping.recognise(
        front.mapping.read_graph(graph, form, flow=flow) if told else graph
    )
    say(found.text)
    front.writing.write(found, csv=csv)
    say_files({"cells": csv})
    print_json(_document(found))


def _document(found: Recognition) -> dict[str, object]:
    return {
        "schema": "topoplace.recognise/1",
        "kind": found.kind,
        "text": found.text,
        "num_tasks": found.num_tasks,
        "shape": list(found.shape),
        "links": list(found.links),
        "form": found.form,
        "numbering": found.numbering if found.kind != "none" else None,
        "bytes": [list(one) for one in found.bytes],
        "diagonals": [list(one) for one in found.diagonals],
        "tasks": found.tasks.tolist(),
        "sizes": list(found.sizes),
        "extras": found.extras.tolist(),
        "extra_bytes": found.extra_bytes,
        "total_bytes": found.total_bytes,
        "application": found.application and found.application.model_dump(mode="json"),
    }
