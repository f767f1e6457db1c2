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
and its partitions cost 10 % more."""

NEAR = 0.1
"""That tenth."""

FEWEST_TASKS = 256
"""Smaller problems are searched as well without."""

PART, LOOK_SECONDS = 0.7, 0.02
"""Part of the time after which low levels are filled in order, and time between two looks."""


MOST_TARGETS = 64
"""Routers up to which the library improves what is on them; on 512 it did not end in 100 s."""

FULL, NEARLY_ALL = 0.97, 0.9
"""Share of the places of nodes without levels that are filled if there are enough of these, and
share of nodes from which on all are used: parts that are not full are cut better."""

MOST, LONGEST, FINER = 1 << 30, 64, 8
"""The library's numbers have 32 bits: the most that loads, and bytes x hops, may add up to, the
most hops, and how many times a hop is longer than none, where some routers are 0 hops apart."""

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
    problem: MappingProblem, seed: int, stop: float, *, threads: int = 1
) -> IntArray | None:
    """Return the router of every task by partitions; None if time is too short.

    Routers may get more objects of other loads than 1 than they have room for. With one thread, the
    seed decides what is found unless time is over.

    The clock must not show `stop` before there was time for one level. Trees and hierarchies are
    divided level by level, the top first: each domain among those below it, with their room as
    limits, so that the bytes between them are few. Elsewhere there are as many parts as nodes are
    needed, and a search puts these parts on nodes. If the routers are few, the library then
    improves what is on each, counting hops.
    """
    machine, room, began = problem.machine, problem.room, clock.now()
    if machine.levels is not None:
        domains = machine.levels.domain_of
        return _divided(problem, seed, stop, threads, domains=domains, room=room)
    routers = _put(problem, seed, stop, threads)
    used, now = np.flatnonzero(room), clock.now()
    served = 1 < len(used) <= MOST_TARGETS and 2 * now - began <= stop  # it takes about as long
    if routers is None or not served:
        return routers
    given = {"at": np.searchsorted(used, routers), "room": room[used]}
    given["lengths"] = _lengths(machine.hops(used[:, None], used[None, :]))
    better = _divided(problem, seed, stop, threads, **given)
    return routers if better is None else used[better]


def _put(problem: MappingProblem, seed: int, stop: float, threads: int) -> IntArray | None:
    """Return the router of every task: as many parts as nodes are needed, put on nodes."""
    needed, num = math.ceil(problem.total_load / (FULL * problem.cap)), len(problem.nodes)
    parts = np.arange(needed if needed < NEARLY_ALL * num else num)
    left = stop - clock.now()
    placing = min(PLACING * left, PLACING_SECONDS * len(parts))
    given = {"domains": np.stack([parts, np.zeros_like(parts)])}
    given["room"] = np.full(len(parts), problem.cap)
    at = _divided(problem, seed, stop - placing, threads, **given)
    if at is None:
        return None
    limit = None if left > clock.ENDLESS else max(1e-3, min(placing, stop - clock.now()))
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
    once = rows.owner < rows.other
    preset = _preset(problem, stop - clock.now())
    if preset is None:
        return None
    with tempfile.TemporaryDirectory() as path:
        folder = Path(path)
        longest = int(given["lengths"].max()) if "lengths" in given else 1
        unit = _unit(problem.loads, MOST)
        every: dict[str, Any] = {
            "ends": np.stack([rows.owner[once], rows.other[once]]),
            "weight": -(-rows.weight[once] // _unit(rows.weight[once], MOST // longest)),
            "size": -(-problem.loads // unit),
            "seed": seed,
            "seconds": (1.0 if "at" in given else PART) * (stop - clock.now()),
            "threads": threads,
            "preset": preset,
        }
        np.savez(folder / "problem.npz", **(every | given | {"room": given["room"] // unit}))
        command = [sys.executable, "-P", _partitioner.__file__, path]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as own:
            while own.poll() is None:
                if clock.now() >= stop:
                    own.kill()
                time.sleep(LOOK_SECONDS)
        leaves = folder / "leaves.npy"
        return np.load(leaves) if leaves.exists() else None


def _unit(numbers: IntArray, most: int) -> int:
    """Return in which unit numbers add up to no more than the most, about."""
    return max(1, -(-int(numbers.sum()) // most))


def _lengths(hops: IntArray) -> IntArray:
    """Return hops as the library may have them: small, and none 0 but from a router to itself."""
    apart = ~np.eye(len(hops), dtype=bool)
    finer = 1 if hops[apart].all() else FINER
    return np.maximum(-(-hops // _unit(hops.max(keepdims=True), LONGEST)) * finer, 1) * apart


def _preset(problem: MappingProblem, left: float) -> str | None:
    """Return the best preset for which there is time.

    On trees and hierarchies what is left of the time bounds the work level by level.
    """
    rows = problem.guide
    num_pairs = int((rows.owner < rows.other).sum())
    size = (problem.num_tasks + num_pairs) * math.log2(max(2, len(problem.nodes)))
    if problem.machine.levels is not None:
        return BEST if NEAR * PRESETS[BEST] * size <= left else None
    return next((name for name, seconds in PRESETS.items() if seconds * size <= left), None)
