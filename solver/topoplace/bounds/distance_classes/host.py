"""The torus in which a machine's routers lie, and what its distance classes cost at least."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from topoplace.bounds.distance_classes.scheme import Scheme, scheme_of
from topoplace.machine import Torus
from topoplace.mapping.graph import IntArray
from topoplace.mapping.problem import MappingProblem

MAX_PLACES = 256

Shape = tuple[int, ...]


def host_of(problem: MappingProblem) -> tuple[Scheme, IntArray] | None:
    """Return the scheme of a torus for the machine, and the host router of every router.

    A torus is its own host; lines become rings in which their routers have the same distances.
    Of a matrix, all tori and meshes with routers in order are tried: the smallest host in which
    routers of the same class have the same distance is taken.

    Returns
    -------
    tuple or None
        The scheme has the machine's least distance in every class; None if there is no host, or
        none of at most `MAX_PLACES` places.
    """
    per_router = int(problem.capacity.max())
    machine = problem.machine
    if isinstance(machine, Torus):
        shape = _host_shape(machine.shape, machine.wrap)
        if math.prod(shape) == 1 or math.prod(shape) * per_router > MAX_PLACES:
            return None
        return _costed(problem, scheme_of(shape, per_router), machine.shape)
    most = MAX_PLACES // per_router
    if machine.num_routers > most:
        return None
    best: tuple[Scheme, IntArray] | None = None
    for sizes in _factorisations(machine.num_routers):
        wrap = _closed(machine.distances, sizes)
        if wrap is None or math.prod(_host_shape(sizes, wrap)) > most:
            continue
        found = _costed(problem, scheme_of(_host_shape(sizes, wrap), per_router), sizes)
        if np.array_equal(found[0].hops[_classes(*found)], machine.distances):
            best, most = found, len(found[0].classes) - 1
    return best


def _closed(distances: IntArray, sizes: Shape) -> tuple[bool, ...] | None:
    """Return which dimensions of a grid of `sizes` are rings; None if some are not even lines.

    In a ring distances stay the same if all routers move by one, in a line if none moves out.
    """
    table = distances.reshape(*sizes, *sizes)
    closed = []
    for d in range(len(sizes)):
        axes = d, d + len(sizes)
        moved = np.roll(table, 1, axis=axes)
        closed.append(np.array_equal(moved, table))
        if not closed[-1]:
            both = (
                np.moveaxis(moved, axes, (0, 1))[1:, 1:],
                np.moveaxis(table, axes, (0, 1))[1:, 1:],
            )
            if not np.array_equal(*both):
                return None
    return tuple(closed)


def _host_shape(sizes: Shape, wrap: tuple[bool, ...]) -> Shape:
    return tuple(n if wraps or n < 3 else 2 * n - 2 for n, wraps in zip(sizes, wrap, strict=True))


def _factorisations(number: int) -> Iterator[Shape]:
    """Yield all ways to write a number as a product of factors from 2, in any order."""
    if number > 1:
        yield (number,)
    for first in range(2, number // 2 + 1):
        if number % first == 0:
            yield from ((first, *rest) for rest in _factorisations(number // first))


def _costed(problem: MappingProblem, scheme: Scheme, sizes: Shape) -> tuple[Scheme, IntArray]:
    """Return the scheme with the machine's distances, and where a grid of `sizes` lies in it."""
    host = Torus(scheme.shape)
    grid = np.indices(sizes, dtype=np.int64).reshape(len(sizes), -1).T
    routers: IntArray = grid @ np.array(host.strides)
    used = np.flatnonzero(problem.capacity)
    hops = problem.machine.hops(used[:, None], used[None, :])
    between = _classes(scheme, routers[used])
    least = np.full(len(scheme.hops), hops.max())
    np.minimum.at(least, between, hops)
    least[0] = 0
    return replace(scheme, hops=least), routers


def _classes(scheme: Scheme, routers: IntArray) -> IntArray:
    """Return the classes of all pairs of host routers."""
    host = Torus(scheme.shape)
    coords = host.coordinates[routers]
    steps = (coords[None, :] - coords[:, None]) % np.array(host.shape)
    found: IntArray = scheme.classes[steps @ np.array(host.strides)]
    return found
