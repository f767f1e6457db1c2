"""How commands declare options; those that several of them share, and their checks."""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from topoplace import front, rescue
from topoplace.cli.output import QUIET, VERBOSE, set_json, set_verbosity
from topoplace.errors import InputError

COMMAND = "An allocator of your own, '[NAME=]PROG ARGS': snapshot on stdin, placements on stdout."


def option(metavar: str, told: str, *names: str, **more: Any) -> Any:
    """Return an option with a value, by default named as the parameter."""
    return typer.Option(*names, metavar=metavar, help=told, **more)


def flag(told: str, *names: str) -> Any:
    """Return an option without a value."""
    return typer.Option(*names, help=told, metavar="")


def argument(metavar: str, told: str, **more: Any) -> Any:
    """Return what a command takes besides its options."""
    return typer.Argument(metavar=metavar, help=told, **more)


def in_panel(title: str, **options: Any) -> dict[str, Any]:
    """Return options that the help of a command shows together."""
    for one in options.values():
        one.rich_help_panel = title
    return options


VERBOSITY = {
    "verbose": flag("Say on stderr what is done, as it is done.", "-v", "--verbose"),
    "quiet": flag("Say nothing but errors, and JSON if asked for.", "-q", "--quiet"),
}
SHARED = {
    "as_json": flag("Print one JSON document on stdout; talk goes to stderr.", "--json"),
    "time_limit": option("S", "Seconds per solve; without it method exact ends after some 300."),
    "thorough": flag(
        "Method exact spends what is left of the time limit on the later levels too, as it always "
        "does on trees.",
        "--thorough",
    ),
    "interference": option(
        "strict|tolerant|off",
        "Which jobs may share links: none, tolerant ones with each other, all.",
    ),
    "seed": option("N", "Seed of whatever a method draws at random."),
    "objective": option(
        "domains|contention",
        "On switch trees, what counts after the nodes; default contention if requests have "
        "patterns.",
    ),
    "contract": option(
        "NAME", "On hierarchies: hold requests to what a scheduler promises: slurm-block."
    ),
    "command": option("TEXT", COMMAND),
    "ignore": option(
        "OPTION[,..]|all",
        "Release requests that are held by these options, which are not modelled.",
    ),
    "stderr": option("F", "Keep what allocators of your own say here."),
}
"""Options of several commands, by the name of the parameter."""


def with_options(**own: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that declares the parameters of a command as options and arguments.

    Those of `SHARED` are known by their names. Every command also has options of how much is said.
    """

    def declared(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def run(*, verbose: bool = False, quiet: bool = False, **given: Any) -> None:
            if verbose or quiet:
                set_verbosity(QUIET if quiet else VERBOSE)
            set_json(given.get("as_json", False))
            command(**given)

        hints = get_type_hints(command)
        told = SHARED | own
        parameters = [
            parameter.replace(annotation=Annotated[hints[name], told[name]])
            for name, parameter in inspect.signature(command).parameters.items()
        ]
        parameters += [
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Annotated[bool, one]
            )
            for name, one in VERBOSITY.items()
        ]
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return run

    return declared


def require_writable(*read: str | Path | None, **files: Path | None) -> None:
    """Raise `InputError` unless the files of these options can be written; before long work.

    None of them may be one that is `read`, or one of the others. What can no longer be written
    after the work is rescued.
    """
    rescue.begin()
    realpath = os.path.realpath  # not Path.resolve, which fails on links that lead to themselves
    taken = {realpath(path) for path in read if path is not None and Path(path).is_file()}
    for name, path in files.items():
        if path is None:
            continue
        option = f"--{name.replace('_', '-')}"
        _require_writable(path, option)
        if name == "png":
            _require_png(path)
        if realpath(path) in taken:
            expected = "a file that is not read, or written by another option"
            raise InputError(expected, field=option, value=str(path))
        if path.is_file() or not path.exists():  # no pipe or device
            taken.add(realpath(path))


def require_folder(**folders: Path | None) -> None:
    """Make the folders of these options before long work; `InputError` if that fails."""
    for name, folder in folders.items():
        front.writing.make_folder(folder, f"--{name.replace('_', '-')}")


def _require_writable(path: Path, option: str) -> None:
    if str(path) == "-":
        raise InputError("a file, not stdout", field=option, value="-")
    if path.is_dir():
        raise InputError("a file", field=option, found=f"a folder, {str(path)!r}")
    if path.exists() and not path.is_file():
        return  # a pipe or a device
    try:
        # Trying it is the only sure test: permission bits do not bind root, nor rule file systems.
        with contextlib.suppress(FileNotFoundError):
            path.stat()  # fails on a link that leads to itself
        with tempfile.TemporaryFile(dir=Path(os.path.realpath(path)).parent):
            pass
    except OSError as error:
        expected = f"a file in a folder that can be written ({error.strerror})"
        raise InputError(expected, field=option, value=str(path)) from None


def _require_png(path: Path) -> None:
    """Raise `InputError` if the name of a picture says that it is of another format."""
    if path.suffix.lower() not in ("", ".png") and (path.is_file() or not path.exists()):
        raise InputError("a file that ends in .png", field="--png", value=str(path))


def listed(text: str) -> list[str]:
    """Return the parts of a text with commas between."""
    return [part.strip() for part in text.split(",") if part.strip()]


def named_numbers(text: str, option: str, expected: str) -> dict[str, int]:
    """Return the numbers of a text such as ``a=3,b=1`` by name, a value of an option."""
    found = {}
    for part in listed(text) or [""]:
        name, sign, number = part.rpartition("=")
        if not sign or not number.isdecimal():
            raise InputError(expected, field=option, value=part)
        found[name.strip()] = int(number)
    return found


def require_one(method: str | None, command: str | None) -> None:
    """Raise `InputError` if both a method and a command are given."""
    if method is not None and command is not None:
        raise InputError("either --method or --command", field="--command", found="both")
