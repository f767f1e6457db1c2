"""Check every claim of an allocation on a tree, from the instance inside it alone."""

from __future__ import annotations

from fractions import Fraction

from topoplace.certify.figures import check_figures, check_proven, check_top, fraction_of
from topoplace.certify.report import Claims, RefusedError, Report
from topoplace.certify.tree_machine.boxes import Boxes
from topoplace.certify.tree_machine.choices import least_of_choices
from topoplace.certify.tree_machine.cubes import Cubes
from topoplace.certify.tree_machine.doubling import Doubling
from topoplace.certify.tree_machine.filling import counted, priced
from topoplace.certify.tree_machine.instance import Instance, Wish, read_instance
from topoplace.certify.tree_machine.lines import Lines
from topoplace.certify.tree_machine.relaxed import Relaxed
from topoplace.certify.tree_machine.solution import Starts, check_costs, read_starts
from topoplace.result import Proof
from topoplace.result.tree import (
    AllocationResult,
    AllStartCertificate,
    BoxesCertificate,
    BoxProof,
    CountingCertificate,
    DomainsCertificate,
    DoublingProof,
    LineProof,
    TreeLevel,
)

_LEVELS = (("nodes", "max"), ("cost", "min"))


def check_allocation(result: AllocationResult) -> Report:
    """Check every claim of an allocation (docs/proofs-tree.md).

    Returns
    -------
    Report
        One claim per statement; a result whose instance or solution does not hold is not
        followed further.
    """
    return _Checker(result).report()


class _Checker:
    """The claims of one result."""

    def __init__(self, result: AllocationResult) -> None:
        self._result = result
        self._claims = Claims()

    def report(self) -> Report:
        result = self._result
        instance = self._claims.add("instance", self._instance)
        if instance is None:
            return self._claims.report()
        starts: Starts | None = None
        if result.solution is not None:
            solution = result.solution
            starts = self._claims.add("allocations", lambda: _starts(instance, result))
            if starts is None:
                return self._claims.report()
            known = starts
            self._claims.add("costs", lambda: (True, check_costs(instance, known, solution)))
        self._claims.add("levels", lambda: (True, _levels(result, starts)))
        if self._claims.hold:
            for level in result.levels:
                if level.bound is not None:
                    self._bound(instance, level, starts)
        return self._claims.report()

    def _bound(self, instance: Instance, level: TreeLevel, starts: Starts | None) -> None:
        self._claims.add(
            f"{level.name}.bound",
            lambda: (True, _bound(instance, level, starts)),
            by_search=level.proof is Proof.SEARCH,
        )

    def _instance(self) -> tuple[Instance, str]:
        instance = read_instance(self._result.instance)
        tree = instance.tree
        return instance, f"{tree.num_leaves} leaves, {tree.num_nodes} nodes"


def _starts(instance: Instance, result: AllocationResult) -> tuple[Starts, str]:
    assert result.solution is not None
    starts = read_starts(instance, result.solution)
    nodes = sum(len(nodes) for nodes in starts.nodes.values())
    return starts, f"{len(starts.nodes)} requests start, {nodes} nodes"


def _levels(result: AllocationResult, starts: Starts | None) -> str:
    """Check the levels and the top figures against the solution; return what was found."""
    if [(level.name, level.sense) for level in result.levels] != list(_LEVELS):
        raise RefusedError("the levels are not nodes (max) and cost (min)")
    check_top(result)
    values = (None, None) if starts is None else (Fraction(starts.value), starts.cost)
    found = []
    for level, value in zip(result.levels, values, strict=True):
        try:
            found.append(f"{level.name} {check_figures(level, value, searches=True)}")
        except RefusedError as error:
            raise RefusedError(f"{level.name}: {error}") from None
    return "; ".join(found)


def _bound(instance: Instance, level: TreeLevel, starts: Starts | None) -> str:
    """Check what supports a bound; a search is not repeated."""
    certificate = level.certificate
    if level.name == "cost" and starts is None:
        raise RefusedError("the level before has no objective to hold")
    if (level.proof is Proof.CERTIFICATE) != (certificate is not None):
        raise RefusedError(f"proof is {level.proof.value} beside a certificate")
    if certificate is None:
        return "found by search, not repeated"
    if not isinstance(certificate, BoxesCertificate):
        if level.name != "nodes":
            raise RefusedError("the certificate bounds nodes alone")
        value = None if starts is None else starts.value
        proven, where = _most(instance, certificate)
        return check_proven(level, value, proven, where)
    if level.name != "cost" or starts is None:
        raise RefusedError("the certificate bounds the cost alone")
    return check_proven(level, starts.cost, _alone(instance, certificate, starts))


def _most(
    instance: Instance,
    certificate: AllStartCertificate | CountingCertificate | DomainsCertificate,
) -> tuple[Fraction, str]:
    """Return what a certificate proves of the priority-weighted nodes, and why, for a refusal."""
    if isinstance(certificate, AllStartCertificate):
        return _worth(instance), ", what all requests are worth"
    if isinstance(certificate, CountingCertificate):
        return counted(instance), f", the most that {len(instance.free)} free nodes hold"
    return priced(instance, certificate), ", at the prices of the domains"


def _worth(instance: Instance) -> Fraction:
    """Return what all requests are worth together."""
    return Fraction(sum(wish.value for wish in instance.wishes.values()))


def _alone(instance: Instance, certificate: BoxesCertificate, starts: Starts) -> Fraction:
    """Return the least sum of what requests cost alone, over all choices as good as the solution.

    The others can only add to L_comm. Choices are worth as much and have no more nodes than are
    free; a request without a proof costs nothing.
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
    instance: Instance, wish: Wish, proof: BoxProof | DoublingProof | LineProof, starts: Starts
) -> Fraction:
    """Return what a proof shows that a request costs alone."""
    bound = fraction_of(proof.bound)
    try:
        _follow(Relaxed(instance, wish), wish, proof, bound)
    except RefusedError as error:
        raise RefusedError(f"{wish.id} at {bound}: {error}") from None
    if wish.id in starts.each and bound > starts.each[wish.id]:
        raise RefusedError(
            f"{wish.id} is proven to cost {bound} at least, yet costs {starts.each[wish.id]}: "
            "the evidence contradicts itself"
        )
    return bound


def _follow(
    relaxed: Relaxed, wish: Wish, proof: BoxProof | DoublingProof | LineProof, bound: Fraction
) -> None:
    """Raise `RefusedError` unless a proof shows that a request alone costs no less than a bound."""
    if isinstance(proof, DoublingProof):
        Doubling(relaxed, wish).follow(proof.nogoods, bound)
    elif isinstance(proof, LineProof):
        Lines(relaxed, wish).follow(proof.line_nogoods, bound)
    else:
        if proof.cube_nogoods:
            Cubes(relaxed, wish).follow(proof.cube_nogoods)
        ruled_out = [nogood.at for nogood in proof.cube_nogoods]
        Boxes(relaxed, bound, ruled_out).follow(proof.moves)
