"""Stamps beside numba's cache: which groups have been compiled, told without importing numba."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.metadata
import os
import platform
import sys
from collections.abc import Iterable
from pathlib import Path

from topoplace.kernels.table import entries_of

_PACKAGE = Path(__file__).resolve().parent.parent
_ENOUGH = 4096  # bytes that name the first processor and its features


def missing(groups: Iterable[str]) -> list[str]:
    """Return the groups that are not compiled yet for this machine, numba and Python."""
    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        return []
    return [group for group in dict.fromkeys(groups) if not _is_stamped(group)]


def stamp(group: str) -> None:
    """Note that a group is compiled; without room for the note it is looked at again next time."""
    path = _path_of(group)
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_digest(group), encoding="ascii")


def _is_stamped(group: str) -> bool:
    try:
        return _path_of(group).read_text(encoding="ascii") == _digest(group)
    except (OSError, UnicodeDecodeError):
        return False


def _path_of(group: str) -> Path:
    """Return where the stamp of a group is: where numba keeps what it compiles."""
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    if chosen:
        folder = Path(chosen)
    elif os.access(_PACKAGE, os.W_OK):
        folder = _PACKAGE / "__pycache__"
    else:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "topoplace"
    return folder / f"topoplace-{group}.stamp"


def _digest(group: str) -> str:
    """Return a number that changes whenever numba would compile a kernel of the group again."""
    parts = [*_environment(), _table_text(group)]
    for module in sorted({entry.module for entry in entries_of(group)}):
        source = _PACKAGE.parent.joinpath(*module.split(".")).with_suffix(".py")
        seen = source.stat()
        parts.append(f"{source} {seen.st_mtime_ns} {seen.st_size}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _table_text(group: str) -> str:
    """Return what the table says of a group, in short."""
    return repr([(entry.module, entry.function, entry.types) for entry in entries_of(group)])


@functools.cache
def _environment() -> tuple[str, ...]:
    """Return what machine code depends on beside its source."""
    parts = [importlib.metadata.version("numba"), sys.version, platform.machine()]
    parts += [os.environ.get(name, "") for name in ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES")]
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8") as file:
        lines = file.read(_ENOUGH).splitlines()
        named = ("model name", "flags", "Features", "CPU part")
        parts += [line for line in lines if line.startswith(named)]
    return tuple(parts)
