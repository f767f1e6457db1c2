"""The topology of a job: what its methods say, against the definitions tried one by one."""

from __future__ import annotations

import itertools
from collections import deque
from pathlib import Path

import numpy as np
import pytest

import topoplace as tp
from mapping_results import solved
from topoplace.machine import Topology, Torus
from topoplace.mapping.evaluate import link_loads
from topoplace.mapping.problem import prepare_mapping
from topoplace.mapping.rankfiles import write_mapping
from topoplace.snapshot.schema import HierarchyModel, MatrixModel, TreeModel
from topoplace.types import IntArray


def random_torus(rng: np.random.Generator) -> Torus:
    dims = int(rng.integers(1, 5))
    shape = tuple(rng.integers(1, 6, size=dims).tolist())
    wrap = tuple((rng.random(dims) < 0.5).tolist())
    return Torus(shape, wrap, nodes_per_router=int(rng.integers(1, 3)))


def random_topology(seed: int) -> Topology:
    """Return ranks anywhere on a random torus or mesh, several on a node."""
    rng = np.random.default_rng(seed)
    torus, cores = random_torus(rng), int(rng.integers(1, 4))
    places = np.repeat(np.arange(torus.num_nodes), cores)
    num = int(rng.integers(1, len(places) + 1))
    return Topology(torus, rng.permutation(places)[:num], cores)


def links_of(torus: Torus) -> dict[int, tuple[int, int]]:
    """Return the lower and the upper router of every link."""
    found = {}
    for router, d in itertools.product(range(torus.num_routers), range(torus.num_dims)):
        coords = list(torus.coords(router))
        coords[d] += 1
        if coords[d] == torus.shape[d] and (not torus.wrap[d] or torus.shape[d] == 1):
            continue
        coords[d] %= torus.shape[d]
        found[d * torus.num_routers + router] = router, torus.router(coords)
    return found


def walked(torus: Torus, start: int) -> IntArray:
    """Return the links from one router to every router, by breadth-first search."""
    near: dict[int, set[int]] = {}
    for low, high in links_of(torus).values():
        near.setdefault(low, set()).add(high)
        near.setdefault(high, set()).add(low)
    away = {start: 0}
    queue = deque([start])
    while queue:
        at = queue.popleft()
        for other in near.get(at, ()):
            if other not in away:
                away[other] = away[at] + 1
                queue.append(other)
    return np.array([away[router] for router in range(torus.num_routers)])


@pytest.mark.parametrize("seed", range(20))
def test_hops_neighbours_and_orders_are_those_of_a_walk(seed: int) -> None:
    topology = random_topology(seed)
    torus = topology.machine
    assert isinstance(torus, Torus)
    routers = topology.nodes // torus.nodes_per_router
    every = np.arange(topology.num_ranks)
    for rank in {0, topology.num_ranks // 2, topology.num_ranks - 1}:
        away = walked(torus, int(routers[rank]))[routers]
        assert (topology.hops(rank, every) == away).all()
        order = sorted(every.tolist(), key=lambda r: (away[r], r))
        assert topology.sorted_by_hops(rank).tolist() == order
        some = np.random.default_rng(seed).permutation(every)[:5]
        assert topology.closest(rank, some) == min(some.tolist(), key=lambda r: away[r])
        elsewhere = topology.nodes != topology.nodes[rank]
        assert topology.neighbours(rank).tolist() == np.flatnonzero(elsewhere & (away < 2)).tolist()
        wide = np.flatnonzero(elsewhere & (away <= 3)).tolist()
        assert topology.neighbours(rank, within=3).tolist() == wide


@pytest.mark.parametrize("seed", range(20))
def test_routes_are_shortest_and_dimension_ordered(seed: int) -> None:
    topology = random_topology(seed)
    torus = topology.machine
    assert isinstance(torus, Torus)
    ends = links_of(torus)
    rng = np.random.default_rng(seed)
    pairs = rng.integers(topology.num_ranks, size=(10, 2))
    for rank, other in pairs.tolist():
        route = topology.route(rank, other)
        assert len(route.links) == topology.hops(rank, other) == len(route.routers) - 1
        first, last = (topology.nodes[r] // torus.nodes_per_router for r in (rank, other))
        assert (route.routers[0], route.routers[-1]) == (first, last)
        steps = zip(itertools.pairwise(route.routers), route.links, route.ways, strict=True)
        for (a, b), link, way in steps:
            assert ends[int(link)] == ((a, b) if way > 0 else (b, a))
        dims = (route.links // torus.num_routers).tolist()
        assert dims == sorted(dims)
        for d, n in enumerate(torus.shape):
            ways = route.ways[np.array(dims, dtype=int) == d]
            assert len(set(ways.tolist())) <= 1
            if torus.wrap[d] and 2 * len(ways) == n:
                assert (ways == 1).all()
    message, link, way = topology.links(pairs[:, 0], pairs[:, 1])
    routes = [topology.route(a, b) for a, b in pairs.tolist()]
    assert link.tolist() == np.concatenate([r.links for r in routes]).tolist()
    assert np.bincount(message, minlength=10).tolist() == [len(r.links) for r in routes]
    routers = topology.nodes[pairs] // torus.nodes_per_router
    loads = link_loads(torus, routers[:, 0], routers[:, 1], np.ones(10, dtype=np.int64))
    for side, direction in ((0, 1), (1, -1)):
        found = np.bincount(link[way == direction], minlength=torus.num_links)
        assert (found == loads[side].ravel()).all()


@pytest.mark.parametrize("seed", range(30))
def test_coordinates_lie_in_the_least_box_and_lead_back(seed: int) -> None:
    topology = random_topology(seed)
    torus = topology.machine
    assert isinstance(torus, Torus)
    every = np.arange(topology.num_ranks)
    at = topology.coordinates(every)
    assert (at < [*topology.shape, topology.slots]).all()
    assert (topology.rank_at(at) == every).all()
    box = list(itertools.product(*map(range, (*topology.shape, topology.slots))))
    there = topology.rank_at(np.array(box))
    assert sorted(there[there >= 0].tolist()) == every.tolist()
    machine = topology.machine_coordinates(every)
    assert ((at[:, :-1] + topology.origin) % torus.shape == machine).all()
    for d, (n, extent) in enumerate(zip(torus.shape, topology.shape, strict=True)):
        used = set(machine[:, d].tolist())
        starts = range(n) if torus.wrap[d] else range(n - extent + 2)
        fits = [
            e
            for e in range(1, n + 1)
            if any(used <= {(s + k) % n for k in range(e)} for s in starts)
        ]
        assert extent == fits[0]
        assert topology.wrap[d] == (torus.wrap[d] and extent == n)
    for rank in every.tolist():
        node, slot = int(topology.nodes[rank]), int(at[rank, -1])
        before = topology.ranks_on(node).tolist().index(rank)
        assert slot == node % torus.nodes_per_router * topology.cores + before


def test_a_partition_over_the_edge_of_a_ring() -> None:
    """Worked by hand: layers 7, 0 and 1 of a ring of 8, in an open box of 3."""
    topology = tp.topology(tp.torus(8, 2), ranks=[14, 0, 2, 3], cores=2)
    assert topology.origin == (7, 0)
    assert topology.shape == (3, 2)
    assert topology.wrap == (False, True)
    assert topology.coordinates([0, 1, 3]).tolist() == [[0, 0, 0], [1, 0, 0], [2, 1, 0]]
    assert topology.rank_at([0, 1, 0]) == -1
    assert topology.hops(0, 3) == 3
    assert topology.route(0, 3).routers.tolist() == [14, 0, 2, 3]
    assert "torus 8x2: 4 ranks on 4 nodes, 3x2 routers at 7,0, closed in y" in repr(topology)


def test_ranks_fill_the_nodes_of_a_machine_in_smp_order() -> None:
    topology = tp.topology("torus:4x4x4:2", cores=3, num_ranks=50)
    assert topology.nodes.tolist() == [rank // 3 for rank in range(50)]
    assert topology.slots == 6
    assert topology.num_nodes == 17
    assert topology.coordinates(49).tolist() == [0, 2, 0, 1]


def test_trees_count_switches() -> None:
    topology = tp.topology(tp.tree(2, 3, 4), cores=2)
    assert topology.shape == (2, 3, 4)
    assert topology.hops([0, 0, 0, 0], [1, 2, 8, 24]).tolist() == [0, 2, 4, 6]
    assert topology.coordinates(27).tolist() == [1, 0, 1, 1]
    assert topology.rank_at([1, 0, 1, 1]) == 27
    assert topology.neighbours(0).tolist() == [2, 3, 4, 5, 6, 7]
    with pytest.raises(tp.InputError, match="a torus or mesh, whose routes are known"):
        topology.route(0, 1)
    forest = {
        "kind": "tree",
        "name": "two",
        "switches": [{"name": "a", "nodes": "n[0-1]"}, {"name": "b", "nodes": "n[2-3]"}],
    }
    apart = tp.topology(TreeModel.model_validate(forest))
    assert apart.sorted_by_hops(3).tolist() == [3, 2, 0, 1]
    assert apart.neighbours(2).tolist() == [3]
    with pytest.raises(tp.InputError, match="ranks below a common switch"):
        apart.hops(0, 2)


def test_hierarchies_count_levels_up_and_down() -> None:
    hosts = [
        {"hosts": f"n{b}{r}[0-{size}]", "domains": [f"b{b}", f"r{r}"], "capacity": {"slots": 2}}
        for b, r, size in ((0, 0, 1), (0, 1, 0), (1, 0, 2))
    ]
    machine = {"kind": "hierarchy", "name": "h", "levels": ["block", "rack", "host"]}
    model = HierarchyModel.model_validate(machine | {"hosts": hosts})
    topology = tp.topology(model)
    assert topology.num_ranks == 6
    assert topology.shape == (2, 2, 3)
    assert topology.hops(0, [0, 1, 2, 3]).tolist() == [0, 2, 4, 6]
    assert topology.coordinates(5).tolist() == [1, 0, 2, 0]
    assert topology.rank_at([1, 0, 2, 0]) == 5
    assert topology.neighbours(3).tolist() == [4, 5]


def test_a_matrix_may_have_a_way_back_of_another_length() -> None:
    model = MatrixModel(kind="matrix", name="m", distances=[[0, 1, 5], [2, 0, 1], [1, 1, 0]])
    topology = tp.topology(model)
    assert topology.hops([0, 2], [2, 0]).tolist() == [5, 1]
    assert topology.sorted_by_hops(2).tolist() == [2, 0, 1]


def test_jobs_of_snapshots_and_results(tmp_path: Path) -> None:
    model = tp.Model(tp.torus(4, 4, 4), name="now")
    model.add_running("old", origin=(3, 0, 0), extents=(1, 4, 4))
    model.add_request("new", 16)
    old = tp.topology(model, job="old")
    assert (old.shape, old.origin, old.wrap) == ((1, 4, 4), (3, 0, 0), (False, True, True))
    assert tp.topology(model).num_ranks == 48
    placed = tp.place(model, time_limit=20)
    path = placed.save(tmp_path / "placed.json")
    new = tp.topology(path, job="new", cores=2)
    assert new.nodes.tolist() == np.repeat(placed.placements[0].nodes, 2).tolist()
    assert tp.topology(placed).num_ranks == 16  # the one job that starts
    with pytest.raises(tp.InputError, match="gone"):
        tp.topology(placed, job="gone")
    trees = tp.Model(tp.tree(3, 4))
    trees.add_running("old", ["n1", "n0"])
    trees.add_request("new", 4, patterns={"ring": 50})
    assert tp.topology(trees, job="old").nodes.tolist() == [1, 0]
    allocated = tp.place(trees)
    numbers = [int(name[1:]) for name in allocated.solution.allocations[0].nodes]
    assert tp.topology(allocated, job="new").nodes.tolist() == numbers


def test_the_tasks_of_a_mapping_are_its_ranks(tmp_path: Path) -> None:
    result = solved("blocks")
    topology = tp.topology(result)
    assert topology.nodes.tolist() == result.solution.nodes
    problem = prepare_mapping(result.instance)
    graph = problem.graph
    assert topology.hops(graph.sources, graph.targets) @ graph.bytes == result.objective
    for form in ("rank-order", "csv", "hostfile"):
        write_mapping(tmp_path / form, form, problem, topology.nodes)
        again = tp.topology(
            result.instance.machine,
            cores=4,
            ranks=tmp_path / form,
            rank_format=form,
            num_ranks=problem.num_tasks,
        )
        assert (again.nodes == topology.nodes).all()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"on": "torus:2x2", "ranks": [0, 0]}, "at most 1 rank on a node"),
        ({"on": "torus:2x2", "ranks": [0, 4]}, "some of the 4 nodes"),
        ({"on": "torus:2x2", "num_ranks": 5}, "from 1 to 4 ranks"),
        ({"on": "torus:2x2", "cores": 0}, "at least one rank|from 1 to"),
        ({"on": "torus:2x2", "job": "a"}, "has jobs"),
        ({"on": "tree:2x2", "within": "1x1"}, "a torus or mesh beside it"),
        ({"on": "tree:2x2", "ranks": ["n0", "n9"]}, "nodes of the machine"),
        ({"on": "nowhere"}, "a file, a shorthand"),
    ],
)
def test_bad_arguments_are_told(arguments: dict[str, object], said: str) -> None:
    with pytest.raises(tp.InputError, match=said):
        tp.topology(**arguments)


def test_bad_ranks_are_told() -> None:
    topology = tp.topology("mesh:2x2")
    with pytest.raises(tp.InputError, match="ranks from 0 to 3"):
        topology.hops(0, 4)
    with pytest.raises(tp.InputError, match="coordinates below"):
        topology.rank_at([0, 2, 0])
    with pytest.raises(tp.InputError, match="3 coordinates, the slot last"):
        topology.rank_at([0, 1])
    with pytest.raises(tp.InputError, match="at least one rank"):
        topology.closest(0, [])
