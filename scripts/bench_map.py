"""Measure mappings of graphs onto cubic tori, or with `--bounds` the bounds beside them.

Mappings: bytes-weighted hops after 1, 10 and 60 s, beside Scotch where it is installed, of the
periodic grid of the torus itself (least: 1 hop per byte), and of random points in a cube that talk
to their nearest neighbours. Bounds: of graphs without locality (`regular` is three random rings
through all tasks, `power` random messages between tasks of very different popularity) and, with
`--data`, of the measured applications of 64 tasks in that folder; every bound by cuts is checked.
Tasks are numbered at random, there is one place per task; all kernels are compiled beforehand.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from scipy.spatial import cKDTree

from study_page import line, say, table_head
from topoplace.certify.mapping.graphs import cuts_value
from topoplace.certify.mapping.instance import read_instance
from topoplace.errors import InputError
from topoplace.mapping.bounds.cuts import cuts_bound
from topoplace.mapping.bounds.distance_classes import distance_classes_bound
from topoplace.mapping.bounds.star import star_bound
from topoplace.mapping.evaluate import hop_bytes
from topoplace.mapping.problem import MappingProblem, prepare_mapping
from topoplace.result.mapping import CutsCertificate
from topoplace.snapshot.schema import MAPPING_SCHEMA, GraphApplication, MappingInstance, TorusModel
from topoplace.solving import Bound, Options, method_of
from topoplace.types import IntArray

SIDES = {64: 4, 512: 8, 4096: 16, 32768: 32}
NEIGHBOURS = 8
MESSAGES = 3  # per task of a graph without locality
FILES = {
    "amg": "maplib/amg/bytes.csv",
    "lulesh": "maplib/lulesh/bytes.csv",
    "minimd": "mpip/minimd.64.bytes.csv",
}
BOUNDS_HEAD = ("graph", "tasks", "star", "cuts", "seconds", "check", "distance_classes", "mapping")
BOUNDS_HEAD += ("gap_star", "gap_best")
Messages = tuple[IntArray, IntArray, IntArray]
"""Sources, targets and bytes."""


def main() -> None:
    """Measure and print, row by row."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bounds", action="store_true")
    parser.add_argument("--tasks", type=int, nargs="*", choices=SIDES, default=list(SIDES))
    parser.add_argument("--seconds", type=float, nargs="*", default=[1, 10, 60])
    parser.add_argument("--search", type=float, default=20, help="--bounds: s for the mapping")
    parser.add_argument("--data", type=Path, help="--bounds: folder of measured applications")
    parser.add_argument("--csv", type=Path, help="file for the figures")
    parser.add_argument("--seed", type=int, default=1, help="of the graphs")
    options = parser.parse_args()
    warm_up = problem_of(points(3, np.random.default_rng(0)), 3)
    for name in ("search", "bisection"):
        method_of("mapping", name).solver(warm_up, Options(time_limit=0.1))
    head: list[str] = list(BOUNDS_HEAD)
    if not options.bounds:
        head = ["graph", "tasks", "bisection (s)", *(f"search {s:g} s" for s in options.seconds)]
        head.append("scotch (s)")
    rows = [head]
    say(table_head(head))
    for name, problem in cases(options):
        cells = [name, f"{problem.num_tasks:,}"]
        if options.bounds:
            cells += bounds_of(problem, options.search)
        else:
            cells.append(found(problem, "bisection"))
            cells += [found(problem, "search", seconds) for seconds in options.seconds]
            cells.append(found(problem, "scotch"))
        rows.append(cells)
        say([line(cells)])
    if options.csv is not None:
        with options.csv.open("w", newline="") as stream:
            csv.writer(stream, lineterminator="\n").writerows(rows)


def cases(options: argparse.Namespace) -> Iterator[tuple[str, MappingProblem]]:
    """Yield the graphs asked for; bounds end at 4,096 tasks."""
    kinds = (regular, power) if options.bounds else (grid, points)
    chosen: Iterable[int] = [n for n in options.tasks if n <= 4096 or not options.bounds]
    for tasks in chosen:
        for kind in kinds:
            messages = kind(SIDES[tasks], np.random.default_rng(options.seed))
            yield kind.__name__, problem_of(messages, SIDES[tasks])
    if options.bounds and options.data is not None:
        for name, file in FILES.items():
            sizes = np.loadtxt(options.data / file, delimiter=",", dtype=np.int64)
            np.fill_diagonal(sizes, 0)
            yield name, problem_of((*np.nonzero(sizes), sizes[np.nonzero(sizes)]), 4)


def problem_of(messages: Messages, side: int) -> MappingProblem:
    """Return the problem of a graph on the cubic torus of that side, a place per task."""
    sources, targets, sizes = (part.tolist() for part in messages)
    num_tasks = side**3
    return prepare_mapping(
        MappingInstance(
            schema_version=MAPPING_SCHEMA,
            name="bench",
            machine=TorusModel(name="torus", shape=[side] * 3),
            nodes=f"0-{num_tasks - 1}",
            tasks_per_node=1,
            application=GraphApplication(
                num_tasks=num_tasks, sources=sources, targets=targets, bytes=sizes
            ),
        )
    )


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


def found(problem: MappingProblem, method: str, limit: float | None = None) -> str:
    """Return hops per byte, and the seconds it took if not the limit; a dash if it cannot run."""
    begun = time.perf_counter()
    try:
        mapped = method_of("mapping", method).solver(problem, Options(time_limit=limit)).solution
    except InputError:
        return "-"
    took = time.perf_counter() - begun
    if mapped is None:
        return "-"
    early = limit is None or took < 0.95 * limit
    quality = f"{hop_bytes(problem, mapped.nodes) / problem.graph.total_bytes:.3f}"
    return f"{quality} ({took:.1f})" if early else quality


def bounds_of(problem: MappingProblem, search: float) -> list[str]:
    """Return the bounds of a problem and a mapping, in hops per byte, seconds and percent."""
    total = problem.graph.total_bytes
    star = star_bound(problem)
    begun = time.perf_counter()
    cuts = cuts_bound(problem)
    seconds = time.perf_counter() - begun
    begun = time.perf_counter()
    if cuts is not None:
        assert isinstance(cuts.certificate, CutsCertificate)
        assert cuts_value(read_instance(problem.instance), cuts.certificate) == cuts.value
    check = time.perf_counter() - begun
    classes = distance_classes_bound(problem)
    mapped = method_of("mapping", "search").solver(problem, Options(time_limit=search)).solution
    assert mapped is not None
    value = hop_bytes(problem, mapped.nodes)
    best = max(bound.value for bound in (star, cuts, classes) if bound is not None)

    def hops(bound: Bound | None) -> str:
        return "-" if bound is None else f"{bound.value / total:.4f}"

    return [
        *(hops(star), hops(cuts), f"{seconds:.1f}", f"{check:.1f}", hops(classes)),
        f"{value / total:.4f}",
        "-" if star is None else f"{100 * (value - star.value) / value:.1f} %",
        f"{100 * (value - best) / value:.1f} %",
    ]


if __name__ == "__main__":
    main()
