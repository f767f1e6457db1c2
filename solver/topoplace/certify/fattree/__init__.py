"""Checks placements on fat trees: the rules of a place, and the best places at some prices."""
