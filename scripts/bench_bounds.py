"""Measure the bounds of mapping any graph beside the best mapping that a search finds.

Graphs without locality onto a cubic torus with one place per task: `regular` is three random rings
through all tasks, `power` random messages between tasks of very different popularity. With `--data`
also the measured applications of 64 tasks in that folder. Bounds are in hops per byte; every bound
by cuts is checked, and the seconds of that are printed.
"""

from __future__ import annotations

import argparse
import csv
import time
from pathlib import Path

import numpy as np

from topoplace.certify.mapping.cuts import cuts_value
from topoplace.certify.mapping.instance import read_instance
from topoplace.mapping.bounds.cuts import cuts_bound
from topoplace.mapping.bounds.distance_classes import distance_classes_bound
from topoplace.mapping.bounds.star import star_bound
from topoplace.mapping.evaluate import hop_bytes
from topoplace.mapping.mapped import mapped_by
from topoplace.mapping.problem import MappingProblem, prepare_mapping
from topoplace.result.mapping import CutsCertificate
from topoplace.snapshot.schema import MAPPING_SCHEMA, GraphApplication, MappingInstance, TorusModel
from topoplace.solving import Bound, Options, method_of

SIDES = {64: 4, 512: 8, 4096: 16}
FILES = {
    "amg": "maplib/amg/bytes.csv",
    "lulesh": "maplib/lulesh/bytes.csv",
    "minimd": "mpip/minimd.64.bytes.csv",
}
MESSAGES = 3
"""Per task."""

FIELDS = [
    "graph",
    "tasks",
    "star",
    "cuts",
    "seconds",
    "check",
    "distance_classes",
    "mapping",
    "gap_star",
    "gap_best",
]


def main() -> None:
    """Measure and print, row by row."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", type=int, nargs="*", choices=SIDES, default=list(SIDES))
    parser.add_argument("--search", type=float, default=20, help="seconds for the mapping")
    parser.add_argument("--data", type=Path, help="folder of the measured applications")
    parser.add_argument("--csv", type=Path, help="file for the figures")
    parser.add_argument("--seed", type=int, default=1, help="of the graphs")
    options = parser.parse_args()
    cases = [
        (kind, problem_of(build(tasks, np.random.default_rng(options.seed)), SIDES[tasks]))
        for tasks in options.tasks
        for kind, build in {"regular": regular, "power": power}.items()
    ]
    if options.data is not None:
        cases += [
            (name, problem_of(measured(options.data / file), 4)) for name, file in FILES.items()
        ]
    method_of("mapping", "search").solver(cases[0][1], Options(time_limit=0.1))  # compiles
    rows = []
    print("| " + " | ".join(FIELDS) + " |")
    print("|" + " --- |" * len(FIELDS))
    for name, problem in cases:
        rows.append(row(name, problem, options.search))
        print("| " + " | ".join(rows[-1]) + " |", flush=True)
    if options.csv is not None:
        with options.csv.open("w", newline="") as stream:
            csv.writer(stream, lineterminator="\n").writerows([FIELDS, *rows])


def row(name: str, problem: MappingProblem, search: float) -> list[str]:
    """Return the figures of one problem, in hops per byte, seconds and percent."""
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
    nodes = mapped_by(method_of("mapping", "search").solver, problem, Options(time_limit=search))
    value = hop_bytes(problem, nodes)
    every = [bound.value for bound in (star, cuts, classes) if bound is not None]

    def hops(bound: Bound | None) -> str:
        return "-" if bound is None else f"{bound.value / total:.4f}"

    return [
        name,
        f"{problem.num_tasks:,}",
        hops(star),
        hops(cuts),
        f"{seconds:.1f}",
        f"{check:.1f}",
        hops(classes),
        f"{value / total:.4f}",
        "-" if star is None else f"{100 * (value - star.value) / value:.1f} %",
        f"{100 * (value - max(every)) / value:.1f} %",
    ]


def regular(tasks: int, rng: np.random.Generator) -> GraphApplication:
    """Return random rings through all tasks."""
    orders = [rng.permutation(tasks) for _ in range(MESSAGES)]
    ends = np.concatenate(orders), np.concatenate([np.roll(order, 1) for order in orders])
    return _graph(tasks, *ends, np.ones(MESSAGES * tasks, dtype=np.int64))


def power(tasks: int, rng: np.random.Generator) -> GraphApplication:
    """Return random messages of 1 to 99 bytes, the k-th task popular by k^-0.6."""
    share = np.arange(1, tasks + 1) ** -0.6
    sources, targets = rng.choice(tasks, size=(2, MESSAGES * tasks), p=share / share.sum())
    return _graph(tasks, sources, targets, rng.integers(1, 100, size=MESSAGES * tasks))


def measured(path: Path) -> GraphApplication:
    """Return the messages of a square matrix of bytes."""
    sizes = np.loadtxt(path, delimiter=",", dtype=np.int64)
    np.fill_diagonal(sizes, 0)
    sources, targets = np.nonzero(sizes)
    return _graph(len(sizes), sources, targets, sizes[sources, targets])


def _graph(
    tasks: int, sources: np.ndarray, targets: np.ndarray, sizes: np.ndarray
) -> GraphApplication:
    return GraphApplication(
        num_tasks=tasks,
        sources=sources.tolist(),
        targets=targets.tolist(),
        bytes=sizes.tolist(),
    )


def problem_of(application: GraphApplication, side: int) -> MappingProblem:
    """Return the problem of a graph on the cubic torus of that side."""
    return prepare_mapping(
        MappingInstance(
            schema_version=MAPPING_SCHEMA,
            name="bounds",
            machine=TorusModel(name="torus", shape=[side] * 3),
            nodes=f"0-{side**3 - 1}",
            tasks_per_node=1,
            application=application,
        )
    )


if __name__ == "__main__":
    main()
