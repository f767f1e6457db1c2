"""Tori and meshes: distances, routes, and the links, origins and bisection of prisms."""

from __future__ import annotations

import itertools
import json
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from machine_strategies import tori, tori_with_prism, tori_with_routers
from mistakes import MISTAKES, lines_said
from topoplace.errors import InputError
from topoplace.machine import (
    Prism,
    Torus,
    all_origins,
    bisection_bandwidth,
    bisection_per_node,
    prism_links,
    scattered_links,
)
from topoplace.machine.links import route_links as routed
from topoplace.machine.links import tree_arms

GEMINI = Torus((24, 24, 24), bandwidth=(2, 1, 2), nodes_per_router=2)


def route_links(torus: Torus, a: int, b: int) -> set[int]:
    """Links on the routes from a to b, dimension by dimension, of a tie both ways round.

    The row on which dimension d is corrected does not depend on how other ties are resolved.
    """
    used: set[int] = set()
    here, goal = list(torus.coords(a)), torus.coords(b)
    for d, n in enumerate(torus.shape):
        forward = (goal[d] - here[d]) % n
        ways = [1] * (2 * forward <= n) + [-1] * (2 * forward >= n)
        if not torus.wrap[d]:
            ways = [1 if goal[d] > here[d] else -1]
        for way in ways if forward else []:
            at = list(here)
            while at[d] != goal[d]:
                after = [*at[:d], (at[d] + way) % n, *at[d + 1 :]]
                used.add(d * torus.num_routers + torus.router(at if way == 1 else after))
                at = after
        here[d] = goal[d]
    return used


def links_of_all_pairs(torus: Torus, routers: list[int]) -> list[int]:
    pairs = itertools.permutations(routers, 2)
    return sorted(set().union(*(route_links(torus, a, b) for a, b in pairs)))


@given(tori_with_routers(2))
def test_routes_are_as_long_as_the_distance_and_on_real_links(case):
    torus, (a, b) = case
    links = route_links(torus, a, b)
    assert torus.link_mask.ravel()[sorted(links)].all()
    pairs = zip(torus.coords(a), torus.coords(b), torus.shape, torus.wrap, strict=True)
    halves = sum(n // 2 for x, y, n, wraps in pairs if wraps and n > 1 and 2 * abs(x - y) == n)
    assert len(links) == torus.hops(a, b) + halves  # of ties both ways round
    assert torus.distances_from(a)[b] == torus.hops(a, b) == torus.hops(b, a) <= torus.diameter


@given(tori())
def test_coordinates_and_router_are_inverse(torus):
    for router, coords in enumerate(torus.coordinates.tolist()):
        assert torus.coords(router) == tuple(coords)
        assert torus.router(coords) == router
    with pytest.raises(InputError, match="coordinates inside"):
        torus.router([*torus.shape[:-1], -1])


def test_link_numbers_of_a_mixed_machine():
    torus = Torus((3, 2), (True, False))
    assert np.flatnonzero(torus.link_mask).tolist() == [0, 1, 2, 3, 4, 5, 6, 8, 10]


def tuples(text: str) -> list[Any]:
    """Return the lists in a text as tuples."""
    found = json.loads(f"[{text}]")
    return [tuple(part) if isinstance(part, list) else part for part in found]


@pytest.mark.parametrize(("text", "lines"), MISTAKES["Tori"])
def test_bad_machines_are_refused(text, lines):
    assert lines_said(Torus, *tuples(text)) == lines


@pytest.mark.parametrize(("text", "lines"), MISTAKES["Prisms"])
def test_prisms_outside_are_refused(text, lines):
    prism = Prism(*tuples(text))
    assert lines_said(prism.require_inside, Torus((6, 4), (True, False))) == lines


@settings(deadline=None, max_examples=60)
@given(tori_with_prism())
def test_prisms_are_boxes_and_their_links_those_of_all_pairs(case):
    torus, prism = case
    offset = (torus.coordinates - np.asarray(prism.origin)) % np.asarray(torus.shape)
    inside = np.flatnonzero((offset < np.asarray(prism.extents)).all(axis=1)).tolist()
    assert sorted(prism.routers(torus).tolist()) == inside
    assert len(inside) == prism.volume
    links = prism_links(torus, prism).tolist()
    assert links == links_of_all_pairs(torus, inside)
    leaving = {k // torus.num_routers for k in links if k % torus.num_routers not in inside}
    assert prism.num_wrapping_dims(torus) == len(leaving)
    assert prism.max_hops(torus) == max(torus.distances_from(r)[inside].max() for r in inside)


@settings(deadline=None)
@given(st.integers(0, 9).flatmap(tori_with_routers))
def test_scattered_links_are_those_of_all_pairs(case):
    torus, routers = case
    expected = links_of_all_pairs(torus, sorted(set(routers)))
    assert scattered_links(torus, routers).tolist() == expected


@given(tori(max_routers=60), st.data())
def test_origins_are_all_canonical_and_every_set_of_routers_stands_once(torus, data):
    extents = tuple(data.draw(st.integers(1, n)) for n in torus.shape)
    origins = all_origins(torus, extents)
    for origin in origins:
        Prism(origin, extents).require_inside(torus)
    sets = {frozenset(Prism(o, extents).routers(torus).tolist()) for o in origins}
    assert len(sets) == len(origins)
    assert all_origins(torus, tuple(n + 1 for n in torus.shape)) == []


@pytest.mark.parametrize(
    ("extents", "expected"),
    [
        *(((24, n, 24), Fraction(1, 24)) for n in range(1, 7)),  # thin slabs
        *(((24, n, 24), Fraction(1, 4 * n)) for n in range(6, 13)),  # up to half the ring
        *(((24, n, 24), Fraction(n - 1, 46 * n)) for n in range(13, 24)),  # beyond
        ((12, 6, 12), Fraction(1, 24)),
        ((6, 24, 24), Fraction(1, 48)),
        ((24, 24, 24), Fraction(1, 48)),
    ],
)
def test_bisection_bandwidth_is_fiedlers(extents, expected):
    assert bisection_per_node(GEMINI, extents) / GEMINI.bandwidth[0] == expected


def test_a_mesh_has_no_second_way():
    mesh = Torus((8, 8), (False, False))
    assert bisection_bandwidth(mesh, (8, 8)) == 8
    assert bisection_bandwidth(Torus((8, 8)), (8, 8)) == 16
    assert bisection_bandwidth(mesh, (8, 2)) == 2


@given(tori_with_routers(4), st.lists(st.integers(0, 3), max_size=9))
def test_arms_of_trees_have_the_links_of_all_routes(case, drawn):
    """Two trees from routers a and b: a link once, each way by itself."""
    torus, routers = case
    tree = np.array([k % 2 for k in range(len(drawn))], dtype=np.int64)
    members, roots = np.array(routers)[drawn], np.array(routers[:2])
    if not drawn:
        members = tree
    hop, link, way = routed(torus, roots[tree], members)
    expected = set(zip(tree[hop].tolist(), link.tolist(), way.tolist(), strict=True))
    arms = tree_arms(torus, roots, tree, members)
    found = []
    for d, parts in enumerate(arms):
        for t, router, up, down in zip(*(part.tolist() for part in parts), strict=True):
            at = torus.coordinates[router].tolist()
            for k, sign in [(k, 1) for k in range(up)] + [(-k - 1, -1) for k in range(down)]:
                low = [*at[:d], (at[d] + k) % torus.shape[d], *at[d + 1 :]]
                found.append((t, d * torus.num_routers + torus.router(low), sign))
    assert len(found) == len(expected)
    assert set(found) == expected
