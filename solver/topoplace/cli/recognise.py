"""`topoplace recognise`: what a communication graph is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from topoplace import front
from topoplace.cli.options import argument, option, require_writable, with_options
from topoplace.cli.output import print_json, say, say_files

if TYPE_CHECKING:
    from topoplace.mapping.recognition import Recognition


@with_options(
    graph=argument("GRAPH", "A communication graph, a mapping instance or the result of one."),
    graph_format=option(
        "csv|qaplib|metis|grf|edges", "Format of GRAPH; by default its ending or content tells."
    ),
    flow=option(
        "first|second",
        "qaplib: which matrix is the flows; by default the one with more zeros.",
    ),
    csv=option("F", "Write the task of every cell as CSV here."),
)
def recognise(
    graph: Path,
    *,
    graph_format: str | None = None,
    flow: str | None = None,
    csv: Path | None = None,
    as_json: bool = False,
) -> None:
    """Say whether GRAPH is a grid, all-to-all in parts or a tree, and how it is numbered."""
    require_writable(graph, csv=csv)
    told = graph_format is not None or flow is not None
    found = front.mapping.recognise(
        front.mapping.read_graph(graph, graph_format, flow=flow) if told else graph
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
