"""Measure mappings of graphs onto cubic tori: bytes-weighted hops after 1, 10 and 60 s.

They stand beside Scotch where it is installed, as `topoplace compare` shows them. The graphs are
the periodic grid of the torus itself (least: 1 hop per byte), and random points in a cube that talk
to their nearest neighbours. Tasks are numbered at random, there is one place per task; all kernels
are compiled beforehand.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.spatial import cKDTree

from study import parsed
from topoplace import compare
from topoplace.mapping.onto import load_places, problem_on
from topoplace.mapping.problem import MappingProblem
from topoplace.snapshot.schema import GraphApplication
from topoplace.types import IntArray

SIDES = {64: 4, 512: 8, 4096: 16, 32768: 32}
METHODS = ("bisection", "search", "scotch")
NEIGHBOURS = 8
Messages = tuple[IntArray, IntArray, IntArray]
"""Sources, targets and bytes."""


def main(given: Sequence[str] | None = None) -> None:
    """Measure and print."""
    options = parsed(__doc__, given, tasks=list(SIDES), seconds=[1.0, 10.0, 60.0], seed=1)
    instances = []
    for side in (SIDES[tasks] for tasks in options.tasks):
        for kind in (grid, points):
            messages = kind(side, np.random.default_rng(options.seed))
            instances.append(problem_of(kind.__name__, messages, side).instance)
    for limit in options.seconds:
        print(compare(*instances, methods=METHODS, time_limit=limit))


def problem_of(name: str, messages: Messages, side: int) -> MappingProblem:
    """Return the problem of a graph on the cubic torus of that side, a place per task."""
    sources, targets, sizes = (part.tolist() for part in messages)
    application = GraphApplication(num_tasks=side**3, sources=sources, targets=targets, bytes=sizes)
    places = load_places(f"torus:{side}x{side}x{side}")
    return problem_on(places, application, name=f"{name}_{side**3}")


def grid(side: int, rng: np.random.Generator) -> Messages:
    """Return the messages of the periodic grid, one byte each."""
    tasks = rng.permutation(side**3).reshape((side,) * 3)
    steps = [(step, d) for d in range(3) for step in (1, -1)]
    targets = np.concatenate([np.roll(tasks, step, axis=d).ravel() for step, d in steps])
    return np.tile(tasks.ravel(), len(steps)), targets, np.ones_like(targets)


def points(side: int, rng: np.random.Generator) -> Messages:
    """Return messages of 1 to 99 bytes from random points to their nearest neighbours."""
    at = rng.random((side**3, 3))
    _, nearest = cKDTree(at).query(at, NEIGHBOURS + 1)
    sources = np.repeat(np.arange(len(at)), NEIGHBOURS)
    return sources, nearest[:, 1:].ravel(), rng.integers(1, 100, len(sources))


if __name__ == "__main__":
    main()
