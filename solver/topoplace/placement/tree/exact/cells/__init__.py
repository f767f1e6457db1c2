"""Grids whose leaves keep whole rows of some dims: the cells of the others, classed by state."""
