"""Jobs onto the nodes of a dragonfly, in few groups and routers."""

from topoplace.kinds import Kind

_ORDERS = "topoplace.placement.dragonfly.orders"
_EXACT = "topoplace.placement.dragonfly.packing"
_CP_SAT = "topoplace.explicit.method:cp_sat"
_MODEL = "topoplace.placement.hierarchy.minizinc:minizinc"

KIND = Kind(
    name="dragonfly",
    title="on a dragonfly",
    result="topoplace.result.dragonfly:DragonflyResult",
    frame="topoplace.placement.dragonfly.problem:FRAME",
    checker="topoplace.certify.dragonfly.check:DragonflyPlacements",
    prepare="topoplace.placement.dragonfly.problem:prepare",
    offer="topoplace.mapping.machines:OfNodes",
    machine="dragonfly",
    model="topoplace.result.dragonfly:DragonflyModel",
    shorthands={"dragonfly": "dragonfly:9x4x2"},
    shorthand="topoplace.placement.dragonfly.problem:dragonfly_of",
    problem="topoplace.placement.dragonfly.problem:problem_of",
    solution="topoplace.result.dragonfly:DragonflySolution",
    reference="topoplace.placement.hierarchy.minizinc:reference",
    exported="topoplace.placement.dragonfly.explicit:model_of",
    view="topoplace.placement.dragonfly.view:DragonflyView",
    methods={
        "exact": (_EXACT, "most value in the fewest groups, then routers; certified bounds"),
        "contiguous": (_ORDERS, "in queue order, the first free nodes"),
        "cp-sat": (_CP_SAT, "the explicit model of each level, by CP-SAT; for comparison"),
        "few-groups": (_ORDERS, "in queue order, the fullest group that has room, or few groups"),
        "group-round-robin": (_ORDERS, "in queue order, a node of every group in turn"),
        "minizinc": (_MODEL, "reference MiniZinc model, for tiny machines"),
        "random-groups": (_ORDERS, "in queue order, along groups in a random order (by seed)"),
        "random-routers": (_ORDERS, "in queue order, along routers in a random order (by seed)"),
    },
    read={form: f"topoplace.formats.simulators:read_{form}" for form in ("codes", "sst")},
    of_switches="topoplace.placement.dragonfly.switches:of_switches",
    has_rule=True,
    kernels=("packing", "packing.starts", "hierarchy"),
    needed={"exact": ("packing", "hierarchy"), None: ()},
)
