"""Jobs onto leaves of a fat tree, each with links of its own."""

from topoplace.kinds import Kind

_HERE, _RULES = "topoplace.placement.fattree", "topoplace.placement.fattree.heuristics"
_CP_SAT = "topoplace.explicit.method:cp_sat"
_MODEL = "topoplace.explicit.reference:listed_minizinc"

KIND = Kind(
    name="fattree",
    title="on a fat tree with links of its own for every job",
    result="topoplace.result.fattree:FatTreeResult",
    frame=f"{_HERE}.state:FRAME",
    checker="topoplace.certify.fattree.check:FatTreePlacements",
    prepare=f"{_HERE}.state:prepare",
    machine="fattree",
    model="topoplace.result.fattree:FatTreeModel",
    shorthands={"fattree": "fattree:16"},
    shorthand=f"{_HERE}.state:fat_tree_of",
    solution="topoplace.result.fattree:FatTreeSolution",
    reference="topoplace.explicit.reference:data_of_packing",
    exported="topoplace.explicit.packing_proof:explicit_of",
    view=f"{_HERE}.view:FatTreeView",
    about=f"{_HERE}.state:about",
    methods={
        "exact": (f"{_HERE}.packing", "most value, then fewest links; certified bounds"),
        "cp-sat": (_CP_SAT, "the explicit model of each level, by CP-SAT; for comparison"),
        "first-fit": (_RULES, "in queue order, on the fewest pods and leaves, any free links"),
        "jigsaw": (_RULES, "in queue order; jobs of several pods on whole leaves (HPDC 2021)"),
        "laas": (_RULES, "as jigsaw, but such jobs get whole leaves only (ANCS 2016)"),
        "minizinc": (_MODEL, "reference MiniZinc model of listed places, for tiny machines"),
    },
    kernels=("packing", "packing.starts"),
    needed={"exact": ("packing",), None: ()},
)
