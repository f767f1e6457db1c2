"""Record which kernels are called from Python, with which types, and write the table of kernels.

Run it after a change of a kernel's arguments: `python scripts/build_kernels.py TEST...` runs tests
and keeps the types of every call, beside what the table has of kernels that were not called.
Without tests, only the times are measured anew, each kernel compiled in turn in an empty cache.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from numba.core.dispatcher import Dispatcher

from topoplace.kernels.worker import encode

TABLE = Path(__file__).parent.parent / "solver" / "topoplace" / "kernels" / "table.json"

Entry = dict[str, Any]

PACKAGES = {
    "packing": (
        "topoplace.packing.dual._bundle",
        "topoplace.packing.dual._kernels",
        "topoplace.packing.dual._starts",
    ),
    "packing.starts": ("topoplace.packing.dual._knapsacks",),
    "placement.rows": ("topoplace.placement.torus.oracle._prism_rows",),
    "placement.exact": ("topoplace.placement.torus.oracle",),
    "placement.annealing": ("topoplace.placement.torus._ruin_recreate",),
    "placement.heuristics": (
        "topoplace.placement.torus.heuristics",
        "topoplace.placement.torus._kernels",
    ),
    "placement.replay": ("topoplace.study.replay",),
    "allocation": ("topoplace.placement.switches", "topoplace.certify.switches"),
    "hierarchy": ("topoplace.placement.hierarchy",),
    "mapping.bounds": ("topoplace.mapping.bounds", "topoplace.mapping.symmetry"),
    "mapping.embedding": ("topoplace.mapping.exact.embedding",),
    "mapping.branch": ("topoplace.mapping.exact._kernels",),
    "mapping.certify": ("topoplace.certify.mapping",),
    "mapping.growing": ("topoplace.mapping.growing",),
    "mapping.halving": ("topoplace.mapping.halving",),
    "mapping.local_search": ("topoplace.mapping.local_search",),
    "mapping.tabu_search": ("topoplace.mapping.tabu_search",),
    "mapping.objects": ("topoplace.mapping.objects",),
    "mapping.spread": ("topoplace.mapping.spread",),
}
"""The packages and modules of every group of kernels."""


class Recorder:
    """Keeps the types of every call from Python that numba has nothing compiled for."""

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}
        self._compile = Dispatcher._compile_for_args
        Dispatcher._compile_for_args = self._recording()

    def end(self) -> None:
        """Keep no more of them."""
        Dispatcher._compile_for_args = self._compile

    def _recording(self) -> Callable[..., Any]:
        def compile_for_args(dispatcher: Any, *args: Any, **named: Any) -> Any:
            self._add(dispatcher, [encode(dispatcher.typeof_pyval(value)) for value in args])
            return self._compile(dispatcher, *args, **named)

        return compile_for_args

    def _add(self, dispatcher: Any, types: list[Any]) -> None:
        module, function = dispatcher.py_func.__module__, dispatcher.py_func.__name__
        if module.startswith("topoplace.") and is_usual(types):
            entry = {"module": module, "function": function, "types": types}
            self.entries[json.dumps(entry)] = entry


def is_usual(types: list[Any]) -> bool:
    """Tell whether types are those of ordinary calls: whole arrays."""
    return all(map(_is_usual, types))


def _is_usual(part: Any) -> bool:
    if isinstance(part, str):
        return ":" not in part or part.endswith("C")
    return is_usual(part[1:])


def group_of(entry: Entry) -> str:
    """Return the group of a kernel."""
    module = entry["module"]
    for group, packages in PACKAGES.items():
        if any(module == package or module.startswith(f"{package}.") for package in packages):
            return group
    raise ValueError(f"no group has the kernels of {module}")


def timed(entries: list[Entry]) -> list[Entry]:
    """Return entries with how long each takes to compile after those before it."""
    lines = [
        json.dumps([k, entry["module"], entry["function"], entry["types"]])
        for k, entry in enumerate(entries)
    ]
    with tempfile.TemporaryDirectory() as cache:
        answers = subprocess.run(
            [sys.executable, "-m", "topoplace.kernels.worker"],
            input="\n".join(lines),
            env={**os.environ, "NUMBA_CACHE_DIR": cache},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        ).stdout.splitlines()
    return [
        {**entry, "seconds": json.loads(answer)["seconds"]}
        for entry, answer in zip(entries, answers, strict=True)
    ]


def written(entries: list[Entry]) -> str:
    """Return the text of the table: an entry a line."""
    groups = []
    for group in PACKAGES:
        mine = [json.dumps(entry) for entry in entries if group_of(entry) == group]
        groups.append(f'"{group}": [\n' + ",\n".join(mine) + "\n]")
    return "{\n" + ",\n".join(groups) + "\n}\n"


def main(tests: list[str]) -> int:
    """Run tests, if any are named, and write the table."""
    known: list[Entry] = []
    if TABLE.exists():
        known = [e for group in json.loads(TABLE.read_text("utf-8")).values() for e in group]
    recorder = Recorder()
    if tests and pytest.main(["-p", "no:cacheprovider", "-p", "no:xdist", *tests]):
        return 1
    called = list(recorder.entries.values())
    names = {(entry["module"], entry["function"]) for entry in called}
    entries = called + [e for e in known if (e["module"], e["function"]) not in names]
    entries.sort(key=lambda entry: (entry["module"], entry["function"], str(entry["types"])))
    TABLE.write_text(written(timed(entries)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
