"""What a certificate of levels proves on a tree or hierarchy (docs/proofs/levels.md)."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from topoplace.certify.integers import require_room
from topoplace.certify.mapping.blocks import inside_bound
from topoplace.certify.mapping.graphs import cut_prices
from topoplace.certify.mapping.instance import Instance, mutual_volumes
from topoplace.certify.mapping.routes import Shell, routed
from topoplace.certify.report import RefusedError, fraction_of
from topoplace.errors import number_of
from topoplace.result import mapping as schema
from topoplace.types import IntArray


def levels_value(instance: Instance, certificate: schema.LevelsCertificate) -> int:
    """Return the cost that a certificate of levels proves of any mapping.

    A byte pays the step of every level whose domain it leaves, so that the levels add up.
    """
    machine = instance.machine.levels
    if machine is None:
        raise RefusedError("a certificate of levels is for trees and hierarchies")
    if len(certificate.levels) != machine.num_levels:
        raise RefusedError(f"{number_of(len(certificate.levels), 'level')} of {machine.num_levels}")
    unit = mutual_volumes(instance).unit
    costs = [0, *machine.costs.tolist()]
    proven = 0
    for level, part in enumerate(certificate.levels):
        step = costs[level + 1] - costs[level]
        if step:
            rooms = _rooms(instance, machine.domain_of[level])
            leaving = LEAVING[part.kind](instance, rooms, part)
            proven += step * max(0, unit * -(-leaving // unit))
    return proven


def _rooms(instance: Instance, domain: IntArray) -> list[int]:
    """Return how many tasks every domain can take that takes any."""
    rooms: Counter[int] = Counter()
    for own, places in zip(domain.tolist(), instance.capacity.tolist(), strict=True):
        rooms[own] += places
    return [min(places, instance.num_tasks) for places in rooms.values() if places]


def _by_degrees(instance: Instance, rooms: list[int], _: schema.DegreesLevel) -> int:
    """Return what leaves if every task has its heaviest partners with it."""
    volumes, most = mutual_volumes(instance), max(rooms) - 1
    twice = 0
    for task in range(instance.num_tasks):
        sizes = volumes.of(task)
        twice += sum(np.sort(sizes)[max(0, len(sizes) - most) :].tolist()) if most else 0
    return instance.total - twice // 2


def _by_inside(instance: Instance, rooms: list[int], part: schema.InsideLevel) -> int:
    """Return what leaves if every domain has the most inside that its tasks can have."""
    psi = inside_of(instance, max(rooms), part.order)
    inside = kept_inside(psi, fraction_of(part.slope), rooms, instance.num_tasks)
    return math.ceil(instance.total - inside)


def kept_inside(psi: IntArray, slope: Fraction, rooms: list[int], num_tasks: int) -> Fraction:
    """Return the most inside all domains together, at a price of a task, by what each can have."""
    worth = [slope.denominator * x - slope.numerator * s for s, x in enumerate(psi.tolist())]
    best = [*itertools.accumulate(worth, max)]
    kept = sum(best[min(room, len(best) - 1)] for room in rooms)
    return Fraction(kept, slope.denominator) + slope * num_tasks


def inside_of(instance: Instance, limit: int, order: list[int]) -> IntArray:
    """Return the most bytes inside 0..limit tasks of a grid, or of lines put together in order."""
    if not order:
        if instance.grid is None:
            raise RefusedError("insides of blocks are those of grids")
        return inside_bound(instance.grid, limit)
    lines = instance.axes
    left_out = [k for k, (size, _, _) in enumerate(lines) if size > 1 and k not in order]
    if left_out or len(set(order)) < len(order) or max(order) >= len(lines):
        raise RefusedError(f"{order} is no order of the {number_of(len(lines), 'axis')}")
    require_room(2 * instance.total, "the bytes of all tasks")
    psi = np.zeros(2, dtype=np.int64)
    for k in order:
        psi = layered(psi[: limit + 1], *lines[k], limit)
    return psi


FEW = -(1 << 62)
"""Less than any sum: no such number of tasks."""


def layered(psi: IntArray, size: int, pattern: str, pair: int, limit: int) -> IntArray:
    """Return the most inside tasks that lie in layers along a line.

    Layers are filled from the smallest up, by the number of layers still to come; `psi` is what
    one layer has inside. Two layers that talk share no more tasks' partners than the smaller has
    tasks, and sorted by size the layers count as often as `_counts` says.
    """
    tasks = min(limit, size * (len(psi) - 1))
    if size * (len(psi) - 1) * (tasks + 1) > schema.MOST_LAYERS:
        raise RefusedError("too many layers to check")
    # most[t, m]: of t tasks in the layers so far, the largest of which has at most m
    most = np.full((tasks + 1, len(psi)), FEW, dtype=np.int64)
    most[0] = 0
    for count in _counts(size, pattern)[::-1]:
        grown = np.full_like(most, FEW)
        grown[:, 0] = most[:, 0]
        for m in range(1, len(psi)):
            gain = int(psi[m]) + pair * count * m
            grown[:, m] = grown[:, m - 1]
            # sums of what is inside never exceed all bytes, and FEW stays below 0 whatever is added
            grown[m:, m] = np.maximum(grown[m:, m], most[: tasks + 1 - m, m] + gain)
        most = grown
    found: IntArray = most[:, -1]
    return found


def _counts(size: int, pattern: str) -> list[int]:
    """Return how often the layers of a line count, the largest first (docs/proofs/levels.md)."""
    if pattern == "all":
        return list(range(size))
    counts = [0] + [1] * (size - 1)
    if pattern == "ring" and size > 2:
        counts[-1] += 1
    return counts


def _by_spectrum(instance: Instance, rooms: list[int], part: schema.SpectralLevel) -> int:
    """Return what leaves by a semidefinite matrix, which no sum over domains is below 0 in."""
    num, most = instance.num_tasks, max(rooms)
    prices = cut_prices(mutual_volumes(instance), np.ones(num, dtype=np.int64), part)
    twice = -sum(prices) - part.balance * most * num
    return -(-twice // (2 * part.scale))


def _by_routes(instance: Instance, rooms: list[int], part: schema.RoutesLevel) -> int:
    """Return what leaves by trees: what does not fit into the largest domain is in another one."""
    shells = [Shell(1, max(rooms))]
    return math.ceil(routed(mutual_volumes(instance), instance.loads, shells, part))


LEAVING: dict[str, Callable[[Instance, list[int], Any], int]] = {
    "degrees": _by_degrees,
    "inside": _by_inside,
    "spectral": _by_spectrum,
    "routes": _by_routes,
}
"""The least bytes that leave domains, given their places, by the kind of the proof."""
