"""The commands about one file: `topoplace check`, `show` and `convert`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import typer

from topoplace import front
from topoplace.cli.options import argument, option, require_writable, with_options
from topoplace.cli.output import print_json, say, say_files
from topoplace.errors import ExitCode, InputError
from topoplace.shipped import FORMATS

RESULT = argument("RESULT", "A result file, or - for stdin.")


@with_options(
    result=RESULT,
    instance=option(
        "FILE",
        "Also check that RESULT is of the instance in FILE: a snapshot, a mapping instance or "
        "another result.",
    ),
)
def check(result: Path, *, instance: Path | None = None, as_json: bool = False) -> None:
    """Recompute every claim of RESULT from the instance inside; exit 0 only if all hold."""
    report = front.documents.check_file(result, instance)
    if report.sha256 is not None:
        say(f"sha256 of the instance inside: {report.sha256}")
    say(str(report))
    print_json(
        {
            "schema": "topoplace.check/1",
            "holds": report.holds,
            "verified": report.verified,
            "instance_sha256": report.sha256,
            "claims": [asdict(claim) for claim in report.claims],
        }
    )
    raise typer.Exit(ExitCode.DONE if report.verified else ExitCode.CHECK_FAILED)


@with_options(
    result=RESULT,
    png=option("F", "The PNG file to write."),
    html=option("F", "The page to write: figures and picture."),
)
def show(
    result: Path, *, png: Path | None = None, html: Path | None = None, as_json: bool = False
) -> None:
    """Draw the machine of RESULT and the jobs on it, or a plane of a mapping."""
    if png is None and html is None:
        raise InputError("a file to write, --png F or --html F", field="--png", found="neither")
    require_writable(result, png=png, html=html)
    front.writing.write(front.documents.load_checkable(result), png=png, html=html)
    say_files({"picture": png, "page": html})
    written = {name: str(path) for name, path in (("png", png), ("html", html)) if path is not None}
    print_json({"schema": "topoplace.show/1", **written})


@with_options(
    file=argument("FILE", "The file to read; slurm: the topology."),
    source=option("F", f"The format of FILE: {', '.join(FORMATS)}.", "--from"),
    target=option("F", "Format to write: snapshot, machine, slurm-topology, slurm-yaml.", "--to"),
    output=option("OUT", "The file to write; without it, to stdout.", "-o", "--output"),
    machine=option("MACHINE", "swf, rfold: the machine the jobs are for.", "--on"),
    procs_per_node=option("N", "swf: processors of a node.", min=1),
    node_class=option("NAME", "swf: node class of all jobs.", "--class"),
    limit=option("N", "swf, rfold: take the first N jobs only.", min=0),
    topology=option(
        "NAME|FILE",
        "Which topology of FILE, where it has several; slurm: without FILE, the file itself.",
    ),
    nodes=option("FILE", "slurm: from scontrol show nodes -o; slurm-topology: if it is flat."),
    jobs=option("FILE", "slurm: from squeue --json, squeue -o or scontrol show job -o."),
    partitions=option("FILE", "slurm: from scontrol show partition -o."),
    reservations=option("FILE", "slurm: from scontrol show reservation -o."),
)
def convert(
    file: Path | None = None,
    *,
    source: str,
    target: str | None = None,
    output: Path | None = None,
    machine: str | None = None,
    procs_per_node: int = 1,
    node_class: str | None = None,
    limit: int | None = None,
    topology: Path | None = None,
    nodes: Path | None = None,
    jobs: Path | None = None,
    partitions: Path | None = None,
    reservations: Path | None = None,
    as_json: bool = False,
) -> None:
    """Convert FILE to another format (docs/reference/formats.md; a wrong pair lists the known)."""
    if output is None and as_json:
        raise InputError("an output file with --json", field="--output", found="none")
    require_writable(output=output)
    more = (
        machine,
        procs_per_node,
        node_class,
        limit,
        topology,
        nodes,
        jobs,
        partitions,
        reservations,
    )
    made = front.converting.converted(file, source, target, front.converting.ConvertOptions(*more))
    if output is None:
        print(made.text, end="")
    else:
        front.writing.write_text(output, made.text)
    for line in made.notes:
        say(line, aside=output is None)
    say_files({"written": output})
    document = {"schema": "topoplace.convert/1", "output": str(output), "notes": list(made.notes)}
    print_json(document)
