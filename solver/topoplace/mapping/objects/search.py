"""Our methods for objects: halving machine and objects together, and annealing under the caps."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np

from topoplace import clock
from topoplace.kernels import num_cores
from topoplace.mapping.halving import SECONDS, halve
from topoplace.mapping.local_search import (
    COLD,
    HOT,
    Annealing,
    arrays_of,
    branches_of,
    homes_of,
    state_arrays,
)
from topoplace.mapping.mapped import Keeper, cheapest
from topoplace.mapping.multilevel import is_available, multilevel
from topoplace.mapping.objects._kernels import move_off_fullest
from topoplace.mapping.objects.settled import settled
from topoplace.mapping.problem import MappingProblem
from topoplace.solving import Options, Outcome
from topoplace.types import IntArray

# ---- Constructions -------------------------------------------------------------------------------


def consecutive(problem: MappingProblem, stop: float = math.inf) -> IntArray | None:
    """Return the cells of objects in their order, each node with the average load."""
    cells, loads = problem.pools, problem.loads
    middle = np.cumsum(loads) - loads / 2
    ends = np.cumsum(cells.width) * (loads.sum() / cells.width.sum())
    at = np.minimum(np.searchsorted(ends, middle), len(ends) - 1)
    return settled(problem, cells.router[at], np.arange(len(loads)), stop)


def halved(problem: MappingProblem, seed: int, stop: float = math.inf) -> IntArray | None:
    """Return the cells of objects by recursive bisection (as `topoplace.mapping.halving`)."""
    usable = (np.diff(problem.pools.first) > 0).astype(np.int64)
    room = np.maximum(problem.room, usable)  # no load at all needs no room
    size, routers = np.maximum(problem.loads, 1), np.flatnonzero(usable)
    found = halve(problem.machine, problem.guide, size, room, routers, seed, stop)
    return settled(problem, found, stop=stop)


# ---- Annealing -----------------------------------------------------------------------------------

MOVES_PER_OBJECT, FEWEST_MOVES, MOST_MOVES = 1_000, 200_000, 40_000_000
"""Moves to try without a time limit."""

COOLINGS = ((0.1, 0.3), (0.7, 1.0))
"""Coolings one after the other: the fraction of `HOT` at which each begins, and the share of the
work at which it ends. A mild one keeps the good parts of a construction, a hot one destroys them.
They were set on other sizes and seeds than those reported (docs/studies/objects.md,
"Temperature")."""

FEW = 200
"""With fewer moves per object there is only the first cooling; set on the same cases."""

PARTITIONS, PARTITIONS_SHARE, FEWEST_SECONDS = 2, 0.9, 1.5
"""Most partitions; the share of the time left for each; and seconds below which there is none, as a
process takes one until it has loaded the library."""

DOWNHILL_SHARE, DOWNHILL_MOST, WORTH = 0.1, 0.7, 1e-3
"""Share of the work that goes downhill first, from the construction; and again, up to the most, if
it was worth that part of the cost."""

TRIES = 1 << 10
"""Moves off the fullest node to try between two looks."""

PAPERS = ("prisms", "bricks")
"""The mappings of the papers, each for applications of its kind."""


def search_loaded(problem: MappingProblem, options: Options) -> Outcome:
    """Anneal objects from the best construction, the papers' among them.

    Never worse than `options.start` or a construction. Without a time limit the work is fixed and
    the seed decides the outcome.
    """
    keeper = Keeper(problem, options, options.start)
    keeper.offer_cells(consecutive(problem, keeper.deadline), "in order")
    size = problem.num_tasks + problem.graph.num_messages
    if not keeper.done:
        with ThreadPoolExecutor(1) as pool:  # partitions are made by processes of their own
            every = pool.submit(partitions, keeper)
            left = None if options.time_limit is None else max(0.0, keeper.left)
            paper = cheapest(problem, Options(left), PAPERS)
            if paper is not None and paper.solution is not None:
                keeper.offer_nodes(paper.solution.nodes, "the paper's way")
            found = [cells for cells in every.result() if cells is not None]
        for cells in found:
            keeper.offer_cells(cells, "partitions")
        if not found and SECONDS * math.log2(problem.num_tasks + 1) * size < keeper.left:
            keeper.offer_cells(halved(problem, options.seed, keeper.deadline), "bisection")
    built = keeper.source
    if keeper.worth is None:
        return keeper.outcome
    if not problem.fixed.all():
        anneal_gently(keeper)
    return replace(keeper.outcome, notes=(f"annealed from the mapping by {built}",))


def partitions(keeper: Keeper) -> list[IntArray | None]:
    """Return the cells of multilevel partitions, as many as there is time for.

    There is none where the library does not serve, or time is too short.
    """
    problem, found, took = keeper.problem, list[IntArray | None](), FEWEST_SECONDS
    if not is_available(problem):
        return found
    threads = 1 if keeper.options.time_limit is None else num_cores()
    while len(found) < PARTITIONS and keeper.left * PARTITIONS_SHARE > took:
        until = clock.now() + PARTITIONS_SHARE * keeper.left
        began = clock.now()
        routers = multilevel(problem, keeper.options.seed + len(found), until, threads=threads)
        if routers is None:
            break
        found.append(settled(problem, routers, stop=keeper.deadline))
        took = clock.now() - began
    return found


def evened(problem: MappingProblem, nodes: IntArray, stop: float) -> IntArray:
    """Return a mapping of no more hop-bytes with loads evened out, until the clock shows `stop`."""
    state = state_arrays(problem, problem.pools_of(nodes))
    sent = arrays_of(problem), problem.graph.exchanged, branches_of(problem)
    own = problem.pools, problem.loads, homes_of(problem), state, np.zeros(2, dtype=np.int64), TRIES
    while clock.now() < stop and move_off_fullest(*sent, *own):
        pass
    return problem.nodes_of(state.cell.astype(np.int64))


def anneal_gently(keeper: Keeper, annealing: type[Annealing] = Annealing) -> None:
    """Go downhill, and cool down as often as there is work for, from the mapping that is kept."""
    num = keeper.problem.num_tasks
    num_moves = min(max(FEWEST_MOVES, MOVES_PER_OBJECT * num), MOST_MOVES)
    search = annealing(keeper, keeper.problem, num_moves)
    unit = search.typical_change()
    if unit > 0 and not keeper.done:
        before = math.inf
        while search.spent() < DOWNHILL_MOST and search.cost < (1 - WORTH) * before:
            before = search.cost
            search.cool(0.0, 0.0, search.spent() + DOWNHILL_SHARE)
        expected = search.tried / max(search.spent(), 1e-9) / num
        for heat, until in COOLINGS if expected >= FEW else ((COOLINGS[0][0], 1.0),):
            search.cool(heat * HOT * unit, min(COLD * unit, heat * HOT * unit / 4), until)
    search.offer()
