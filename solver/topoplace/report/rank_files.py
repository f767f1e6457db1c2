"""The mappings of the jobs of a placement as rank files."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

from topoplace.kinds import kind_named
from topoplace.mapping.onto import load_places, problem_on
from topoplace.mapping.rankfiles import write_mapping


def write_rank_files(result: Any, folder: Path) -> None:
    """Write a table of tasks and nodes for every job that is mapped, as its request and ``.csv``.

    `topoplace map --mapping` takes them. The folder is made if there is none.
    """
    mapped = [*kind_named(result.problem).get("view")(result).mapped()]
    if not mapped:
        return
    with contextlib.suppress(OSError):  # what cannot be written is rescued, file by file
        folder.mkdir(parents=True, exist_ok=True)
    for request, tasks, nodes in mapped:
        places = load_places(result, job=request)
        problem = problem_on(places, tasks.application, tasks.per_node)
        write_mapping(folder / f"{request}.csv", "csv", problem, nodes)
