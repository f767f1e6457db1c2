"""The order in which jobs move: each arrives while all that have not left still hold their places.

A job that moves holds its old place until it has arrived. If there is no order, some jobs are
suspended: they leave at the beginning and come back after the others have moved.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

Taken = Mapping[Hashable, int]
"""How much a job takes, by what it is of."""

MOST_CHECKS = 300_000
"""Checks of whether a job has room, about a second; then suspended jobs are not proven fewest."""


@dataclass(frozen=True)
class Changes:
    """Jobs that move, by number.

    Attributes
    ----------
    old, new
        What each takes now, and after all moves.
    room
        How much there is for them: all, less what jobs hold that stay.
    """

    old: Mapping[int, Taken]
    new: Mapping[int, Taken]
    room: Mapping[Hashable, int]


class _OutOfChecksError(Exception):
    pass


class _Search:
    def __init__(self, changes: Changes) -> None:
        self._changes, self.left = changes, MOST_CHECKS
        every: Counter[Hashable] = Counter()
        for own in (*changes.old.values(), *changes.new.values()):
            every.update(own)
        self._ample = {of for of, amount in every.items() if amount <= changes.room[of]}

    def order(self, jobs: Sequence[int]) -> list[int] | None:
        """Return an order in which some jobs move, None if there is none."""
        held: Counter[Hashable] = Counter()
        for job in jobs:
            held.update(self._changes.old[job])
        return self._rest(held, frozenset(jobs), set())

    def _fits(self, held: Mapping[Hashable, int], job: int) -> bool:
        room = self._changes.room
        return all(held[of] + n <= room[of] for of, n in self._changes.new[job].items())

    def _rest(
        self, held: Counter[Hashable], left: frozenset[int], failed: set[frozenset[int]]
    ) -> list[int] | None:
        """Return an order of those left; jobs that hinder no other by arriving come first."""
        done: list[int] = []
        held = held.copy()
        needed = Counter(of for job in left for of in self._changes.new[job])
        while True:
            self.left -= 1 + len(left)
            if self.left < 0:
                raise _OutOfChecksError
            if not left:
                return done
            ready = [job for job in sorted(left) if self._fits(held, job)]
            safe = next((job for job in ready if self._is_safe(job, needed)), None)
            if safe is None:
                break
            self._move(held, safe)
            needed.subtract(self._changes.new[safe].keys())
            done.append(safe)
            left -= {safe}
        if left in failed:
            return None
        for job in ready:
            after = held.copy()
            self._move(after, job)
            rest = self._rest(after, left - {job}, failed)
            if rest is not None:
                return [*done, job, *rest]
        failed.add(left)
        return None

    def _move(self, held: Counter[Hashable], job: int) -> None:
        held.update(self._changes.new[job])
        held.subtract(self._changes.old[job])

    def _is_safe(self, job: int, needed: Mapping[Hashable, int]) -> bool:
        """Return whether nobody else needs any of what a job takes by arriving."""
        return all(of in self._ample or needed[of] == 1 for of in self._changes.new[job])


def ordered(changes: Changes) -> tuple[list[int], tuple[int, ...], bool]:
    """Return an order of moves, the jobs to suspend meanwhile, and whether fewer are not enough."""
    search, every = _Search(changes), sorted(changes.new)
    try:
        for size in range(len(every) + 1):
            for gone in itertools.combinations(every, size):
                order = search.order([job for job in every if job not in gone])
                if order is not None:
                    return order, gone, True
    except _OutOfChecksError:
        pass
    order, gone = [], tuple(every)
    for job in every:  # as many as can go on running, one after the other
        search.left = MOST_CHECKS // len(every)
        fewer = tuple(other for other in gone if other != job)
        try:
            found = search.order([other for other in every if other not in fewer])
        except _OutOfChecksError:
            continue
        if found is not None:
            order, gone = found, fewer
    return order, gone, False
