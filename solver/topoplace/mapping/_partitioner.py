"""A program of its own: tasks onto the leaves of a tree by Mt-KaHyPar, level by level.

It is run as a process because native code cannot be interrupted; `topoplace.mapping.multilevel`
writes what it reads.
"""

from __future__ import annotations

import importlib
import sys
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]


class Part(NamedTuple):
    """Tasks in a domain of a level, their loads, and the pairs among them by position here."""

    level: int
    domain: int
    tasks: Numbers
    size: Numbers
    ends: Numbers
    weight: Numbers


WORTH = 1e-3
"""Part of the cost that a cycle of improvement has to save for there to be another."""


class Partitioner:
    """Mt-KaHyPar with a seed: on one core the same parts each time, if there is time for all."""

    def __init__(self, preset: str, seed: int, seconds: float, threads: int = 1) -> None:
        self._end = time.monotonic() + seconds
        self._library: Any = importlib.import_module("mtkahypar")
        self._engine = self._library.initialize(threads)
        self._preset = getattr(self._library.PresetType, preset)
        self._library.set_seed(seed)

    def parts(self, part: Part, rooms: Numbers) -> Numbers:
        """Return the child of every task of a part, none with more tasks than it has room for.

        Once the time is over, children are filled one after the other, neighbours together.
        """
        num, children = len(part.tasks), len(rooms)
        worth = children > 1 and num > children and len(part.weight)
        late = time.monotonic() >= self._end
        order = banded(part) if worth and late else np.arange(num)
        middle = np.cumsum(part.size[order]) - (part.size[order] + 1) // 2
        found = np.zeros(num, dtype=np.int64)
        found[order] = np.minimum(np.searchsorted(np.cumsum(rooms), middle, "right"), children - 1)
        if worth and late:
            return within(part, found, rooms)
        if worth:
            context = self._engine.context_from_preset(self._preset)
            context.set_partitioning_parameters(children, 0.0, self._library.Objective.CUT)
            context.set_individual_target_block_weights(np.minimum(rooms, part.size.sum()).tolist())
            context.logging = False
            pairs = list(zip(*part.ends.tolist(), strict=True))
            sizes, weight = part.size.tolist(), part.weight.tolist()
            graph = self._engine.create_graph(context, num, len(pairs), pairs, sizes, weight)
            found = np.array(graph.partition(context).get_partition(), dtype=np.int64)
        return within(part, found, rooms)

    def improved(
        self, part: Part, at: Numbers, lengths: Numbers, rooms: Numbers
    ) -> Iterator[Numbers]:
        """Yield the router of every task, each time with fewer bytes x lengths than before.

        The library coarsens the tasks, keeping together what is on one router, and improves their
        routers, until it is not worth it or there is no time for more. `lengths` are between all
        routers, shape ``(num_routers, num_routers)``, none 0 but the diagonal.
        """
        routers = len(rooms)
        ways = np.triu_indices(routers, 1)
        context = self._engine.context_from_preset(self._preset)
        context.set_partitioning_parameters(routers, 0.0, self._library.Objective.CUT)
        context.set_individual_target_block_weights(np.minimum(rooms, part.size.sum()).tolist())
        context.logging = False
        apart = np.stack(ways, axis=1).tolist(), lengths[ways].tolist()
        target = self._engine.create_target_graph(context, routers, len(ways[0]), *apart)
        pairs = list(zip(*part.ends.tolist(), strict=True))
        own = len(part.tasks), len(pairs), pairs, part.size.tolist(), part.weight.tolist()
        graph = self._engine.create_graph(context, *own)
        mapped = graph.create_partitioned_hypergraph(context, routers, at.tolist())
        before = int(lengths[tuple(at[part.ends])] @ part.weight)
        while (began := time.monotonic()) < self._end:
            mapped.improve_mapping(target, context, 1)
            found = within(part, np.array(mapped.get_partition(), dtype=np.int64), rooms)
            cost = int(lengths[tuple(found[part.ends])] @ part.weight)
            if cost < before:
                yield found
            if cost > (1 - WORTH) * before or 2 * time.monotonic() - began > self._end:
                break
            before = cost


def banded(part: Part) -> Numbers:
    """Return the tasks of a part in an order in which those that exchange messages are near."""
    from scipy.sparse import csr_array  # noqa: PLC0415 - heavy, and rarely needed
    from scipy.sparse.csgraph import reverse_cuthill_mckee  # noqa: PLC0415 - heavy

    shape = len(part.tasks), len(part.tasks)
    pairs = csr_array((part.weight, (part.ends[0], part.ends[1])), shape)
    return np.asarray(reverse_cuthill_mckee(csr_array(pairs + pairs.T), True), dtype=np.int64)


def within(part: Part, found: Numbers, rooms: Numbers) -> Numbers:
    """Return parts in which the least connected tasks of overfull ones are where there is room.

    Objects of other loads than 1 are left where they are.
    """
    if (part.size != 1).any():
        return found
    count = np.bincount(found, minlength=len(rooms))
    for full in np.flatnonzero(count > rooms).tolist():
        inside = (found[part.ends] == full).all(axis=0)
        ties = np.bincount(
            part.ends[:, inside].ravel(), np.tile(part.weight[inside], 2), len(found)
        )
        own = np.flatnonzero(found == full)
        leaving = own[np.argsort(ties[own], kind="stable")][: count[full] - rooms[full]]
        free = np.repeat(np.arange(len(rooms)), np.maximum(0, rooms - count))
        found[leaving] = free[: len(leaving)]
        count = np.bincount(found, minlength=len(rooms))
    return found


def whole(given: Any, level: int) -> Part:
    """Return all tasks as one part."""
    own = (given[name] for name in ("size", "ends", "weight"))
    return Part(level, 0, np.arange(len(given["size"])), *own)


def leaves_of(given: Any, partitioner: Partitioner) -> Numbers:
    """Return the leaf of every task."""
    domains, room = given["domains"], given["room"]
    leaf = np.zeros(len(given["size"]), dtype=np.int64)
    todo = deque([whole(given, len(domains) - 1)])
    while todo:
        part = todo.popleft()  # the top levels first, which cost most
        if part.level == 0:
            leaf[part.tasks] = part.domain
            continue
        inside = domains[part.level] == part.domain
        below = domains[part.level - 1]
        rooms = np.bincount(below[inside], room[inside]).astype(np.int64)
        children = np.flatnonzero(rooms)
        at = partitioner.parts(part, rooms[children])
        for k, child in enumerate(children.tolist()):
            own = np.flatnonzero(at == k)
            number = np.full(len(at), -1)
            number[own] = np.arange(len(own))
            kept = (at[part.ends] == k).all(axis=0)
            if len(own):
                inner = part.size[own], number[part.ends[:, kept]], part.weight[kept]
                todo.append(Part(part.level - 1, child, part.tasks[own], *inner))
    return leaf


def main(folder: Path) -> None:
    """Read the problem of a folder, and write the leaf of every task there, and better ones."""
    given = np.load(folder / "problem.npz")
    limits = int(given["seed"]), float(given["seconds"]), int(given["threads"])
    partitioner = Partitioner(str(given["preset"]), *limits)
    if "at" in given:
        every = partitioner.improved(whole(given, 1), given["at"], given["lengths"], given["room"])
    else:
        every = iter([leaves_of(given, partitioner)])
    for found in every:
        np.save(folder / "new.npy", found)
        (folder / "new.npy").replace(folder / "leaves.npy")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
