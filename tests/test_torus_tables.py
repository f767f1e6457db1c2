"""Sums over boxes of a machine turned any way, which level values and prices are made of."""

from __future__ import annotations

import random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from machine_strategies import tori
from random_instances import random_prism
from topoplace.machine import Prism, Torus, prism_links
from topoplace.placement.torus._kernels import slice_sums
from topoplace.placement.torus.footprints import Footprints
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


@given(footprints(), st.integers(0, 1 << 20))
def test_sums_over_boxes(case: Case, seed: int) -> None:
    view, per_router = case[0], np.abs(case[3][0]) % 50
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


@given(footprints())
def test_free_prisms_are_as_deep_as_those_without_blocked_routers_and_closed_links(
    case: Case,
) -> None:
    view, footprint, line, amounts = case
    torus, n = view.torus, view.depth
    blocked, closed = amounts[0] % 5 == 0, amounts.ravel() % 7 == 0
    before = view.reach(amounts[0] % 2 == 0, closed)
    found = view.reach(blocked, closed, over=before)
    for z in range(n):
        depths = []
        for depth in range(1, n + 1):
            inside = may_stand_along(view, z, depth)
            code = ((footprint * n + depth - 1) * len(view.bases) + line) * n + z
            prism = view.prism(code)
            if (
                inside
                and not blocked[prism.routers(torus)].any()
                and not closed[prism_links(torus, prism)].any()
            ):
                depths.append(depth)
        assert found.of(footprint)[line * n + z] == max(depths, default=0)
    rows = found.row[footprint]
    assert found.deepest[footprint] == found.depths[rows].max() == found.tops[rows].max()


def may_stand_along(view: Footprints, z: int, depth: int) -> bool:
    """Tell likewise of a place and a depth along the last dimension."""
    n, wraps = view.depth, view.turned.wrap[-1]
    return z == 0 if depth == n else wraps or z + depth <= n


def test_prisms_of_an_empty_machine_share_rows() -> None:
    torus = Torus((12, 10, 11), (True, True, True), (1, 1, 1), 2)
    view = Footprints(torus)
    nothing = np.zeros(torus.num_routers, dtype=bool), np.zeros(torus.num_links, dtype=bool)
    assert view.reach(*nothing).num_rows < torus.num_routers < view.reach(*nothing).row.size
