"""How kernels are declared, which are compiled, and how the others are compiled ahead."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.metadata
import json
import logging
import os
import platform
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from topoplace import clock
from topoplace.kinds import kind_named
from topoplace.version import __version__

WORDS = "compiling kernels, once for this installation:"


def num_cores() -> int:
    """Return the number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def kernel(**options: bool | str) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that compiles a function at its first call, or ahead of it.

    Its options are more options of `numba.njit`.
    """
    import numba  # noqa: PLC0415 - heavy: whoever asks what is missing does without it

    _number_at_random()
    njit: Any = numba.njit

    def compiled(function: Callable[..., Any]) -> Any:
        if ahead is not None and (function.__module__, function.__name__) not in ahead:
            part = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
            return njit(nogil=True, **part, **options)(function)
        try:
            found = njit(cache=True, nogil=True, **options)(function)
        except RuntimeError as error:  # no folder for what is compiled
            _warn(f"no compiled kernel can be kept ({error}); {_EACH_RUN}")
            found = njit(nogil=True, **options)(function)
        cache: Any = getattr(found, "_cache", None)
        if hasattr(cache, "_cache_file"):
            file = cache._cache_file
            # a kernel holds kernels and constants of other modules, whose sources numba ignores
            file._source_stamp = (file._source_stamp, __version__)
            file._load_index = functools.partial(_index_of, file, file._load_index)
            cache.load_overload = functools.partial(_machine_code, cache, cache.load_overload)
            cache.save_overload = functools.partial(_keep, cache, cache.save_overload)
        return found

    return compiled


ahead: set[tuple[str, str]] | None = None
"""What a process compiles ahead, by module and name (see `worker`); None in every other process."""


@functools.cache
def _number_at_random() -> None:
    """Let numba give every function that it compiles a number that no other process gives.

    The number tells apart functions with the same name and types: numba's own for `np.sort` and
    `np.argsort` differ in nothing else. Numba counts from 1 in every process. Two kernels compiled
    in different processes may then hold different functions with one name, and a process that
    loads both calls the one it loaded first (https://github.com/numba/numba/issues/10486).
    """
    from numba.core.bytecode import FunctionIdentity  # noqa: PLC0415 - heavy

    numbered: Any = FunctionIdentity
    # all of one length, so that files do not differ in length: see `_is_short`
    numbered._unique_ids = iter(lambda: _LEAST + secrets.randbelow(9 * _LEAST), None)


_LEAST = 10**18  # of numbers of 19 digits


def _index_of(file: Any, load: Callable[[], dict[Any, str]]) -> dict[Any, str]:
    """Return what numba's index says is compiled: nothing if it cannot be read.

    It may name types of another version: numba reads these before it looks whether the source is
    the same. Or it may have been cut off.
    """
    try:
        return load()
    except (AttributeError, ImportError):
        return {}
    except Exception as error:  # unpickling what is damaged may raise anything
        _warn_of_damage(file._index_path, error)
        return {}


def _machine_code(cache: Any, load: Callable[[Any, Any], Any], kinds: Any, target: Any) -> Any:
    """Return a kernel's machine code from the cache; None if it must be compiled.

    Numba first loads all that it could compile, which takes a tenth of a second to a third in every
    process; what is compiled needs its runtime alone. Compiling loads the rest by itself.

    Two processes that compile a kernel for different types at once may choose one file, and the
    index may name it for the types of the one while it holds the code of the other: such code is
    not what was asked for, and would read its arguments as what they are not.
    """
    try:
        from numba.core.runtime.nrt import rtsys  # noqa: PLC0415 - heavy

        rtsys.initialize(target)
        found = cache._load_overload(kinds, target)
    except Exception:  # whatever it is, numba's own way meets it again or knows better
        found = None
    try:
        found = load(kinds, target) if found is None else found
    except Exception as error:  # unpickling what is damaged may raise anything
        _warn_of_damage(cache.cache_path, error)
        return None
    return None if found is None or tuple(found.signature.args) != tuple(kinds) else found


def _keep(cache: Any, save: Callable[[Any, Any], None], kinds: Any, data: Any) -> None:
    """Keep a kernel's machine code on disk, if there is room."""
    try:
        save(kinds, data)
    except OSError as error:
        _warn(f"compiled kernels cannot be kept in {cache.cache_path} ({error.strerror})")
        not_kept.append(error.strerror or "")


not_kept: list[str] = []
"""Why kernels that this process compiled are not on disk."""

_EACH_RUN = "every run compiles what it calls"
_warned: set[str] = set()


def _warn_of_damage(path: str, error: Exception) -> None:
    _warn(f"a compiled kernel is damaged and is compiled again: {path} ({type(error).__name__})")


def _warn(text: str) -> None:
    """Say something on stderr, once."""
    if text not in _warned and logging.getLogger("topoplace").isEnabledFor(logging.ERROR):
        _warned.add(text)
        print(f"topoplace: {text}", file=sys.stderr, flush=True)


def groups_of(problem: str, methods: Iterable[str]) -> list[str]:
    """Return the groups of kernels that methods of a kind of problem need."""
    needed = kind_named(problem).needed
    groups = (group for method in methods for group in needed.get(method, needed.get(None, ())))
    return list(dict.fromkeys(groups))


# ---- The table of kernels: which ones are called from Python, and with which types ---------------
# `scripts/build_kernels.py` records it from calls; nobody writes it by hand.


@dataclass(frozen=True)
class Entry:
    """One kernel for one list of argument types (see `worker`), and about how long it takes."""

    module: str
    function: str
    types: list[Any]
    seconds: float


def entries_of(group: str) -> list[Entry]:
    """Return the entries of a group."""
    return _table().get(group, [])


@functools.cache
def _table() -> dict[str, list[Entry]]:
    text = resources.files("topoplace.kernels").joinpath("table.json").read_text("utf-8")
    groups: dict[str, list[dict[str, Any]]] = json.loads(text)
    return {name: [Entry(**entry) for entry in entries] for name, entries in groups.items()}


# ---- Stamps beside numba's cache: which groups have been compiled, told without importing numba --

_PACKAGE = Path(__file__).resolve().parent.parent
_ENOUGH = 4096  # bytes that name the first processor and its features
_ROOM = 1 << 20  # bytes that have to be free where kernels are kept


def missing(groups: Iterable[str]) -> list[str]:
    """Return the groups that are not compiled yet for this machine, numba and Python.

    Those are some whose files are gone, or shorter than they were.
    """
    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        return []
    return [group for group in dict.fromkeys(groups) if _files_of(group) != []]


def _stamp(group: str, files: Iterable[str]) -> None:
    """Note that a group is compiled; without room for the note it is looked at again next time."""
    path = _path_of(group)
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [f"{os.stat(file).st_size} {file}" for file in sorted(set(files))]
        path.write_text("\n".join([_digest(group), *lines]), encoding="utf-8")


def _files_of(group: str) -> list[str] | None:
    """Return the files of a stamped group that are damaged or gone; None if it has no stamp."""
    try:
        digest, *lines = _path_of(group).read_text(encoding="utf-8").splitlines()
        known = [(int(size), file) for size, _, file in (line.partition(" ") for line in lines)]
    except (OSError, ValueError):
        return None
    return None if digest != _digest(group) else [f for size, f in known if _is_short(f, size)]


def _is_short(file: str, size: int) -> bool:
    """Tell whether a file has less in it than it had; an index may have more."""
    try:
        return os.stat(file).st_size < size
    except OSError:
        return True


def _path_of(group: str) -> Path:
    """Return where the stamp of a group is: where numba keeps what it compiles."""
    return folder_of_kernels() / f"topoplace-{group}.stamp"


def folder_of_kernels() -> Path:
    """Return the folder in or below which compiled kernels are kept."""
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    beside = _PACKAGE / "__pycache__"
    folders: list[Path] = [*([Path(chosen)] if chosen else ()), beside]
    for folder in folders:
        there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
        if there.is_dir() and os.access(there, os.W_OK):
            return folder
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "topoplace"


def _why_not_kept() -> str | None:
    """Return why nothing can be kept in the folder of compiled kernels, None if it can."""
    folder = folder_of_kernels()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(_ROOM))
    except OSError as error:
        return error.strerror or type(error).__name__
    return None


def _digest(group: str) -> str:
    """Return a number that changes whenever numba would compile a kernel of the group again."""
    entries = entries_of(group)
    listed = repr([(entry.module, entry.function, entry.types) for entry in entries])
    parts = [__version__, *_environment(), listed]
    for module in sorted({entry.module for entry in entries}):
        source = _PACKAGE.parent.joinpath(*module.split(".")).with_suffix(".py")
        seen = source.stat()
        parts.append(f"{source} {seen.st_mtime_ns} {seen.st_size}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


@functools.cache
def _environment() -> tuple[str, ...]:
    """Return what machine code depends on besides its source."""
    parts = [importlib.metadata.version("numba"), sys.version, platform.machine()]
    parts += [os.environ.get(name, "") for name in ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES")]
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8") as file:
        lines = file.read(_ENOUGH).splitlines()
        named = ("model name", "flags", "Features", "CPU part")
        parts += [line for line in lines if line.startswith(named)]
    return tuple(parts)


# ---- Compilation ahead of a solve, in processes of its own that share numba's cache on disk ------
# Numba compiles one kernel of a process at a time, so that two cores need two processes.

_MOST = 4  # processes: each takes 0.5 to 1 GB
_ROOT = str(Path(__file__).resolve().parent.parent.parent)


def compile_for(problem: str, methods: Iterable[str]) -> float:
    """Compile what methods of a kind of problem need and was never compiled; mostly nothing.

    Call it before any clock starts: compiling is not solving. Returns the seconds it took.
    """
    began = time.perf_counter()
    compile_groups(groups_of(problem, methods))
    return time.perf_counter() - began


def compile_late(group: str) -> None:
    """Compile what few solves need, when one does; the clock is held meanwhile."""
    if group not in _compiled:
        with clock.held():
            compile_groups([group])
        _compiled.add(group)


_compiled: set[str] = set()


def compile_groups(groups: Iterable[str]) -> int:
    """Compile those of some groups that are not compiled yet; return how many kernels are kept.

    What cannot be compiled ahead is left to its first call, which says why. A line on stderr tells
    how far it is: rewritten at a terminal, elsewhere printed in the beginning and in the end. What
    cannot be kept on disk is said too.
    """
    wanted = missing(groups)
    if not wanted:
        return 0
    folder, why = folder_of_kernels(), _why_not_kept()
    if why is not None:
        _warn(f"compiled kernels cannot be kept in {folder} ({why}); {_EACH_RUN}")
        return 0
    damaged = [file for group in wanted for file in _files_of(group) or ()]
    if damaged:
        others = f" and {len(damaged) - 1} more" if len(damaged) > 1 else ""
        _warn(f"compiled kernels are damaged or gone: {damaged[0]}{others}; compiling them again")
    began = time.perf_counter()
    tasks = [(group, entry) for group in wanted for entry in entries_of(group)]
    entries = [entry for _, entry in tasks]
    answers = _compile(entries, min(_MOST, num_cores(), len(entries)), began)
    left = {group for k, (group, _) in enumerate(tasks) if not _is_done(answers.get(k))}
    for group in set(wanted) - left:
        own = (answers[k]["files"] for k, (name, _) in enumerate(tasks) if name == group)
        _stamp(group, (file for files in own for file in files))
    kept = sum(bool(answer["files"]) for answer in answers.values())
    if left:
        reasons = {answer["why"] for answer in answers.values() if answer["why"]}
        told = ", ".join(sorted(reasons)) or "a process that compiles ended early"
        _warn(f"{kept} of {len(tasks)} compiled kernels are kept in {folder} ({told})")
    return kept


def _is_done(answer: dict[str, Any] | None) -> bool:
    """Tell whether a kernel is kept, or cannot be compiled, of which its first call says why."""
    return answer is not None and (bool(answer["files"]) or answer["error"] is not None)


def _show(done: int, total: int, began: float) -> None:
    """Show how many of how many kernels are compiled."""
    if not logging.getLogger("topoplace").isEnabledFor(logging.ERROR):
        return
    text, over = f"{WORDS} {done} of {total}", done == total
    if over:
        text += f", {time.perf_counter() - began:.1f} s"
    if sys.stderr.isatty():
        print(f"\r{text}", end="\n" if over else "", file=sys.stderr, flush=True)
    elif over or done == 0:
        print(text, file=sys.stderr, flush=True)


def _compile(entries: list[Entry], num_workers: int, began: float) -> dict[int, dict[str, Any]]:
    """Compile entries in processes, each its share; they answer each with a line in one pipe.

    Returns their answers (see `worker`) by number of the entry; some may be missing.
    """
    found: dict[int, dict[str, Any]] = {}
    path = os.pathsep.join(filter(None, [_ROOT, os.environ.get("PYTHONPATH")]))
    workers: list[subprocess.Popen[str]] = []
    source, sink = os.pipe()
    with open(source, encoding="utf-8") as answers:
        try:
            with open(sink, "w", encoding="utf-8") as answering:
                for share in _shares(entries, num_workers):
                    worker = subprocess.Popen(
                        [sys.executable, "-m", "topoplace.kernels.worker"],
                        stdin=subprocess.PIPE,
                        stdout=answering,
                        stderr=subprocess.DEVNULL,
                        text=True,
                        env={**os.environ, "PYTHONPATH": path},
                    )
                    workers.append(worker)
                    assert worker.stdin is not None
                    with contextlib.suppress(OSError), worker.stdin as lines:  # it may have died
                        for at in share:
                            entry = entries[at]
                            task = [at, entry.module, entry.function, entry.types]
                            print(json.dumps(task), file=lines)
            _show(0, len(entries), began)
            for done, line in enumerate(answers, start=1):
                answer = json.loads(line)
                found[answer["number"]] = answer
                _show(done, len(entries), began)
        finally:
            for worker in workers:
                worker.kill()
                worker.wait()
    return found


def _shares(entries: Sequence[Entry], num_workers: int) -> list[list[int]]:
    """Share out entries, by number, so that processes take about as long; a module is in one.

    Its kernels have parts in common, which every process would compile for itself.
    """
    modules: dict[str, list[int]] = {}
    for at, entry in enumerate(entries):
        modules.setdefault(entry.module, []).append(at)
    shares: list[list[int]] = [[] for _ in range(num_workers)]

    def seconds(numbers: list[int]) -> float:
        return sum(entries[at].seconds for at in numbers)

    for numbers in sorted(modules.values(), key=seconds, reverse=True):
        min(shares, key=seconds).extend(numbers)
    return [share for share in shares if share]
