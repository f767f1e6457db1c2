"""An external allocator: a command, or a Python entry point run as one."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import sys
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path

from topoplace.errors import InputError, unknown_name
from topoplace.study.external.call import GROUP

DEFAULT_SECONDS = 120.0
"""Time limit if the user sets none: that of the exact method."""

_NAMED = re.compile(r"([A-Za-z0-9_.-]{1,64})=(.+)", re.DOTALL)


@dataclass(frozen=True)
class Allocator:
    """A program that places queues.

    Attributes
    ----------
    arguments
        The program and its arguments; ``{seconds}`` stands for the time limit.
    source
        The program that was run, for the result's `versions`.
    environment
        Variables to set for it.
    in_prisms
        In a replay on a torus: whether a job fits only if a prism can hold it.
    """

    name: str
    arguments: tuple[str, ...]
    source: str
    environment: dict[str, str] = field(default_factory=dict)
    in_prisms: bool = False


def command_allocator(text: str, default_name: str = "command") -> Allocator:
    """Return the allocator of a command line such as ``prog args`` or ``NAME=prog args``."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise InputError(f"a command line ({error})", field="command", value=text) from None
    if not words or not words[0]:
        raise InputError("a program and its arguments", field="command", value=text)
    named = _NAMED.fullmatch(words[0])
    name = default_name
    if named is not None:
        name, words[0] = named[1], named[2]
    return Allocator(name, tuple(words), shlex.join(words))


def command_allocators(texts: Iterable[str], ours: Collection[str]) -> list[Allocator]:
    """Return the allocators of several command lines; raise `InputError` if two have one name."""
    found: dict[str, Allocator] = {}
    for idx, text in enumerate(texts):
        allocator = command_allocator(text, f"command-{idx + 1}" if idx else "command")
        if allocator.name in found or allocator.name in ours:
            raise InputError("a name no other method has", field="command", value=allocator.name)
        found[allocator.name] = allocator
    return list(found.values())


def entry_point_names() -> list[str]:
    """Return the names of the installed allocators, without importing them."""
    return sorted(entry_points(group=GROUP).names)


def chosen(method: str, command: str | None, ours: Collection[str]) -> str | Allocator:
    """Return the one that places: a method of ours by name, or an allocator."""
    if command is not None:
        return command_allocators([command], ours)[0]
    return method if method in ours else _installed(method, ours)


def fingerprint(method: str | None, command: str | None) -> str | None:
    """Return what an allocator's answers depend on, as far as it is known; None for our methods.

    That is the command line with a hash of every file it names, or the entry point and the version
    of its package. A change of a package without a new version is not detected.
    """
    if command is None:
        if method is None or method not in entry_point_names():
            return None
        return _installed(method, ()).source
    allocator = command_allocator(command)
    parts = [allocator.source]
    for word in allocator.arguments:
        path = Path(shutil.which(word) or word)
        if path.is_file():
            with path.open("rb") as stream:
                parts.append(hashlib.file_digest(stream, "sha256").hexdigest())
    return " ".join(parts)


def _installed(name: str, ours: Collection[str]) -> Allocator:
    entries = entry_points(group=GROUP)
    if name not in entries.names:
        raise unknown_name(name, [*ours, *entry_point_names()], field="method")
    entry = entries[name]
    # -P: a file json.py in the current folder is not the standard library's
    arguments = (sys.executable, "-P", "-m", "topoplace.study.external.call", name, "{seconds}")
    path = os.pathsep.join(folder or os.getcwd() for folder in sys.path)
    version = "" if entry.dist is None else f" ({entry.dist.name} {entry.dist.version})"
    return Allocator(name, arguments, f"{entry.value}{version}", {"PYTHONPATH": path})
