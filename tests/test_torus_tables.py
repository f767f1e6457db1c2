"""Sums over boxes of a machine turned any way, which level values and prices are made of."""

from __future__ import annotations

import random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from machine_strategies import tori
from random_instances import random_prism
from topoplace.machine import Prism, prism_links
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
