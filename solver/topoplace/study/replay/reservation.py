"""The reservation of the first in line (EASY backfilling)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field

from topoplace.machine import Prism
from topoplace.study.replay.log import LogJob
from topoplace.study.replay.site import Decision, Room


@dataclass(frozen=True)
class Running:
    """A job, where it runs, and when it is due by its walltime: all a scheduler knows."""

    job: LogJob
    decision: Decision
    due: int


@dataclass(frozen=True)
class Reservation:
    """When a job can start if all running ones last to their walltimes, and what is free then.

    `refused` has the ids of those that would have delayed it where their method put them. They are
    not tried again while it stands: with a deep queue that would be most of the work.
    """

    job: LogJob
    at: int
    then: Room
    refused: set[str] = field(default_factory=set)
    _bad_places: set[tuple[bytes, Prism | None, bool]] = field(default_factory=set)

    def admits(self, job: LogJob, decision: Decision) -> bool:
        """Enter a job that lasts beyond the reservation, if the first in line fits beside it."""
        # What is free then only shrinks, so that a place too many remains one.
        place = (decision.nodes.tobytes(), decision.prism, bool(job.patterns))
        if place not in self._bad_places:
            self.then.start(job, decision)
            if self.then.holds(self.job):
                return True
            self.then.end(job, decision)  # enough nodes, but in the wrong places
            self._bad_places.add(place)
        self.refused.add(job.id)
        return False


def reserve(job: LogJob, room: Room, running: Iterable[Running], now: int) -> Reservation:
    """Return the earliest reservation of a job.

    A running job that has outrun its walltime may end any moment: it is due now. More room never
    makes a job fit less, so that the time is found by bisection.

    Parameters
    ----------
    room
        What is free now; it is not changed.
    now
        The time in seconds.
    """
    leaving = sorted(running, key=lambda item: item.due)
    dues = [max(item.due, now) for item in leaving]
    times = sorted({now, *dues})
    then, num_ended = room.copy(), 0  # what is free before times[low]
    low, high = 0, len(times) - 1
    while low < high:
        middle = (low + high) // 2
        later, upto = then.copy(), bisect_right(dues, times[middle])
        _end(later, leaving[num_ended:upto])
        if later.holds(job):
            high = middle
        else:
            low, then, num_ended = middle + 1, later, upto
    _end(then, leaving[num_ended : bisect_right(dues, times[low])])
    return Reservation(job, times[low], then)


def _end(room: Room, leaving: Iterable[Running]) -> None:
    for item in leaving:
        room.end(item.job, item.decision)
