"""Grids whose leaves have given ranks: what few ranks can cut of their layers."""
