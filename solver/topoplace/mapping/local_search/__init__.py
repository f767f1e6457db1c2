"""Local search over mappings of any graph: compiled swaps and moves with incremental costs."""

from topoplace.mapping.local_search.annealing import Improved, improve

__all__ = ["Improved", "improve"]
