"""Which request's place to split, and where, for a branch that changes much on both sides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from topoplace.placement.exact.branching import WriteBranch
from topoplace.placement.exact.limits import PlaceLimit
from topoplace.placement.exact.relaxation import Subproblem
from topoplace.placement.exact.rows import PackingRows
from topoplace.placement.problem import Candidate
from topoplace.result import PlaceBranch
from topoplace.result.schema import CertificateNode

FloatArray = NDArray[np.float64]
What = Literal["origin", "extents"]
Side = Literal["low", "high"]

_WHATS: tuple[What, What] = ("origin", "extents")
_LEAST = 1e-4  # amount of a candidate that counts


@dataclass(frozen=True)
class _Split:
    """A coordinate of the places of requests that may take each other's.

    Attributes
    ----------
    one
        The side that one of them goes to, or else none does.
    """

    requests: tuple[int, ...]
    what: What
    dim: int
    at: int
    one: Side


def split_place(
    rows: PackingRows,
    sub: Subproblem,
    amounts: Sequence[tuple[float, Candidate]],
    groups: Sequence[tuple[int, ...]],
) -> tuple[tuple[Subproblem, Subproblem], WriteBranch] | None:
    """Split the places of requests that start, where a fractional solution does not fit.

    On one side goes one of some alike requests, on the other all of them. A solution that takes
    half of one to a side fits neither, and less so the fewer routers what it takes on both sides
    has in common: no request is then served as well by moving a bit. Larger values go first.

    Parameters
    ----------
    amounts
        The fractional solution.
    groups
        Of alike requests (see `alike`).

    Returns
    -------
    The sides, low first, and what writes the branch; None if every request is in one place.
    """
    places = [
        places
        for requests in _interchangeable(rows, sub, groups)
        if (places := _Places.of(rows, sub, requests, amounts)) is not None
    ]
    splits = [(use, k, split) for k, found in enumerate(places) for use, split in found.splits()]
    best: tuple[float, _Split] | None = None
    for most, k, split in sorted(splits, key=lambda item: -item[0]):
        if best is not None and most <= best[0] + 1e-9:
            break
        use = most * places[k].apart(split)
        if best is None or use > best[0] + 1e-9:
            best = (use, split)
    if best is None or best[0] <= 1e-6:
        return None
    return _branch(rows, sub, best[1])


def _interchangeable(
    rows: PackingRows, sub: Subproblem, groups: Sequence[tuple[int, ...]]
) -> list[tuple[int, ...]]:
    """Return the requests that must start, together those that may take each other's place."""
    group_of = {q: number for number, group in enumerate(groups) for q in group}
    found: dict[object, list[int]] = {}
    for q in sorted(sub.forced, key=lambda q: (-rows.problem.requests[q].value, q)):
        own = (group_of[q],) if q in group_of else ("alone", q)
        found.setdefault((own, _bounds(sub, q)), []).append(q)
    return [tuple(requests) for requests in found.values()]


def _bounds(sub: Subproblem, q: int) -> frozenset[tuple[str, int, int, int]]:
    """Return the bounds that the limits of a request make together."""
    bounds: dict[tuple[str, int], tuple[int, int]] = {}
    for limit in sub.limits:
        if limit.request_idx == q:
            low, high = bounds.get((limit.what, limit.dim), (limit.low, limit.high))
            bounds[limit.what, limit.dim] = (max(low, limit.low), min(high, limit.high))
    return frozenset((*key, *ends) for key, ends in bounds.items())


@dataclass(frozen=True)
class _Places:
    """Where a fractional solution puts requests that may take each other's place.

    Attributes
    ----------
    value
        The largest of a request.
    coords
        Coordinate of every candidate by what it is of, shape ``(2, num_dims, num_candidates)``.
    covers
        The routers that somebody covers by candidates, 0/1.
    """

    requests: tuple[int, ...]
    value: int
    weights: FloatArray
    coords: NDArray[np.int64]
    covers: NDArray[np.float32]

    @classmethod
    def of(
        cls,
        rows: PackingRows,
        sub: Subproblem,
        requests: tuple[int, ...],
        amounts: Sequence[tuple[float, Candidate]],
    ) -> _Places | None:
        """Return them; None if there are none."""
        torus, members = rows.problem.torus, frozenset(requests)
        mine = [
            (a, c) for a, c in amounts if c.request_idx in members and a > _LEAST and sub.admits(c)
        ]
        if not mine:
            return None
        covers = np.zeros((len(mine), torus.num_routers), dtype=np.float32)
        for row, (_, candidate) in zip(covers, mine, strict=True):
            row[candidate.prism.routers(torus)] = 1
        return cls(
            requests,
            max(rows.problem.requests[q].value for q in requests),
            np.array([amount for amount, _ in mine]),
            np.array([[getattr(c.prism, what) for _, c in mine] for what in _WHATS]).swapaxes(1, 2),
            covers[:, covers.any(axis=0)],
        )

    def splits(self) -> Iterator[tuple[float, _Split]]:
        """Yield the splits, each with what it would be worth if its sides had nothing in common."""
        for what, table in zip(_WHATS, self.coords, strict=True):
            for dim, coords in enumerate(table):
                places, at = np.unique(coords, return_inverse=True)
                below = np.cumsum(np.bincount(at, weights=self.weights))
                for place, low in zip(places[:-1].tolist(), below[:-1].tolist(), strict=True):
                    sides: tuple[tuple[float, Side], ...] = (
                        (low, "low"),
                        (float(below[-1]) - low, "high"),
                    )
                    for amount, side in sides if len(self.requests) > 1 else sides[:1]:
                        use = self.value * min(amount, 1 - amount)
                        yield use, _Split(self.requests, what, dim, place, side)

    def apart(self, split: _Split) -> float:
        """Return the share of routers that what goes to the two sides does not have in common."""
        low = self.coords[_WHATS.index(split.what), split.dim] <= split.at
        loads = [
            (self.weights[side] @ self.covers[side]) / self.weights[side].sum()
            for side in (low, ~low)
        ]
        return 1 - _overlap(*loads)


def _overlap(first: FloatArray, second: FloatArray) -> float:
    """Return what two loads of routers have in common, as a share of the lighter one."""
    lighter = float(min(first.sum(), second.sum()))
    return float(np.minimum(first, second).sum()) / max(1e-9, lighter)


def _branch(
    rows: PackingRows, sub: Subproblem, split: _Split
) -> tuple[tuple[Subproblem, Subproblem], WriteBranch]:
    size = rows.problem.torus.shape[split.dim]
    name = rows.problem.requests[split.requests[0]].id
    one = split.one if len(split.requests) > 1 else None
    sides = []
    for side, low, high in (("low", 0, split.at), ("high", split.at + 1, size)):
        go = split.requests if one is not None and side != one else split.requests[:1]
        new = tuple(PlaceLimit(q, split.what, split.dim, low, high) for q in go)
        sides.append(replace(sub, limits=(*sub.limits, *new)))

    def write(low: CertificateNode, high: CertificateNode) -> CertificateNode:
        return PlaceBranch(
            request=name, what=split.what, dim=split.dim, at=split.at, one=one, low=low, high=high
        )

    return (sides[0], sides[1]), write
