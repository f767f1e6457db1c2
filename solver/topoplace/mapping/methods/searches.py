"""Local searches, and methods that choose among others."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np

from topoplace import clock
from topoplace.errors import InputError
from topoplace.mapping.evaluate import hop_bytes
from topoplace.mapping.graph import IntArray
from topoplace.mapping.growing import grow_mapping
from topoplace.mapping.halving import halve_mapping
from topoplace.mapping.keeper import Keeper
from topoplace.mapping.local_search import COLD, HOT, Annealing, improve, state_arrays
from topoplace.mapping.mapped import Mapped, mapped_by, outcome_of
from topoplace.mapping.methods.constructions import TRIALS, map_bisection, map_greedy
from topoplace.mapping.methods.orders import map_default, map_hilbert, spread_over_nodes
from topoplace.mapping.positions import compact_routers, fill, symmetric
from topoplace.mapping.problem import MappingProblem
from topoplace.mapping.rankfiles.places import require_mapping
from topoplace.mapping.tabu_search import Tabu, num_places
from topoplace.solving import Options, Outcome, Solver, method_of, register

# ---- Simulated annealing from a given mapping or from the best of the cheap methods --------------

SIMPLE = ("default", "grid-order", "blocks", "fold-2d", "topaware")
"""Methods cheap enough to look for a start with; those that refuse the problem are left out."""


@register("mapping", "local-search", "simulated annealing from a mapping or the best simple method")
def map_local_search(problem: MappingProblem, options: Options) -> Outcome:
    """Improve `options.start`, or the best simple mapping, by moves and swaps of tasks.

    Never worse than its start. Without a time limit the work is fixed and the seed decides the
    outcome.

    Raises
    ------
    InputError
        If the start is no mapping of this instance.
    """
    start = options.start
    if start is None:
        start = _best_simple(problem, options)
    else:
        require_mapping(problem, start)
    keeper = Keeper(problem, options)
    keeper.offer_nodes(start, "start")
    found = improve(
        problem,
        problem.routers_of(start),
        seed=options.seed,
        time_limit=options.time_limit,
        watch=lambda routers: keeper.offer_sometimes(routers, "annealing"),
    )
    if found.hop_bytes == hop_bytes(problem, start):
        return outcome_of(start, hit=found.hit)
    return outcome_of(spread_over_nodes(problem, found.routers), hit=found.hit)


def _best_simple(problem: MappingProblem, options: Options) -> IntArray:
    """Return the best mapping of the simple methods that can map the problem."""
    found = []
    for name in SIMPLE:
        method = method_of("mapping", name)
        if method.needs_grid and problem.grid is None:
            continue
        try:
            mapped = method.solver(problem, options).solution
        except InputError:
            continue
        if mapped is not None:
            found.append(mapped.nodes)
    return min(found, key=lambda nodes: hop_bytes(problem, nodes))


# ---- Robust tabu search of a small machine -------------------------------------------------------

WORK, FEWEST_MOVES = 400_000_000, 2_000
"""Swaps to look at without a time limit, and moves to make at least."""

CHUNK_WORK = 4_000_000
"""Swaps looked at between two looks at the clock."""


@register("mapping", "tabu", "robust tabu search, for machines of few places")
def map_tabu(problem: MappingProblem, options: Options) -> Outcome:
    """Improve `options.start`, or the greedy mapping, by robust tabu search (`Tabu`).

    Never worse than its start. Without a time limit the work is fixed and the seed decides the
    outcome.

    Raises
    ------
    InputError
        If there are too many places, or the start is no mapping of this instance.
    """
    deadline = clock.deadline(options.time_limit)
    start = options.start
    if start is None:
        start = mapped_by(map_greedy, problem, options)
    else:
        require_mapping(problem, start)
    search = Tabu(problem, problem.routers_of(start), options.seed)
    best, nodes = search.least, start
    options.report(Mapped(nodes), [best])
    chunk = max(1, CHUNK_WORK // search.move_work)
    left = max(FEWEST_MOVES, WORK // search.move_work)
    hit = False
    while best > 0 and left > 0 and not hit:
        search.run(chunk)
        if search.least < best:
            best, nodes = search.least, spread_over_nodes(problem, search.routers)
            options.report(Mapped(nodes), [best])
        if options.time_limit is None:
            left -= chunk
        hit = clock.now() >= deadline
    return outcome_of(nodes, hit=hit)


# ---- The search for a good mapping of any graph: constructions, annealing, and tabu search -------

MOVES_PER_TASK, FEWEST_ANNEALING_MOVES, MOST_MOVES = 20_000, 500_000, 60_000_000
"""Annealing moves in all without a time limit."""

ROUND_PER_TASK, FEWEST_ROUND = 6_000, 50_000
"""Moves per task, and moves at least, of one annealing if there is time for more than one."""

HEAT = ((300, 0.24), (1_500, 0.5))
"""Up to so many moves per task, an annealing begins at this part of `HOT`: less undoes less."""

TABU_PLACES, TABU_MOVES, TABU_WORK = 256, 20_000, 60_000_000
"""Places up to which annealings take turns with tabu search, its moves, and swaps to look at."""


"""Swaps looked at between two looks at the clock."""

BISECTION_SECONDS, GREEDY_SECONDS, HILBERT_SECONDS = 1e-6, 2e-6, 4e-6
"""Rough times of constructions per task and message; of bisection, per level of it, too."""

SPARE = 4
"""A second construction is made if there is so many times the time it takes."""


@register(
    "mapping", "search", "constructions, annealing and tabu search, as long as the time limit says"
)
def map_search(problem: MappingProblem, options: Options) -> Outcome:
    """Return the best mapping of constructions and of annealings and tabu searches from them.

    `options.start`, if given, is one of the starts, so the outcome is never worse. Without a time
    limit the work is fixed and the seed decides the outcome; with one, all of it is used unless
    nothing is left to gain.

    Raises
    ------
    InputError
        If the start is no mapping of this instance.
    """
    keeper = Keeper(problem, options)
    if options.start is not None:
        require_mapping(problem, options.start)
        keeper.offer_nodes(options.start, "given")
    proxy = symmetric(problem)
    _construct(keeper, proxy)
    if problem.num_tasks > 1 and not keeper.done:
        _improve(keeper, proxy)
    return outcome_of(keeper.nodes, hit=keeper.left <= 0 and not keeper.perfect)


def _construct(keeper: Keeper, proxy: MappingProblem) -> None:
    """Offer the constructions there is time for, the one that tends to be best first."""
    problem, options = keeper.problem, keeper.options
    keeper.offer_nodes(mapped_by(map_default, problem, options), "default")
    size = problem.num_tasks + problem.graph.num_messages
    levels = math.log2(problem.num_tasks + 1)
    halving = BISECTION_SECONDS * levels

    def routers(method: Solver) -> Callable[[], IntArray]:
        return lambda: problem.routers_of(mapped_by(method, proxy, options))

    makers: tuple[tuple[str, float, Callable[[], IntArray]], ...] = (
        ("bisection", halving, lambda: halve_mapping(proxy, seed=options.seed)),
        ("greedy", GREEDY_SECONDS, lambda: grow_mapping(proxy)),
        ("hilbert", HILBERT_SECONDS, routers(map_hilbert)),
        ("bisections", TRIALS * halving, routers(map_bisection)),
    )
    made = False
    for name, seconds, make in makers:
        if not keeper.done and seconds * size * (SPARE if made else 1) < keeper.left:
            keeper.offer(make(), name)
            made = True


def _improve(keeper: Keeper, proxy: MappingProblem) -> None:
    """Anneal again and again, each time from another start, with tabu search in between."""
    problem, options = keeper.problem, keeper.options
    num_moves = min(max(FEWEST_ANNEALING_MOVES, MOVES_PER_TASK * problem.num_tasks), MOST_MOVES)
    limit = None if options.time_limit is None else keeper.left

    def watch() -> None:
        keeper.offer_sometimes(search.best.astype(np.int64), "annealing")

    # a mean of distances is no floor of the distances themselves
    floor = keeper.floor if proxy is problem else 0
    search = Annealing(proxy, keeper.routers, options.seed, limit, num_moves, watch, floor)
    unit = search.typical_change()
    if unit == 0:
        return
    small = num_places(problem) <= TABU_PLACES
    rng = np.random.default_rng(options.seed)
    share = _round_share(search, problem.num_tasks)
    heat = _heat(share * _affordable(search), problem.num_tasks)
    for turn in itertools.count():
        if turn:
            start = _start(keeper, proxy, rng, turn)
            search.resume(state_arrays(proxy, start))
        until = min(1.0, search.spent() + share)
        search.least, search.best = search.cost, search.state.router.copy()
        search.cool((HOT if turn % 4 else heat) * unit, COLD * unit, until)
        found = search.best.astype(np.int64)
        keeper.offer(found, "annealing")
        if small and not keeper.done:
            _tabu(keeper, found, options.seed + turn)
        if keeper.done or search.spent() >= 1 - 1e-9:
            break


def _start(keeper: Keeper, proxy: MappingProblem, rng: np.random.Generator, turn: int) -> IntArray:
    """Return the start of an annealing: in turns the best mapping, a bisection, any mapping."""
    kind = turn % 4
    if kind == 0:
        return keeper.routers
    if kind == 2:
        return halve_mapping(proxy, seed=keeper.options.seed + turn)
    routers, _ = compact_routers(proxy)
    return fill(proxy, rng.permutation(proxy.num_tasks), routers)


def _affordable(search: Annealing) -> float:
    """Return about how many moves the whole budget allows."""
    if search.time_limit is None:
        return search.num_moves
    before = search.spent()
    search.run(0.0)
    return search.chunk * (1 - before) / max(search.spent() - before, 1e-9)


def _round_share(search: Annealing, num_tasks: int) -> float:
    """Return the share of the budget that one annealing takes."""
    wanted = max(FEWEST_ROUND, ROUND_PER_TASK * num_tasks)
    return 1.0 / max(1, round(_affordable(search) / wanted))


def _heat(num_moves: float, num_tasks: int) -> float:
    """Return the temperature at which an annealing of so many moves begins."""
    per_task = num_moves / num_tasks
    return HOT * next((part for most, part in HEAT if per_task <= most), 1.0)


def _tabu(keeper: Keeper, routers: IntArray, seed: int) -> None:
    """Improve a mapping by tabu search, with a fixed number of moves if the time allows."""
    search = Tabu(keeper.problem, routers, seed)
    chunk = max(1, CHUNK_WORK // search.move_work)
    num_moves = min(TABU_MOVES, TABU_WORK // search.move_work)
    for done in range(0, num_moves, chunk):
        search.run(min(chunk, num_moves - done))
        if keeper.least is None or search.least < keeper.least:
            keeper.offer(search.routers, "tabu")
        if keeper.done:
            return
