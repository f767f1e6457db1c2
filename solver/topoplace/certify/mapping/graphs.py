"""What certificates of any application prove, pair by pair of tasks (docs/proofs-graphs.md).

`star_value` has every task by itself, `distance_classes_value` all of them together.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from topoplace.certify.integers import ROOM, IntArray, largest, require_room
from topoplace.certify.mapping.instance import (
    Instance,
    directed_volumes,
    mutual_volumes,
    nearest_places,
)
from topoplace.certify.report import RefusedError
from topoplace.machine import Torus
from topoplace.machine.matrix import MatrixMachine
from topoplace.result.mapping import DistanceClassesCertificate, StarCertificate

# ---- Star: every task's heaviest partners on the nearest places, at prices of routers ------------


def star_value(instance: Instance, certificate: StarCertificate) -> int:
    """Return the hop-bytes that a star certificate proves of any mapping."""
    machine, capacity = instance.machine, instance.capacity
    prices = certificate.prices or [0] * machine.num_routers
    if len(prices) != machine.num_routers:
        raise RefusedError(f"{len(prices)} prices for {machine.num_routers} routers")
    require_room(max(prices), "the price of a router", ROOM // 2)
    twice = -sum(c * v for c, v in zip(capacity.tolist(), prices, strict=True) if v)
    routers = np.flatnonzero(capacity)
    ways = [(mutual_volumes(instance), machine)]
    if isinstance(machine, MatrixMachine):
        inside = machine.distances[np.ix_(routers, routers)]
        if (inside != inside.T).any():  # one way after the other
            back = MatrixMachine(machine.distances.T)
            ways = list(zip(directed_volumes(instance), (machine, back), strict=True))
    lists = [
        (volumes, np.stack(list(nearest_places(instance, way, volumes.most))))
        for volumes, way in ways
    ]
    # a task's bytes both ways are at most those of all messages
    farthest = max(largest(nearest) for _, nearest in lists)
    require_room(farthest * instance.total, "bytes times distances")
    offers = np.asarray(prices, dtype=np.int64)[routers]
    if len(lists[0][1]) == 1:  # the same distances everywhere: the cheapest router is the best
        offers = offers.min(keepdims=True)
    for task in range(instance.num_tasks):
        costs = offers.copy()
        for volumes, nearest in lists:
            sizes = np.sort(volumes.of(task))[::-1]
            costs += nearest[:, : len(sizes)] @ sizes
        twice += int(costs.min())
    return ways[0][0].rounded_up(twice, 2)


# ---- Distance classes: a semidefinite relaxation, in integers of any size ------------------------
# That the classes form an association scheme is neither assumed nor needed: they are symmetric sets
# of coordinate differences, and the square of every filter must be constant on them.

Exact = NDArray[np.object_]

MOST_PLACES = 1 << 10
"""Larger certificates are refused before anything is multiplied."""

MOST_FACTORS = 1 << 30


def distance_classes_value(instance: Instance, certificate: DistanceClassesCertificate) -> int:
    """Return the hop-bytes that a certificate of distance classes proves of any mapping."""
    room = int(instance.capacity.max())
    between = _classes_between(instance, certificate)
    places, num = len(between) * room, int(between.max()) + 1
    if places > MOST_PLACES:
        raise RefusedError(f"{places} places, at most {MOST_PLACES} are checked")
    rows = np.array(certificate.rows, dtype=object)
    if rows.shape != (num, places):
        raise RefusedError(f"rows are not {num} lists of {places}")
    if len(certificate.filters) != len(certificate.factors):
        raise RefusedError("filters and factors differ in number")
    if places * places * sum(map(len, certificate.factors)) > MOST_FACTORS:
        raise RefusedError("too many factors to check")
    squares = [_squared(values, between, room) for values in certificate.filters]
    grams = [_gram(vectors, places) for vectors in certificate.factors]
    volumes = mutual_volumes(instance)
    scaled = np.zeros((places, places), dtype=object)
    scaled[volumes.tasks, volumes.partners] = volumes.sizes.astype(object) * certificate.scale
    proven = 0
    for own, gram in zip(certificate.filters, grams, strict=True):
        proven -= own[0] ** 2 * gram.trace()
    least: Exact | None = None
    for d, cost in enumerate(_costs(instance, certificate.routers, between)):
        weights = scaled * cost - rows[d][:, None] - rows[d][None, :]
        for square, gram in zip(squares, grams, strict=True):
            if square[d]:
                weights = weights - square[d] * gram
        proven += 2 * room * int(np.count_nonzero(between[0] == d)) * rows[d].sum()
        if d == 0:
            # a task is of the first class to itself, always
            proven += weights.trace()
        if d or room > 1:
            least = weights if least is None else np.minimum(least, weights)
    if least is not None:
        proven += least.sum() - least.trace()
    return volumes.rounded_up(proven, 2 * certificate.scale)


def _classes_between(instance: Instance, certificate: DistanceClassesCertificate) -> IntArray:
    """Return the classes of all pairs of routers of the host.

    They must be symmetric, the first that of no difference, and every router of the machine another
    one of the host.
    """
    if math.prod(certificate.shape) > MOST_PLACES:
        raise RefusedError(f"a host of more than {MOST_PLACES} routers")
    host, routers = Torus(tuple(certificate.shape)), certificate.routers
    if len(routers) != instance.machine.num_routers:
        raise RefusedError(f"{len(routers)} host routers of {instance.machine.num_routers}")
    if max(routers) >= host.num_routers or len(set(routers)) < len(routers):
        raise RefusedError("two routers are one of the host, or one is outside")
    classes = certificate.classes
    if len(classes) != host.num_routers:
        raise RefusedError(f"{len(classes)} classes of {host.num_routers} differences")
    if set(classes) != set(range(len(set(classes)))):
        raise RefusedError("a class is empty")
    if classes[0] or classes.count(0) > 1:
        raise RefusedError("the first class is not that of no difference")
    ahead = (host.coordinates[None, :] - host.coordinates[:, None]) % np.array(host.shape)
    numbers = np.ravel_multi_index(tuple(np.moveaxis(ahead, 2, 0)), host.shape)
    between: IntArray = np.asarray(classes, dtype=np.int64)[numbers]
    if (between != between.T).any():
        raise RefusedError("a class has a difference without its opposite")
    return between


def _costs(instance: Instance, routers: list[int], between: IntArray) -> list[int]:
    """Return the least distance of routers that take tasks, per class of their host routers.

    A class without any never holds two tasks that send, so the largest distance stands for it.
    """
    used = np.flatnonzero(instance.capacity)
    at = np.asarray(routers)[used]
    classes = between[np.ix_(at, at)]
    hops = instance.machine.hops(used[:, None], used[None, :])
    farthest = int(hops.max())
    return [int(hops[classes == d].min(initial=farthest)) for d in range(int(between.max()) + 1)]


def _gram(vectors: list[list[int]], places: int) -> Exact:
    """Return the sum of the outer products of vectors."""
    if any(len(vector) != places for vector in vectors):
        raise RefusedError(f"a factor is not of {places} places")
    rows = np.array(vectors, dtype=object).reshape(-1, places)
    if (rows * rows).sum() < ROOM:  # nor, by Cauchy and Schwarz, is any part of a product
        rows = rows.astype(np.int64)
    gram: Exact = (rows.T @ rows).astype(object)
    return gram


def _squared(values: list[int], between: IntArray, room: int) -> list[int]:
    """Return per class the square of ``own I + B x J``, which is ``(2 own B + room B B) x J``.

    It has ``own^2 I`` besides. J is all ones between the places of two routers, B a matrix of
    routers that depends on their class alone.
    """
    num = int(between.max()) + 1
    if len(values) != num + 1:
        raise RefusedError("a filter needs a value for itself and one per class")
    matrix = np.array(values[1:], dtype=object)[between]
    square = 2 * values[0] * matrix[0] + room * (matrix[0] @ matrix)
    found = [set(square[between[0] == d].tolist()) for d in range(num)]
    for d, inside in enumerate(found):
        if len(inside) > 1:
            raise RefusedError(f"the square of a filter is not constant on class {d}")
    return [inside.pop() for inside in found]
