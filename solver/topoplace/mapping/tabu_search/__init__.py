"""Robust tabu search of dense quadratic assignment problems."""

from topoplace.mapping.tabu_search.tabu import MAX_PLACES, Tabu, num_places

__all__ = ["MAX_PLACES", "Tabu", "num_places"]
