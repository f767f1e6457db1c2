"""Link sets: what prisms and scattered jobs use is the union of the routes of all pairs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from machine_strategies import tori, tori_with_prism, tori_with_routers
from topoplace.errors import InputError
from topoplace.machine import Prism, Torus, all_origins, prism_links, route, scattered_links


def links_both_ways(torus: Torus, a: int, b: int) -> set[int]:
    """Links on the routes from a to b, where a tie at half a ring may be resolved either way.

    Walks dimension by dimension: the row on which dimension d is corrected does not depend on
    how the ties of other dimensions are resolved, so each way round is walked by itself.
    """
    used: set[int] = set()
    here, goal = list(torus.coords(a)), torus.coords(b)
    for d, n in enumerate(torus.shape):
        forward = (goal[d] - here[d]) % n
        ways = []
        if not torus.wrap[d]:
            ways = [1 if goal[d] > here[d] else -1]
        else:
            ways = [1] * (2 * forward <= n) + [-1] * (2 * forward >= n)
        for way in ways if forward else []:
            at = list(here)
            while at[d] != goal[d]:
                after = list(at)
                after[d] = (at[d] + way) % n
                used.add(d * torus.num_routers + torus.router(at if way == 1 else after))
                at = after
        here[d] = goal[d]
    return used


def links_of_all_pairs(torus: Torus, routers: list[int]) -> list[int]:
    pairs = itertools.permutations(routers, 2)
    return sorted(set().union(*(links_both_ways(torus, a, b) for a, b in pairs)))


@given(tori_with_routers(2))
def test_the_reference_contains_the_route(case):
    torus, (a, b) = case
    ours = {link for link, _ in route(torus, a, b)}
    reference = links_both_ways(torus, a, b)
    assert ours <= reference
    halves = [
        2 * abs(ca - cb) == n and wraps and n > 1
        for ca, cb, n, wraps in zip(
            torus.coords(a), torus.coords(b), torus.shape, torus.wrap, strict=True
        )
    ]
    assert (ours == reference) is not any(halves)


@settings(deadline=None, max_examples=60)
@given(tori_with_prism())
def test_prism_links_are_those_of_all_pairs(case):
    torus, prism = case
    expected = links_of_all_pairs(torus, prism.routers(torus).tolist())
    assert prism_links(torus, prism).tolist() == expected


@settings(deadline=None)
@given(st.integers(0, 9).flatmap(tori_with_routers))
def test_scattered_links_are_those_of_all_pairs(case):
    torus, routers = case
    expected = links_of_all_pairs(torus, sorted(set(routers)))
    assert scattered_links(torus, routers).tolist() == expected


@given(tori_with_prism())
def test_prism_links_are_real(case):
    torus, prism = case
    assert torus.link_mask.ravel()[prism_links(torus, prism)].all()


@given(tori_with_prism())
def test_routers_of_a_prism_are_its_box(case):
    torus, prism = case
    offset = (torus.coordinates - np.asarray(prism.origin)) % np.asarray(torus.shape)
    inside = (offset < np.asarray(prism.extents)).all(axis=1)
    routers = prism.routers(torus)
    assert len(routers) == prism.volume
    assert np.sort(routers).tolist() == np.flatnonzero(inside).tolist()


@given(tori_with_prism())
def test_largest_hop_count_is_that_of_the_farthest_pair(case):
    torus, prism = case
    routers = prism.routers(torus)
    farthest = max(int(torus.distances_from(int(r))[routers].max()) for r in routers)
    assert prism.max_hops(torus) == farthest


@given(tori_with_prism())
def test_wrapping_dims_are_those_whose_links_leave_the_prism(case):
    torus, prism = case
    inside = set(prism.routers(torus).tolist())
    leaving = {
        link // torus.num_routers
        for link in prism_links(torus, prism).tolist()
        if link % torus.num_routers not in inside
    }
    assert prism.num_wrapping_dims(torus) == len(leaving)


@given(tori(max_routers=60), st.data())
def test_origins_are_all_canonical_and_every_set_of_routers_stands_once(torus, data):
    extents = tuple(data.draw(st.integers(1, n)) for n in torus.shape)
    origins = all_origins(torus, extents)
    for origin in origins:
        Prism(origin, extents).require_inside(torus)
    sets = {frozenset(Prism(o, extents).routers(torus).tolist()) for o in origins}
    assert len(sets) == len(origins)


def test_extents_beyond_the_machine_have_no_origin():
    assert all_origins(Torus((4, 4)), (5, 1)) == []


@pytest.mark.parametrize(
    ("origin", "extents", "expected"),
    [
        ((0,), (1, 1), "coordinates and extents"),
        ((6, 0), (1, 1), "an origin inside"),
        ((0, 0), (1, 5), "extents from 1"),
        ((0, 2), (1, 3), "ends inside the mesh"),
        ((1, 0), (6, 1), "origin 0 where"),
    ],
)
def test_prisms_outside_are_refused(origin, extents, expected):
    torus = Torus((6, 4), (True, False))
    with pytest.raises(InputError, match=expected):
        Prism(origin, extents).require_inside(torus)


def test_half_a_ring_keeps_to_itself_and_one_more_takes_the_ring():
    torus = Torus((24, 1))
    assert len(prism_links(torus, Prism((3, 0), (12, 1)))) == 11
    assert len(prism_links(torus, Prism((3, 0), (13, 1)))) == 24
