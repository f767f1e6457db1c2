"""Ruin and recreate: drop some jobs, refill by best fit in a random order, keep what is better."""

from __future__ import annotations

import math
import random
import time
from dataclasses import dataclass, field

import numpy as np

from topoplace.placement.heuristics.best_fit import fill
from topoplace.placement.problem import Candidate, PlacementProblem


@dataclass
class Improvement:
    """The best placement of a run, and the candidates of all good ones."""

    best: list[Candidate]
    seen: list[Candidate] = field(default_factory=list)


class RuinAndRecreate:
    """Neighbourhood search on the first level (Schrimpf et al. 2000)."""

    def __init__(self, problem: PlacementProblem, seed: int) -> None:
        self.problem = problem
        self._rng = random.Random(seed)

    def run(self, start: list[Candidate], deadline: float, max_tries: int = 100_000) -> Improvement:
        """Improve a placement until the deadline."""
        current = best = list(start)
        result = Improvement(best)
        seen: set[Candidate] = set()
        for _ in range(max_tries):
            if time.perf_counter() >= deadline:
                break
            trial = self._recreate(self._ruin(current))
            slack = self._rng.expovariate(1 / 50) if self._rng.random() < 0.2 else 0
            if self._value(trial) >= self._value(current) - slack:
                current = trial
                if self._value(current) >= 0.995 * self._value(best):
                    seen.update(current)
                if self._value(current) > self._value(best):
                    best = current
        result.best = best
        result.seen = sorted(seen)[:2000]
        return result

    def _value(self, started: list[Candidate]) -> int:
        return sum(self.problem.requests[c.request_idx].value for c in started)

    def _ruin(self, started: list[Candidate]) -> list[Candidate]:
        rng = self._rng
        if not started:
            return []
        num = min(len(started), rng.choice((1, 1, 2, 2, 3, 4, 6)))
        if rng.random() < 0.4:
            dropped = set(rng.sample(range(len(started)), num))
        else:
            centre = np.array(started[rng.randrange(len(started))].prism.origin)
            shape = np.array(self.problem.torus.shape)
            away = [np.abs(np.array(c.prism.origin) - centre) for c in started]
            distance = [int(np.minimum(d, shape - d).sum()) for d in away]
            dropped = set(sorted(range(len(started)), key=lambda i: (distance[i], i))[:num])
        return [c for i, c in enumerate(started) if i not in dropped]

    def _recreate(self, kept: list[Candidate]) -> list[Candidate]:
        rng = self._rng
        requests = self.problem.requests
        there = {c.request_idx for c in kept}
        left = [i for i in range(len(requests)) if i not in there]
        keys = {i: -requests[i].value * math.exp(rng.gauss(0, 0.5)) for i in left}
        return fill(self.problem, kept, sorted(left, key=keys.__getitem__))
