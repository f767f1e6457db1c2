"""What lines of a grid cost at given prices, and what leaves are worth (docs/proofs-tree.md)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from topoplace.certify.integers import IntArray
from topoplace.certify.tree_machine.holding import most_worth, work_of_holding
from topoplace.certify.tree_machine.line_states import LineStates, View, least_met

LARGEST_PRICE = (1 << 35) + 1
MOST_RANKS = 1 << 20
"""A rank pays at most 3 prices in each of 3 dimensions, so that all sums of prices are below 2^59.

That is `_NEVER` / 4, which stands for what is not possible.
"""

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
        self._ways_in_runs = {n: _in_runs(n, ways, extents) for n, ways in self._ways.items()}

    @property
    def work(self) -> int:
        """About how many additions weighing prices takes."""
        num_states = len(self._states.ranks)
        of_lines = sum(self._extents) * num_states * num_states
        return of_lines + work_of_holding(self._states, self._cells)

    def too_dear(
        self, view: View, cells: IntArray, segments: IntArray, wholes: IntArray | None = None
    ) -> bool:
        """Tell whether all lines cost more than leaves that hold all ranks are worth.

        Parameters
        ----------
        cells, segments
            Prices of the states left, those of segments not above 0, shape
            ``(num_dims, num_left)``.
        wholes
            Of segments with all ranks of a leaf, on top.
        """
        ways = self._ways if wholes is None else self._ways_in_runs
        wholes = np.zeros_like(cells) if wholes is None else wholes
        wanted = 0
        for dim, extent in enumerate(self._extents):
            least = self._line(view, dim, cells[dim], segments[dim], wholes[dim])
            if least is None:
                return True
            wanted += self._cells // extent * least
        worths = self._worths(view, ways, cells, segments, wholes)
        most = most_worth(self._states, view, worths, self._cells)
        return most is None or most < wanted

    def _line(
        self, view: View, dim: int, cell: IntArray, segment: IntArray, whole: IntArray
    ) -> int | None:
        """Return the least cost of a line of a dimension, None if there is no line."""
        extent, ranks, keeps = self._extents[dim], self._states.ranks[view.states], view.keeps[dim]
        longest = np.where(view.able[dim], ranks, 1)
        longest[keeps] = 0  # theirs are whole lines, below
        most = min(extent, int(longest.max(initial=0)))
        length = np.arange(1, most + 1)[:, None]
        price = length * cell + segment + np.where(length == ranks, whole, 0)
        span = np.where(length <= longest, price, _NEVER)
        barrier = np.where(view.beside[dim], 0, _NEVER)
        recent = np.full((most, len(ranks)), _NEVER, dtype=np.int64)  # the last cell's first
        recent[:1] = 0
        end = np.full(len(ranks), _NEVER, dtype=np.int64)
        for _ in range(extent if most else 0):
            end = np.minimum((recent + span).min(axis=0), _NEVER)
            start = np.minimum((end[:, None] + barrier).min(axis=0), _NEVER)
            recent = np.concatenate([start[None], recent[:-1]])
        lines = (extent * cell + segment + np.where(ranks == extent, whole, 0))[keeps]
        least = int(min(end.min(), lines.min(initial=_NEVER)))
        return least if least < _NEVER // 2 else None

    def _worths(
        self,
        view: View,
        ways: dict[int, IntArray],
        cells: IntArray,
        segments: IntArray,
        wholes: IntArray,
    ) -> list[int | None]:
        """Return the most that the ranks of a leaf are worth, per state left, None if impossible.

        Segments cost, so the fewest that the ranks can be in are worth most.
        """
        found: list[int | None] = []
        extents = np.array(self._extents)[:, None]
        ranks = self._states.ranks[view.states]
        for n, of_cell, of_segment, of_whole, kept in zip(
            ranks.tolist(), cells.T, segments.T, wholes.T, view.keeps.T, strict=True
        ):
            own = ways[n]
            fits = ((own * extents == n) | ~kept[:, None]).all(axis=0)
            worth = of_segment @ own[:, fits] + of_whole @ (own[:, fits] == 1)
            found.append(int(of_cell.sum()) * n + int(worth.max()) if fits.any() else None)
        return found


def _in_runs(ranks: int, ways: IntArray, extents: Sequence[int]) -> IntArray:
    """Return in how many segments per dimension ranks may be: in one run, or in no single one.

    In a run along a dimension they are one segment of it and single cells of the others;
    otherwise two segments or more of every one. Shape ``(num_dims, num_ways)``.
    """
    num_dims = len(extents)
    if ranks == 1:
        return np.ones((num_dims, 1), dtype=np.int64)
    able = [dim for dim, extent in enumerate(extents) if ranks <= extent]
    runs = np.full((num_dims, len(able)), ranks, dtype=np.int64)
    runs[able, np.arange(len(able))] = 1
    return np.concatenate([runs, np.maximum(ways, 2)], axis=1)
