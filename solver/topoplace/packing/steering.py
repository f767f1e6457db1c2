"""How a search divides its budget: the shares of its parts, and their portions.

Shares are of the budget or of the bound, times are seconds of the budget. All were set on
snapshots of Blue Waters generated with seeds 900 to 909, 50 to 70 % busy; the measurements are on
the page of experiments (docs/develop/exact-placement-experiments.md). Reports use other seeds.
"""

from __future__ import annotations

from topoplace.packing.budget import Budget

FIRST_LEVEL = 0.95
"""Share of time and of certificates for the first level at most; the later ones share the rest."""

LATER_LEVEL = 0.7
"""Share of the time left for a later level that is not the last."""

_LONGEST_TURN, _TURN_SHARE = 15.0, 0.1

LONG = 0.3
"""Share of the budget for parts that are useful only at their end: a run of a heuristic, a dive."""

SLICE = 1.2
"""Seconds for a tree until its progress is judged."""

SMALL_SEARCH = 4.0
"""Seconds at most for the problem around fixed jobs; most take tenths."""

BEHIND = 0.1
"""Share of a tree's time for the other tree, which is behind."""

NEAR = 0.05
"""Gap below which branches may ask for places, and the bound is worked on before placements."""

PATIENCE = (0.15, 3.0)
"""Turns that branches get: twice as many if the bound fell, half if no tree's did, within this."""

ASIDE = 0.25
"""Share of the time of branches that lowered a near bound, for placements in between."""

LARGE, SMALL = 0.1, 0.025
"""Share of the bound: the least value of a request that is placed before others, not after all."""

COLUMNS = 1000
"""About as many columns as a bundle begins with below the root: steps grow with them."""

STEPS = 8
"""Steps of a bundle, for a candidate of a dive and for a leaf whose places are split."""

CERTIFICATES = 10_000_000
"""Limit of the bytes of the certificates of all levels together."""

OPEN_LEAVES = 1 << 25
"""Limit of the bytes that a tree's leaves may hold to be resumed, in addition to their proofs."""


def turn(budget: Budget) -> float:
    """Return the usual time for bounds, or for placements, until it is the other's turn."""
    return min(_LONGEST_TURN, _TURN_SHARE * budget.length)
