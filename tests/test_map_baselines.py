"""The constructive mapping methods, against what the papers print of them."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import topoplace as tp
from baseline_instances import grid, problem_on
from topoplace.errors import InputError
from topoplace.machine import Torus
from topoplace.machine.node_orders import ORDERS, block_order
from topoplace.mapping.evaluate import evaluate
from topoplace.mapping.graph import grid_of
from topoplace.mapping.mapped import mapped_by
from topoplace.mapping.methods.constructions import (
    cells_on_prism,
    map_blocks,
    map_fold_2d,
    map_random_blocks,
)
from topoplace.mapping.methods.orders import (
    grid_order,
    map_default,
    map_grid_order,
    map_round_robin,
)
from topoplace.mapping.problem import require_mapping
from topoplace.solving import Options


def mapped(mapper, problem, options=None):
    """Run a method and check that what it returns is a mapping."""
    nodes = mapped_by(mapper, problem, options or Options())
    require_mapping(problem, nodes)
    return nodes


# Bhatele 2008, Table 3: chares of 16^3 and of 32^3 of a periodic domain of 512^3 elements. All
# directed messages count, those around the domain with their way back across the whole mesh.
XT3 = [
    ((4, 4, 8), 53248, 13312),
    ((4, 8, 8), 69632, 17408),
    ((8, 8, 8), 86016, 21504),
    ((8, 8, 16), 118784, 29696),
]


@pytest.mark.parametrize(("mesh", "fine", "coarse"), XT3)
def test_blocks_give_the_hop_counts_of_bhatele_2008_table_3(mesh, fine, coarse):
    for side, hops in ((32, fine), (16, coarse)):
        limit = side**3 // int(np.prod(mesh))
        problem = problem_on(grid((side,) * 3, True), mesh, wrap=False, tasks_per_node=limit)
        assert evaluate(problem, mapped(map_blocks, problem)).hops == hops


# Bhatele 2008, Table 4: processors, torus (the way the paper used it: grid side of 64 or 32
# tasks along the first, the long side along the second, layers along the third), hops for chares
# of 128^2 and 256^2. One billion elements as 131072 x 8192 give all twelve.
BGL = [
    ((8, 8, 8), 25600, 12800),
    ((8, 8, 16), 34816, 17408),
    ((8, 16, 16), 51200, 25600),
    ((8, 32, 16), 83968, 41984),
    ((16, 32, 16), 100352, 50176),
    ((32, 32, 16), 133120, 66560),
]


@pytest.mark.parametrize(("torus", "fine", "coarse"), BGL)
def test_fold_2d_is_no_worse_than_bhatele_2008_table_4(torus, fine, coarse):
    for shape, hops in (((1024, 64), fine), ((512, 32), coarse)):
        limit = shape[0] * shape[1] // int(np.prod(torus))
        problem = problem_on(grid(shape, True), torus, tasks_per_node=limit)
        way = ((1, 2), (0,))
        cells = cells_on_prism(grid_of(grid(shape, True)), way, torus, reverse=False)
        cut = cells @ np.asarray(problem.torus.strides)
        assert evaluate(problem, cut).hops == hops
        assert evaluate(problem, mapped(map_fold_2d, problem)).hops < hops


def test_grid_order_maps_the_cells_of_fiedler_2014_to_nodes():
    column_major = grid_order((8, 8), (4, 2), column_major=True).tolist()
    assert column_major[:12] == [0, 1, 2, 3, 8, 9, 10, 11, 4, 5, 6, 7]
    assert grid_order((8, 8), (4, 2)).tolist()[:10] == [0, 1, 8, 9, 16, 17, 24, 25, 2, 3]
    problem = problem_on(grid((8, 8)), (8,), tasks_per_node=8)
    x, y = np.divmod(np.arange(64), 8)
    for column_major, node in ((False, x // 4 * 4 + y // 2), (True, x // 4 + y // 2 * 2)):
        options = Options(cell=(4, 2), column_major=column_major)
        assert mapped(map_grid_order, problem, options).tolist() == node.tolist()


@given(st.data())
def test_grid_order_visits_cells_one_after_the_other(data):
    shape = tuple(data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=4)))
    cell = tuple(data.draw(st.integers(1, n)) for n in shape)
    order = grid_order(shape, cell)
    assert sorted(order.tolist()) == list(range(int(np.prod(shape))))
    corners = np.stack(np.unravel_index(order, shape), axis=1) // np.asarray(cell)
    keys = [key for key, _ in itertools.groupby(map(tuple, corners.tolist()))]
    assert keys == sorted(set(keys))


def test_a_cell_that_leaves_places_keeps_nodes_whole_while_there_are_enough():
    for shape, load in (((6, 6), 6), ((7, 6), 7)):
        nodes = mapped(
            map_grid_order, problem_on(grid(shape), (6,), tasks_per_node=7), Options(cell=(3, 2))
        )
        assert np.bincount(nodes).tolist() == [load] * 6


def test_default_and_round_robin_by_hand():
    problem = problem_on(grid((7,)), (6,), tasks_per_node=2, nodes="1-5")
    assert mapped(map_default, problem).tolist() == [1, 1, 2, 2, 3, 3, 4]
    assert mapped(map_round_robin, problem).tolist() == [1, 2, 3, 4, 1, 2, 3]


def test_random_blocks_keep_boxes_together_and_follow_the_seed():
    problem = problem_on(grid((8, 8)), (5, 5), tasks_per_node=4)
    nodes = mapped(map_random_blocks, problem, Options(seed=1))
    boxes = nodes.reshape(4, 2, 4, 2)
    assert (boxes == boxes[:, :1, :, :1]).all()
    assert len(set(nodes.tolist())) == 16
    assert (mapped(map_random_blocks, problem, Options(seed=1)) == nodes).all()
    assert (mapped(map_random_blocks, problem, Options(seed=2)) != nodes).any()


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_blocks_and_folds_take_the_prism_of_least_hop_bytes(data):
    """No other extents give less: the price they are chosen by is the hop-bytes themselves."""
    flat = data.draw(st.booleans())
    shape = tuple(data.draw(st.integers(2, 6)) for _ in range(2 if flat else 3))
    application = grid(shape, data.draw(st.booleans()))
    machine = tuple(data.draw(st.integers(2, 4)) for _ in range(3))
    limit = max(1, -(-int(np.prod(shape)) // data.draw(st.integers(1, 8))))
    wrap = data.draw(st.booleans())

    def hops(nodes=None):
        options = {"wrap": wrap, "tasks_per_node": limit, "nodes": nodes}
        try:
            problem = problem_on(application, machine, **options)
            return evaluate(problem, mapped(map_fold_2d if flat else map_blocks, problem)).hops
        except InputError:
            return math.inf

    least = hops()
    for used in itertools.product(*[range(1, n + 1) for n in machine]):
        inside = np.asarray(used) > np.indices(machine).reshape(3, -1).T
        assert least <= hops(",".join(map(str, np.flatnonzero(inside.all(axis=1)))))


def test_blocks_avoid_unusable_routers_or_say_what_else_to_use():
    free = ",".join(str(n) for n in range(64) if n != 21)
    problem = problem_on(grid((4, 4, 3)), (4, 4, 4), nodes=free)
    assert evaluate(problem, mapped(map_blocks, problem)).max_hops == 1
    full = problem_on(grid((4, 4, 4)), (4, 4, 5), nodes=",".join(map(str, range(1, 80, 1))))
    assert evaluate(full, mapped(map_blocks, full)).max_hops == 1
    holes = problem_on(grid((3, 3, 3)), (4, 4, 4), nodes=",".join(map(str, range(0, 64, 2))))
    with pytest.raises(InputError, match=r"full prism of usable routers .* pencils"):
        map_blocks(holes, Options())


@pytest.mark.parametrize(
    ("mapper", "shape", "machine", "cell", "message"),
    [
        (map_blocks, (2, 2, 2, 2), (2, 2, 4), None, "at most the machine's 3 dimensions"),
        (map_fold_2d, (2, 2, 2), (2, 2, 2), None, "two dimensions"),
        (map_fold_2d, (4, 4), (4, 4), None, "at least three dimensions"),
        (map_random_blocks, (7, 7), (5,), None, "at most 5 equal boxes of at most 10 tasks"),
        *(
            (map_grid_order, (8, 8), (64,), cell, "cell: expected 2 sides from 1 to .*, 8x8")
            for cell in ((4,), (9, 1), (0, 2), (2, 2, 2))
        ),
    ],
)
def test_what_a_method_cannot_map_is_bad_input(mapper, shape, machine, cell, message):
    limit = 10 if machine == (5,) else 1
    problem = problem_on(grid(shape), machine, tasks_per_node=limit)
    with pytest.raises(InputError, match=message):
        mapper(problem, Options(cell=cell))


# ---- Orders of nodes -----------------------------------------------------------------------------


def test_the_largest_hops_of_table_3_are_those_of_scheme_2y() -> None:
    """Enos 2014 IV.B: 9 for the default and 16 for grid_order, in a feature of 12x8x12 routers."""
    found = [
        tp.map(
            tp.grid(32, 32, 32),
            "blue_waters",
            method,
            tasks_per_node=32,
            within="12x8x12@0,12,0",
            cell=cell,
            node_order="alps-2y",
            time_limit=0.1,
        )
        for method, cell in (("default", None), ("grid-order", (4, 2, 4)))
    ]
    assert [one.solution.figures.max_hops for one in found] == [9, 16]


def test_nodes_are_filled_in_the_order_asked_for() -> None:
    torus = Torus((4, 4, 16), nodes_per_router=2)
    for name, digits in ORDERS.items():
        found = tp.map(tp.grid(16, 8), "torus:4x4x16:2", "default", node_order=name)
        listed = torus.nodes_of(block_order(torus, digits))
        assert found.solution.nodes == listed[:128].tolist()
    with pytest.raises(InputError, match="--node-order"):
        tp.map(tp.grid(4), "torus:4", "default", node_order="alps")
    with pytest.raises(InputError, match="a torus or mesh"):
        tp.map(tp.grid(4), "tree:2x2", "default", node_order="alps-2y")
