"""Robust tabu search of a small machine."""

from __future__ import annotations

from topoplace import clock
from topoplace.mapping.mapped import Mapped, mapped_by, outcome_of
from topoplace.mapping.methods._boxes import spread_over_nodes
from topoplace.mapping.methods.greedy import map_greedy
from topoplace.mapping.problem import MappingProblem
from topoplace.mapping.rankfiles.check import require_mapping
from topoplace.mapping.tabu_search import Tabu
from topoplace.solving import Options, Outcome, register

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
