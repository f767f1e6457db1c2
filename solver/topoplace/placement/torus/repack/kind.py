"""Moves of running jobs on a torus or mesh, so that others start."""

from topoplace.kinds import Kind

_REPACK = "topoplace.placement.torus.repack.outcome"

KIND = Kind(
    name="repack",
    title="of repacking",
    result="topoplace.result.placement:RepackResult",
    frame="topoplace.placement.torus.repack.outcome:FRAME",
    checker="topoplace.certify.torus.repack:Repack",
    solution="topoplace.result.placement:RepackSolution",
    several="topoplace.certify.torus.defragment:Defragment",
    view="topoplace.placement.torus.repack.view:RepackView",
    methods={
        "exact": (_REPACK, "fewest moves so that requests start, by branch and price; certified"),
    },
    kernels=("packing", "packing.starts", "placement.rows", "placement.heuristics"),
    needed={"exact": ("packing", "placement.rows", "placement.heuristics"), None: ()},
)
