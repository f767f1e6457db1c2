"""From multipliers in floating point to a certificate of integers, and what that proves."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from topoplace.bounds.distance_classes.relaxation import Multipliers
from topoplace.bounds.distance_classes.scheme import Scheme
from topoplace.mapping.graph import IntArray
from topoplace.result.mapping import DistanceClassesCertificate

Exact = NDArray[np.object_]

BITS = 26
"""Digits of the largest entry of a factor: its square, added up over places, fits 64 bits."""

DROPPED = 1e-13
"""Eigenvalues this small against the largest are rounding errors."""


def certificate_of(
    scheme: Scheme, routers: IntArray, found: Multipliers
) -> DistanceClassesCertificate:
    """Return the multipliers as integers (docs/proofs-graphs.md, "Distance classes").

    Any integers prove something; these prove what the multipliers do but for rounding.
    """
    filters = scheme.filters()
    squares = [_square(scheme, f) for f in filters]
    gains = np.array([sum(q[:2]) for q in squares]) / scheme.place_eigenvalues[0, 1:]
    roots = np.sqrt(2 * found.strengths / gains[:, None])
    highest = float(np.abs(found.directions * roots[:, None, :]).max(initial=0))
    scale = max(1, int((2**BITS / highest) ** 2)) if highest else 1
    shown = found.strengths > DROPPED * found.strengths.max(initial=0)
    factors = [
        np.round(vectors[:, kept] * root[kept] * scale**0.5).astype(np.int64).T.tolist()
        for vectors, root, kept in zip(found.directions, roots, shown, strict=True)
    ]
    # the row of the place itself multiplies a constant: leave it out
    rows = found.rows[0 if scheme.per_router == 1 else 1 :]
    return DistanceClassesCertificate(
        shape=list(scheme.shape),
        routers=routers.tolist(),
        classes=scheme.classes.tolist(),
        scale=scale,
        filters=filters,
        factors=factors,
        rows=[[round(2 * scale * x) for x in row] for row in rows.tolist()],
    )


def _square(scheme: Scheme, values: list[int]) -> list[int]:
    """Return a filter's square, the filter as a circulant of routers with all their places.

    ``own I + B x J`` squared is ``own^2 I + (2 own B + places B^2) x J``.
    """
    own, classes = values[0], np.array(values[1:], dtype=object)
    shape, c = scheme.shape, scheme.per_router
    table = classes[scheme.classes].reshape(shape)
    squared = np.zeros(shape, dtype=object)
    for shift in itertools.product(*map(range, shape)):
        squared += table[shift] * np.roll(table, shift, axis=tuple(range(len(shape))))
    first = np.unique(scheme.classes, return_index=True)[1]
    routers = 2 * own * classes + c * squared.ravel()[first]
    return [own * own, *routers.tolist()]


def proven(scheme: Scheme, exchanged: IntArray, certificate: DistanceClassesCertificate) -> int:
    """Return what a certificate proves of twice `scale` times the hop-bytes, exactly."""
    c, n = scheme.per_router, scheme.num_places
    upper = np.triu_indices(n, 1)
    squares = [_square(scheme, f) for f in certificate.filters]
    total: int = 0
    grams = []
    for square, factor in zip(squares, certificate.factors, strict=True):
        columns = np.array(factor, dtype=np.int64).reshape(-1, n)
        gram = (columns.T @ columns).astype(object)
        total -= (square[0] + square[1]) * gram.trace()
        grams.append(gram[upper])
    least: Exact | None = None
    for d in range(len(scheme.hops)):
        rows = np.array(certificate.rows[d], dtype=object)
        sums = int(rows.sum())
        total += 2 * c * int(scheme.valencies[d]) * sums
        if d == 0:
            total -= 2 * sums
            if c == 1:
                continue
        weights = exchanged[upper].astype(object) * (certificate.scale * int(scheme.hops[d]))
        weights -= rows[upper[0]] + rows[upper[1]]
        for square, gram in zip(squares, grams, strict=True):
            if square[1 + d]:
                weights -= square[1 + d] * gram
        least = weights if least is None else np.minimum(least, weights)
    return total if least is None else total + 2 * int(least.sum())
