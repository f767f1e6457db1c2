"""Topaware's leftmost usable routers against the optimal pencil selection, and what is beyond.

Grids of Enos 2014 in regions of the paper's sizes with seeded unusable routers, scattered or in
prisms, and on the shipped snapshots of Blue Waters. Four mappings each: Topaware's; the minimum cut
in Topaware's own window; the best window of all layouts; an unrestricted local search from that.
Every one is accepted by the checker, or the study stops. Writes pencils.md (between its markers),
pencils.csv and the plots.

    python scripts/study_pencils.py [--seeds N] [--time-limit S] [--search S] [--jobs N]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from pencils_cases import GRIDS, PERCENTS, Case, allocation_of, cases, needed
from pencils_page import Row, write_study
from study_mapping_gaps import problem_of
from study_page import STUDIES, spawned, stamp
from topoplace.certify import check_document
from topoplace.errors import InputError, TopoplaceError
from topoplace.mapping.bounds.best import best_bound
from topoplace.mapping.layouts import Layout, cells, ideal_hop_bytes
from topoplace.mapping.mapped import outcome_of
from topoplace.mapping.pencils.network import cut_selection
from topoplace.mapping.pencils.search import layout_model, nodes_of
from topoplace.mapping.pencils.space import admissible_layouts, cell_terms, window_at
from topoplace.mapping.problem import MappingProblem
from topoplace.result import Proof
from topoplace.result.mapping import ClassOptimum
from topoplace.solving import Options, Outcome, method_of, result_of


def layout_of(problem: MappingProblem, outcome: Outcome) -> Layout:
    """Return the layout that a pencil placement shows."""
    assert outcome.solution is not None
    shown = outcome.solution.layout
    return next(
        layout
        for layout in admissible_layouts(problem)
        if layout_model(layout, shown.pencil, tuple(shown.origin), shown.depth) == shown
    )


def best_in_window(
    problem: MappingProblem, outcome: Outcome, layout: Layout, bound: int
) -> Outcome:
    """Return the optimal selection in the window of a pencil placement, with its flow.

    `bound` holds for any mapping.
    """
    assert outcome.solution is not None and problem.grid is not None  # noqa: PT018 - not a test
    shown = outcome.solution.layout
    torus, whole, pencil = problem.torus, problem.whole_routers, shown.pencil
    at = cells(layout, problem.grid)
    terms = cell_terms(torus, problem.graph, at, layout.extents, pencil)
    window = window_at(torus, whole, layout.extents, pencil, tuple(shown.origin), shown.depth)
    cut = cut_selection(window, terms)
    value = terms.hop_bytes(cut.selection)
    exact = not terms.mixed(window.slack).any()
    optimum = ClassOptimum(
        objective=value,
        bound=bound,
        proof=Proof.SEARCH if bound == value else Proof.NONE,
        layouts=1,
        windows=1,
        max_depth=[*layout.extents[:pencil], shown.depth, *layout.extents[pencil + 1 :]],
        window_bound=value if exact else None,
        flow=cut.certificate() if exact else None,
    )
    return outcome_of(nodes_of(problem, layout, pencil, window, cut.selection), shown, optimum)


def measure(case: Case, time_limit: float, search: float) -> Row:
    """Return the row of a case; without figures if its usable routers hold no layout.

    Raises
    ------
    TopoplaceError
        If the checker does not verify a mapping or its bound.
    """
    allocation = allocation_of(case)
    grid = case.grid
    row = Row(
        setting=case.setting,
        snapshot=case.snapshot,
        percent=case.percent,
        seed=case.seed,
        grid=grid.name,
        needed=needed(grid, case.setting),
    )
    options = Options(time_limit=time_limit, seed=case.seed)
    try:
        problem = problem_of(grid.shape, False, grid.tasks_per_node, allocation)
        first, seconds = _timed(lambda: method_of("mapping", "topaware").solver(problem, options))
    except InputError:
        return row
    bound = best_bound(problem, 0.0)
    assert bound is not None and problem.grid is not None  # noqa: PT018 - not a test

    def value(method: str, outcome: Outcome, seconds: float) -> int:
        outcome = replace(outcome, bounds=(bound,))
        result = result_of(problem, outcome, method, options, seconds)
        report = check_document(result)
        if not report.holds or result.objective is None:
            raise TopoplaceError(f"{case}, {method}: the checker says {report.failures}")
        return result.objective

    layout = layout_of(problem, first)
    window, window_seconds = _timed(lambda: best_in_window(problem, first, layout, bound.value))
    best, best_seconds = _timed(lambda: method_of("mapping", "pencils").solver(problem, options))
    row = replace(
        row,
        bound=bound.value,
        layout_ideal=ideal_hop_bytes(layout, problem.grid, problem.torus),
        topaware=value("topaware", first, seconds),
        window=value("window", window, window_seconds),
        window_proven=window.solution.optimum.flow is not None,
        seconds_topaware=round(seconds, 3),
        seconds_window=round(window_seconds, 3),
    )
    if best.solution is None:
        return row  # the time was over before the first window
    row = replace(
        row,
        pencils=value("pencils", best, best_seconds),
        seconds_pencils=round(best_seconds, 3),
        pencils_complete=not best.time_limit_hit,
    )
    beyond = replace(options, time_limit=search, start=best.solution.nodes)
    searched, seconds = _timed(lambda: method_of("mapping", "local-search").solver(problem, beyond))
    return replace(row, searched=value("local-search", searched, seconds))


def _timed(call: Callable[[], Outcome]) -> tuple[Outcome, float]:
    start = time.perf_counter()
    outcome = call()
    return outcome, time.perf_counter() - start


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study and write its page, its table and its plots."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    names = [grid.name for grid in GRIDS]
    shipped = ["empty", "20", "30", "40", "50", "60", "70", "80"]
    parser.add_argument("--grids", nargs="*", choices=names, default=names, metavar="GRID")
    parser.add_argument("--percents", nargs="*", type=int, default=list(PERCENTS), metavar="P")
    parser.add_argument("--snapshots", nargs="*", choices=shipped, default=shipped, metavar="NAME")
    parser.add_argument("--seeds", type=int, default=4, metavar="N", help="draws per share")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="the first")
    parser.add_argument("--time-limit", type=float, default=10, metavar="S", help="of pencils")
    parser.add_argument("--search", type=float, default=2, metavar="S", help="of local search")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="processes")
    parser.add_argument("-o", "--output", type=Path, default=STUDIES, metavar="DIR")
    options = parser.parse_args(arguments)
    run = partial(measure, time_limit=options.time_limit, search=options.search)
    rows = []
    with spawned(options.jobs) as pool:
        for row in pool.map(run, cases(options)):
            rows.append(row)
            print(row, file=sys.stderr)
    notes = (
        f"{options.seeds} draws for every share, from seed {options.seed}; at most "
        f"{options.time_limit:g} s for all windows,\n{options.search:g} s of local search; "
        f"{options.jobs} processes."
    )
    write_study(options.output, rows, stamp("study_pencils.py", arguments) + "\n\n" + notes)


if __name__ == "__main__":
    main()
