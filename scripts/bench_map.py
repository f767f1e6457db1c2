"""Measure mappings of graphs onto cubic tori, or with `--bounds` the bounds beside them.

Mappings: bytes-weighted hops after 1, 10 and 60 s, beside Scotch where it is installed, as
`topoplace compare` shows them, of the periodic grid of the torus itself (least: 1 hop per byte),
and of random points in a cube that talk to their nearest neighbours. Bounds: of graphs without
locality (`regular` is three random rings through all tasks, `power` random messages between tasks
of very different popularity) and, with `--data`, of the measured applications of 64 tasks in that
folder; every bound by cuts is checked. Tasks are numbered at random, there is one place per task;
all kernels are compiled beforehand.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from scipy.spatial import cKDTree

from study import Column, Record, parsed, percent, table, timed, write_rows
from topoplace import compare
from topoplace.certify.mapping.graphs import cuts_value
from topoplace.certify.mapping.instance import read_instance
from topoplace.mapping.bounds.cuts import cuts_bound
from topoplace.mapping.bounds.distance_classes import distance_classes_bound
from topoplace.mapping.bounds.star import star_bound
from topoplace.mapping.evaluate import hop_bytes
from topoplace.mapping.onto import load_places, problem_on
from topoplace.mapping.problem import MappingProblem
from topoplace.snapshot.schema import GraphApplication
from topoplace.solving import Options, method_of
from topoplace.types import IntArray

SIDES = {64: 4, 512: 8, 4096: 16, 32768: 32}
METHODS = ("bisection", "search", "scotch")
NEIGHBOURS = 8
MESSAGES = 3  # per task of a graph without locality
FILES = {
    "amg": "maplib/amg/bytes.csv",
    "lulesh": "maplib/lulesh/bytes.csv",
    "minimd": "mpip/minimd.64.bytes.csv",
}
Messages = tuple[IntArray, IntArray, IntArray]
"""Sources, targets and bytes."""


def main(given: Sequence[str] | None = None) -> None:
    """Measure and print."""
    options = parsed(
        __doc__,
        given,
        bounds=False,
        tasks=list(SIDES),
        seconds=[1.0, 10.0, 60.0],
        search=20.0,  # for the mapping beside bounds
        data=Path,
        csv=Path,
        seed=1,
    )
    if not options.bounds:
        instances = [problem.instance for _, problem in cases(options)]
        for limit in options.seconds:
            print(compare(*instances, methods=METHODS, time_limit=limit))
        return
    warm_up = problem_of("points", points(3, np.random.default_rng(0)), 3)
    method_of("mapping", "search").solver(warm_up, Options(time_limit=0.1))
    rows = []
    for name, problem in cases(options):
        rows.append(bounds_of(name, problem, options.search))
        print(rows[-1], file=sys.stderr, flush=True)
    print(table(rows, BOUNDS, 2))
    if options.csv is not None:
        write_rows(options.csv, rows)


def cases(options: argparse.Namespace) -> Iterator[tuple[str, MappingProblem]]:
    """Yield the graphs asked for; bounds end at 4,096 tasks."""
    kinds = (regular, power) if options.bounds else (grid, points)
    for tasks in options.tasks:
        for kind in kinds if tasks <= 4096 or not options.bounds else ():
            messages = kind(SIDES[tasks], np.random.default_rng(options.seed))
            yield kind.__name__, problem_of(kind.__name__, messages, SIDES[tasks])
    if options.bounds and options.data is not None:
        for name, file in FILES.items():
            sizes = np.loadtxt(options.data / file, delimiter=",", dtype=np.int64)
            np.fill_diagonal(sizes, 0)
            yield name, problem_of(name, (*np.nonzero(sizes), sizes[np.nonzero(sizes)]), 4)


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


def regular(side: int, rng: np.random.Generator) -> Messages:
    """Return random rings through all tasks."""
    orders = [rng.permutation(side**3) for _ in range(MESSAGES)]
    sources = np.concatenate(orders)
    targets = np.concatenate([np.roll(order, 1) for order in orders])
    return sources, targets, np.ones_like(sources)


def power(side: int, rng: np.random.Generator) -> Messages:
    """Return random messages of 1 to 99 bytes, the k-th task popular by k^-0.6."""
    tasks = side**3
    share = np.arange(1, tasks + 1) ** -0.6
    sources, targets = rng.choice(tasks, size=(2, MESSAGES * tasks), p=share / share.sum())
    return sources, targets, rng.integers(1, 100, size=MESSAGES * tasks)


def _hops(problem: MappingProblem, value: float) -> float:
    return value / problem.graph.total_bytes


def bounds_of(name: str, problem: MappingProblem, search: float) -> Record:
    """Return the bounds of a problem and a mapping, in hops per byte, and seconds of cuts."""
    row = Record(graph=name, tasks=problem.num_tasks, check=None)
    star = star_bound(problem)
    cuts, row.seconds = timed(partial(cuts_bound, problem))
    if cuts is not None:
        instance = read_instance(problem.instance)
        value, row.check = timed(partial(cuts_value, instance, cuts.certificate))
        assert value == cuts.value
    bounds = {"star": star, "cuts": cuts, "distance_classes": distance_classes_bound(problem)}
    for kind, bound in bounds.items():
        setattr(row, kind, None if bound is None else _hops(problem, bound.value))
    mapped = method_of("mapping", "search").solver(problem, Options(time_limit=search)).solution
    assert mapped is not None
    row.mapping = _hops(problem, hop_bytes(problem, mapped.nodes))
    row.gap_star = None if star is None else 1 - row.star / row.mapping
    row.gap_best = 1 - max(getattr(row, kind) or 0 for kind in bounds) / row.mapping
    return row


def _figure(name: str, digits: int) -> Column:
    def shown(row: Record) -> str | None:
        value = getattr(row, name)
        return None if value is None else f"{value:.{digits}f}"

    return name, shown


BOUNDS: list[Column] = [
    *("graph", "tasks", _figure("star", 4), _figure("cuts", 4), _figure("seconds", 1)),
    *(_figure("check", 1), _figure("distance_classes", 4), _figure("mapping", 4)),
    ("gap_star", lambda row: percent(row.gap_star)),
    ("gap_best", lambda row: percent(row.gap_best)),
]


if __name__ == "__main__":
    main()
