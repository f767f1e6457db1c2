"""Run times under shared links: a job that shares links with others communicates for longer.

At any moment a job that communicates for a share c of its run time runs 1 + c s x times as long,
where x is the mean over the links of all its routes of the number of other communicating jobs that
use the link, too, and s the slowdown that is assumed for one. With s = 1, a link that k jobs use
gives each of them a k-th of its time. Routes are exact: those of the prism, or of all pairs of
routers of a scattered job.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from topoplace.machine import Torus, prism_links, scattered_links
from topoplace.study.replay.log import Decision, LogJob
from topoplace.types import IntArray

TICKS = 1000
"""Work is counted in such parts of a second."""


@dataclass
class _Work:
    """What a running job has left to do at full speed, in ticks, and how fast it goes."""

    links: IntArray
    share: Fraction
    left: int
    since: int
    slower: Fraction = Fraction(1)


class Sharing:
    """The running jobs of a replay that communicate, by number, and the links that they use.

    Parameters
    ----------
    percent
        The slowdown of a job's communication by one other job on all its links.
    """

    def __init__(self, torus: Torus, percent: int) -> None:
        self._torus, self._slowdown = torus, Fraction(percent, 100)
        self._users = np.zeros(torus.num_links, dtype=np.int64)
        self._work: dict[int, _Work] = {}

    def start(self, number: int, job: LogJob, decision: Decision, now: int) -> None:
        """Let a job run from now on; it shares nothing if it does not communicate."""
        links = np.zeros(0, dtype=np.int64)
        if job.patterns and decision.prism is not None:
            links = prism_links(self._torus, decision.prism)
        elif job.patterns:
            routers = np.unique(decision.nodes // self._torus.nodes_per_router)
            links = scattered_links(self._torus, routers)
        if len(links):
            share = Fraction(sum(use.share for use in job.patterns), 100)
            self._work[number] = _Work(links, share, decision.seconds * TICKS, now)
            self._users[links] += 1

    def end(self, number: int) -> None:
        """Let a job go."""
        work = self._work.pop(number, None)
        if work is not None:
            self._users[work.links] -= 1

    def ends(self, now: int) -> dict[int, int]:
        """Return when the jobs end whose speed changes now, if nothing else starts or ends."""
        found = {}
        for number, work in self._work.items():
            others = int(self._users[work.links].sum()) - len(work.links)
            slower = 1 + work.share * self._slowdown * Fraction(others, len(work.links))
            if slower != work.slower:
                work.left -= math.floor((now - work.since) * TICKS / work.slower)
                work.since, work.slower = now, slower
                found[number] = now + math.ceil(max(0, work.left) * slower / TICKS)
        return found
