"""The cuts of a torus or mesh, and what its places let tasks do to them ("Cuts")."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topoplace.certify.integers import IntArray, added_at
from topoplace.certify.mapping.instance import Instance
from topoplace.certify.report import RefusedError
from topoplace.machine import Torus
from topoplace.result.mapping import CUT_LAYERS, STAR_ROUTERS


@dataclass(frozen=True)
class Cut:
    """A cut: twice its weight, and the least and largest square of s that places allow."""

    weight: int
    least: int
    most: int


@dataclass(frozen=True)
class Sides:
    """All cuts with places on both sides.

    Attributes
    ----------
    kernels
        Per dimension: the weighted sum of the outer products of its cuts, over used layers.
    spread
        No mapping's weighted sum of the squares of s is larger.
    """

    cuts: list[Cut]
    kernels: list[IntArray]
    spread: int


def sides_of(instance: Instance, wrap: tuple[bool, ...]) -> Sides:
    """Return the cuts of the machine with some dimensions closed that are open.

    Raises
    ------
    RefusedError
        If a dimension is opened, or the cuts do not add up to the distance.
    """
    machine, num = instance.torus, instance.num_tasks
    if len(wrap) != len(machine.shape) or any(
        here and not there for here, there in zip(machine.wrap, wrap, strict=True)
    ):
        raise RefusedError("the cuts are not those of the machine, nor of it with rings closed")
    if max(machine.shape) > CUT_LAYERS:
        raise RefusedError(f"a dimension of more than {CUT_LAYERS} layers")
    machine = Torus(machine.shape, wrap)
    capacity = instance.capacity.reshape(machine.shape)
    cuts, kernels = [], []
    for d, size in enumerate(machine.shape):
        per_layer = np.moveaxis(capacity, d, 0).reshape(size, -1).sum(axis=1).tolist()
        used = [x for x in range(size) if per_layer[x]]
        # at most CUT_LAYERS cuts of weight 2 each: far below 2^62
        kernel = np.zeros((len(used), len(used)), dtype=np.int64)
        table = np.zeros((size, size), dtype=np.int64)
        for weight, side in _cuts_of(size, wrap[d]):
            table += weight * (side[:, None] != side)
            near = sum(places for places, here in zip(per_layer, side, strict=True) if here)
            far = sum(per_layer) - near
            if near and far:
                sign = np.where(side[used], 1, -1)
                kernel += weight * np.outer(sign, sign)
                counts = range(max(0, num - far), min(num, near) + 1)
                middle = min(max(num // 2, counts[0]), counts[-1])
                ends = [(2 * k - num) ** 2 for k in (counts[0], counts[-1])]
                cuts.append(Cut(weight, min(*ends, (2 * middle - num) ** 2), max(ends)))
        steps = np.abs(np.subtract.outer(np.arange(size), np.arange(size)))
        if (table != 2 * (np.minimum(steps, size - steps) if wrap[d] else steps)).any():
            raise RefusedError(f"the cuts of dimension {d} do not add up to its distances")
        kernels.append(kernel)
    free = sum(cut.weight * cut.most for cut in cuts)
    apart = sum(cut.weight for cut in cuts) * num**2 - 4 * _apart(machine, instance)
    return Sides(cuts, kernels, min(free, apart))


def _cuts_of(size: int, wraps: bool) -> list[tuple[int, NDArray[np.bool_]]]:
    """Return cuts of one dimension with twice their weights: windows of half a ring, or planes."""
    layers = np.arange(size)
    if wraps:
        return [(1, (layers - k) % size < size // 2) for k in range(size if size > 1 else 0)]
    return [(2, layers < k) for k in range(1, size)]


def _apart(machine: Torus, instance: Instance) -> int:
    """Return a sum of distances over ordered pairs of tasks that no mapping goes below."""
    capacity, num = instance.capacity, instance.num_tasks
    routers = np.flatnonzero(capacity)
    if len(routers) > STAR_ROUTERS:
        # closed and full, the machine has all its places and none farther away
        row = Torus(machine.shape).distances_from(0)
        return num * _nearest(row, np.full(len(row), capacity.max()), num)
    rooms = capacity[routers]
    sums = sorted(
        (_nearest(machine.hops(one, routers), rooms, num), int(room))
        for one, room in zip(routers[:, None], rooms, strict=True)
    )
    total, left = 0, num
    for one, room in sums:
        total += one * min(room, left)
        left -= min(room, left)
    return total


def _nearest(distances: IntArray, rooms: IntArray, num: int) -> int:
    """Return the sum of the distances to the nearest places for all tasks."""
    places = added_at(int(distances.max()) + 1, distances, rooms, "the places of a machine")
    found, left = 0, num
    for distance, room in enumerate(places.tolist()):
        found += distance * min(room, left)
        left -= min(room, left)
    return found
