"""How commands get the options that are declared for them, and the checks that several share."""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import tempfile
from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from topoplace import front, kinds, rescue
from topoplace.cli.output import QUIET, VERBOSE, set_json, set_verbosity
from topoplace.errors import InputError
from topoplace.options import Option, declared, flag
from topoplace.shipped import MACHINES, SNAPSHOTS


@dataclass(frozen=True, kw_only=True)
class Everywhere:
    """The options of every command."""

    as_json: bool = flag("Print one JSON document on stdout; talk goes to stderr.", "--json")
    verbose: bool = flag("Say on stderr what is done, as it is done.", "-v", "--verbose")
    quiet: bool = flag("Say nothing but errors, and JSON if asked for.", "-q", "--quiet")


def command(function: Callable[..., None]) -> Callable[..., None]:
    """Return a command of a function of classes of options, whose fields it declares.

    Every command also has the options of how much is said, and where.
    """
    classes = get_type_hints(function)
    del classes["return"]
    classes["everywhere"] = Everywhere

    @functools.wraps(function)
    def run(**given: Any) -> None:
        *asked, everywhere = [_read(options, given) for options in classes.values()]
        if everywhere.verbose or everywhere.quiet:
            set_verbosity(QUIET if everywhere.quiet else VERBOSE)
        set_json(everywhere.as_json)
        function(*asked)

    every = [pair for options in classes.values() for pair in declared(options)]
    own = [pair for pair in every if pair[1].metavar is not None]
    parameters = [_parameter(*pair) for pair in own]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.options = own  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


_KINDS = {
    **{kind.__name__: kind for kind in (bool, int, float, str, Path)},
    **dict.fromkeys(("File", "File | Snapshot | Model", "Instance"), Path),
    "Where": str,
}
"""What the command line reads for the types of fields."""


def _parameter(of: Field[Any], one: Option) -> inspect.Parameter:
    """Return a field of a class of options as the parameter of a command, which typer reads."""
    default = inspect.Parameter.empty if of.default is MISSING or one.is_required else of.default
    if not isinstance(default, bool | int | float | str | type):
        default = None  # what Python has for it stands
    kind: Any = one.kind or (str if one.parse else _KINDS[of.type.removesuffix(" | None")])
    annotation: Any = Annotated[
        kind if default is not None else kind | None, in_typer(of.name, one)
    ]
    keyword = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(of.name, keyword, default=default, annotation=annotation)


def in_typer(name: str, one: Option) -> Any:
    """Return an option as typer has it."""
    more: dict[str, Any] = {"metavar": one.metavar, "help": one.help, "rich_help_panel": one.panel}
    more |= {"min": one.least, "max": one.most, "autocompletion": _names_like(one.names)}
    if one.is_argument:
        return typer.Argument(**more)
    return typer.Option(*one.names_of(name), **more)


def _names_like(which: str | None) -> Callable[[str], list[str]] | None:
    """Return what lists, for a shell that completes, the names of a sort that begin so."""
    if which is None:
        return None

    def like(incomplete: str) -> list[str]:
        methods = {name for kind in kinds.shipped().values() for name in kind.methods}
        known = {"machines": MACHINES, "snapshots": SNAPSHOTS, "methods": sorted(methods)}
        return [one for one in known[which] if one.startswith(incomplete)]

    return like


def _read(options: type, given: dict[str, Any]) -> Any:
    """Return options of what the command line says; of what it does not, the defaults stand."""
    said = {
        of.name: given[of.name] if one.parse is None else one.parse(given[of.name])
        for of, one in declared(options)
        if given.get(of.name) is not None
    }
    return options(**said)


def require_writable(*read: object, **files: Path | None) -> None:
    """Raise `InputError` unless the files of these options can be written; before long work.

    None of them may be one that is `read`, or one of the others. What can no longer be written
    after the work is rescued.
    """
    rescue.begin()
    realpath = os.path.realpath  # not Path.resolve, which fails on links that lead to themselves
    named = [path for path in read if isinstance(path, str | Path)]
    taken = {realpath(path) for path in named if Path(path).is_file()}
    for name, path in files.items():
        if path is None:
            continue
        option = f"--{name.replace('_', '-')}"
        _require_writable(path, option)
        if name in ("png", "svg"):
            _require_named(path, name)
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


def _require_named(path: Path, form: str) -> None:
    """Raise `InputError` if the name of a picture says that it is of another format."""
    if path.suffix.lower() not in ("", f".{form}") and (path.is_file() or not path.exists()):
        raise InputError(f"a file that ends in .{form}", field=f"--{form}", value=str(path))
