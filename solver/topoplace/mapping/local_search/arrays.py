"""The arrays a compiled search works on: a machine, a graph and a mapping."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array

from topoplace.errors import InputError
from topoplace.machine import MatrixMachine, Torus
from topoplace.mapping.graph import IntArray, TaskGraph
from topoplace.mapping.problem import MappingProblem

Index = NDArray[np.int32]
"""Small enough for all numbers of routers, tasks and places; half the memory to fetch."""

NUM_CLOSEST = 6
"""Routers that count as next to one another on a machine without links."""

MAX_PLACES = 1 << 25
"""About how many places are kept; only routers with room far beyond need lose some."""


class Machine(NamedTuple):
    """Distances as sums over tables: ``sum over d of table[left[a, d] + right[b, d]]``.

    A torus has one small table per dimension, indexed by the difference of coordinates; a
    machine given by its distances has one dimension and the matrix as its table.

    Attributes
    ----------
    left, right
        Shape ``(num_routers, num_dims)``.
    table
        All tables, one after the other.
    near, num_near
        Routers next to each router (itself if it has no neighbour), and how many, shapes
        ``(num_routers, most)`` and ``(num_routers,)``.
    usable
        Routers with room for tasks.
    """

    left: Index
    right: Index
    table: Index
    near: Index
    num_near: Index
    usable: Index


class Guest(NamedTuple):
    """A graph as symmetric rows: task t's partners are ``other[first[t]:first[t + 1]]``.

    `weight` are the bytes between the two, both directions together.
    """

    first: IntArray
    other: Index
    weight: IntArray


class State(NamedTuple):
    """A mapping as the kernels change it.

    Router r has `room[r]` places from `base[r]` on, the first `load[r]` of them taken by the
    tasks in `occupant`; `router` and `place` are the way back from the tasks.
    """

    router: Index
    place: Index
    occupant: Index
    base: Index
    load: Index
    room: Index

    def copy(self) -> State:
        """Return a copy that changes on its own."""
        return State(*(array.copy() for array in self))


def machine_arrays(machine: Torus | MatrixMachine, capacity: IntArray) -> Machine:
    """Return the arrays of a machine, `capacity[r]` tasks fitting on router r.

    Raises
    ------
    InputError
        If the distances are not symmetric.
    """
    if isinstance(machine, Torus):
        left, right, table = _torus_distances(machine)
        near, num_near = _torus_neighbours(machine)
    else:
        left, right, table = _matrix_distances(machine)
        near, num_near = _closest(machine)
    usable = np.flatnonzero(capacity)
    return Machine(
        *(part.astype(np.int32) for part in (left, right, table, near, num_near, usable))
    )


def guest_arrays(graph: TaskGraph) -> Guest:
    """Return the symmetric rows of a graph, messages between the same two tasks added up."""
    ends = (
        np.concatenate([graph.sources, graph.targets]),
        np.concatenate([graph.targets, graph.sources]),
    )
    size = (graph.num_tasks, graph.num_tasks)
    rows = coo_array((np.concatenate([graph.bytes, graph.bytes]), ends), shape=size).tocsr()
    rows.sum_duplicates()
    return Guest(
        first=np.asarray(rows.indptr, dtype=np.int64),
        other=np.asarray(rows.indices, dtype=np.int32),
        weight=np.asarray(rows.data, dtype=np.int64),
    )


def state_arrays(problem: MappingProblem, routers: IntArray) -> State:
    """Return a mapping's arrays, given the router of every task."""
    num_routers = problem.machine.num_routers
    load = np.bincount(routers, minlength=num_routers)
    room = np.minimum(problem.capacity, problem.num_tasks)
    if int(room.sum()) > MAX_PLACES:
        room = np.minimum(room, np.maximum(load, MAX_PLACES // num_routers))
    base = np.cumsum(room) - room
    order = np.argsort(routers, kind="stable")
    at = routers[order]
    place = np.empty(len(routers), dtype=np.int64)
    place[order] = base[at] + np.arange(len(at)) - (np.cumsum(load) - load)[at]
    occupant = np.full(int(room.sum()), -1, dtype=np.int64)
    occupant[place] = np.arange(len(routers))
    return State(*(part.astype(np.int32) for part in (routers, place, occupant, base, load, room)))


def _torus_distances(torus: Torus) -> tuple[IntArray, IntArray, IntArray]:
    """Return left, right and one table per dimension, indexed by coordinate differences."""
    tables, offset = [], 0
    left = torus.coordinates.copy()
    for d, (n, wraps) in enumerate(zip(torus.shape, torus.wrap, strict=True)):
        step = np.abs(np.arange(1 - n, n))
        tables.append(np.minimum(step, n - step) if wraps else step)
        left[:, d] += offset + n - 1
        offset += len(step)
    return left, -torus.coordinates, np.concatenate(tables)


def _torus_neighbours(torus: Torus) -> tuple[IntArray, IntArray]:
    """Return every router's neighbours, packed to the left, and their number."""
    routers = np.arange(torus.num_routers)
    near = np.repeat(routers[:, None], 2 * torus.num_dims, axis=1)
    num_near = np.zeros(torus.num_routers, dtype=np.int64)
    for d, n in enumerate(torus.shape):
        for step in (1, -1):
            beside = np.roll(routers.reshape(torus.shape), -step, axis=d).ravel()
            at = torus.coordinates[:, d] + step
            there = np.flatnonzero((beside != routers) & (torus.wrap[d] | (at % n == at)))
            near[there, num_near[there]] = beside[there]
            num_near[there] += 1
    return near, np.maximum(num_near, 1)


def _matrix_distances(machine: MatrixMachine) -> tuple[IntArray, IntArray, IntArray]:
    """Return left, right and the matrix itself as the only table."""
    matrix = machine.distances
    if (matrix != matrix.T).any():
        raise InputError("symmetric distances for a local search", field="distances")
    rows = np.arange(len(matrix))[:, None]
    return rows * len(matrix), rows, matrix.ravel()


def _closest(machine: MatrixMachine) -> tuple[IntArray, IntArray]:
    """Return the closest other routers of every router, nearest first, and their number."""
    n = machine.num_routers
    order = np.argsort(machine.distances, axis=1, kind="stable")
    others = order[order != np.arange(n)[:, None]].reshape(n, n - 1)[:, :NUM_CLOSEST]
    near = others if n > 1 else np.zeros((1, 1), dtype=np.int64)
    return near, np.full(n, near.shape[1])
