"""The communication graph as arrays, and the grids it may come from."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from topoplace.errors import InputError
from topoplace.snapshot.schema import MAX_TASKS, GridApplication
from topoplace.types import IntArray

# ---- Communication graphs: which task sends how many bytes to which ------------------------------


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
        tasks both neighbours are the same task, which gets both messages; a message that would
        end at its own sender is none.
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
        numbers = np.arange(self.num_tasks, dtype=np.int64).reshape(self.shape)
        columns: list[tuple[IntArray, IntArray, IntArray]] = []
        for offset, size in self.offsets:
            target, inside = np.zeros(1, dtype=np.int64), np.ones(1, dtype=bool)
            for d, (n, wraps, step) in enumerate(
                zip(self.shape, self.periodic, offset, strict=True)
            ):
                to = np.arange(step, n + step).reshape(
                    np.where(np.arange(self.num_dims) == d, n, 1)
                )
                target = target * n + to % n
                inside = inside & (wraps | (to == to % n))
            sources = numbers[inside & (target != numbers)]
            columns.append((sources, target.ravel()[sources], np.full(len(sources), size)))
        empty = np.zeros(0, dtype=np.int64)
        parts = zip(*columns, strict=True) if columns else ([empty],) * 3
        return TaskGraph(self.num_tasks, *(np.concatenate(part) for part in parts))


def grid_of(application: GridApplication) -> VirtualGrid:
    """Return the grid an application describes; `InputError` if it is too large or lists differ."""
    shape = tuple(application.shape)
    dims = len(shape)
    expected = f"one entry for each of the {dims} dimensions"
    if len(application.periodic) != dims:
        raise InputError(expected, field="periodic", value=application.periodic)
    if len(application.bytes) != dims:
        raise InputError(expected, field="bytes", value=application.bytes)
    if math.prod(shape) > MAX_TASKS:
        raise InputError(f"at most {MAX_TASKS} tasks", field="shape", value=list(shape))
    diagonals = dims - 1 if application.stencil == "full" else 0
    if len(application.diagonal_bytes) != diagonals:
        raise InputError(
            f"{diagonals} entries, for neighbours that differ in 2 and more dimensions",
            field="diagonal_bytes",
            value=application.diagonal_bytes,
        )
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
