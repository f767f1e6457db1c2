"""The checker's sums of bytes between pairs of tasks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from topoplace.certify.integers import IntArray, require_room
from topoplace.certify.mapping.instance import Instance


@dataclass(frozen=True)
class Volumes:
    """Bytes of every task with each of its partners.

    Attributes
    ----------
    tasks, partners, sizes
        One entry per pair; ascending by task.
    """

    num_tasks: int
    tasks: IntArray
    partners: IntArray
    sizes: IntArray

    @cached_property
    def _starts(self) -> IntArray:
        return np.searchsorted(self.tasks, np.arange(self.num_tasks + 1))

    def of(self, task: int) -> IntArray:
        """Return a task's bytes with its partners."""
        return self.sizes[self._starts[task] : self._starts[task + 1]]

    @property
    def most(self) -> int:
        """Partners of the task that has most."""
        return int(np.diff(self._starts).max())

    @property
    def unit(self) -> int:
        """What all bytes, and with them hop-bytes, are multiples of."""
        return math.gcd(*self.sizes.tolist()) or 1

    def rounded_up(self, total: int, times: int) -> int:
        """Return total / times as a bound: not negative, up to the next multiple of the unit."""
        return max(0, self.unit * -(-total // (times * self.unit)))


def directed_volumes(instance: Instance) -> tuple[Volumes, Volumes]:
    """Return what every task sends to its partners, and what it gets from them."""
    sources, targets = instance.sources, instance.targets
    return _merged(instance, sources, targets), _merged(instance, targets, sources)


def mutual_volumes(instance: Instance) -> Volumes:
    """Return bytes in both directions together; every pair is listed at both its ends."""
    ends = (instance.sources, instance.targets)
    return _merged(instance, np.concatenate(ends), np.concatenate(ends[::-1]))


def _merged(instance: Instance, tasks: IntArray, partners: IntArray) -> Volumes:
    """Add up the bytes of every pair; ends are those of all messages, once or once each way."""
    require_room(instance.total, "the bytes of all messages")
    order = np.lexsort((partners, tasks))
    sizes = np.tile(instance.sizes, len(tasks) // max(1, len(instance.sizes)))[order]
    tasks, partners = tasks[order], partners[order]
    new = np.ones(len(tasks), dtype=bool)
    new[1:] = (np.diff(tasks) != 0) | (np.diff(partners) != 0)
    firsts = np.flatnonzero(new)
    summed = np.add.reduceat(sizes, firsts) if len(firsts) else sizes
    return Volumes(instance.num_tasks, tasks[firsts], partners[firsts], summed)
