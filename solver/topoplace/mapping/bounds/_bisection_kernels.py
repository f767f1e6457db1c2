"""Kernels of the relaxation of bisection: vectors turned one by one, and triangle inequalities."""

from __future__ import annotations

import math

import numpy as np

from topoplace.kernels import kernel

# mypy: allow-untyped-defs, allow-untyped-calls
# Compiled for the array types it is called with; annotations would be noise.


@kernel()
def mix(first, other, weight, loads, balance, vectors, sums, sweeps):
    """Turn each unit vector to where it is best, the others held (Wang and others 2017).

    Minimised is ``v' (L + balance l l') v``; `sums` is the sum of loads times vectors.
    """
    num, rank = vectors.shape
    pull = np.empty(rank)
    for _ in range(sweeps):
        for one in range(num):
            for d in range(rank):
                pull[d] = -balance * loads[one] * (sums[d] - loads[one] * vectors[one, d])
            for e in range(first[one], first[one + 1]):
                for d in range(rank):
                    pull[d] += weight[e] * vectors[other[e], d]
            norm = 0.0
            for d in range(rank):
                norm += pull[d] * pull[d]
            if norm <= 1e-30:
                continue
            norm = math.sqrt(norm)
            for d in range(rank):
                new = pull[d] / norm
                sums[d] += loads[one] * (new - vectors[one, d])
                vectors[one, d] = new


@kernel()
def gap_of(vectors, m, a, b):
    """Return by how much the ends of a triangle are farther apart than by way of its middle."""
    gap = -1.0
    for d in range(vectors.shape[1]):
        x, y, z = vectors[m, d], vectors[a, d], vectors[b, d]
        gap += x * y + x * z - y * z
    return 2.0 * gap


@kernel()
def gaps(vectors, corners):
    """Return the gaps of triangles between unit vectors; they are positive where violated."""
    found = np.empty(len(corners))
    for t in range(len(corners)):
        found[t] = gap_of(vectors, corners[t, 0], corners[t, 1], corners[t, 2])
    return found


@kernel()
def violated(first, other, vectors, least, corners, gap):
    """List triangles with a gap above `least`, their ends partners of their middle.

    Returns how many there are; those beyond the length of `corners` are not listed.
    """
    count = 0
    for m in range(len(first) - 1):
        for e in range(first[m], first[m + 1]):
            a = other[e]
            for f in range(e + 1, first[m + 1]):
                b = other[f]
                found = gap_of(vectors, m, a, b)
                if found > least:
                    if count < len(corners):
                        corners[count, 0], corners[count, 1], corners[count, 2] = m, a, b
                        gap[count] = found
                    count += 1
    return count
