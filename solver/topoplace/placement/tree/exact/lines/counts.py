"""Leaves per state that thresholds of a grid are likely to leave room for."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from topoplace import clock
from topoplace.placement.tree.exact.lines.program import LineProgram, Mix

IntArray = NDArray[np.int64]

_STRETCHES = (1.6, 1.5, 1.4, 1.35, 1.3, 1.25, 1.2, 1.15, 1.1, 1.05, 1.0)
"""Lines alone count separators short, by as much as a third between islands in a plane."""

_GUESSES = 40
_WHOLE = 1e-5


def likely_counts(program: LineProgram, thresholds: IntArray, deadline: float) -> list[IntArray]:
    """Return leaves per state that may fit at thresholds, those with most room to spare first."""
    found: dict[bytes, IntArray] = {}
    for stretch in _STRETCHES:
        if clock.now() > deadline:
            break
        mix = program.test(thresholds, _GUESSES, stretch=stretch)
        if isinstance(mix, Mix):
            counts = np.rint(mix.leaves).astype(np.int64)
            if np.abs(mix.leaves - counts).max() < _WHOLE:
                found.setdefault(counts.tobytes(), counts)
    return list(found.values())
