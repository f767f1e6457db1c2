"""Grids: thresholds ruled out by how lines of a grid can be cut among leaves."""
