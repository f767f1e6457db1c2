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
    best: tuple[float, _Split] | None = None
    for requests in _interchangeable(rows, sub, groups):
        members = frozenset(requests)
        mine = [
            (a, c) for a, c in amounts if c.request_idx in members and a > _LEAST and sub.admits(c)
        ]
        if not mine:
            continue
        value = max(rows.problem.requests[q].value for q in requests)
        for score, split in _scored(rows, requests, mine):
            if best is None or score * value > best[0] + 1e-9:
                best = (score * value, split)
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


def _scored(
    rows: PackingRows, requests: tuple[int, ...], mine: Sequence[tuple[float, Candidate]]
) -> Iterator[tuple[float, _Split]]:
    """Yield the splits of some requests with how far a solution is from fitting either side."""
    torus = rows.problem.torus
    weights = np.array([amount for amount, _ in mine])
    covers = np.zeros((len(mine), torus.num_routers))
    for row, (_, candidate) in zip(covers, mine, strict=True):
        row[candidate.prism.routers(torus)] = 1
    covers = covers[:, covers.any(axis=0)]
    whats: tuple[What, ...] = ("origin", "extents")
    for what in whats:
        for dim in range(torus.num_dims):
            coords = np.array([getattr(c.prism, what)[dim] for _, c in mine])
            order = np.argsort(coords, kind="stable")
            below = np.cumsum(weights[order])
            load = np.cumsum(weights[order, None] * covers[order], axis=0)
            for k in np.flatnonzero(np.diff(coords[order])).tolist():
                low, high = below[k], below[-1] - below[k]
                apart = 1 - _overlap(load[k] / low, (load[-1] - load[k]) / high)
                at = int(coords[order[k]])
                sides: tuple[tuple[float, Side], ...] = ((low, "low"), (high, "high"))
                for amount, side in sides if len(requests) > 1 else sides[:1]:
                    use = min(amount, 1 - amount) * apart
                    yield use, _Split(requests, what, dim, at, side)


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
