"""The cuts whose weighted sum is the hop distance, and what the places let tasks do to them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from topoplace.machine import Torus
from topoplace.mapping.graph import IntArray
from topoplace.result.mapping import STAR_ROUTERS


@dataclass(frozen=True)
class MachineCuts:
    """The cuts of a machine that its places do not keep all tasks on one side of.

    A cut has its weight twice, to stay an integer, and `s` is the number of tasks on one side of it
    less that on the other.

    Attributes
    ----------
    wrap
        Which dimensions are rings.
    weights
        Twice the weight of every cut.
    least, most
        Least and largest square of s that the capacities allow, per cut.
    spread
        Upper bound on the weighted sum of all squares of s.
    kernels
        Per dimension the weighted sum of the cuts' outer products, as +1 and -1 per used layer.
    room
        Largest capacity of a router.
    """

    wrap: tuple[bool, ...]
    weights: list[int]
    least: list[int]
    most: list[int]
    spread: int
    kernels: list[IntArray]
    room: int

    @property
    def weight(self) -> int:
        """Sum of all weights."""
        return sum(self.weights)


def machine_cuts(machine: Torus, capacity: IntArray, num_tasks: int) -> MachineCuts:
    """Return the cuts of a torus or mesh and the limits of `num_tasks` tasks on its places."""
    weights: list[int] = []
    least: list[int] = []
    most: list[int] = []
    kernels = []
    table = capacity.reshape(machine.shape)
    for d, wraps in enumerate(machine.wrap):
        layers = table.sum(axis=tuple(k for k in range(machine.num_dims) if k != d))
        weight, signs = _dimension_cuts(len(layers), wraps)
        near = np.where(signs > 0, layers, 0).sum(axis=1)
        far = layers.sum() - near
        kept = signs[(near > 0) & (far > 0)]
        used = kept[:, layers > 0]
        kernels.append(weight * used.T @ used)
        weights += [weight] * len(kept)
        for row in kept:
            inside = int(layers[row > 0].sum())
            low, high = _squares(inside, int(layers.sum()) - inside, num_tasks)
            least.append(low)
            most.append(high)
    free = sum(w * m for w, m in zip(weights, most, strict=True))
    apart = sum(weights) * num_tasks**2 - 4 * least_apart(machine, capacity, num_tasks)
    return MachineCuts(
        machine.wrap, weights, least, most, min(free, apart), kernels, int(capacity.max())
    )


def _dimension_cuts(size: int, wraps: bool) -> tuple[int, IntArray]:
    """Return twice the weight of the cuts of one dimension, and their sides, a row per cut."""
    if not wraps:
        steps = np.arange(size)
        return 2, np.where(steps < steps[1:, None], 1, -1)
    starts = np.arange(size // 2 if size % 2 == 0 else size if size > 1 else 0)
    ahead = (np.arange(size) - starts[:, None]) % size
    return 2 - size % 2, np.where(ahead < size // 2, 1, -1)


def _squares(near: int, far: int, num_tasks: int) -> tuple[int, int]:
    """Return the least and the largest square of s with so many places on the two sides."""
    low = 2 * max(0, num_tasks - far) - num_tasks
    high = 2 * min(num_tasks, near) - num_tasks
    ends = low * low, high * high
    return (num_tasks % 2 if low <= 0 <= high else min(ends)), max(ends)


def least_apart(machine: Torus, capacity: IntArray, num_tasks: int) -> int:
    """Return a lower bound on the sum of distances over ordered pairs of distinct tasks.

    No task is closer to all others than to the nearest places; on a large machine the places are
    those of a full torus.
    """
    routers = np.flatnonzero(capacity)
    if len(routers) > STAR_ROUTERS:
        machine = Torus(machine.shape)
        row = machine.distances_from(0)
        full = np.full(machine.num_routers, capacity.max())
        return num_tasks * int(_nearest(row[None], full, num_tasks)[0])
    sums = np.empty(len(routers), dtype=np.int64)
    rows = np.empty((min(256, len(routers)), len(routers)), dtype=np.int64)
    for first in range(0, len(routers), len(rows)):
        some = routers[first : first + len(rows)]
        hops = machine.hops(some[:, None], routers[None, :])
        sums[first : first + len(some)] = _nearest(hops, capacity[routers], num_tasks)
    order = np.argsort(sums, kind="stable")
    room = capacity[routers][order]
    before = np.cumsum(room) - room
    return int((sums[order] * np.clip(num_tasks - before, 0, room)).sum())


def _nearest(hops: IntArray, capacity: IntArray, num_tasks: int) -> IntArray:
    """Return per row the sum of the `num_tasks` least distances, its own place's 0 included."""
    order = np.argsort(hops, axis=1, kind="stable")
    room = capacity[order]
    before = np.cumsum(room, axis=1) - room
    taken = np.clip(num_tasks - before, 0, room)
    sums: IntArray = (np.take_along_axis(hops, order, axis=1) * taken).sum(axis=1)
    return sums
