"""Jobs onto nodes of switch trees, at least cost of contention (Mishra 2020)."""

from topoplace.kinds import Kind

_THRESHOLDS = "topoplace.placement.switches.exact.method"
_MODEL = "topoplace.placement.switches.minizinc"
_RULES = "topoplace.placement.switches.allocators"

KIND = Kind(
    name="allocation",
    title="on a tree",
    result="topoplace.result.tree:AllocationResult",
    frame="topoplace.placement.switches.outcome:FRAME",
    checker="topoplace.certify.switches.check:TreeAllocation",
    prepare="topoplace.snapshot.hierarchy_state:prepare_contention",
    offer="topoplace.mapping.machines:OfLevels",
    machine="tree",
    model="topoplace.snapshot.schema:TreeModel",
    shorthands={"tree": "tree:24x16"},
    shorthand="topoplace.snapshot.machines:tree_of",
    problem="topoplace.placement.switches.problem:problem_of",
    reference="topoplace.placement.switches.minizinc:reference",
    view="topoplace.placement.switches.view:AllocationView",
    site="topoplace.study.replay.trees:TreeSite",
    allocator="topoplace.study.external.trial:TreeDoor",
    about="topoplace.snapshot.convert:about_tree",
    written={
        "slurm-topology": "topoplace.formats.slurm.topology_conf:switches_written",
        "slurm-yaml": "topoplace.formats.slurm.topology:switches_written",
    },
    methods={
        "exact": (_THRESHOLDS, "least cost (eq. 6) of the most nodes, with a bound"),
        "default": (_RULES, "Slurm's own: below the lowest switch that fits, fullest leaves first"),
        "adaptive": (_RULES, "greedy or balanced, whichever costs less (Mishra 2020)"),
        "balanced": (_RULES, "powers of two on every leaf, emptiest leaves first (Mishra 2020)"),
        "slurm-tree": (_RULES, "Slurm's topology/tree: the lowest switch that fits, fullest last"),
        "fewest-domains": (_RULES, "as few leaves as possible, the last one a best fit"),
        "greedy": (_RULES, "leaves of the least communication ratio first (Mishra 2020)"),
        "minizinc": (_MODEL, "reference MiniZinc model, for a queue of one request"),
        "random": (_RULES, "nodes anywhere (by seed)"),
    },
    kernels=("packing", "packing.starts", "allocation"),
    needed={"exact": ("packing", "allocation"), None: ()},
)
