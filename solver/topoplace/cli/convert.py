"""`topoplace convert`: read another tool's format, write another."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from topoplace.cli.options import Json, require_writable
from topoplace.cli.output import print_json, say
from topoplace.errors import InputError


def convert(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="The file to read; slurm: the topology.conf."),
    ] = None,
    *,
    source: Annotated[str, typer.Option("--from", metavar="F", help="Format of FILE.")],
    target: Annotated[
        str | None, typer.Option("--to", metavar="F", help="Format to write, if FILE has several.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="OUT", help="The file to write; without it, to stdout."
        ),
    ] = None,
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
    topology: Annotated[
        Path | None, typer.Option(metavar="FILE", help="slurm: topology.conf, instead of FILE.")
    ] = None,
    nodes: Annotated[
        Path | None, typer.Option(metavar="FILE", help="slurm: from scontrol show nodes -o.")
    ] = None,
    jobs: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="slurm: from squeue --json, or squeue -o (see docs)."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Convert FILE from one format to another (docs/formats.md; a wrong pair lists the known)."""
    from topoplace.snapshot.convert import ConvertOptions, converted  # noqa: PLC0415 - heavy
    from topoplace.snapshot.files import write_text  # noqa: PLC0415 - heavy

    if output is None and as_json:
        raise InputError("an output file beside --json", field="--output", found="none")
    require_writable(output, "--output")
    options = ConvertOptions(machine, procs_per_node, node_class, limit, topology, nodes, jobs)
    made = converted(file, source, target, options)
    if output is None:
        print(made.text, end="")
    else:
        write_text(output, made.text)
    for line in (*made.notes, *([] if output is None else [f"written: {output}"])):
        say(line, as_json=as_json or output is None)
    if as_json:
        document = {
            "schema": "topoplace.convert/1",
            "output": str(output),
            "notes": list(made.notes),
        }
        print_json(document)
