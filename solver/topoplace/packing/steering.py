"""How a search shares its budget: the figures that say who gets how much, and in what portions.

Shares are of the budget or of the bound, times are seconds of the budget. All were set on
snapshots of Blue Waters generated with seeds 900 to 903, 50 to 70 % busy; what each was measured
against is on the page of experiments (docs/develop/exact-placement-experiments.md). Reports use
other seeds.
"""

from __future__ import annotations

from topoplace.packing.budget import Budget

FIRST_LEVEL = 0.95
"""Of time and of certificates, for the first level at most; the later ones share the rest."""

_LONGEST_TURN, _TURN_SHARE = 15.0, 0.1

LONG = 0.3
"""Of the budget, for what has to come to an end to be of use: a run of a heuristic, a dive."""

SLICE = 2.0
"""Seconds for a tree until it is seen how it does."""

SMALL_SEARCH = 4.0
"""Seconds at most for what is left around fixed jobs; most take tenths."""

BEHIND = 0.1
"""Of a tree's time, for the tree beside it that is behind."""

NEAR = 0.05
"""Gap below which branches may ask for places, and the bound is worked on before placements."""

PATIENCE = (0.15, 3.0)
"""Turns that branches get: twice as many if the bound fell, half if no tree's did, within this."""

ASIDE = 0.25
"""Of the time of branches that lowered a near bound, for placements in between."""

LARGE, SMALL = 0.1, 0.025
"""Of the bound: what a request is worth at least to be placed before others, and not after all."""

COLUMNS = 1000
"""About as many columns as a bundle begins with below the root: steps grow with them."""

STEPS = 12
"""Of a bundle, for a candidate of a dive and for a leaf whose places are split."""

CERTIFICATES = 10_000_000
"""Bytes that the certificates of all levels have at most together."""

OPEN_LEAVES = 1 << 25
"""Bytes of what a tree's leaves may hold to go on from, beside their proofs."""


def turn(budget: Budget) -> float:
    """Return the usual time for bounds, or for placements, until it is the other's turn."""
    return min(_LONGEST_TURN, _TURN_SHARE * budget.length)
