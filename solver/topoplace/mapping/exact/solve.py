"""Mappings that are proven to be the best: by embedding, or by branch and bound."""

from __future__ import annotations

import numpy as np

from topoplace import clock
from topoplace.errors import InputError
from topoplace.mapping.bounds.best import total_bound
from topoplace.mapping.evaluate import hop_bytes
from topoplace.mapping.exact.branch import Branched, SmallProblem, branch_and_bound, small_problem
from topoplace.mapping.exact.embedding import find_embedding
from topoplace.mapping.graph import IntArray
from topoplace.mapping.local_search import improve
from topoplace.mapping.mapped import Mapped, mapped_by, outcome_of
from topoplace.mapping.methods.orders import map_default, spread_over_nodes
from topoplace.mapping.problem import MappingProblem
from topoplace.solving import Bound, Options, Outcome

FIRST_MOVES = 200_000
"""Moves of the local search before branch and bound: a tenth of a second or so."""


def embedded(problem: MappingProblem, options: Options) -> Outcome | None:
    """Return a mapping with every message over one link, which nothing can better.

    None if there is none, none was found, or it would prove nothing because routers take more
    than one task.
    """
    bound = total_bound(problem)
    if bound is None:
        return None
    routers = find_embedding(problem, seed=options.seed, time_limit=options.time_limit)
    if routers is None:
        return None
    return outcome_of(spread_over_nodes(problem, routers), bound=bound)


def solved_by_search(problem: MappingProblem, options: Options) -> Outcome | None:
    """Return the result of branch and bound; None if the problem is too large for it.

    With a time limit the bound is the least of the nodes left open. Every improvement is
    reported.
    """
    deadline = clock.deadline(options.time_limit)
    small = small_problem(problem)
    if small is None:
        return None
    nodes = _first_mapping(problem, options)
    options.report(Mapped(nodes), [hop_bytes(problem, nodes)])

    def watch(found: Branched) -> None:
        options.say("branch and bound")
        improved = _nodes_of(problem, small, found, nodes)
        bound = Bound(found.bound * small.unit)
        options.report(Mapped(improved), [hop_bytes(problem, improved)], [bound])

    left = max(0.0, deadline - clock.now())
    found = branch_and_bound(small, hop_bytes(problem, nodes) // small.unit, left, watch)
    return outcome_of(
        _nodes_of(problem, small, found, nodes),
        hit=not found.complete,
        bound=Bound(found.bound * small.unit, None),
    )


def _first_mapping(problem: MappingProblem, options: Options) -> IntArray:
    """Return a good mapping: better ones only are then looked for."""
    nodes = options.start
    if nodes is None:
        nodes = mapped_by(map_default, problem, options)
    try:
        found = improve(
            problem, problem.routers_of(nodes), seed=options.seed, num_moves=FIRST_MOVES
        )
    except InputError:
        return nodes  # the local search takes symmetric distances only
    if found.hop_bytes < hop_bytes(problem, nodes):
        return spread_over_nodes(problem, found.routers)
    return nodes


def _nodes_of(
    problem: MappingProblem, small: SmallProblem, found: Branched, otherwise: IntArray
) -> IntArray:
    """Return the node of every task, the silent ones where there is room."""
    if found.at is None:
        return otherwise
    routers = np.full(problem.num_tasks, -1, dtype=np.int64)
    routers[small.tasks] = small.routers[found.at]
    silent = np.flatnonzero(routers < 0)
    load = np.bincount(routers[small.tasks], minlength=problem.machine.num_routers)
    room = np.minimum(problem.capacity - load, len(silent))
    routers[silent] = np.repeat(np.arange(len(room)), room)[: len(silent)]
    return spread_over_nodes(problem, routers)
