"""A packing now and at a later time, as one: what reservations are checked on.

A request is there now, then, or at both times, and uses the rows of these times
(docs/proofs/order.md). What is free now is free then, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from topoplace.certify.packing import CheckingOracle, Covers, PackedRequest, Prices
from topoplace.certify.report import RefusedError
from topoplace.result.certificate import Reserved
from topoplace.snapshot.schema import Snapshot
from topoplace.types import IntArray

NOW, BOTH, THEN = (True, False), (True, True), (False, True)


def lasting(snapshot: Snapshot, at: int | None) -> Snapshot:
    """Return a snapshot with the running jobs that have not ended by a time."""
    own = [job for job in snapshot.running if lasts(job.ends, at)]
    return snapshot.model_copy(update={"running": own})


def lasts(ends: int | None, at: int | None) -> bool:
    """Return whether what ends in some seconds is there at a time; None: never, and at the end."""
    return ends is None or (at is not None and max(1, ends) > at)


def reserved_nodes(reserved: Reserved) -> str:
    """Return the nodes of a reservation that has no parts."""
    [part, *more] = reserved.parts
    [share, *others] = part.shares
    if (part.part, more, others, share.units) != (None, [], [], 1):
        raise RefusedError(f"{reserved.request}: the reservation has parts or units")
    return share.hosts


def twice(
    now: CheckingOracle, then: CheckingOracle, snapshot: Snapshot, at: int | None, request: str
) -> TwiceOracle:
    """Return an oracle of both times, when one request of a snapshot is placed at the later one."""
    ends = {one.id: one.walltime for one in snapshot.queue}
    times = (
        THEN if own.id == request else BOTH if lasts(ends[own.id], at) else NOW
        for own in now.requests
    )
    return TwiceOracle(now, then, tuple(times))


@dataclass(frozen=True)
class TwiceOracle:
    """An oracle of both times (`certify.packing.CheckingOracle`).

    Attributes
    ----------
    now, then
        The oracles of the times, of the same requests. Branches may name their first family alone.
    times
        By request, whether it is there now, and then.
    """

    now: CheckingOracle
    then: CheckingOracle
    times: tuple[tuple[bool, bool], ...]

    @property
    def requests(self) -> Sequence[PackedRequest]:
        """The queue."""
        return self.now.requests

    @property
    def rows(self) -> dict[str, IntArray]:
        """The rows of both times, family by family."""
        found, then = {}, self.then.rows
        for family, capacities in self.now.rows.items():
            found[family], found[f"{family} then"] = capacities, then[family]
        return found

    @property
    def coverable(self) -> int:
        """The rows of the first family, at both times."""
        return 2 * self.now.coverable

    @property
    def largest(self) -> Sequence[int]:
        """Those of both times."""
        return [max(own) for own in zip(self.now.largest, self.then.largest, strict=True)]

    def may_replace(self, one: int, other: int) -> bool:
        """Return whether a request is there at the same times, and takes all that another takes."""
        same = self.times[one] == self.times[other]
        return same and self.now.may_replace(one, other) and self.then.may_replace(one, other)

    def among(self, chosen: Sequence[tuple[int, int]]) -> TwiceOracle:
        """Return an oracle of some requests, each in the places of another."""
        own = tuple(self.times[q] for q, _ in chosen)
        return TwiceOracle(self.now.among(chosen), self.then.among(chosen), own)

    def best(self, prices: Prices, wanted: Mapping[int, Covers]) -> dict[int, int | None]:
        """Return the most that candidates gain, each at the prices of its times."""
        first = len(next(iter(self.now.rows.values())))
        if first != self.now.coverable:
            raise RefusedError("branches name rows of more than one family")
        found: dict[int, int | None] = {}
        for times in {self.times[q] for q in wanted}:
            some: dict[int, Covers] = {}
            for q, covers in wanted.items():
                if self.times[q] != times:
                    continue
                own = _at(covers, times, first)
                if own is None:
                    found[q] = None
                else:
                    some[q] = own
            rows: dict[str, IntArray] = {}
            for family in self.now.rows:
                for name, there in zip((family, f"{family} then"), times, strict=True):
                    if there and name in prices.rows:
                        rows[family] = rows.get(family, np.int64(0)) + prices.rows[name]
            oracle = self.now if times[0] else self.then
            found |= oracle.best(Prices(rows, prices.total, prices.factors), some)
        return found


def _at(covers: Covers, times: tuple[bool, bool], first: int) -> Covers | None:
    """Return covers as they are at the times of a request; None if it uses no such row."""
    if any(not times[row // first] for row in covers.inside):
        return None
    inside = frozenset(row % first for row in covers.inside)
    outside = frozenset(row % first for row in covers.outside if times[row // first])
    return Covers(inside, outside)
