"""Exact mapping: embeddings of dilation 1 for any size, branch and bound for a few tasks."""

from topoplace.mapping.exact.embedding import find_embedding
from topoplace.mapping.exact.solve import embedded, solved_by_search

__all__ = ["embedded", "find_embedding", "solved_by_search"]
