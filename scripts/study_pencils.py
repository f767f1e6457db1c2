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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np

from study import (
    FILLS,
    SNAPSHOTS,
    Column,
    Record,
    Study,
    busy,
    curve,
    groups,
    percent,
    table,
    timed,
    where,
)
from study_mappings import problem_of
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

SCATTERED, PRISMS, SNAPSHOT = "scattered", "prisms", "snapshot"
"""What is unusable: single routers, prisms of them, what a snapshot says."""

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
    problem = problem_of(grid.name, grid.tasks_per_node, everywhere(grid, setting))
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
"""Fields of a record that hold hop-bytes, in the order in which each starts from the one before."""

STYLES = {"topaware": "o-", "window": "s-", "pencils": "^-", "searched": "x:"}
UNKNOWN = (
    *("layout_ideal", *METHODS, "bound", "window_proven", "pencils_complete"),
    *("seconds_topaware", "seconds_window", "seconds_pencils"),
)
"""Fields of a record that are None where nothing has room, behind the least hop-bytes of any layout
with nothing unusable (`needed`): those of Topaware's layout, what the methods reach and the bound,
whether a flow proves the selection best in its window, and whether all windows were searched."""


# ---- The page ------------------------------------------------------------------------------------


def complete(rows: Sequence[Record]) -> list[Record]:
    """Return the records with figures of every method."""
    return [row for row in rows if row.searched is not None]


def excess(rows: Sequence[Record], method: str) -> float | None:
    """Return the mean excess of a method over what is needed, as a share of that."""
    return _mean([getattr(row, method) / row.needed - 1 for row in complete(rows)])


def gap(rows: Sequence[Record], method: str) -> float | None:
    """Return the mean gap of a method to the certified bound."""
    return _mean([1 - (row.bound or 0) / getattr(row, method) for row in complete(rows)])


def removed(rows: Sequence[Record], method: str, base: str) -> float | None:
    """Return the share of Topaware's excess over `base`, a field, that a method removes.

    Excesses are added up first, so that rows with hardly any do not count as much as others.
    """
    known = complete(rows)
    before = sum(row.topaware - getattr(row, base) for row in known)
    after = sum(getattr(row, method) - getattr(row, base) for row in known)
    return (before - after) / before if before > 0 else None


def _mean(values: Sequence[float]) -> float | None:
    return statistics.fmean(values) if values else None


def _share(of: Callable[..., float | None], *fields: str) -> Callable[[list[Record]], str]:
    return lambda rows: percent(of(rows, *fields))


def _seconds(method: str) -> Callable[[list[Record]], str | None]:
    def median(rows: list[Record]) -> str | None:
        values = [getattr(row, f"seconds_{method}") for row in complete(rows)]
        return f"{statistics.median(values):.2f}" if values else None

    return median


def _search_seconds(row: Record) -> str | None:
    """Return what the search over all windows took, and whether the time limit ended it."""
    if row.topaware is None:
        return None
    if row.seconds_pencils is None:
        return "limit, no window"
    return f"{row.seconds_pencils:.1f}{'' if row.pencils_complete else ', limit'}"


FIGURES: list[Column] = [
    ("have room", lambda rows: f"{sum(r.topaware is not None for r in rows)} of {len(rows)}"),
    ("Topaware", _share(excess, "topaware")),
    ("same window", _share(excess, "window")),
    ("all windows", _share(excess, "pencils")),
    ("and search", _share(excess, "searched")),
    ("removed in the window", _share(removed, "window", "layout_ideal")),
    ("removed by all windows", _share(removed, "pencils", "needed")),
    ("gap, Topaware", _share(gap, "topaware")),
    ("gap, all windows", _share(gap, "pencils")),
]
BY_PERCENT: list[Column] = [
    ("unusable", lambda rows: rows[0].setting if rows[0].percent else "none"),
    ("share", lambda rows: f"{rows[0].percent} %"),
    *FIGURES,
    ("s, Topaware", _seconds("topaware")),
    ("s, same window", _seconds("window")),
    ("s, all windows", _seconds("pencils")),
]
BY_SNAPSHOT: list[Column] = [
    *("snapshot", "grid", *((title, method) for method, title in METHODS.items())),
    *("needed", "bound"),
    ("removed", lambda row: percent(removed([row], "pencils", "needed"))),
    ("all windows, s", _search_seconds),
]


def write(study: Study, rows: Sequence[Record], notes: str) -> None:
    """Write the records, the tables and the plots."""
    study.write(rows)
    drawn = [row for row in rows if row.setting != SNAPSHOT]
    shipped = where(rows, setting=SNAPSHOT)
    parts = [notes]
    if drawn:
        shares = sorted(drawn, key=lambda row: (row.setting == PRISMS, row.percent))
        by_percent = groups(shares, lambda row: (row.setting, row.percent)).values()
        parts += ["## By share of unusable routers", table(by_percent, BY_PERCENT)]
        grids = [
            where(some, setting=setting)
            for some in groups([r for r in drawn if r.percent], "grid").values()
            for setting in (SCATTERED, PRISMS)
        ]
        parts += ["## By grid", table(grids, ["grid", ("unusable", "setting"), *FIGURES], 2)]
        by_grid = groups(drawn, "grid")
        lines = [
            # with nothing unusable there is no setting
            {
                f"{grid}, {setting}": [r for r in own if r.setting == setting or not r.percent]
                for grid, own in by_grid.items()
            }
            for setting in (SCATTERED, PRISMS)
        ]
        size = {"figsize": (1 + 2.1 * len(by_grid), 5), "sharex": True, "sharey": "col"}
        draw_excess(study, "_excess", lines, **size)
        draw_removed(study, drawn)
    if shipped:
        parts += ["## Snapshots of Blue Waters", table(shipped, BY_SNAPSHOT, 2)]
        by_grid = groups(shipped, "grid")
        draw_excess(study, "_snapshots", [by_grid], figsize=(1 + 2.4 * len(by_grid), 3.2))
    study.page(*parts, title="Pencils: the leftmost usable routers against the optimal selection")


def draw_excess(
    study: Study, suffix: str, lines: Sequence[dict[str, list[Record]]], **size: Any
) -> None:
    """Draw the mean excess of every method, a panel for every title and its records.

    It is against the share of unusable routers, or of busy nodes on the shipped snapshots.
    """
    num = len(lines[0])
    with study.picture(suffix, len(lines), num, **size) as (figure, panels):
        for line, titled in zip(panels, lines, strict=True):
            for panel, (title, own) in zip(line, titled.items(), strict=True):
                along = sorted(groups(own, lambda row: row.percent or _busy(row)).items())
                for method, label in METHODS.items():
                    values = [(x, excess(some, method)) for x, some in along]
                    points = [(x, 100 * y) for x, y in values if y is not None]
                    curve(panel, points, STYLES[method], label=label)
                panel.set_title(title, fontsize=9)
            line[0].set_ylabel("excess, %")
        of_snapshots = any(row.snapshot for own in lines[0].values() for row in own)
        for panel in panels[-1]:
            panel.set_xlabel("busy nodes, %" if of_snapshots else "unusable routers, %")
        handles = panels[0][0].get_legend_handles_labels()
        figure.legend(*handles, loc="upper center", ncols=len(METHODS))
        figure.tight_layout(rect=(0, 0, 1, 0.9 if of_snapshots else 0.94))


def _busy(row: Record) -> int:
    return busy(row.snapshot) if row.snapshot else 0


def draw_removed(study: Study, rows: Sequence[Record]) -> None:
    """Draw the share of Topaware's excess that the optimum removes, per grid."""
    kinds = (("window", "layout_ideal", "same window"), ("pencils", "needed", "all windows"))
    styles = ((SCATTERED, "o-"), (PRISMS, "s--"))
    shares = sorted({row.percent for row in rows if row.percent})
    with study.picture("_removed", 1, 2, figsize=(10, 4), sharey=True) as (figure, (panels,)):
        for panel, (*fields, title) in zip(panels, kinds, strict=True):
            for k, (grid, own) in enumerate(groups(rows, "grid").items()):
                for setting, style in styles:
                    mine = {x: where(own, setting=setting, percent=x) for x in shares}
                    values = {x: removed(some, *fields) for x, some in mine.items()}
                    points = [(x, 100 * y) for x, y in values.items() if y is not None]
                    curve(panel, points, style, color=f"C{k}")
                panel.plot([], [], "-", color=f"C{k}", label=grid)
            panel.set_title(f"{title} (dashed: prisms)", fontsize=10)
            panel.set_xlabel("unusable routers, %")
            panel.set_ylim(top=105)
        panels[0].set_ylabel("excess removed, %")
        panels[1].legend(fontsize=8)
        figure.tight_layout()


# ---- Measuring -----------------------------------------------------------------------------------


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


def measure(case: Case, time_limit: float, search: float) -> Record:
    """Return the record of a case; without figures if its usable routers hold no layout.

    Raises
    ------
    TopoplaceError
        If the checker does not verify a mapping or its bound.
    """
    grid = case.grid
    row = Record(
        setting=case.setting,
        snapshot=case.snapshot,
        percent=case.percent,
        seed=case.seed,
        grid=grid.name,
        needed=needed(grid, case.setting),
        **dict.fromkeys(UNKNOWN),
    )
    options = Options(time_limit=time_limit, seed=case.seed)
    try:
        problem = problem_of(grid.name, grid.tasks_per_node, allocation_of(case))
        first = timed(lambda: method_of("mapping", "topaware").solver(problem, options))
    except InputError:
        return row
    bound = best_bound(problem, 0.0)
    assert bound is not None and problem.grid is not None  # noqa: PT018 - not a test

    def value(method: str, found: tuple[Outcome, float]) -> int:
        outcome = replace(found[0], bounds=(bound,))
        result = result_of(problem, outcome, method, options, found[1])
        report = check_document(result)
        if not report.holds or result.objective is None:
            raise TopoplaceError(f"{case}, {method}: the checker says {report.failures}")
        return result.objective

    layout = layout_of(problem, first[0])
    window = timed(lambda: best_in_window(problem, first[0], layout, bound.value))
    best = timed(lambda: method_of("mapping", "pencils").solver(problem, options))
    row.bound = bound.value
    row.layout_ideal = ideal_hop_bytes(layout, problem.grid, problem.torus)
    row.topaware, row.seconds_topaware = value("topaware", first), round(first[1], 3)
    row.window, row.seconds_window = value("window", window), round(window[1], 3)
    row.window_proven = window[0].solution.optimum.flow is not None
    if best[0].solution is None:
        return row  # the time was over before the first window
    row.pencils, row.seconds_pencils = value("pencils", best), round(best[1], 3)
    row.pencils_complete = not best[0].time_limit_hit
    beyond = replace(options, time_limit=search, start=best[0].solution.nodes)
    searched = timed(lambda: method_of("mapping", "local-search").solver(problem, beyond))
    row.searched = value("local-search", searched)
    return row


def main(given: Sequence[str] | None = None) -> None:
    """Run the study and write its page, its table and its plots."""
    options: dict[str, Any] = {
        "grids": [grid.name for grid in GRIDS],
        "percents": [0, 1, 2, 3, 5, 8],  # of the routers are unusable
        "snapshots": FILLS,
        "seeds": 4,  # draws of each share
        "seed": 0,  # the first
        "time_limit": 10.0,
        "search": 2.0,
        "jobs": 2,
    }
    study = Study("pencils", __doc__, given, **options)
    own = study.options
    run = partial(measure, time_limit=own.time_limit, search=own.search)
    notes = (
        f"{own.seeds} draws for every share, from seed {own.seed}; at most "
        f"{own.time_limit:g} s for all windows,\n{own.search:g} s of local search; "
        f"{own.jobs} processes."
    )
    write(study, study.measured(run, cases(own)), notes)


if __name__ == "__main__":
    main()
