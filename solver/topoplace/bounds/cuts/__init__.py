"""Bounds from the cuts of a torus or mesh, for any graph (docs/proofs-graphs.md, "Cuts")."""

from topoplace.bounds.cuts.bound import cuts_bound

__all__ = ["cuts_bound"]
