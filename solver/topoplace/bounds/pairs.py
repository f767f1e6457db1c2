"""The bytes between pairs of tasks, as all bounds for graphs need them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from topoplace.mapping.graph import IntArray, TaskGraph


@dataclass(frozen=True)
class Pairs:
    """Bytes from tasks to their partners, every pair once.

    Attributes
    ----------
    tasks, partners, sizes
        Who sends, to whom, and how much in all; ascending by task, then partner.
    """

    num_tasks: int
    tasks: IntArray
    partners: IntArray
    sizes: IntArray

    @property
    def unit(self) -> int:
        """Greatest common divisor of all bytes, 1 if there are none: hop-bytes are multiples."""
        return int(np.gcd.reduce(self.sizes)) or 1 if len(self.sizes) else 1

    def matrix(self, size: int) -> IntArray:
        """Return the bytes as a square matrix, with silent tasks up to `size`."""
        dense = np.zeros((size, size), dtype=np.int64)
        dense[self.tasks, self.partners] = self.sizes
        return dense

    @property
    def most(self) -> int:
        """Partners of the task that has most."""
        return int(np.bincount(self.tasks).max(initial=0))

    def descending(self) -> IntArray:
        """Return every task's sizes from the largest, shape ``(num_tasks, most)``."""
        order = np.lexsort((-self.sizes, self.tasks))
        tasks = self.tasks[order]
        firsts = np.searchsorted(tasks, np.arange(self.num_tasks))
        table = np.zeros((self.num_tasks, self.most), dtype=np.int64)
        table[tasks, np.arange(len(tasks)) - firsts[tasks]] = self.sizes[order]
        return table


def sent(graph: TaskGraph) -> Pairs:
    """Return the bytes every task sends to each of its partners."""
    return _summed(graph.num_tasks, graph.sources, graph.targets, graph.bytes)


def received(graph: TaskGraph) -> Pairs:
    """Return the bytes every task gets from each of its partners."""
    return _summed(graph.num_tasks, graph.targets, graph.sources, graph.bytes)


def exchanged(graph: TaskGraph) -> Pairs:
    """Return the bytes between tasks in both directions, every pair listed at both its ends."""
    return _summed(
        graph.num_tasks,
        np.concatenate((graph.sources, graph.targets)),
        np.concatenate((graph.targets, graph.sources)),
        np.concatenate((graph.bytes, graph.bytes)),
    )


def _summed(num_tasks: int, tasks: IntArray, partners: IntArray, sizes: IntArray) -> Pairs:
    keys, places = np.unique(tasks * num_tasks + partners, return_inverse=True)
    sums = np.zeros(len(keys), dtype=np.int64)
    np.add.at(sums, places, sizes)
    return Pairs(num_tasks, keys // num_tasks, keys % num_tasks, sums)
