"""Check every claim of an allocation on a tree, from the instance inside it alone."""

from __future__ import annotations

from fractions import Fraction

from topoplace.certify.report import Claims, RefusedError, Report
from topoplace.certify.tree_machine.boxes import Boxes
from topoplace.certify.tree_machine.cubes import Cubes
from topoplace.certify.tree_machine.doubling import Doubling
from topoplace.certify.tree_machine.instance import Instance, read_instance
from topoplace.certify.tree_machine.levels import check_levels, fraction_of
from topoplace.certify.tree_machine.lines import Lines
from topoplace.certify.tree_machine.relaxed import Relaxed
from topoplace.certify.tree_machine.solution import Starts, check_costs, read_starts
from topoplace.result import Proof
from topoplace.result.tree import (
    AllStartCertificate,
    BoxesCertificate,
    DoublingProof,
    LineProof,
    TreeLevel,
    TreeResult,
)


def check_allocation(result: TreeResult) -> Report:
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

    def __init__(self, result: TreeResult) -> None:
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
        self._claims.add("levels", lambda: (True, check_levels(result, starts)))
        if self._claims.hold:
            for level in result.levels:
                if level.bound is not None:
                    self._bound(instance, level)
        return self._claims.report()

    def _bound(self, instance: Instance, level: TreeLevel) -> None:
        by_search = level.proof is Proof.SEARCH
        self._claims.add(
            f"{level.name}.bound", lambda: (True, _bound(instance, level)), by_search=by_search
        )

    def _instance(self) -> tuple[Instance, str]:
        instance = read_instance(self._result.instance)
        tree = instance.tree
        return instance, f"{tree.num_leaves} leaves, {tree.num_nodes} nodes"


def _starts(instance: Instance, result: TreeResult) -> tuple[Starts, str]:
    assert result.solution is not None
    starts = read_starts(instance, result.solution)
    nodes = sum(len(nodes) for nodes in starts.nodes.values())
    return starts, f"{len(starts.nodes)} requests start, {nodes} nodes"


def _bound(instance: Instance, level: TreeLevel) -> str:
    """Check what supports a bound; a search is not repeated."""
    bound, certificate = fraction_of(level.bound), level.certificate
    if (level.proof is Proof.CERTIFICATE) != (certificate is not None):
        raise RefusedError(f"proof is {level.proof.value}, with or without a certificate")
    if certificate is None:
        return "found by search, not repeated"
    if isinstance(certificate, AllStartCertificate):
        if level.name != "nodes":
            raise RefusedError("the certificate bounds nodes alone")
        proven = Fraction(sum(wish.value for wish in instance.wishes.values()))
        if bound < proven:
            raise RefusedError(f"bound is {bound}, all requests are worth {proven}")
        return f"all requests are worth {proven}"
    if level.name != "cost":
        raise RefusedError("the certificate bounds the cost alone")
    proven = _alone(instance, certificate)
    if bound > proven:
        raise RefusedError(f"bound is {bound}, the certificate only proves {proven}")
    return f"the certificate proves {proven}"


def _alone(instance: Instance, certificate: BoxesCertificate) -> Fraction:
    """Return the sum of what the requests cost alone at least.

    The others can only add to L_comm. All requests must be able to start at once, else some
    choice may leave out a request that the certificate counts.
    """
    wanted = sum(wish.nodes for wish in instance.wishes.values())
    leaves = [leaf for leaf, free in enumerate(instance.free_per_leaf) if free]
    all_start = wanted <= len(instance.free) and instance.have_common_switch(leaves)
    if certificate.proofs and not all_start:
        raise RefusedError("the certificate counts requests that need not start")
    names = [proof.request for proof in certificate.proofs]
    if len(set(names)) < len(names):
        raise RefusedError("the certificate counts a request twice")
    total = Fraction(0)
    for proof in certificate.proofs:
        wish = instance.wishes.get(proof.request)
        if wish is None or not wish.patterns:
            raise RefusedError(f"{proof.request} is no request that communicates")
        bound = fraction_of(proof.bound)
        relaxed = Relaxed(instance, wish)
        if isinstance(proof, DoublingProof):
            Doubling(relaxed, wish).follow(proof.nogoods, bound)
        elif isinstance(proof, LineProof):
            Lines(relaxed, wish).follow(proof.line_nogoods, bound)
        else:
            if proof.cube_nogoods:
                Cubes(relaxed, wish).follow(proof.cube_nogoods)
            ruled_out = [nogood.at for nogood in proof.cube_nogoods]
            Boxes(relaxed, bound, ruled_out).follow(proof.moves)
        total += bound
    return total
