"""Greedy construction: the task with most bytes to those placed goes next to them."""

from topoplace.mapping.growing.grow import grow_mapping

__all__ = ["grow_mapping"]
