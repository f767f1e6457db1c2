"""Every table and figure of a source paper: its value, ours, and the command that redoes it.

Writes docs/studies/PAPER.md: enos2014, fiedler2014, bhatele2008, bhatele2009 or mishra2020. What
another study measures is read from the records beside its page.

    python scripts/study_papers.py PAPER
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from generate_snapshots import load_workload
from study import STUDIES, Column, Study, percent, read_rows, table, where
from study_mishra2020 import leaves_of
from topoplace.errors import InputError
from topoplace.machine import Torus, bisection_per_node
from topoplace.mapping.evaluate import evaluate
from topoplace.mapping.graph import grid_of
from topoplace.mapping.layouts import Layout, enumerate_layouts
from topoplace.mapping.layouts.candidates import (
    RankedLayout,
    geometry_request,
    one_per_prism,
    rank_layouts,
)
from topoplace.mapping.mapped import mapped_by
from topoplace.mapping.onto import load_places, problem_on
from topoplace.mapping.pencils.obtaining import Obtained, obtained, tables_of
from topoplace.placement.switches.allocators import balanced_counts
from topoplace.placement.switches.cost import CostModel
from topoplace.snapshot.schema import GridApplication
from topoplace.solving import Options, method_of, solve

Row = tuple[str, str, str, str]
"""Where in the paper, its value, ours, and the command or the reason."""


def _cell(k: int) -> Callable[[Row], str]:
    return lambda row: row[k]


COLUMNS: list[Column] = [
    (title, _cell(k)) for k, title in enumerate(("paper", "its value", "ours", "how, or why not"))
]
TIMES = "not redone: run times of codes on machines of that time"


def grid(*shape: int, periodic: bool = False) -> GridApplication:
    """Return a grid with a byte for every neighbour."""
    dims = len(shape)
    return GridApplication(shape=list(shape), periodic=[periodic] * dims, bytes=[[1, 1]] * dims)


def by(values: Sequence[object]) -> str:
    """Return extents such as 8x8x8."""
    return "x".join(map(str, values))


# ---- Enos 2014 -----------------------------------------------------------------------------------

FEATURES = [
    f"@{x},{y},{z}" for x, y, z in itertools.product((0, 4, 8, 12), range(0, 24, 4), (0, 8))
]
"""Where features of 12x8x12 and 12x4x12 geminis begin on this page: where blocks of 2Y do."""


def largest_hop(within: str, shape: Sequence[int], per_node: int, cell: Any) -> int | None:
    """Return that of grid_order, or of the default without a cell; None without room."""
    method = "default" if cell is None else "grid-order"
    options = Options(node_order="alps-2y", cell=cell or None)
    try:
        problem = problem_on(load_places("blue_waters", within=within), grid(*shape), per_node)
        nodes = mapped_by(method_of("mapping", method).solver, problem, options)
    except InputError:
        return None
    return evaluate(problem, nodes).max_hops


def ordered(
    region: str, shape: Sequence[int], per_node: int, wanted: tuple[int, int], cell: Any = ()
) -> str:
    """Return how often default and grid_order have the hops of the paper, and their ranges."""
    pairs = [
        [largest_hop(region + at, shape, per_node, one) for one in (None, cell)] for at in FEATURES
    ]
    known = [(low, high) for low, high in pairs if low is not None and high is not None]
    first, second = (f"{min(own)} to {max(own)}" for own in zip(*known, strict=True))
    return f"both in {known.count(wanted)} of {len(known)} features; {first} and {second}"


def layout_hops(
    region: str,
    shape: Sequence[int],
    per_node: int,
    wanted: Sequence[Callable[[Layout], bool]],
    origins: Sequence[str] = FEATURES[::2],
    *,
    stagger: bool = False,
) -> list[str]:
    """Return, for each of some layouts, the largest hops over the features where it lies."""
    found: list[list[int]] = [[] for _ in wanted]
    within = tuple(map(int, region.split("x")))
    every = enumerate_layouts(grid_of(grid(*shape)), per_node, 2, within, stagger=stagger)
    chosen = [next((one for one in every if test(one)), None) for test in wanted]
    num = 0
    for at in origins:
        places = load_places("blue_waters", within=region + at)
        try:
            problem = problem_on(places, grid(*shape), per_node)
        except InputError:  # it overlaps with the XK nodes
            continue
        num += 1
        tables = tables_of(problem)
        for own, layout in zip(found, chosen, strict=True):
            there = "" if layout is None else obtained(problem, layout, tables)
            if isinstance(there, Obtained):
                own.append(evaluate(problem, there.nodes).max_hops)
    texts = [
        f"{min(own)} to {max(own)}, in {len(own)} of {num} features" if own else "no room"
        for own in found
    ]
    return [
        "no such layout" if layout is None else text
        for text, layout in zip(texts, chosen, strict=True)
    ]


def direct(*numbers: int) -> Callable[[Layout], bool]:
    """Return the test for a layout of these logical routers and partitions."""
    return lambda one: (*one.logical, *one.partitions) == numbers and not one.folds


def folded(numbers: tuple[int, ...], *, stagger: bool = False) -> Callable[[Layout], bool]:
    """Return the test for a 2D layout: its prism, then along x and z partitions, and folds."""
    return lambda one: (
        bool(one.folds)
        and one.stagger == stagger
        and (
            *one.logical,
            *(one.partitions[d] for d in (0, 2)),
            *(one.folds[d] for d in (0, 2)),
        )
        == numbers
    )


def on_paths(one: Layout) -> bool:
    """Return whether a layout of 12x16x16x16 has 1x2x2x8 tasks on a node, one 16 on paths."""
    return one.whole == 3 and one.logical == (24, 2, 16) and one.partitions == (1, 1, 2)


EIGHT = (
    (8, 8, 8, 4, 4, 4), (11, 6, 11, 3, 6, 3), (11, 8, 8, 3, 4, 4), (8, 8, 11, 4, 4, 3),
    (11, 7, 8, 3, 5, 4), (8, 7, 11, 4, 5, 3), (11, 8, 7, 3, 4, 5), (7, 8, 11, 5, 4, 3),
)  # fmt: skip
"""The layouts of 32x32x32 in 12x8x12 (IV.F): L and N."""

FOUR_2D = (
    (11, 4, 10, 5, 6, 1, 1), (10, 4, 11, 6, 5, 1, 1), (11, 4, 10, 10, 3, 0, 3),
    (10, 4, 11, 3, 10, 3, 0),
)  # fmt: skip
"""The layouts of 110x120 in 12x4x12 (IV.E): L, N along x and z, folds."""

NINE_2D = (
    (11, 8, 11, 6, 4, 1, 3), (11, 8, 11, 3, 8, 3, 1), (12, 6, 11, 7, 4, 1, 2),
    (11, 6, 12, 4, 7, 2, 1), (11, 6, 11, 4, 8, 2, 1), (12, 6, 11, 14, 2, 0, 5),
    (11, 6, 12, 2, 14, 5, 0), (11, 8, 11, 12, 2, 0, 7), (11, 6, 11, 2, 16, 5, 0),
)  # fmt: skip
"""The layouts of 168x132 in 12x8x12 (IV.F); the last has 7 folds there, which are not 6 layers."""

HOPS_OF_NINE = ("4", "4", "4", "no room", "4", "2", "no room", "2", "2")
"""Table VIII."""


GEMINI = Torus((24, 24, 24), bandwidth=(2, 1, 2), nodes_per_router=2)
"""Blue Waters in links along y: one along x or z is as wide as two."""
PRISMS = list(itertools.product(range(1, 25), repeat=3))


def enos() -> Iterator[Row]:
    """Yield the rows of Enos 2014."""
    yield from shapes_of_enos()
    yield from replay_of_enos()
    yield from layouts_of_enos()
    yield from hops_of_enos()
    how = "`place --png`, `map --png`; staggered layouts: `layouts --stagger`"
    yield "Figures 1 to 4, 7 to 9", "pictures", "-", how


def shapes_of_enos() -> Iterator[Row]:
    """Yield the rows of sections I and II: prisms, features, node orders."""
    slabs = [
        load_places("blue_waters", node_class="xe", within=f"24x6x24@0,{y},0") for y in range(24)
    ]
    sizes = [len(slab.nodes) for slab in slabs if len(slab.nodes) > 6700]
    here = f"{len(sizes)} of {min(sizes):,} to {max(sizes):,}"
    how = "`map --on blue_waters --within 24x6x24@0,0,0`; service nodes are drawn to give this"
    yield "II.B.1, features of 24x6x24", "13 of 6,724 to 6,760 nodes", here, how
    best = [one for one in PRISMS if bisection_per_node(GEMINI, one) / 2 >= Fraction(1, 24)]
    how = "`layouts`, column bisection/node; no other prism as large has as much"
    here = by(max(best, key=math.prod))
    yield "I, largest prism of the best bisection per node", "24x6x24", here, how
    first = Torus((23, 24, 24), bandwidth=(2, 1, 2), nodes_per_router=2)
    slab, block = (bisection_per_node(first, one) for one in ((23, 6, 24), (6, 24, 24)))
    here = f"{slab / block} times less bisection per node"
    how = "by bisection alone, on 23x24x24; the run time has computation in it"
    yield "II.A, PSDNS in 6x24x24, not 23x6x24", "1.64 times as long", here, how
    yield "II.A, II.B, IV.D, other run times of applications", "seconds", "-", TIMES
    how = "[Blue Waters](blue_waters.md), by shapes alone; measured run times are not redone"
    yield "Table I, speedups of 2Y and 4Y", "1.14 to 1.25", "1.09 and 1.05", how


def replay_of_enos() -> Iterator[Row]:
    """Yield the rows of section III: the workload test."""
    average = Fraction(20 * 93 + 50 * 87 + 30 * 74, 10_000)
    here = f"{float(average):.3f}, {percent(float(average * 88 / 100))}"
    yield "III.A, example of E_AVE", "0.84, 74.2 %", here, "`replay` prints E_AVE"
    workload = load_workload().rows
    jobs = sum(len(row.nodes) * len(row.classes) for row in workload)
    here = f"{len({row.application for row in workload})} and {jobs}"
    how = "instances/workloads/enos2014_table2.json; drawn by `draw_log.py`"
    yield "Table II, applications, and jobs by nodes and class", "10 and 45", here, how
    shared = read_rows(STUDIES / "sharing.csv")
    prisms = where(shared, method="best-fit")
    how = "`study_sharing.py`: nodes held while jobs wait, in prisms"
    here = percent(float(np.mean([row.scheduling for row in prisms])))
    yield "Figure 5, utilisation of the new scheduler", "71 %", here, how
    here = percent(float(np.mean([row.variation for row in prisms])))
    how = "`study_sharing.py`; jobs get more shapes than in the test"
    yield "Figure 6, CoV of run times in prisms", "below 2 %", here, how
    how = "jobs of one application, size and shape; the rest is what the model leaves out"
    here = percent(float(np.mean([row.one_shape for row in prisms])))
    yield "III.A, spread of run times in prisms of one shape", "1 to 4 %", here, how
    how = "`study_sharing.py`, in ALPS order at a slowdown of 25 %, and in prisms"
    order = where(shared, method="alps-2y", sharing=25)
    milc = (np.nanmean([row.variation_MILC for row in own]) for own in (order, prisms))
    here = " and ".join(percent(float(one), 0) for one in milc)
    yield "III.B, CoV of MILC's run times, before and after", "18 % and 5 %", here, how
    means = [
        [float(np.mean([getattr(row, name) for row in own])) for own in (prisms, order)]
        for name in ("slowdown", "utilisation", "system")
    ]
    faster, less, more = means[0][1] / means[0][0], *(own[0] / own[1] for own in means[1:])
    here = f"{percent(faster - 1, 0)}, {percent(1 - less, 0)}, {percent(more - 1, 0)}"
    how = "`study_sharing.py`, prisms over ALPS order at a slowdown of 25 %: below the break-even"
    what = "III.B, expected: faster, less utilisation, more throughput"
    yield what, "40 %, 20 %, 20 %", here, how
    how = "[When prisms pay](sharing.md), at the break-even"
    yield "I, what applications have to gain", "25 to 30 %", "38 to 45 %", how
    yield "III.B, speedups of MILC and PSDNS", "1.5 to 2.4", "-", TIMES


def layouts_of_enos() -> Iterator[Row]:
    """Yield the rows of sections IV.A to IV.D, and of default and grid_order."""
    here = ordered("12x8x12", (32, 32, 32), 32, (9, 16), (4, 2, 4))
    how = (
        "`map --grid 32x32x32 --on blue_waters --tasks-per-node 32 --within 12x8x12@0,12,0 "
        "--node-order alps-2y --method default` (`grid-order -c 4x2x4`)"
    )
    yield "Tables III, VII, largest hop of default, grid_order", "9 and 16", here, how
    every = enumerate_layouts(grid_of(grid(32, 32, 32)), 8, 2, (24, 24, 24))
    asked = (16, 16, 8, 2, 2, 4), (32, 8, 8, 1, 4, 4)
    have = ["yes" if any(direct(*one)(layout) for layout in every) else "no" for one in asked]
    how = "`layouts --grid 32x32x32 --tasks-per-node 8`"
    yield "IV.A, 16x16x8 and 32x8x8 for 8 tasks a node", "yes, no", ", ".join(have), how
    every = enumerate_layouts(grid_of(grid(8, 8, 8, 8)), 16, 2, (24, 24, 24))
    asked = ((8, 4, 4, 1, 2, 2), (4, 4, 8, 2, 2, 1), (8, 2, 8, 1, 4, 1))
    have = sum(any(direct(*one)(layout) for layout in every) for one in asked)
    how = "`layouts --grid 8x8x8x8 --tasks-per-node 16`"
    yield "IV.C, layouts of 8x8x8x8", "3", f"{have}, among others", how
    (here,) = layout_hops("12x4x12", (11, 12, 11, 12), 24, [direct(11, 3, 11, 1, 4, 1)])
    how = "`layouts --grid 11x12x11x12 --tasks-per-node 24 --within 12x4x12@0,0,0`"
    yield "Table IV, largest hop of Topaware", "2", here, how
    yield "IV.C, nodes of that layout", "726", str(11 * 3 * 11 * 2), how
    sheets = [f"@0,{y},0" for y in range(24)]
    (here,) = layout_hops("24x2x24", (21, 2, 21, 24), 12, [direct(21, 2, 21, 1, 1, 1)], sheets)
    how = "`layouts --grid 21x2x21x24 --tasks-per-node 12 --within 24x2x24@0,0,0`"
    yield "IV.D, MILC on 1,764 nodes: largest hop", "a layout", here, how
    how = "cells of grid_order are not in the paper: the most cubic one"
    here = ordered("12x4x12", (11, 12, 11, 12), 32, (21, 19))
    yield "Table IV, default and grid_order", "21 and 19", here, how
    here = ordered("12x4x12", (110, 120), 16, (15, 18))
    yield "Table VI, default and grid_order", "15 and 18", here, how
    here = ordered("12x8x12", (168, 132), 16, (7, 10))
    yield "Table VIII, default and grid_order", "7 and 10", here, how


def hops_of_enos() -> Iterator[Row]:
    """Yield the rows of Tables VI to VIII: the largest hops of Topaware's layouts."""
    lists: list[tuple[str, str, tuple[int, ...], int, Any, Any]] = [
        ("VI", "12x4x12", (110, 120), 16, map(folded, FOUR_2D), ("3", "5", "2", "3")),
        ("VII", "12x8x12", (32, 32, 32), 32, (direct(*one) for one in EIGHT), ("2",) * 8),
        ("VIII", "12x8x12", (168, 132), 16, map(folded, NINE_2D), HOPS_OF_NINE),
    ]
    for name, region, shape, per_node, tests, hops in lists:
        how = f"`layouts --grid {by(shape)} --tasks-per-node {per_node} --within {region}@0,0,0`"
        own = layout_hops(region, shape, per_node, list(tests))
        for number, (paper, here) in enumerate(zip(hops, own, strict=True), start=1):
            yield f"Table {name}, largest hop of Topaware #{number}", paper, here, how
    tests = [folded(one, stagger=True) for one in FOUR_2D[:2]]
    own = layout_hops("12x4x12", (110, 120), 16, tests, stagger=True)
    how = "`layouts --grid 110x120 --tasks-per-node 16 --within 12x4x12@0,0,0 --stagger`"
    for number, (paper, here) in enumerate(zip(("3", "5"), own, strict=True), start=1):
        yield f"Table VI, largest hop of Topaware #{number}, staggered", paper, here, how
    how = "their order by link loads: [Halo exchanges](halo_exchange.md)"
    yield "Tables III to VIII, times", "ms", "-", how


# ---- Fiedler 2014 --------------------------------------------------------------------------------


def ranked(
    shape: tuple[int, ...], region: tuple[int, ...], *, balanced: bool
) -> list[RankedLayout]:
    """Return the layouts of a grid on Blue Waters for 32 tasks a node, the best first."""
    found = enumerate_layouts(grid_of(grid(*shape)), 32, 2, region, balanced=balanced)
    return one_per_prism(rank_layouts(found, grid_of(grid(*shape)), GEMINI, 32))


def fiedler() -> Iterator[Row]:
    """Yield the rows of Fiedler 2014."""
    yield from lists_of_fiedler()
    yield from cubes_of_fiedler()
    yield from bisections_of_fiedler()
    yield from grids_of_fiedler()
    how = "not redone: the slides do not have its unstructured graph"
    yield "SPECFEM, bytes that stay on a node", "48 %, and 81 %", "-", how
    yield "run times (halo, MILC, SPECFEM, WRF, AWP of Cybershake)", "seconds", "-", TIMES
    yield "drawings of the torus, of prisms and stencils", "pictures", "-", "`map --png`"


def lists_of_fiedler() -> Iterator[Row]:
    """Yield the rows of 40x30x25: the list of layouts, its metrics, what the scheduler is asked."""
    torus = GEMINI
    command = "`layouts --grid 40x30x25 --tasks-per-node 32 --within 24x24x24 --balanced`"
    own = ranked((40, 30, 25), torus.shape, balanced=True)
    printed = (
        ((10, 5, 10), 94), ((20, 5, 5), 90), ((5, 5, 20), 90), ((20, 5, 6), 88), ((20, 6, 5), 88),
        ((6, 5, 20), 88), ((5, 6, 20), 88),
    )  # fmt: skip
    for (extents, quality), entry in zip(printed, own, strict=False):
        here = f"{by(entry.layout.extents)} of {100 * entry.metrics.qual_metric:.1f}"
        yield "list for 40x30x25", f"{by(extents)} of {quality}", here, command
    names = ("percent_used", "bal_metric", "ppn_metric", "p2c_metric", "qual_metric")
    shares = [int(100 * float(getattr(own[0].metrics, name))) for name in names]
    how = "p2c and bal are inferred from such figures; the mean of the first four is 92.9, not 94"
    here = ", ".join(map(str, shares))
    yield "its used, bal, ppn, p2c, quality", "100, 100, 93, 80, 94", here, how
    paper = "10x5x10:maxz=12/20x5x5:maxz=6/5x5x20:maxz=24"
    yield "geometry request", paper, geometry_request(own, torus), command
    shapes = [(10, 5, 10), (5, 5, 20), (20, 5, 5)]
    fast, *rest = (bisection_per_node(torus, one) for one in shapes)
    here = "10x5x10 first, the others equal" if fast > rest[0] == rest[1] else "another order"
    how = "by bisection per node; x and z are alike, and the slide does not say what decides"
    yield "order of the scheduler", ", then ".join(map(by, shapes)), here, how
    best = ranked((40, 30, 25), torus.shape, balanced=False)[0]
    here = f"{by(best.layout.extents)} of {100 * best.metrics.qual_metric:.1f} comes first"
    how = "his list has balanced ones only; `topaware` takes ours, `map --layout N` any other"
    yield "with unbalanced layouts", "-", here, how


def cubes_of_fiedler() -> Iterator[Row]:
    """Yield the rows of 32x32x32: unbalanced layouts."""
    every = {e.layout.extents: e for e in ranked((32, 32, 32), (12, 8, 12), balanced=False)}
    how = "all five are 0.9 times ours, as if one metric was 66 %: the slide does not say which"
    five = (((8, 8, 8), 90), ((11, 8, 8), 81), ((8, 8, 11), 81), ((11, 8, 7), 80), ((7, 8, 11), 80))
    for extents, quality in five:
        value = 100 * every[extents].metrics.qual_metric
        here = f"{value:.1f}; times 0.9 {0.9 * value:.1f}"
        yield f"quality of {by(extents)} for 32x32x32", str(quality), here, how
    most = [math.prod(every[extents].layout.partitions) // 2 for extents, _ in five]
    what = "tasks of a node in the five, at most"
    yield what, "32, 24, 24, 30, 30", ", ".join(map(str, most)), "`layouts`"
    tasks = Fraction(32**3, 11 * 8 * 8 * 2)
    here = f"{float(tasks):.1f}, {most[1]}"
    yield "11x8x8, tasks of a node: mean, most", "23.3, 24", here, "`layouts`"
    problem = problem_on(load_places("torus:11x8x8:2"), grid(32, 32, 32), 32)
    there = obtained(problem, every[11, 8, 8].layout, tables_of(problem))
    assert isinstance(there, Obtained)
    numbers = np.unique(np.bincount(there.nodes // 2), return_counts=True)
    sums = " and ".join(f"{n * times:,}" for n, times in zip(*numbers, strict=True))
    here = f"{' and '.join(map(str, numbers[0]))}, {sums}"
    what = "11x8x8, tasks of a router in the last plane and before, and in all"
    yield what, "32 and 48, 2,048 and 30,720", here, "`map --layout`, on an empty torus"


def bisections_of_fiedler() -> Iterator[Row]:
    """Yield the rows of the bisection bandwidth per node."""
    torus = GEMINI
    how = "`layouts`, column bisection/node, which is in y links: two are an x link"
    slabs = [
        Fraction(1, 24) if n <= 6 else Fraction(1, 4 * n) if n <= 12 else Fraction(n - 1, 46 * n)
        for n in range(1, 25)
    ]
    equal = sum(
        bisection_per_node(torus, (24, n, 24)) / 2 == one for n, one in enumerate(slabs, start=1)
    )
    paper = "1/24 up to N = 6, 1/4N up to 12, then (N-1)/46N"
    yield "bisection per node, 24xNx24", paper, f"the same for {equal} of 24", how
    for extents, paper in (
        ((24, 1, 24), "1/24"),
        ((24, 6, 24), "1/24"),
        ((24, 12, 24), "1/48"),
        ((12, 6, 12), "1/24"),
    ):
        yield (
            f"bisection per node, {by(extents)}",
            f"{paper} x link",
            f"{bisection_per_node(torus, extents) / 2} x link",
            how,
        )


def grids_of_fiedler() -> Iterator[Row]:
    """Yield the rows of grids of four dimensions, and of grid_order."""
    torus = GEMINI
    every_4d = enumerate_layouts(grid_of(grid(14, 14, 21, 16)), 16, 2, torus.shape)
    found = any(direct(14, 7, 21, 1, 2, 1)(one) for one in every_4d)
    how = "`layouts --grid 14x14x21x16 --tasks-per-node 16`"
    yield "MILC: 14x7x21 geminis, 1x2x1x16 each", "a layout", "found" if found else "missing", how
    sheets = [f"@0,{y},0" for y in range(24)]
    (here,) = layout_hops("24x2x24", (12, 16, 16, 16), 32, [on_paths], sheets)
    how = (
        "`layouts --grid 12x16x16x16 --tasks-per-node 32 --within 24x2x24`: 1x2x2x8 tasks a node; "
        "paths in blocks of 2x2x2 are ours, the slide does not say how it was folded"
    )
    yield "12x16x16x16 on 24x2x24: largest hop", "a layout", here, how
    four = rank_layouts(every_4d, grid_of(grid(14, 14, 21, 16)), torus, 16)
    chosen = [one for one in four if direct(14, 7, 21, 1, 2, 1)(one.layout)]
    how = "the room that is asked for; how much is needed depends on service nodes"
    yield "MILC: its prism", "14x7x23", geometry_request(chosen, torus), how
    how = "tests/test_map_baselines.py"
    yield "`grid_order -C` and `-R`, `-c 4,2 -g 8,8`", "lists of ranks", "the same", how


# ---- Bhatele 2008 --------------------------------------------------------------------------------

TABLE_3 = (
    ("4x4x8", (296960, 53248), (37888, 13312)), ("4x8x8", (335872, 69632), (69632, 17408)),
    ("8x8x8", (479232, 86016), (94720, 21504)), ("8x8x16", (445952, 118784), (86992, 29696)),
)  # fmt: skip
"""Mesh of 256 to 2,048 processors (two a node), hops of round robin and topology-aware."""

TABLE_4 = (
    ("8x8x8", (149504, 25600), (298736, 12800)), ("16x8x8", (149504, 34816), (298736, 17408)),
    ("16x16x8", (1197824, 51200), (308604, 25600)),
    ("16x32x8", (672512, 83968), (467972, 41984)),
    ("16x32x16", (401664, 100352), (806844, 50176)),
    ("16x32x32", (266240, 133120), (575360, 66560)),
)  # fmt: skip
"""Torus, its fastest rank dimension last; hops for chares of 128^2 and of 256^2."""

FIGURE_2 = ("8x8x8", "16x8x8", "16x16x8", "16x16x16", "16x32x16", "16x32x32")
"""Tori of 512 to 16,384 processors."""


def both(on: str, shape: tuple[int, ...], method: str) -> tuple[str, str, float]:
    """Return the hops of round robin and of a structured mapping, its bound, and their ratio."""
    places, application = load_places(on), grid(*shape, periodic=True)
    problem = problem_on(places, application, -(-int(np.prod(shape)) // len(places.nodes)))
    robin = evaluate(
        problem, mapped_by(method_of("mapping", "round-robin").solver, problem, Options())
    )
    result = solve(problem, method, Options(time_limit=5))
    ours, bound = int(result.objective or 0), int(result.bound or 0)
    text = "proven optimal" if bound >= ours else f"no mapping below {bound:,}"
    return f"{robin.hops:,} and {ours:,}", text, robin.hops / ours


def unreversed(torus: str, shape: tuple[int, int]) -> int:
    """Return the hops of a 2D grid folded as in the paper, each layer in the same direction.

    The short side lies along the last dimension, the long one along the middle one, layer by layer.
    """
    layers, long, short = map(int, torus.split("x"))
    problem = problem_on(
        load_places(f"torus:{torus}"),
        grid(*shape, periodic=True),
        shape[0] * shape[1] // (layers * long * short),
    )
    across, along = np.divmod(np.arange(shape[0] * shape[1]), shape[1])
    layer, within = np.divmod(along, shape[1] // layers)
    at = layer * long + within * long // (shape[1] // layers)
    return evaluate(problem, at * short + across * short // shape[0]).hops


def bhatele_2008() -> Iterator[Row]:
    """Yield the rows of Bhatele 2008."""
    yield "Tables 1, 2 and Figure 3, times", "seconds", "-", TIMES
    yield "Figures 1, 4", "pictures", "-", "`map --png`; [Objects](objects.md) in words"
    for torus in FIGURE_2:
        nodes = int(np.prod([int(n) for n in torus.split("x")]))
        here, bound, ratio = both(f"torus:{torus}", (32, 32, 32), "blocks")
        paper = "about 10 times" if nodes == 2048 else "4 to 5 times"
        how = f"`map --grid 32x32x32 --periodic xyz --on torus:{torus}`; {bound}"
        yield (
            f"Figure 2, {nodes:,} processors, RR over TO",
            paper,
            f"{ratio:.1f} times: {here}",
            how,
        )
    for mesh, *columns in TABLE_3:
        for side, paper in zip((32, 16), columns, strict=True):
            here, bound, _ = both(f"mesh:{mesh}", (side,) * 3, "blocks")
            how = f"`map --grid {by([side] * 3)} --periodic xyz --on mesh:{mesh}`; {bound}"
            yield (
                f"Table 3, {mesh}, {512 // side}^3, RR and TO",
                f"{paper[0]:,} and {paper[1]:,}",
                here,
                how,
            )
    for torus, *columns in TABLE_4:
        for size, shape, paper in zip((128, 256), ((64, 1024), (32, 512)), columns, strict=True):
            here, bound, _ = both(f"torus:{torus}", shape, "fold-2d")
            robin, ours = here.split(" and ")
            here = f"{robin} and {unreversed(torus, shape):,}; folds reversed {ours}"
            how = f"`map --grid {by(shape)} --periodic xy --on torus:{torus}`; {bound}"
            yield (
                f"Table 4, {torus}, {size}^2, RR and TO",
                f"{paper[0]:,} and {paper[1]:,}",
                here,
                how,
            )
    rows = where(read_rows(STUDIES / "objects_namd.csv"), scheme="TopoAware LDBs")
    here = ", ".join(percent(row.less_once, 0) for row in rows)
    how = (
        "[Objects](objects.md), on 512 and 1,024 nodes and the XT3, with other loads and without "
        "bonded computes; from 2,048 nodes on there are few more objects than nodes"
    )
    yield "Table 5, hop-bytes of NAMD saved", "26, 28, 34, 29, 20 % (CO)", here, how


# ---- Bhatele 2009 --------------------------------------------------------------------------------

SCHEMES = {
    "Topology Oblivious": "proxies",
    "TopoPlace Patches": "patches",
    "TopoAware LDBs": "bricks",
    "ours": "search",
}


ALONE = {4: "30 %", 16_384: "6 %"}
"""How much longer a message takes to the farthest of 1,024 nodes alone, by its bytes (3.1)."""


def contention() -> Iterator[Row]:
    """Yield the rows of section 3.1, from the records of the study of contention."""
    rows = read_rows(STUDIES / "contention.csv")
    how = "[Contention](contention.md), by a model with the published figures of Blue Gene/P"
    blue = where(rows, machine="Blue Gene/P")
    for row in where(blue, torus="8x8x16"):
        if row.bytes in ALONE:
            here = percent(row.farthest / row.nearest - 1, 0)
            place = f"Figure 1, 1,024 nodes, {row.bytes:,} bytes, farthest over nearest"
            yield place, f"{ALONE[row.bytes]} more", f"{here} more", how
    for torus in dict.fromkeys(row.torus for row in blue):
        ratios = [f"{row.random / row.neighbours:.2f}" for row in where(blue, torus=torus)]
        here = f"{ratios[0]} times at 4 bytes to {ratios[-1]} at 1 MiB"
        yield f"Figure 3, {torus}, random over neighbours", "a curve", here, how
    how = "[Contention](contention.md): a node sends less than its links carry"
    for machine, torus in itertools.product(("XT3", "XT4"), ("8x8x8", "8x8x16")):
        own = where(rows, machine=machine, torus=torus)
        here = " to ".join(percent(row.farthest / row.nearest - 1, 0) for row in (own[0], own[-1]))
        what = f"Figures 1, 2, {machine}, {torus}, farthest over nearest"
        yield what, "a curve", f"{here} more, 4 bytes to 1 MiB", how
        (row,) = where(own, bytes=16_384)
        paper = "nearly 2 times" if machine == "XT3" else "not shown"
        what = f"Figure 3, {machine}, {torus}, 16 KB, random over neighbours"
        yield what, paper, f"{row.random / row.neighbours:.2f} times", how


def bhatele_2009() -> Iterator[Row]:
    """Yield the rows of Bhatele 2009."""
    torus = Torus((8, 8, 8))
    hops = float(torus.distances_from(0).mean())
    used = 512 * 4 * hops
    here = f"{2 * torus.num_links:,} links, {torus.diameter} hops at most, {hops:g} on average"
    yield "1, torus of 8x8x8", "3,072 links, 12 hops, 6 on average", here, "`tp.topology`"
    here = f"{used:,.0f}, each {used / (2 * torus.num_links):g} times"
    how = "512 x 4 x 6: the printed number has a digit too many, the four times are right"
    yield "1, links of four messages a node", "122884, each four times", here, how
    here = str(Fraction(32 * 8, 1024))
    how = "equation (1): flits of 32 bytes over 8 links, a message of 1,024 bytes"
    yield "1, the first term of the latency over the second", "one-fourth", here, how
    yield from contention()
    where = "`map --png`; [Objects](../guide/objects.md#methods) in words"
    yield "Figures 4, 5", "pictures", "-", where
    for row in read_rows(STUDIES / "objects.csv"):
        if row.application.startswith("openatom"):
            less, best = (percent(1 - cost / row.oblivious, 0) for cost in (row.paper, row.search))
            here = f"hop-bytes {less} less by prisms, {best} by search"
            how = "[Objects](objects.md); times are not redone"
            yield f"Tables 1, 2, OpenAtom, {row.machine}", "times up to 50 % shorter", here, how
    how = "not redone: the paper does not say how many states and planes it has"
    yield "Table 2, GST_BIG", "times", "-", how
    for row in read_rows(STUDIES / "objects_namd.csv"):
        here = f"{row.once:,}, {percent(row.less_once, 0)} less"
        how = f"`map --objects namd_apoa1 --on {row.machine} --method {SCHEMES[row.scheme]}`"
        yield f"Figures 6, 7, hop-bytes, {row.scheme}", "a bar", here, how
    yield "Tables 3, 4, times of NAMD", "ms per step", "-", TIMES
    yield "3.2, topology manager", "calls", "all of them", "[Topology](../guide/topology.md)"
    how = "`topoplace.mapping.contention` ([Contention](contention.md))"
    yield "4.1, models of latencies under contention", "planned", "max-min fair shares", how
    how = "`map --objects milc_8x8x8x16`, `matmul_8x8x8`; `builders.mesh`"
    yield "4.2, MILC, matrix multiplication, meshes", "planned", "applications", how
    how = "[Methods](../reference/methods.md#tasks-on-nodes)"
    yield "4.3, automatic mapping", "planned", "methods with bounds", how
    how = "not redone: `map` reads graphs and applications from files, and instruments no code"
    yield "4.3, object graphs at compile or run time", "planned", "-", how
    how = "`map --mapping M --most-moves K` ([few moves](../guide/objects.md#few-moves))"
    yield "4.3, dynamic graphs", "planned", "few objects moved", how
    how = "not redone: ours is one process that knows the whole machine"
    yield "4.4, distributed load balancing", "planned", "-", how


# ---- Mishra 2020 ---------------------------------------------------------------------------------


def figure_5() -> tuple[str, str]:
    """Return the contention of the example, and its hops."""
    tree = leaves_of(8, 4).machine
    model, comm = CostModel(tree), np.array([4, 2])
    hops = [Fraction(int(model.scaled_hops(0, leaf, comm)), model.scale) for leaf in (0, 1)]
    factors = [hop / distance - 1 for hop, distance in zip(hops, (2, 4), strict=True)]
    first, second = (", ".join(f"{float(one):g}" for one in own) for own in (factors, hops))
    return first, second


def mishra_2020() -> Iterator[Row]:
    """Yield the rows of Mishra 2020."""
    yield "Figures 1, 2, 3", "run times on a cluster, drawings", "-", TIMES
    free = [160, 150, 100, 80, 70, 50, 40]
    taken = by([count for _, count in balanced_counts(free, 512)]).replace("x", ", ")
    how = "`balanced_counts`, tested in tests/test_tree_heuristics.py"
    yield "Table 2, Figure 4, 512 nodes", "128, 128, 64, 64, 64, 32, 32", taken, how
    factors, hops = figure_5()
    how = "`CostModel`, tested in tests/test_tree_cost.py"
    yield "Figure 5, C(n0, n1) and C(n0, n4)", "1, 1.875", factors, how
    yield "Figure 5, hops of the two", "4, 11.5", hops, how
    yield "Table 1, notation", "-", "-", "[Glossary](../reference/glossary.md)"
    how = (
        "not redone: measured with two jobs on a cluster of 50 nodes. In a replay times follow "
        "from costs by eq. (7), so they correlate by construction"
    )
    yield "5.3, correlation of times and contention", "0.83", "-", how
    how = "[below](#the-theta-log-of-2022), on the public log of Theta"
    yield "Tables 3, 4, Figure 6, Theta", "percents", "percents", how
    how = "`study_mishra_logs.py`, [the three machines](#the-three-machines)"
    yield "Tables 3, 4, Intrepid, Theta, Mira", "hours, percents", "percents", how
    rows = read_rows(STUDIES / "mishra_logs.csv")
    yield from gains_of_mishra(rows)
    yield from costs_of_mishra(rows)


THREE = ("greedy", "balanced", "adaptive")
"""The algorithms of the paper."""


def gains_of_mishra(rows: Sequence[Any]) -> Iterator[Row]:
    """Yield the rows of sections 6.1 to 6.3: what is saved of the time of jobs."""
    how = how_of_logs(rows)
    for machine, papers in SAVED.items():
        own = where(rows, machine=machine, protocol="continuous", percent=90)
        own = [row for row in own if row.patterns != "binomial"]
        fields = ("execution_saved", THREE), ("wait_saved", THREE)
        here = ", ".join(mean_of(own, field, methods) for field, methods in fields)
        yield f"6.1, run and wait saved, all three, {machine}", papers, here, how
    run = where(rows, protocol="continuous")
    most = [f"{max(row.largest_gain for row in where(run, method=one)):.0f}" for one in THREE]
    what = "6.1, largest saving of a job, greedy, balanced, adaptive"
    yield what, "78, 77, 82 %", f"{', '.join(most)} %", how
    how = "adaptive, individual, times the shares of the mix: so eq. (7) makes it"
    for (machine, mixes), paper in MIXED.items():
        own = where(rows, machine=machine, protocol="individual", method="adaptive")
        gain = {name: [row.mean_gain for row in where(own, patterns=name)] for name in PATTERNS}
        sums = [
            sum(share * float(np.mean(gain[name])) for name, share in shares)
            for shares in mixes
            if all(gain[name] for name, _ in shares)
        ]
        here = ", ".join(f"{one:.2f}" for one in sums)
        what = f"6.2, mixes {'A, B, C' if mixes is ABC else 'D, E'}, {machine}"
        yield what, f"{paper} %", f"{here} %" if sums else "-", how
    how = "[below](#the-theta-log-of-2022): the largest mean of a mix"
    own = [row for row in read_rows(STUDIES / "mishra2020.csv") if row.patterns in tuple("ABCDE")]
    here = f"{max(row.mean_job_gain for row in own if row.method in THREE):.1f} %"
    yield "6.2, improvement in execution time, at most", "49 %", here, how
    how = how_of_logs(rows)
    for machine, most in LARGEST.items():
        for protocol, paper in zip(("continuous", "individual"), most, strict=True):
            own = [row.largest_gain for row in where(rows, machine=machine, protocol=protocol)]
            here = f"{max(own):.0f} %" if own else "-"
            yield f"6.3, largest saving of a job, {machine}, {protocol}", paper, here, how
    how = "[the three machines](#the-three-machines); not job by job, as the log is not public"
    yield "Figure 7, Theta, job by job", "curves", "a table of quarters", how


def costs_of_mishra(rows: Sequence[Any]) -> Iterator[Row]:
    """Yield the rows of sections 6.4 and 6.5: costs, turnaround and node hours."""
    at = "[the three machines](#the-three-machines)"
    yield "Figure 8, cost by nodes", "bars", "a table", at
    own = where(rows, protocol="continuous", patterns="binomial")
    here = ", ".join(mean_of(own, "cost_saved", names) for names in (THREE[:1], THREE[1:]))
    how = how_of_logs(rows)
    yield "6.4, cost saved, binomial: greedy; the others", "3.4, 11 %", here, how
    for machine, paper in COSTS.items():
        own = where(rows, machine=machine, protocol="continuous", percent=90)
        names = ("RD", "RHVD", "binomial")
        here = ", ".join(mean_of(where(own, patterns=name), "cost_saved", THREE) for name in names)
        yield f"6.4, cost saved, RD, RHVD, binomial, {machine}", paper, here, how
    yield "Figure 9, turnaround and node hours by share", "bars", "a table", at
    for machine, paper in (("Theta", "25.7 %"), ("Mira", "28.7 %")):
        own = where(rows, machine=machine, protocol="continuous", percent=90)
        own = [row for row in own if row.patterns != "binomial"]
        here = mean_of(own, "turnaround_saved", THREE)
        yield f"6.5, turnaround saved, all three, {machine}", paper, here, how
    how = "not redone: the paper does not say how it measures throughput"
    yield "6.5, throughput, Theta and Mira", "31 and 12.5 % more", "-", how


def mean_of(rows: Sequence[Any], field: str, methods: Sequence[str] = ()) -> str:
    """Return the mean of a field in percent over the rows of some methods, or of all."""
    values = [getattr(row, field) for row in rows if not methods or row.method in methods]
    return f"{np.mean(values):.1f} %" if values else "-"


LARGEST = {"Intrepid": ("76 %", "57 %"), "Theta": ("70 %", "15 %"), "Mira": ("82 %", "61 %")}
SAVED = {"Intrepid": "6 %, 35 %", "Theta": "17 %, 26 %", "Mira": "-, 32 %"}
PATTERNS = ("RHVD", "RD", "binomial")
ABC = ((("RHVD", 0.33),), (("RHVD", 0.5),), (("RHVD", 0.7),))
DE = ((("RD", 0.15), ("binomial", 0.35)), (("RD", 0.21), ("binomial", 0.49)))
MIXED = {
    ("Intrepid", ABC): "2.59, 3.92, 5.49",
    ("Intrepid", DE): "3.71, 5.19",
    ("Mira", ABC): "7.20, 10.90, 15.27",
    ("Mira", DE): "6.68, 9.36",
}
COSTS = {
    "Intrepid": "5.56, 5.72, 5.72 %",
    "Theta": "15.88, 17.84, 15.87 %",
    "Mira": "5.48, 6.09, 5.40 %",
}


def how_of_logs(rows: Sequence[Any]) -> str:
    """Return where the logs came from."""
    logs = "logs given" if rows and all(row.given for row in rows) else "logs generated"
    return f"`study_mishra_logs.py`, {logs}"


PAPERS = {
    "enos2014": enos,
    "fiedler2014": fiedler,
    "bhatele2008": bhatele_2008,
    "bhatele2009": bhatele_2009,
    "mishra2020": mishra_2020,
}


def main(given: Sequence[str] | None = None) -> None:
    """Write the page of a paper."""
    name, *rest = sys.argv[1:] if given is None else given
    study = Study(name, __doc__, rest, script=f"study_papers.py {name}")
    part = "papers" if name == "mishra2020" else "tables"  # its tables are those of its own study
    study.page(table(list(PAPERS[name]()), COLUMNS, 4), part=part)


if __name__ == "__main__":
    main()
