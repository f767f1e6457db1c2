"""What every problem shares: options, methods, outcomes, and the one call that solves.

Read `outcome` for what a method hands back, `registry` for how it is registered, and `solve` for
how an outcome becomes a result document. What differs from problem to problem (placements on tori,
allocations on trees, mappings) is a `Frame` of `frames`.
"""

from topoplace.solving.options import Options
from topoplace.solving.outcome import Bound, Outcome, stronger
from topoplace.solving.registry import Method, Solver, method_names, method_of, methods, register
from topoplace.solving.solve import result_of, solve

__all__ = [
    "Bound",
    "Method",
    "Options",
    "Outcome",
    "Solver",
    "method_names",
    "method_of",
    "methods",
    "register",
    "result_of",
    "solve",
    "stronger",
]
