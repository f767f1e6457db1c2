"""Importing this module registers every placement method that topoplace ships."""

from __future__ import annotations

import topoplace.placement.heuristics.alps_orders
import topoplace.placement.heuristics.best_fit
import topoplace.placement.heuristics.first_fit
import topoplace.placement.heuristics.random_nodes  # noqa: F401

__all__: list[str] = []
