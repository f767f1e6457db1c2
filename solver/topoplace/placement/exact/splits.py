"""Branches: on whether a request starts, and on whether it covers a router."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from topoplace.placement.exact.limits import PlaceLimit
from topoplace.placement.exact.relaxation import Subproblem
from topoplace.placement.problem import Candidate, PlacementProblem
from topoplace.result import CoverBranch, StartBranch
from topoplace.result.placement import CertificateNode

WriteBranch = Callable[[CertificateNode, CertificateNode], CertificateNode]
"""Writes a branch, given the certificates of its two sides."""

Branch = tuple[tuple[Subproblem, Subproblem], WriteBranch]
"""Two sides, and what writes them."""

_LEAST = 1e-4  # amount of a candidate that counts


def split_start(problem: PlacementProblem, sub: Subproblem, idx: int) -> Branch:
    """Split on whether a request starts: out, into."""
    out = replace(sub, excluded=sub.excluded | {idx})
    into = replace(sub, forced=sub.forced | {idx})
    name = problem.requests[idx].id

    def write(low: CertificateNode, high: CertificateNode) -> CertificateNode:
        return StartBranch(request=name, out=low, into=high)

    return (out, into), write


def split_place(
    problem: PlacementProblem,
    sub: Subproblem,
    amounts: Sequence[tuple[float, Candidate]],
    groups: Sequence[tuple[int, ...]] = (),
) -> Branch | None:
    """Split on whether a request that starts covers a router: it does, or it does not.

    Of some alike requests one covers the router, or none does. The router is one that a fractional
    solution covers by half; larger values go first.

    Parameters
    ----------
    amounts
        The fractional solution.
    groups
        Of alike requests (see `alike`).

    Returns
    -------
    The sides, inside first; None if every request is in one place.
    """
    torus = problem.torus
    best: tuple[float, tuple[int, ...], int] = (1e-6, (), 0)
    for requests in _interchangeable(problem, sub, groups):
        load = np.zeros(torus.num_routers)
        for amount, candidate in amounts:
            if candidate.request_idx in requests and amount > _LEAST and sub.admits(candidate):
                load[candidate.prism.routers(torus)] += amount
        value = max(problem.requests[q].value for q in requests)
        use = value * np.minimum(load, 1 - load)
        router = int(use.argmax())
        if use[router] > best[0]:
            best = (float(use[router]), requests, router)
    _, requests, router = best
    if not requests:
        return None
    coords = torus.coords(router)
    inside = PlaceLimit(requests[0], coords, torus.shape, inside=True)
    outside = tuple(PlaceLimit(q, coords, torus.shape, inside=False) for q in requests)
    name = problem.requests[requests[0]].id

    def write(low: CertificateNode, high: CertificateNode) -> CertificateNode:
        return CoverBranch(request=name, router=router, inside=low, outside=high)

    sides = ((inside,), outside)
    low, high = (replace(sub, limits=(*sub.limits, *limits)) for limits in sides)
    return (low, high), write


def _interchangeable(
    problem: PlacementProblem, sub: Subproblem, groups: Sequence[tuple[int, ...]]
) -> list[tuple[int, ...]]:
    """Return the requests that must start, together those that may take each other's place."""
    group_of = {q: number for number, group in enumerate(groups) for q in group}
    found: dict[object, list[int]] = {}
    for q in sorted(sub.forced, key=lambda q: (-problem.requests[q].value, q)):
        own = (group_of[q],) if q in group_of else ("alone", q)
        limits = frozenset((x.coords, x.inside) for x in sub.limits if x.request_idx == q)
        found.setdefault((own, limits), []).append(q)
    return [tuple(requests) for requests in found.values()]
