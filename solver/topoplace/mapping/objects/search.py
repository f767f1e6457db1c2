"""Our methods for objects: halving machine and objects together, and annealing under the caps."""

from __future__ import annotations

import math

import numpy as np

from topoplace import clock
from topoplace.errors import InputError
from topoplace.mapping.halving import halve
from topoplace.mapping.local_search import (
    COLD,
    COOLING_SHARE,
    HOT,
    WANDER,
    random_state,
)
from topoplace.mapping.objects._kernels import anneal_objects, members, move_off_fullest
from topoplace.mapping.objects.problem import ObjectsProblem
from topoplace.mapping.objects.settled import (
    Keeper,
    arrays_of,
    branches_of,
    emptiest_first,
    homes_of,
    settled,
    worth_of,
)
from topoplace.solving import Bound, Options, Outcome, method_of, register
from topoplace.types import IntArray

# ---- Constructions -------------------------------------------------------------------------------


@register("objects", "in-order")
def in_order(problem: ObjectsProblem, options: Options) -> Outcome:
    """Fill node after node with consecutive objects, up to the average load."""
    keeper = Keeper(problem, options)
    keeper.offer(consecutive(problem, keeper.deadline), "in order")
    return keeper.outcome()


def consecutive(problem: ObjectsProblem, stop: float = math.inf) -> IntArray | None:
    """Return the cells of objects in their order, each node with the average load."""
    cells, loads = problem.cells, problem.loads
    middle = np.cumsum(loads) - loads / 2
    ends = np.cumsum(cells.width) * (loads.sum() / cells.width.sum())
    at = np.minimum(np.searchsorted(ends, middle), len(ends) - 1)
    return settled(problem, cells.router[at], np.arange(len(loads)), stop)


@register("objects", "oblivious")
def oblivious(problem: ObjectsProblem, options: Options) -> Outcome:
    """Only balance loads: the largest object first, each on the emptiest node."""
    keeper = Keeper(problem, options)
    keeper.offer(emptiest_first(problem), "by load")
    return keeper.outcome()


@register("objects", "bisection")
def bisection(problem: ObjectsProblem, options: Options) -> Outcome:
    """Halve machine and objects together, again and again."""
    keeper = Keeper(problem, options)
    keeper.offer(halved(problem, options.seed, keeper.deadline), "bisection")
    return keeper.outcome()


def halved(problem: ObjectsProblem, seed: int, stop: float = math.inf) -> IntArray | None:
    """Return the cells of objects by recursive bisection (as `topoplace.mapping.halving`)."""
    usable = (np.diff(problem.cells.first) > 0).astype(np.int64)
    room = np.maximum(problem.router_room, usable)  # no load at all needs no capacity
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

DOWNHILL_SHARE, LAST_SHARE = 0.1, 0.98
"""Share of the work that goes downhill first, from the construction, and share of the time at which
loads are evened out."""

CHUNK, CHUNK_SECONDS = 1 << 14, 0.1
"""Most moves between two looks at the clock, and the most time for them: else half as many."""

FIRST_CHUNK = 1 << 8
"""Moves before the first look where there is a time limit; twice as many after a quick look."""

TRIES = 1 << 10
"""Moves off the fullest node to try between two looks."""

TASKS_SHARE = 0.5
"""Share of the remaining time for the search for a mapping of tasks, if objects are tasks."""

PAPERS = ("prisms", "bricks")
"""The mappings of the papers, each for applications of its kind."""


@register("objects", "search")
def search(problem: ObjectsProblem, options: Options) -> Outcome:
    """Anneal from the best construction, the papers' among them; then even out the loads.

    Never worse than `options.start` or a construction. Without a time limit the work is fixed and
    the seed decides the outcome.
    """
    keeper = Keeper(problem, options)
    if options.start is not None:
        keeper.offer(problem.cells_of(options.start), "start")
    keeper.offer(consecutive(problem, keeper.deadline), "in order")
    began = clock.now()
    if not keeper.done:
        keeper.offer(halved(problem, options.seed, keeper.deadline), "bisection")
    if clock.now() - began < keeper.left:  # they take about as long
        for name in PAPERS:
            offer_paper(keeper, name)
    bound = offer_tasks(keeper)
    built = keeper.source
    if keeper.cells is not None and len(problem.movable):
        Annealing(keeper).run()
    notes = () if keeper.worth is None else (f"annealed from the mapping by {built}",)
    return keeper.outcome(bounds=(bound,), notes=notes)


def offer_tasks(keeper: Keeper) -> Bound | None:
    """Offer the best mapping of tasks if the objects are tasks, and return its bound."""
    problem, limit = keeper.problem, keeper.options.time_limit
    if problem.tasks is None or keeper.done:
        return None
    share = None if limit is None else max(0.0, TASKS_SHARE * keeper.left)
    options = Options(time_limit=share, seed=keeper.options.seed)
    found = method_of("mapping", "auto").solver(problem.tasks, options)
    if found.solution is not None:
        keeper.offer(problem.cells_of(found.solution.nodes), "tasks")
    return next(iter(found.bounds), None)


def offer_paper(keeper: Keeper, name: str) -> None:
    """Offer the mapping of a paper if the application is of its kind."""
    if keeper.done:
        return
    try:
        options = Options(max(0.0, keeper.left))
        found = method_of("objects", name).solver(keeper.problem, options)
    except InputError:
        return
    if found.solution is not None:
        keeper.offer(keeper.problem.cells_of(found.solution), name)


class Annealing:
    """A changing mapping: the arrays that kernels change, and the share of the work done."""

    def __init__(self, keeper: Keeper) -> None:
        assert keeper.cells is not None
        self.keeper, problem = keeper, keeper.problem
        self.problem, self.guest, self.guide = problem, problem.graph.exchanged, problem.guide
        self.trees = branches_of(problem)
        self.machine, self.home = arrays_of(problem), homes_of(problem)
        self.random, self.tried = random_state(keeper.options.seed), 0
        per_object = MOVES_PER_OBJECT * problem.num_objects
        self.num_moves = min(max(FEWEST_MOVES, per_object), MOST_MOVES)
        self.began = clock.now()
        limited = keeper.options.time_limit is not None
        self.limit = max(LAST_SHARE * keeper.left, 1e-3) if limited else None
        self.chunk = FIRST_CHUNK if limited else max(1, min(CHUNK, self.num_moves // 200))
        self.take(keeper.cells)

    def take(self, cells: IntArray) -> None:
        """Go on from a mapping."""
        routers, filled = self.problem.cells.router[cells], self.problem.filled(cells)
        lists = members(cells, len(filled))
        self.state = (cells.copy(), routers, filled, *lists)
        self.cost = worth_of(self.problem, self.problem.nodes_of(cells))[0]

    def spent(self) -> float:
        """Return the share of the time, or of the moves, that is used up."""
        if self.limit is not None or clock.is_stopped():
            return (clock.now() - self.began) / (self.limit or 1e-3)
        return self.tried / self.num_moves

    def run(self) -> None:
        """Go downhill, cool down as often as there is work for, and even out the loads."""
        unit = self.typical_change()
        if unit > 0 and not self.keeper.done:
            while not self.keeper.done and self.spent() < DOWNHILL_SHARE:
                self.step(0.0)
            expected = self.tried / max(self.spent(), 1e-9) / self.problem.num_objects
            coolings = COOLINGS if expected >= FEW else ((COOLINGS[0][0], 1.0),)
            for heat, until in coolings:
                self.cool(heat * HOT * unit, min(COLD * unit, heat * HOT * unit / 4), until)
            assert self.keeper.cells is not None
            self.take(self.keeper.cells)
        self.level_out()
        self.keeper.offer(self.state[0], self.keeper.source)

    def cool(self, hot: float, cold: float, until: float) -> None:
        """Cool down from one temperature to another, and go downhill up to a share of the work."""
        began = self.spent()
        while not self.keeper.done and (spent := self.spent()) < until:
            share = (spent - began) / (until - began) / COOLING_SHARE
            self.step(hot * (cold / hot) ** share if share < 1 else 0.0)

    def level_out(self) -> None:
        """Even out loads where that costs no hop-bytes, as long as there is time."""
        cells, at = self.problem.cells, np.array([-1, 0])
        while self.keeper.left > 0 and move_off_fullest(
            self.machine,
            self.guest,
            self.trees,
            cells.router,
            cells.width,
            self.problem.loads,
            self.home,
            self.state,
            at,
            TRIES,
        ):
            pass

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
            self.problem.movable,
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
        worth = self.keeper.worth
        if worth is None or self.cost < worth[0]:
            self.keeper.offer(self.state[0], "annealing")
