"""Units of jobs onto hosts of hierarchies and switch trees, in as few domains as possible."""

from topoplace.kinds import Kind

_DOMAINS = "topoplace.placement.hierarchy.exact"
_FILLS = "topoplace.placement.hierarchy.heuristics.fits"
_KUEUE = "topoplace.placement.hierarchy.heuristics.kueue"
_BALANCED = "topoplace.placement.hierarchy.heuristics.kueue_balanced"
_DOMAINS_MODEL = "topoplace.placement.hierarchy.minizinc:minizinc"
_BLOCK = "topoplace.placement.hierarchy.heuristics.slurm_block"
_TREE = "topoplace.placement.hierarchy.heuristics.slurm_tree"
_CP_SAT = "topoplace.explicit.method:cp_sat"

KIND = Kind(
    name="hierarchy",
    title="on a hierarchy",
    result="topoplace.result.placement:HierarchyResult",
    frame="topoplace.placement.hierarchy.outcome:FRAME",
    checker="topoplace.certify.hierarchy.check:HierarchyPlacements",
    prepare="topoplace.snapshot.hierarchy_state:prepare_hierarchy",
    offer="topoplace.mapping.machines:OfLevels",
    machine="hierarchy",
    model="topoplace.snapshot.schema:HierarchyModel",
    shorthands={"hierarchy": "hierarchy:4x8x18"},
    shorthand="topoplace.snapshot.machines:hierarchy_of",
    problem="topoplace.placement.hierarchy.problem:problem_of",
    solution="topoplace.result.placement:HierarchySolution",
    reference="topoplace.placement.hierarchy.minizinc:reference",
    exported="topoplace.explicit.levels:model_of",
    view="topoplace.placement.hierarchy.view:HierarchyView",
    decided="topoplace.study.audit.cases:case_of_result",
    moves="topoplace.placement.hierarchy.moves:HierarchyMoves",
    moved="topoplace.certify.hierarchy.moves:HierarchyGround",
    shown="topoplace.placement.hierarchy.moves:shown",
    about="topoplace.snapshot.convert:about_hierarchy",
    written={
        "slurm-topology": "topoplace.formats.slurm.topology_conf:blocks_written",
        "slurm-yaml": "topoplace.formats.slurm.topology:blocks_written",
    },
    allocator="topoplace.study.external.trial:HierarchyDoor",
    priced="topoplace.study.domain_worth:Domains",
    methods={
        "exact": (_DOMAINS, "most value on the fewest domains, by branch and price; certified"),
        "cp-sat": (_CP_SAT, "the explicit model of each level, by CP-SAT; for comparison"),
        "first-fit": (_FILLS, "hosts in their order, below the first domain that fits"),
        "kueue": (_KUEUE, "Kueue's: BestFit, without a level LeastFreeCapacity"),
        "kueue-balanced": (_BALANCED, "as kueue, evenly over the domains of a preferred level"),
        "kueue-least-free": (_KUEUE, "Kueue's LeastFreeCapacity: small domains first, always"),
        "minizinc": (_DOMAINS_MODEL, "reference MiniZinc model, for tiny machines"),
        "random": (_FILLS, "units anywhere within the rules (by seed)"),
        "slurm-block": (_BLOCK, "Slurm's topology/block: aligned blocks, fewest free nodes first"),
        "default": (_TREE, "Slurm's in short: below the lowest switch that fits, fullest leaves"),
        "slurm-tree": (_TREE, "Slurm's topology/tree: the lowest switch that fits, fullest last"),
        "tree-best-fit": (_FILLS, "the lowest domain that fits, fewest free first"),
    },
    kernels=("packing", "packing.starts", "hierarchy"),
    needed={"exact": ("packing", "hierarchy"), None: ()},
)
