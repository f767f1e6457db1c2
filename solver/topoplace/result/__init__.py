"""The result documents that solvers write and the checker reads.

`base` has what all problems share, `placement`, `tree` and `mapping` what each adds: its solution
and its certificates.
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
from topoplace.result.placement import (
    CoverBranch,
    Explanation,
    Interference,
    Leaf,
    LeafRef,
    LinkPrices,
    Part,
    Parts,
    Placement,
    PlacementLevel,
    PlacementLimits,
    PlacementResult,
    SharedLeaves,
    SharedLink,
    Solution,
    StartBranch,
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
    "LinkPrices",
    "Part",
    "Parts",
    "Placement",
    "PlacementLevel",
    "PlacementLimits",
    "PlacementResult",
    "Proof",
    "Result",
    "SharedLeaves",
    "SharedLink",
    "Solution",
    "StartBranch",
    "Status",
]
