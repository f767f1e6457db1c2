"""One request at its least cost: a start, a bound, and for small ones a search to the end."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from topoplace import clock
from topoplace.machine.tree import SwitchTree
from topoplace.placement.tree.cost import CostModel
from topoplace.placement.tree.exact.bounding.thresholds import ThresholdSearch
from topoplace.placement.tree.exact.building.arrange import arrangements, counts_per_leaf
from topoplace.placement.tree.exact.building.construct import annealed, best_start
from topoplace.placement.tree.exact.clock import at_share
from topoplace.placement.tree.exact.cubes.refuter import CubeRefuter, has_cube
from topoplace.placement.tree.exact.doubling.certificate import nogoods_of
from topoplace.placement.tree.exact.doubling.search import DoublingSearch, doubles
from topoplace.placement.tree.exact.fitting.best import best_fit
from topoplace.placement.tree.exact.fitting.turned import turned
from topoplace.placement.tree.exact.gridding.board import is_grid
from topoplace.placement.tree.exact.gridding.opened import settled_where_open
from topoplace.placement.tree.exact.gridding.search import better_grid
from topoplace.placement.tree.exact.job import Job, job_of
from topoplace.placement.tree.exact.lines.certificate import line_nogoods_of
from topoplace.placement.tree.exact.lines.search import LineSearch, has_lines
from topoplace.result.tree import DoublingNogood, LineNogood
from topoplace.snapshot.schema import PatternUse

IntArray = NDArray[np.int64]

_SHORT = 2000
"""Moves per rank of the runs that look for a better start of a grid."""


@dataclass(frozen=True)
class Room:
    """Where one request may go: L_comm without it and free nodes per leaf."""

    model: CostModel
    comm: IntArray
    free: IntArray

    def jobs(self, patterns: Sequence[PatternUse], ranks: int) -> list[Job]:
        """Return the request on every set of leaves that it may use together and fits on."""
        found = [
            job_of(self.model, patterns, ranks, self.comm, self.free, domain)
            for domain in domains(self.model.tree)
        ]
        return [job for job in found if int(self.free[job.domain].sum()) >= ranks]


def domains(tree: SwitchTree) -> list[IntArray]:
    """Return the largest sets of leaves any two of which have a common switch."""
    near = tree.common_level > 0
    if near.all():
        return [np.arange(tree.num_leaves)]
    found: list[IntArray] = []

    def grow(clique: list[int], able: set[int], done: set[int]) -> None:
        if not able:
            if not done:
                found.append(np.array(sorted(clique)))
            return
        pivot = max(able | done, key=lambda leaf: sum(near[leaf, list(able)]))
        for leaf in [leaf for leaf in sorted(able) if not near[pivot, leaf] or leaf == pivot]:
            around = set(np.flatnonzero(near[leaf]).tolist()) - {leaf}
            grow([*clique, leaf], able & around, done & around)
            able = able - {leaf}
            done = done | {leaf}

    grow([], set(range(tree.num_leaves)), set())
    return found


def good_leaves(
    jobs: Sequence[Job], starts: Iterable[IntArray], deadline: float, seed: int
) -> IntArray | None:
    """Return the leaf of every rank at the least cost found, or None if there is no room."""
    found = list(starts)
    for number, job in enumerate(jobs):
        share = (deadline - clock.now()) / (len(jobs) - number)
        begin = clock.now()
        grid = is_grid(job)
        start = best_start(job, begin + (share / 4 if grid else share), seed)
        if start is not None and grid:
            start = better_grid(job, start, 0, begin + share, seed, _SHORT)
        if start is not None:
            found.append(start)
    return turned(jobs[0], min(found, key=jobs[0].cost)) if found else None


@dataclass
class Answer:
    """The least cost known of a request, the leaf of every rank at it, and a lower bound.

    Attributes
    ----------
    nogoods, line_nogoods
        What proves the bound of a binomial job, or of a grid, on a single domain, if it is known.
    refuter
        Of a cube on a single domain, with what it has found.
    """

    leaves: IntArray
    cost: Fraction
    bound: Fraction
    nogoods: list[DoublingNogood] | None = None
    line_nogoods: list[LineNogood] | None = None
    refuter: CubeRefuter | None = None


def least_cost(jobs: Sequence[Job], leaves: IntArray, deadline: float, seed: int) -> Answer:
    """Return a bound over all domains of a request, and a better allocation if one turns up."""
    cost = Fraction(jobs[0].cost(leaves), 100 * int(jobs[0].model.scale))
    best = Answer(leaves, cost, cost)
    for number, job in enumerate(jobs):
        now = clock.now()
        end = now + (deadline - now) / (len(jobs) - number)
        search = _doubled if doubles(job) else _on_lines if has_lines(job) else _relaxed
        found = search(job, best.leaves, end, seed)
        best = replace(found, bound=min(best.bound, found.bound, found.cost))
    if len(jobs) > 1:
        best = replace(best, nogoods=None, line_nogoods=None, refuter=None)
    return best


def _relaxed(job: Job, leaves: IntArray, deadline: float, seed: int) -> Answer:
    """Return the best allocation found and a bound by the relaxation of all patterns."""
    end = at_share(0.7, deadline)
    refuter = CubeRefuter(job, end) if has_cube(job) else None
    more = refuter.refutes if refuter else None
    search = ThresholdSearch(job, end, plain=refuter is not None, more=more)
    to_beat = _units(job, leaves)
    found = search.bound(to_beat)
    if found < to_beat:
        leaves = turned(job, best_fit(search, leaves, found, at_share(0.8, deadline), seed))
        to_beat = _units(job, leaves)
        if found < to_beat:
            leaves = turned(job, realised(job, leaves, search.found, found, deadline, seed))
    cost = Fraction(job.cost(leaves), 100 * int(job.model.scale))
    if found >= to_beat and job.exact:
        return Answer(leaves, cost, cost, refuter=refuter)
    return Answer(leaves, cost, Fraction(found, 100 * job.scale), refuter=refuter)


def _units(job: Job, leaves: IntArray) -> int:
    """Return a cost in units of 1 / (100 `job.scale`)."""
    return job.cost(leaves) * job.scale // int(job.model.scale)


def _on_lines(job: Job, leaves: IntArray, deadline: float, seed: int) -> Answer:
    """Return the best allocation found and a bound of a grid."""
    search = LineSearch(job, job.cost(leaves), at_share(0.7, deadline))
    leaves, bound = settled_where_open(search, leaves, deadline, seed)
    nogoods = line_nogoods_of(search)
    leaves = better_grid(job, leaves, bound, deadline, seed)
    unit = 100 * job.scale
    return Answer(
        leaves, Fraction(job.cost(leaves), unit), Fraction(bound, unit), line_nogoods=nogoods
    )


def _doubled(job: Job, leaves: IntArray, deadline: float, seed: int) -> Answer:
    """Return the best allocation found and a bound of a binomial job."""
    search = DoublingSearch(job, leaves, at_share(0.98, deadline), seed)
    found = search.run()
    leaves = search.best.leaves
    if found < search.best.cost:
        leaves = realised(job, leaves, None, found, deadline, seed)
    unit = 100 * job.scale
    cost, bound = Fraction(job.cost(leaves), unit), Fraction(found, unit)
    return Answer(leaves, cost, bound, nogoods_of(search))


def realised(
    job: Job,
    leaves: IntArray,
    leaves_in_state: IntArray | None,
    wanted: int,
    deadline: float,
    seed: int,
) -> IntArray:
    """Return the best allocation found from one, or from counts that the relaxation leaves.

    Parameters
    ----------
    leaves
        An allocation to beat; it may be on leaves of another domain. It is not annealed then: one
        rank after the other would go to leaves without a common switch with those of the others.
    wanted
        A bound of the cost, at which there is no better one.
    """
    best = leaves
    starts = [leaves]
    if not np.isin(leaves, job.domain).all():
        start = best_start(job, clock.now(), seed)
        starts = [] if start is None else [start]
    if leaves_in_state is not None:
        starts += arrangements(job, counts_per_leaf(job, leaves_in_state))
    for turn in itertools.count():
        for start in starts:
            # first as they are; then with less and less heat, and all over again
            found = start if turn == 0 else annealed(job, start, 1 << turn % 5, seed + turn)
            if job.cost(found) < job.cost(best):
                best = starts[0] = found
            if job.cost(best) <= wanted or clock.now() > deadline:
                return best
        if not starts:
            return best
    raise AssertionError("counting ends")
