"""First fit along orders of nodes that are used in practice (docs/guide/dragonflies.md).

Every request in turn takes the first free nodes of the order that it may have. It waits if there
are too few, if it has rules about groups and routers, or if it would share global links with
others under the strict rule.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable

import numpy as np

from topoplace.machine.dragonfly import Dragonfly
from topoplace.placement.dragonfly.problem import DragonflyProblem
from topoplace.placement.hierarchy.heuristics.queue import asks_only
from topoplace.solving import Options, Outcome, register
from topoplace.types import BoolArray, IntArray

Order = Callable[[Dragonfly, np.random.Generator], IntArray]


def contiguous(machine: Dragonfly, rng: np.random.Generator) -> IntArray:
    """Return nodes by number: router by router, group by group."""
    return np.arange(machine.num_nodes)


def random_routers(machine: Dragonfly, rng: np.random.Generator) -> IntArray:
    """Return the nodes of routers in a random order."""
    nodes = np.arange(machine.num_nodes).reshape(machine.num_routers, -1)
    return nodes[rng.permutation(machine.num_routers)].ravel()


def random_groups(machine: Dragonfly, rng: np.random.Generator) -> IntArray:
    """Return the nodes of groups in a random order, those of a group by number."""
    nodes = np.arange(machine.num_nodes).reshape(machine.num_groups, -1)
    return nodes[rng.permutation(machine.num_groups)].ravel()


def group_round_robin(machine: Dragonfly, rng: np.random.Generator) -> IntArray:
    """Return the first nodes of all groups, then the second ones, and so on."""
    return np.arange(machine.num_nodes).reshape(machine.num_groups, -1).T.ravel()


def placed_along(problem: DragonflyProblem, order: IntArray) -> dict[int, tuple[Counter[int], ...]]:
    """Return what starts if requests are served in queue order along an order of the nodes."""
    state, machine = problem.state, problem.state.machine
    left, taken = state.free.copy(), state.taken_pairs.copy()
    started: dict[int, tuple[Counter[int], ...]] = {}
    for idx, request in enumerate(problem.requests):
        part = request.parts[0]
        if not asks_only(request) or part.at_most or part.balance is not None or request.others:
            continue
        may = left if part.eligible is None else left & part.eligible.mask[state.host_of]
        nodes = order[may[order]][: request.nodes]
        groups = np.unique(nodes // machine.nodes_per_router // machine.per_group)
        strict = problem.uses_links(request)
        if len(nodes) < request.nodes or (strict and _shared(taken, groups)):
            continue
        left[nodes] = False
        if strict:
            taken[np.ix_(groups, groups)] = True
        started[idx] = (Counter(state.host_of[nodes].tolist()),)
    return started


def _shared(taken: BoolArray, groups: IntArray) -> bool:
    """Return whether the links between two of some groups are taken."""
    return any(taken[pair] for pair in itertools.combinations(groups.tolist(), 2))


def _add(name: str, order: Order) -> None:
    @register("dragonfly", name)
    def method(problem: DragonflyProblem, options: Options) -> Outcome:
        rng = np.random.default_rng(options.seed)
        return Outcome(placed_along(problem, order(problem.state.machine, rng)))


for _name, _order in (
    ("contiguous", contiguous),
    ("random-routers", random_routers),
    ("random-groups", random_groups),
    ("group-round-robin", group_round_robin),
):
    _add(_name, _order)
