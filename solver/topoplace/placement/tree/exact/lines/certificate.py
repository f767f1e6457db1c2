"""The nogoods of a search as a certificate states them."""

from __future__ import annotations

from topoplace.placement.tree.exact.lines.proof import Branch, Empty, Proof, has_wholes
from topoplace.placement.tree.exact.lines.search import LineSearch
from topoplace.result.tree import LineBranch, LineEmpty, LineNogood, LinePrices


def line_nogoods_of(search: LineSearch) -> list[LineNogood] | None:
    """Return what proves the bound of a search; None if it cannot be stated."""
    documents = []
    for nogood in search.nogoods[: search.num_for_bound]:
        if nogood.proof is None or has_wholes(nogood.proof):
            return None
        documents.append(LineNogood(at=nogood.at.tolist(), proof=_tree(nogood.proof)))
    return documents


def _tree(proof: Proof) -> LinePrices | LineEmpty | LineBranch:
    if isinstance(proof, Branch):
        return LineBranch(state=proof.state, without=_tree(proof.without), more=_tree(proof.more))
    if isinstance(proof, Empty):
        return LineEmpty()
    return LinePrices(cells=proof.of_cell.tolist(), segments=proof.of_segment.tolist())
