"""How many domains some group spans in any mapping, with certificates (docs/proofs/spread.md)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from topoplace.mapping.bounds.levels import best_slope, inside_of_product
from topoplace.mapping.parallelism import Line
from topoplace.mapping.problem import MappingProblem
from topoplace.mapping.spread.groups import Groups
from topoplace.result import Fraction as FractionModel
from topoplace.result.mapping import CountingCertificate, TouchingCertificate
from topoplace.snapshot.schema import ParallelismApplication
from topoplace.solving import Bound, stronger
from topoplace.types import IntArray

ROUNDS, ROUNDS_WORK = 4, 1 << 26
"""Rounds in which the weights of kinds of groups are doubled or halved, one at a time, and the most
additions that one of these weights may take."""

MOST_KINDS = 6
"""Most kinds of groups that are counted together."""


def spread_bound(problem: MappingProblem) -> Bound:
    """Return the best bound on the largest number of domains that a group spans."""
    best = counting_bound(problem)
    found = stronger(best, touching_bound(problem))
    assert found is not None
    return found


def rooms_of(problem: MappingProblem, domain_of: IntArray) -> IntArray:
    """Return how many tasks fit into every domain, the largest first."""
    rooms = np.bincount(domain_of, np.minimum(problem.capacity, problem.num_tasks))
    return -np.sort(-np.minimum(rooms, problem.num_tasks)).astype(np.int64)


def counting_bound(problem: MappingProblem) -> Bound:
    """Return the domains that the largest group needs, or 2 if what hangs together fits nowhere."""
    least = 1
    for kind in problem.spread:
        inside = np.cumsum(rooms_of(problem, kind.domain_of))
        largest = int(np.diff(kind.first).max())
        least = max(least, int(np.searchsorted(inside, largest)) + 1)
    for level in {kind.level: kind for kind in problem.spread}.values():
        if _largest_component(problem, level) > int(rooms_of(problem, level.domain_of)[0]):
            least = max(least, 2)
    return Bound(least, CountingCertificate())


def _largest_component(problem: MappingProblem, level: Groups) -> int:
    """Return the most tasks that groups of this level and lower ones join."""
    num, ends = problem.num_tasks, []
    for kind in problem.spread:
        if kind.level <= level.level:
            ends.append(np.stack([kind.task[kind.first[kind.group]], kind.task]))
    sources, targets = np.concatenate(ends, axis=1)
    graph = csr_array((np.ones(len(sources), dtype=np.int8), (sources, targets)), (num, num))
    return int(np.bincount(connected_components(graph, directed=False)[1]).max())


# ---- Groups that the tasks of a domain touch -----------------------------------------------------


class Kinds(NamedTuple):
    """Kinds of groups along axes that have none in common, by their numbers, at a level."""

    level: Groups
    chosen: tuple[int, ...]
    sizes: tuple[int, ...]
    others: int


def touching_bound(problem: MappingProblem) -> Bound | None:
    """Return the best bound by what the tasks of a domain touch; None if there is none."""
    best: Bound | None = None
    for kinds in _kinds_of(problem):
        weights = list(kinds.sizes)  # as many lines as there are tasks, of each kind
        known = _touched(problem, kinds, weights)
        room = int(rooms_of(problem, kinds.level.domain_of)[0])
        for _ in range(ROUNDS if known is not None and room**2 * sum(weights) < ROUNDS_WORK else 0):
            before = known
            for k, factor in itertools.product(range(len(weights)), (Fraction(2), Fraction(1, 2))):
                tried = [w * (factor if i == k else Fraction(1)) for i, w in enumerate(weights)]
                whole = _whole(tried)
                found = _touched(problem, kinds, whole)
                if found is not None and known is not None and found[0] > known[0]:
                    known, weights = found, whole
            if known == before:
                break
        if known is not None:
            best = stronger(best, Bound(math.ceil(known[0]), known[1]))
    return best


def _whole(weights: Sequence[int | Fraction]) -> list[int]:
    """Return the least integers in the same proportion."""
    times = math.lcm(*(Fraction(w).denominator for w in weights))
    whole = [int(w * times) for w in weights]
    return [w // math.gcd(*whole) for w in whole]


def _kinds_of(problem: MappingProblem) -> Iterator[Kinds]:
    """Yield kinds that may be counted together, two or more of them, at the levels that they have.

    A group spans no more domains of a level than of one below.
    """
    application = problem.instance.application
    if not isinstance(application, ParallelismApplication):
        return
    sizes = [axis.size for axis in application.axes]
    usable = [(k, kind) for k, kind in enumerate(problem.spread) if kind.axes]
    for level in {kind.level: kind for _, kind in usable}.values():
        own = [(k, kind) for k, kind in usable if kind.level <= level.level][:MOST_KINDS]
        for count in range(2, len(own) + 1):
            for chosen in itertools.combinations(own, count):
                axes = [axis for _, kind in chosen for axis in kind.axes]
                if len(set(axes)) == len(axes):
                    extents = tuple(math.prod(sizes[a] for a in kind.axes) for _, kind in chosen)
                    rest = problem.num_tasks // math.prod(extents)
                    yield Kinds(level, tuple(k for k, _ in chosen), extents, rest)


def _touched(
    problem: MappingProblem, kinds: Kinds, weights: Sequence[int]
) -> tuple[Fraction, TouchingCertificate] | None:
    """Return what weights prove, not rounded; None if the layers are too many.

    Of s tasks in a domain, the lines that they touch are s less what `inside_of_product` counts at
    most, along every axis.
    """
    rooms = rooms_of(problem, kinds.level.domain_of)
    lines = [Line(n, "line", w) for n, w in zip(kinds.sizes, weights, strict=True)]
    psi = inside_of_product([*lines, Line(kinds.others, "line", 0)], int(rooms[0]))
    if psi is None:
        return None
    slope, inside = best_slope(psi, np.minimum(rooms, len(psi) - 1), problem.num_tasks)
    num = problem.num_tasks
    groups = sum(w * (num // n) for n, w in zip(kinds.sizes, weights, strict=True))
    every = [0] * len(problem.spread)
    for k, w in zip(kinds.chosen, weights, strict=True):
        every[k] = w
    assert problem.machine.levels is not None
    name = problem.machine.levels.hierarchy.levels[-1 - kinds.level.level]
    proof = TouchingCertificate(level=name, weights=every, slope=FractionModel.of(slope))
    return Fraction(num * sum(weights) - inside) / groups, proof
