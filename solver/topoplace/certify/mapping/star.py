"""What a star certificate proves (docs/proofs-graphs.md, "Star")."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from topoplace.certify.integers import ROOM, IntArray, largest, require_room
from topoplace.certify.mapping.instance import Instance, Volumes, directed_volumes, mutual_volumes
from topoplace.certify.report import RefusedError
from topoplace.machine import Torus
from topoplace.machine.matrix import MatrixMachine
from topoplace.result.mapping import STAR_ROUTERS, StarCertificate


def star_value(instance: Instance, certificate: StarCertificate) -> int:
    """Return the hop-bytes that a star certificate proves of any mapping."""
    routers = np.flatnonzero(instance.capacity)
    prices = _prices(instance, certificate)
    twice: int = -sum(
        c * v for c, v in zip(instance.capacity.tolist(), prices.tolist(), strict=True) if v
    )
    ways = _ways(instance, routers)
    offers = prices[routers]
    # a task's bytes both ways are at most those of all messages
    farthest = max(largest(nearest) for _, nearest in ways)
    require_room(farthest * instance.total, "bytes times distances")
    if len(ways[0][1]) == 1:  # the same distances everywhere: the cheapest router is the best
        offers = offers.min(keepdims=True)
    # Lists of sizes have a task's largest first, as rows of `nearest` have the shortest way.
    for task in range(instance.num_tasks):
        costs = offers.copy()
        for volumes, nearest in ways:
            sizes = np.sort(volumes.of(task))[::-1]
            costs += nearest[:, : len(sizes)] @ sizes
        twice += int(costs.min())
    return ways[0][0].rounded_up(twice, 2)


def _prices(instance: Instance, certificate: StarCertificate) -> IntArray:
    num = instance.machine.num_routers
    prices = certificate.prices or [0] * num
    if len(prices) != num:
        raise RefusedError(f"{len(prices)} prices for {num} routers")
    if min(prices) < 0:
        raise RefusedError("a price is negative")
    require_room(max(prices), "the price of a router", ROOM // 2)
    return np.asarray(prices, dtype=np.int64)


def _ways(instance: Instance, routers: IntArray) -> list[tuple[Volumes, IntArray]]:
    """Return volumes with the distances to be matched: both ways at once, or one after the other.

    Distances are to the nearest other places, a row per router that takes tasks, or one
    for all of them.
    """
    machine, capacity = instance.machine, instance.capacity
    if isinstance(machine, MatrixMachine):
        table = machine.distances
        inside = table[np.ix_(routers, routers)]
        if (inside != inside.T).any():
            pairs = zip(directed_volumes(instance), (table, table.T), strict=True)
            return [(v, _nearest(way[routers], routers, capacity, v.most)) for v, way in pairs]
    both = mutual_volumes(instance)
    rows: Iterable[IntArray]
    if isinstance(machine, MatrixMachine):
        rows = machine.distances[routers]
    elif len(routers) <= STAR_ROUTERS:
        rows = map(machine.distances_from, routers.tolist())
    else:
        # closed and full it has all places that the machine has, and none farther away
        rows, routers = [Torus(machine.shape).distances_from(0)], np.zeros(1, dtype=np.int64)
        capacity = np.full(len(capacity), capacity.max())
    return [(both, _nearest(rows, routers, capacity, both.most))]


def _nearest(
    rows: Iterable[IntArray], owners: IntArray, capacity: IntArray, width: int
) -> IntArray:
    """Return the least `width` distances from every owner to places other than one of its own."""
    # beyond `width` a router's places cannot all be among the nearest
    places = np.repeat(np.arange(len(capacity)), np.minimum(capacity, width + 1))
    found = np.empty((len(owners), width), dtype=np.int64)
    for k, (row, owner) in enumerate(zip(rows, owners.tolist(), strict=True)):
        distances = row[places]
        distances = np.delete(distances, np.searchsorted(places, owner))
        found[k] = np.sort(distances)[:width]
    return found
