"""Predicted order of Enos 2014, Tables III to VI, by the largest link load of the exchange.

For every table: random regions of the size of the paper's node feature on Blue Waters with its
service nodes, the default order and grid_order on the first nodes of the region in the order of
ALPS' scheme 2Y (as in the paper), Topaware's leftmost pencils, and the optimal pencil selection.
Writes the table of docs/studies/halo_exchange.md and its figures as CSV.

    python scripts/study_halo_exchange.py [--regions N] [--seed N]
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from study import Column, Record, Study, groups, table, where
from study_mapping_gaps import grid
from topoplace.errors import InputError
from topoplace.machine import Prism
from topoplace.mapping.evaluate import evaluate
from topoplace.mapping.onto import Places, load_places, problem_on
from topoplace.mapping.problem import MappingProblem
from topoplace.placement.torus.heuristics.node_orders import TWO_Y, block_order
from topoplace.result.mapping import MappingFigures
from topoplace.snapshot.schema import TorusModel
from topoplace.snapshot.state import torus_of
from topoplace.solving import Options, method_of
from topoplace.types import IntArray


@dataclass(frozen=True)
class Case:
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


CASES = (
    Case(
        *("III, 3D", "32x32x32", (12, 8, 12), 32_000, (32, 32), (4, 2, 4)),
        {"default": 11.315, "grid-order": 7.722, "topaware": 2.771},
    ),
    Case(
        *("IV, 4D", "11x12x11x12", (12, 4, 12), 24_000, (32, 24), None),
        {"default": 9.65, "grid-order": 7.46, "topaware": 1.72},
    ),
    Case(
        *("V, MILC", "21x2x21x24", (24, 2, 24), 24_000, (12, 12), (1, 1, 1, 12)),
        {"grid-order": 254.0, "topaware": 116.4},
    ),
    Case(
        *("VI, 2D", "110x120", (12, 4, 12), 4_000, (16, 16), None),
        {"default": 0.2743, "grid-order": 0.2149, "topaware": 0.1638},
    ),
)


def in_alps_order(problem: MappingProblem, nodes: IntArray) -> IntArray:
    """Return a mapping onto the k-th usable node as one onto the k-th node of ALPS' order."""
    torus = problem.torus
    per = torus.nodes_per_router
    ordered = (block_order(torus, TWO_Y)[:, None] * per + np.arange(per)).ravel()
    listed = ordered[np.isin(ordered, problem.nodes)]
    return listed[np.searchsorted(problem.nodes, nodes)]


def run(case: Case, places: Places) -> dict[str, MappingFigures] | None:
    """Return the figures of the paper's methods and of pencils in a region; None without room."""
    found = {}
    application = grid(case.grid, num_bytes=case.bytes)
    for method in (*case.times, "pencils"):
        is_order = method in ("default", "grid-order")
        options = Options(cell=case.cell if method == "grid-order" else None)
        try:
            problem = problem_on(places, application, case.per_node[0 if is_order else 1])
            outcome = method_of("mapping", method).solver(problem, options)
        except InputError:
            return None
        if outcome.solution is None:
            return None
        nodes = outcome.solution.nodes
        found[method] = evaluate(problem, in_alps_order(problem, nodes) if is_order else nodes)
    return found


def measure(num_regions: int, seed: int) -> Iterator[Record]:
    """Yield a record for every case, region and method."""
    everywhere = load_places("blue_waters")
    assert isinstance(everywhere.machine, TorusModel)
    shape = torus_of(everywhere.machine).shape
    rng = np.random.default_rng(seed)
    for case in CASES:
        used, draws = 0, 0
        while used < num_regions and draws < 50 * num_regions:
            draws += 1
            sides = zip(case.region, shape, strict=True)
            origin = tuple(0 if extent == n else int(rng.integers(n)) for extent, n in sides)
            region = Prism(origin, case.region).text
            figures = run(case, everywhere.within(region))
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


def write(study: Study, rows: Sequence[Record]) -> None:
    """Write the records, and a line for every table of the paper and method."""
    study.write(rows)
    lines = []
    for case in CASES:
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


def main(given: Sequence[str] | None = None) -> None:
    """Run the study and write its page and its table."""
    study = Study("halo_exchange", __doc__, given, regions=10, seed=2014)
    write(study, list(measure(study.options.regions, study.options.seed)))


if __name__ == "__main__":
    main()
