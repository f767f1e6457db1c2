"""Recursive bisection of machine and graph together."""

from topoplace.mapping.halving.halve import halve_mapping

__all__ = ["halve_mapping"]
