"""What a certificate of pairs proves of hop-bytes (docs/proofs/graphs.md, "Pairs")."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from topoplace.certify.integers import largest, require_room
from topoplace.certify.mapping.graphs import require_semidefinite
from topoplace.certify.mapping.instance import Instance, directed_volumes, mutual_volumes
from topoplace.certify.report import RefusedError, fraction_of
from topoplace.errors import number_of
from topoplace.result.certificate import unpacked
from topoplace.result.mapping import PAIRS_PLACES, PairsCertificate
from topoplace.types import IntArray


@dataclass(frozen=True)
class Assignment:
    """As many tasks as places, some tasks silent; every task has a place of its own.

    `flows` are the bytes from task to task, `distances` those from place to place, and `linear` is
    twice what a task costs on a place, besides its messages to the others.
    """

    flows: IntArray
    distances: IntArray
    linear: IntArray


def pairs_value(instance: Instance, certificate: PairsCertificate) -> int:
    """Return the hop-bytes that a certificate of pairs proves of any mapping."""
    assignment = assignment_of(instance)
    twice = twice_the_least(assignment, certificate)
    distances = assignment.distances
    symmetric = (distances == distances.T).all()
    volumes = mutual_volumes(instance) if symmetric else directed_volumes(instance)[0]
    return volumes.rounded_up(twice.numerator, 2 * twice.denominator)


def assignment_of(instance: Instance) -> Assignment:
    """Return the tasks that send or receive, silent ones, and the places that they may have.

    A router has no more places than there are tasks of the first kind.
    """
    tasks = np.union1d(instance.sources, instance.targets)
    routers = np.flatnonzero(instance.capacity)
    places = np.repeat(routers, np.minimum(instance.capacity[routers], len(tasks)))
    num = len(places)
    if not 1 <= num <= PAIRS_PLACES:
        raise RefusedError(f"{number_of(num, 'place')}, at most {PAIRS_PLACES} are checked")
    flows = np.zeros((num, num), dtype=np.int64)
    ends = (np.searchsorted(tasks, end) for end in (instance.sources, instance.targets))
    np.add.at(flows, tuple(ends), instance.sizes)
    distances = instance.machine.hops(places[:, None], places[None, :])
    return Assignment(flows, distances, np.zeros((num, num), dtype=np.int64))


def twice_the_least(assignment: Assignment, certificate: PairsCertificate) -> Fraction:
    """Return what twice the cost of any assignment is proven to be at least."""
    scale, num = fraction_of(certificate.scale), len(assignment.flows)
    if scale <= 0:
        raise RefusedError("the scale is not positive")
    mirrored = Mirrored(assignment, certificate.mirrors)
    costs = mirrored.whole(certificate)
    rest = _scaled_costs(assignment, scale) - costs
    require_room(32 * num**4 * (largest(rest) + abs(certificate.least)), "the semidefinite part")
    mirrored.require_eigenvalues(rest, certificate.least)
    from topoplace.certify.mapping._kernels import least_of_pairs  # noqa: PLC0415 - heavy

    # sums of costs of num^2 pairs, differences of such sums on the way
    require_room(8 * num**2 * largest(costs), "the costs of pairs")
    return (int(least_of_pairs(costs)) + certificate.least * num) / scale


def _scaled_costs(assignment: Assignment, scale: Fraction) -> IntArray:
    """Return costs of pairs of assignments times the scale, rounded down: none is negative."""
    flows, distances, linear = assignment.flows, assignment.distances, assignment.linear
    most = 2 * largest(flows) * largest(distances) + largest(linear)
    require_room(most * scale.numerator, "costs times the scale")
    costs = np.einsum("ij,pq->ipjq", flows, distances)
    costs = costs + costs.transpose(2, 3, 0, 1)
    tasks, places = np.indices(flows.shape)
    costs[tasks, places, tasks, places] = linear
    scaled: IntArray = costs * scale.numerator // scale.denominator
    return scaled


class Mirrored:
    """Places with mirrors: a group of commuting symmetries, each its own inverse."""

    def __init__(self, assignment: Assignment, mirrors: list[list[int]]) -> None:
        self._num = num = len(assignment.flows)
        self._mirrors = [np.array(mirror, dtype=np.int64) for mirror in mirrors]
        for mirror in self._mirrors:
            if sorted(mirror.tolist()) != list(range(num)):
                raise RefusedError(f"a mirror is not a list of all {number_of(num, 'place')}")
            same = (assignment.distances[np.ix_(mirror, mirror)] == assignment.distances).all()
            if not (same and (assignment.linear[:, mirror] == assignment.linear).all()):
                raise RefusedError("a mirror changes costs")
            if (mirror[mirror] != np.arange(num)).any():
                raise RefusedError("a mirror is not its own inverse")
        for one, other in itertools.combinations(self._mirrors, 2):
            if (one[other] != other[one]).any():
                raise RefusedError("two mirrors do not commute")
        images = [np.arange(num)]
        for mirror in self._mirrors:
            images += [mirror[image] for image in images]
        self._images = np.stack(images)
        self._firsts = np.flatnonzero(self._images.min(axis=0) == np.arange(num))

    def whole(self, certificate: PairsCertificate) -> IntArray:
        """Return the costs of all pairs of assignments; refuse them unless mirrors keep them."""
        num, firsts = self._num, self._firsts
        rows, columns = np.triu_indices(num)
        shape = (len(rows), len(firsts), num)
        count = shape[0] * shape[1] * shape[2]
        given = unpacked(certificate.costs, count, "costs").reshape(shape)
        costs = np.empty((num, num, num, num), dtype=np.int64)
        for image in self._images:
            at = (rows[:, None, None], image[firsts][:, None], columns[:, None, None], image)
            costs[at] = given
        below = np.tril_indices(num, -1)
        costs[below[0], :, below[1], :] = costs[below[1], :, below[0], :].transpose(0, 2, 1)
        kept = (costs[:, mirror][..., mirror] == costs for mirror in self._mirrors)
        if not all(same.all() for same in kept) or (costs != costs.transpose(2, 3, 0, 1)).any():
            raise RefusedError("the costs of pairs are not symmetric")
        return costs

    def require_eigenvalues(self, rest: IntArray, least: int) -> None:
        """Refuse the rest of the costs unless its square form is large enough for assignments.

        At least `least` per task, as no eigenvalue is below among functions whose rows and columns
        have the same sum. That is shown space by space of functions that mirrors keep or change
        the sign of.
        """
        num = self._num
        centred = _centred(_centred(rest).transpose(2, 3, 0, 1))
        # beside those functions, any positive eigenvalue
        other = largest(rest) + 1
        each = np.arange(num)
        centred -= 2 * num**2 * (least + other)
        centred[each, :, each, :] += num**3 * (least + other)
        centred[:, each, :, each] += num**3 * (least + other)
        tasks, places = np.indices((num, num))
        centred[tasks, places, tasks, places] -= num**4 * least
        signs = itertools.product(*([(1, -1)] * len(self._mirrors)))
        found = 0
        for number, sign in enumerate(signs):
            waves = self._waves(sign)
            found += len(waves)
            if not len(waves):
                continue
            require_room(num**2 * largest(centred), "the semidefinite part")
            at = np.abs(waves).argmax(axis=1)
            amounts = np.abs(waves).sum(axis=1)
            # a mirror makes of the row of one place of an orbit that of another
            block = np.einsum("iajq,bq->iajb", centred[:, at], waves, optimize=True)
            block *= amounts[None, :, None, None]
            size = num * len(waves)
            name = f"the semidefinite part, space {number},"
            block = np.ascontiguousarray(block.reshape(size, size))
            room = max(0, 49 - largest(block).bit_length())
            require_semidefinite(block << room, name)
        if found != num:
            raise RefusedError("the spaces of the mirrors are not all there is")

    def _waves(self, sign: tuple[int, ...]) -> IntArray:
        """Return functions of an orbit each that every mirror keeps or changes the sign of."""
        signs = np.ones(1, dtype=np.int64)
        for each in sign:
            signs = np.concatenate([signs, each * signs])
        waves = np.zeros((len(self._firsts), self._num), dtype=np.int64)
        for k, first in enumerate(self._firsts):
            np.add.at(waves[k], self._images[:, first], signs)
        return np.sign(waves[waves.any(axis=1)])


def _centred(rest: IntArray) -> IntArray:
    """Return what is left of the last two indices without sums of tasks and places, times num^2."""
    num = rest.shape[-1]
    of_task, of_place = rest.sum(axis=3, keepdims=True), rest.sum(axis=2, keepdims=True)
    every = of_task.sum(axis=2, keepdims=True)
    found: IntArray = num**2 * rest - num * (of_task + of_place) + 2 * every
    return found
