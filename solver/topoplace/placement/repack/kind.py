"""Moves and ends of running jobs, so that others start."""

from topoplace.kinds import Kind

_REPACK = "topoplace.placement.repack.outcome"

_KERNELS = "packing", "packing.starts", "placement.rows", "placement.heuristics", "hierarchy"

KIND = Kind(
    name="repack",
    title="of repacking",
    result="topoplace.result.placement:RepackResult",
    frame="topoplace.placement.repack.outcome:FRAME",
    checker="topoplace.certify.moves:Repack",
    solution="topoplace.result.placement:RepackSolution",
    several="topoplace.certify.defragment:Defragment",
    view="topoplace.placement.repack.view:RepackView",
    methods={
        "exact": (_REPACK, "fewest moves so that requests start, by branch and price; certified"),
    },
    kernels=_KERNELS,
    needed={"exact": tuple(name for name in _KERNELS if name != "packing.starts"), None: ()},
)
