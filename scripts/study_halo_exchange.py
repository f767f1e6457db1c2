"""Predicted order of Enos 2014, Tables III to VI, by the largest link load of the exchange.

For every table: random regions of the size of the paper's node feature on Blue Waters with its
service nodes, the default order and grid_order on the first nodes of the region in the order of
ALPS' scheme 2Y (as in the paper), Topaware's leftmost pencils, and the optimal pencil selection.
Writes docs/studies/halo_exchange.md and its figures as CSV.

    python scripts/study_halo_exchange.py [--regions N] [--seed N]
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from study_mapping_gaps import problem_of
from study_page import STUDIES, markdown, stamp, write_rows
from topoplace.errors import InputError
from topoplace.machine import Prism
from topoplace.mapping.evaluate import evaluate
from topoplace.mapping.onto import Places, load_places
from topoplace.mapping.problem import MappingProblem
from topoplace.placement.torus.heuristics.node_orders import TWO_Y, block_order
from topoplace.result.mapping import MappingFigures
from topoplace.snapshot.files import write_text
from topoplace.snapshot.schema import TorusModel
from topoplace.snapshot.state import torus_of
from topoplace.solving import Options, method_of
from topoplace.types import IntArray


@dataclass(frozen=True)
class Case:
    """A table of the paper: its grid, region, tasks per node by method, and its timings.

    `times` are the paper's, in its own unit; None where it has none.
    """

    table: str
    grid: tuple[int, ...]
    region: tuple[int, int, int]
    bytes: int
    tasks_per_node: dict[str, int]
    cell: tuple[int, ...] | None
    times: dict[str, float]


CASES = (
    Case(
        "III, 3D",
        (32, 32, 32),
        (12, 8, 12),
        32_000,
        {"default": 32, "grid-order": 32, "topaware": 32, "pencils": 32},
        (4, 2, 4),
        {"default": 11.315, "grid-order": 7.722, "topaware": 2.771},
    ),
    Case(
        "IV, 4D",
        (11, 12, 11, 12),
        (12, 4, 12),
        24_000,
        {"default": 32, "grid-order": 32, "topaware": 24, "pencils": 24},
        None,
        {"default": 9.65, "grid-order": 7.46, "topaware": 1.72},
    ),
    Case(
        "V, MILC",
        (21, 2, 21, 24),
        (24, 2, 24),
        24_000,
        {"grid-order": 12, "topaware": 12, "pencils": 12},
        (1, 1, 1, 12),
        {"grid-order": 254.0, "topaware": 116.4},
    ),
    Case(
        "VI, 2D",
        (110, 120),
        (12, 4, 12),
        4_000,
        {"default": 16, "grid-order": 16, "topaware": 16, "pencils": 16},
        None,
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
    """Return the figures of every method in a region; None if one finds no room."""
    found = {}
    for method, tasks_per_node in case.tasks_per_node.items():
        options = Options(cell=case.cell if method == "grid-order" else None)
        try:
            problem = problem_of(case.grid, False, tasks_per_node, places, case.bytes)
            outcome = method_of("mapping", method).solver(problem, options)
        except InputError:
            return None
        if outcome.solution is None:
            return None
        nodes = outcome.solution.nodes
        if method in ("default", "grid-order"):
            nodes = in_alps_order(problem, nodes)
        found[method] = evaluate(problem, nodes)
    return found


def study(num_regions: int, seed: int) -> list[dict[str, object]]:
    """Return a row for every case, region and method."""
    everywhere = load_places("blue_waters")
    assert isinstance(everywhere.machine, TorusModel)
    shape = torus_of(everywhere.machine).shape
    rng = np.random.default_rng(seed)
    rows: list[dict[str, object]] = []
    for case in CASES:
        used, draws = 0, 0
        while used < num_regions and draws < 50 * num_regions:
            draws += 1
            origin = tuple(
                0 if extent == n else int(rng.integers(n))
                for extent, n in zip(case.region, shape, strict=True)
            )
            region = Prism(origin, case.region)
            figures = run(case, everywhere.within(region.text))
            if figures is None:
                continue
            used += 1
            for method, found in figures.items():
                load = found.max_link_load
                assert load is not None
                rows.append(
                    {
                        "table": case.table,
                        "region": region.text,
                        "method": method,
                        "max_link_load": load.numerator / load.denominator,
                        "max_hops": found.max_hops,
                        "hop_bytes": found.hop_bytes,
                    }
                )
        print(f"table {case.table}: {used} regions of {draws} drawn", file=sys.stderr)
    return rows


HEAD = ("table", "method", "predicted", "measured", "largest hop", "regions in the measured order")
TEXT = """# Halo exchanges of Enos 2014: predicted and measured order

{stamp}

The paper timed halo exchanges in node features of one size. We draw random regions of
that size on Blue Waters (its service nodes in place; a region counts if Topaware's
layout fits) and predict the time of an exchange as the largest load of a link, bytes
over bandwidth, under dimension-ordered routing (y links half as fast). Default and
grid_order take the first nodes of the region in the order of scheme 2Y. Relative
figures: largest link load over that of Topaware, mean over the regions, and the paper's
time over Topaware's.

{table}
"""


def report(rows: list[dict[str, object]]) -> str:
    """Return the study as a Markdown table."""
    lines: list[list[str]] = []
    for case in CASES:
        mine = [row for row in rows if row["table"] == case.table]
        regions = sorted({str(row["region"]) for row in mine})
        loads = {(row["region"], row["method"]): float(str(row["max_link_load"])) for row in mine}
        ranked = sorted(case.times, key=lambda m: case.times[m], reverse=True)
        agree = sum(
            all(
                loads[region, slow] > loads[region, fast]
                for slow, fast in itertools.pairwise(ranked)
            )
            for region in regions
        )
        for method in case.tasks_per_node:
            ratios = [loads[r, method] / loads[r, "topaware"] for r in regions]
            hops = [int(str(row["max_hops"])) for row in mine if row["method"] == method]
            measured = case.times.get(method)
            shown = "-" if measured is None else f"{measured / case.times['topaware']:.2f}"
            order = f"{agree} of {len(regions)}" if method == "topaware" else ""
            hop = f"{min(hops)} to {max(hops)}"
            lines.append([case.table, method, f"{np.mean(ratios):.2f}", shown, hop, order])
    return markdown(HEAD, 2, lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study and write its page and its table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--regions", type=int, default=10)
    parser.add_argument("--seed", type=int, default=2014)
    options = parser.parse_args(arguments)
    rows = study(options.regions, options.seed)
    table = report(rows)
    page = TEXT.format(stamp=stamp("study_halo_exchange.py", arguments), table=table)
    write_text(STUDIES / "halo_exchange.md", page)
    write_rows(STUDIES / "halo_exchange.csv", rows)
    print(table)


if __name__ == "__main__":
    main()
