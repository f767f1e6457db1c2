"""What a certificate of distance classes proves (docs/proofs-graphs.md, "Distance classes").

Everything is recomputed in integers of any size. That the classes form an association scheme is
neither assumed nor needed: classes are symmetric sets of coordinate differences, and the square of
every filter must be constant on them.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topoplace.certify.integers import ROOM, IntArray
from topoplace.certify.mapping.instance import Instance, mutual_volumes
from topoplace.certify.report import RefusedError
from topoplace.machine import Torus
from topoplace.result.mapping import DistanceClassesCertificate

Exact = NDArray[np.object_]

MOST_PLACES = 1 << 10
"""Larger certificates are refused before anything is multiplied."""

MOST_FACTORS = 1 << 30


@dataclass(frozen=True)
class _Space:
    """A positive semidefinite matrix of tasks, and what it is multiplied with.

    Attributes
    ----------
    own, per_class
        The square of the filter: ``own I + sum of per_class[d] (A_d x J)``.
    gram
        The sum of the outer products of the factors, shape ``(places, places)``.
    """

    own: int
    per_class: list[int]
    gram: Exact


def distance_classes_value(instance: Instance, certificate: DistanceClassesCertificate) -> int:
    """Return the hop-bytes that a certificate of distance classes proves of any mapping."""
    host, room = _host(instance, certificate), int(instance.capacity.max())
    classes = np.asarray(certificate.classes, dtype=np.int64)
    num = _check_classes(host, classes)
    places = host.num_routers * room
    if places > MOST_PLACES:
        raise RefusedError(f"{places} places, at most {MOST_PLACES} are checked")
    rows = np.array(certificate.rows, dtype=object)
    if rows.shape != (num, places):
        raise RefusedError(f"rows are not {num} lists of {places}")
    spaces = _spaces(host, classes, room, certificate)
    costs = _costs(instance, host, np.asarray(certificate.routers), classes)
    volumes = mutual_volumes(instance)
    between = np.zeros((places, places), dtype=object)
    between[volumes.tasks, volumes.partners] = volumes.sizes.astype(object) * certificate.scale
    pairs: Exact | None = None
    proven = 0
    for d in range(num):
        weights = between * costs[d] - rows[d][:, None] - rows[d][None, :]
        for space in spaces:
            if space.per_class[d]:
                weights = weights - space.per_class[d] * space.gram
        proven += 2 * room * int(np.count_nonzero(classes == d)) * rows[d].sum()
        if d == 0:
            # a task is of the first class to itself, always
            proven += weights.trace()
        if d or room > 1:
            pairs = weights if pairs is None else np.minimum(pairs, weights)
    proven -= sum(space.own * space.gram.trace() for space in spaces)
    if pairs is not None:
        proven += pairs.sum() - pairs.trace()
    return volumes.rounded_up(proven, 2 * certificate.scale)


def _host(instance: Instance, certificate: DistanceClassesCertificate) -> Torus:
    """Return the host; every router of the machine must be another one of it."""
    if math.prod(certificate.shape) > MOST_PLACES:
        raise RefusedError(f"a host of more than {MOST_PLACES} routers")
    host = Torus(tuple(certificate.shape))
    routers = certificate.routers
    if len(routers) != instance.machine.num_routers:
        raise RefusedError(f"{len(routers)} host routers of {instance.machine.num_routers}")
    if max(routers) >= host.num_routers or len(set(routers)) < len(routers):
        raise RefusedError("two routers are one of the host, or one is outside")
    return host


def _costs(instance: Instance, host: Torus, routers: IntArray, classes: IntArray) -> list[int]:
    """Return the least distance of routers that take tasks, per class of their host routers.

    A class without any never holds two tasks that send, so the largest distance stands for it.
    """
    used = np.flatnonzero(instance.capacity)
    coords = host.coordinates[routers[used]]
    ahead = (coords[None, :] - coords[:, None]) % np.array(host.shape)
    between = classes[np.ravel_multi_index(tuple(np.moveaxis(ahead, 2, 0)), host.shape)]
    hops = instance.machine.hops(used[:, None], used[None, :])
    farthest = int(hops.max())
    return [int(hops[between == d].min(initial=farthest)) for d in range(int(classes.max()) + 1)]


def _check_classes(host: Torus, classes: IntArray) -> int:
    """Return the number of classes; they must be symmetric, the first that of no difference."""
    if len(classes) != host.num_routers:
        raise RefusedError(f"{len(classes)} classes of {host.num_routers} differences")
    num = int(classes.max()) + 1
    if num > len(classes) or not np.bincount(classes).all():
        raise RefusedError("a class is empty")
    if classes[0] or np.count_nonzero(classes == 0) > 1:
        raise RefusedError("the first class is not that of no difference")
    table = classes.reshape(host.shape)
    opposite = table[np.ix_(*[-np.arange(n) % n for n in host.shape])]
    if (opposite != table).any():
        raise RefusedError("a class has a difference without its opposite")
    return num


def _spaces(
    host: Torus, classes: IntArray, room: int, certificate: DistanceClassesCertificate
) -> list[_Space]:
    if len(certificate.filters) != len(certificate.factors):
        raise RefusedError("filters and factors differ in number")
    places = host.num_routers * room
    if places * places * sum(map(len, certificate.factors)) > MOST_FACTORS:
        raise RefusedError("too many factors to check")
    found = []
    for values, factor in zip(certificate.filters, certificate.factors, strict=True):
        if len(values) != int(classes.max()) + 2:
            raise RefusedError("a filter needs a value for itself and one per class")
        if any(len(vector) != places for vector in factor):
            raise RefusedError(f"a factor is not of {places} places")
        found.append(_Space(*_squared(host, classes, room, values), _gram(factor, places)))
    return found


def _gram(factor: list[list[int]], places: int) -> Exact:
    """Return the sum of the outer products of vectors."""
    vectors = np.array(factor, dtype=object).reshape(-1, places)
    if (vectors * vectors).sum() < ROOM:  # nor, by Cauchy and Schwarz, is any part of a product
        vectors = vectors.astype(np.int64)
    gram: Exact = (vectors.T @ vectors).astype(object)
    return gram


def _squared(host: Torus, classes: IntArray, room: int, values: list[int]) -> tuple[int, list[int]]:
    """Return the square of ``own I + B x J``: ``own^2 I + (2 own B + room B B) x J``.

    J is all ones between the places of two routers, B a matrix of routers that depends on the
    class of their difference alone.
    """
    own = values[0]
    table = np.array(values[1:], dtype=object)[classes].reshape(host.shape)
    products = np.zeros(host.shape, dtype=object)
    for x in itertools.product(*map(range, host.shape)):
        # entry y gets B(x) B(y - x)
        shifted = table[
            np.ix_(*[(np.arange(n) - k) % n for n, k in zip(host.shape, x, strict=True)])
        ]
        products += table[x] * shifted
    square = (2 * own * table + room * products).ravel()
    per_class = []
    for d in range(int(classes.max()) + 1):
        inside = set(square[classes == d].tolist())
        if len(inside) > 1:
            raise RefusedError(f"the square of a filter is not constant on class {d}")
        per_class.append(inside.pop())
    return own * own, per_class
