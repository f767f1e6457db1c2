"""Cubes: thresholds refuted by what meets whom, in integers that a checker can follow."""
