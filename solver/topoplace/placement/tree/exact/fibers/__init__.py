"""Cubes: thresholds ruled out by how subcubes of few distances can be cut among leaves."""
