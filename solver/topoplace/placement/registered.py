"""Importing this module registers every placement method that topoplace ships."""

from __future__ import annotations

import topoplace.placement.exact.method
import topoplace.placement.heuristics.alps_orders
import topoplace.placement.heuristics.best_fit
import topoplace.placement.heuristics.first_fit
import topoplace.placement.heuristics.random_nodes
import topoplace.placement.minizinc  # noqa: F401

__all__: list[str] = []
