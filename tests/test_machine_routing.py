"""Routes: as long as the distance, on real links, the same everywhere on a torus."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from machine_strategies import tori, tori_with_routers
from topoplace.errors import InputError
from topoplace.machine import Torus, route


@given(tori_with_routers(2))
def test_route_is_as_long_as_the_distance(case):
    torus, (a, b) = case
    assert len(route(torus, a, b)) == torus.distance(a, b) == torus.distance(b, a)


@given(tori_with_routers(2))
def test_route_walks_real_links_from_source_to_target(case):
    torus, (a, b) = case
    real = torus.link_mask.ravel()
    at = a
    dims = []
    for link, direction in route(torus, a, b):
        assert real[link]
        d, owner = divmod(link, torus.num_routers)
        assert torus.link_exists(d, owner)
        coords = list(torus.coords(owner))
        coords[d] = (coords[d] + 1) % torus.shape[d]
        ends = (owner, torus.router(coords))
        assert at == ends[0 if direction == 1 else 1]
        at = ends[1 if direction == 1 else 0]
        dims.append(d)
    assert at == b
    assert dims == sorted(dims)


@given(tori_with_routers(3, all_wrap=True))
def test_routes_are_the_same_after_a_translation(case):
    torus, (a, b, shift) = case

    def moved(router: int) -> int:
        pairs = zip(torus.coords(router), torus.coords(shift), torus.shape, strict=True)
        return torus.router([(c + s) % n for c, s, n in pairs])

    def moved_link(link: int) -> int:
        d, owner = divmod(link, torus.num_routers)
        return d * torus.num_routers + moved(owner)

    expected = [(moved_link(link), direction) for link, direction in route(torus, a, b)]
    assert route(torus, moved(a), moved(b)) == expected


@given(tori_with_routers(1))
def test_distances_from_agree_with_distance(case):
    torus, (a,) = case
    expected = [torus.distance(a, b) for b in range(torus.num_routers)]
    assert torus.distances_from(a).tolist() == expected


@given(tori())
def test_link_mask_agrees_with_link_exists(torus):
    expected = [
        torus.link_exists(d, r) for d in range(torus.num_dims) for r in range(torus.num_routers)
    ]
    assert torus.link_mask.ravel().tolist() == expected


@given(tori())
def test_coordinates_and_router_are_inverse(torus):
    for router, coords in enumerate(torus.coordinates.tolist()):
        assert torus.coords(router) == tuple(coords)
        assert torus.router(coords) == router


def test_tie_at_half_the_ring_goes_the_positive_way():
    torus = Torus((8,))
    assert route(torus, 6, 2) == [(6, 1), (7, 1), (0, 1), (1, 1)]
    assert route(torus, 6, 3) == [(5, -1), (4, -1), (3, -1)]


def test_mesh_route_never_wraps():
    torus = Torus((8,), (False,))
    assert [link for link, _ in route(torus, 7, 0)] == [6, 5, 4, 3, 2, 1, 0]


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (((),), "shape"),
        (((0, 4),), "shape"),
        (((1 << 11, 1 << 11),), "shape"),
        (((4, 4), (True,)), "wrap"),
        (((4, 4), (), (1, 2, 3)), "bandwidth"),
        (((4, 4), (), (1, 0)), "bandwidth"),
        (((4, 4), (), (), 0), "nodes_per_router"),
    ],
)
def test_bad_machines_are_refused(arguments, field):
    with pytest.raises(InputError) as caught:
        Torus(*arguments)
    assert caught.value.field == field


@given(tori(), st.data())
def test_coordinates_outside_are_refused(torus, data):
    coords = [0] * torus.num_dims
    d = data.draw(st.integers(0, torus.num_dims - 1))
    coords[d] = data.draw(st.sampled_from([-1, torus.shape[d]]))
    with pytest.raises(InputError, match="coordinates inside"):
        torus.router(coords)


def test_link_numbers_of_a_mixed_machine():
    torus = Torus((3, 2), (True, False))
    assert np.flatnonzero(torus.link_mask).tolist() == [0, 1, 2, 3, 4, 5, 6, 8, 10]
