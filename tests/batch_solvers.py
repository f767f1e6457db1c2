"""Solvers for worker processes: each is fatal for some instances, told by the words in its seed."""
