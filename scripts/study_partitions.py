"""Compare mappings of large irregular graphs with partitioners, as time goes on.

Each node takes so much more than its even share of tasks (`--balances`). Peers are the order by
rank, Scotch (`scotch`), KaHIP's `kaffpa` (ECO) called level by level on hierarchies, which needs
`pip install kahip`, and Mt-KaHyPar (quality) alone: level by level, or onto a torus; `search` is
ours. The methods were set on seed 1. Runs are recorded in docs/studies/partitions.csv in place of
those of the same case; with no seeds the page is written anew from the records. The machine has to
be idle.

    python scripts/study_partitions.py [--seeds N ..] [--graphs NAME ..] [--machines NAME ..]
        [--limits SECONDS ..] [--tasks N ..] [--balances B ..] [--methods NAME ..]
"""

from __future__ import annotations

import importlib
import itertools
import math
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.spatial import Delaunay, cKDTree

from study import Column, Record, Study, curve, groups, percent, read_rows, table, where
from topoplace.errors import InputError
from topoplace.machine import LevelMachine
from topoplace.mapping import multilevel
from topoplace.mapping._partitioner import Numbers, Part, leaves_of
from topoplace.mapping.mapped import mapped_by
from topoplace.mapping.onto import load_places, problem_on
from topoplace.mapping.problem import MappingProblem
from topoplace.snapshot.schema import GraphApplication
from topoplace.solving import Options, method_of

MACHINES = ["sharedmap:4:8:6/1:10:100", "sharedmap:4:18:57/1:1:10", "torus:4x4x4"]


def geometric(rng: np.random.Generator, num: int) -> Numbers:
    """Return the pairs of points in a square that are near (radius of Sanders and Schulz)."""
    radius = 0.55 * math.sqrt(math.log(num) / num)
    return np.asarray(cKDTree(rng.random((num, 2))).query_pairs(radius, output_type="ndarray"))


def delaunay(rng: np.random.Generator, num: int) -> Numbers:
    """Return the sides of the triangles of random points."""
    return sides_of(rng.random((num, 2)))


def roads(rng: np.random.Generator, num: int) -> Numbers:
    """Return a minimum spanning tree of random points, and a tenth of the sides of their triangles.

    Each is met by 2.4 others, as crossings of road networks are.
    """
    points = rng.random((num, 2))
    sides = sides_of(points)
    lengths = np.linalg.norm(points[sides[:, 0]] - points[sides[:, 1]], axis=1)
    tree = minimum_spanning_tree(csr_array((lengths, sides.T), (num, num))).nonzero()
    others = sides[rng.random(len(sides)) < 0.1]
    return np.unique(np.sort(np.concatenate([np.stack(tree, axis=1), others]), axis=1), axis=0)


def mesh(rng: np.random.Generator, num: int) -> Numbers:
    """Return the sides of the tetrahedra of random points in a cube."""
    return sides_of(rng.random((num, 3)))


def sides_of(points: NDArray[np.float64]) -> Numbers:
    """Return the sides of a Delaunay triangulation, each once."""
    corners = Delaunay(points).simplices
    pairs = itertools.combinations(range(corners.shape[1]), 2)
    ends = np.concatenate([corners[:, pair] for pair in pairs])
    return np.unique(np.sort(ends, axis=1), axis=0)


def power_law(rng: np.random.Generator, num: int) -> Numbers:
    """Return a graph of preferential attachment, four pairs for every new task (Barabasi 1999)."""
    pairs, ends, targets = [], list[int](), [0, 1, 2, 3]
    for task in range(4, num):
        pairs += [(target, task) for target in targets]
        ends += [*targets, *[task] * 4]
        chosen = set[int]()
        while len(chosen) < 4:
            chosen.add(ends[int(rng.integers(len(ends)))])
        targets = list(chosen)
    return np.array(pairs, dtype=np.int64)


GRAPHS: dict[str, Callable[[np.random.Generator, int], Numbers]] = {
    "geometric": geometric,
    "Delaunay": delaunay,
    "roads": roads,
    "mesh": mesh,
    "power law": power_law,
}


class Kaffpa:
    """KaHIP's partitions with the balance that a domain has room for."""

    def __init__(self, seed: int) -> None:
        self._seed, self._library = seed, importlib.import_module("kahip")

    def parts(self, part: Part, rooms: Numbers) -> Numbers:
        """Return the child of every task of a part; it may have more than it has room for."""
        num, ends = len(part.tasks), np.concatenate([part.ends, part.ends[::-1]], axis=1)
        order = np.lexsort(ends[::-1])
        first = np.searchsorted(ends[0][order], np.arange(num + 1)).tolist()
        weight, other = np.tile(part.weight, 2)[order].tolist(), ends[1][order].tolist()
        spare = max(0.0, len(rooms) * float(rooms.min()) / num - 1)
        own = [1] * num, first, weight, other, len(rooms), spare, True, self._seed
        return np.array(self._library.kaffpa(*own, self._library.ECO)[1], dtype=np.int64)


def by_kaffpa(problem: MappingProblem, seed: int) -> Numbers | None:
    """Return the routers of `kaffpa` by levels."""
    machine, graph = problem.machine, problem.graph
    if not isinstance(machine, LevelMachine):
        return None
    given: dict[str, Any] = {"domains": machine.domain_of, "room": problem.capacity}
    given |= {"ends": np.stack([graph.sources, graph.targets]), "weight": graph.bytes}
    return leaves_of(given | {"size": problem.loads}, Kaffpa(seed))


def by_library(problem: MappingProblem, seed: int) -> Numbers | None:
    """Return the routers of Mt-KaHyPar alone, without a search after it."""
    if problem.machine.torus is None:
        return multilevel.multilevel(problem, seed, math.inf)
    return onto_torus(problem, seed, "QUALITY", 1)


@cache
def started(threads: int) -> Any:
    """Return the library with so many threads, which it must be told once."""
    return importlib.import_module("mtkahypar").initialize(threads)


def onto_torus(problem: MappingProblem, seed: int, preset: str, threads: int) -> Numbers:
    """Return the routers of `map_onto_graph` of Mt-KaHyPar, all of them with as much room."""
    library: Any = importlib.import_module("mtkahypar")
    engine = started(threads)
    library.set_seed(seed)
    context = engine.context_from_preset(getattr(library.PresetType, preset))
    routers = np.arange(problem.machine.num_routers)
    spare = float(problem.room.sum() / problem.loads.sum() - 1)
    context.set_partitioning_parameters(len(routers), spare, library.Objective.CUT)
    context.logging = False
    links = np.argwhere(np.triu(problem.machine.hops(routers[:, None], routers) == 1)).tolist()
    target = engine.create_target_graph(context, len(routers), len(links), links, [1] * len(links))
    rows = problem.guide
    once = rows.owner < rows.other
    pairs = np.stack([rows.owner[once], rows.other[once]], axis=1).tolist()
    own = len(pairs), pairs, problem.loads.tolist(), rows.weight[once].tolist()
    graph = engine.create_graph(context, problem.num_tasks, *own)
    return np.array(graph.map_onto_graph(target, context).get_partition(), dtype=np.int64)


def by_method(name: str, limit: float | None = None) -> Callable[[MappingProblem, int], Numbers]:
    """Return what maps by one of our methods."""

    def run(problem: MappingProblem, seed: int) -> Numbers:
        solver = method_of("mapping", name).solver
        return problem.routers_of(mapped_by(solver, problem, Options(time_limit=limit, seed=seed)))

    return run


PEERS: dict[str, Callable[[MappingProblem, int], Numbers | None]] = {
    "rank order": by_method("default"),
    "Scotch": by_method("scotch"),
    "kaffpa": by_kaffpa,
    "Mt-KaHyPar": by_library,
}


PARTITIONERS = {"Scotch": "C1s", "kaffpa": "C2^", "Mt-KaHyPar": "C4D"}
"""Those of the peers that know the graph, with their look in pictures."""


def problem_of(graph: str, num: int, balance: float, seed: int, on: str) -> MappingProblem:
    """Return the problem of a random graph on a machine."""
    sources, targets = GRAPHS[graph](np.random.default_rng(seed), num).T.tolist()
    sizes = [1] * len(sources)
    application = GraphApplication(num_tasks=num, sources=sources, targets=targets, bytes=sizes)
    places = load_places(on)
    return problem_on(places, application, math.floor(balance * math.ceil(num / len(places.nodes))))


def cpu() -> float:
    """Return the seconds of CPU of this process and those that it started."""
    return sum(os.times()[:4])


def measured(
    methods: Collection[str],
    limits: Sequence[float],
    seed: int,
    graph: str,
    num: int,
    balance: float,
    on: str,
) -> Iterator[Record]:
    """Yield a record for every method, and for `search` one for every limit."""
    problem = problem_of(graph, num, balance, seed, on)
    searches = [("search", limit, by_method("search", limit)) for limit in limits]
    every = [*((name, None, run) for name, run in PEERS.items()), *searches]
    for name, limit, run in (one for one in every if one[0] in methods):
        began = cpu()
        try:
            routers = run(problem, seed)
        except InputError:  # Scotch knows regular trees only
            continue
        if routers is None:
            continue
        spent, ends = round(cpu() - began, 1), (problem.graph.sources, problem.graph.targets)
        away = problem.machine.hops(*(routers[own] for own in ends))
        fullest = int(np.bincount(routers).max())
        yield Record(
            graph=graph,
            machine=on,
            seed=seed,
            tasks=problem.num_tasks,
            balance=balance,
            method=name,
            limit=limit,
            cost=int(away @ problem.graph.bytes),
            fits=fullest <= problem.tasks_per_node,
            cpu=spent,
        )


def cell(method: str, limit: float | None = None) -> Callable[[list[Record]], str]:
    """Return what shows the cost of a method, and its seconds."""

    def show(rows: list[Record]) -> str:
        found = where(rows, method=method, limit=limit)
        if not found:
            return "-"
        one = found[0]
        return f"{one.cost:,}{'' if one.fits else ' *'} ({one.cpu:.0f} s)"

    return show


def beside(rows: list[Record], limit: float) -> str:
    """Return how far `search` is below the best partitioner."""
    peers = [row.cost for row in rows if row.method in PARTITIONERS]
    own = where(rows, method="search", limit=limit)
    return percent(1 - own[0].cost / min(peers)) if peers and own else "-"


def picture(study: Study, rows: list[Record]) -> None:
    """Draw costs as time goes on, a panel for every graph and machine, of the first seed."""
    first = where(rows, **{name: getattr(rows[0], name) for name in ("seed", "tasks", "balance")})
    cases = groups(first, lambda row: (row.graph, row.machine))
    machines = list(dict.fromkeys(on for _, on in cases))
    graphs = list(dict.fromkeys(graph for graph, _ in cases))
    size = (4 * len(machines), 3 * len(graphs))
    with study.picture("", len(graphs), len(machines), figsize=size) as (figure, panels):
        for (graph, on), own in cases.items():
            panel = panels[graphs.index(graph)][machines.index(on)]
            curve(panel, [(r.limit, r.cost) for r in where(own, method="search")], label="search")
            for row in own:
                if row.method in PARTITIONERS:
                    look = PARTITIONERS[row.method]
                    curve(panel, [(max(row.cpu, 0.1), row.cost)], look, label=row.method)
            panel.set(xscale="log", xlabel="seconds", ylabel="cost", title=f"{graph}, {on}")
            panel.legend(fontsize="small")
        for panel in panels.flat:
            if not panel.has_data():
                panel.set_axis_off()
        figure.tight_layout()


def case_of(row: Record) -> tuple[object, ...]:
    """Return what a record is of."""
    return (*problem_told(row), row.method, row.limit)


def problem_told(row: Record) -> tuple[object, ...]:
    """Return what tells problems apart."""
    return row.graph, row.machine, row.seed, row.tasks, row.balance


def main(given: list[str] | None = None) -> None:
    """Measure, and write the records, the page and its picture."""
    study = Study(
        "partitions",
        __doc__ or "",
        given,
        seeds=[int],
        graphs=[*GRAPHS],
        machines=MACHINES,
        limits=[1.0, 3.0, 10.0, 60.0],
        tasks=[1 << 15],
        balances=[1.03],
        methods=[*PEERS, "search"],
    )
    chosen, rows = study.options, read_rows(study.file(".csv"))
    given_each = chosen.seeds, chosen.graphs, chosen.tasks, chosen.balances, chosen.machines
    for each in itertools.product(*given_each):
        new = []
        for row in measured(chosen.methods, chosen.limits, *each):
            print(row, flush=True)
            new.append(row)
        told = set(map(case_of, new))
        rows = [row for row in rows if case_of(row) not in told] + new
        study.write(rows)
    limits = sorted({row.limit for row in rows if row.limit})
    columns: list[Column] = ["graph", "machine"]
    columns += [("seed", lambda own: own[0].seed), ("tasks", lambda own: own[0].tasks)]
    columns += [("balance", lambda own: own[0].balance)]
    columns += [(name, cell(name)) for name in PEERS]
    columns += [(f"search, {limit:.0f} s", cell("search", limit)) for limit in limits]
    columns += [(f"below, {limit:.0f} s", partial(beside, limit=limit)) for limit in limits[-2:]]
    cases = groups(rows, problem_told).values()
    picture(study, rows)
    study.page(table(cases, columns, 2), title="Partitioners")


if __name__ == "__main__":
    main()
