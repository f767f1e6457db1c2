"""The commands under one roof.

Each command imports what it needs when it runs, so that `--help` does not wait for the solvers.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, get_type_hints

import typer

from topoplace import __version__
from topoplace.cli.batch import batch
from topoplace.cli.check import check
from topoplace.cli.compare import compare
from topoplace.cli.convert import convert
from topoplace.cli.layouts import layouts
from topoplace.cli.map import map_command
from topoplace.cli.output import QUIET, USUAL, VERBOSE, set_verbosity
from topoplace.cli.place import place
from topoplace.cli.replay import replay
from topoplace.cli.shipped_names import epilogue
from topoplace.cli.show import show
from topoplace.cli.warmup import warmup

app = typer.Typer(
    name="topoplace",
    help="Optimal, certified placement and mapping on torus, mesh and tree machines.",
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
_EPILOGUES = {
    "place": epilogue("placement", "allocation", snapshots=True),
    "layouts": epilogue(machines=True),
    "map": epilogue("mapping", machines=True),
    "compare": epilogue("placement", "allocation", "mapping", snapshots=True),
    "batch": epilogue("placement", "allocation", "mapping"),
    "replay": epilogue("placement", "allocation", machines=True),
}
"""What the help of a command lists below its options."""

Verbose = Annotated[
    bool, typer.Option("-v", "--verbose", help="Say on stderr what is done, as it is done.")
]
Quiet = Annotated[
    bool, typer.Option("-q", "--quiet", help="Say nothing but errors, and JSON if asked for.")
]


def _with_verbosity(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command that takes the options of how much is said as well."""

    @functools.wraps(command)
    def run(*, verbose: bool, quiet: bool, **given: object) -> None:
        if verbose or quiet:
            set_verbosity(QUIET if quiet else VERBOSE)
        command(**given)

    hints = get_type_hints(command, include_extras=True)
    known = inspect.signature(command).parameters.values()
    own = [parameter.replace(annotation=hints[parameter.name]) for parameter in known]
    more = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=kind)
        for name, kind in (("verbose", Verbose), ("quiet", Quiet))
    ]
    run.__signature__ = inspect.Signature([*own, *more])  # type: ignore[attr-defined]
    run.__annotations__ = hints | {"verbose": Verbose, "quiet": Quiet}
    return run


for name, command in (
    ("place", place),
    ("layouts", layouts),
    ("map", map_command),
    ("check", check),
    ("compare", compare),
    ("batch", batch),
    ("replay", replay),
    ("show", show),
    ("convert", convert),
    ("warmup", warmup),
):
    app.command(name, epilog=_EPILOGUES.get(name))(_with_verbosity(command))


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"topoplace {__version__}")
        raise typer.Exit()


@app.callback()
def options(
    verbose: Verbose = False,
    quiet: Quiet = False,
    debug: Annotated[
        bool,
        typer.Option("--debug", help="Show the traceback of a failure (or set TOPOPLACE_DEBUG=1)."),
    ] = False,
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Optimal, certified placement and mapping on torus, mesh and tree machines."""
    # `entry` looks for --debug itself: it must know it also when the arguments do not parse.
    set_verbosity(QUIET if quiet else VERBOSE if verbose else USUAL)
