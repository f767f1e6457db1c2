"""The mappings of the jobs of a placement as rank files."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import numpy as np

from topoplace.mapping.onto import load_places, problem_on
from topoplace.mapping.rankfiles import write_mapping
from topoplace.result import PlacementResult, Result


def write_rank_files(result: Result[Any, Any, Any], folder: Path) -> None:
    """Write a table of tasks and nodes for every job that is mapped, as its request and ``.csv``.

    `topoplace map --mapping` takes them. The folder is made if there is none.
    """
    if not isinstance(result, PlacementResult) or result.solution is None:
        return
    with contextlib.suppress(OSError):  # what cannot be written is rescued, file by file
        folder.mkdir(parents=True, exist_ok=True)
    wanted = {request.id: request.tasks for request in result.instance.queue}
    for placement in result.solution.placements:
        tasks = wanted[placement.request]
        if placement.mapping is None or tasks is None:
            continue
        places = load_places(result, job=placement.request)
        problem = problem_on(places, tasks.application, tasks.per_node)
        nodes = np.array(placement.mapping.nodes, dtype=np.int64)
        write_mapping(folder / f"{placement.request}.csv", "csv", problem, nodes)
