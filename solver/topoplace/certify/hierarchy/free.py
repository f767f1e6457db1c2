"""Domains that stay free as a whole, by spares (docs/proofs/hierarchy.md, "Free domains")."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from topoplace.certify.hierarchy.instance import Asked
from topoplace.certify.hierarchy.oracle import HierarchyOracle, flat_prices
from topoplace.certify.hierarchy.rows import Rows
from topoplace.certify.packing import Covers, PackedRequest, Prices
from topoplace.types import IntArray


@dataclass(frozen=True)
class Spare:
    """What keeps a domain free; it is no request, and adds nothing on the first level."""

    id: str
    value: int = 0


@dataclass(frozen=True)
class FreeOracle:
    """The requests, and then spares, as `certify.packing.CheckingOracle`.

    Attributes
    ----------
    jobs
        The oracle of the requests alone.
    places
        By position of spares, what a domain there takes of every row of the requests.
    sizes
        How many domains are there.
    """

    jobs: HierarchyOracle
    places: Sequence[Mapping[int, int]]
    sizes: Sequence[int]
    requests: tuple[PackedRequest, ...]

    @property
    def rows(self) -> dict[str, IntArray]:
        """Capacities of the rows, those of positions last."""
        return {**self.jobs.rows, "free": np.array(self.sizes, dtype=np.int64)}

    @property
    def coverable(self) -> int:
        """How many rows branches may name."""
        return self.jobs.coverable

    @property
    def largest(self) -> Sequence[int]:
        """By level, a limit of the absolute value of a candidate."""
        return self.jobs.largest

    @property
    def _num(self) -> int:
        return len(self.jobs.requests)

    def may_replace(self, one: int, other: int) -> bool:
        """Return whether a request asks for the same, or both are spares."""
        if min(one, other) >= self._num or max(one, other) < self._num:
            return one >= self._num or self.jobs.may_replace(one, other)
        return False

    def among(self, chosen: Sequence[tuple[int, int]]) -> FreeOracle:
        """Return an oracle of some requests and spares; those come first that are requests."""
        some = sorted(chosen)
        jobs = self.jobs.among([pair for pair in some if pair[0] < self._num])
        spares = (self.requests[q] for q, _ in some if q >= self._num)
        return FreeOracle(jobs, self.places, self.sizes, (*jobs.requests, *spares))

    def best(self, prices: Prices, wanted: Mapping[int, Covers]) -> dict[int, int | None]:
        """Return the most that requests gain, and spares: of domains that they may have."""
        found = self.jobs.best(prices, {q: c for q, c in wanted.items() if q < self._num})
        level = [name for name, _ in self.jobs.table.instance.levels].index(
            self.jobs.table.instance.free_name
        )
        factor = prices.factors[level] if level < len(prices.factors) else 0
        of_row = flat_prices(self.jobs.table, prices).tolist()
        none = np.zeros(len(self.sizes), dtype=np.int64)
        of_place = prices.rows.get("free", none).tolist()
        costs = [
            own + sum(of_row[row] * n for row, n in place.items())
            for own, place in zip(of_place, self.places, strict=True)
        ]
        known: dict[Covers, int | None] = {}
        for q, covers in wanted.items():
            if q < self._num:
                continue
            if covers not in known:
                may = [
                    factor - cost
                    for cost, place in zip(costs, self.places, strict=True)
                    if covers.admit(place.keys())
                ]
                known[covers] = max(may, default=None)
            found[q] = known[covers]
        return found


def free_oracle(rows: Rows, queue: Sequence[Asked]) -> FreeOracle:
    """Return an oracle of a queue and a spare for every free domain."""
    assert rows.instance.free_domains is not None
    taken: dict[tuple[tuple[int, int], ...], int] = {}
    for hosts in rows.instance.free_domains[1].values():
        own: Counter[int] = Counter()
        for place in rows.places:
            inside = len(hosts.intersection(place.hosts))
            for row in place.rows.values():
                own[row] += inside * (1 if place.is_pool else int(rows.capacities[row]))
        key = tuple(sorted((row, n) for row, n in own.items() if n))
        taken[key] = taken.get(key, 0) + 1
    mark = next(
        text
        for length in itertools.count(1)
        for text in ["~" * length]
        if not any(asked.id.startswith(text) for asked in queue)
    )
    spares = (Spare(f"{mark}{k}") for k in range(sum(taken.values())))
    jobs, places = HierarchyOracle(rows, (*queue,)), [dict(key) for key in taken]
    return FreeOracle(jobs, places, [*taken.values()], (*queue, *spares))
