"""The result document that solvers write and the checker reads."""

from topoplace.result.schema import (
    RESULT_SCHEMA,
    Explanation,
    Interference,
    Leaf,
    Level,
    Limits,
    LinkPrices,
    PlaceBranch,
    Placement,
    Proof,
    Result,
    SharedLink,
    Solution,
    StartBranch,
    Status,
)

__all__ = [
    "RESULT_SCHEMA",
    "Explanation",
    "Interference",
    "Leaf",
    "Level",
    "Limits",
    "LinkPrices",
    "PlaceBranch",
    "Placement",
    "Proof",
    "Result",
    "SharedLink",
    "Solution",
    "StartBranch",
    "Status",
]
