"""The result documents that solvers write and the checker reads.

`base` has what all problems share, `certificate` the proof of a packing, `placement`, `tree` and
`mapping` what each problem adds: its solution, and evidence of its own.
"""

from topoplace.result.base import (
    RESULT_SCHEMA,
    Fraction,
    Level,
    Limits,
    Proof,
    Result,
    Status,
)
from topoplace.result.certificate import (
    CoverBranch,
    Leaf,
    LeafRef,
    Part,
    Parts,
    SharedLeaves,
    StartBranch,
)
from topoplace.result.placement import (
    Explanation,
    Interference,
    Placement,
    PlacementLevel,
    PlacementLimits,
    PlacementResult,
    Solution,
)

__all__ = [
    "RESULT_SCHEMA",
    "CoverBranch",
    "Explanation",
    "Fraction",
    "Interference",
    "Leaf",
    "LeafRef",
    "Level",
    "Limits",
    "Part",
    "Parts",
    "Placement",
    "PlacementLevel",
    "PlacementLimits",
    "PlacementResult",
    "Proof",
    "Result",
    "SharedLeaves",
    "Solution",
    "StartBranch",
    "Status",
]
