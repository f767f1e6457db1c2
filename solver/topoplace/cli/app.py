"""The commands under one roof.

Each command imports what it needs when it runs, so that `--help` does not wait for the solvers.
"""

from __future__ import annotations

import inspect
from typing import Annotated, Any

import typer
import typer.core

from topoplace import kinds
from topoplace.cli.documents import check, convert, export, show, snapshot, warmup
from topoplace.cli.map import layouts, map_command, recognise
from topoplace.cli.options import Everywhere, in_typer
from topoplace.cli.output import QUIET, USUAL, VERBOSE, set_verbosity
from topoplace.cli.place import place, repack, whatif
from topoplace.cli.studies import audit, batch, compare, replay
from topoplace.options import declared
from topoplace.shipped import MACHINES, SNAPSHOTS
from topoplace.version import __version__


def _as_written(*, text: str, style: str = "", markup_mode: object = None) -> Any:
    """Return a text of the help, in place of typer's function that parses it."""
    from typer.rich_utils import highlighter

    shown = highlighter(inspect.cleandoc(text))
    shown.style = style
    return shown


def _show_texts_as_written() -> None:
    from typer import rich_utils  # which loads rich

    rich_utils._make_rich_text = _as_written


class PlainCommand(typer.core.TyperCommand):
    """A command whose help has no markup."""

    def format_help(self, *given: Any) -> None:
        """Write the help of the command."""
        _show_texts_as_written()
        super().format_help(*given)


class PlainGroup(typer.core.TyperGroup):
    """The commands under one name, whose help has no markup."""

    def format_help(self, *given: Any) -> None:
        """Write the help of the group."""
        _show_texts_as_written()
        super().format_help(*given)


# ---- The commands --------------------------------------------------------------------------------


HELP = "Optimal, certified placement of jobs and tasks on HPC interconnects."

app = typer.Typer(
    name="topoplace",
    help=HELP,
    cls=PlainGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


class QueueCommand(PlainCommand):
    """A command that places queues: its help has the methods of kinds of other packages, too."""

    def format_help(self, *given: Any) -> None:
        """Write the help of the command."""
        own, shipped = self.epilog, kinds.shipped()
        parts = (own or "").split("\n\n")
        at = 1 + max(idx for idx, part in enumerate(parts) if part.startswith("Methods"))
        parts[at:at] = [_methods_of(kind) for kind in kinds.placing() if kind.name not in shipped]
        self.epilog = "\n\n".join(parts)
        super().format_help(*given)
        self.epilog = own


def _methods_of(kind: kinds.Kind) -> str:
    rows = [f"- {name}: {summary}" for name, (_, summary) in kind.methods.items()]
    return "\n".join([f"Methods {kind.title}:", *rows])


def epilogue(*problems: str, machines: bool = False, snapshots: bool = False) -> str:
    """Return what comes below the options: the methods of problems, machines and snapshots."""
    parts = [_methods_of(kinds.kind_named(problem)) for problem in problems]
    if machines:
        parts.append(f"Machines: {', '.join(MACHINES)}")
    if snapshots:
        parts.append(f"Snapshots by name: {', '.join(SNAPSHOTS)}")
    return "\n\n".join(parts)


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
    "export": (export, None),
    "snapshot": (snapshot, None),
    "warmup": (warmup, None),
}
"""Every command, and what its help lists below its options."""

_WITH_QUEUES = ("place", "whatif", "compare", "batch")

for name, (command, below) in COMMANDS.items():
    cls = QueueCommand if name in _WITH_QUEUES else PlainCommand
    app.command(name, cls=cls, epilog=below)(command)


_EVERYWHERE = {of.name: in_typer(of.name, one) for of, one in declared(Everywhere)}


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"topoplace {__version__}")
        raise typer.Exit()


@app.callback(help=HELP)
def options(
    verbose: Annotated[bool, _EVERYWHERE["verbose"]] = False,
    quiet: Annotated[bool, _EVERYWHERE["quiet"]] = False,
    debug: Annotated[
        bool,
        typer.Option(
            "--debug",
            help="Show the traceback of a failure (or set TOPOPLACE_DEBUG=1).",
            metavar="",
        ),
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
