"""The nogoods of a search as a certificate states them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from topoplace.placement.tree.exact.cutting.boxes import Corners
from topoplace.placement.tree.exact.doubling.nogoods import Nogood
from topoplace.placement.tree.exact.doubling.proof import Branch, Proof, num_parts
from topoplace.placement.tree.exact.doubling.search import DoublingSearch
from topoplace.result.tree import (
    DoublingBranch,
    DoublingNogood,
    DoublingShares,
    DoublingSharesNogood,
    DoublingTreeNogood,
)

IntArray = NDArray[np.int64]

_MOST_PARTS = 10_000
"""Of all nogoods and their trees together: what a checker follows in less than half a minute."""


def nogoods_of(search: DoublingSearch) -> list[DoublingNogood] | None:
    """Return what proves the bound of a search, or None if that is too long.

    None as well if only CP-SAT has shown that some thresholds are impossible.
    """
    documents: list[DoublingNogood] = []
    parts = 0
    for nogood in _undominated(search.nogoods):
        parts += 0 if nogood.proof is None else num_parts(nogood.proof)
        if nogood.proof is None or parts > _MOST_PARTS:
            return None
        at, tree = nogood.at.tolist(), tree_document(nogood.proof, search.values)
        if isinstance(tree, DoublingShares):
            documents.append(DoublingSharesNogood(at=at, shares=tree.shares, cuts=tree.cuts))
        else:
            documents.append(DoublingTreeNogood(at=at, proof=tree))
    return documents


def tree_document(proof: Proof, values: IntArray) -> DoublingShares | DoublingBranch:
    """Return a proof as a certificate states it, hops by their numbers in `values`."""
    if isinstance(proof, Branch):
        without, more = (tree_document(side, values) for side in (proof.without, proof.more))
        return DoublingBranch(state=proof.state, without=without, more=more)
    keys = np.searchsorted(values, proof.least)
    cuts = zip(proof.step, keys, proof.senders, proof.receivers, strict=True)
    return DoublingShares(
        shares=proof.shares.tolist(),
        cuts=[(int(n), int(key), int(a), int(b)) for n, key, a, b in cuts],
    )


def _undominated(nogoods: Sequence[Nogood]) -> list[Nogood]:
    """Return the nogoods that lie under no other."""
    if not nogoods:  # cut off before the first one
        return []
    corners = Corners(len(nogoods[0].at))
    for nogood in nogoods:
        corners.add(nogood.at)
    kept = []
    for number, nogood in enumerate(nogoods):
        above = corners.no_less(nogood.at)
        same = (corners.all[above] == nogood.at).all(axis=1)
        if same.all() and above[0] == number:
            kept.append(nogood)
    return kept
