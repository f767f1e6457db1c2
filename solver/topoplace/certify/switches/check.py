"""The claims of an allocation on a tree (docs/proofs/tree.md)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from topoplace.certify.packing import Packings
from topoplace.certify.report import Claims, Number, RefusedError, fraction_of
from topoplace.certify.switches.instance import Instance, Wish, cost_of, read_instance
from topoplace.certify.switches.nogoods import Nogoods
from topoplace.certify.switches.relaxed import Relaxed
from topoplace.certify.switches.starts import StartOracle, least_of_choices, oracle_of
from topoplace.errors import number_of
from topoplace.result.tree import (
    Allocation,
    AllocationResult,
    ThresholdProof,
    ThresholdsCertificate,
    TreeSolution,
)


@dataclass(frozen=True)
class Starts:
    """Requests that start: the node of every rank, by request, and their value.

    `cost` is the total by eq. (6) in the state in which all of them run, `each` that of a request.
    """

    nodes: dict[str, list[str]]
    value: int
    cost: Fraction
    each: dict[str, Fraction]


def read_starts(instance: Instance, solution: TreeSolution) -> Starts:
    """Return the requests that start, after checking their nodes."""
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
        raise RefusedError(f"{name} has {number_of(len(nodes), 'node')} and wants {wish.nodes}")
    if len(set(nodes)) < len(nodes):
        raise RefusedError(f"{name} has a node twice")
    for node in nodes:
        if node not in instance.free:
            raise RefusedError(f"{name} may not use node {node}")
    if not instance.have_common_switch(instance.leaf_of[n] for n in nodes):
        raise RefusedError(f"{name} has nodes without a common switch")


def check_costs(starts: Starts, solution: TreeSolution) -> str:
    """Raise unless every cost is as stated; return what was found."""
    for allocation in solution.allocations:
        stated, found = fraction_of(allocation.cost), starts.each[allocation.request]
        if stated != found:
            raise RefusedError(f"{allocation.request} costs {found}, not {stated}")
    if fraction_of(solution.cost) != starts.cost:
        raise RefusedError(f"the total cost is {starts.cost}, not {fraction_of(solution.cost)}")
    return f"total cost {starts.cost}"


class TreeAllocation(Packings[AllocationResult]):
    """An allocation, as the frame asks for it."""

    levels = (("nodes", "max"), ("cost", "min"))
    searches = "alone"
    _instance: Instance
    _starts: Starts | None = None

    def read(self) -> str:
        """Read the instance and return what it is."""
        self._instance = read_instance(self.result.instance)
        tree = self._instance.tree
        return f"{number_of(tree.num_leaves, 'leaf')}, {number_of(tree.num_nodes, 'node')}"

    def follow(self, claims: Claims) -> bool:
        """Add the claims about the solution."""
        solution = self.result.solution
        if solution is None:
            return True
        starts = claims.add("allocations", lambda: read_starts(self._instance, solution), _counts)
        if starts is not None:
            self._starts = starts
            self.values = Fraction(starts.value), starts.cost
            claims.add("costs", lambda: check_costs(starts, solution))
        return starts is not None

    @cached_property
    def oracle(self) -> StartOracle:
        """The oracle of the first level."""
        return oracle_of(self._instance)

    def bound(self, level_idx: int) -> tuple[Number, str]:
        """Return what the certificate of a level proves, and where."""
        certificate = self.result.levels[level_idx].certificate
        is_cost = isinstance(certificate, ThresholdsCertificate)
        if is_cost != (level_idx == 1):
            raise RefusedError(f"the certificate bounds {'the cost' if is_cost else 'nodes'} alone")
        if not isinstance(certificate, ThresholdsCertificate):
            return self.proven(level_idx, certificate, [])
        if self._starts is None:
            raise RefusedError("a bound of the cost without a solution")
        return _alone(self._instance, certificate, self._starts), ""


def _counts(starts: Starts) -> str:
    nodes = sum(len(nodes) for nodes in starts.nodes.values())
    return f"{number_of(len(starts.nodes), 'request')} placed, {number_of(nodes, 'node')}"


def _alone(instance: Instance, certificate: ThresholdsCertificate, starts: Starts) -> Fraction:
    """Return the least sum of what requests cost alone, over all choices as good as the solution.

    The others can only add to L_comm. Choices have the same value and no more nodes than are free;
    a request without a proof costs nothing.
    """
    bounds: dict[str, Fraction] = {}
    for proof in certificate.proofs:
        wish = instance.wishes.get(proof.request)
        if proof.request in bounds:
            raise RefusedError("the certificate counts a request twice")
        if wish is None or not wish.patterns:
            raise RefusedError(f"{proof.request} is no request that communicates")
        bounds[proof.request] = _proven_alone(instance, wish, proof, starts)
    return least_of_choices(instance, bounds, starts.value)


def _proven_alone(
    instance: Instance, wish: Wish, proof: ThresholdProof, starts: Starts
) -> Fraction:
    """Return what a proof shows that a request costs alone."""
    bound = fraction_of(proof.bound)
    try:
        Nogoods(Relaxed(instance, wish), wish).follow(proof.nogoods, bound)
    except RefusedError as error:
        raise RefusedError(f"{wish.id} at {bound}: {error}") from None
    if wish.id in starts.each and bound > starts.each[wish.id]:
        raise RefusedError(
            f"{wish.id} is proven to cost {bound} at least, yet costs {starts.each[wish.id]}: "
            "the evidence contradicts itself"
        )
    return bound
