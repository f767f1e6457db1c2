"""What every family of certificates of mappings proves that no other does.

Every family bounds the same instances within the same time; beside the best bound stands the best
one without its family. All certificates are checked. Writes docs/proofs/families.md.

    python scripts/study_families.py [--data FOLDER] [--seconds S] [--only PART_OF_A_NAME]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from bench_map import Messages, points, problem_of
from study import ROOT, Study, percent, table
from topoplace import clock
from topoplace.certify.mapping.check import VALUES
from topoplace.certify.mapping.instance import read_instance
from topoplace.mapping.bounds.blocks import blocks_bound
from topoplace.mapping.bounds.cuts import cuts_bound
from topoplace.mapping.bounds.distance_classes import distance_classes_bound
from topoplace.mapping.bounds.levels import _Levels, levels_bound
from topoplace.mapping.bounds.pairs import pairs_bound
from topoplace.mapping.bounds.recognised import recognised_bound
from topoplace.mapping.bounds.star import star_bound
from topoplace.mapping.bounds.total import total_bound
from topoplace.mapping.exact.branch import branch_and_bound, proof_tree, small_problem
from topoplace.mapping.graph import grid_of
from topoplace.mapping.graphfiles import read_graph, read_qaplib
from topoplace.mapping.link_bounds import bisected, inside_bound, loaded, mean_bound, task_bound
from topoplace.mapping.onto import load_places, problem_on
from topoplace.mapping.parallelism import parallelism
from topoplace.mapping.problem import MappingProblem
from topoplace.result.mapping import LevelBound
from topoplace.snapshot.schema import AnyApplication, GraphApplication, GridApplication, MatrixModel
from topoplace.solving import Bound
from topoplace.types import IntArray

PAGE = ROOT / "docs" / "proofs" / "families.md"
LEVELS = "sharedmap:4:8:6/1:10:100"
MESSAGES = 3
"""Per task of a graph without locality."""

Make = Callable[[], MappingProblem]


def on(machine: str | MatrixModel, application: AnyApplication, per: int = 1) -> MappingProblem:
    """Return an application on all nodes of a machine."""
    return problem_on(load_places(machine), application, per)


def drawn(kind: Callable[..., Messages], side: int) -> GraphApplication:
    """Return one of the graphs of the benchmark of mappings."""
    application = problem_of(
        kind.__name__, kind(side, np.random.default_rng(1)), side
    ).instance.application
    assert isinstance(application, GraphApplication)
    return application


def regular(side: int, rng: np.random.Generator) -> Messages:
    """Return random rings through all tasks."""
    orders = [rng.permutation(side**3) for _ in range(MESSAGES)]
    sources = np.concatenate(orders)
    targets = np.concatenate([np.roll(order, 1) for order in orders])
    return sources, targets, np.ones_like(sources)


def power(side: int, rng: np.random.Generator) -> Messages:
    """Return random messages of 1 to 99 bytes, the k-th task popular by k^-0.6."""
    tasks = side**3
    share = np.arange(1, tasks + 1) ** -0.6
    sources, targets = rng.choice(tasks, size=(2, MESSAGES * tasks), p=share / share.sum())
    return sources, targets, rng.integers(1, 100, size=MESSAGES * tasks)


def dense(num: int) -> GraphApplication:
    """Return flows of 0 to 10 between most pairs, as those of Nugent."""
    rng = np.random.default_rng(1)
    flows = np.triu(rng.integers(0, 11, (num, num)) * (rng.random((num, num)) < 0.6), 1)
    sources, targets = np.nonzero(flows)
    return graph(num, sources, targets, flows[sources, targets])


def graph(num: int, *messages: IntArray) -> GraphApplication:
    """Return a graph of messages: their sources, targets and bytes."""
    ends = zip(("sources", "targets", "bytes"), messages, strict=True)
    return GraphApplication(num_tasks=num, **{name: part.tolist() for name, part in ends})


def grid(*shape: int, periodic: bool = False, corners: bool = False) -> GridApplication:
    """Return a grid, a byte to each neighbour; those at corners count as well if so asked."""
    dims = len(shape)
    stencil = {"stencil": "full", "diagonal_bytes": [1] * (dims - 1)} if corners else {}
    own = {"shape": list(shape), "periodic": [periodic] * dims, "bytes": [[1, 1]] * dims}
    return GridApplication(**own, **stencil)


def listed(own: GridApplication) -> GraphApplication:
    """Return the messages of a grid as a graph."""
    sent = grid_of(own).graph()
    return graph(sent.num_tasks, sent.sources, sent.targets, sent.bytes)


def hub(num: int) -> GraphApplication:
    """Return a task that sends a byte to each of many others."""
    others = np.arange(1, num)
    return graph(num, np.zeros_like(others), others, np.ones_like(others))


def matrix(path: Path) -> MappingProblem:
    """Return an instance of QAPLIB."""
    read = read_qaplib(path)
    return on(read.machine, read.graph)


CORNERS, MILC = grid(32, 32, 32, corners=True), grid(8, 8, 8, 16, periodic=True)
CASES: dict[str, Make] = {
    "points, 512 on torus 4x4x4": lambda: on("torus:4x4x4", drawn(points, 8), 8),
    "regular, 216 on mesh 6x6x6": lambda: on("mesh:6x6x6", drawn(regular, 6)),
    "dense, 25 on mesh 5x5": lambda: on("mesh:5x5", dense(25)),
    "dense, 56 on mesh 7x8": lambda: on("mesh:7x8", dense(56)),
    "hub of 12,167 on torus 23x23x23": lambda: on("torus:23x23x23", hub(23**3)),
    "grid 6x6, periodic, on mesh 6x6": lambda: on("mesh:6x6", grid(6, 6, periodic=True)),
    "grid 8x8x8x16, periodic, on torus 8x8x8": lambda: on("torus:8x8x8", MILC, 16),
    "grid 32x32x32 with corners on torus 8x8x8": lambda: on("torus:8x8x8", CORNERS, 64),
    "grid 32x32x32 on torus 24x24x24:2": lambda: on("torus:24x24x24:2", grid(32, 32, 32), 32),
    "graph of grid 16x16x16 on torus 8x8x8": lambda: on("torus:8x8x8", listed(grid(16, 16, 16)), 8),
}
ON_LEVELS: dict[str, Make] = {
    "regular, 192 on 4:8:6": lambda: on(LEVELS, of_192(regular)),
    "power, 192 on 4:8:6": lambda: on(LEVELS, of_192(power)),
    "grid 12x16 on 4:8:6": lambda: on(LEVELS, grid(12, 16)),
    "ranks 6x4x8 on 4:8:6": lambda: on(LEVELS, parallelism("pipeline=6,data=4,tensor=8")),
}


def of_192(kind: Callable[..., Messages]) -> GraphApplication:
    """Return the messages of a graph among its first 192 tasks."""
    messages = kind(6, np.random.default_rng(1))
    kept = (messages[0] < 192) & (messages[1] < 192)
    return graph(192, *(part[kept] for part in messages))


def instances(data: Path | None) -> Iterator[tuple[str, Make]]:
    """Yield the instances by name, the measured ones where their folder is given."""
    for kind in (regular, power, points):
        for side in (3, 4, 6, 8):
            text = f"torus:{side}x{side}x{side}"
            name = f"{kind.__name__}, {side**3} on {text.replace(':', ' ')}"
            yield name, partial(lambda *own: on(own[0], drawn(*own[1:])), text, kind, side)
    if data is not None:
        for name in ("amg", "lulesh"):
            own = read_graph(data / f"maplib/{name}/bytes.csv")
            yield f"{name}, 64 on torus 4x4x4", partial(on, "torus:4x4x4", own)
        for name in ("nug12", "tho30"):
            yield name, partial(matrix, data / f"qaplib/{name}.dat")
    yield from CASES.items()


def tree_bound(problem: MappingProblem, seconds: float) -> Bound | None:
    """Return the optimum of a small problem if there is time for a tree that proves it."""
    small = small_problem(problem)
    found = small and branch_and_bound(small, None, seconds)
    if not small or not found or not found.complete:
        return None
    tree = proof_tree(small, found.bound, seconds)
    return tree and Bound(found.bound, tree)


def hop_bytes(problem: MappingProblem, seconds: float) -> dict[str, Bound | None]:
    """Return what every family proves of a problem; cuts leave grids to blocks."""
    timed = {"pairs": pairs_bound, "cuts": cuts_bound, "distance-classes": distance_classes_bound}
    timed |= {"tree": tree_bound}
    if problem.num_tasks > 4096 or (problem.grid is not None and problem.num_tasks > 64):
        timed = {}
    quick = {"total": total_bound, "star": star_bound, "blocks": blocks_bound}
    quick |= {"recognised": recognised_bound}
    found = {name: bound(problem) for name, bound in quick.items()}
    return found | {name: bound(problem, seconds) for name, bound in timed.items()}


class Alone(_Levels):
    """Bounds of levels with parts of one kind alone."""

    kind = "degrees"

    def _offer(self, level: int, proven: int, part: LevelBound) -> None:
        if part.kind == self.kind:
            super()._offer(level, proven, part)


def on_levels(problem: MappingProblem, seconds: float) -> dict[str, Bound | None]:
    """Return what the star proves, parts of every kind alone, and all of these together."""
    machine, found = problem.machine.levels, {"star": star_bound(problem)}
    assert machine is not None
    for kind in ("degrees", "inside", "spectral"):
        alone = Alone(problem, machine)
        alone.kind = kind
        alone.quick()
        alone.spectral(clock.deadline(seconds))
        found[kind] = alone.bound
    return found | {"together": levels_bound(problem, seconds)}


def link_loads(problem: MappingProblem, best: Bound, seconds: float) -> dict[str, Bound | None]:
    """Return what every family proves of the largest link load."""
    view = loaded(problem)
    if view is None:
        return {}
    found = {"mean": mean_bound(view, best), "task": task_bound(view), "inside": inside_bound(view)}
    return found | {"spectral": bisected(problem, 0, seconds)}


def row(name: str, found: dict[str, Bound | None]) -> dict[str, str]:
    """Return the cells of an instance, the best in bold, and what the others are short of that."""
    values = {key: float(bound.value) for key, bound in found.items() if bound is not None}
    best = max(values.values())
    rest = [value for value in values.values() if value < best]
    cells = {key: f"{value:,.1f}".removesuffix(".0") for key, value in values.items()}
    cells |= {key: f"**{cells[key]}**" for key, value in values.items() if value == best}
    short = 1 - max(rest, default=0.0) / best if len(rest) == len(values) - 1 else 0.0
    return {"instance": name, **cells, "without it": percent(short)}


def families_of(found: dict[str, dict[str, Bound | None]]) -> str:
    """Return the table of what families prove, without those that say nothing of any instance."""
    every = dict.fromkeys(key for one in found.values() for key, bound in one.items() if bound)
    rows = [row(name, one) for name, one in found.items()]
    heads = ["instance", *every, "without it"]
    return table(rows, [(head, lambda row, head=head: row.get(head)) for head in heads])


def checked(problem: MappingProblem, found: dict[str, Bound | None]) -> None:
    """Hold what is found against the checker."""
    instance = read_instance(problem.instance)
    for bound in found.values():
        if bound is not None and bound.certificate is not None:
            assert VALUES[bound.certificate.kind](instance, bound.certificate) >= bound.value


def main(given: Sequence[str] | None = None) -> None:
    """Bound all instances and write the page."""
    study = Study("families", __doc__, given, data=Path, seconds=20.0, only="")
    seconds, only = study.options.seconds, study.options.only
    hops, links, levels = {}, {}, {}
    for name, make in instances(study.options.data):
        if only in name:
            problem = make()
            hops[name] = hop_bytes(problem, seconds)
            checked(problem, hops[name])
            best = max(filter(None, hops[name].values()), key=lambda bound: bound.value)
            links[name] = link_loads(problem, best, seconds)
            print(row(name, hops[name]), flush=True)
    for name, make in ON_LEVELS.items():
        if only in name:
            levels[name] = on_levels(make(), seconds)
            checked(make(), levels[name])
    parts = [("Hop-bytes", hops), ("Trees and hierarchies", levels)]
    parts.append(("Link loads", {name: found for name, found in links.items() if found}))
    tables = [part for title, found in parts for part in (f"## {title}", families_of(found))]
    study.page(study.stamp, *tables, title="Families of certificates", page=PAGE)


if __name__ == "__main__":
    main()
