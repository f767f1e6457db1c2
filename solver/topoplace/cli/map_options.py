"""The options of `topoplace map`, in the groups that its help shows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from topoplace.cli.shipped_names import machines_like, methods_like

_GRAPH, _PLACES, _METHOD, _FILES = (
    "Application",
    "Where to map to",
    "Method",
    "Files to write",
)


On = Annotated[
    str,
    typer.Option(
        metavar="MACHINE",
        autocompletion=machines_like,
        help="A machine (file, shipped name, torus:4x4x4), a snapshot, a placement result, "
        "matrix:FILE (distances), or qaplib (those of the graph file).",
        rich_help_panel=_PLACES,
    ),
]
Within = Annotated[
    str | None,
    typer.Option(
        metavar="12x8x12@0,0,0",
        help="Use the routers of this prism only.",
        rich_help_panel=_PLACES,
    ),
]
Subset = Annotated[
    str | None,
    typer.Option(metavar="0-47,60", help="Use these nodes only.", rich_help_panel=_PLACES),
]
Job = Annotated[
    str | None,
    typer.Option(metavar="ID", help="Map inside this job of the file.", rich_help_panel=_PLACES),
]
NodeClass = Annotated[
    str | None,
    typer.Option("--class", metavar="NAME", help="Class of nodes.", rich_help_panel=_PLACES),
]
TasksPerNode = Annotated[
    int, typer.Option(metavar="N", help="Most tasks on a node.", rich_help_panel=_PLACES)
]

Grid = Annotated[
    str | None,
    typer.Option(metavar="8x8x8", help="A virtual grid.", rich_help_panel=_GRAPH),
]
Periodic = Annotated[
    str,
    typer.Option(metavar="xyz", help="Dimensions of the grid that close.", rich_help_panel=_GRAPH),
]
MessageBytes = Annotated[
    str | None,
    typer.Option(
        "--bytes",
        metavar="8,8,8",
        help="Per dimension; 8/4 sends 8 up and 4 down.",
        rich_help_panel=_GRAPH,
    ),
]
Stencil = Annotated[
    str,
    typer.Option(
        metavar="nearest|full",
        help="full: the 9- or 27-point stencil.",
        rich_help_panel=_GRAPH,
    ),
]
DiagonalBytes = Annotated[
    str | None,
    typer.Option(
        metavar="1,1",
        help="To neighbours that differ in 2, 3.. dimensions.",
        rich_help_panel=_GRAPH,
    ),
]
Graph = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="A communication graph, instead of a grid.", rich_help_panel=_GRAPH
    ),
]
GraphFormat = Annotated[
    str | None,
    typer.Option(
        metavar="csv|qaplib|metis|grf|edges",
        help="Format of --graph; by default its ending or content tells.",
        rich_help_panel=_GRAPH,
    ),
]
Flow = Annotated[
    str | None,
    typer.Option(
        metavar="first|second",
        help="qaplib: which matrix is the flows; by default the one with more zeros.",
        rich_help_panel=_GRAPH,
    ),
]

Method = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="The mapping method.",
        autocompletion=methods_like,
        rich_help_panel=_METHOD,
    ),
]
Start = Annotated[
    Path | None,
    typer.Option(
        metavar="F",
        help="Evaluate this mapping, or start the search from it.",
        rich_help_panel=_METHOD,
    ),
]
StartFormat = Annotated[
    str,
    typer.Option(
        "--format",
        metavar="csv|maplib|scotch|hostfile|rank-order",
        help="Format of --mapping.",
        rich_help_panel=_METHOD,
    ),
]
Cell = Annotated[
    str | None,
    typer.Option(
        "-c", "--cell", metavar="4x2", help="Cell of grid-order.", rich_help_panel=_METHOD
    ),
]
ColumnMajor = Annotated[
    bool,
    typer.Option(
        "-C",
        "--column-major",
        help="grid-order: first dimension fastest.",
        rich_help_panel=_METHOD,
    ),
]
MaxDepth = Annotated[
    int | None,
    typer.Option(metavar="N", help="Largest extent along the pencils.", rich_help_panel=_METHOD),
]
Limit = Annotated[
    float | None,
    typer.Option(
        metavar="S",
        help="Seconds; then, as on Ctrl-C, the best answer so far is the result.",
        rich_help_panel=_METHOD,
    ),
]
ShowProgress = Annotated[
    bool | None,
    typer.Option(
        "--progress/--no-progress",
        help="Progress on stderr; by default at a terminal only.",
        rich_help_panel=_METHOD,
    ),
]

Output = Annotated[
    Path | None,
    typer.Option(
        "-o", "--output", metavar="RESULT", help="The result file.", rich_help_panel=_FILES
    ),
]
Png = Annotated[
    Path | None,
    typer.Option(metavar="F", help="A plane of the mapping.", rich_help_panel=_FILES),
]
RankOrder = Annotated[
    Path | None,
    typer.Option(
        metavar="F",
        help="MPICH_RANK_ORDER; its node list goes to F.nodes, or where --node-list says.",
        rich_help_panel=_FILES,
    ),
]
NodeList = Annotated[
    Path | None,
    typer.Option(metavar="F", help="The node list of --rank-order.", rich_help_panel=_FILES),
]
RankFile = Annotated[
    Path | None,
    typer.Option(
        metavar="F", help="The mapping in this form (docs/formats.md).", rich_help_panel=_FILES
    ),
]
