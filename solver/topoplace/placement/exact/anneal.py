"""Simulated annealing over refills: drop some jobs, refill greedily in a random order."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Sequence

import numpy as np

from topoplace.machine import Torus, uses_whole_ring
from topoplace.placement.exact.neighbourhood import drop_near
from topoplace.placement.heuristics.prism_search import search_of
from topoplace.placement.heuristics.room import Room
from topoplace.placement.problem import Candidate, PlacementProblem

_NUM_SEARCHES = 12


class Annealer:
    """Improves first-level placements; a refill takes some milliseconds on a 24^3 machine.

    Besides best fit by the site's shape score, refills choose prisms by scores made for packing:
    small volume, few rings passed through, and some noise. The prism at the smallest origin wins
    ties, which packs towards a corner.
    """

    def __init__(self, problem: PlacementProblem, seed: int) -> None:
        self.problem = problem
        self._rng = random.Random(seed)
        noise = np.random.default_rng(seed)
        site = search_of(problem)
        self._searches = [site]
        volume, rings, girth = _packing_terms(problem.torus)
        for _ in range(_NUM_SEARCHES):
            part = -10 * volume - self._rng.choice((0, 200, 1000)) * rings
            part -= self._rng.choice((0, 3, 10)) * girth
            part += noise.integers(0, self._rng.choice((1, 50, 300)), problem.torus.shape)
            self._searches.append(site.with_scores(part))

    def run(
        self, start: Sequence[Candidate], deadline: float, temperature: float
    ) -> tuple[list[Candidate], list[Candidate]]:
        """Return the best placement met, and the candidates of those nearly as good.

        Parameters
        ----------
        temperature
            Initial temperature, in units of the objective; falls linearly to 0 at the deadline.
        """
        rng = self._rng
        current = best = list(start)
        seen: dict[Candidate, None] = {}
        began = time.perf_counter()
        span = max(1e-9, deadline - began)
        while (now := time.perf_counter()) < deadline:
            num = min(len(current), rng.choice((1, 1, 2, 2, 3, 4, 6, 8)))
            if rng.random() < 0.4:
                kept = rng.sample(current, len(current) - num)
            else:
                kept = drop_near(self.problem, current, num, rng)
            trial = self._refill(kept)
            gain = self._value(trial) - self._value(current)
            heat = temperature * (deadline - now) / span
            if gain >= 0 or rng.random() < math.exp(gain / max(heat, 1e-9)):
                current = trial
                if self._value(current) >= 0.99 * self._value(best):
                    seen.update(dict.fromkeys(current))
                if self._value(current) > self._value(best):
                    best = current
        return best, list(seen)[-1500:]

    def _value(self, started: Sequence[Candidate]) -> int:
        return sum(self.problem.requests[c.request_idx].value for c in started)

    def _refill(self, kept: Sequence[Candidate]) -> list[Candidate]:
        rng, requests = self._rng, self.problem.requests
        search = rng.choice(self._searches)
        there = {c.request_idx for c in kept}
        spread = rng.choice((0.1, 0.5, 1.0))
        keys = {
            i: -requests[i].value * math.exp(rng.gauss(0, spread))
            for i in range(len(requests))
            if i not in there
        }
        room = Room(self.problem, kept)
        placed = list(kept)
        for idx in sorted(keys, key=keys.__getitem__):
            candidate = search.best(idx, room)
            if candidate is not None:
                room.add(candidate)
                placed.append(candidate)
        return placed


def _packing_terms(torus: Torus) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return volume, number of rings passed through and sum of extents of all extents."""
    volume = np.ones(torus.shape, dtype=np.int64)
    rings = np.zeros(torus.shape, dtype=np.int64)
    girth = np.zeros(torus.shape, dtype=np.int64)
    for d, n in enumerate(torus.shape):
        along = [1] * torus.num_dims
        along[d] = n
        extents = np.arange(1, n + 1).reshape(along)
        passing = [e < n and uses_whole_ring(torus, d, e) for e in range(1, n + 1)]
        volume = volume * extents
        girth = girth + extents
        rings = rings + np.array(passing, dtype=np.int64).reshape(along)
    return volume, rings, girth
