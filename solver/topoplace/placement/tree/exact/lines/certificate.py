"""The nogoods of a search as a certificate states them."""

from __future__ import annotations

from topoplace.placement.tree.exact.lines.proof import Branch, Empty, Proof
from topoplace.placement.tree.exact.lines.search import LineSearch
from topoplace.result.tree import LineBranch, LineEmpty, LineNogood, LinePrices

_MOST_NOGOODS = 3000


def line_nogoods_of(search: LineSearch) -> list[LineNogood] | None:
    """Return what proves the bound of a search; None if it cannot be stated."""
    documents = []
    nogoods = search.nogoods[: search.num_for_bound]
    if len(nogoods) > _MOST_NOGOODS:
        return None
    for nogood in nogoods:
        if nogood.proof is None:
            return None
        documents.append(line_nogood(nogood.at.tolist(), nogood.proof))
    return documents


def line_nogood(at: list[int], proof: Proof) -> LineNogood:
    """Return thresholds by number that are impossible, and why, as a certificate states them."""
    return LineNogood(at=at, proof=_tree(proof))


def _tree(proof: Proof) -> LinePrices | LineEmpty | LineBranch:
    if isinstance(proof, Branch):
        return LineBranch(state=proof.state, without=_tree(proof.without), more=_tree(proof.more))
    if isinstance(proof, Empty):
        return LineEmpty()
    wholes = proof.of_whole.tolist() if proof.of_whole.any() else None
    return LinePrices(
        cells=proof.of_cell.tolist(), segments=proof.of_segment.tolist(), wholes=wholes
    )
