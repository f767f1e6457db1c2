"""Large neighbourhood search: free some jobs near each other, and search the rest.

All other jobs stay, so this is a small problem of its own; most neighbourhoods are proven within
tenths of a second to hold nothing better.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from topoplace.packing import steering
from topoplace.packing.problem import Residual
from topoplace.packing.state import State
from topoplace.packing.tree.nodes import Root

_FEWEST, _MOST = 2, 6  # large jobs, of those that are not small, that are freed by choice
_BESIDE = 1  # how far smaller jobs are from them that are freed as well
_REPEATS = 50  # draws of known neighbourhoods in a row until there seem to be no others


class NeighbourhoodSearch:
    """Searches neighbourhoods of the incumbent, each once.

    Parameters
    ----------
    around
        Searches the problem around some jobs for a number of seconds, beginning with the jobs
        freed; returns a whole placement.
    """

    def __init__(
        self,
        state: State,
        root: Root,
        around: Callable[[Residual, float, Sequence[Any]], list[Any]],
    ) -> None:
        self._state, self._root, self._around = state, root, around
        self._rng = random.Random(state.seed)
        self._center: list[Any] = []
        self._known: set[frozenset[Any]] = set()

    def run(self, until: float, *, alone: bool = True) -> None:
        """Search until a time, until the incumbent meets the bound, or until all is known.

        Parameters
        ----------
        alone
            Whether nothing else runs: then two neighbourhoods are searched at once.
        """
        state = self._state
        while not state.incumbent.closes(self._root):
            seconds = min(steering.SMALL_SEARCH, until - state.budget.now())
            if seconds <= 0:
                return
            drawn = list(self._new(state.problem.most_at_once if alone else 1))
            if not drawn:
                return
            for found in state.budget.at_once(partial(self._search, seconds), drawn):
                state.take(found)

    def _search(self, seconds: float, freed: frozenset[Any]) -> list[Any]:
        rest = self._state.problem.around([c for c in self._center if c not in freed], frozenset())
        return self._around(rest, seconds, sorted(freed))

    def _new(self, most: int) -> Iterator[frozenset[Any]]:
        """Yield some neighbourhoods of the incumbent not searched yet."""
        if self._center != self._state.incumbent.best:
            self._center = self._state.incumbent.best
            self._known.clear()
        for _ in range(_REPEATS):
            freed = self._draw()
            if freed not in self._known and len(freed) not in {0, len(self._center)}:
                self._known.add(freed)
                yield freed
                most -= 1
            if not most:
                return

    def _draw(self) -> frozenset[Any]:
        """Return some large jobs of the incumbent near each other, and small ones next to them."""
        problem, rng = self._state.problem, self._rng
        least = steering.SMALL * self._state.incumbent.objective(0)
        large = [c for c in self._center if problem.values[c.request_idx] >= least]
        if not large:
            return frozenset()
        away = problem.near(large, rng.choice(large))
        order = sorted(range(len(large)), key=lambda i: (away[i], rng.random()))
        chosen = [large[i] for i in order[: rng.randint(_FEWEST, _MOST)]]
        small = [c for c in self._center if c not in large]
        beside = [problem.near(small, near) for near in chosen]
        found = (c for k, c in enumerate(small) if any(row[k] <= _BESIDE for row in beside))
        return frozenset([*chosen, *found])
