"""`topoplace place`: place the queue of a snapshot."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from topoplace.cli.external import COMMAND_HELP, Choice, Stderr, placed
from topoplace.cli.options import (
    InterferenceRule,
    Json,
    Picture,
    Seed,
    Thorough,
    TimeLimit,
    require_writable,
    solve_options,
)
from topoplace.cli.output import say, shown
from topoplace.cli.shipped_names import methods_like, snapshots_like
from topoplace.errors import InputError

if TYPE_CHECKING:
    pass


def place(
    snapshot: Annotated[
        Path,
        typer.Argument(
            metavar="SNAPSHOT",
            help="A snapshot file, the name of a shipped one, or - for stdin.",
            autocompletion=snapshots_like,
        ),
    ],
    *,
    method: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The placement method, or an installed allocator; default exact.",
            autocompletion=methods_like,
        ),
    ] = None,
    command: Annotated[str | None, typer.Option(metavar="TEXT", help=COMMAND_HELP)] = None,
    stderr: Stderr = None,
    time_limit: TimeLimit = None,
    thorough: Thorough = False,
    interference: InterferenceRule = "strict",
    seed: Seed = 0,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="RESULT", help="Write the result file here."),
    ] = None,
    png: Picture = None,
    hostlist: Annotated[
        Path | None,
        typer.Option(
            metavar="F", help="Write a line per request that starts: its name, its nodes."
        ),
    ] = None,
    csv: Annotated[
        Path | None,
        typer.Option(
            metavar="F",
            help="Write what starts as CSV: request, nodes, prism, hosts, cost, score.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Place the queue of SNAPSHOT on its machine and prove how good the answer is."""
    from topoplace.report.answer import WIDTH, csv_text, hostlist_text  # noqa: PLC0415 - heavy
    from topoplace.report.summary import exit_code_of, summary  # noqa: PLC0415 - heavy
    from topoplace.snapshot import SnapshotState  # noqa: PLC0415 - heavy
    from topoplace.snapshot.files import write_document, write_text  # noqa: PLC0415 - heavy
    from topoplace.snapshot.load import load_any  # noqa: PLC0415 - heavy

    options = solve_options(time_limit, interference, seed, thorough=thorough)
    require_writable(output, "--output")
    require_writable(png, "--png")
    require_writable(stderr, "--stderr")
    require_writable(hostlist, "--hostlist")
    require_writable(csv, "--csv")
    choice = Choice(method, command, stderr, as_json)
    state = load_any(snapshot)
    if interference != "strict" and not isinstance(state, SnapshotState):
        raise InputError(
            "no interference rule on a tree machine", field="--interference", value=interference
        )
    with shown() as watch:
        result = placed(state, choice, replace(options, watch=watch))
    if output is not None:
        write_document(output, result)
    if hostlist is not None:
        write_text(hostlist, hostlist_text(result))
    if csv is not None:
        write_text(csv, csv_text(result))
    if png is not None:
        from topoplace.report.figure import write_figure  # noqa: PLC0415 - heavy

        write_figure(result, png)
    say(summary(result, shutil.get_terminal_size((WIDTH, 24)).columns), as_json=as_json)
    files = {"result": output, "picture": png, "host lists": hostlist, "csv": csv, "stderr": stderr}
    for label, path in files.items():
        if path is not None:
            say(f"{label}: {path}", as_json=as_json)
    if as_json:
        print(result.model_dump_json())
    raise typer.Exit(exit_code_of(result))
