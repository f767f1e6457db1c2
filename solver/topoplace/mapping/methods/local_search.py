"""Simulated annealing from a given mapping or from the best of the cheap methods."""

from __future__ import annotations

from topoplace.errors import InputError
from topoplace.mapping.evaluate import hop_bytes
from topoplace.mapping.graph import IntArray
from topoplace.mapping.keeper import Keeper
from topoplace.mapping.local_search import improve
from topoplace.mapping.mapped import outcome_of
from topoplace.mapping.methods._boxes import spread_over_nodes
from topoplace.mapping.problem import MappingProblem
from topoplace.mapping.rankfiles.check import require_mapping
from topoplace.solving import Options, Outcome, method_of, register

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
