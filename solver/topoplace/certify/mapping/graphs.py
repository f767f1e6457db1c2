"""What certificates of any application prove of hop-bytes (docs/proofs/graphs.md).

`star_value` has every task by itself; `distance_classes_value` has all pairs of tasks together,
`cuts_value` what all cuts of the machine cross. That a matrix is semidefinite is decided last.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from topoplace.certify.integers import (
    ROOM,
    largest,
    require_room,
    row_sums,
    square_of,
    times,
    total,
    whole,
)
from topoplace.certify.mapping.instance import (
    Instance,
    Tree,
    Volumes,
    directed_volumes,
    merged,
    mutual_volumes,
    nearest_places,
)
from topoplace.certify.report import RefusedError
from topoplace.errors import number_of
from topoplace.machine import Torus
from topoplace.machine.matrix import MatrixMachine
from topoplace.result.certificate import unpacked
from topoplace.result.mapping import (
    CUT_LAYERS,
    CUT_TASKS,
    STAR_ROUTERS,
    Bisection,
    CutsCertificate,
    DistanceClassesCertificate,
    StarCertificate,
    Triangles,
)
from topoplace.types import BoolArray, IntArray

# ---- Star: every task's heaviest partners on the nearest places, at prices of routers ------------


def star_value(instance: Instance, certificate: StarCertificate) -> int:
    """Return the hop-bytes that a star certificate proves of any mapping."""
    machine, capacity = instance.machine, instance.capacity
    prices = certificate.prices or [0] * machine.num_routers
    if len(prices) != machine.num_routers:
        raise RefusedError(
            f"{number_of(len(prices), 'price')} for {number_of(machine.num_routers, 'router')}"
        )
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
        raise RefusedError(f"{number_of(places, 'place')}, at most {MOST_PLACES} are checked")
    rows = np.array(certificate.rows, dtype=object)
    if rows.shape != (num, places):
        raise RefusedError(f"rows are not {number_of(num, 'list')} of {places}")
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
        raise RefusedError(
            f"{number_of(len(routers), 'host router')} of {instance.machine.num_routers}"
        )
    if max(routers) >= host.num_routers or len(set(routers)) < len(routers):
        raise RefusedError("two routers are one of the host, or one is outside")
    classes = certificate.classes
    if len(classes) != host.num_routers:
        raise RefusedError(
            f"{number_of(len(classes), 'class')} of {number_of(host.num_routers, 'difference')}"
        )
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
        raise RefusedError(f"a factor is not of {number_of(places, 'place')}")
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


# ---- Cuts: how uneven their sides may be, against a semidefinite matrix --------------------------


def cuts_value(instance: Instance, certificate: CutsCertificate) -> int:
    """Return the hop-bytes that a certificate of cuts proves of any mapping."""
    total, (volumes, parts) = instance.total_load, in_parts(instance)
    prices = cut_prices(volumes, instance.loads, certificate)
    height, balance, whole = -sum(prices), certificate.balance, 4 * certificate.scale
    each = weights = squares = 0
    for weight, uneven in _cuts(instance):
        each += weight * volumes.rounded_up(height - balance * uneven**2, whole)
        weights += weight
        squares += weight * uneven**2
    spread = min(squares, weights * total**2 - 4 * _apart(instance))
    together = volumes.rounded_up(weights * height - balance * spread, 2 * whole)
    reached = max(volumes.rounded_up(each, 2), together)
    return in_bytes(instance, reached, parts) + least_trees(instance)


TREE_PARTS = 1 << 16
"""The bytes of pairs are counted in such parts, so that a tree of messages can be divided."""


def in_parts(instance: Instance, *, small: bool = False) -> tuple[Volumes, int]:
    """Return bytes between pairs, in parts of a byte, that cost no more than what is sent.

    Of a tree that goes once to a node, every member has the part that its load is of the most load
    on a node: members on one node together have no more than the whole. With the `small` trees over
    links that may be on one router, which have as many links as the root is away from any member.
    """
    own, ends = instance.volumes, list[tuple[int, int, int]]()
    for tree, routers in tree_routers(instance):
        members = sorted({*tree.members.tolist()} - {tree.root})
        for one in members if tree.by_node or (small and routers <= 1) else ():
            load = int(instance.loads[one]) if tree.by_node else 1
            most = max(1, instance.widest) if tree.by_node else len(members)
            ends.append((tree.root, one, tree.size * TREE_PARTS * load // most))
    every = instance.total + sum(tree.size * len(tree.members) for tree in instance.trees)
    if not ends or every * TREE_PARTS >= ROOM:  # without trees it costs less still
        return own, 1
    listed = np.array([one for one in ends if one[2]], dtype=np.int64)
    roots, others, sizes = listed.reshape(-1, 3).T
    firsts = np.concatenate([own.tasks, roots, others])
    seconds = np.concatenate([own.partners, others, roots])
    amounts = np.concatenate([own.sizes * TREE_PARTS, sizes, sizes])
    return merged(instance.num_tasks, firsts, seconds, amounts), TREE_PARTS


def in_bytes(instance: Instance, value: int, parts: int) -> int:
    """Return a bound in parts of a byte in bytes: what is sent over any hop is a multiple."""
    unit = instance.unit or 1
    return max(0, unit * -(-value // (unit * parts)))


def least_trees(instance: Instance) -> int:
    """Return the least cost of trees over links, which join the routers their objects need."""
    return sum(
        tree.size * max(0, routers - 1)
        for tree, routers in tree_routers(instance)
        if not tree.by_node
    )


def tree_routers(instance: Instance) -> Iterator[tuple[Tree, int]]:
    """Yield every tree, and how many routers its objects need at least."""
    largest, most = sorted(instance.room.tolist(), reverse=True), [0]
    for room in largest:
        most.append(most[-1] + room)
    for tree in instance.trees:
        objects = {tree.root, *tree.members.tolist()}
        load = sum(instance.loads[one].item() for one in objects)
        yield tree, next((k for k, room in enumerate(most) if room >= load), 0)


def _cuts(instance: Instance) -> Iterator[tuple[int, int]]:
    """Yield twice the weight of every cut with room on both sides, and the largest |s| there."""
    torus, total = instance.torus, instance.total_load
    if max(torus.shape) > CUT_LAYERS:
        raise RefusedError(f"a dimension of more than {CUT_LAYERS} layers")
    for d, size in enumerate(torus.shape):
        at = torus.coordinates[:, d]
        layers = [sum(instance.room[at == layer].tolist()) for layer in range(size)]
        for weight, side in _sides(size, torus.wrap[d]):
            inside = sum(layers[k] for k in range(size) if side[k])
            near, far = min(total, inside), min(total, sum(layers) - inside)
            if near and far:
                yield weight, 2 * max(near, far) - total


def _sides(size: int, wraps: bool) -> Iterator[tuple[int, BoolArray]]:
    """Yield windows of half a ring, each half a cut, or what is before each plane of a line."""
    layers = np.arange(size)
    if size > 1 and wraps:
        for k in range(size):
            yield 1, (layers - k) % size < size // 2
    elif not wraps:
        for k in range(1, size):
            yield 2, layers < k


def _apart(instance: Instance) -> int:
    """Return a sum of distances over ordered pairs of units of load that no mapping goes below.

    A unit has all others around it, as near as there is room. 0, which is always right, where the
    rooms together may not fit 64 bits.
    """
    torus, room, total = instance.torus, instance.room, instance.total_load
    if total * torus.num_routers * sum(torus.shape) >= ROOM:
        return 0
    centres = np.flatnonzero(room)
    if len(centres) > STAR_ROUTERS:
        # closed and full the machine has all its room, and none farther away
        torus, room, centres = Torus(torus.shape), np.full(len(room), room.max()), centres[:1]
    found = []
    for centre in centres.tolist():
        away = torus.hops(np.full(len(room), centre), np.arange(len(room)))
        order = np.argsort(away, kind="stable")
        filled = np.minimum(np.cumsum(room[order]), total)
        units = np.diff(filled, prepend=0)
        found.append((int(units @ away[order]), int(room[centre]) if len(centres) > 1 else total))
    apart, left = 0, total
    for own, units_there in sorted(found):
        apart += own * min(units_there, left)
        left -= min(units_there, left)
    return apart


# ---- Multipliers of cuts: prices, a balance and triangles, whose matrix is semidefinite ----------

LIMIT = 1 << 52
"""Largest entry on the diagonal of a matrix that is proven to be positive semidefinite."""

LARGEST_ENTRY = 1 << 60

STRIP = 512
"""Rows of the remainder that are formed at once."""


def cut_prices(volumes: Volumes, loads: IntArray, given: Bisection) -> list[int]:
    """Return the prices of a certificate of cuts, whose matrix is positive semidefinite."""
    num, balance = len(loads), given.balance
    if not 2 <= num <= CUT_TASKS:
        raise RefusedError(f"{number_of(num, 'vertex')}, 2 to {CUT_TASKS} are checked")
    prices = unpacked(given.prices, num, "prices")
    require_room(balance * int(loads.max()) ** 2, "the balance times squares of loads", LIMIT)
    require_room(max(map(abs, prices.tolist())), "a price", LIMIT)
    matrix = laplacian_of(volumes, given.scale)
    # each part is below 2^52 in every entry
    matrix += balance * np.outer(loads, loads) + np.diag(prices)
    if given.triangles is not None:
        add_triangles(matrix, given.triangles)
    require_semidefinite(matrix, "the matrix of the cuts")
    found: list[int] = prices.tolist()
    return found


def laplacian_of(volumes: Volumes, scale: int) -> IntArray:
    """Return the Laplacian of the bytes between tasks, times the scale."""
    what = "the bytes of a task"
    degrees = [total(volumes.of(task), what) for task in range(volumes.num_tasks)]
    require_room(scale * max(degrees), f"scale times {what}", LIMIT)
    laplacian = np.diag(np.array(degrees, dtype=np.int64))
    laplacian[volumes.tasks, volumes.partners] -= volumes.sizes
    return times(laplacian, scale, f"scale times {what}")


def add_triangles(matrix: IntArray, triangles: Triangles) -> None:
    """Move the amount of every triangle from between its middle and its ends to between these."""
    number = triangles.number
    corners = unpacked(triangles.corners, 3 * number, "triangles.corners")
    amounts = unpacked(triangles.amounts, number, "triangles.amounts")
    if int(corners.min()) < 0 or int(corners.max()) >= len(matrix):
        raise RefusedError(f"a corner of a triangle is none of {number_of(len(matrix), 'vertex')}")
    if int(amounts.min()) < 0:
        raise RefusedError("the amount of a triangle is negative")
    require_room(2 * sum(amounts.tolist()), "the amounts of triangles", LARGEST_ENTRY)
    middle, one, other = corners.reshape(-1, 3).T
    for a, b, moved in ((one, other, amounts), (middle, one, -amounts), (middle, other, -amounts)):
        np.add.at(matrix, (a, a), moved)
        np.add.at(matrix, (b, b), moved)
        np.subtract.at(matrix, (a, b), moved)
        np.subtract.at(matrix, (b, a), moved)


# ---- Proof that an integer matrix is positive semidefinite ("Semidefinite matrices") -------------
# Floating point only guesses a factor R. What is left of the matrix without R R' is found exactly,
# and a matrix whose diagonal outweighs its rows is positive semidefinite.


def require_semidefinite(matrix: IntArray, name: str) -> None:
    """Refuse a symmetric matrix, called `name`, unless it is proven to be positive semidefinite."""
    require_room(largest(matrix), name, LARGEST_ENTRY)
    diagonal = np.diagonal(matrix)
    if int(diagonal.min()) <= 0 or int(diagonal.max()) >= LIMIT:
        raise RefusedError(f"{name}: a diagonal entry is not between 1 and 2^52")
    factor = _factor(matrix, diagonal)
    if factor is None:
        raise RefusedError(f"{name} is not positive semidefinite")
    for first in range(0, len(matrix), STRIP):
        rows = slice(first, first + STRIP)
        # entries below 2^60, and products of rows below 2^53
        rest = matrix[rows] - square_of(factor, rows, f"{name}: its factor")
        own = np.diagonal(rest, first)
        others = row_sums(np.abs(rest), f"{name}: what its factor leaves") - np.abs(own)
        if (own < others).any():
            raise RefusedError(f"{name}: what its factor leaves is not diagonally dominant")


def _factor(matrix: IntArray, diagonal: IntArray) -> IntArray | None:
    """Return a factor of the matrix less what rounding may cost, rounded; None if there is none."""
    roots = np.sqrt(diagonal.astype(np.float64))
    lowered = matrix.astype(np.float64)
    num = len(matrix)
    lowered.flat[:: num + 1] -= np.ceil((num * roots + roots.sum() + num**2) / 2)
    try:
        return whole(np.linalg.cholesky(lowered), 1 << 27)
    except np.linalg.LinAlgError:
        return None
