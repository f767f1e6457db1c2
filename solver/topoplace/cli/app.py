"""The commands under one roof.

Each command imports what it needs when it runs, so that `--help` does not wait for the solvers.
"""

from __future__ import annotations

import time
from typing import Annotated

import typer

from topoplace import kinds
from topoplace.cli.audit import audit
from topoplace.cli.documents import check, convert, show
from topoplace.cli.grid import layouts
from topoplace.cli.map import map_command
from topoplace.cli.options import VERBOSITY, argument, flag, with_options
from topoplace.cli.output import QUIET, USUAL, VERBOSE, print_json, say, set_verbosity
from topoplace.cli.place import place
from topoplace.cli.plain import PlainCommand, PlainGroup
from topoplace.cli.recognise import recognise
from topoplace.cli.repack import repack
from topoplace.cli.replay import replay
from topoplace.cli.shipped_names import epilogue
from topoplace.cli.studies import batch, compare
from topoplace.cli.whatif import whatif
from topoplace.errors import InputError, number_of, unknown_name
from topoplace.version import __version__

HELP = "Optimal, certified placement of jobs and tasks on HPC interconnects."

app = typer.Typer(
    name="topoplace",
    help=HELP,
    cls=PlainGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


@with_options(
    problems=argument(
        "PROBLEM...", f"For which problems: {', '.join(kinds.shipped())}; default all."
    )
)
def warmup(problems: list[str] | None = None, *, as_json: bool = False) -> None:
    """Compile ahead what the solvers run; the first solve that needs it would do it otherwise."""
    from topoplace.kernels import compile_groups, compiling, folder_of_kernels

    chosen = problems or list(kinds.known())
    for problem in chosen:
        if problem not in kinds.known():
            raise unknown_name(problem, kinds.known(), field="PROBLEM")
    began = time.perf_counter()
    groups = [group for problem in chosen for group in kinds.kind_named(problem).kernels]
    num = compile_groups(groups)
    seconds = time.perf_counter() - began
    if compiling.missing(groups):
        expected = "a folder that can keep all compiled kernels (NUMBA_CACHE_DIR names another)"
        raise InputError(expected, file=str(folder_of_kernels()), found=f"{num} kept")
    compiled = f"{number_of(num, 'kernel')} compiled, {seconds:.1f} s"
    say(compiled if num else "all kernels are compiled")
    print_json({"schema": "topoplace.warmup/1", "kernels": num, "seconds": round(seconds, 3)})


COMMANDS = {
    "place": (place, epilogue("placement", "allocation", "hierarchy", "cubes", snapshots=True)),
    "repack": (repack, epilogue(snapshots=True)),
    "whatif": (whatif, epilogue("placement", "allocation", "hierarchy", "cubes", snapshots=True)),
    "layouts": (layouts, epilogue(machines=True)),
    "recognise": (recognise, None),
    "map": (map_command, epilogue("mapping", machines=True)),
    "check": (check, None),
    "compare": (compare, epilogue(*kinds.shipped(), snapshots=True)),
    "batch": (batch, epilogue(*kinds.shipped())),
    "audit": (audit, None),
    "replay": (replay, epilogue("placement", "allocation", machines=True)),
    "show": (show, None),
    "convert": (convert, None),
    "warmup": (warmup, None),
}
"""Every command, and what its help lists below its options."""

for name, (command, below) in COMMANDS.items():
    app.command(name, cls=PlainCommand, epilog=below)(command)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"topoplace {__version__}")
        raise typer.Exit()


@app.callback(help=HELP)
def options(
    verbose: Annotated[bool, VERBOSITY["verbose"]] = False,
    quiet: Annotated[bool, VERBOSITY["quiet"]] = False,
    debug: Annotated[
        bool, flag("Show the traceback of a failure (or set TOPOPLACE_DEBUG=1).", "--debug")
    ] = False,
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Print the version.",
            metavar="",
            callback=_print_version,
            is_eager=True,
        ),
    ] = False,
) -> None:
    """Set how much is said; `entry` looks for --debug itself, also where arguments do not parse."""
    set_verbosity(QUIET if quiet else VERBOSE if verbose else USUAL)
