"""Multilevel partitioning by Mt-KaHyPar (Gottesbüren and others 2024)."""

from __future__ import annotations

import importlib.util
import math
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from topoplace import clock
from topoplace.mapping import _partitioner
from topoplace.mapping.graph import rows_of
from topoplace.mapping.mapped import mapped_by
from topoplace.mapping.problem import MappingProblem, graph_of
from topoplace.snapshot.schema import GraphApplication
from topoplace.solving import Options, method_of
from topoplace.types import IntArray

BEST = "QUALITY"
PRESETS = {BEST: 3.5e-6, "DEFAULT": 8e-7}
"""The library's presets, and the seconds that each takes per task and pair, and for each doubling
of the number of parts, on graphs without neighbourhoods (applications like OpenAtom of other sizes
than the shipped ones); others take a tenth. DEFAULT takes as long where domains have few parts,
and its partitions cost 10 % more; what it puts on routers at once it improves in the time left,
where annealing after it has too little."""

NEAR, ONTO = 0.1, 3.0
"""That tenth, and how many times as long parts take that are put on routers at once."""

FEWEST_TASKS = 256
"""Smaller problems are searched as well without."""

PART, LOOK_SECONDS = 0.7, 0.02
"""Part of the time after which low levels are filled in order, and time between two looks."""


MOST_TARGETS = 64
"""Routers up to which the library maps onto a torus; of 512 it did not end in 300 s."""

FULL, NEARLY_ALL = 0.97, 0.9
"""Share of the places of nodes without levels that are filled if there are enough of these, and
share of nodes from which on all are used: parts that are not full are cut better."""

PLACING, PLACING_SECONDS = 0.4, 0.02
"""Most time for putting parts on nodes: a share, and for each part."""


ONE_EACH: dict[str, Any] = {"cap": None, "pooled": False, "fixed": [], "tasks_per_node": 1}
"""What an instance has that puts one part on a node."""


def is_available(problem: MappingProblem) -> bool:
    """Return whether `multilevel` serves a problem, and the library is installed."""
    several = problem.machine.levels is not None or problem.tasks_per_node > 1
    found = several and problem.num_tasks >= FEWEST_TASKS
    return found and importlib.util.find_spec("mtkahypar") is not None


def multilevel(
    problem: MappingProblem, seed: int, stop: float, *, onto: bool = False, threads: int = 1
) -> IntArray | None:
    """Return the router of every task by partitions; None if time is too short.

    Routers may get more objects of other loads than 1 than they have room for. With one thread, the
    seed decides what is found unless time is over.

    The clock must not show `stop` before there was time for one level. Trees and hierarchies are
    divided level by level, the top first: each domain among those below it, with their room as
    limits, so that the bytes between them are few. Elsewhere there are as many parts as nodes are
    needed, and a search puts these parts on nodes; with `onto`, the library does both at once if
    it is a torus or mesh of few nodes, one on each router.
    """
    machine, room = problem.machine, problem.room
    if machine.levels is not None:
        domains = machine.levels.domain_of
        return _divided(problem, seed, stop, threads, domains=domains, room=room)
    torus = machine.torus
    if onto and torus is not None and len(problem.nodes) == machine.num_nodes <= MOST_TARGETS:
        routers = np.arange(machine.num_routers)
        hops = machine.hops(routers[:, None], routers[None, :])
        return _divided(problem, seed, stop, threads, hops=hops, room=room)
    needed, num = math.ceil(problem.total_load / (FULL * problem.cap)), len(problem.nodes)
    parts = np.arange(needed if needed < NEARLY_ALL * num else num)
    domains = np.stack([parts, np.zeros_like(parts)])
    room = np.full(len(parts), problem.cap)
    left = stop - clock.now()
    placing = min(PLACING * left, PLACING_SECONDS * len(parts))
    until = stop - placing
    at = _divided(problem, seed, until, threads, domains=domains, room=room)
    if at is None:
        return None
    limit = None if left > clock.ENDLESS else min(placing, max(1e-3, stop - clock.now()))
    search = method_of("mapping", "search").solver
    ones, apart = np.ones_like(parts), _between(problem, at, len(parts))
    one_each = problem.instance.model_copy(update=ONE_EACH | {"application": apart})
    own: dict[str, Any] = {"graph": graph_of(apart), "grid": None, "loads": ones, "home": -ones}
    alone = replace(problem, instance=one_each, tasks_per_node=1, **own)
    nodes = mapped_by(search, alone, Options(seed=seed, time_limit=limit))
    return problem.routers_of(nodes)[at]


def _between(problem: MappingProblem, at: IntArray, num: int) -> GraphApplication:
    """Return the bytes between parts as a graph, given the part of every task."""
    graph = problem.guide
    sources, targets = at[graph.owner], at[graph.other]
    once = sources < targets
    rows = rows_of(num, sources[once], targets[once], graph.weight[once])
    ends = {"sources": rows.owner.tolist(), "targets": rows.other.tolist()}
    return GraphApplication(num_tasks=num, bytes=rows.weight.tolist(), **ends)


def _divided(
    problem: MappingProblem, seed: int, stop: float, threads: int, **given: IntArray
) -> IntArray | None:
    """Return the leaf of every task by a process of its own, given what to divide them among."""
    rows = problem.guide
    once, onto = rows.owner < rows.other, "hops" in given
    preset = _preset(problem, stop - clock.now(), onto=onto)
    if preset is None:
        return None
    with tempfile.TemporaryDirectory() as path:
        folder = Path(path)
        every: dict[str, Any] = {
            "ends": np.stack([rows.owner[once], rows.other[once]]),
            "weight": rows.weight[once],
            "size": problem.loads,
            "seed": seed,
            "seconds": (PART if not onto else preset != BEST) * (stop - clock.now()),
            "threads": threads,
            "preset": preset,
        }
        np.savez(folder / "problem.npz", **(every | given))
        command = [sys.executable, "-P", _partitioner.__file__, path]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as own:
            while own.poll() is None:
                if clock.now() >= stop:
                    own.kill()
                time.sleep(LOOK_SECONDS)
        leaves = folder / "leaves.npy"
        return np.load(leaves) if leaves.exists() else None


def _preset(problem: MappingProblem, left: float, *, onto: bool) -> str | None:
    """Return the best preset for which there is time.

    On trees and hierarchies what is left of the time bounds the work level by level.
    """
    size = _size(problem, onto=onto)
    if problem.machine.levels is not None:
        return BEST if NEAR * PRESETS[BEST] * size <= left else None
    return next((name for name, seconds in PRESETS.items() if seconds * size <= left), None)


def _size(problem: MappingProblem, *, onto: bool) -> float:
    """Return what the time of a partition grows with."""
    rows = problem.guide
    num_pairs = int((rows.owner < rows.other).sum())
    nodes = max(2, len(problem.nodes))
    return (problem.num_tasks + num_pairs) * math.log2(nodes) * (ONTO if onto else 1.0)
