"""Grids on trees beyond certificates: whole leaves in a line, and the fewest leaves of cells."""

from __future__ import annotations

import itertools
import math
import random
import time

import numpy as np
import pytest

from topoplace.placement.tree.exact.bounding.relaxation import Relaxation
from topoplace.placement.tree.exact.cells._kernels import TOO_MANY, fewest
from topoplace.placement.tree.exact.cells.classes import Classes, boards_of, classes_of
from topoplace.placement.tree.exact.cells.search import CellSearch
from topoplace.placement.tree.exact.gridding.search import better_grid
from topoplace.placement.tree.exact.lines.certificate import line_nogoods_of
from topoplace.placement.tree.exact.lines.program import LineProgram, Mix
from topoplace.placement.tree.exact.lines.proof import Prices, refutes
from topoplace.placement.tree.exact.lines.search import LineSearch
from topoplace.placement.tree.exact.lines.tables import no_guess, standing, tables_of
from topoplace.snapshot.schema import Pattern
from topoplace.snapshot.tree_state import prepare_tree
from tree_brute_force import least_cost
from tree_line_cases import grid_snapshot, in_order, job_of_leaves, job_on, step_values

PLENTY = 1 << 30
ROOM = 1 << 12


# ---- The fewest leaves --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "width", "num"),
    [(5, 1, 3), (1, 5, 3), (2, 4, 3), (4, 2, 3), (3, 3, 2), (3, 3, 3), (3, 4, 2), (4, 3, 2)],
)
def test_fewest_leaves_are_those_of_all_colourings(rows: int, width: int, num: int) -> None:
    rng = random.Random(f"colourings-{rows}-{width}-{num}")
    met = 0
    for _ in range(8):
        classes = some_classes(rng, num, rows * width)
        least = cheapest_colouring(rows, width, classes)
        if max(classes.cells) >= 8:
            assert fewest(rows, width, classes, PLENTY, ROOM) <= least
            continue
        met += least <= PLENTY
        for budget in (PLENTY, min(least, PLENTY), min(least, PLENTY) - 1):
            assert fewest(rows, width, classes, budget, ROOM) == min(least, budget + 1)
    assert met > 0


def test_a_piece_around_a_hole_is_not_counted_twice() -> None:
    # the dear class has to be in the middle only: eight cells around it are one leaf
    cells = np.array([1, 8])
    pairs = np.array([[[False, True], [True, False]]] * 2)
    bonded = np.array([[True, True]] * 2)
    assert fewest(3, 3, classes_of(cells, 8 // cells, pairs, bonded), PLENTY, ROOM) == 8 + 8


def test_more_frontiers_than_room_is_no_answer() -> None:
    cells = np.array([1, 2, 3])
    pairs, bonded = np.ones((2, 3, 3), dtype=bool), np.zeros((2, 3), dtype=bool)
    classes = classes_of(cells, 6 // cells, pairs, bonded)
    assert fewest(4, 4, classes, PLENTY, 10) == TOO_MANY
    assert fewest(4, 4, classes, PLENTY, ROOM) == 16 * 2


def some_classes(rng: random.Random, num: int, most: int) -> Classes:
    cells = np.array([rng.randint(1, min(most, rng.choice((3, 5, 12)))) for _ in range(num)])
    pairs = np.zeros((2, num, num), dtype=bool)
    for d, s, o in itertools.product(range(2), range(num), range(num)):
        pairs[d, s, o] = pairs[d, o, s] = rng.random() < 0.6
    able = np.array([[rng.random() < 0.8 for _ in range(num)] for _ in range(2)])
    cost = np.array([rng.randint(1, 9) for _ in range(num)])
    return classes_of(cells, cost, pairs, able & ~np.diagonal(pairs, axis1=1, axis2=2))


def cheapest_colouring(rows: int, width: int, classes: Classes) -> int:
    """Return the least cost by trying all classes for all cells."""
    sides = [(0, (r, c), (r + 1, c)) for r in range(rows - 1) for c in range(width)]
    sides += [(1, (r, c), (r, c + 1)) for r in range(rows) for c in range(width - 1)]
    places = list(itertools.product(range(rows), range(width)))
    least = PLENTY + 1
    for chosen in itertools.product(range(len(classes.cells)), repeat=len(places)):
        cost = sum(int(classes.cost[k]) for k in chosen)
        if cost < least and possible(dict(zip(places, chosen, strict=True)), sides, classes):
            least = cost
    return least


def possible(of_cell: dict, sides: list, classes: Classes) -> bool:
    piece = {cell: {cell} for cell in of_cell}
    for dim, one, other in sides:
        k = of_cell[one]
        if k == of_cell[other] and classes.bonded[dim, k]:
            if piece[one] is not piece[other]:
                piece[one] |= piece[other]
                for cell in piece[other]:
                    piece[cell] = piece[one]
        elif not classes.pairs[dim, k, of_cell[other]]:
            return False
    return all(len(piece[cell]) <= classes.cells[k] for cell, k in of_cell.items())


# ---- Thresholds ---------------------------------------------------------------------------------


ROOMY = [
    ([6] * 8, 0, 16, Pattern.STENCIL_2D),
    ([6] * 9, 2, 18, Pattern.STENCIL_3D),
    ([6] * 8, 0, 18, Pattern.STENCIL_3D),
    ([8] * 8, 3, 27, Pattern.STENCIL_3D),
    ([6] * 12, 0, 32, Pattern.STENCIL_3D),
    ([8] * 10, 4, 32, Pattern.STENCIL_3D),
]


@pytest.mark.parametrize(("sizes", "held", "ranks", "pattern"), ROOMY)
def test_no_allocation_is_ruled_out(sizes, held, ranks, pattern) -> None:
    job = job_of_leaves(sizes, held, ranks, pattern)
    search = CellSearch(tables_of(job), Relaxation(job).values, time.perf_counter() + 60)
    for seed in range(3):
        soon = time.perf_counter() + 0.3
        leaves = better_grid(job, in_order(job), 0, soon, seed, longest=500)
        at = np.searchsorted(search.values, step_values(job, leaves))
        assert (search.values[at] == step_values(job, leaves)).all()
        assert not search.refutes(at)


@pytest.mark.parametrize("seed", range(60))
def test_bounds_beyond_certificates_are_below_brute_force(seed: int) -> None:
    snapshot = grid_snapshot(seed, (3, 4, 4, 5, 6, 6))
    job = job_on(snapshot)
    start = job.cost(in_order(job))
    search = LineSearch(job, start, time.perf_counter() + 20, beyond_certificates=True)
    left = next(search.open_thresholds(), None)
    bound = search.to_beat if left is None else left.cost
    assert bound <= least_cost(prepare_tree(snapshot))[1] * 100 * job.scale
    proofs = [nogood.proof for nogood in search.nogoods[: search.num_for_bound]]
    certified = all(proof is not None for proof in proofs)
    assert (line_nogoods_of(search) is not None) == certified


def test_cells_refute_what_lines_do_not() -> None:
    job = job_of_leaves([18] * 23, 4, 128, Pattern.STENCIL_3D)
    to_beat = job.cost(best := better_grid(job, in_order(job), 0, time.perf_counter() + 2, 0))
    bounds = []
    for beyond in (False, True):
        search = LineSearch(job, to_beat, time.perf_counter() + 60, beyond)
        left = next(search.open_thresholds(), None)
        bounds.append(to_beat if left is None else left.cost)
        assert (line_nogoods_of(search) is None) == beyond
    assert bounds[0] < bounds[1] <= to_beat
    corners = [search.values[nogood.at] for nogood in search.nogoods]
    assert not any((step_values(job, best) <= corner).all() for corner in corners)


def test_layers_refute_where_all_dims_cross() -> None:
    job = job_of_leaves([18] * 8, 7, 128, Pattern.STENCIL_3D)
    search = CellSearch(tables_of(job), Relaxation(job).values, time.perf_counter() + 60)
    hops = 4 + 5 * np.array([18 + 9, 18 + 9, 18 + 18]) / 18
    at = np.searchsorted(search.values, np.rint(hops * job.scale).astype(np.int64))
    assert search.refutes(at)
    best = better_grid(job, in_order(job), 0, time.perf_counter() + 1, 0)
    assert not search.refutes(np.searchsorted(search.values, step_values(job, best)))


def test_refuted_thresholds_are_raised_as_far_as_they_stay_so() -> None:
    job = job_of_leaves([18] * 23, 4, 128, Pattern.STENCIL_3D)
    tables, values = tables_of(job), Relaxation(job).values
    search = CellSearch(tables, values, time.perf_counter() + 60)
    hops = np.array([22, 22, 26 / 3]) / 3 * job.scale
    at = np.searchsorted(values, np.rint(hops).astype(np.int64))
    view = standing(tables, values[at], no_guess(tables))
    board = next(boards_of(tables, view))
    assert (board.rows, board.width) == (8, 4)
    assert sorted(board.classes.cells) == [1, 1, 2]
    assert search.refutes(at)
    raised = search.raised(at, np.arange(3))
    assert (raised >= at).all()
    assert (raised > at).any()
    assert search.refutes(raised)
    for dim in np.flatnonzero(raised < len(values) - 1).tolist():
        assert not search.refutes(raised + np.eye(3, dtype=np.int64)[dim])


# ---- Whole leaves in a line ---------------------------------------------------------------------


@pytest.mark.parametrize("extents", [(5, 1), (4, 3), (5, 2), (2, 2, 2), (3, 2, 2)])
def test_segments_are_as_many_as_said(extents: tuple[int, ...]) -> None:
    ranks = math.prod(extents)
    pattern = Pattern.STENCIL_2D if len(extents) == 2 else Pattern.STENCIL_3D
    tables = tables_of(job_of_leaves([ranks] * 2, 0, ranks, pattern))
    extents = tuple(tables.extents.tolist())
    cells = list(itertools.product(*map(range, extents)))
    for chosen in itertools.product((False, True), repeat=len(cells)):
        part = {cell for cell, there in zip(cells, chosen, strict=True) if there}
        if not part:
            continue
        parts = np.array([num_segments(part, dim) for dim in range(len(extents))])[:, None]
        layouts = tables.layouts[:, tables.ranks[tables.layout_state] == len(part)]
        assert ((layouts <= parts) & ((layouts == 1) == (parts == 1))).all(axis=0).any(), part


def num_segments(part: set[tuple[int, ...]], dim: int) -> int:
    before = {tuple(x + (d == dim) for d, x in enumerate(cell)) for cell in part}
    return len(part - before)


def test_whole_leaves_refute_what_lines_do_not() -> None:
    job = job_of_leaves([18] * 31, 11, 512, Pattern.STENCIL_2D)
    tables = tables_of(job)
    program = LineProgram(tables)
    full, emptier = 18, 7  # side by side in dim 0; there is no limit in the other
    hops = 4 + 5 * np.array([full + emptier, full + full]) / 18
    thresholds = np.rint(hops * job.scale).astype(np.int64)
    assert isinstance(program.test(thresholds, 1), Mix)
    proof = program.test(thresholds, 1, wholes=True)
    assert isinstance(proof, Prices)
    assert proof.of_whole.any()
    assert refutes(tables, proof, thresholds)
    best = better_grid(job, in_order(job), 0, time.perf_counter() + 2, 0)
    assert not refutes(tables, proof, step_values(job, best))


@pytest.mark.parametrize("seed", range(16))
def test_no_allocation_is_ruled_out_beyond_certificates(seed: int) -> None:
    job = job_on(grid_snapshot(seed, (8, 11, 12, 13, 16, 18, 24, 27, 30), (3, 5, 6), (5, 9)))
    to_beat = job.cost(in_order(job))
    search = LineSearch(job, to_beat, time.perf_counter() + 1, beyond_certificates=True)
    next(search.open_thresholds(), None)
    corners = [search.values[nogood.at] for nogood in search.nogoods]
    for turn in range(2):
        soon = time.perf_counter() + 0.2
        leaves = better_grid(job, in_order(job), 0, soon, turn, longest=500)
        assert not any((step_values(job, leaves) <= corner).all() for corner in corners)
