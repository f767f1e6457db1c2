"""Allocations of one request or few: spread, annealed, arranged, or all of them tried."""
