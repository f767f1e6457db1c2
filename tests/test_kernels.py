"""Kernels: declared in one way, listed in the table, compiled before the clock starts."""

from __future__ import annotations

import ast
import gc
import importlib
import json
import os
import re
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba.core import config
from numba.core.caching import CacheImpl, IndexDataCacheFile
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher

from scripts_of_the_project import script
from small_snapshot import write_small
from tiny_kinds import KINDS, drawn
from topoplace import clock
from topoplace.cli import run
from topoplace.errors import ExitCode
from topoplace.interrupts import ended_in_time, left_behind
from topoplace.kernels import compile_groups, compiling, groups_of
from topoplace.kernels.compiling import WORDS, Entry, entries_of, missing
from topoplace.kernels.worker import decode, encode
from topoplace.kinds import shipped
from topoplace.solving import Outcome, method_names, solve
from topoplace.solving.solve import found_by

GROUPS = [group for kind in shipped().values() for group in kind.kernels]
PACKAGE = Path(__file__).resolve().parent.parent / "solver" / "topoplace"


def declared() -> dict[str, set[str]]:
    """Return the names of all kernels by module."""
    found: dict[str, set[str]] = {}
    for file in PACKAGE.rglob("*.py"):
        text = file.read_text()
        if "@kernel(" in text:
            module = ".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts)
            found[module] = {
                node.name
                for node in ast.parse(text).body
                if isinstance(node, ast.FunctionDef)
                and any(ast.unparse(d).startswith("kernel(") for d in node.decorator_list)
            }
    return found


def topoplace(cache: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """Run a command whose compiled kernels are kept in a folder."""
    return subprocess.run(
        [sys.executable, "-m", "topoplace", *args],
        env=os.environ | {"NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": str(PACKAGE.parent)},
        capture_output=True,
        text=True,
        check=False,
    )


def counted(text: str) -> list[list[int]]:
    """Return how many of how many kernels a command said were compiled."""
    found = re.findall(rf"^{WORDS} (\d+) of (\d+)", text, re.MULTILINE)
    return [[int(number) for number in pair] for pair in found]


def test_kernels_are_declared_in_one_way() -> None:
    for file in PACKAGE.rglob("*.py"):
        if file.name != "compiling.py":
            assert not re.search(r"@(numba\.)?(n?jit|vectorize)\b", file.read_text()), file


def test_the_table_has_the_kernels_that_python_imports_and_they_are_there() -> None:
    """Those that are not in it are called by kernels alone."""
    listed = {(entry.module, entry.function) for group in GROUPS for entry in entries_of(group)}
    texts = [file.read_text() for file in PACKAGE.rglob("*.py")]
    kernels = {(module, name) for module, names in declared().items() for name in names}
    imported = {
        (node.module, alias.name)
        for text in texts
        if "@kernel(" not in text
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert kernels & imported <= listed <= kernels


LATE = ("mapping.branch", "mapping.spread", "packing.starts", "placement.annealing")
"""What few solves need, compiled when one does (`compile_late`)."""

OF_NO_METHOD = ("mapping.certify", "placement.replay", *LATE)
"""No method needs them at once: a check does, and a replay."""


@pytest.mark.parametrize("problem", list(shipped()))
def test_every_method_has_its_groups(problem: str) -> None:
    groups = groups_of(problem, method_names(problem))
    assert {*groups, *OF_NO_METHOD} == {*shipped()[problem].kernels, *OF_NO_METHOD}


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "defragment"])
def test_what_a_solve_calls_is_compiled_before(kind: str) -> None:
    """Of the kernels that a solve calls the table has all, in the groups of its method."""
    recorder = script("build_kernels").Recorder()
    try:
        for seed in range(3):
            case = drawn(f"kernels-{seed}", kind)
            for found in gc.get_objects():
                if isinstance(found, Dispatcher) and found.__module__.startswith("topoplace."):
                    found._reset_overloads()
            solve(case.problem, "exact", case.options)
    finally:
        recorder.end()
    groups = [*groups_of(case.problem.kind, ["exact"]), *LATE]
    if kind == "joint":
        groups += groups_of("mapping", ["auto"])
    listed = [(e.module, e.function, e.types) for group in groups for e in entries_of(group)]
    called = [(e["module"], e["function"], e["types"]) for e in recorder.entries.values()]
    assert [one for one in called if one not in listed] == []


def test_a_clock_that_is_held_stands_still() -> None:
    before = clock.now()
    with clock.held():
        time.sleep(0.05)
        assert clock.now() == clock.now() < before + 0.05
    assert clock.now() < before + 0.05


def test_types_survive_the_table() -> None:
    kinds = ["int64", "bool", "float64:2C", "uint32:1Cr", ["", "int64", "bool:3C"]]
    kinds += [kind for group in GROUPS for entry in entries_of(group) for kind in entry.types]
    assert [encode(decode(kind)) for kind in kinds] == kinds


def test_nothing_is_missing_without_compilation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    assert missing(GROUPS) == []


NAMED = """
from typing import NamedTuple
from topoplace.kernels import kernel

class {0}(NamedTuple):
    value: int

@kernel()
def doubled(it):
    return 2 * it.value

answer = doubled({0}(4))
"""


def test_a_cache_that_names_types_of_another_version_is_written_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("Old", "Newer"):
        (tmp_path / "some_version.py").write_text(NAMED.format(name))
        importlib.invalidate_caches()
        monkeypatch.delitem(sys.modules, "some_version", raising=False)
        assert importlib.import_module("some_version").answer == 8


@pytest.mark.slow
def test_warmup_compiles_all_that_a_solve_calls(tmp_path: Path) -> None:
    cache, snapshot = tmp_path / "cache", str(write_small(tmp_path))
    said = topoplace(cache, "warmup", "placement", "--json")
    assert said.returncode == ExitCode.DONE
    document = json.loads(said.stdout)
    assert document["kernels"] == counted(said.stderr)[-1][1]
    assert document["seconds"] > 0
    before = sorted(cache.rglob("*.nb?"))
    again = topoplace(cache, "warmup", "placement")
    assert (again.stdout, again.stderr) == ("all kernels are compiled\n", "")
    solved = topoplace(cache, "place", snapshot, "--time-limit", "2")
    assert (solved.returncode, solved.stderr) == (ExitCode.DONE, "")
    assert sorted(cache.rglob("*.nb?")) == before != []


# ---- A method that is left behind while a kernel compiles leaves the compiler to others --------


@pytest.mark.parametrize("compiling", [False, True])
def test_a_method_that_compiles_is_not_torn_apart(compiling: bool) -> None:
    begun, go_on, unharmed = threading.Event(), threading.Event(), threading.Event()

    def method() -> Outcome:
        if compiling:
            with global_compiler_lock:
                begun.set()
                go_on.wait(60)
        else:
            begun.set()
            go_on.wait(60)
        for _ in range(1000):  # where what ends a thread would reach it
            pass
        unharmed.set()
        return Outcome(None)

    known = Outcome([])
    found = ended_in_time(method, lambda: known if begun.is_set() else None, 0.1, lambda: None)
    assert found is known
    go_on.set()
    left_behind[-1].join(60)
    assert unharmed.is_set() is compiling
    assert global_compiler_lock._lock.acquire(blocking=False), "it is free"
    global_compiler_lock._lock.release()


LOADED = """
import importlib, sys
from numba.core.base import BaseContext
from topoplace.kernels.compiling import entries_of
from topoplace.kinds import shipped
from topoplace.kernels.worker import decode

BaseContext.refresh = lambda context: sys.exit("all that can be compiled is loaded")
for group in (group for kind in shipped().values() for group in kind.kernels):
    for entry in entries_of(group):
        kernel = getattr(importlib.import_module(entry.module), entry.function)
        kernel.compile(tuple(map(decode, entry.types)))
        assert not kernel.stats.cache_misses, entry
print("all loaded")
"""


def test_what_is_compiled_is_loaded_without_what_compiling_needs() -> None:
    """Machine code that needed more than numba's runtime would end the process."""
    if missing(GROUPS):
        pytest.skip("some kernels are not compiled")
    done = subprocess.run(
        [sys.executable, "-c", LOADED],
        env=os.environ | {"PYTHONPATH": str(PACKAGE.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr, done.returncode) == ("all loaded\n", "", 0)


SORTED = """
import numpy as np
from topoplace.kernels import kernel

@kernel()
def ordered(values):
    values.sort()
    return values
"""
RANKED = """
import numpy as np
from topoplace.kernels import kernel

@kernel()
def order(values):
    return np.argsort(values)
"""
CALLED = """
import numpy as np
import {0}

kernels = {1}
print(*(kernel(np.array([50, 30, 90, 10])).tolist() for kernel in kernels))
print(sum(sum(kernel.stats.cache_misses.values()) for kernel in kernels))
"""


def test_kernels_compiled_in_different_processes_call_functions_of_their_own(
    tmp_path: Path,
) -> None:
    """Numba's sorts have one name and one list of types: a number has to tell them apart."""

    def said(modules: str, kernels: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", CALLED.format(modules, kernels)],
            env=os.environ | {"PYTHONPATH": f"{PACKAGE.parent}{os.pathsep}{tmp_path}"},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    (tmp_path / "sorted.py").write_text(SORTED)
    (tmp_path / "ranked.py").write_text(RANKED)
    assert said("sorted", "[sorted.ordered]") == "[10, 30, 50, 90]\n1\n"
    assert said("ranked", "[ranked.order]") == "[3, 1, 0, 2]\n1\n"
    both = said("sorted, ranked", "[sorted.ordered, ranked.order]")
    assert both == "[10, 30, 50, 90] [3, 1, 0, 2]\n0\n"


# ---- Files that are damaged, and folders that keep none ------------------------------------------

DOUBLED = """
from topoplace.kernels import kernel

@kernel()
def doubled(value):
    return 2 * value
"""
ENTRY = Entry("some_kernel", "doubled", ["int64"], 1.0)


@pytest.fixture
def kernel_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a module with a kernel, the one of a group; return the folder that keeps it."""
    (tmp_path / "some_kernel.py").write_text(DOUBLED)
    cache = tmp_path / "cache"
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(cache))
    monkeypatch.setattr(config, "CACHE_DIR", str(cache))
    monkeypatch.setattr(compiling, "missing", missing)
    monkeypatch.setattr(compiling, "entries_of", lambda group: [ENTRY])
    monkeypatch.setattr(compiling, "_digest", lambda group: "digest")
    monkeypatch.setattr(compiling, "_warned", set())
    return cache


def called_anew(monkeypatch: pytest.MonkeyPatch) -> object:
    """Return what the kernel answers in a module that is imported again."""
    monkeypatch.delitem(sys.modules, "some_kernel", raising=False)
    importlib.invalidate_caches()
    return importlib.import_module("some_kernel").doubled(21)


def test_code_for_other_types_is_not_called(
    kernel_of_its_own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two processes that write at once may exchange files: the index names another's code."""

    def answers() -> list[float]:
        assert called_anew(monkeypatch) == 42
        doubled = sys.modules["some_kernel"].doubled
        return [*doubled(np.array([21])).tolist(), *doubled(np.array([2.5])).tolist()]

    assert answers() == [42, 5.0]
    *_, first, second = sorted(kernel_of_its_own.rglob("*.nbc"))
    of_first = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(of_first)
    assert answers() == [42, 5.0]
    assert answers() == [42, 5.0]
    assert not sys.modules["some_kernel"].doubled.stats.cache_misses


def test_what_another_version_compiled_is_compiled_again(
    kernel_of_its_own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It holds kernels and constants of other modules, which numba does not look at."""
    misses = []
    for version in ("1", "1", "2"):
        monkeypatch.setattr(compiling, "__version__", version)
        assert called_anew(monkeypatch) == 42
        stats = sys.modules["some_kernel"].doubled.stats
        misses.append(sum(stats.cache_misses.values()))
    assert misses == [1, 0, 1]
    assert list(kernel_of_its_own.rglob("*.nbi"))


@pytest.mark.parametrize("kept", [lambda data: b"", lambda data: data[: len(data) // 2], None])
@pytest.mark.parametrize("ending", ["nbi", "nbc"])
def test_a_damaged_file_is_compiled_again(
    ending: str,
    kept: Callable[[bytes], bytes] | None,
    kernel_of_its_own: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert called_anew(monkeypatch) == 42
    (file,) = kernel_of_its_own.rglob(f"*.{ending}")
    data = file.read_bytes()
    damaged = bytes(len(data)) if kept is None else kept(data)
    file.write_bytes(damaged)
    assert called_anew(monkeypatch) == 42
    said = capsys.readouterr().err
    assert said.startswith("topoplace: a compiled kernel is damaged and is compiled again: ")
    assert said.count("\n") == 1
    assert file.read_bytes() not in (damaged, b"")
    assert called_anew(monkeypatch) == 42
    assert capsys.readouterr().err == ""


def test_a_first_solve_compiles_before_its_clock_starts(
    kernel_of_its_own: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """All groups have the same kernel here; `found_by` is what the clock of a solve measures."""
    there: list[bool] = []

    def found(*args: Any) -> Outcome:
        there.append(any(kernel_of_its_own.rglob("*.nbc")))
        return found_by(*args)

    monkeypatch.setattr(importlib.import_module("topoplace.solving.solve"), "found_by", found)
    args = ["place", str(write_small(tmp_path)), "--method", "first-fit", "--json"]
    assert run(args) == ExitCode.DONE
    assert counted(capfd.readouterr().err) == [[0, 1], [1, 1]]
    assert run(args) == ExitCode.DONE
    assert WORDS not in capfd.readouterr().err
    assert there == [True, True]


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
def test_files_cut_off_are_seen_and_compiled_before_the_clock_starts(
    ending: str, kernel_of_its_own: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert compile_groups(["g"]) == 1
    assert counted(capfd.readouterr().err) == [[0, 1], [1, 1]]
    assert missing(["g"]) == []
    assert compile_groups(["g"]) == 0
    (file,) = kernel_of_its_own.rglob(f"*.{ending}")
    whole = file.read_bytes()
    file.write_bytes(whole[:-10])
    assert missing(["g"]) == ["g"]
    assert compile_groups(["g"]) == 1
    said = capfd.readouterr().err
    assert f"topoplace: compiled kernels are damaged or gone: {file}; compiling them again" in said
    assert missing(["g"]) == []
    assert len(file.read_bytes()) >= len(whole) - 10


PARTS = """
import numpy as np
from topoplace.kernels import kernel

@kernel()
def _squares(values):
    return values * values

@kernel()
def part(values):
    if len(values) == 0:
        raise ValueError("no values")
    return np.sort(_squares(values))

@kernel()
def doubled(values):
    return 2 * part(values)
"""


def test_what_only_kernels_call_is_part_of_these(
    kernel_of_its_own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python can call it all the same, at the cost of compiling it."""
    (kernel_of_its_own.parent / "some_kernel.py").write_text(PARTS)
    entry = Entry("some_kernel", "doubled", ["int64:1C"], 1.0)
    monkeypatch.setattr(compiling, "entries_of", lambda group: [entry])
    monkeypatch.delitem(sys.modules, "some_kernel", raising=False)
    importlib.invalidate_caches()
    assert compile_groups(["g"]) == 1
    (file,) = kernel_of_its_own.rglob("*.nbc")
    assert "doubled" in file.name
    module = importlib.import_module("some_kernel")
    assert module.doubled(np.array([3, -1])).tolist() == [2, 18]
    with pytest.raises(ValueError, match=r"^no values$"):
        module.doubled(np.zeros(0, dtype=np.int64))
    assert not module.doubled.stats.cache_misses
    assert module.part(np.array([3, -1])).tolist() == [1, 9]


def test_processes_share_out_what_takes_long() -> None:
    seconds = {"a": 5.0, "b": 4.0, "c": 3.0, "d": 1.0}
    entries = [Entry(module, "kernel", [], s / 2) for module, s in seconds.items()] * 2
    assert compiling._shares(entries, 2) == [[0, 4, 3, 7], [1, 5, 2, 6]]
    assert compiling._shares(entries, 9) == [[0, 4], [1, 5], [2, 6], [3, 7]]


def test_a_folder_that_fills_up_is_told(
    kernel_of_its_own: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(compiling, "_ROOM", 10)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, before[1]))
    try:
        assert compile_groups(["g"]) == 0
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    told = f"topoplace: 0 of 1 compiled kernels are kept in {kernel_of_its_own} (File too large)"
    assert told in capfd.readouterr().err
    assert missing(["g"]) == ["g"]


def test_a_kernel_that_cannot_be_kept_is_called(
    kernel_of_its_own: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(IndexDataCacheFile, "save", full)
    assert called_anew(monkeypatch) == 42
    assert "cannot be kept in" in capsys.readouterr().err
    monkeypatch.setattr(CacheImpl, "_locator_classes", [])
    assert called_anew(monkeypatch) == 42
    assert "no compiled kernel can be kept" in capsys.readouterr().err


def test_warmup_fails_where_nothing_can_be_kept(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "topoplace", "warmup", "placement"],
        env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(PACKAGE.parent)},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (ExitCode.BAD_INPUT, "")
    assert done.stderr.splitlines() == [
        f"topoplace: compiled kernels cannot be kept in {tmp_path} (File too large); "
        "every run compiles what it calls",
        f"topoplace: error: {tmp_path}: expected a folder that can keep all compiled kernels "
        "(NUMBA_CACHE_DIR names another), found 0 kept",
    ]
