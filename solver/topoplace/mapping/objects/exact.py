"""All mappings of a few objects, one object after the other (docs/proofs/objects.md)."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from topoplace.mapping.evaluate import hop_bytes, worth_of
from topoplace.mapping.local_search import Branches, Machine, arrays_of, branches_of, homes_of
from topoplace.mapping.mapped import Mapped, outcome_of
from topoplace.mapping.objects._kernels import enumerate_all
from topoplace.mapping.objects.bounds import load_bound
from topoplace.mapping.objects.few_moves import searched
from topoplace.mapping.problem import MappingProblem
from topoplace.result.mapping import ENUMERATION_WORK, EnumerationCertificate
from topoplace.solving import Bound, Options, Outcome
from topoplace.types import BoolArray, IntArray

MOST_OBJECTS, MOST_CELLS = 24, 256
"""Larger problems are not enumerated."""


class Few(NamedTuple):
    """A small problem: distances of cells, bytes of objects, and which may go where."""

    machine: Machine
    hops: IntArray
    bytes: IntArray
    trees: Branches
    routers: IntArray
    goals: BoolArray
    order: IntArray
    stay: IntArray
    moves: int


def enumerated(problem: MappingProblem, options: Options) -> Outcome:
    """Return the best mapping of a few objects, with proof; for more objects, that of `search`.

    First the fewest hop-bytes, then among those the least largest load. Each is proven by an
    enumeration that the checker repeats, if it takes no more than `ENUMERATION_WORK`.
    """
    found = searched(problem, options)
    if not is_few(problem):
        return found
    few = few_of(problem)
    options.say("enumeration")
    nodes = None if found.solution is None else found.solution.nodes
    hops = None if nodes is None else hop_bytes(problem, nodes)
    better, bound = fewest_hops(problem, few, hops)
    nodes = nodes if better is None else problem.nodes_of(better)
    if nodes is None or bound is None:
        return outcome_of(nodes, hit=found.time_limit_hit, bound=bound)
    if problem.instance.cap is None:
        return outcome_of(nodes, bound=bound)
    options.report(Mapped(nodes), worth_of(problem, nodes), [bound, load_bound(problem)])
    nodes, load = least_load(problem, few, nodes)
    return replace(outcome_of(nodes), bounds=(bound, load))


def is_few(problem: MappingProblem) -> bool:
    """Return whether all mappings may be gone through."""
    return problem.num_tasks <= MOST_OBJECTS and len(problem.pools.room) <= MOST_CELLS


def few_of(problem: MappingProblem) -> Few:
    """Return the tables of a small problem.

    On a torus of equal routers, the first object stays on the first router, unless moves are
    limited. Without a limit all may move, from nowhere.
    """
    routers, num = problem.pools.router, problem.num_tasks
    bytes_ = problem.graph.exchanged.matrix(num)
    home = homes_of(problem)
    goals = (home[:, None] < 0) | (home[:, None] == np.arange(len(routers)))
    order = order_of(problem.guide.matrix(num), problem.loads, problem.fixed)
    machine, before = problem.machine, problem.before
    stay, moves = np.full(num, -1, dtype=np.int64), num
    alike = machine.is_transitive and len(np.unique(problem.room)) == 1
    if problem.instance.moves is not None and before is not None:
        stay, moves = problem.pools_of(before), min(num, problem.instance.moves.most)
    elif alike and not problem.fixed.any():
        goals[order[0]] &= routers == routers[0]
    hops = machine.hops(routers[:, None], routers[None, :])
    sent = arrays_of(problem), hops, bytes_, branches_of(problem)
    return Few(*sent, routers, goals, order, stay, moves)


def order_of(bytes_: IntArray, loads: IntArray, fixed: BoolArray) -> IntArray:
    """Return fixed objects, then always the one with most bytes to those before it."""
    order: list[int] = np.flatnonzero(fixed).tolist()
    while len(order) < len(loads):
        rest = [one for one in range(len(loads)) if one not in order]
        pull = bytes_[:, order].sum(axis=1)
        order.append(max(rest, key=lambda one: (pull[one], bytes_[one].sum(), loads[one], -one)))
    return np.array(order, dtype=np.int64)


def run(
    problem: MappingProblem, few: Few, room: IntArray, limit: int, *, stop: bool
) -> tuple[IntArray | None, int, int]:
    """Return the mapping of fewest hop-bytes below a limit, its value, and the steps taken."""
    found = np.full(problem.num_tasks, -1, dtype=np.int64)
    most = ENUMERATION_WORK // few.goals.size**2
    way = few.goals, few.order, few.stay, few.moves
    own = problem.loads, room, *way, limit, most, stop, found
    best, steps = enumerate_all(few.machine, few.hops, few.bytes, few.trees, few.routers, *own)
    return (found if found[0] >= 0 else None), int(best), int(steps)


def fewest_hops(
    problem: MappingProblem, few: Few, known: int | None
) -> tuple[IntArray | None, Bound | None]:
    """Return a mapping better than a known one, and the bound if the enumeration is complete."""
    limit = 1 << 62 if known is None else known
    room = problem.pools.room.astype(np.int64)
    better, best, steps = run(problem, few, room, limit, stop=False)
    if steps < 0 or (better is None and known is None):
        return better, None
    return better, Bound(best, EnumerationCertificate(order=few.order.tolist()))


def least_load(problem: MappingProblem, few: Few, nodes: IntArray) -> tuple[IntArray, Bound | None]:
    """Return a mapping as short as a known one with the least largest load, and the bound."""
    while True:
        hops, load = worth_of(problem, nodes)
        room = np.minimum(problem.pools.room, (load - 1) * problem.pools.width)
        better, _, steps = run(problem, few, room, hops + 1, stop=True)
        if better is None:
            proof = EnumerationCertificate(order=few.order.tolist())
            return nodes, Bound(load, proof) if steps >= 0 else None
        nodes = problem.nodes_of(better)
