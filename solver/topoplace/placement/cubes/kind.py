"""Jobs onto cubes of a pod, or onto parts of cubes."""

from topoplace.kinds import Kind

_CUBES = "topoplace.placement.cubes.exact"
_IN_CUBES = "topoplace.placement.cubes.heuristics"
_MINIZINC = "topoplace.explicit.reference:listed_minizinc"
_CP_SAT = "topoplace.explicit.method:cp_sat"

KIND = Kind(
    name="cubes",
    title="on a pod of cubes",
    result="topoplace.result.placement:CubesResult",
    frame="topoplace.placement.cubes.problem:FRAME",
    checker="topoplace.certify.cubes.check:CubesPlacements",
    prepare="topoplace.snapshot.cubes_state:prepare_cubes",
    machine="cubes",
    model="topoplace.snapshot.schema:CubesModel",
    shorthands={"cubes": "cubes:64"},
    shorthand="topoplace.snapshot.machines:pod_of",
    problem="topoplace.placement.cubes.problem:problem_of",
    solution="topoplace.result.placement:CubesSolution",
    reference="topoplace.explicit.reference:data_of_packing",
    exported="topoplace.explicit.packing_proof:explicit_of",
    view="topoplace.placement.cubes.view:CubesView",
    about="topoplace.snapshot.convert:about_pod",
    moves="topoplace.placement.cubes.moves:CubesMoves",
    moved="topoplace.certify.cubes.moves:CubesGround",
    shown="topoplace.placement.cubes.moves:shown",
    allocator="topoplace.study.external.trial:CubesDoor",
    methods={
        "exact": (_CUBES, "most value, then most cubes left free; certified bounds"),
        "best-fit": (_IN_CUBES, "in queue order, parts in the fullest cube that has room"),
        "cp-sat": (_CP_SAT, "the explicit model of each level, by CP-SAT; for comparison"),
        "minizinc": (_MINIZINC, "reference MiniZinc model, for tiny machines"),
        "first-fit": (_IN_CUBES, "in queue order, the first cube or cubes that have room"),
    },
    kernels=("packing", "packing.starts"),
    needed={"exact": ("packing",), None: ()},
)
