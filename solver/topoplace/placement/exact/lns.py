"""Large neighbourhood search: free some jobs near each other, and search what that leaves.

The rest of the placement stays, so that it is a small problem of its own; most neighbourhoods are
shown within tenths of a second to hold nothing better.
"""

from __future__ import annotations

import random

from topoplace import clock
from topoplace.machine import Prism, Torus
from topoplace.placement.exact.branching import Node
from topoplace.placement.exact.context import Residual, SearchContext
from topoplace.placement.torus.problem import Candidate

_LARGE = 0.04  # jobs above this share of the incumbent's objective are freed by choice
_FEWEST, _MOST = 2, 6  # such jobs
_BESIDE = 1  # hops: smaller jobs no farther from them are freed as well
_LONGEST = 3.0  # seconds for a neighbourhood
_REPEATS = 50  # draws of known neighbourhoods in a row until there seem to be no others


class NeighbourhoodSearch:
    """Searches neighbourhoods of the incumbent, each once."""

    def __init__(self, search: SearchContext, root: Node) -> None:
        self._search, self._root = search, root
        self._rng = random.Random(search.seed)
        self._center: list[Candidate] = []
        self._known: set[frozenset[Candidate]] = set()

    def run(self, deadline: float) -> None:
        """Search until the deadline, until the incumbent meets the bound, or until all is known."""
        search, repeats = self._search, 0
        while repeats < _REPEATS and not search.closed(self._root):
            if self._center != search.incumbent:
                self._center = search.incumbent
                self._known.clear()
            freed = self._draw()
            if freed in self._known or len(freed) in {0, len(self._center)}:
                repeats += 1
                continue
            seconds = min(_LONGEST, deadline - clock.now())
            if seconds <= 0:
                return
            repeats = 0
            self._known.add(freed)
            rest = Residual.of(search.problem, (c for c in self._center if c not in freed))
            search.around(rest, seconds, sorted(freed))

    def _draw(self) -> frozenset[Candidate]:
        """Return some large jobs of the incumbent near one of them, and small ones beside these."""
        problem, rng = self._search.problem, self._rng
        least = _LARGE * self._search.objective(0)
        large = [c for c in self._center if problem.requests[c.request_idx].value >= least]
        if not large:
            return frozenset()
        first = rng.choice(large).prism
        torus = problem.torus
        order = sorted(large, key=lambda c: (hops_between(torus, c.prism, first), rng.random()))
        chosen = order[: rng.randint(_FEWEST, _MOST)]
        beside = (
            c
            for c in self._center
            if c not in large
            and any(hops_between(torus, c.prism, near.prism) <= _BESIDE for near in chosen)
        )
        return frozenset([*chosen, *beside])


def hops_between(torus: Torus, one: Prism, other: Prism) -> int:
    """Return the least distance in hops of a router of one prism from one of another."""
    total = 0
    for n, wraps, a, b, p, q in zip(
        torus.shape, torus.wrap, one.origin, other.origin, one.extents, other.extents, strict=True
    ):
        ahead, behind = (b - (a + p - 1)) % n, (a - (b + q - 1)) % n
        if (b - a) % n < p or (a - b) % n < q:
            continue  # they overlap along this dimension
        if wraps:
            total += min(ahead, behind)
        else:
            total += ahead if a < b else behind
    return total
