"""Layouts: where tasks lie, how layers are stacked, and what crosses routers."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topoplace.cli.grid import grid_application
from topoplace.machine import Torus
from topoplace.mapping.evaluate import message_hops
from topoplace.mapping.graph import VirtualGrid, grid_of
from topoplace.mapping.layouts import (
    cells,
    enumerate_layouts,
    ideal_hop_bytes,
    metrics_of,
    node_slots,
    off_router_bytes,
)
from topoplace.mapping.layouts.layout import layer_order


def test_stagger_shifts_odd_layers_and_must_fit() -> None:
    virtual = grid_of(grid_application("110x120"))
    plain = enumerate_layouts(virtual, 16, 2, (12, 4, 12), balanced=True)
    both = enumerate_layouts(virtual, 16, 2, (12, 4, 12), balanced=True, stagger=True)
    assert set(plain) < set(both)
    assert len(both) == 2 * len(plain)
    assert not [
        layout
        for layout in enumerate_layouts(virtual, 16, 2, (11, 4, 11), balanced=True, stagger=True)
        if layout.stagger and layout.logical[0] == 11
    ]
    shifted = next(layout for layout in both if layout.stagger)
    at = cells(shifted, virtual)
    for layer in range(4):
        in_layer = at[at[:, 1] == layer]
        assert in_layer[:, 0].min() == layer % 2
        assert in_layer[:, 0].max() == shifted.extents[0] - 2 + layer % 2


def test_neighbours_across_a_fold_lie_on_one_pencil() -> None:
    virtual = grid_of(grid_application("110x120"))
    for layout in enumerate_layouts(virtual, 16, 2, (12, 4, 12), balanced=True):
        at = cells(layout, virtual).reshape(110, 120, 3)
        for dim, axis in ((0, layout.axes[0]), (2, layout.axes[2])):
            run = layout.logical[dim] * layout.partitions[dim]
            lines = np.moveaxis(at, axis, 0)
            for fold in range(1, layout.tiles[dim]):
                before, after = lines[fold * run - 1], lines[fold * run]
                assert (before[:, [0, 2]] == after[:, [0, 2]]).all()
                assert (before[:, 1] != after[:, 1]).all()


def test_layers_of_four_supertiles_lie_in_a_cycle_on_a_ring() -> None:
    order = layer_order((2, 2), (3, 2), (False, False), True)
    for a, b in ((0, 1), (0, 2), (1, 3), (2, 3)):
        assert abs(order[a] - order[b]) in (1, 3)


@pytest.mark.parametrize("ring", [False, True])
def test_layer_orders_cost_no_more_than_any_other(ring: bool) -> None:
    weights = (5, 2)

    def cost(order: tuple[int, ...]) -> int:
        total = 0
        for a, b, weight in (
            *((k, k + 3, weights[0]) for k in range(3)),
            *((k, k + 1, weights[1]) for k in (0, 1, 3, 4)),
        ):
            apart = abs(order[a] - order[b])
            total += weight * (min(apart, 6 - apart) if ring else apart)
        return total

    least = min(cost(order) for order in itertools.permutations(range(6)))
    assert cost(layer_order((2, 3), weights, (False, False), ring)) == least


def test_many_layers_are_stacked_row_by_row_or_column_by_column() -> None:
    order = layer_order((4, 3), (9, 1), (False, False), False)
    assert sorted(order) == list(range(12))
    columns = np.array(order).reshape(4, 3)
    assert (np.abs(np.diff(columns, axis=0)) == 1).all()


@st.composite
def cases(draw: st.DrawFn) -> tuple[VirtualGrid, int, Torus]:
    dims = draw(st.integers(1, 4))
    most = {1: 60, 2: 14, 3: 7, 4: 4}[dims]
    extents = draw(st.lists(st.integers(1, most), min_size=dims, max_size=dims))
    text = "x".join(map(str, extents))
    periodic = "".join(letter for letter in "xyzt"[:dims] if draw(st.booleans()))
    sizes = ",".join(f"{draw(st.integers(0, 3))}/{draw(st.integers(0, 3))}" for _ in extents)
    stencil = draw(st.sampled_from(["nearest", "full"]))
    virtual = grid_of(grid_application(text, periodic, sizes, stencil))
    routers = tuple(draw(st.lists(st.integers(1, 6), min_size=3, max_size=3)))
    wraps = tuple(draw(st.lists(st.booleans(), min_size=3, max_size=3)))
    torus = Torus(routers, wraps, nodes_per_router=draw(st.integers(1, 3)))
    return virtual, draw(st.integers(1, 9)), torus


@settings(max_examples=120, deadline=None)
@given(cases())
def test_every_layout_places_every_task_and_counts_its_bytes(
    case: tuple[VirtualGrid, int, Torus],
) -> None:
    virtual, tasks_per_node, torus = case
    nodes = torus.nodes_per_router
    graph = virtual.graph()
    found = enumerate_layouts(
        virtual, tasks_per_node, nodes, torus.shape, rings=torus.wrap, stagger=True
    )
    assert len(set(found)) == len(found)
    for layout in found[:12]:
        at = cells(layout, virtual)
        slots = node_slots(layout, virtual)
        assert at.shape == (virtual.num_tasks, 3)
        assert (at >= 0).all()
        assert (at < layout.extents).all()
        assert all(e <= n for e, n in zip(layout.extents, torus.shape, strict=True))
        assert layout.cell_tasks * 4 >= 3 * nodes * tasks_per_node
        routers = at @ np.array(torus.strides)
        counts = np.bincount(routers, minlength=torus.num_routers)
        assert counts.max() <= layout.cell_tasks <= nodes * tasks_per_node
        on_node = np.bincount(routers * nodes + slots, minlength=torus.num_nodes)
        assert slots.max() < nodes
        assert on_node.max() <= tasks_per_node
        if layout.is_balanced(virtual.shape):
            assert set(counts[counts > 0]) == {layout.cell_tasks}
            assert len(counts[counts > 0]) == layout.num_cells
            assert len(set(on_node[on_node > 0])) == 1
        hops = message_hops(torus, routers[graph.sources], routers[graph.targets])
        assert off_router_bytes(layout, virtual) == graph.bytes[hops > 0].sum()
        assert ideal_hop_bytes(layout, virtual, torus) == graph.bytes @ hops
        metrics = metrics_of(layout, virtual, tasks_per_node)
        assert metrics.percent_used == Fraction(
            int((counts > 0).sum()), int(np.prod(layout.extents))
        )
        assert 0 < metrics.qual_metric <= 1


@settings(max_examples=40, deadline=None)
@given(cases())
def test_layouts_are_complete(case: tuple[VirtualGrid, int, Torus]) -> None:
    """Direct layouts against a plain search over all N and permutations, alike ones merged."""
    virtual, tasks_per_node, torus = case
    if virtual.num_dims != 3:
        return
    most = tasks_per_node * torus.nodes_per_router
    expected = set()
    for axes in itertools.permutations(range(3)):
        on = [virtual.shape[axis] for axis in axes]
        for partitions in itertools.product(*(range(1, n + 1) for n in on)):
            count = int(np.prod(partitions))
            logical = tuple(-(-n // p) for n, p in zip(on, partitions, strict=True))
            even = any(p % torus.nodes_per_router == 0 for p in partitions)
            fits = all(e <= n for e, n in zip(logical, torus.shape, strict=True))
            if fits and even and 3 * most <= 4 * count <= 4 * most:
                expected.add((logical, partitions))
    found = enumerate_layouts(virtual, tasks_per_node, torus.nodes_per_router, torus.shape)
    assert {(layout.logical, layout.partitions) for layout in found} == expected
