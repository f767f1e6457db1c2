"""The bound of a mapping problem by the cuts of its machine, within limits of time and size."""

from __future__ import annotations

import numpy as np

from topoplace import clock
from topoplace.bounds.cuts.certificate import Guest, Rounding, gain_per_square, gains_of
from topoplace.bounds.cuts.descent import Floats
from topoplace.bounds.cuts.machine_cuts import MachineCuts, machine_cuts
from topoplace.bounds.cuts.relaxation import Multipliers, Relaxation
from topoplace.bounds.pairs import exchanged
from topoplace.machine import Torus
from topoplace.mapping.problem import MappingProblem
from topoplace.result.mapping import CUT_FACTORS, CUT_LAYERS, CUT_TASKS, CutLine
from topoplace.solving import Bound, stronger

RANK = 12
"""Dimensions of the vectors at least; more are slower and hardly better."""

MOST_LINES = 3
"""Limits of s for which lines are computed, where cuts differ in them."""

TEST_SECONDS = 1e-10
"""Estimate of the time of a test on a busy core, per cube of the tasks."""


def cuts_bound(
    problem: MappingProblem, time_limit: float | None = None, target: int | None = None
) -> Bound | None:
    """Return the bound by the bytes over all cuts of the machine (docs/proofs-graphs.md, "Cuts").

    Parameters
    ----------
    problem
        On a torus or mesh, with at most `CUT_TASKS` tasks.
    time_limit
        Seconds; without it the work is bounded, and the answer the same each time.
    target
        A bound this high is enough: the hop-bytes of a mapping in hand.

    Returns
    -------
    Bound or None
        In bytes x hops; None if the problem is too large, has no messages or nothing is proven,
        or there is no time.
    """
    end = clock.deadline(time_limit)
    machine, num = problem.machine, problem.num_tasks
    if not isinstance(machine, Torus) or not problem.graph.num_messages or num > CUT_TASKS:
        return None
    if max(machine.shape) > CUT_LAYERS:
        return None
    reserved = 2 * TEST_SECONDS * num**3
    if time_limit is not None and time_limit <= reserved:
        return None
    pairs = exchanged(problem.graph)
    if int(np.bincount(pairs.tasks, pairs.sizes).max()) >= 1 << 48:
        return None
    guest = Guest(pairs.matrix(num), pairs.unit)
    stop = end - reserved
    best: Bound | None = None
    # in a ring distances are shorter, but its cuts are all alike
    for host in [machine] if all(machine.wrap) else [machine, Torus(machine.shape)]:
        cuts = machine_cuts(host, problem.capacity, num)
        if cuts.weights and not _reached(best, target) and not (best and clock.now() >= stop):
            best = stronger(best, _Search(guest, cuts, stop, end).best(target))
    return best if best is not None and best.value > 0 else None


def _reached(bound: Bound | None, target: int | None) -> bool:
    return bound is not None and target is not None and bound.value >= target


class _Search:
    """Relaxations of one problem up to a time, and the bounds they prove, up to a later one."""

    def __init__(self, guest: Guest, cuts: MachineCuts, stop: float, end: float) -> None:
        from scipy.sparse import diags_array  # noqa: PLC0415 - heavy

        self._guest, self._cuts, self._stop, self._end = guest, cuts, stop, end
        self._gains = gains_of(cuts)
        self._unit = max(1.0, float(guest.degrees.mean()))
        laplacian = diags_array(guest.degrees.astype(np.float64)) - guest.sparse
        self._laplacian = (laplacian / self._unit).tocsr()

    def best(self, target: int | None) -> Bound | None:
        """Return the best bound of one line for all cuts or several, with factors and without."""
        num = self._guest.num_tasks
        first = self._solved(
            np.zeros((0, num)), self._cuts.spread / self._cuts.weight, self._widest
        )
        bound = self._bound(self._rounding(first.factors), [first])
        if not self._squares:
            return bound
        for factors in (first.factors, first.factors[:0])[: 1 + len(first.factors)]:
            if clock.now() >= self._stop or _reached(bound, target):
                break
            rounding = self._rounding(factors)
            lines = [self._solved(rounding.fixed, square, None) for square in self._squares]
            bound = stronger(bound, self._bound(rounding, lines))
        return bound

    def _rounding(self, factors: Floats) -> Rounding:
        return Rounding(self._guest, self._unit, factors)

    @property
    def _widest(self) -> float | None:
        """Limit of eigenvalues of the relaxation; None if factors would not be worth their cost."""
        if self._gains is None:
            return None
        num = self._guest.num_tasks
        limit = float(gain_per_square(self._cuts, self._gains)) / self._cuts.weight
        return limit if num > limit > 2 * num / CUT_FACTORS else None

    @property
    def _squares(self) -> list[int]:
        """Squares of s for which lines are worth it: those of cuts, if the places limit them."""
        every = sorted(set(self._cuts.most))
        free = sum(w * m for w, m in zip(self._cuts.weights, self._cuts.most, strict=True))
        if len(every) < 2 or free > self._cuts.spread:
            return []
        chosen = np.linspace(0, len(every) - 1, min(MOST_LINES, len(every))).round().astype(int)
        return [every[k] for k in chosen]

    def _solved(self, fixed: Floats, spread: float, widest: float | None) -> Multipliers:
        num = self._guest.num_tasks
        rank = min(num, RANK if widest is None else max(RANK, int(num / widest) + 6))
        return Relaxation(self._laplacian, spread, widest, fixed, rank).solve(self._stop)

    def _bound(self, rounding: Rounding, found: list[Multipliers]) -> Bound | None:
        """Return what the lines prove that pass the test; None if there are none."""
        lines: list[CutLine] = [
            line for one in found if (line := rounding.line(one, self._end)) is not None
        ]
        if not lines:
            return None
        gains = self._gains or []
        value = rounding.value(self._cuts, gains, lines)
        return Bound(value, rounding.certificate(self._cuts, gains, lines))
