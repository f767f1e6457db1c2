"""What every problem shares: options, methods, outcomes, and the one call that solves.

Read `outcome` for what a method hands back and reports on the way, `registry` for what it takes
and how it is registered, `topoplace.interrupts` for what ends it, and `solve` for how an outcome
becomes a result document. What differs from problem to problem (placements on tori, allocations on
trees, mappings) is a `Frame`.
"""

from topoplace.interrupts import Interrupted, heeded
from topoplace.solving.outcome import Bound, Display, Incumbent, Outcome, Progress, stronger
from topoplace.solving.registry import (
    Method,
    Options,
    Solver,
    method_names,
    method_of,
    methods,
    register,
)
from topoplace.solving.solve import found_by, result_of, solve

__all__ = [
    "Bound",
    "Display",
    "Incumbent",
    "Interrupted",
    "Method",
    "Options",
    "Outcome",
    "Progress",
    "Solver",
    "found_by",
    "heeded",
    "method_names",
    "method_of",
    "methods",
    "register",
    "result_of",
    "solve",
    "stronger",
]
