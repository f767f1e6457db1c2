"""Jobs onto prisms of a torus or mesh."""

from topoplace.kinds import Kind

_EXACT = "topoplace.placement.torus.exact"
_NODES = "topoplace.placement.torus.heuristics.node_orders"
_FITS = "topoplace.placement.torus.heuristics.fits"
_TORUS3D = "topoplace.placement.torus.heuristics.fits"
_MINIZINC = "topoplace.placement.torus.minizinc"
_CP_SAT = "topoplace.explicit.method:cp_sat"

KIND = Kind(
    name="placement",
    title="on a torus or mesh",
    result="topoplace.result.placement:PlacementResult",
    frame="topoplace.placement.torus.outcome:FRAME",
    checker="topoplace.certify.torus.check:TorusPlacement",
    prepare="topoplace.snapshot.state:prepare",
    offer="topoplace.mapping.machines:OfTorus",
    machine="torus",
    model="topoplace.snapshot.schema:TorusModel",
    shorthands={"torus": "torus:8x8x8", "mesh": "mesh:8x8x8"},
    shorthand="topoplace.snapshot.machines:torus_of",
    problem="topoplace.placement.torus.problem:problem_of",
    solution="topoplace.result.placement:Solution",
    reference="topoplace.placement.torus.minizinc:reference",
    exported="topoplace.explicit.packing_proof:explicit_of",
    view="topoplace.placement.torus.view:TorusView",
    has_rule=True,
    site="topoplace.study.replay.torus:TorusSite",
    allocator="topoplace.study.external.trial:TorusDoor",
    moves="topoplace.placement.torus.moves:TorusMoves",
    shown="topoplace.placement.torus.moves:shown",
    moved="topoplace.certify.torus.moves:TorusGround",
    priced="topoplace.study.what_if:Routers",
    about="topoplace.snapshot.convert:about_torus",
    written={"slurm-yaml": "topoplace.formats.slurm.topology:torus_written"},
    methods={
        "exact": (_EXACT, "column generation, integer phase and branching; certified bounds"),
        "alps-o2": (_NODES, "nodes in queue order, along yz slabs of 2x4x2 blocks"),
        "alps-oy": (_NODES, "nodes in queue order, xz plane after xz plane"),
        "alps-2y": (_NODES, "nodes in queue order, along xz slabs of 4x2x8 blocks"),
        "alps-4y": (_NODES, "as alps-2y, with slabs twice as thick in y"),
        "best-fit": (_FITS, "prisms in queue order, each the free one of the largest shape score"),
        "first-fit": (_FITS, "prisms in queue order, each the first free one in row-major order"),
        "slurm-torus3d": (
            _TORUS3D,
            "Slurm's own for anchored prisms: the one that blocks fewest of the next larger shape",
        ),
        "random-nodes": (_NODES, "nodes in queue order, anywhere (by seed)"),
        "cp-sat": (_CP_SAT, "the explicit model of each level, by CP-SAT; for comparison"),
        "minizinc": (_MINIZINC, "reference MiniZinc model, for tiny machines"),
    },
    kernels=(
        *("packing", "packing.starts", "placement.rows", "placement.exact"),
        *("placement.annealing", "placement.heuristics", "placement.replay"),
    ),
    needed={
        "exact": ("packing", "placement.rows", "placement.exact", "placement.heuristics"),
        None: ("placement.heuristics",),
    },
)
