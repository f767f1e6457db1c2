"""All candidates, for machines small enough to list them."""

from __future__ import annotations

import itertools
import math

from topoplace import clock
from topoplace.machine import Prism, all_origins
from topoplace.placement.torus.anchored import candidates_of, prisms_of
from topoplace.placement.torus.problem import Candidate, PlacementProblem

MAX_PRISMS = 4_000
"""Machines with more prisms than this are scanned instead (`ScanPricer`)."""

MAX_CANDIDATES = 400_000
"""Prisms times requests, likewise: listing them takes a few seconds."""

MOST_LISTED = 60_000
"""Prisms times requests that are listed if there is no other way: that takes a second or two."""


def num_prisms(problem: PlacementProblem) -> int:
    """Count the prisms of a machine."""
    total = 1
    for n, wraps in zip(problem.torus.shape, problem.torus.wrap, strict=True):
        total *= n * (n - 1) + 1 if wraps else n * (n + 1) // 2
    return total


def are_few(problem: PlacementProblem) -> bool:
    """Return whether a machine's prisms, and candidates, are few enough to be listed."""
    num = num_prisms(problem)
    return num <= MAX_PRISMS and num * len(problem.requests) <= MAX_CANDIDATES


def all_candidates(problem: PlacementProblem, deadline: float = math.inf) -> list[Candidate]:
    """Return every candidate of every request (docs/proofs/placement.md, "The problem").

    Raises
    ------
    OutOfTimeError
        At the deadline.
    """
    torus = problem.torus
    if problem.is_anchored:
        every = prisms_of(problem).prisms
        queue = range(len(problem.requests))
        return [Candidate(q, every[k]) for q in queue for k in candidates_of(problem, q).tolist()]
    found = []
    prisms = [
        Prism(origin, extents)
        for extents in itertools.product(*(range(1, n + 1) for n in torus.shape))
        for origin in all_origins(torus, extents)
    ]
    for idx, request in enumerate(problem.requests):
        allowed = problem.allowed_routers(request)
        closed = problem.closed_links(request.communication)
        clock.check(deadline)
        for prism in prisms:
            candidate = Candidate(idx, prism)
            if not allowed[prism.routers(torus)].all():
                continue
            if request.geometries:
                if problem.matching_geometry(candidate) is None:
                    continue
            elif problem.usable_inside(candidate) < request.nodes:
                continue
            if closed.any() and closed[problem.links_of(candidate)].any():
                continue
            found.append(candidate)
    return found
