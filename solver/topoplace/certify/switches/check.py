"""The claims of an allocation on a tree (docs/proofs/tree.md)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from topoplace.certify.candidates import candidates
from topoplace.certify.hierarchy.instance import Asked, Instance, read_instance
from topoplace.certify.packing import Packings
from topoplace.certify.report import Claims, Number, RefusedError, fraction_of, require_none
from topoplace.certify.switches.costs import cost_of
from topoplace.certify.switches.nogoods import Nogoods
from topoplace.certify.switches.relaxed import Relaxed
from topoplace.certify.switches.starts import StartOracle, least_of_choices, oracle_of
from topoplace.errors import number_of
from topoplace.result.tree import (
    AllocationResult,
    ThresholdProof,
    ThresholdsCertificate,
    TreeSolution,
)
from topoplace.snapshot.schema import BY_SETS, ON_HIERARCHIES, ON_TORI, TreeModel


@dataclass(frozen=True)
class Starts:
    """Requests that start, with the host of every rank, and their value.

    `cost` is the total by eq. (6) in the state in which all of them run, `each` that of a request.
    """

    hosts: dict[str, list[int]]
    value: int
    cost: Fraction
    each: dict[str, Fraction]


def read_starts(instance: Instance, solution: TreeSolution) -> Starts:
    """Return the requests that start, after checking their nodes."""
    by_id = {asked.id: asked for asked in instance.queue}
    numbers, leaf_of = instance.numbers, instance.machine.leaf_of
    hosts: dict[str, list[int]] = {}
    taken: set[str] = set()
    comm = list(instance.comm)
    for allocation in solution.allocations:
        name, nodes = allocation.request, allocation.nodes
        if name in hosts:
            raise RefusedError(f"{name} is started twice")
        if name not in by_id:
            raise RefusedError(f"{name} is no request of the queue")
        if len(nodes) != by_id[name].nodes:
            found, wanted = number_of(len(nodes), "node"), by_id[name].nodes
            raise RefusedError(f"{name} has {found} and wants {wanted}")
        if len(set(nodes)) < len(nodes):
            raise RefusedError(f"{name} has a node twice")
        for node in nodes:
            if node not in numbers or not instance.free[numbers[node]][0]:
                raise RefusedError(f"{name} may not use node {node}")
        if taken & set(nodes):
            raise RefusedError(f"{name} takes a node of another request")
        taken |= set(nodes)
        hosts[name] = [numbers[node] for node in nodes]
        if len({*instance.machine.above_leaves[0][leaf_of[hosts[name]]].tolist()}) > 1:
            raise RefusedError(f"{name} has nodes without a common switch")
        for host in hosts[name] if by_id[name].patterns else ():
            comm[leaf_of[host]] += 1
    each = {name: cost_of(instance, comm, by_id[name], own) for name, own in hosts.items()}
    value = sum(by_id[name].value for name in hosts)
    return Starts(hosts, value, sum(each.values(), Fraction(0)), each)


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
        snapshot = self.result.instance
        snapshot.on(TreeModel, "a switch tree")
        for request in candidates(snapshot):
            require_none(request, *ON_HIERARCHIES, *ON_TORI, *BY_SETS)
        self._instance = read_instance(snapshot)
        if self._instance.free_domains is not None:
            raise RefusedError("free domains count, and contention does")
        machine = self._instance.machine
        return f"{number_of(machine.num_leaves, 'leaf')}, {number_of(machine.num_nodes, 'node')}"

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
    nodes = sum(len(hosts) for hosts in starts.hosts.values())
    return f"{number_of(len(starts.hosts), 'request')} placed, {number_of(nodes, 'node')}"


def _alone(instance: Instance, certificate: ThresholdsCertificate, starts: Starts) -> Fraction:
    """Return the least sum of what requests cost alone, over all choices as good as the solution.

    The others can only add to L_comm. Choices have the same value and no more nodes than are free;
    a request without a proof costs nothing.
    """
    bounds: dict[str, Fraction] = {}
    by_id = {asked.id: asked for asked in instance.queue}
    for proof in certificate.proofs:
        asked = by_id.get(proof.request)
        if proof.request in bounds:
            raise RefusedError("the certificate counts a request twice")
        if asked is None or not asked.patterns:
            raise RefusedError(f"{proof.request} is no request that communicates")
        bounds[proof.request] = _proven_alone(instance, asked, proof, starts)
    return least_of_choices(instance, bounds, starts.value)


def _proven_alone(
    instance: Instance, asked: Asked, proof: ThresholdProof, starts: Starts
) -> Fraction:
    """Return what a proof shows that a request costs alone."""
    bound = fraction_of(proof.bound)
    try:
        Nogoods(Relaxed(instance, asked), asked).follow(proof.nogoods, bound)
    except RefusedError as error:
        raise RefusedError(f"{asked.id} at {bound}: {error}") from None
    if asked.id in starts.each and bound > starts.each[asked.id]:
        raise RefusedError(
            f"{asked.id} is proven to cost {bound} at least, yet costs {starts.each[asked.id]}: "
            "the evidence contradicts itself"
        )
    return bound
