"""Our methods for objects: halving machine and objects together, and annealing under the caps."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from topoplace import clock
from topoplace.mapping.evaluate import worth_of
from topoplace.mapping.halving import halve
from topoplace.mapping.local_search import (
    COLD,
    COOLING_SHARE,
    HOT,
    WANDER,
    random_state,
)
from topoplace.mapping.mapped import Keeper, cheapest
from topoplace.mapping.objects._kernels import anneal_objects, members, move_off_fullest
from topoplace.mapping.objects.settled import (
    arrays_of,
    branches_of,
    homes_of,
    settled,
)
from topoplace.mapping.problem import MappingProblem
from topoplace.solving import Options, Outcome
from topoplace.types import IntArray

# ---- Constructions -------------------------------------------------------------------------------


def consecutive(problem: MappingProblem, stop: float = math.inf) -> IntArray | None:
    """Return the cells of objects in their order, each node with the average load."""
    cells, loads = problem.cells, problem.loads
    middle = np.cumsum(loads) - loads / 2
    ends = np.cumsum(cells.width) * (loads.sum() / cells.width.sum())
    at = np.minimum(np.searchsorted(ends, middle), len(ends) - 1)
    return settled(problem, cells.router[at], np.arange(len(loads)), stop)


def halved(problem: MappingProblem, seed: int, stop: float = math.inf) -> IntArray | None:
    """Return the cells of objects by recursive bisection (as `topoplace.mapping.halving`)."""
    usable = (np.diff(problem.cells.first) > 0).astype(np.int64)
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

DOWNHILL_SHARE = 0.1
"""Share of the work that goes downhill first, from the construction."""

CHUNK, CHUNK_SECONDS = 1 << 14, 0.1
"""Most moves between two looks at the clock, and the most time for them: else half as many."""

FIRST_CHUNK = 1 << 8
"""Moves before the first look where there is a time limit; twice as many after a quick look."""

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
    began = clock.now()
    if not keeper.done:
        keeper.offer_cells(halved(problem, options.seed, keeper.deadline), "bisection")
    if clock.now() - began < keeper.left and not keeper.done:  # they take about as long
        left = None if options.time_limit is None else max(0.0, keeper.left)
        paper = cheapest(problem, Options(left), PAPERS)
        if paper is not None and paper.solution is not None:
            keeper.offer_nodes(paper.solution.nodes, "the paper's way")
    built = keeper.source
    if keeper.worth is None:
        return keeper.outcome
    if (problem.home < 0).any():
        Annealing(keeper).run()
    return replace(keeper.outcome, notes=(f"annealed from the mapping by {built}",))


def evened(problem: MappingProblem, nodes: IntArray, stop: float) -> IntArray:
    """Return a mapping of no more hop-bytes with loads evened out, until the clock shows `stop`."""
    cells, at = problem.cells, np.array([-1, 0])
    machine, trees, state = arrays_of(problem), branches_of(problem), state_of(problem, nodes)
    sent = machine, problem.graph.exchanged, trees
    own = cells.router, cells.width, problem.loads, homes_of(problem), state, at, TRIES
    while clock.now() < stop and move_off_fullest(*sent, *own):
        pass
    return problem.nodes_of(state[0])


def state_of(problem: MappingProblem, nodes: IntArray) -> tuple[IntArray, ...]:
    """Return a mapping as kernels change it: cells, routers, loads of cells, lists of objects."""
    cells = problem.cells_of(nodes)
    filled = problem.filled(cells)
    return (cells, problem.cells.router[cells], filled, *members(cells, len(filled)))


class Annealing:
    """A changing mapping: the arrays that kernels change, and the share of the work done."""

    def __init__(self, keeper: Keeper) -> None:
        self.keeper, problem = keeper, keeper.problem
        self.problem, self.guest, self.guide = problem, problem.graph.exchanged, problem.guide
        self.trees, self.movable = branches_of(problem), np.flatnonzero(problem.home < 0)
        self.machine, self.home = arrays_of(problem), homes_of(problem)
        self.random, self.tried = random_state(keeper.options.seed), 0
        per_object = MOVES_PER_OBJECT * problem.num_tasks
        self.num_moves = min(max(FEWEST_MOVES, per_object), MOST_MOVES)
        self.began = clock.now()
        limited = keeper.options.time_limit is not None
        self.limit = max(keeper.left, 1e-3) if limited else None
        self.chunk = FIRST_CHUNK if limited else max(1, min(CHUNK, self.num_moves // 200))
        self.take(keeper.nodes)

    def take(self, nodes: IntArray) -> None:
        """Go on from a mapping."""
        self.state = state_of(self.problem, nodes)
        self.cost = worth_of(self.problem, nodes)[0]

    def spent(self) -> float:
        """Return the share of the time, or of the moves, that is used up."""
        if self.limit is not None or clock.is_stopped():
            return (clock.now() - self.began) / (self.limit or 1e-3)
        return self.tried / self.num_moves

    def run(self) -> None:
        """Go downhill, and cool down as often as there is work for."""
        unit = self.typical_change()
        if unit > 0 and not self.keeper.done:
            while not self.keeper.done and self.spent() < DOWNHILL_SHARE:
                self.step(0.0)
            expected = self.tried / max(self.spent(), 1e-9) / self.problem.num_tasks
            coolings = COOLINGS if expected >= FEW else ((COOLINGS[0][0], 1.0),)
            for heat, until in coolings:
                self.cool(heat * HOT * unit, min(COLD * unit, heat * HOT * unit / 4), until)

    def cool(self, hot: float, cold: float, until: float) -> None:
        """Cool down from one temperature to another, and go downhill up to a share of the work."""
        began = self.spent()
        while not self.keeper.done and (spent := self.spent()) < until:
            share = (spent - began) / (until - began) / COOLING_SHARE
            self.step(hot * (cold / hot) ** share if share < 1 else 0.0)

    def typical_change(self) -> float:
        """Return how much one step of an object changes hop-bytes, up to a factor."""
        squares = np.bincount(self.guide.owner, weights=self.guide.weight.astype(float) ** 2)
        return float(np.sqrt(squares[squares > 0]).mean()) if squares.any() else 0.0

    def step(self, temperature: float) -> None:
        """Try moves at one temperature and keep the mapping if it is the best so far."""
        cells, began, chunk = self.problem.cells, clock.now(), self.chunk
        change = anneal_objects(
            self.machine,
            self.guest,
            self.guide,
            self.trees,
            cells.first,
            cells.router,
            cells.room,
            self.problem.loads,
            self.home,
            self.movable,
            self.state,
            self.random,
            (float(temperature), chunk),
            WANDER,
        )
        self.tried += chunk
        took = clock.now() - began
        if self.limit is not None and took > CHUNK_SECONDS:
            self.chunk = max(1, chunk // 2)
        elif self.limit is not None and took < CHUNK_SECONDS / 4:
            self.chunk = min(CHUNK, 2 * chunk)
        self.cost += int(change)
        if self.keeper.least is None or self.cost < self.keeper.least:
            self.keeper.offer_cells(self.state[0], "annealing")
