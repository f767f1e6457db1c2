"""The communication graph as arrays, and the grids it may come from."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from topoplace.errors import InputError, number_of
from topoplace.snapshot.schema import MAX_TASKS, GridApplication
from topoplace.types import IntArray

# ---- Communication graphs: which task sends how many bytes to which ------------------------------


class Rows(NamedTuple):
    """Bytes by task: its partners, ascending, are ``other[first[t]:first[t + 1]]``.

    `weight` are the bytes with them, every partner listed once.
    """

    first: IntArray
    other: NDArray[np.int32]
    weight: IntArray

    @property
    def size(self) -> int:
        """Number of tasks."""
        return len(self.first) - 1

    @property
    def degree(self) -> IntArray:
        """Partners of every task."""
        return np.diff(self.first)

    @property
    def owner(self) -> IntArray:
        """The task whose partner every entry is."""
        return np.repeat(np.arange(self.size), self.degree)

    @property
    def unit(self) -> int:
        """Greatest common divisor of all bytes, 1 if there are none: hop-bytes are multiples."""
        return int(np.gcd.reduce(self.weight)) or 1

    def matrix(self, size: int) -> IntArray:
        """Return the bytes as a square matrix, with silent tasks up to `size`."""
        dense = np.zeros((size, size), dtype=np.int64)
        dense[self.owner, self.other] = self.weight
        return dense


def rows_of(size: int, sources: IntArray, targets: IntArray, sizes: IntArray) -> Rows:
    """Return the rows of messages, those from one task to one other added up."""
    keys, places = np.unique(sources * size + targets, return_inverse=True)
    weight = np.zeros(len(keys), dtype=np.int64)
    np.add.at(weight, places, sizes)
    owner, other = np.divmod(keys, size)
    return Rows(np.searchsorted(owner, np.arange(size + 1)), other.astype(np.int32), weight)


@dataclass(frozen=True)
class TaskGraph:
    """Directed messages between tasks.

    Attributes
    ----------
    num_tasks
        Number of tasks.
    sources, targets
        Tasks at the ends of every message, shape ``(num_messages,)``; no message stays at its
        task.
    bytes
        Positive bytes of every message, shape ``(num_messages,)``.
    """

    num_tasks: int
    sources: IntArray
    targets: IntArray
    bytes: IntArray

    @property
    def num_messages(self) -> int:
        """Number of messages."""
        return len(self.bytes)

    @property
    def total_bytes(self) -> int:
        """Sum of all messages' bytes."""
        return sum(self.bytes.tolist())

    @cached_property
    def exchanged(self) -> Rows:
        """The bytes between tasks in both directions, every pair listed at both its ends."""
        ends = np.concatenate([self.sources, self.targets])
        others = np.concatenate([self.targets, self.sources])
        return rows_of(self.num_tasks, ends, others, np.tile(self.bytes, 2))


# ---- Virtual grids: Cartesian process topologies and the messages of their halo exchange ---------


@dataclass(frozen=True)
class VirtualGrid:
    """A Cartesian process grid; tasks are numbered row-major (the last dimension fastest).

    Attributes
    ----------
    shape, periodic
        Tasks per dimension (1 to 4 dimensions), and whether it closes.
    offsets
        Per kind of message the vector from sender to receiver (entries -1, 0, 1), with its
        bytes: ``((1, 0), 8)``. Kinds without bytes are left out. In a periodic dimension of two
        tasks both neighbours are the same task, which gets both messages; a message that would end
        at its own sender is left out.
    """

    shape: tuple[int, ...]
    periodic: tuple[bool, ...]
    offsets: tuple[tuple[tuple[int, ...], int], ...]

    @property
    def num_dims(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def num_tasks(self) -> int:
        """Number of tasks."""
        return math.prod(self.shape)

    def coordinates(self) -> IntArray:
        """Return the grid coordinates of every task, shape ``(num_tasks, num_dims)``."""
        grid = np.indices(self.shape, dtype=np.int64)
        return np.ascontiguousarray(grid.reshape(self.num_dims, -1).T)

    def graph(self) -> TaskGraph:
        """Return the messages of one halo exchange, kind by kind in order of the senders."""
        at, numbers = self.coordinates(), np.arange(self.num_tasks)
        parts = [(numbers[:0],) * 3]
        for offset, size in self.offsets:
            to = at + offset
            inside = self.periodic | (to == to % self.shape)
            targets = np.ravel_multi_index(tuple((to % self.shape).T), self.shape)
            sources = np.flatnonzero(inside.all(axis=1) & (targets != numbers))
            parts.append((sources, targets[sources], np.full(len(sources), size)))
        return TaskGraph(self.num_tasks, *map(np.concatenate, zip(*parts, strict=True)))


def grid_of(application: GridApplication) -> VirtualGrid:
    """Return the grid an application describes; `InputError` if it is too large or lists differ."""
    shape = tuple(application.shape)
    dims = len(shape)
    expected = f"{number_of(dims, 'entry')}, one for each dimension"
    if len(application.periodic) != dims:
        raise InputError(expected, field="periodic", value=application.periodic)
    if len(application.bytes) != dims:
        raise InputError(expected, field="bytes", value=application.bytes)
    if math.prod(shape) > MAX_TASKS:
        raise InputError(f"at most {MAX_TASKS} tasks", field="shape", value=list(shape))
    diagonals = dims - 1 if application.stencil == "full" else 0
    if len(application.diagonal_bytes) != diagonals:
        expected = (
            f"{number_of(diagonals, 'entry')}, for neighbours that differ in 2 and more dimensions"
        )
        raise InputError(expected, field="diagonal_bytes", value=application.diagonal_bytes)
    offsets = []
    for offset in itertools.product((1, 0, -1), repeat=dims):
        moved = [d for d in range(dims) if offset[d]]
        if len(moved) == 1:
            size = application.bytes[moved[0]][0 if offset[moved[0]] > 0 else 1]
        elif moved and diagonals:
            size = application.diagonal_bytes[len(moved) - 2]
        else:
            continue
        if size:
            offsets.append((offset, size))
    return VirtualGrid(shape, tuple(application.periodic), tuple(offsets))
