"""Plans of moves by an integer program over units on hosts and pools: who stays, goes or ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any, Protocol

from topoplace.placement.hierarchy.assignment import Assignment
from topoplace.placement.hierarchy.packing import Candidate, HierarchyPacking
from topoplace.placement.hierarchy.tables import Uses
from topoplace.placement.repack.problem import ENDS, GOES, RepackProblem, Seat
from topoplace.snapshot.hierarchy_state import HierarchyRequest
from topoplace.types import IntArray

_WORK = 20.0
"""CP-SAT's deterministic time for each level."""


class Ground(Protocol):
    """What programs of moves know of a `Site`: see there, and `moves.HierarchyMoves`."""

    names: Sequence[str]
    own: Sequence[Any]
    packing: HierarchyPacking
    requests: list[HierarchyRequest]
    kept: dict[int, Any]
    num_pairs: int

    def candidate(self, q: int, place: Any) -> Candidate:
        """Return a place as a candidate."""

    def pairs(self, q: int, place: Any, *, stays: bool = False) -> IntArray:
        """Return the pairs that a request takes in a place, or a mover that stays."""

    def pairs_of(self, q: int, pair: int | None = None) -> list[tuple[int, int, int, int]]:
        """Return the pairs of a request: number, node, part, and units beside the mover."""


class Plans(Assignment):
    """The program of a site; a later level of the objective begins with the plan of the last one.

    Raises
    ------
    topoplace.clock.OutOfTimeError
        If it is not written by the deadline.
    """

    def __init__(self, site: Ground, problem: RepackProblem, deadline: float) -> None:
        layout, packing = site.packing.layout, site.packing
        plain = {*range(layout.num_base)}
        for key, (_, rows) in layout.apart_at.items():
            plain.update(rows.tolist() if layout.apart[key] else ())
        taken = [
            {
                row: n
                for row, n in Counter(packing.rows_of(site.candidate(q, own)).tolist()).items()
                if row in plain
            }
            for q, own in enumerate(site.own)
        ]
        num_levels = layout.machine.num_levels
        super().__init__(layout, site.requests, packing.capacities, num_levels, deadline, taken)
        self._problem = problem
        self._ends: list[Any] = []
        for q, stays in enumerate(self._stays):
            self._ends.append(self._model.binary())
            self._model.add(self._starts[q] + stays + self._ends[q] == 1)
            if not problem.ends[q]:
                self._model.add(self._ends[q] == 0)
            if not problem.costs[q]:
                self._model.add(self._starts[q] == 0)
        self._model.hint({stays.index: 1 for stays in self._stays})
        for jobs, most in problem.budgets:
            self._model.add(sum(1 - self._stays[q] for q in sorted(jobs)) <= most)
        for q, kept in site.kept.items():
            for part, leaf, units in kept.uses:
                own = self._units[q][part].get(leaf, 0)
                self._model.add(own >= units * self._starts[q])

    def seats(self, costs: IntArray, seed: int) -> Iterator[list[Seat]]:
        """Yield better and better plans; costs are by way, job and level after the first."""
        wanted = self._starts[self._problem.num_movers :]
        ways = {GOES: self._starts, ENDS: self._ends}
        later = [
            -sum(
                int(cost) * own
                for way, every in ways.items()
                for cost, own in zip(costs[way, :, k], every, strict=False)
                if cost
            )
            for k in range(costs.shape[2])
        ]
        first = [] if self._problem.makes_room else [sum(wanted)]
        for answer in self._solved([(1, level) for level in (*first, *later)], seed, _WORK):
            gone = dict(self._found(answer))
            ends = {q for q, own in enumerate(self._ends) if answer.value(own)}
            yield plan_of(self._problem, gone, ends)


def plan_of(problem: RepackProblem, gone: Mapping[int, Uses], ends: Set[int]) -> list[Seat]:
    """Return a plan in which some are elsewhere, or end, and all other movers stay."""
    stay = (s for s in problem.stays if s.request_idx not in gone and s.request_idx not in ends)
    moved = (Seat(q, GOES, uses) for q, uses in gone.items())
    return sorted([*stay, *moved, *(Seat(q, ENDS) for q in ends)])
