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
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from study_mapping_gaps import SNAPSHOTS, problem_of
from study_page import (
    STUDIES,
    markdown,
    number,
    percent,
    picture,
    spawned,
    stamp,
    write_between_markers,
    write_rows,
)
from topoplace.certify import check_document
from topoplace.errors import InputError, TopoplaceError
from topoplace.machine import Prism, Torus
from topoplace.mapping.bounds.best import best_bound
from topoplace.mapping.layouts import Layout, cells, ideal_hop_bytes
from topoplace.mapping.mapped import outcome_of
from topoplace.mapping.onto import Places, load_places
from topoplace.mapping.pencils.network import cut_selection
from topoplace.mapping.pencils.search import layout_model, nodes_of
from topoplace.mapping.pencils.space import admissible_layouts, cell_terms, window_at
from topoplace.mapping.problem import MappingProblem
from topoplace.result import Proof
from topoplace.result.mapping import ClassOptimum
from topoplace.snapshot.machines import load_torus
from topoplace.snapshot.schema import TorusModel
from topoplace.snapshot.state import torus_of
from topoplace.solving import Options, Outcome, method_of, result_of
from topoplace.types import IntArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


SCATTERED, PRISMS, SNAPSHOT = "scattered", "prisms", "snapshot"
"""What is unusable: single routers, prisms of them, what a snapshot says."""

PERCENTS = (0, 1, 2, 3, 5, 8)
HOLE_EXTENTS = (1, 3)  # of a prism of unusable routers, least and largest, in every dimension


@dataclass(frozen=True)
class Grid:
    """A grid with its most tasks per node, and the region it is laid into.

    `nodes_per_router` is 2 on Blue Waters; with 1 the grid is one of routers.
    """

    shape: tuple[int, ...]
    tasks_per_node: int
    region: tuple[int, int, int]
    nodes_per_router: int = 2

    @property
    def name(self) -> str:
        """Its extents."""
        return "x".join(map(str, self.shape))


GRIDS = (
    Grid((32, 32, 32), 32, (12, 8, 12)),
    Grid((110, 120), 16, (12, 4, 12)),
    Grid((168, 132), 16, (12, 8, 12)),
    Grid((11, 12, 11, 12), 24, (12, 4, 12)),
    Grid((21, 2, 21, 24), 12, (24, 2, 24)),
    Grid((24, 6, 20), 1, (24, 6, 24), 1),
)
"""Enos 2014, Tables III to VIII, with the regions of Tables III to VI; and a grid of routers whose
layout is 24x6x20 in depth 24."""


@dataclass(frozen=True)
class Case:
    """A grid and what is unusable: a snapshot's name, or a seeded draw in the grid's region."""

    setting: str
    grid: Grid
    percent: int = 0
    seed: int = 0
    snapshot: str = ""


def unusable(torus: Torus, routers: IntArray, case: Case) -> IntArray:
    """Draw the unusable ones of a region's routers.

    Prisms have extents drawn evenly from `HOLE_EXTENTS`, and lie apart; one that would exceed the
    share is drawn again, so that the share is met to a router.
    """
    rng = np.random.default_rng([case.seed, case.percent])
    target = round(case.percent * len(routers) / 100)
    if case.setting == SCATTERED:
        return rng.choice(routers, target, replace=False)
    taken = np.empty(0, dtype=np.int64)
    low, high = HOLE_EXTENTS
    while len(taken) < target:
        extents = tuple(rng.integers(low, high, endpoint=True, size=torus.num_dims).tolist())
        hole = Prism(torus.coords(int(rng.choice(routers))), extents).routers(torus)
        inside = np.isin(hole, routers).all()
        if inside and len(taken) + len(hole) <= target and not np.isin(hole, taken).any():
            taken = np.concatenate([taken, hole])
    return taken


def everywhere(grid: Grid, setting: str) -> Places:
    """Return the nodes of a grid's region, or of Blue Waters, with nothing unusable."""
    bare = {"name": "bare", "service": "", "classes": {}, "nodes_per_router": grid.nodes_per_router}
    machine = load_torus("blue_waters").model_copy(update=bare)
    nodes = np.arange(torus_of(machine).num_nodes)
    whole = Places(machine, nodes, "nothing unusable")
    return whole if setting == SNAPSHOT else whole.within("x".join(map(str, grid.region)))


def allocation_of(case: Case) -> Places:
    """Return the usable nodes of a case."""
    if case.setting == SNAPSHOT:
        return load_places(str(SNAPSHOTS / f"{case.snapshot}.json"))
    whole = everywhere(case.grid, case.setting)
    assert isinstance(whole.machine, TorusModel)
    routers = whole.nodes // case.grid.nodes_per_router
    bad = unusable(torus_of(whole.machine), np.unique(routers), case)
    return Places(whole.machine, whole.nodes[~np.isin(routers, bad)], case.setting)


@cache
def needed(grid: Grid, setting: str) -> int:
    """Return the least hop-bytes of any layout with nothing unusable."""
    problem = problem_of(grid.shape, False, grid.tasks_per_node, everywhere(grid, setting))
    assert problem.grid is not None
    layouts = admissible_layouts(problem)
    return min(ideal_hop_bytes(layout, problem.grid, problem.torus) for layout in layouts)


def cases(options: argparse.Namespace) -> Iterator[Case]:
    """Yield every case of a study."""
    chosen = [grid for grid in GRIDS if grid.name in options.grids]
    for grid in chosen:
        for share in options.percents:
            for setting in (SCATTERED, PRISMS) if share else (SCATTERED,):
                for seed in range(options.seeds if share else 1):
                    yield Case(setting, grid, share, options.seed + seed)
    for name in options.snapshots:
        for grid in chosen:
            if grid.nodes_per_router == 2:  # that of the snapshots
                yield Case(SNAPSHOT, grid, snapshot=f"blue_waters_{name}")


METHODS = {
    "topaware": "Topaware: leftmost",
    "window": "optimal in the same window",
    "pencils": "optimal over all windows",
    "searched": "with local search",
}
"""Fields of a row that hold hop-bytes, in the order in which each starts from the one before."""


@dataclass(frozen=True)
class Row:
    """One grid, and one state of the routers, a `seed`'s draw of so many `percent` unusable.

    Hop-bytes are None where nothing has room: of any layout with nothing unusable (`needed`) and
    of Topaware's (`layout_ideal`), then by method (`METHODS`), then the certified `bound`. A flow
    may prove the selection best in its window; all windows may have been searched or ruled out.
    """

    setting: str
    snapshot: str
    percent: int
    seed: int
    grid: str
    needed: int
    layout_ideal: int | None = None
    topaware: int | None = None
    window: int | None = None
    pencils: int | None = None
    searched: int | None = None
    bound: int | None = None
    window_proven: bool | None = None
    pencils_complete: bool | None = None
    seconds_topaware: float | None = None
    seconds_window: float | None = None
    seconds_pencils: float | None = None


def excess(rows: Sequence[Row], method: str) -> float | None:
    """Return the mean excess of a method over what is needed, as a share of that."""
    return _mean([getattr(row, method) / row.needed - 1 for row in complete(rows)])


def gap(rows: Sequence[Row], method: str) -> float | None:
    """Return the mean gap of a method to the certified bound."""
    return _mean([1 - (row.bound or 0) / getattr(row, method) for row in complete(rows)])


def removed(rows: Sequence[Row], method: str, base: str) -> float | None:
    """Return the share of Topaware's excess over `base`, a field, that a method removes.

    Excesses are added up first, so that rows with hardly any do not count as much as others.
    """
    known = complete(rows)
    before = sum(row.topaware - getattr(row, base) for row in known)
    after = sum(getattr(row, method) - getattr(row, base) for row in known)
    return (before - after) / before if before > 0 else None


def complete(rows: Sequence[Row]) -> list[Row]:
    """Return the rows with figures of every method."""
    return [row for row in rows if row.searched is not None]


def grids_of(rows: Sequence[Row]) -> list[str]:
    """Return the grids of rows in their order, each once."""
    return list(dict.fromkeys(row.grid for row in rows))


def _mean(values: Sequence[float]) -> float | None:
    return statistics.fmean(values) if values else None


BEGIN, END = "<!-- tables: written by scripts/study_pencils.py -->", "<!-- end of tables -->"
TITLE = "Pencils: the leftmost usable routers against the optimal selection"


def write_study(folder: Path, rows: Sequence[Row], head: str) -> None:
    """Write the table of all rows, the plots, and the tables of the page between its markers.

    `head` says how the rows were made.
    """
    folder.mkdir(parents=True, exist_ok=True)
    write_rows(folder / "pencils.csv", rows)
    drawn = [row for row in rows if row.setting != SNAPSHOT]
    shipped = [row for row in rows if row.setting == SNAPSHOT]
    parts = [head, ""]
    if drawn:
        parts += ["## By share of unusable routers", "", _by_percent(drawn), ""]
        parts += ["## By grid", "", _by_grid(drawn), ""]
    if shipped:
        parts += ["## Snapshots of Blue Waters", "", _by_snapshot(shipped), ""]
    text = "\n".join(parts).rstrip()
    write_between_markers(folder / "pencils.md", BEGIN, END, TITLE, text)
    if drawn:
        draw_excess(folder / "pencils_excess.png", drawn)
        draw_removed(folder / "pencils_removed.png", drawn)
    if shipped:
        draw_snapshots(folder / "pencils_snapshots.png", shipped)


HEAD = (
    "have room",
    "Topaware",
    "same window",
    "all windows",
    "and search",
    "removed in the window",
    "removed by all windows",
    "gap, Topaware",
    "gap, all windows",
)


def _figures(rows: Sequence[Row]) -> list[str]:
    """Return the cells below `HEAD`."""
    return [
        f"{sum(row.topaware is not None for row in rows)} of {len(rows)}",
        *(percent(excess(rows, method)) for method in METHODS),
        percent(removed(rows, "window", "layout_ideal")),
        percent(removed(rows, "pencils", "needed")),
        *(percent(gap(rows, method)) for method in ("topaware", "pencils")),
    ]


def _by_percent(rows: Sequence[Row]) -> str:
    head = ["unusable", "share", *HEAD, "s, Topaware", "s, same window", "s, all windows"]
    lines = []
    for setting in (SCATTERED, PRISMS):
        for share in sorted({row.percent for row in rows if row.setting == setting}):
            mine = [row for row in rows if (row.setting, row.percent) == (setting, share)]
            seconds = [
                _median([getattr(row, f"seconds_{method}") for row in complete(mine)])
                for method in list(METHODS)[:3]
            ]
            kind = setting if share else "none"
            lines.append([kind, f"{share} %", *_figures(mine), *seconds])
    return markdown(head, 1, lines)


def _by_grid(rows: Sequence[Row]) -> str:
    """Return a line for every grid and setting, over all shares of unusable routers but none."""
    lines = []
    for grid in grids_of(rows):
        for setting in (SCATTERED, PRISMS):
            mine = [
                row for row in rows if (row.grid, row.setting) == (grid, setting) and row.percent
            ]
            lines.append([grid, setting, *_figures(mine)])
    return markdown(["grid", "unusable", *HEAD], 2, lines)


def _by_snapshot(rows: Sequence[Row]) -> str:
    head = ["snapshot", "grid", *METHODS.values(), "needed", "bound", "removed", "all windows, s"]
    lines = []
    for row in rows:
        lines.append(
            [
                row.snapshot,
                row.grid,
                *(number(getattr(row, method)) for method in METHODS),
                number(row.needed),
                number(row.bound),
                percent(removed([row], "pencils", "needed")),
                _search_seconds(row),
            ]
        )
    return markdown(head, 2, lines)


def _search_seconds(row: Row) -> str:
    """Return what the search over all windows took, and whether the time limit ended it."""
    if row.topaware is None:
        return "-"
    if row.seconds_pencils is None:
        return "limit, no window"
    return f"{row.seconds_pencils:.1f}{'' if row.pencils_complete else ', limit'}"


def _median(values: Sequence[float]) -> str:
    return f"{statistics.median(values):.2f}" if values else "-"


# ---- Plots ---------------------------------------------------------------------------------------

STYLES = {"topaware": "o-", "window": "s-", "pencils": "^-", "searched": "x:"}


def draw_excess(path: Path, rows: Sequence[Row]) -> None:
    """Draw the excess against the share of unusable routers, a panel per setting and grid."""
    grids = grids_of(rows)
    size = {"figsize": (1 + 2.1 * len(grids), 5), "sharex": True, "sharey": "col"}
    with picture(path, 2, len(grids), **size) as (figure, panels):
        for line, setting in zip(panels, (SCATTERED, PRISMS), strict=True):
            for panel, grid in zip(line, grids, strict=True):
                # with nothing unusable there is no setting
                mine = [row for row in rows if row.setting == setting or not row.percent]
                _lines(panel, [row for row in mine if row.grid == grid], lambda row: row.percent)
                panel.set_title(f"{grid}, {setting}", fontsize=9)
            line[0].set_ylabel("excess, %")
        for panel in panels[-1]:
            panel.set_xlabel("unusable routers, %")
        _legend(figure, panels, 0.94)


def draw_removed(path: Path, rows: Sequence[Row]) -> None:
    """Draw the share of Topaware's excess that the optimum removes, per grid."""
    kinds = (("window", "layout_ideal", "same window"), ("pencils", "needed", "all windows"))
    shares = sorted({row.percent for row in rows if row.percent})
    with picture(path, 1, 2, figsize=(10, 4), sharey=True) as (figure, (panels,)):
        for panel, (method, base, title) in zip(panels, kinds, strict=True):
            for k, grid in enumerate(grids_of(rows)):
                for setting, style in ((SCATTERED, "o-"), (PRISMS, "s--")):
                    known = []
                    for share in shares:
                        case = (grid, setting, share)
                        mine = [r for r in rows if (r.grid, r.setting, r.percent) == case]
                        value = removed(mine, method, base)
                        if value is not None:
                            known.append((share, 100 * value))
                    if known:
                        panel.plot(*zip(*known, strict=True), style, color=f"C{k}", markersize=4)
                panel.plot([], [], "-", color=f"C{k}", label=grid)
            panel.set_title(f"{title} (dashed: prisms)", fontsize=10)
            panel.set_xlabel("unusable routers, %")
            panel.set_ylim(top=105)
        panels[0].set_ylabel("excess removed, %")
        panels[1].legend(fontsize=8)
        figure.tight_layout()


def draw_snapshots(path: Path, rows: Sequence[Row]) -> None:
    """Draw the excess on every snapshot, a panel per grid."""
    grids = grids_of(rows)
    with picture(path, 1, len(grids), figsize=(1 + 2.4 * len(grids), 3.2)) as (figure, panels):
        for panel, grid in zip(panels[0], grids, strict=True):
            _lines(panel, [row for row in rows if row.grid == grid], busy)
            panel.set_title(grid, fontsize=9)
            panel.set_xlabel("busy nodes, %")
        panels[0][0].set_ylabel("excess, %")
        _legend(figure, panels, 0.9)


def busy(row: Row) -> int:
    """Return the share of busy nodes that the name of a shipped snapshot states, in percent."""
    last = row.snapshot.rpartition("_")[2]
    return 0 if last == "empty" else int(last)


def _legend(figure: Figure, panels: Any, top: float) -> None:
    handles = panels[0][0].get_legend_handles_labels()
    figure.legend(*handles, loc="upper center", ncols=len(METHODS))
    figure.tight_layout(rect=(0, 0, 1, top))


def _lines(panel: Axes, rows: Sequence[Row], at: Callable[[Row], int]) -> None:
    """Draw the mean excess of every method; no point where nothing has room."""
    for method, label in METHODS.items():
        known = []
        for x in sorted({at(row) for row in rows}):
            value = excess([row for row in rows if at(row) == x], method)
            if value is not None:
                known.append((x, 100 * value))
        xs, ys = [x for x, _ in known], [y for _, y in known]
        panel.plot(xs, ys, STYLES[method], label=label, markersize=4)


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
