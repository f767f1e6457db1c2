"""Mappings whose groups span few domains, and of those one of few hop-bytes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from topoplace import clock
from topoplace.kernels import compile_late
from topoplace.mapping.bounds.best import best_bound
from topoplace.mapping.evaluate import worth_of
from topoplace.mapping.local_search import random_state
from topoplace.mapping.mapped import Keeper, mapped_by
from topoplace.mapping.methods.orders import grid_order
from topoplace.mapping.problem import MappingProblem
from topoplace.mapping.spread._kernels import moves
from topoplace.mapping.spread.bounds import spread_bound
from topoplace.mapping.spread.exact import MOST_TASKS, enumerated
from topoplace.snapshot.schema import ParallelismApplication
from topoplace.solving import Bound, Method, Options, Outcome, method_of, stronger
from topoplace.types import IntArray

SEARCHES = ("auto", "exact", "search")
"""Methods that look for a small spread; the others map as if there were no groups."""

METHOD_SHARE = 0.7
"""Share of a time limit at which the search ends; the bound of hop-bytes has the rest."""

PLAIN_SHARE = 0.2
"""Share of the time left for a mapping of few hop-bytes, groups left aside."""

FEWER_SHARE = 0.4
"""Share of the time at which no smaller spread is looked for any longer."""

MOVES_PER_TASK, FEWEST_MOVES, MOST_MOVES = 2_000, 200_000, 20_000_000
"""Moves for each smaller spread, and for hop-bytes, without a time limit."""

SLICE = 100_000
"""Moves between two looks at the clock."""

HOT, COLD = 1.0, 0.1
"""Temperatures of the domains above a limit, from first to last."""

HOT_SHARE, COLD_SHARE = 0.5, 0.01
"""Temperatures of hop-bytes, in what a typical move adds."""

MOST_COUNTS = 1 << 26
"""Most pairs of a group and a domain; with more, only the constructions are tried."""

MOST_BOXES = 400
"""Most shapes of boxes to try."""


def bounded(problem: MappingProblem, method: Method, options: Options) -> Outcome:
    """Map tasks by a method; bound the spread and the hop-bytes of any mapping."""
    stop = clock.deadline(options.time_limit)
    spread = spread_bound(problem)
    plain = problem.without_spread
    options.report(None, [], [spread])
    left = None if options.time_limit is None else METHOD_SHARE * options.time_limit
    within = replace(options, time_limit=left)
    own: list[Bound | None] = [None, None]
    if method.name in SEARCHES:
        outcome = searched(problem, within)
        own = [*outcome.bounds]
    else:
        outcome = method.solver(plain, replace(within, incumbent=None))
    if outcome.solution is None:
        return replace(outcome, bounds=(spread, None))
    worth = worth_of(problem, outcome.solution.nodes)
    bounds = [stronger(spread, own[0]), stronger(best_bound(plain, 0.0), own[1])]
    options.report(outcome.solution, worth, bounds)
    if bounds[1] is None or bounds[1].value < worth[1]:
        options.say("bound")
        rest = None if options.time_limit is None else max(0.0, stop - clock.now())
        bounds[1] = stronger(bounds[1], best_bound(plain, rest, worth[1]))
    return replace(outcome, bounds=tuple(bounds))


def searched(problem: MappingProblem, options: Options) -> Outcome:
    """Return the best mapping of constructions and a search; of few tasks with proof."""
    plain = problem.without_spread
    keeper = Keeper(problem, options, options.start)
    keeper.offer_nodes(problem.in_order, "in order")
    for nodes in boxed(problem):
        keeper.offer_nodes(nodes, "boxes")
        if keeper.done:
            break
    bounds: tuple[Bound | None, Bound | None] = (None, None)
    if problem.num_tasks <= MOST_TASKS and not keeper.done:
        options.say("enumeration")
        nodes, bounds = enumerated(problem, keeper.nodes, clock.now() + keeper.left / 2)
        keeper.offer_nodes(nodes, "enumeration")
    if None in bounds and not keeper.done:
        limit = None if options.time_limit is None else PLAIN_SHARE * keeper.left
        own = replace(options, time_limit=limit, incumbent=None, start=keeper.nodes)
        search = method_of("mapping", "search").solver
        keeper.offer_nodes(mapped_by(search, plain, own), "hop-bytes")
        if not keeper.done and problem.num_counts <= MOST_COUNTS:
            _improve(keeper)
    hit = keeper.outcome.time_limit_hit and None in bounds
    return replace(keeper.outcome, bounds=bounds, time_limit_hit=hit)


# ---- Boxes of training jobs, one after the other into the domains --------------------------------


def boxed(problem: MappingProblem) -> Iterator[IntArray]:
    """Yield mappings in which boxes of the axes fill one domain after the other.

    Boxes that do not fit into what is left of a domain go to the next one if there is room.
    """
    application = problem.instance.application
    if not isinstance(application, ParallelismApplication):
        return
    shape = tuple(axis.size for axis in application.axes)
    levels = sorted({kind.level: kind.domain_of for kind in problem.spread}.items())
    for _, domain_of in levels[:1]:
        places = places_by_domain(problem)
        domain = domain_of[places]
        rooms = np.diff(np.flatnonzero(np.diff(domain, prepend=-1, append=-1)))
        for box in _boxes(shape, int(rooms.max())):
            order = grid_order(shape, box)
            for together in (1, math.prod(box)):
                at = _filled(rooms, problem.num_tasks, together)
                if at is not None:
                    routers = np.empty(problem.num_tasks, dtype=np.int64)
                    routers[order] = places[at]
                    yield routers


def _boxes(shape: tuple[int, ...], room: int) -> list[tuple[int, ...]]:
    """Return the boxes that fit into a room, those nearest to it first."""
    sides = [sorted({-(-n // k) for k in range(1, n + 1)}) for n in shape]
    every = itertools.islice(itertools.product(*sides), 1 << 16)
    boxes = [box for box in every if math.prod(box) <= room]
    return sorted(boxes, key=lambda box: -math.prod(box))[:MOST_BOXES]


def _filled(rooms: IntArray, num: int, together: int) -> IntArray | None:
    """Return the places of tasks in order, so many at a time in one domain; None without room."""
    fits = rooms // together * together
    if int(fits.sum()) < num:
        return None
    first = np.repeat(np.cumsum(rooms) - rooms, fits)
    own = np.arange(len(first)) - np.repeat(np.cumsum(fits) - fits, fits)
    found: IntArray = (first + own)[:num]
    return found


def places_by_domain(problem: MappingProblem) -> IntArray:
    """Return the router of every place, so that the places of a domain are together."""
    assert problem.machine.levels is not None
    rows = problem.machine.levels.domain_of
    order = np.lexsort(rows)
    return np.repeat(order, np.minimum(problem.capacity, problem.num_tasks)[order])


# ---- Moves of tasks ------------------------------------------------------------------------------


class Memberships(NamedTuple):
    """Groups in the form of kernels; those of task t are ``of[of_first[t]:of_first[t + 1]]``.

    Group g counts the domains of level ``row[g]``, and how many tasks it has in each from
    ``base[g]`` on.
    """

    of_first: IntArray
    of: IntArray
    first: IntArray
    task: IntArray
    row: IntArray
    base: IntArray


class Walk:
    """A mapping that changes, in the form of kernels."""

    def __init__(self, problem: MappingProblem, routers: IntArray, seed: int) -> None:
        levels = problem.machine.levels
        assert levels is not None
        self.problem, self.random = problem, random_state(seed)
        rows = np.ascontiguousarray(levels.domain_of)
        places = places_by_domain(problem)
        begin = np.zeros((len(rows), int(rows.max()) + 1), dtype=np.int64)
        end = begin.copy()
        for k, row in enumerate(rows):
            used, firsts, counts = np.unique(row[places], return_index=True, return_counts=True)
            begin[k, used], end[k, used] = firsts, firsts + counts
        self.machine = rows, levels.costs, places, begin, end
        self.groups, num_counts = _memberships(problem)
        order = np.argsort(routers, kind="stable")
        own = np.argsort(places, kind="stable")
        rank = np.arange(len(order)) - np.searchsorted(routers[order], routers[order])
        place = np.empty(len(order), dtype=np.int64)
        place[order] = own[np.searchsorted(places[own], routers[order]) + rank]
        occupant = np.full(len(places), -1, dtype=np.int64)
        occupant[place] = np.arange(len(order))
        spans = np.concatenate([kind.spans(routers) for kind in problem.spread])
        inside = np.zeros(num_counts, dtype=np.int32)
        group = np.repeat(np.arange(len(spans)), np.diff(self.groups.first))
        at = self.groups.base[group] + rows[self.groups.row[group], routers[self.groups.task]]
        np.add.at(inside, at, 1)
        self.state = routers.copy(), place, occupant, spans, inside

    def run(self, most: int, temperature: float, num_moves: int, *, by_hops: bool) -> int:
        """Try moves; return how many domains are above the most, or what hop-bytes were added."""
        work = most, by_hops, float(temperature), num_moves
        guest: Any = self.problem.graph.exchanged
        over, hops = moves(self.machine, guest, self.groups, self.state, self.random, work)
        return int(hops if by_hops else over)

    @property
    def routers(self) -> IntArray:
        """The router of every task."""
        return self.state[0].copy()


def _memberships(problem: MappingProblem) -> tuple[Memberships, int]:
    kinds = problem.spread
    sizes = np.concatenate([np.diff(kind.first) for kind in kinds])
    task = np.concatenate([kind.task for kind in kinds])
    first = np.cumsum([0, *sizes])
    row = np.concatenate([np.full(len(kind), kind.level) for kind in kinds])
    domains = [np.full(len(kind), int(kind.domain_of.max()) + 1) for kind in kinds]
    ends = np.cumsum(np.concatenate(domains))
    group = np.repeat(np.arange(len(sizes)), sizes)
    order = np.argsort(task, kind="stable")
    of_first = np.searchsorted(task[order], np.arange(problem.num_tasks + 1))
    base = ends - np.concatenate(domains)
    return Memberships(of_first, group[order], first, task, row, base), int(ends[-1])


def _improve(keeper: Keeper) -> None:
    """Look for smaller and smaller spreads, then for fewer hop-bytes at the smallest."""
    problem, options = keeper.problem, keeper.options
    least, seed = keeper.floors[0], options.seed
    assert keeper.worth is not None
    compile_late("mapping.spread")
    began, whole = clock.now(), keeper.left
    while keeper.worth[0] > least and not keeper.done:
        share = math.inf if whole == math.inf else began + FEWER_SHARE * whole
        if clock.now() >= share:
            break
        seed += 1
        walk = Walk(problem, keeper.routers, seed)
        most = keeper.worth[0] - 1
        if _cooled(keeper, walk, most, (HOT, COLD), share, by_hops=False) > 0:
            break
        keeper.offer(walk.routers, "fewer domains")
    walk = Walk(problem, keeper.routers, seed)
    unit = _typical(keeper)
    if unit > 0 and not keeper.done:
        heat = HOT_SHARE * unit, COLD_SHARE * unit
        _cooled(keeper, walk, keeper.worth[0], heat, keeper.deadline, by_hops=True)
        keeper.offer(walk.routers, "hop-bytes within the spread")


def _typical(keeper: Keeper) -> float:
    """Return the hop-bytes of a task in the best mapping, on average."""
    worth = keeper.worth
    return 0.0 if worth is None else 2.0 * worth[1] / keeper.problem.num_tasks


def _cooled(
    keeper: Keeper,
    walk: Walk,
    most: int,
    heat: tuple[float, float],
    stop: float,
    *,
    by_hops: bool,
) -> int:
    """Try moves from hot to cold until the clock shows `stop`; return what is left above.

    Without a time limit the moves are counted.
    """
    num = keeper.problem.num_tasks
    every = min(max(FEWEST_MOVES, MOVES_PER_TASK * num), MOST_MOVES)
    began, tried, over = clock.now(), 0, 1
    while not clock.is_stopped():
        if stop == math.inf:
            done = tried / every
        else:
            done = (clock.now() - began) / max(1e-9, stop - began)
        if done >= 1:
            break
        temperature = heat[0] * (heat[1] / heat[0]) ** done
        over = walk.run(most, temperature, SLICE, by_hops=by_hops)
        tried += SLICE
        if by_hops:
            keeper.offer_sometimes(keeper.problem.pools_of(walk.routers), "hop-bytes")
        elif over == 0:
            break
    return 0 if by_hops else over
