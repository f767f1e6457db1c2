"""Sums over boxes of a machine turned any way, and the level values that are made of them."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from machine_strategies import tori
from random_instances import random_prism, random_snapshot
from topoplace.machine import Prism, bisection_per_node, prism_links
from topoplace.packing.dual.columns import undominated
from topoplace.placement.torus._kernels import slice_sums
from topoplace.placement.torus.footprints import Footprints, quickest_footprints
from topoplace.placement.torus.problem import Candidate, PlacementProblem
from topoplace.snapshot.state import prepare
from topoplace.types import IntArray

Case = tuple[Footprints, int, int, IntArray]


@st.composite
def footprints(draw: st.DrawFn) -> Case:
    """The view of a machine, one of its footprints on a line, and a number per link."""
    torus = draw(tori(max_routers=60))
    view = Footprints(torus, tuple(draw(st.permutations(range(torus.num_dims)))))
    footprint = draw(st.integers(0, len(view.extents) - 1))
    inside = [line for line in range(len(view.bases)) if may_stand(view, footprint, line)]
    amounts = np.random.default_rng(draw(st.integers(0, 1 << 20))).integers(
        -50, 1 << 40, size=(torus.num_dims, torus.num_routers)
    )
    amounts *= torus.link_mask.reshape(torus.num_dims, -1)
    return view, footprint, draw(st.sampled_from(inside)), amounts


def may_stand(view: Footprints, footprint: int, line: int) -> bool:
    """Tell whether a footprint on a line is inside the machine, and written in one way only."""
    place = view.line_coords[line], view.extents[footprint], view.turned.shape, view.turned.wrap
    return all(
        o == 0 if e == n else wraps or o + e <= n for o, e, n, wraps in zip(*place, strict=False)
    )


def sums(view: Footprints, values: IntArray, line: int, offsets: IntArray) -> list[int]:
    out = np.zeros(view.depth, dtype=np.int64)
    slice_sums(view.slice_sums(values), view.bases[line], offsets, view.signs, out)
    return [int(value) for value in out]


@given(footprints())
def test_sums_are_sums_over_routers_links_and_lower_faces(case: Case) -> None:
    view, footprint, line, amounts = case
    torus = view.torus
    code = footprint * view.depth * len(view.bases) + line  # of depth 1
    pieces = [view.prism(code * view.depth + z) for z in range(view.depth)]
    expected = [int(amounts[0][piece.routers(torus)].sum()) for piece in pieces]
    assert sums(view, amounts[0], line, view.box[footprint]) == expected
    for k, d in enumerate(view.axes[:-1]):
        links = [prism_links(torus, piece) for piece in pieces]
        mine = [own[own // torus.num_routers == d] for own in links]
        expected = [int(amounts.ravel()[own].sum()) for own in mine]
        assert sums(view, amounts[d], line, view.link[k, footprint]) == expected
        expected = []
        for piece in pieces:
            extents = tuple(1 if j == d else e for j, e in enumerate(piece.extents))
            expected.append(int(amounts[0][Prism(piece.origin, extents).routers(torus)].sum()))
        assert sums(view, amounts[0], line, view.face[k, footprint]) == expected


@given(footprints())
def test_a_code_names_a_prism(case: Case) -> None:
    view = case[0]
    depth, num_lines = view.depth, len(view.bases)
    named = [
        view.prism(((f * depth + last) * num_lines + line) * depth + z)
        for f, line in itertools.product(range(len(view.extents)), range(num_lines))
        if may_stand(view, f, line)
        for z, last in itertools.product(range(depth), repeat=2)
    ]
    assert len(set(named)) == len(named)
    longest = quickest_footprints(view.torus)
    assert longest.depth == max(view.torus.shape)
    assert longest.axes == tuple(range(view.torus.num_dims)) or longest.depth > view.torus.shape[-1]


@given(footprints(), st.integers(0, 1 << 20))
def test_sums_over_boxes(case: Case, seed: int) -> None:
    view, (per_router, *_) = case[0], case[3]
    torus, rng = view.torus, random.Random(seed)
    models = [random_prism(rng, list(torus.shape), list(torus.wrap)) for _ in range(20)]
    boxes = [np.array([getattr(m, name) for m in models]) for name in ("origin", "extents")]
    expected = [
        int(per_router[Prism(tuple(m.origin), tuple(m.extents)).routers(torus)].sum())
        for m in models
    ]
    table = view.sums(per_router)
    assert view.inside(table, *boxes).tolist() == expected
    assert view.inside(table, boxes[0], 0 * boxes[1]).tolist() == [0] * 20
    assert view.inside(table, boxes[0][:0], boxes[1][:0]).shape == (0,)


@pytest.mark.parametrize("seed", range(20))
def test_values_of_candidates_are_their_definition(seed: int) -> None:
    problem = PlacementProblem(prepare(random_snapshot(random.Random(seed))))
    torus, requests, rng = problem.torus, problem.requests, random.Random(seed)
    models = [random_prism(rng, list(torus.shape), list(torus.wrap)) for _ in range(30)]
    candidates = [
        Candidate(k % len(requests), Prism(tuple(m.origin), tuple(m.extents)))
        for k, m in enumerate(models if requests else [])
    ]
    found = problem.values_of(candidates)
    assert found.shape == (len(candidates), 3)
    for candidate, values in zip(candidates, found.tolist(), strict=True):
        request = requests[candidate.request_idx]
        score = shape_score(problem, candidate)
        assert values == [request.value, score, -boundary(problem, candidate.prism)]
        assert (problem.values(candidate), problem.shape_score(candidate)) == (tuple(values), score)


def shape_score(problem: PlacementProblem, candidate: Candidate) -> int:
    """Return the shape score as docs/proofs.md has it."""
    torus, weights, prism = problem.torus, problem.state.snapshot.weights, candidate.prism
    usable = problem.state.usable_per_router[problem.requests[candidate.request_idx].class_idx]
    idle = usable[prism.routers(torus)].sum() - problem.requests[candidate.request_idx].nodes
    bisection = 1000 * bisection_per_node(torus, prism.extents) / min(torus.bandwidth)
    return int(
        weights.bisection * (bisection.numerator // bisection.denominator)
        - weights.volume * prism.volume
        - weights.hops * prism.max_hops(torus)
        - weights.wrap * prism.num_wrapping_dims(torus)
        - weights.idle * idle
    )


def boundary(problem: PlacementProblem, prism: Prism) -> int:
    """Count the links to free routers outside a prism, step by step."""
    torus = problem.torus
    inside = set(prism.routers(torus).tolist())
    total = 0
    for router, d, step in itertools.product(inside, range(torus.num_dims), (-1, 1)):
        coords, n = torus.coords(router), torus.shape[d]
        at = coords[d] + step
        if n > 1 and (torus.wrap[d] or 0 <= at < n):
            beside = torus.router((*coords[:d], at % n, *coords[d + 1 :]))
            total += beside not in inside and bool(problem.free_routers[beside])
    return total


def test_undominated_rows_are_in_no_other() -> None:
    rng = np.random.default_rng(3)
    for _ in range(60):
        num_rows, num_columns = rng.integers(1, 25), rng.integers(1, 90)
        dense = rng.random((num_rows, num_columns)) < rng.choice([0.05, 0.3, 0.8])
        dense[np.arange(num_rows), rng.integers(0, num_columns, num_rows)] = True
        rows = [frozenset(np.flatnonzero(row)) for row in dense]
        expected = [
            i
            for i, row in enumerate(rows)
            if not any(row < other or (row == other and j < i) for j, other in enumerate(rows))
        ]
        assert undominated(sp.csr_matrix(dense.astype(np.float32))).tolist() == expected
