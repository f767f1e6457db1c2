"""Importing this module registers every allocation method that topoplace ships."""

from __future__ import annotations

import topoplace.placement.tree.exact.method
import topoplace.placement.tree.heuristics.adaptive
import topoplace.placement.tree.heuristics.balanced
import topoplace.placement.tree.heuristics.fewest_domains
import topoplace.placement.tree.heuristics.greedy
import topoplace.placement.tree.heuristics.random_nodes
import topoplace.placement.tree.heuristics.slurm_default  # noqa: F401

__all__: list[str] = []
