"""`topoplace convert`: read another tool's format, write another."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from topoplace.cli.options import Json, require_writable
from topoplace.cli.output import print_json, say


def convert(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file to read.")],
    *,
    source: Annotated[str, typer.Option("--from", metavar="F", help="Format of FILE.")],
    target: Annotated[str, typer.Option("--to", metavar="F", help="Format to write.")],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="OUT", help="The file to write.")
    ],
    machine: Annotated[
        str | None,
        typer.Option("--on", metavar="MACHINE", help="swf: the machine the jobs are for."),
    ] = None,
    procs_per_node: Annotated[
        int, typer.Option(metavar="N", min=1, help="swf: processors of a node.")
    ] = 1,
    node_class: Annotated[
        str | None, typer.Option("--class", metavar="NAME", help="swf: node class of all jobs.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="swf: take the first N jobs only.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Convert FILE from one format to another (docs/formats.md; a wrong pair lists the known)."""
    from topoplace.snapshot.convert import ConvertOptions  # noqa: PLC0415 - heavy
    from topoplace.snapshot.convert import convert as convert_file  # noqa: PLC0415 - heavy

    require_writable(output, "--output")
    options = ConvertOptions(machine, procs_per_node, node_class, limit)
    notes = convert_file(file, source, target, output, options)
    for line in (*notes, f"written: {output}"):
        say(line, as_json=as_json)
    if as_json:
        document = {"schema": "topoplace.convert/1", "output": str(output), "notes": list(notes)}
        print_json(document)
