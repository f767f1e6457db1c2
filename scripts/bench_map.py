"""Measure the quality of mappings after 1, 10 and 60 s, beside Scotch where it is installed.

Two kinds of task graph, both numbered at random, go onto a periodic torus with one place per task:
the periodic grid of the torus itself (least: 1 hop per byte), and random points in a cube that talk
to their nearest neighbours. Printed are bytes-weighted hops. All kernels are compiled beforehand.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from scipy.spatial import cKDTree

from topoplace.errors import InputError
from topoplace.mapping.evaluate import hop_bytes
from topoplace.mapping.mapped import mapped_by
from topoplace.mapping.problem import MappingProblem, prepare_mapping
from topoplace.snapshot.schema import MAPPING_SCHEMA, GraphApplication, MappingInstance, TorusModel
from topoplace.solving import Options, method_of

SHAPES = {64: (4, 4, 4), 512: (8, 8, 8), 4096: (16, 16, 16), 32768: (32, 32, 32)}
NEIGHBOURS = 8


def main() -> None:
    """Measure and print, row by row."""
    options = _options()
    for name in ("search", "bisection"):
        method_of("mapping", name).solver(_problem("points", (3, 3, 3), 0), Options(time_limit=0.1))
    head = ["graph", "tasks", "bisection (s)", *(f"search {s:g} s" for s in options.seconds)]
    print(_row([*head, "scotch (s)"]))
    print(_row(["---"] * (len(head) + 1)))
    for kind in options.kinds:
        for tasks in options.tasks:
            problem = _problem(kind, SHAPES[tasks], options.seed)
            cells = [kind, f"{tasks:,}", _timed("bisection", problem, None)]
            cells += [_searched(problem, seconds) for seconds in options.seconds]
            print(_row([*cells, _timed("scotch", problem, None)]), flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", type=int, nargs="*", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--seconds", type=float, nargs="*", default=[1, 10, 60])
    parser.add_argument("--kinds", nargs="*", choices=KINDS, default=list(KINDS))
    parser.add_argument("--seed", type=int, default=1, help="of the graphs")
    return parser.parse_args()


def _problem(kind: str, shape: tuple[int, ...], seed: int) -> MappingProblem:
    """Return a graph with tasks numbered at random, on the torus of that shape."""
    rng = np.random.default_rng(seed)
    num_tasks = int(np.prod(shape))
    sources, targets, sizes = KINDS[kind](shape, rng)
    label = rng.permutation(num_tasks)
    return prepare_mapping(
        MappingInstance(
            schema_version=MAPPING_SCHEMA,
            name=kind,
            machine=TorusModel(name="torus", shape=list(shape)),
            nodes=f"0-{num_tasks - 1}",
            tasks_per_node=1,
            application=GraphApplication(
                num_tasks=num_tasks,
                sources=label[sources].tolist(),
                targets=label[targets].tolist(),
                bytes=sizes.tolist(),
            ),
        )
    )


def _grid(
    shape: tuple[int, ...], rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the messages of the periodic grid, one byte each."""
    del rng
    tasks = np.arange(np.prod(shape)).reshape(shape)
    steps = [(step, d) for d in range(len(shape)) for step in (1, -1)]
    targets = np.concatenate([np.roll(tasks, step, axis=d).ravel() for step, d in steps])
    sources = np.tile(tasks.ravel(), len(steps))
    return sources, targets, np.ones_like(sources)


def _points(
    shape: tuple[int, ...], rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return messages of 1 to 99 bytes from random points to their nearest neighbours."""
    points = rng.random((int(np.prod(shape)), len(shape)))
    _, nearest = cKDTree(points).query(points, NEIGHBOURS + 1)
    sources = np.repeat(np.arange(len(points)), NEIGHBOURS)
    return sources, nearest[:, 1:].ravel(), rng.integers(1, 100, len(sources))


KINDS = {"grid": _grid, "points": _points}


def _searched(problem: MappingProblem, seconds: float) -> str:
    """Return the quality the search reaches in that time, and the time if it ends earlier."""
    begun = time.perf_counter()
    nodes = mapped_by(method_of("mapping", "search").solver, problem, Options(time_limit=seconds))
    took = time.perf_counter() - begun
    early = f" ({took:.1f})" if took < 0.95 * seconds else ""
    return f"{_quality(problem, nodes)}{early}"


def _timed(name: str, problem: MappingProblem, seconds: float | None) -> str:
    """Return the quality of a method and the seconds it takes; a dash if it cannot be run."""
    begun = time.perf_counter()
    try:
        mapped = method_of("mapping", name).solver(problem, Options(time_limit=seconds)).solution
        nodes = None if mapped is None else mapped.nodes
    except InputError:
        return "-"
    return f"{_quality(problem, nodes)} ({time.perf_counter() - begun:.1f})"


def _quality(problem: MappingProblem, nodes: np.ndarray | None) -> str:
    if nodes is None:
        return "-"
    return f"{hop_bytes(problem, nodes) / problem.graph.total_bytes:.3f}"


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    main()
