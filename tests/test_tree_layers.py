"""Grids whose leaves have given ranks: pieces of layers, counts, and what they rule out."""

from __future__ import annotations

import itertools
import time
from collections import Counter

import numpy as np
import pytest

from topoplace.placement.tree.exact.bounding.relaxation import Relaxation
from topoplace.placement.tree.exact.gridding.search import better_grid
from topoplace.placement.tree.exact.job import Job
from topoplace.placement.tree.exact.layers.counts import whole_counts
from topoplace.placement.tree.exact.layers.kernels.pieces import pieces
from topoplace.placement.tree.exact.layers.program import hot_leaves, refuted
from topoplace.placement.tree.exact.layers.search import LayerSearch
from topoplace.placement.tree.exact.lines.program import LineProgram, Mix
from topoplace.placement.tree.exact.lines.search import LineSearch
from topoplace.placement.tree.exact.lines.tables import (
    Guess,
    Standing,
    Tables,
    no_guess,
    standing,
    tables_of,
)
from topoplace.snapshot.schema import Pattern
from tree_line_cases import (
    counts_of,
    grid_snapshot,
    in_order,
    job_of_leaves,
    job_on,
    step_values,
)


def layer_search(job: Job) -> LayerSearch:
    tables = tables_of(job)
    prices = np.array([step.price for step in job.steps], dtype=np.int64)
    program = LineProgram(tables)
    return LayerSearch(tables, Relaxation(job).values, prices, program, time.perf_counter() + 60)


def only(counts: np.ndarray) -> Guess:
    """Return the guess that leaves are in so many states, all of them."""
    return Guess(counts, np.ones(len(counts), dtype=np.bool_))


def janus_like(job: Job, totals: list[int]) -> np.ndarray:
    """Return thresholds at which leaves of 18 nodes may be neighbours up to some busy nodes."""
    found: np.ndarray = np.rint((4 + 5 * np.array(totals) / 18) * job.scale).astype(np.int64)
    return found


# ---- Pieces of a layer --------------------------------------------------------------------------


@pytest.mark.parametrize(("rows", "width"), [(1, 1), (5, 1), (1, 4), (3, 2), (3, 3)])
def test_pieces_are_what_is_left_together(rows: int, width: int) -> None:
    cells = list(itertools.product(range(rows), range(width)))
    for out, row in enumerate(pieces(rows, width).tolist()):
        left = {cell for k, cell in enumerate(cells) if not out >> k & 1}
        sizes = Counter(len(piece) for piece in together(left))
        assert row == [len(cells) - len(left), *(sizes[k + 1] for k in range(len(cells)))]


def together(cells: set[tuple[int, int]]) -> list[set[tuple[int, int]]]:
    """Return the connected parts of some cells."""
    found: list[set[tuple[int, int]]] = []
    for r, c in sorted(cells):
        near = [part for part in found if {(r - 1, c), (r, c - 1)} & part]
        found = [part for part in found if part not in near]
        found.append({(r, c)}.union(*near))
    return found


# ---- Counts -------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
def test_all_counts_are_there_once(seed: int) -> None:
    job = job_on(grid_snapshot(seed, (4, 6, 8, 9), (2, 3, 4), (3, 4)))
    tables = tables_of(job)
    counts = whole_counts(tables)
    assert counts is not None
    sizes = [min(job.ranks, int(job.free[leaf])) for leaf in job.domain]
    wanted = set()
    for ranks in itertools.product(*(range(size + 1) for size in sizes)):
        if sum(ranks) == job.ranks:
            leaves = np.repeat(job.domain, ranks)
            wanted.add(counts_of(job, leaves).tobytes())
    assert {row.tobytes() for row in counts} == wanted
    assert len(counts) == len(wanted)


def test_more_counts_than_can_be_tried_are_none() -> None:
    job = job_of_leaves([18] * 23, 0, 128, Pattern.STENCIL_3D)
    assert whole_counts(tables_of(job)) is None
    search = layer_search(job)
    assert not search.refutes(np.full(3, len(search.values) - 1))


# ---- Hot leaves ---------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
def test_hot_leaves_are_nowhere_neighbours(seed: int) -> None:
    job, tables, view, counts = _standing_counts(seed)
    for num in range(1, len(tables.extents) + 1):
        for dims in itertools.combinations(range(len(tables.extents)), num):
            hot = hot_leaves(view, counts, list(dims))
            assert (hot <= counts).all()
            states = np.repeat(np.arange(len(hot)), hot).tolist()
            for one, other in itertools.combinations(states, 2):
                assert not view.pairs[list(dims), one, other].any()
    assert job.ranks == counts @ tables.ranks


def _standing_counts(seed: int) -> tuple[Job, Tables, Standing, np.ndarray]:
    job = job_on(grid_snapshot(seed, (8, 12, 16), (3, 5, 6), (5, 9)))
    tables = tables_of(job)
    leaves = better_grid(job, in_order(job), 0, time.perf_counter() + 0.1, seed, longest=500)
    counts = counts_of(job, leaves)
    view = standing(tables, step_values(job, leaves), only(counts))
    assert view is not None
    return job, tables, view, counts


# ---- What is ruled out --------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(24))
def test_no_allocation_is_ruled_out(seed: int) -> None:
    job, tables, view, counts = _standing_counts(seed)
    assert not refuted(tables, view, counts)
    search = layer_search(job)
    for turn in range(2):
        leaves = better_grid(job, in_order(job), 0, time.perf_counter() + 0.1, turn, longest=500)
        assert not search.refutes(np.searchsorted(search.values, step_values(job, leaves)))


def test_no_random_allocation_of_full_leaves_is_ruled_out() -> None:
    job = job_of_leaves([6, 6, 6, 5], 0, 18, Pattern.STENCIL_2D)
    rng = np.random.default_rng(0)
    search = layer_search(job)
    full = np.repeat(np.arange(4), [6, 6, 6, 5])
    for _ in range(60):
        leaves = np.sort(rng.permutation(full)[:18])
        at = np.searchsorted(search.values, step_values(job, leaves))
        assert not search.refutes(at)


NEARLY_FULL = [
    # totals of busy nodes that neighbours may have, ranks that leaves of 18 lack
    ([36, 30, 27], [9]),
    ([36, 29, 28], [8, 1]),
    ([35, 29, 29], [7, 2]),
    ([33, 30, 30], [6, 3]),
    ([27, 36, 30], [9]),
]


@pytest.mark.parametrize(("totals", "lacks"), NEARLY_FULL)
def test_layers_refute_what_lines_do_not(totals: list[int], lacks: list[int]) -> None:
    job = job_of_leaves([18] * 8, 7, 128, Pattern.STENCIL_3D)
    tables = tables_of(job)
    thresholds = janus_like(job, totals)
    counts = np.zeros(len(tables.ranks), dtype=np.int64)
    big = int(tables.multiplicity.argmax())
    for ranks in [18] * (7 - len(lacks)) + [18 - lack for lack in lacks]:
        counts[(tables.leaf_type == big) & (tables.ranks == ranks)] += 1
    counts[(tables.leaf_type != big) & (tables.ranks == 11)] += 1
    assert counts @ tables.ranks == job.ranks
    view = standing(tables, thresholds, only(counts))
    assert view is not None
    program = LineProgram(tables)
    assert isinstance(program.test(thresholds, 1, wholes=True, guess=only(counts)), Mix)
    assert refuted(tables, view, counts)


def test_layers_prove_a_bound_that_lines_leave_open() -> None:
    job = job_of_leaves([18] * 8, 7, 128, Pattern.STENCIL_3D)
    to_beat = int(sum(janus_like(job, [36, 28, 28]))) * 100
    bounds = []
    for beyond in (False, True):
        search = LineSearch(job, to_beat, time.perf_counter() + 60, beyond)
        left = next(search.open_thresholds(), None)
        bounds.append(to_beat if left is None else left.cost)
    assert bounds[0] < bounds[1] == to_beat


def test_raised_thresholds_stay_refuted_and_cheaper() -> None:
    job = job_of_leaves([18] * 8, 7, 128, Pattern.STENCIL_3D)
    search = layer_search(job)
    at = np.searchsorted(search.values, janus_like(job, [36, 27, 27]))
    to_beat = int(sum(janus_like(job, [36, 29, 29]))) * 100
    raised = search.raised(at, np.arange(3), to_beat)
    assert (raised >= at).all()
    assert (raised > at).any()
    assert search.refutes(raised)
    assert search.prices @ search.values[raised] < to_beat


def test_nothing_is_refuted_when_time_is_up() -> None:
    job = job_of_leaves([18] * 8, 7, 128, Pattern.STENCIL_3D)
    search = layer_search(job)
    at = np.searchsorted(search.values, janus_like(job, [36, 27, 27]))
    assert standing(search.tables, search.values[at], no_guess(search.tables)) is not None
    search.deadline = 0.0
    assert not search.refutes(at)
    search.deadline = time.perf_counter() + 60
    assert search.refutes(at)
