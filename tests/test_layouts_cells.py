"""Layouts: where tasks lie, how layers are stacked, and what crosses routers."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topoplace.cli.grid import grid_application
from topoplace.machine import Torus
from topoplace.mapping.graph import grid_of
from topoplace.mapping.layouts import (
    cells,
    enumerate_layouts,
    ideal_hop_bytes,
    metrics_of,
    node_slots,
    off_router_bytes,
)
from topoplace.mapping.layouts.layout import layer_order
from topoplace.snapshot.schema import GridApplication


def test_stagger_shifts_odd_layers_and_must_fit():
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


def test_neighbours_across_a_fold_lie_on_one_pencil():
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


@pytest.mark.parametrize("ring", [False, True])
def test_layer_orders_cost_no_more_than_any_other(ring):
    beside = [(k, k + 3, 5) for k in range(3)] + [(k, k + 1, 2) for k in (0, 1, 3, 4)]

    def cost(order):
        apart = [(abs(order[a] - order[b]), weight) for a, b, weight in beside]
        return sum(weight * (min(d, 6 - d) if ring else d) for d, weight in apart)

    least = min(cost(order) for order in itertools.permutations(range(6)))
    assert cost(layer_order((2, 3), (5, 2), (False, False), ring)) == least


def test_many_layers_are_stacked_row_by_row_or_column_by_column():
    order = layer_order((4, 3), (9, 1), (False, False), False)
    assert sorted(order) == list(range(12))
    columns = np.array(order).reshape(4, 3)
    assert (np.abs(np.diff(columns, axis=0)) == 1).all()


def random_case(seed):
    """Return a grid, tasks per node, and a machine of three dimensions."""
    rng = np.random.default_rng(seed)
    dims = int(rng.integers(1, 5))
    shape = rng.integers(1, (60, 14, 7, 4)[dims - 1] + 1, size=dims).tolist()
    application = GridApplication(
        shape=shape,
        periodic=(rng.random(dims) < 0.5).tolist(),
        bytes=rng.integers(0, 4, size=(dims, 2)).tolist(),
        stencil="full" if (full := rng.random() < 0.5) else "nearest",
        diagonal_bytes=[1] * (dims - 1) if full else [],
    )
    wraps = tuple((rng.random(3) < 0.5).tolist())
    torus = Torus(tuple(rng.integers(1, 7, size=3).tolist()), wraps, None, int(rng.integers(1, 4)))
    return grid_of(application), int(rng.integers(1, 10)), torus


@settings(max_examples=120, deadline=None)
@given(st.integers(0, 1 << 32))
def test_every_layout_places_every_task_and_counts_its_bytes(seed):
    virtual, tasks_per_node, torus = random_case(seed)
    nodes = torus.nodes_per_router
    graph = virtual.graph()
    found = enumerate_layouts(
        virtual, tasks_per_node, nodes, torus.shape, rings=torus.wrap, stagger=True
    )
    assert len(set(found)) == len(found)
    between = off_router_bytes(found[:12], virtual)
    for layout, sent in zip(found, between, strict=False):
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
        hops = torus.hops(routers[graph.sources], routers[graph.targets])
        assert sent == graph.bytes[hops > 0].sum()
        assert ideal_hop_bytes(layout, virtual, torus) == graph.bytes @ hops
        metrics = metrics_of(layout, virtual, tasks_per_node)
        assert metrics.percent_used == Fraction(int((counts > 0).sum()), math.prod(layout.extents))
        assert 0 < metrics.qual_metric <= 1


@pytest.mark.parametrize("seed", range(80))
def test_layouts_are_complete(seed):
    """Direct layouts against a plain search over all N and permutations, alike ones merged."""
    virtual, tasks_per_node, torus = random_case(seed)
    if virtual.num_dims != 3:
        return
    most = tasks_per_node * torus.nodes_per_router
    expected = set()
    for on in itertools.permutations(virtual.shape):
        for partitions in itertools.product(*(range(1, n + 1) for n in on)):
            logical = tuple(-(-n // p) for n, p in zip(on, partitions, strict=True))
            even = any(p % torus.nodes_per_router == 0 for p in partitions)
            fits = (np.array(logical) <= torus.shape).all()
            if fits and even and 3 * most <= 4 * math.prod(partitions) <= 4 * most:
                expected.add((logical, partitions))
    found = enumerate_layouts(virtual, tasks_per_node, torus.nodes_per_router, torus.shape)
    assert {(layout.logical, layout.partitions) for layout in found} == expected
