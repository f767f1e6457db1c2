"""Mappings of the papers' applications and of others: gaps, predictions, joint placing, trees.

Four parts; each writes its tables into the page of its name in docs/studies, and a CSV file:

mapping_gaps
    Certified gaps against any mapping at all: the grids of Enos 2014 and Fiedler 2014 on Blue
    Waters, with nothing unusable and on the shipped snapshots, and Table 3 of Bhatele 2008. Beside
    the structured mapping stands the best one an unrestricted local search finds from it, to show
    which side of a gap is loose.
halo_exchange
    Predicted order of Enos 2014, Tables III to VI, by the largest link load of the exchange. For
    every table: random regions of the size of the paper's node feature on Blue Waters with its
    service nodes, the default order and grid_order on the first nodes of the region in the order
    of ALPS' scheme 2Y (as in the paper), Topaware's leftmost pencils, and the optimal selection.
joint
    Placing with the mapping in mind, against placing first and mapping then. Five grids of Enos
    2014 wait for the machine of a shipped snapshot, each as a job of just the nodes that its tasks
    fill. They are placed by the levels of the machine and then mapped, and placed by nodes and
    hop-bytes; every job is mapped by the same methods with the same limits. The checker confirms
    both results, and `--work` keeps the second.
levels
    4,096 tasks onto trees of three levels: our methods, Scotch and the order by rank. Every
    application is mapped by every method in one run; the last row has the bound, whose certificate
    the checker has confirmed.

    python scripts/study_mappings.py PART [--seed N] [--search S] [--seconds S] [--regions N]
"""

from __future__ import annotations

import itertools
import math
import resource
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from study import FILLS, SNAPSHOTS, Column, Record, Study, groups, percent, table, timed, where
from topoplace.certify import check_document
from topoplace.errors import InputError
from topoplace.kernels import compile_for
from topoplace.machine import Prism
from topoplace.mapping.evaluate import evaluate, hop_bytes
from topoplace.mapping.onto import Places, load_places, problem_on
from topoplace.mapping.parallelism import parallelism
from topoplace.mapping.problem import MappingProblem
from topoplace.placement.torus.joint.applications import Applications
from topoplace.placement.torus.problem import Candidate, MappedJob, PlacementProblem
from topoplace.result.mapping import MappingFigures, MappingResult
from topoplace.snapshot.machines import load_any
from topoplace.snapshot.schema import (
    AnyApplication,
    GraphApplication,
    GridApplication,
    Request,
    Snapshot,
    TasksModel,
    TorusModel,
)
from topoplace.snapshot.state import prepare, torus_of
from topoplace.solving import Options, method_of, solve

GRIDS = {
    "110x120": 16,
    "168x132": 16,
    "32x32x32": 32,
    "40x30x25": 32,
    "8x8x8x8": 16,
    "11x12x11x12": 24,
    "21x2x21x24": 12,
}
"""Grids of Enos 2014 section IV and Fiedler 2014, with their most tasks per node."""


def grid(shape: str, *, periodic: bool = False, num_bytes: int = 1) -> GridApplication:
    """Return a grid such as 4x8x8 with so many bytes for every neighbour."""
    extents = [int(n) for n in shape.split("x")]
    dims = len(extents)
    return GridApplication(
        shape=extents, periodic=[periodic] * dims, bytes=[[num_bytes] * 2] * dims
    )


def problem_of(shape: str, tasks_per_node: int, places: Places) -> MappingProblem:
    """Return the problem of a grid that does not wrap, a byte for every neighbour."""
    return problem_on(places, grid(shape), tasks_per_node, name=shape)


# ---- Certified gaps ------------------------------------------------------------------------------

BHATELE_MESHES = ("4x4x8", "4x8x8", "8x8x8", "8x8x16")
BHATELE_GRIDS = (32, 16)

Case = tuple[str, str, MappingProblem]
"""Name of the machine, method of the structured mapping, and problem."""


def blue_waters(names: Sequence[str]) -> list[Case]:
    """Return the papers' grids: on an ideal machine, then on every snapshot."""
    machines = {"nothing unusable": load_places("torus:24x24x24:2")}
    for name in names:
        path = SNAPSHOTS / f"blue_waters_{name}.json"
        machines[path.stem] = load_places(str(path))
    return [
        (machine, "pencils", problem_of(*one, places))
        for machine, places in machines.items()
        for one in GRIDS.items()
    ]


def bhatele() -> list[Case]:
    """Return Table 3 of Bhatele 2008: periodic 3D grids on meshes of dual-core nodes."""
    found = []
    for side in BHATELE_GRIDS:
        for mesh in BHATELE_MESHES:
            places, shape = load_places(f"mesh:{mesh}"), f"{side}x{side}x{side}"
            tasks_per_node = side**3 // len(places.nodes)
            application = grid(shape, periodic=True)
            problem = problem_on(places, application, tasks_per_node, name=shape)
            found.append((f"mesh {mesh}", "blocks", problem))
    return found


def mapped(case: Case, search: float, seed: int) -> Record:
    """Map by the method, then by local search from its mapping, unless that is proven optimal.

    `best` is the structured mapping's hop-bytes, None if there is none; `searched` the best known
    with the local search.
    """
    machine, method, problem = case
    results: list[MappingResult] = []
    try:
        results.append(solve(problem, method, Options(time_limit=30, seed=seed)))
    except InputError as error:
        print(f"{machine} {problem.instance.name}: {error}", file=sys.stderr)
    first = results[0] if results else None
    if first is None or first.objective != first.bound:
        start = None
        if first is not None and first.solution is not None:
            start = np.asarray(first.solution.nodes, dtype=np.int64)
        options = Options(time_limit=search, seed=seed, start=start)
        # polish what there is; else begin with constructions for any graph
        results.append(solve(problem, "search" if start is None else "local-search", options))
    checked = all(check_document(result).holds for result in results)
    assert checked, f"the checker refuses {machine} {problem.instance.name}"
    return Record(
        machine=machine,
        grid=problem.instance.name,
        method=method,
        best=None if first is None else first.objective,
        searched=min((r.objective for r in results if r.objective is not None), default=None),
        bound=results[-1].bound,
        checked=checked,
    )


def _gap(field: str) -> Column:
    def gap(row: Record) -> str:
        value = getattr(row, field)
        return percent(None if value is None else (value - row.bound) / value)

    return "gap", gap


GAPS: list[Column] = [
    *(("nodes", "machine"), "grid", ("structured", "best"), _gap("best")),
    *(("with local search", "searched"), _gap("searched"), "bound"),
]


def mapping_gaps(study: Study) -> None:
    """Map every grid, and write both tables."""
    own = study.options
    run = partial(mapped, search=own.search, seed=own.seed)
    write_gaps(study, study.measured(run, [*blue_waters(own.snapshots), *bhatele()]))


def write_gaps(study: Study, rows: Sequence[Record]) -> None:
    """Write the records and both tables."""
    study.write(rows)
    study.page(table(where(rows, method="pencils"), GAPS, 2))
    study.page(table(where(rows, method="blocks"), GAPS, 2), part="Bhatele")


# ---- Halo exchanges ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Exchange:
    """A table of the paper: its grid, region, and tasks per node, of the two last methods as well.

    `times` are the paper's by method, in its own unit.
    """

    table: str
    grid: str
    region: tuple[int, int, int]
    bytes: int
    per_node: tuple[int, int]
    cell: tuple[int, ...] | None
    times: dict[str, float]


EXCHANGES = (
    Exchange(
        *("III, 3D", "32x32x32", (12, 8, 12), 32_000, (32, 32), (4, 2, 4)),
        {"default": 11.315, "grid-order": 7.722, "topaware": 2.771},
    ),
    Exchange(
        *("IV, 4D", "11x12x11x12", (12, 4, 12), 24_000, (32, 24), None),
        {"default": 9.65, "grid-order": 7.46, "topaware": 1.72},
    ),
    Exchange(
        *("V, MILC", "21x2x21x24", (24, 2, 24), 24_000, (12, 12), (1, 1, 1, 12)),
        {"grid-order": 254.0, "topaware": 116.4},
    ),
    Exchange(
        *("VI, 2D", "110x120", (12, 4, 12), 4_000, (16, 16), None),
        {"default": 0.2743, "grid-order": 0.2149, "topaware": 0.1638},
    ),
)


def exchanged(case: Exchange, places: Places) -> dict[str, MappingFigures] | None:
    """Return the figures of the paper's methods and of pencils in a region; None without room."""
    found = {}
    application = grid(case.grid, num_bytes=case.bytes)
    for method in (*case.times, "pencils"):
        is_order = method in ("default", "grid-order")
        cell = case.cell if method == "grid-order" else None
        options = Options(cell=cell, node_order="alps-2y")
        try:
            problem = problem_on(places, application, case.per_node[0 if is_order else 1])
            outcome = method_of("mapping", method).solver(problem, options)
        except InputError:
            return None
        if outcome.solution is None:
            return None
        found[method] = evaluate(problem, outcome.solution.nodes)
    return found


def exchanges(num_regions: int, seed: int) -> Iterator[Record]:
    """Yield a record for every case, region and method."""
    everywhere = load_places("blue_waters")
    assert isinstance(everywhere.machine, TorusModel)
    shape = torus_of(everywhere.machine).shape
    rng = np.random.default_rng(seed)
    for case in EXCHANGES:
        used, draws = 0, 0
        while used < num_regions and draws < 50 * num_regions:
            draws += 1
            sides = zip(case.region, shape, strict=True)
            origin = tuple(0 if extent == n else int(rng.integers(n)) for extent, n in sides)
            region = Prism(origin, case.region).text
            figures = exchanged(case, everywhere.within(region))
            used += figures is not None
            for method, found in (figures or {}).items():
                load = found.max_link_load
                assert load is not None
                yield Record(
                    table=case.table,
                    region=region,
                    method=method,
                    max_link_load=load.numerator / load.denominator,
                    max_hops=found.max_hops,
                    hop_bytes=found.hop_bytes,
                )
        print(f"table {case.table}: {used} regions of {draws} drawn", file=sys.stderr)


def write_exchanges(study: Study, rows: Sequence[Record]) -> None:
    """Write the records, and a line for every table of the paper and method."""
    study.write(rows)
    lines = []
    for case in EXCHANGES:
        mine = where(rows, table=case.table)
        loads = {(row.region, row.method): row.max_link_load for row in mine}
        regions = groups(mine, "region")
        slowest_first = sorted(case.times, key=lambda m, times=case.times: times[m], reverse=True)
        pairs = list(itertools.pairwise(slowest_first))
        agree = sum(all(loads[r, slow] > loads[r, fast] for slow, fast in pairs) for r in regions)
        for method, own in groups(mine, "method").items():
            ratios = [loads[r, method] / loads[r, "topaware"] for r in regions]
            hops, measured = [row.max_hops for row in own], case.times.get(method)
            shown = "-" if measured is None else f"{measured / case.times['topaware']:.2f}"
            order = f"{agree} of {len(regions)}" if method == "topaware" else ""
            hop = f"{min(hops)} to {max(hops)}"
            lines.append((case.table, method, f"{np.mean(ratios):.2f}", shown, hop, order))
    heads = ("table", "method", "predicted", "measured", "largest hop")
    columns: list[Column] = [
        (head, lambda cells, k=k: cells[k])
        for k, head in enumerate((*heads, "regions in the measured order"))
    ]
    study.page(table(lines, columns, 2))


def halo_exchange(study: Study) -> None:
    """Measure and write."""
    write_exchanges(study, list(exchanges(study.options.regions, study.options.seed)))


# ---- Placing with the mapping in mind ------------------------------------------------------------

WAITING = ("32x32x32", "110x120", "168x132", "11x12x11x12", "21x2x21x24")
"""Enos 2014, Tables III to VIII."""


def queue_of(name: str) -> Snapshot:
    """Return a shipped snapshot with the five grids as its queue."""
    snapshot = load_any(SNAPSHOTS / f"{name}.json").snapshot
    assert isinstance(snapshot, Snapshot)
    return snapshot.model_copy(update={"queue": [request(name) for name in WAITING]})


def request(shape: str) -> Request:
    """Return a job of as many XE nodes as the tasks of a grid fill, a byte to every neighbour."""
    application, per_node = grid(shape), GRIDS[shape]
    nodes = -(-math.prod(application.shape) // per_node)
    tasks = TasksModel(application=application, per_node=per_node)
    return Request(id=shape, nodes=nodes, node_class="xe", tasks=tasks)


def placed_then_mapped(snapshot: Snapshot, seconds: float) -> tuple[int, int]:
    """Return nodes and hop-bytes of the placement by the levels of the machine."""
    state = prepare(snapshot)
    result = solve(state, "exact", Options(time_limit=seconds))
    assert check_document(result).holds, "the checker confirms it"
    assert result.solution is not None
    names = [one.id for one in snapshot.queue]
    applications = Applications(PlacementProblem(state, maps=True))
    total = 0
    for started in result.solution.placements:
        assert started.prism is not None
        prism = Prism(tuple(started.prism.origin), tuple(started.prism.extents))
        job = applications.mapped(Candidate(names.index(started.request), prism), 0)
        assert isinstance(job, MappedJob)
        total += job.hop_bytes
    assert result.objective is not None
    return result.objective, total


def jointly(name: str, seconds: float, keep: Path | None) -> Record:
    """Return what comes out on a snapshot."""
    snapshot = queue_of(name)
    nodes, then = placed_then_mapped(snapshot, seconds / 2)
    result = solve(prepare(snapshot), "exact", Options(time_limit=seconds, maps=True))
    report = check_document(result)
    assert report.verified, str(report)
    if keep is not None:
        result.save(keep / f"{name}.json")
    assert result.solution is not None
    print(result, flush=True)
    first, second = result.levels
    assert first.objective == nodes, "both start as many nodes"
    assert second.objective is not None
    return Record(
        snapshot=name,
        started=len(result.solution.placements),
        nodes=nodes,
        nodes_bound=first.bound,
        place_then_map=then,
        joint=second.objective,
        bound=second.bound,
    )


JOINT: list[Column] = [
    *("snapshot", ("started", lambda row: f"{row.started} of {len(WAITING)}"), "nodes"),
    *(("bound", "nodes_bound"), ("place, then map", "place_then_map"), ("jointly", "joint")),
    ("less", lambda row: percent(1 - row.joint / (row.place_then_map or 1)) if row.joint else "-"),
    ("bound of hop-bytes", "bound"),
]
"""How much less the joint placement takes has a dash where no job starts."""


def joint(study: Study) -> None:
    """Place on every snapshot, and write the table."""
    own = study.options
    compile_for("placement", ["exact"])
    run = partial(jointly, seconds=own.seconds, keep=own.work)
    rows = study.measured(run, own.snapshots or [f"blue_waters_{k}" for k in (50, 60, 70)])
    study.write(rows)
    study.page(table(rows, JOINT))


# ---- Trees of three levels -----------------------------------------------------------------------

METHODS = ("default", "hilbert", "nested-boxes", "bisection", "scotch")
"""Beside `auto`; the order by rank is `default`."""


def points(seed: int, num: int = 4096, degree: int = 12) -> GraphApplication:
    """Return tasks at random points of a square that talk to some 12 near ones, 1 to 8 bytes."""
    from scipy.spatial import cKDTree  # noqa: PLC0415 - heavy

    rng = np.random.default_rng(seed)
    near = (degree / (np.pi * num)) ** 0.5
    ends = cKDTree(rng.random((num, 2))).query_pairs(near, output_type="ndarray")
    sizes = rng.integers(1, 9, size=len(ends))
    return GraphApplication(
        num_tasks=num,
        sources=ends[:, 0].tolist(),
        targets=ends[:, 1].tolist(),
        bytes=sizes.tolist(),
    )


def cases(seed: int) -> list[tuple[str, str, AnyApplication]]:
    """Return names, machines and applications."""
    racks = "sharedmap:4:18:57/1:1:10"
    return [
        ("grid 16x16x16", "sharedmap:8:8:64/1:10:100", grid("16x16x16", periodic=True)),
        ("grid 16x16x16", "sharedmap:16:16:16/1:10:100", grid("16x16x16", periodic=True)),
        ("training, tensor last", racks, parallelism("pipeline=8,data=64,tensor=8")),
        ("training, tensor first", racks, parallelism("tensor=8,pipeline=8,data=64")),
        ("experts", racks, parallelism("pipeline=4,data=16,expert=16,tensor=4")),
        ("random points", "sharedmap:16:16:16/1:10:100", points(seed)),
    ]


def cpu_seconds() -> float:
    """Return the CPU time used so far, by programs started as well."""
    used = [resource.getrusage(w) for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def records(name: str, on: str, problem: MappingProblem, options: Options) -> Iterator[Record]:
    """Yield a record for every method, that of `auto` last, without the bound.

    The cost is None where a method refuses the problem.
    """
    about = {"application": name, "machine": on}
    places = np.repeat(problem.nodes, problem.tasks_per_node)
    shuffled = np.random.default_rng(options.seed).permutation(places)[: problem.num_tasks]
    rest = {"bound": None, "cpu_seconds": 0.0, "checked": None}
    yield Record(**about, method="random", cost=hop_bytes(problem, shuffled), **rest)
    for method in METHODS:
        row = Record(**about, method=method, cost=None, **rest)
        try:
            run = partial(method_of("mapping", method).solver, problem, options)
            outcome, row.cpu_seconds = timed(run, cpu_seconds)
            if outcome.solution is not None:
                row.cost = hop_bytes(problem, outcome.solution.nodes)
        except InputError as refused:
            print(f"{name}, {method}: {refused}")
        yield row
    result, seconds = timed(partial(solve, problem, "auto", options), cpu_seconds)
    rest = {"bound": result.bound, "cpu_seconds": seconds}
    checked = check_document(result).holds
    yield Record(**about, method="auto", cost=result.objective, **rest, checked=checked)


def _gap(row: Record) -> str:
    return percent(None if not row.cost or row.bound is None else 1 - row.bound / row.cost)


LEVELS: list[Column] = [
    *("application", ("machine", lambda row: row.machine.removeprefix("sharedmap:")), "method"),
    *("cost", ("gap", _gap), ("bound", lambda row: row.bound if row.method == "auto" else "")),
    ("CPU s", lambda row: f"{row.cpu_seconds:.1f}"),
]


def levels(study: Study) -> None:
    """Map every application, and write what there is as soon as it is there."""
    seed = study.options.seed
    compile_for("mapping", [*METHODS, "auto"])
    options = Options(time_limit=study.options.seconds, seed=seed)
    rows: list[Record] = []
    for name, on, application in cases(seed):
        problem = problem_on(load_places(on), application)
        own = study.measured(lambda row: row, records(name, on, problem, options))
        for row in own:
            row.bound = own[-1].bound
        rows += own
        study.write(rows)
        study.page(table(rows, LEVELS, 3))


PARTS: dict[str, tuple[Callable[[Study], None], dict[str, Any]]] = {
    "mapping_gaps": (mapping_gaps, {"snapshots": FILLS, "search": 20.0, "seed": 0}),
    "halo_exchange": (halo_exchange, {"regions": 10, "seed": 2014}),
    "joint": (joint, {"snapshots": [str], "seconds": 240.0, "work": Path}),
    "levels": (levels, {"seconds": 60.0, "seed": 0}),
}
"""What measures and writes a part, and its options."""


def main(given: Sequence[str] | None = None) -> None:
    """Run one part."""
    part, *rest = (sys.argv[1:] if given is None else given) or [""]
    if part not in PARTS:
        sys.exit(f"expected one of {', '.join(PARTS)}, found {part!r}")
    run, options = PARTS[part]
    run(Study(part, __doc__, rest, script=f"study_mappings.py {part}", **options))


if __name__ == "__main__":
    main()
