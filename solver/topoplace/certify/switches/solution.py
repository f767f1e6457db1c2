"""Whether a solution is an allocation, what it costs, and what may start besides."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from topoplace.certify.figures import fraction_of
from topoplace.certify.integers import require_room
from topoplace.certify.report import RefusedError
from topoplace.certify.switches.costs import cost_of
from topoplace.certify.switches.instance import Instance
from topoplace.result.tree import Allocation, TreeSolution

MOST_STATES = 1 << 21
"""Pairs of nodes and value that are followed, over all requests: some seconds of work."""


@dataclass(frozen=True)
class Starts:
    """Requests that start.

    Attributes
    ----------
    nodes
        The node of every rank, by request.
    value
        Priority-weighted nodes.
    cost
        Total cost by eq. (6) in the state in which all of them run.
    each
        Cost by request.
    """

    nodes: dict[str, list[str]]
    value: int
    cost: Fraction
    each: dict[str, Fraction]


def read_starts(instance: Instance, solution: TreeSolution) -> Starts:
    """Return the requests that start, after checking their nodes.

    Raises
    ------
    RefusedError
        For an unknown request, a wrong number of nodes, or a node that is not free for it.
    """
    nodes: dict[str, list[str]] = {}
    taken: set[str] = set()
    for allocation in solution.allocations:
        if allocation.request in nodes:
            raise RefusedError(f"{allocation.request} is started twice")
        _check(instance, allocation)
        if taken & set(allocation.nodes):
            raise RefusedError(f"{allocation.request} takes a node of another request")
        taken |= set(allocation.nodes)
        nodes[allocation.request] = list(allocation.nodes)
    comm = list(instance.comm)
    for name, own in nodes.items():
        for node in own if instance.wishes[name].patterns else ():
            comm[instance.leaf_of[node]] += 1
    each = {
        name: cost_of(instance, comm, instance.wishes[name], own) for name, own in nodes.items()
    }
    value = sum(instance.wishes[name].value for name in nodes)
    return Starts(nodes, value, sum(each.values(), Fraction(0)), each)


def _check(instance: Instance, allocation: Allocation) -> None:
    name, nodes = allocation.request, allocation.nodes
    if name not in instance.wishes:
        raise RefusedError(f"{name} is no request of the queue")
    wish = instance.wishes[name]
    if len(nodes) != wish.nodes:
        raise RefusedError(f"{name} has {len(nodes)} nodes and wants {wish.nodes}")
    if len(set(nodes)) < len(nodes):
        raise RefusedError(f"{name} has a node twice")
    for node in nodes:
        if node not in instance.free:
            raise RefusedError(f"{name} may not use node {node}")
    if wish.patterns and not instance.have_common_switch(instance.leaf_of[n] for n in nodes):
        raise RefusedError(f"{name} has nodes without a common switch")


def check_costs(starts: Starts, solution: TreeSolution) -> str:
    """Raise `RefusedError` unless every cost is as stated; return what was found."""
    for allocation in solution.allocations:
        stated, found = fraction_of(allocation.cost), starts.each[allocation.request]
        if stated != found:
            raise RefusedError(f"{allocation.request} costs {found}, not {stated}")
    if fraction_of(solution.cost) != starts.cost:
        raise RefusedError(f"the total cost is {starts.cost}, not {fraction_of(solution.cost)}")
    return f"total cost {starts.cost}"


def least_of_choices(instance: Instance, bounds: Mapping[str, Fraction], worth: int) -> Fraction:
    """Return the least sum of bounds over all choices of requests that are worth enough.

    Parameters
    ----------
    bounds
        What requests cost at least; those that are absent, nothing.
    worth
        The least value of a choice. It has no more nodes than are free.

    Raises
    ------
    RefusedError
        If the choices are too many to be followed, or there are none.
    """
    scale = math.lcm(*(bound.denominator for bound in bounds.values()))
    wishes = instance.wishes.values()
    room, rest = len(instance.free), sum(wish.value for wish in wishes)
    # By nodes and value of those chosen so far, the least cost; value beyond `worth` is cut off.
    best = {(0, 0): 0}
    followed = 0
    for wish in wishes:
        rest -= wish.value
        cost = int(bounds.get(wish.id, Fraction(0)) * scale)
        found: dict[tuple[int, int], int] = {}
        for (nodes, value), total in best.items():
            more = (nodes + wish.nodes, min(worth, value + wish.value))
            for state, sum_of in (((nodes, value), total), (more, total + cost)):
                if state[0] <= room and state[1] + rest >= worth:
                    found[state] = min(sum_of, found.get(state, sum_of))
        best = found
        followed += len(best)
        require_room(followed, "choices of requests", MOST_STATES)
    if not best:
        raise RefusedError(f"no choice of requests that fits is worth {worth}")
    return Fraction(min(best.values()), scale)
