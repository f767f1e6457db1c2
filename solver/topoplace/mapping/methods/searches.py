"""Local searches, and methods that choose among others."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from topoplace import clock
from topoplace.kernels import num_cores
from topoplace.mapping.growing import grow_mapping
from topoplace.mapping.halving import SECONDS, SPARE, halve_mapping
from topoplace.mapping.local_search import COLD, HOT, Annealing, improve, state_arrays
from topoplace.mapping.mapped import Keeper, cheapest, mapped_by
from topoplace.mapping.methods.constructions import TRIALS, map_bisection, map_greedy
from topoplace.mapping.methods.orders import map_default, map_hilbert
from topoplace.mapping.multilevel import is_available, multilevel
from topoplace.mapping.objects.few_moves import searched
from topoplace.mapping.positions import compact_routers, fill, symmetric
from topoplace.mapping.problem import MappingProblem
from topoplace.mapping.tabu_search import num_places, tabu
from topoplace.solving import Options, Outcome, Solver, register
from topoplace.types import IntArray

SIMPLE = ("default", "grid-order", "blocks", "fold-2d", "topaware", "nested-boxes")
"""Methods that are cheap enough to find a start; those that refuse the problem are left out."""


@register("mapping", "local-search")
def map_local_search(problem: MappingProblem, options: Options) -> Outcome:
    """Improve `options.start`, or the best simple mapping, by moves and swaps of tasks.

    Never worse than its start. Without a time limit the work is fixed and the seed decides the
    outcome.

    Raises `InputError` if the start is no mapping of this instance.
    """

    def simple(problem: MappingProblem, options: Options) -> Outcome:
        return cheapest(problem, options, SIMPLE) or map_default(problem, options)

    start = options.start
    if start is None:
        start = mapped_by(simple, problem, options)
    keeper = Keeper(problem, options, start)
    improve(keeper)
    return keeper.outcome


WORK, FEWEST_MOVES = 400_000_000, 2_000
"""Swaps to look at without a time limit, and moves to make at least."""


@register("mapping", "tabu")
def map_tabu(problem: MappingProblem, options: Options) -> Outcome:
    """Improve `options.start`, or the greedy mapping, by robust tabu search (`Tabu`).

    Never worse than its start. Without a time limit the work is fixed and the seed decides the
    outcome.

    Raises `InputError` if there are too many places, or the start is no mapping of this instance.
    """
    start = options.start
    if start is None:
        start = mapped_by(map_greedy, problem, options)
    keeper = Keeper(problem, options, start)
    num_moves = sys.maxsize
    if options.time_limit is None:
        num_moves = max(FEWEST_MOVES, WORK // (problem.num_tasks * num_places(problem)))
    tabu(keeper, keeper.routers, options.seed, num_moves)
    return keeper.outcome


MOVES_PER_TASK, FEWEST_ANNEALING_MOVES, MOST_MOVES = 20_000, 500_000, 60_000_000
"""Annealing moves in total without a time limit."""

ROUND_PER_TASK, FEWEST_ROUND = 6_000, 50_000
"""Moves per task, and moves at least, of one annealing if there is time for more than one."""

HEAT = ((300, 0.24), (1_500, 0.5))
"""Up to this number of moves per task, an annealing begins at a fraction of `HOT`, to undo less."""

TABU_PLACES, TABU_MOVES, TABU_WORK = 256, 20_000, 60_000_000
"""Places up to which annealings take turns with tabu search, its moves, and swaps to look at."""

GREEDY_SECONDS, HILBERT_SECONDS = 2e-6, 4e-6
"""Rough times of constructions per task and message."""

MULTILEVEL, MULTILEVEL_SHARE = "multilevel", 0.8
"""The construction by partitions, and the most of the time for the first one."""

PARTITIONS, PARTITIONS_SHARE = 16, 0.6
"""Most partitions, by different seeds, and the share of the work at which the last one ends."""

DOWNHILL_SHARE, MILD_SHARE = 0.1, 0.1
"""Shares of the work that go downhill from the first partition, and to finding the temperature at
which the best one is no longer improved."""


@register("mapping", "search", takes=("tasks", "objects", "moves"))
def map_search(problem: MappingProblem, options: Options) -> Outcome:
    """Return the best mapping of constructions and of annealings and tabu searches from them.

    `options.start`, if given, is one of the starts, so the outcome is never worse. Without a time
    limit the work is fixed and the seed decides the outcome; with one, all of it is used unless the
    mapping is proven optimal.

    Raises `InputError` if the start is no mapping of this instance.
    """
    if not problem.of_tasks or problem.before is not None:
        return searched(problem, options)
    keeper = Keeper(problem, options, options.start)
    proxy = symmetric(problem)
    _construct(keeper, proxy)
    if problem.num_tasks > 1 and not keeper.done:
        (_refine if keeper.source == MULTILEVEL else _improve)(keeper, proxy)
    return keeper.outcome


def _construct(keeper: Keeper, proxy: MappingProblem) -> None:
    """Offer the constructions for which there is time, the one that tends to be best first."""
    problem, options = keeper.problem, keeper.options
    keeper.offer_nodes(mapped_by(map_default, problem, options), "default")
    if problem.machine.levels is not None:
        boxes = cheapest(problem, options, ["nested-boxes"])
        if boxes is not None and boxes.solution is not None:
            keeper.offer_nodes(boxes.solution.nodes, "nested boxes")
    size = problem.num_tasks + problem.graph.num_messages
    levels = math.log2(problem.num_tasks + 1)
    halving = SECONDS * levels

    def routers(method: Solver) -> Callable[[], IntArray]:
        return lambda: problem.routers_of(mapped_by(method, proxy, options))

    def halved() -> IntArray:
        return halve_mapping(proxy, seed=options.seed, stop=keeper.deadline)

    makers: list[tuple[str, float, Callable[[], IntArray]]] = [
        ("bisection", halving, halved),
        ("greedy", GREEDY_SECONDS, lambda: grow_mapping(proxy)),
        ("hilbert", HILBERT_SECONDS, routers(map_hilbert)),
        ("bisections", TRIALS * halving, routers(map_bisection)),
    ]
    made = False
    if is_available(problem) and not keeper.done:
        until = clock.now() + MULTILEVEL_SHARE * keeper.left
        with ThreadPoolExecutor(1) as pool:
            # all cores find a better one in little time, one the same each time
            threads = 1 if options.time_limit is None else num_cores()
            partitions = pool.submit(multilevel, proxy, options.seed, until, threads=threads)
            made = halving * size < keeper.left
            if made:  # on the other core: better than partitions that end late
                keeper.offer(halve_mapping(proxy, seed=options.seed, stop=until), "bisection")
        found = partitions.result()
        if found is not None:
            keeper.offer(found, MULTILEVEL)
            return
    for name, seconds, make in makers[int(made) :]:
        if not keeper.done and seconds * size * (SPARE if made else 1) < keeper.left:
            keeper.offer(make(), name)
            made = True


def _refine(keeper: Keeper, proxy: MappingProblem) -> None:
    """Go downhill from partitions, one after the other, then cool down mildly from the best."""
    num_moves = min(max(FEWEST_ANNEALING_MOVES, MOVES_PER_TASK * proxy.num_tasks), MOST_MOVES)
    search = Annealing(keeper, proxy, num_moves)
    unit = search.typical_change()
    if unit == 0:
        return
    search.cool(0.0, 0.0, DOWNHILL_SHARE)
    search.offer()
    until = clock.now() + max(0.0, PARTITIONS_SHARE - search.spent()) * keeper.left

    def part(turn: int, threads: int = 1) -> IntArray | None:
        own = keeper.options.seed + turn
        return None if keeper.done else multilevel(proxy, own, until, threads=threads)

    with ThreadPoolExecutor(num_cores()) as pool:  # as before, then one on each core
        first = part(1, 1 if keeper.options.time_limit is None else num_cores())
        for found in itertools.chain([first], pool.map(part, range(2, PARTITIONS))):
            if found is not None:
                keeper.offer(found, MULTILEVEL)
    search.resume(state_arrays(proxy, proxy.pools.first[keeper.routers]))
    search.least, search.best = search.cost, search.state.cell.copy()
    mild = search.mildest(HOT * unit, COLD * unit, search.spent() + MILD_SHARE)
    search.cool(mild, COLD * unit, 1.0)
    search.offer()


def _improve(keeper: Keeper, proxy: MappingProblem) -> None:
    """Anneal again and again, each time from another start, with tabu search in between."""
    problem, options = keeper.problem, keeper.options
    num_moves = min(max(FEWEST_ANNEALING_MOVES, MOVES_PER_TASK * problem.num_tasks), MOST_MOVES)
    search = Annealing(keeper, proxy, num_moves)
    unit = search.typical_change()
    if unit == 0:
        return
    rng = np.random.default_rng(options.seed)
    moves = _affordable(search) / problem.num_tasks
    rounds = max(1, round(moves / max(FEWEST_ROUND / problem.num_tasks, ROUND_PER_TASK)))
    heat = HOT * next((part for most, part in HEAT if moves / rounds <= most), 1.0)
    for turn in itertools.count():
        if turn:
            start = _start(keeper, proxy, rng, turn)
            search.resume(state_arrays(proxy, proxy.pools.first[start]))
        until = min(1.0, search.spent() + 1 / rounds)
        search.least, search.best = search.cost, search.state.cell.copy()
        search.cool((HOT if turn % 4 else heat) * unit, COLD * unit, until)
        search.offer()
        if num_places(problem) <= TABU_PLACES and not keeper.done:
            found = proxy.pools.router[search.best]
            num_moves = min(TABU_MOVES, TABU_WORK // (problem.num_tasks * num_places(problem)))
            tabu(keeper, found, options.seed + turn, num_moves)
        if keeper.done or search.spent() >= 1 - 1e-9:
            break


def _start(keeper: Keeper, proxy: MappingProblem, rng: np.random.Generator, turn: int) -> IntArray:
    """Return the start of an annealing: in turns the best mapping, a bisection, any mapping."""
    kind = turn % 4
    if kind == 0:
        return keeper.routers
    if kind == 2:
        seed = keeper.options.seed + turn
        return halve_mapping(proxy, seed=seed, stop=keeper.deadline)
    routers, _ = compact_routers(proxy)
    return fill(proxy, rng.permutation(proxy.num_tasks), routers)


def _affordable(search: Annealing) -> float:
    """Return about how many moves the whole budget allows."""
    if search.time_limit is None:
        return search.num_moves
    before = search.spent()
    search.run(0.0)
    return search.chunk * (1 - before) / max(search.spent() - before, 1e-9)
