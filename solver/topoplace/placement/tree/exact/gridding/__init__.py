"""Grids on leaves by annealing under thresholds: counts and cells settle together."""
