"""Measure mappings of graphs onto cubic tori: bytes-weighted hops after 1, 10 and 60 s.

They are compared with Scotch where it is installed. The graphs are the periodic grid of the torus
itself (least: 1 hop per byte), and random points in a cube that talk to their nearest neighbours.
Tasks are numbered at random, there is one place per task; all kernels are compiled beforehand.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from scipy.spatial import cKDTree

from study import Record, parsed, table, timed, write_rows
from topoplace.errors import InputError
from topoplace.mapping.evaluate import hop_bytes
from topoplace.mapping.onto import load_places, problem_on
from topoplace.mapping.problem import MappingProblem
from topoplace.snapshot.schema import GraphApplication
from topoplace.solving import Options, method_of
from topoplace.types import IntArray

SIDES = {64: 4, 512: 8, 4096: 16, 32768: 32}
NEIGHBOURS = 8
Messages = tuple[IntArray, IntArray, IntArray]
"""Sources, targets and bytes."""


def main(given: Sequence[str] | None = None) -> None:
    """Measure and print."""
    options = parsed(__doc__, given, tasks=list(SIDES), seconds=[1.0, 10.0, 60.0], csv=Path, seed=1)
    warm_up = problem_of(points(3, np.random.default_rng(0)), 3)
    for name in ("search", "bisection"):
        method_of("mapping", name).solver(warm_up, Options(time_limit=0.1))
    rows = []
    for name, problem in cases(options):
        row = Record(graph=name, tasks=problem.num_tasks)
        mappings_of(row, problem, options.seconds)
        rows.append(row)
        print(row, file=sys.stderr, flush=True)
    print(table(rows, list(vars(rows[0])), 2))
    if options.csv is not None:
        write_rows(options.csv, rows)


def cases(options: argparse.Namespace) -> Iterator[tuple[str, MappingProblem]]:
    """Yield the graphs asked for."""
    for tasks in options.tasks:
        for kind in (grid, points):
            messages = kind(SIDES[tasks], np.random.default_rng(options.seed))
            yield kind.__name__, problem_of(messages, SIDES[tasks])


def problem_of(messages: Messages, side: int) -> MappingProblem:
    """Return the problem of a graph on the cubic torus of that side, a place per task."""
    sources, targets, sizes = (part.tolist() for part in messages)
    application = GraphApplication(num_tasks=side**3, sources=sources, targets=targets, bytes=sizes)
    return problem_on(load_places(f"torus:{side}x{side}x{side}"), application)


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


def mappings_of(row: Record, problem: MappingProblem, limits: Sequence[float]) -> None:
    """Add hops per byte by method, with the seconds if not the limit; None if one cannot run."""
    runs = [("bisection", None), *(("search", limit) for limit in limits), ("scotch", None)]
    for method, limit in runs:
        run = partial(method_of("mapping", method).solver, problem, Options(time_limit=limit))
        shown = None
        try:
            outcome, took = timed(run)
            if outcome.solution is not None:
                shown = f"{_hops(problem, hop_bytes(problem, outcome.solution.nodes)):.3f}"
                shown += f" ({took:.1f})" if limit is None or took < 0.95 * limit else ""
        except InputError:
            pass
        setattr(row, f"{method} (s)" if limit is None else f"{method} {limit:g} s", shown)


def _hops(problem: MappingProblem, value: float) -> float:
    return value / problem.graph.total_bytes


if __name__ == "__main__":
    main()
