"""The nogoods of a search as a certificate states them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from topoplace.placement.tree.exact.doubling.boxes import Corners
from topoplace.placement.tree.exact.doubling.nogoods import Nogood
from topoplace.placement.tree.exact.doubling.search import DoublingSearch
from topoplace.result.tree import DoublingNogood

_MOST_NOGOODS = 3000


def nogoods_of(search: DoublingSearch) -> list[DoublingNogood] | None:
    """Return what proves the bound of a search, or None if that is too long.

    None as well if some thresholds are only impossible in whole numbers of leaves.
    """
    found = _undominated(search.nogoods)
    if len(found) > _MOST_NOGOODS:
        return None
    documents = []
    for nogood in found:
        if nogood.proof is None:
            return None
        proof = nogood.proof
        keys = np.searchsorted(search.values, proof.least)
        cuts = zip(proof.step, keys, proof.senders, proof.receivers, strict=True)
        documents.append(
            DoublingNogood(
                at=nogood.at.tolist(),
                shares=proof.shares.tolist(),
                cuts=[(int(n), int(key), int(a), int(b)) for n, key, a, b in cuts],
            )
        )
    return documents


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
