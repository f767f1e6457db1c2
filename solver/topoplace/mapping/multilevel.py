"""Multilevel partitioning by Mt-KaHyPar (Gottesbüren and others 2024), on trees and hierarchies."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from topoplace import clock
from topoplace.mapping import _partitioner
from topoplace.mapping.problem import MappingProblem
from topoplace.types import IntArray

PRESET, SECONDS = "QUALITY", 2e-6
"""The library's preset, and its rough time per task and pair of a level. DEFAULT takes as long
where domains have few parts, and its partitions cost 10 % more."""

FEWEST_TASKS = 256
"""Smaller problems are searched as well without."""

PART, LOOK_SECONDS = 0.7, 0.02
"""Part of the time after which low levels are filled in order, and time between two looks."""


def is_available(problem: MappingProblem) -> bool:
    """Return whether `multilevel` serves a problem, and the library is installed."""
    found = problem.machine.levels is not None and problem.num_tasks >= FEWEST_TASKS
    return found and importlib.util.find_spec("mtkahypar") is not None


def multilevel(problem: MappingProblem, seed: int, stop: float) -> IntArray | None:
    """Return the leaf of every task by partitions level by level, the top first.

    None if there is not even time for one level until the clock shows `stop`. Each domain is
    divided among those below it, with their room as limits, so that the bytes between them are few.
    """
    machine = problem.machine.levels
    assert machine is not None, "it is available"
    rows = problem.graph.exchanged
    once = rows.owner < rows.other
    if SECONDS * (problem.num_tasks + int(once.sum())) > stop - clock.now():
        return None
    with tempfile.TemporaryDirectory() as path:
        folder = Path(path)
        np.savez(
            folder / "problem.npz",
            domains=machine.domain_of,
            room=problem.capacity,
            ends=np.stack([rows.owner[once], rows.other[once]]),
            weight=rows.weight[once],
            num=problem.num_tasks,
            seed=seed,
            seconds=PART * (stop - clock.now()),
            preset=PRESET,
        )
        command = [sys.executable, "-P", _partitioner.__file__, path]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as own:
            while own.poll() is None:
                if clock.now() >= stop:
                    own.kill()
                time.sleep(LOOK_SECONDS)
        if own.returncode:
            return None
        found: IntArray = np.load(folder / "leaves.npy")
        return found
