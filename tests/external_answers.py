"""Snapshots and answers of external allocators, and commands that print them, for tests."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from small_snapshot import small_document
from topoplace.cli import run


def answer_of(placements: list[dict[str, Any]]) -> str:
    """Return a placements document."""
    return json.dumps({"schema": "topoplace.placements/1", "placements": placements})


def placed(request: str, nodes: Any, origin: Any = None, extents: Any = None) -> dict[str, Any]:
    """Return a placement, on a prism if its origin is given."""
    prism = {} if origin is None else {"prism": {"origin": origin, "extents": extents}}
    return {"request": request, "nodes": nodes, **prism}


FIRST = placed("first", "60-61,64-65,84-85,88-89", [2, 2, 2], [2, 1, 2])
"""A placement of the small snapshot's first request that keeps all rules."""


def command_printing(folder: Path, text: str) -> str:
    """Return a command line that prints a text."""
    path = folder / "answer.txt"
    path.write_text(text, encoding="latin-1")
    return f"cat {shlex.quote(str(path))}"


def ring_document(communication: str = "strict") -> dict[str, Any]:
    """Return a ring of 16 where a job runs on 3; a request for 9 would use all links."""
    busy = placed("busy", "0-2", [0], [3])
    return {
        "schema": "topoplace.snapshot/1",
        "name": "ring",
        "machine": {"kind": "torus", "name": "ring", "shape": [16], "nodes_per_router": 1},
        "running": [{"id": busy.pop("request"), "communication": communication, **busy}],
        "queue": [
            {"id": "wide", "nodes": 9, "communication": communication},
            {"id": "narrow", "nodes": 2, "communication": communication},
        ],
    }


def tree_document() -> dict[str, Any]:
    """Return three leaves of four nodes; no switch is above the third and another one."""
    switches = [{"name": f"s{k}", "nodes": f"n[{4 * k}-{4 * k + 3}]"} for k in range(3)]
    switches.append({"name": "top", "switches": "s[0-1]"})
    return {
        "schema": "topoplace.snapshot/1",
        "name": "grove",
        "machine": {"kind": "tree", "name": "grove", "switches": switches},
        "down": "n3",
        "running": [{"id": "busy", "nodes": "n0"}],
        "queue": [
            {"id": "talks", "nodes": 3, "patterns": [{"pattern": "rd"}]},
            {"id": "quiet", "nodes": 2},
        ],
    }


def write_document(folder: Path, document: dict[str, Any] | None = None) -> Path:
    """Write a snapshot, the small one if none is given, and return its path."""
    path = folder / "snapshot.json"
    path.write_text(json.dumps(small_document() if document is None else document))
    return path


def verdict_of(
    folder: Path,
    command: str,
    capsys: pytest.CaptureFixture[str],
    document: dict[str, Any] | None = None,
    *more: str,
) -> tuple[int, str]:
    """Run `place`, which must write no result; return its exit code and its one line of stderr."""
    result = folder / "r.json"
    path = write_document(folder, document)
    code = run(["place", str(path), "--command", command, "-o", str(result), *more])
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert not result.exists()
    return code, said
