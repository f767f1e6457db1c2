"""Small mapping problems as assignments of tasks to places, and the mirrors of the places."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from topoplace.mapping.problem import MappingProblem
from topoplace.mapping.symmetry import symmetries
from topoplace.result.mapping import MIRRORS, PAIRS_PLACES
from topoplace.types import IntArray

MAX_BYTES = 1 << 50
"""Largest sum of all bytes times the longest distance that is taken."""


@dataclass(frozen=True)
class Assignment:
    """As many tasks as places, some tasks silent; every task has a place of its own.

    `flows` are the bytes from task to task, `distances` those from place to place, and `linear` is
    twice the cost of a task on a place apart from its messages to the others; all have the shape
    ``(num, num)``.
    """

    flows: IntArray
    distances: IntArray
    linear: IntArray

    @property
    def num(self) -> int:
        """Number of tasks, and of places."""
        return len(self.flows)

    def pairs(self) -> IntArray:
        """Return the costs of tasks i and j on places p and q, ``[i, p, j, q]``, both ways.

        For a task with itself it is the linear cost.
        """
        costs = np.einsum("ij,pq->ipjq", self.flows, self.distances)
        found: IntArray = costs + costs.transpose(2, 3, 0, 1)
        tasks, places = np.indices((self.num, self.num))
        found[tasks, places, tasks, places] = self.linear
        return found

    @property
    def unit(self) -> int:
        """Common divisor of the costs of all assignments, apart from the linear cost."""
        symmetric = np.array_equal(self.distances, self.distances.T)
        flows = self.flows + self.flows.T if symmetric else self.flows
        return int(np.gcd.reduce(flows, axis=None)) or 1


def assignment_of(problem: MappingProblem) -> Assignment | None:
    """Return the tasks that send or receive, silent ones, and the places that they may have.

    A router has no more places than there are tasks of the first kind. None if there are too many
    places, or costs too large.
    """
    graph, machine = problem.graph, problem.machine
    tasks = np.union1d(graph.sources, graph.targets)
    routers = np.flatnonzero(problem.capacity)
    rooms = np.minimum(problem.capacity[routers], len(tasks))
    num = int(rooms.sum())
    if not 1 <= num <= PAIRS_PLACES or graph.total_bytes * machine.diameter >= MAX_BYTES:
        return None
    places = np.repeat(routers, rooms)
    flows = np.zeros((num, num), dtype=np.int64)
    ends = np.searchsorted(tasks, graph.sources), np.searchsorted(tasks, graph.targets)
    np.add.at(flows, ends, graph.bytes)
    distances = machine.hops(places[:, None], places[None, :])
    return Assignment(flows, distances, np.zeros((num, num), dtype=np.int64))


# ---- Mirrors: commuting symmetries of the places, each its own inverse --------------------------
# The functions that they keep, or change the sign of, form spaces that a symmetric matrix does not
# mix: its eigenvalues are those of smaller matrices.


@dataclass(frozen=True)
class Space:
    """Functions of the orbits `orbits` that each mirror keeps or changes the sign of; rows."""

    orbits: IntArray
    waves: IntArray


@dataclass(frozen=True)
class Orbits:
    """Mirrors, all products of them (`images`), the first place and the size of every orbit."""

    mirrors: list[IntArray]
    images: IntArray
    firsts: IntArray
    sizes: IntArray
    spaces: list[Space]


def orbits_of(assignment: Assignment, most: int = MIRRORS) -> Orbits:
    """Return up to `most` mirrors of an assignment that make its orbits few, and their orbits."""
    num = assignment.num
    mirrors: list[IntArray] = []
    images = np.arange(num)[None, :]
    for mirror in _mirrors(assignment):
        commutes = all((mirror[other] == other[mirror]).all() for other in mirrors)
        more = np.concatenate([images, mirror[images]])
        if commutes and _num_orbits(more) < _num_orbits(images) and len(mirrors) < most:
            mirrors.append(mirror)
            images = more
    firsts = np.flatnonzero(images.min(axis=0) == np.arange(num))
    sizes = np.array([len(np.unique(images[:, first])) for first in firsts])
    signs = itertools.product(*([(1, -1)] * len(mirrors)))
    spaces = [_space(images, firsts, sign) for sign in signs]
    return Orbits(mirrors, images, firsts, sizes, [space for space in spaces if len(space.orbits)])


def _num_orbits(images: IntArray) -> int:
    return len(np.unique(images.min(axis=0)))


def _mirrors(assignment: Assignment) -> list[IntArray]:
    """Return symmetries of the places that are their own inverse; those that move most first."""
    columns = np.concatenate([assignment.linear.T, np.zeros((assignment.num, 1), np.int64)], axis=1)
    colour = np.unique(columns, axis=0, return_inverse=True)[1].ravel().astype(np.int64)
    listed = symmetries(assignment.distances, colour).astype(np.int64)
    each = np.arange(assignment.num)
    own = (np.take_along_axis(listed, listed, axis=1) == each).all(axis=1)
    moved = (listed != each).sum(axis=1)
    order = np.argsort(-moved, kind="stable")
    return [listed[s] for s in order if own[s] and moved[s]]


def _space(images: IntArray, firsts: IntArray, sign: tuple[int, ...]) -> Space:
    signs = np.ones(1, dtype=np.int64)
    for each in sign:
        signs = np.concatenate([signs, each * signs])
    waves = np.zeros((len(firsts), images.shape[1]), dtype=np.int64)
    for k, first in enumerate(firsts):
        np.add.at(waves[k], images[:, first], signs)
    orbits = np.flatnonzero(waves.any(axis=1))
    return Space(orbits, np.sign(waves[orbits]))
