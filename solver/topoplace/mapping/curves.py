"""Hilbert's curve in any dimension (Skilling 2004, "Programming the Hilbert curve")."""

from __future__ import annotations

import numpy as np

from topoplace.mapping.graph import IntArray


def hilbert_order(coordinates: IntArray) -> IntArray:
    """Return points in the order in which Hilbert's curve visits them.

    Parameters
    ----------
    coordinates
        Not negative, shape ``(num_points, num_dims)``. The curve is that of the smallest cube
        with sides 2^k that holds all points; on a full cube each step is one hop.
    """
    if not coordinates.size:
        return np.arange(len(coordinates))
    bits = int(coordinates.max()).bit_length()
    words = _transposed(coordinates.T.copy(), bits)
    # the index reads bit after bit over all words, the highest first; lexsort's last key leads
    planes = [word >> bit & 1 for bit in range(bits) for word in words[::-1]]
    return np.lexsort(planes) if planes else np.arange(len(coordinates))


def _transposed(words: IntArray, bits: int) -> IntArray:
    """Turn coordinates (one row per dimension) into Hilbert indices in transposed form."""
    num_dims = len(words)
    for bit in range(bits - 1, 0, -1):
        low = (1 << bit) - 1
        for d in range(num_dims):
            inverts = (words[d] >> bit & 1).astype(bool)
            swapped = np.where(inverts, 0, (words[0] ^ words[d]) & low)
            words[0] = np.where(inverts, words[0] ^ low, words[0] ^ swapped)
            words[d] ^= swapped
    for d in range(1, num_dims):
        words[d] ^= words[d - 1]
    turned = np.zeros_like(words[0])
    for bit in range(bits - 1, 0, -1):
        turned ^= np.where(words[-1] >> bit & 1, (1 << bit) - 1, 0)
    words ^= turned
    return words
