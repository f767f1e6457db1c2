"""Compiled loops; numba finds the types, so that annotations would be noise."""
