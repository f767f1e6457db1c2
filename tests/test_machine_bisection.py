"""Bisection bandwidth: the values of Fiedler 2014, in x-link bandwidth per node."""

from __future__ import annotations

from fractions import Fraction

import pytest

from topoplace.machine import Torus, bisection_bandwidth, bisection_per_node

GEMINI = Torus((24, 24, 24), bandwidth=(2, 1, 2), nodes_per_router=2)
X_LINK = GEMINI.bandwidth[0]


def per_node(*extents: int) -> Fraction:
    return bisection_per_node(GEMINI, extents) / X_LINK


@pytest.mark.parametrize("n", range(1, 7))
def test_thin_slabs(n):
    assert per_node(24, n, 24) == Fraction(1, 24)


@pytest.mark.parametrize("n", range(6, 13))
def test_slabs_of_up_to_half_the_ring(n):
    assert per_node(24, n, 24) == Fraction(1, 4 * n)


@pytest.mark.parametrize("n", range(13, 24))
def test_slabs_beyond_half_the_ring(n):
    assert per_node(24, n, 24) == Fraction(n - 1, 46 * n)


def test_small_slab_and_full_system():
    assert per_node(12, 6, 12) == Fraction(1, 24)
    assert per_node(24, 24, 24) == Fraction(1, 48)


def test_yz_slab_is_worse_than_xz_slab():
    assert per_node(6, 24, 24) == Fraction(1, 24) / 2 < per_node(24, 6, 24)


def test_a_mesh_has_no_second_way():
    mesh = Torus((8, 8), (False, False))
    assert bisection_bandwidth(mesh, (8, 8)) == 8
    assert bisection_bandwidth(Torus((8, 8)), (8, 8)) == 16
    assert bisection_bandwidth(mesh, (8, 2)) == 2
