"""Compare mappings of large irregular graphs onto hierarchies with KaHIP called level by level.

``python scripts/bench_levels.py --seeds 4,5 --limits 10,60`` prints a table, a row for every graph
and hierarchy: the cost of `kaffpa` (ECO; needs ``pip install kahip``), and of the method
`search` after so many seconds, both with the seconds of CPU that they took.
"""

from __future__ import annotations

import argparse
import importlib
import math
import os
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.spatial import Delaunay, cKDTree

from topoplace.machine import LevelMachine
from topoplace.mapping._partitioner import Numbers, Part, leaves_of
from topoplace.mapping.evaluate import hop_bytes
from topoplace.mapping.mapped import mapped_by
from topoplace.mapping.onto import load_places, problem_on
from topoplace.mapping.problem import MappingProblem
from topoplace.snapshot.schema import GraphApplication
from topoplace.solving import Options, method_of

NUM, SLACK = 1 << 15, 1.03
HIERARCHIES = ("4:8:6/1:10:100", "4:18:57/1:1:10")


def geometric(rng: np.random.Generator) -> Numbers:
    """Return the pairs of points in a square that are near (radius of Sanders and Schulz)."""
    radius = 0.55 * math.sqrt(math.log(NUM) / NUM)
    return np.asarray(cKDTree(rng.random((NUM, 2))).query_pairs(radius, output_type="ndarray"))


def delaunay(rng: np.random.Generator) -> Numbers:
    """Return the sides of the triangles of random points."""
    corners = Delaunay(rng.random((NUM, 2))).simplices
    sides = np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [0, 2]]])
    return np.unique(np.sort(sides, axis=1), axis=0)


def power_law(rng: np.random.Generator) -> Numbers:
    """Return a graph of preferential attachment, four pairs for every new task (Barabasi 1999)."""
    pairs, ends, targets = [], list[int](), [0, 1, 2, 3]
    for task in range(4, NUM):
        pairs += [(target, task) for target in targets]
        ends += [*targets, *[task] * 4]
        chosen = set[int]()
        while len(chosen) < 4:
            chosen.add(ends[int(rng.integers(len(ends)))])
        targets = list(chosen)
    return np.array(pairs, dtype=np.int64)


GRAPHS: dict[str, Callable[[np.random.Generator], Numbers]] = {
    "geometric": geometric,
    "Delaunay": delaunay,
    "power law": power_law,
}


class Kaffpa:
    """KaHIP's partitions with the balance that a domain has room for."""

    def __init__(self, seed: int) -> None:
        self._seed, self._library = seed, importlib.import_module("kahip")

    def parts(self, part: Part, rooms: Numbers) -> Numbers:
        """Return the child of every task of a part; it may have more than it has room for."""
        num, ends = len(part.tasks), np.concatenate([part.ends, part.ends[::-1]], axis=1)
        order = np.lexsort(ends[::-1])
        first = np.searchsorted(ends[0][order], np.arange(num + 1)).tolist()
        weight, other = np.tile(part.weight, 2)[order].tolist(), ends[1][order].tolist()
        spare = max(0.0, len(rooms) * float(rooms.min()) / num - 1)
        own = [1] * num, first, weight, other, len(rooms), spare, True, self._seed
        return np.array(self._library.kaffpa(*own, self._library.ECO)[1], dtype=np.int64)


def by_kaffpa(problem: MappingProblem, seed: int) -> tuple[int, int]:
    """Return the cost of `kaffpa` by levels, and how many tasks its fullest leaf has."""
    machine, graph = problem.machine, problem.graph
    assert isinstance(machine, LevelMachine)
    given: dict[str, Any] = {"domains": machine.domain_of, "room": problem.capacity}
    given |= {"ends": np.stack([graph.sources, graph.targets]), "weight": graph.bytes}
    leaf = leaves_of(given | {"num": problem.num_tasks}, Kaffpa(seed))
    return hop_bytes(problem, leaf), int(np.bincount(leaf).max())


def cpu() -> float:
    """Return the seconds of CPU of this process and those that it started."""
    return sum(os.times()[:4])


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="4")
    parser.add_argument("--limits", default="10,60")
    asked = parser.parse_args()
    for seed in map(int, asked.seeds.split(",")):
        for name, make in GRAPHS.items():
            sources, targets = make(np.random.default_rng(seed)).T.tolist()
            sizes = [1] * len(sources)
            graph = GraphApplication(num_tasks=NUM, sources=sources, targets=targets, bytes=sizes)
            for text in HIERARCHIES:
                places = load_places(f"sharedmap:{text}")
                most = math.floor(SLACK * math.ceil(NUM / len(places.nodes)))
                problem = problem_on(places, graph, most)
                began = cpu()
                cost, fullest = by_kaffpa(problem, seed)
                cells = [f"{cost:,} ({cpu() - began:.0f} s, {fullest} of {most})"]
                for limit in map(float, asked.limits.split(",")):
                    began = cpu()
                    options = Options(time_limit=limit, seed=seed)
                    nodes = mapped_by(method_of("mapping", "search").solver, problem, options)
                    cells.append(f"{hop_bytes(problem, nodes):,} ({cpu() - began:.0f} s)")
                print("|", " | ".join([name, str(seed), text, *cells]), "|", flush=True)


if __name__ == "__main__":
    main()
