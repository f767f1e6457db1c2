"""Following the moves of a boxes certificate (docs/proofs-tree.md, "Certificates")."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from topoplace.certify.report import RefusedError
from topoplace.certify.tree_machine.relaxed import Relaxed
from topoplace.result.tree import BoxMove

MOST_MOVES = 200_000
Corner = list[int]


class Boxes:
    """Boxes of step values by number, cut and split by moves until none is left.

    Parameters
    ----------
    relaxed
        What step values are ruled out.
    bound
        The cost that no allocation is to be below.
    nogoods
        Other step values by number that are ruled out, and with them all that are not above.
    """

    def __init__(
        self, relaxed: Relaxed, bound: Fraction, nogoods: Sequence[Sequence[int]] = ()
    ) -> None:
        self._relaxed = relaxed
        self._bound = bound
        self._nogoods = nogoods

    def follow(self, moves: Sequence[BoxMove]) -> None:
        """Raise `RefusedError` unless every move is right and the last box is closed."""
        if len(moves) > MOST_MOVES:
            raise RefusedError(f"more than {MOST_MOVES} moves")
        num_steps, most = len(self._relaxed.prices), len(self._relaxed.values) - 1
        boxes = [([0] * num_steps, [most] * num_steps)]
        for number, (kind, step, value) in enumerate(moves):
            if not boxes:
                raise RefusedError(f"move {number} comes after the last box")
            low, high = boxes[-1]
            self._relaxed.ascend(low, high)
            if kind == "close":
                if not self._is_closed(low, high):
                    raise RefusedError(f"move {number} closes a box that may hold a better one")
                boxes.pop()
                continue
            if not (0 <= step < num_steps and 0 <= value <= most):
                raise RefusedError(f"move {number} names an unknown step or value")
            if kind == "low":
                self._raise(low, high, step, value, number)
            elif kind == "high":
                self._lower(low, high, step, value, number)
            else:
                above = low.copy()
                above[step] = max(above[step], value + 1)
                boxes[-1] = (above, high.copy())
                high[step] = min(high[step], value)
                boxes.append((low, high))
        if boxes:
            raise RefusedError(f"{len(boxes)} boxes are left open")

    def _raise(self, low: Corner, high: Corner, step: int, value: int, number: int) -> None:
        """Check that a step cannot be below a value: not even with the others at their most."""
        trial = high.copy()
        trial[step] = value - 1
        self._relaxed.ascend([0] * len(low), trial)
        if value > 0 and trial[step] >= 0 and self._possible(trial):
            raise RefusedError(f"move {number} rules out values that are possible")
        low[step] = max(low[step], value)

    def _lower(self, low: Corner, high: Corner, step: int, value: int, number: int) -> None:
        """Check that a step above a value costs the bound already."""
        if value + 1 < len(self._relaxed.values):
            trial = low.copy()
            trial[step] = max(trial[step], value + 1)
            self._relaxed.ascend(trial, [len(self._relaxed.values)] * len(low))
            if self._relaxed.cost(trial) < self._bound:
                raise RefusedError(f"move {number} rules out values that cost less")
        high[step] = min(high[step], value)

    def _is_closed(self, low: Corner, high: Corner) -> bool:
        return (
            any(a > b for a, b in zip(low, high, strict=True))
            or self._relaxed.cost(low) >= self._bound
            or not self._possible(high)
        )

    def _possible(self, at: Corner) -> bool:
        under = any(all(a <= b for a, b in zip(at, own, strict=True)) for own in self._nogoods)
        return not under and self._relaxed.possible(at)
