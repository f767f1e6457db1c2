"""Whether a solution is an allocation, and what it costs."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from topoplace.certify.figures import fraction_of
from topoplace.certify.report import RefusedError
from topoplace.certify.tree_machine.cost import cost_of
from topoplace.certify.tree_machine.instance import Instance
from topoplace.result.tree import Allocation, TreeSolution


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
