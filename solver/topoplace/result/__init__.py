"""The result documents that solvers write and the checker reads.

`base` has what all problems share, `certificate` the proof of a packing, `placement`, `tree` and
`mapping` what each problem adds: its solution, and evidence of its own.
"""

from topoplace.result.base import (
    RESULT_SCHEMA as RESULT_SCHEMA,
    Fraction as Fraction,
    Level as Level,
    Limits as Limits,
    Proof as Proof,
    Result as Result,
    Status as Status,
    level_label as level_label,
    level_title as level_title,
    value_label as value_label,
)
from topoplace.result.certificate import (
    CoverBranch as CoverBranch,
    Leaf as Leaf,
    LeafRef as LeafRef,
    Part as Part,
    Parts as Parts,
    SharedLeaves as SharedLeaves,
    StartBranch as StartBranch,
)
from topoplace.result.placement import (
    Explanation as Explanation,
    Interference as Interference,
    Placement as Placement,
    PlacementLevel as PlacementLevel,
    PlacementLimits as PlacementLimits,
    PlacementResult as PlacementResult,
    Solution as Solution,
)
