"""What lines of a grid cost at given prices, and what leaves are worth (docs/proofs-tree.md)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from topoplace.certify.tree_machine.line_states import LineStates, View, least_met

IntArray = NDArray[np.int64]

LARGEST_PRICE = 1 << 36
MOST_RANKS = 1 << 20
"""With 2 x 3 prices a rank, sums are below `_NEVER` / 4; larger ones are refused."""

_NEVER = 1 << 61


class Weights:
    """Weighs prices of a grid.

    Parameters
    ----------
    extents
        Cells of a line per dimension, all above 1.
    """

    def __init__(self, states: LineStates, extents: Sequence[int], ranks: int) -> None:
        self._states, self._extents, self._cells = states, extents, ranks
        self._ways = {int(n): least_met(int(n), extents) for n in np.unique(states.ranks)}

    @property
    def work(self) -> int:
        """About how many additions weighing prices takes."""
        states = self._states
        leaves = min(states.num_leaves, self._cells)
        return len(states.ranks) * (sum(self._extents) * len(states.ranks) + self._cells * leaves)

    def too_dear(self, view: View, cells: IntArray, segments: IntArray) -> bool:
        """Tell whether all lines cost more than leaves that hold all ranks are worth.

        Parameters
        ----------
        cells, segments
            Prices of the states left, those of segments not above 0, shape
            ``(num_dims, num_left)``.
        """
        wanted = 0
        for dim, extent in enumerate(self._extents):
            least = self._line(view, dim, cells[dim], segments[dim])
            if least is None:
                return True
            wanted += self._cells // extent * least
        most = self._leaves(view, self._worths(view, cells, segments))
        return most is None or most < wanted

    def _line(self, view: View, dim: int, cell: IntArray, segment: IntArray) -> int | None:
        """Return the least cost of a line of a dimension, None if there is no line."""
        extent, ranks, keeps = self._extents[dim], self._states.ranks[view.states], view.keeps[dim]
        longest = np.where(view.able[dim], ranks, 1)
        longest[keeps] = 0  # theirs are whole lines, below
        most = min(extent, int(longest.max(initial=0)))
        length = np.arange(1, most + 1)[:, None]
        span = np.where(length <= longest, length * cell + segment, _NEVER)
        barrier = np.where(view.beside[dim], 0, _NEVER)
        recent = np.full((most, len(ranks)), _NEVER, dtype=np.int64)  # the last cell's first
        recent[:1] = 0
        end = np.full(len(ranks), _NEVER, dtype=np.int64)
        for _ in range(extent if most else 0):
            end = np.minimum((recent + span).min(axis=0), _NEVER)
            start = np.minimum((end[:, None] + barrier).min(axis=0), _NEVER)
            recent = np.concatenate([start[None], recent[:-1]])
        whole = (extent * cell + segment)[keeps]
        least = int(min(end.min(), whole.min(initial=_NEVER)))
        return least if least < _NEVER // 2 else None

    def _worths(self, view: View, cells: IntArray, segments: IntArray) -> list[int | None]:
        """Return the most that the ranks of a leaf are worth, per state left, None if impossible.

        Segments cost, so the fewest lines that the ranks can meet are worth most.
        """
        found: list[int | None] = []
        extents = np.array(self._extents)[:, None]
        ranks = self._states.ranks[view.states]
        for n, of_cell, of_segment, kept in zip(
            ranks.tolist(), cells.T, segments.T, view.keeps.T, strict=True
        ):
            ways = self._ways[n]
            fits = ((ways * extents == n) | ~kept[:, None]).all(axis=0)
            worth = of_segment @ ways[:, fits]
            found.append(int(of_cell.sum()) * n + int(worth.max()) if fits.any() else None)
        return found

    def _leaves(self, view: View, worths: Sequence[int | None]) -> int | None:
        """Return the most that leaves are worth which hold all ranks, None if none do."""
        sure, left = 0, self._cells
        by_type: dict[int, list[tuple[int, int]]] = {}
        for at, worth in enumerate(worths):
            state = view.states[at]
            ranks, assumed = int(self._states.ranks[state]), int(view.assumed[at])
            if worth is None:
                if assumed:
                    return None
                continue
            sure += assumed * worth
            left -= assumed * ranks
            if view.open[at]:
                by_type.setdefault(int(self._states.types[state]), []).append((ranks, worth))
        if left < 0:
            return None
        best = np.full(left + 1, -_NEVER, dtype=np.int64)
        best[0] = 0
        for t, choices in by_type.items():
            for _ in range(int(view.free[t])):
                after = best.copy()
                for ranks, worth in choices:
                    if ranks <= left:
                        part = after[ranks:]
                        np.maximum(part, best[: left + 1 - ranks] + worth, out=part)
                if (after == best).all():
                    break
                best = after
        return None if best[left] < -_NEVER // 2 else int(best[left]) + sure
