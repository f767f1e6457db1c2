"""Summed-area tables of lines and footprints against sums over routers and links."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from machine_strategies import tori
from topoplace.machine import Prism, Torus, prism_links
from topoplace.placement.exact._kernels import slice_sums
from topoplace.placement.exact.lines import LineView

IntArray = NDArray[np.int64]


@st.composite
def footprints(draw: st.DrawFn) -> tuple[LineView, int, int, IntArray]:
    """A view, one of its footprints on a line where it may stand, and a number per link."""
    torus = draw(tori(max_routers=60))
    view = LineView.all_footprints(torus)
    footprint = draw(st.integers(0, len(view.footprints) - 1))
    line = draw(st.sampled_from(np.flatnonzero(view.allowed[footprint]).tolist()))
    amounts = np.random.default_rng(draw(st.integers(0, 1 << 20))).integers(
        -50, 1 << 40, size=(torus.num_dims, torus.num_routers)
    )
    return view, footprint, line, amounts


def sums(view: LineView, per_router: IntArray, line: int, offsets: IntArray) -> list[int]:
    out = np.zeros(view.depth, dtype=np.int64)
    slice_sums(view.prefix_sums(per_router), view.bases[line], offsets, view.signs, out)
    return [int(value) for value in out]


def slices(view: LineView, footprint: int, line: int) -> list[Prism]:
    """The slices of a line's footprint, each a prism one router deep."""
    origin = tuple(view.line_coords[line].tolist())
    extents = (*view.footprints[footprint], 1)
    return [Prism((*origin, z), extents) for z in range(view.depth)]


@given(footprints())
def test_box_sums_are_sums_over_routers(case: tuple[LineView, int, int, IntArray]) -> None:
    view, footprint, line, amounts = case
    expected = [
        sum(int(amounts[0][r]) for r in piece.routers(view.torus))
        for piece in slices(view, footprint, line)
    ]
    assert sums(view, amounts[0], line, view.box[footprint]) == expected


@given(footprints())
def test_link_sums_are_sums_over_links_used(case: tuple[LineView, int, int, IntArray]) -> None:
    view, footprint, line, amounts = case
    torus = view.torus
    real = amounts * torus.link_mask.reshape(torus.num_dims, -1)
    for d in range(torus.num_dims - 1):
        expected = []
        for piece in slices(view, footprint, line):
            dims, routers = np.divmod(prism_links(torus, piece), torus.num_routers)
            expected.append(sum(int(real[d][r]) for r in routers[dims == d]))
        assert sums(view, real[d], line, view.link[d, footprint]) == expected


@given(footprints())
def test_face_sums_are_sums_over_the_lower_face(case: tuple[LineView, int, int, IntArray]) -> None:
    view, footprint, line, amounts = case
    for d in range(view.torus.num_dims - 1):
        expected = []
        for piece in slices(view, footprint, line):
            extents = tuple(1 if k == d else e for k, e in enumerate(piece.extents))
            face = Prism(piece.origin, extents)
            expected.append(sum(int(amounts[0][r]) for r in face.routers(view.torus)))
        assert sums(view, amounts[0], line, view.face[d, footprint]) == expected


@given(tori(max_routers=40))
def test_a_code_names_a_prism_and_allowed_lines_are_those_inside(torus: Torus) -> None:
    view = LineView.all_footprints(torus)
    named = [
        view.prism(((f * len(view.bases) + line) * view.depth + z) * view.depth + last)
        for f, line in np.argwhere(view.allowed).tolist()
        for z, last in itertools.product(range(view.depth), repeat=2)
    ]
    assert len(set(named)) == len(named)
    head = torus.num_dims - 1
    for prism in named:
        for o, e, n, wraps in zip(
            prism.origin[:head], prism.extents[:head], torus.shape, torus.wrap, strict=False
        ):
            assert o == 0 if e == n else (o < n if wraps else o + e <= n)
