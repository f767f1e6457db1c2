"""Tree machines: shorthand and files, distances, and what a snapshot of one may say."""

from __future__ import annotations

import itertools
import json
import random
from typing import Any

import numpy as np
import pytest

from real_files import real_file
from topoplace.errors import InputError
from topoplace.machine.hierarchy import APART
from topoplace.snapshot.convert import converted
from topoplace.snapshot.hierarchy_state import HierarchyState, hierarchy_of
from topoplace.snapshot.machines import load_any, load_machine, load_snapshot, load_torus
from topoplace.snapshot.state import SnapshotState
from tree_cases import built, random_switches


def document(**changes: Any) -> dict[str, Any]:
    """Return a snapshot of two leaves of four nodes, with jobs of each kind."""
    return {
        "schema": "topoplace.snapshot/1",
        "name": "small",
        "machine": {
            "kind": "tree",
            "name": "two-leaves",
            "switches": [
                {"name": "s0", "nodes": "n[0-3]"},
                {"name": "s1", "nodes": "n[4-7]"},
                {"name": "top", "switches": "s[0-1]"},
            ],
        },
        "down": "n[3,7]",
        "running": [
            {"id": "talks", "nodes": "n[4,0]"},
            {"id": "computes", "nodes": "n1,n3", "communication": "none"},
        ],
        "queue": [
            {"id": "a", "nodes": 2, "patterns": [{"pattern": "rd"}], "priority": 3},
            {"id": "b", "nodes": 2},
            {"id": "c", "nodes": 8, "patterns": [{"pattern": "rd"}], "communication": "none"},
        ],
    } | changes


def state_of(folder, **changes) -> HierarchyState:
    path = folder / "snapshot.json"
    path.write_text(json.dumps(document(**changes)))
    return load_any(path)


def test_janus_is_read_whole():
    tree = hierarchy_of(load_machine(str(real_file("trees/janus_topology.conf"))))
    assert (tree.num_leaves, tree.num_nodes) == (77, 1368)
    assert len(set(tree.host_names)) == 1368
    assert tree.levels == ("leaf", "node")  # below three cores that hold the same
    assert tree.node_hops(0, 1) == 2
    assert tree.node_hops(0, tree.num_nodes - 1) == 4
    assert set(np.unique(2 * tree.common_level)) == {2, 4}
    assert tree.leaf_sizes.sum() == 1368


@pytest.mark.parametrize("sizes", [(5,), (3, 4), (2, 3, 2), (2, 2, 2, 3)])
def test_regular_trees(sizes):
    tree = hierarchy_of(load_machine("tree:" + "x".join(map(str, sizes))))
    places = list(itertools.product(*map(range, sizes)))  # of the nodes, root first
    assert tree.num_nodes == len(places)
    depth = len(sizes)
    for (a, here), (b, there) in itertools.product(enumerate(places), repeat=2):
        level = next(k for k in range(1, depth + 1) if here[: depth - k] == there[: depth - k])
        assert tree.node_hops(a, b) == (2 * level if a != b else 0)


def test_distances_are_those_of_the_lowest_common_switch():
    apart = 0
    for seed in range(40):
        leaves, uppers = random_switches(random.Random(seed))
        tree, below = built(leaves, uppers), {name: frozenset([name]) for name, _ in leaves}
        for name, children in uppers:
            below[name] = frozenset().union(*(below[child] for child in children))
        level: dict[frozenset[str], int] = {}  # switches that hold the same are one
        for own in sorted(set(below.values()), key=len):
            level[own] = 1 + max((level[other] for other in level if other < own), default=0)
        leaf_of = [name for name, nodes in leaves for _ in nodes]
        for a, b in itertools.permutations(range(tree.num_nodes), 2):
            above = [own for own in level if {leaf_of[a], leaf_of[b]} <= own]
            least = 2 * min(level[own] for own in above) if above else APART
            assert tree.node_hops(a, b) == least
            apart += not above
    assert apart


def test_switches_that_overlap_are_no_tree():
    with pytest.raises(InputError, match="share all nodes of one of them or none, found r1 and r2"):
        built([(n, [f"{n}0"]) for n in "abc"], [("r1", ["a", "b"]), ("r2", ["b", "c"])])


@pytest.mark.parametrize(
    "spec",
    ["tree:0x4", "tree:4x0", "tree:x", "tree:5000x1", "tree:2x2000000", "tree:" + "1x" * 16 + "1"],
)
def test_bad_shorthand(spec):
    with pytest.raises(InputError) as caught:
        load_machine(spec)
    assert caught.value.field == "machine"


def test_a_torus_is_asked_for():
    assert load_torus("mesh:4x4").shape == [4, 4]
    with pytest.raises(InputError, match="a torus or mesh machine, not a tree"):
        load_torus("tree:4x4")


def leaf(name: str, nodes: str) -> dict[str, str]:
    return {"name": name, "nodes": nodes}


def upper(name: str, switches: str) -> dict[str, str]:
    return {"name": name, "switches": switches}


HUGE = [leaf(f"s{k}", f"s{k}n[1-1500000]") for k in range(2)]
MANY = [leaf(f"s{k}", f"n{k}") for k in range(4097)]


@pytest.mark.parametrize(
    ("switches", "expected"),
    [
        ([], "switches"),
        ([{"name": "a"}], "switch a: expected either nodes or switches"),
        ([leaf("a", "n") | upper("a", "b")], "switch a: expected either"),
        ([leaf("a", "n[1")], "switch a: expected a host list"),
        ([leaf("a", "")], "switch a: expected at least one node"),
        ([leaf("a", "n"), leaf("b", "n")], "switch b: expected each node"),
        ([leaf("a", "n"), upper("a", "a")], "switch: expected each"),
        ([leaf("a", "n"), upper("b", "c")], "switch b: expected a swi"),
        ([leaf("a", "n"), upper("b", "b")], "switch b: expected no cyc"),
        (MANY, "switch s4096: expected at most 4096 leaves"),
        (HUGE, "switch s1: expected at most"),
    ],
)
def test_bad_trees(tmp_path, switches, expected):
    with pytest.raises(InputError) as caught:
        state_of(tmp_path, machine={"kind": "tree", "name": "m", "switches": switches})
    assert expected in str(caught.value)
    assert caught.value.file == str(tmp_path / "snapshot.json")


def test_a_tree_snapshot_as_arrays(tmp_path):
    state = state_of(tmp_path)
    assert state.machine.num_nodes == 8
    assert state.free.tolist() == [[0], [0], [1], [0], [0], [1], [1], [0]]
    assert state.busy.tolist() == [3, 1]
    assert state.comm.tolist() == [1, 1]
    assert [(job.id, job.hosts.tolist(), job.intensive) for job in state.running] == [
        ("talks", [4, 0], True),
        ("computes", [1, 3], False),
    ]
    assert [(r.id, r.intensive, len(r.patterns), r.value) for r in state.requests] == [
        ("a", True, 1, 6),
        ("b", False, 0, 2),
        ("c", False, 0, 8),
    ]


def test_an_idle_tree_by_name(tmp_path):
    state = state_of(tmp_path, machine="tree:3x4", down="", running=[])
    assert state.free.all()
    assert state.busy.tolist() == state.comm.tolist() == [0, 0, 0]


RUNNING = {"id": "r", "nodes": "n0"}
QUEUED = {"id": "q", "nodes": 1}
HALVES = [{"pattern": "rd", "share": 60}, {"pattern": "ring", "share": 50}]


@pytest.mark.parametrize(
    ("changes", "field", "value"),
    [
        ({"down": "n8"}, "down", "n8"),
        ({"down": "n1,n1"}, "down", "n1"),
        ({"down": "n[1"}, "down", "n[1"),
        ({"running": [RUNNING | {"nodes": "x"}]}, "running[0].nodes", "x"),
        ({"running": [RUNNING | {"nodes": ""}]}, "running[0].nodes", ""),
        ({"running": [RUNNING | {"nodes": "n[0,0]"}]}, "running[0].nodes", "n0"),
        ({"running": [RUNNING, RUNNING | {"id": "s"}]}, "running[1].nodes", "n0, held by r"),
        ({"running": [RUNNING, RUNNING]}, "running[1].id", "r"),
        ({"running": [RUNNING | {"patterns": HALVES}]}, "running[0].patterns", 110),
        (
            {"running": [RUNNING | {"prism": {"origin": [0], "extents": [1]}}]},
            "running[0].prism",
            None,
        ),
        ({"regions": {"east": []}}, "regions", "east"),
        ({"queue": [QUEUED, QUEUED]}, "queue[1].id", "q"),
        ({"queue": [QUEUED | {"id": "talks"}]}, "queue[0].id", "talks"),
        ({"queue": [QUEUED | {"nodes": 9}]}, "queue[0].nodes", 9),
        ({"queue": [QUEUED | {"class": "gpu"}]}, "queue[0].class", "gpu"),
        ({"queue": [QUEUED | {"shapes": "2x2"}]}, "queue[0].shapes", "2x2"),
        ({"queue": [QUEUED | {"region": "east"}]}, "queue[0].region", "east"),
        ({"queue": [QUEUED | {"patterns": HALVES}]}, "queue[0].patterns", 110),
        (
            {"queue": [QUEUED | {"patterns": [{"pattern": "x"}]}]},
            "queue[0].patterns[0].pattern",
            "x",
        ),
    ],
)
def test_bad_tree_snapshots(tmp_path, changes, field, value):
    with pytest.raises(InputError) as caught:
        state_of(tmp_path, **changes)
    found = caught.value.value if caught.value.found is None else caught.value.found
    assert (caught.value.field, found) == (field, value)


def test_each_kind_of_snapshot_is_loaded_as_such(tmp_path):
    path = tmp_path / "snapshot.json"
    path.write_text(json.dumps(document(machine="torus:4x4", down="", running=[], queue=[])))
    assert isinstance(load_any(path), SnapshotState)
    path.write_text(json.dumps(document()))
    assert isinstance(load_any(path), HierarchyState)
    with pytest.raises(InputError) as caught:
        load_snapshot(path)
    assert (caught.value.field, caught.value.value) == ("machine.kind", "tree")


def test_the_normal_form_of_a_tree_snapshot(tmp_path):
    source, once, twice = (tmp_path / name for name in ("a.json", "b.json", "c.json"))
    source.write_text(json.dumps(document(down="n3, n7")))
    once.write_text(converted(source, "snapshot").text)
    assert json.loads(once.read_text())["down"] == "n[3,7]"
    twice.write_text(converted(once, "snapshot").text)
    assert once.read_bytes() == twice.read_bytes()
    assert (load_any(source).free == load_any(once).free).all()
