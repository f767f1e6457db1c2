"""Requests in turn: in few groups, or along orders of nodes that are used in practice.

A request waits if there are too few nodes that it may have, if it has rules about groups and
routers, or if it would share global links with others under the strict rule.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial

import numpy as np

from topoplace.machine.dragonfly import Dragonfly
from topoplace.placement.dragonfly.problem import DragonflyProblem
from topoplace.placement.hierarchy.heuristics.fits import best_split
from topoplace.placement.hierarchy.heuristics.queue import asks_only
from topoplace.placement.hierarchy.problem import Placed, Started
from topoplace.solving import Options, Outcome, register
from topoplace.types import BoolArray, IntArray

MOST_TRIED = 12  # groups from which few groups are tried


def along(machine: Dragonfly, name: str, rng: np.random.Generator) -> IntArray:
    """Return all nodes in an order."""
    nodes = np.arange(machine.num_nodes)
    if name == "group-round-robin":
        return nodes.reshape(machine.num_groups, -1).T.ravel()
    parts = {"random-groups": machine.num_groups, "random-routers": machine.num_routers}
    parted = nodes.reshape(parts.get(name, 1), -1)
    return parted[rng.permutation(len(parted))].ravel()


def few_groups(machine: Dragonfly, may: BoolArray, taken: BoolArray, num: int) -> IntArray | None:
    """Return nodes of one group, the fullest that has enough; or else of few groups.

    These are tried from each of the emptiest groups on: next come the emptiest ones of which links
    to all before are free, and last the fullest one that has the rest. In a group, routers are
    filled up, the emptiest first. None if there are not enough.

    Parameters
    ----------
    may, taken
        The nodes that may be had, and the pairs of groups whose links may not.
    """
    nodes = may.reshape(machine.num_groups, machine.per_group, -1)
    free = nodes.sum(axis=(1, 2))
    best, tried = None, 1 if free.max() >= num else MOST_TRIED
    for first in np.argsort(-free, kind="stable")[:tried].tolist():
        found, left, open_to_all = list[int](), num, free > 0
        while left > 0 and open_to_all.any():
            enough = np.flatnonzero(open_to_all & (free >= left))
            group = int(np.where(open_to_all, free, 0).argmax()) if found else first
            if len(enough):
                group = int(enough[free[enough].argmin()])
            found.append(group)
            left -= int(free[group])
            open_to_all = open_to_all & ~taken[group]
            open_to_all[group] = False
        if left <= 0 and (best is None or len(found) < len(best)):
            best = found
    if best is None:
        return None
    chosen, left = [], num
    for group in best:
        rooms = nodes[group].sum(axis=1)
        share = best_split(rooms, min(left, int(free[group])), 1)
        left -= int(share.sum())
        inside = nodes[group] & (nodes[group].cumsum(axis=1) <= share[:, None])
        chosen.append(np.flatnonzero(inside) + group * inside.size)
    return np.concatenate(chosen)


Choice = Callable[[BoolArray, BoolArray, int], IntArray | None]
"""Returns nodes, called with those that may be had, the pairs of groups in use, and how many."""


def served(problem: DragonflyProblem, queue: Iterable[int], choose: Choice) -> Started:
    """Return what starts if requests are served in an order, each with the nodes of a choice."""
    state, machine = problem.dragonfly, problem.dragonfly.machine
    left, taken = state.free.copy(), state.taken_pairs.copy()
    started: dict[int, Placed] = {}
    for idx in queue:
        request = problem.requests[idx]
        part, strict = request.parts[0], problem.uses_links(request)
        if not asks_only(request) or part.at_most or part.balance is not None or request.others:
            continue
        may = left if part.eligible is None else left & part.eligible.mask[state.host_of]
        if may.sum() < request.nodes:
            continue
        nodes = choose(may, taken if strict else np.zeros_like(taken), request.nodes)
        if nodes is None:
            continue
        groups = machine.groups_of(nodes)
        if strict:
            if any(taken[pair] for pair in itertools.combinations(groups.tolist(), 2)):
                continue
            taken[np.ix_(groups, groups)] = True
        left[nodes] = False
        started[idx] = (Counter(state.host_of[nodes].tolist()),)
    return started


def by_priority(problem: DragonflyProblem) -> Started:
    """Return what starts in few groups, the most value per node first, then the largest."""
    each = [(-one.value / one.nodes, -one.nodes) for one in problem.requests]
    order = sorted(range(len(each)), key=each.__getitem__)
    return served(problem, order, partial(few_groups, problem.dragonfly.machine))


def _placed(name: str, problem: DragonflyProblem, options: Options) -> Outcome:
    machine, every = problem.dragonfly.machine, range(len(problem.requests))
    if name == "few-groups":
        return Outcome(served(problem, every, partial(few_groups, machine)))
    nodes = along(machine, name, np.random.default_rng(options.seed))
    return Outcome(served(problem, every, lambda may, taken, num: nodes[may[nodes]][:num]))


for _name in ("few-groups", "contiguous", "random-routers", "random-groups", "group-round-robin"):
    register("dragonfly", _name)(partial(_placed, _name))
