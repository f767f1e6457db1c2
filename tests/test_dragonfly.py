"""Dragonflies: placements against trying all, routes against searches, forged certificates."""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import random
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter, ValidationError

import topoplace as tp
from bending import bent
from dragonfly_cases import Tiny, drawn
from minizinc_cases import needs_minizinc
from soundness.results import hold_bent
from topoplace.certify import check_document
from topoplace.certify.dragonfly.check import DragonflyPlacements
from topoplace.certify.packing import certified_bound
from topoplace.cli import run
from topoplace.errors import InputError
from topoplace.machine.dragonfly import ARRANGEMENTS, Dragonfly, arranged
from topoplace.placement.dragonfly.switches import of_switches
from topoplace.result.certificate import Certificate
from topoplace.result.dragonfly import DragonflyModel, DragonflyResult, network_of


def rule_of(seed: int) -> str:
    """Return the rule under which a case is solved."""
    return ("strict", "strict", "off")[seed % 3]


FEW, MANY = range(9), range(9, 300)


def require_best(snapshot: dict[str, Any], rule: str) -> None:
    """Fail unless a placement is as good as the best of all, proven, and checked."""
    result = tp.place(tp.load(snapshot), interference=rule)
    found = tuple(level.objective for level in result.levels)
    assert found == Tiny(snapshot, strict=rule == "strict").best()
    assert tp.check(result).holds, tp.check(result)
    assert found == tuple(level.bound for level in result.levels)


@pytest.mark.parametrize("seed", FEW)
def test_tiny_dragonflies_are_placed_as_well_as_by_trying_all(seed: int) -> None:
    require_best(drawn(seed), rule_of(seed))


@pytest.mark.slow
@pytest.mark.parametrize("seed", MANY)
def test_many_tiny_dragonflies_are_placed_as_well_as_by_trying_all(seed: int) -> None:
    require_best(drawn(seed), rule_of(seed))


def test_orders_place_by_hand() -> None:
    """Two groups of two routers with two nodes; a, b and c want three, three and two nodes."""
    model = tp.Model("dragonfly:2x2x2")
    for name, nodes in (("a", 3), ("b", 3), ("c", 2)):
        model.add_request(name, nodes)
    ways = {}
    for method in ("contiguous", "group-round-robin"):
        for rule in ("strict", "off"):
            placed = tp.place(model, method, interference=rule)
            assert tp.check(placed).holds
            ways[method, rule] = {start.request: start.hosts for start in placed.placements}
    along = {"a": "0-2", "b": "3-5", "c": "6-7"}
    assert ways["contiguous", "strict"] == ways["contiguous", "off"] == along
    # a has nodes 0, 4 and 1, of both groups: nobody else may have nodes in both.
    assert ways["group-round-robin", "off"] == {"a": "0-1,4", "b": "2,5-6", "c": "3,7"}
    assert ways["group-round-robin", "strict"] == {"a": "0-1,4"}
    for seed in range(20):
        for method in ("random-routers", "random-groups"):
            for rule in ("strict", "off"):
                placed = tp.place(drawn(seed), method, interference=rule, seed=seed)
                assert tp.check(placed).holds


def test_who_waits_is_told_why_and_groups_are_drawn_as_a_ring(tmp_path: Path) -> None:
    model = tp.Model("dragonfly:2x2x2")
    model.add_running("r", "0,4")  # takes the links between both groups
    model.add_request("a", 3, priority=2)
    model.add_request("large", 7)
    model.add_request("linked", 4)
    model.add_request("together", 4, required="group")
    model.add_request("outbid", 2, required="router")
    model.add_request("b", 3)
    result = tp.place(model)
    assert result.waits == {
        "large": "7 nodes wanted, 6 free",
        "linked": "no place was found for it whose links are free",
        "together": "no place was found for it, even alone",
        "outbid": "outbid: it fits alone, but the started jobs have the same value or more",
    }
    picture = tmp_path / "ring.png"
    result.save(tmp_path / "result.json")
    assert run(["show", str(tmp_path / "result.json"), "--png", str(picture)]) == 0
    assert picture.stat().st_size > 10_000


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("machine.groups = 2000", "at most 1024 groups"),
        ("machine.nodes = 2000000", "at most 1024 groups"),
        ("machine.global_ports = 2000000", "at most 2097152 ports"),
        ("machine.groups = 9", "a global link between any two groups|global links between any"),
        ("machine.links = [[0, 1]] & machine.global_ports = null", "none inside a group"),
        ("machine.links = [[0, 99]] & machine.global_ports = null", "routers from 0 to 5"),
        ('machine.names = "n[1-3]"', "a name for each of 12 nodes"),
        ('running[0].nodes = "11"', "none of them missing"),
        ('running[1].nodes = "0"', "nodes no other job holds"),
        ("queue[0].takes = {}", "takes"),
        ('queue[0].takes = {"slots": 1}', "no takes on a dragonfly"),
        ('queue[0].required = "rack"', "rack"),
    ],
)
def test_wrong_snapshots_are_refused_by_both_sides(change: str, message: str) -> None:
    machine = {"kind": "dragonfly", "name": "m", "groups": 3, "routers": [2], "nodes": 2}
    machine |= {"missing": "11", "global_ports": 1}
    document = {
        "schema": "topoplace.snapshot/1", "name": "wrong", "machine": machine,
        "running": [{"id": "r", "nodes": "0"}, {"id": "s", "nodes": "1"}],
        "queue": [{"id": "x", "nodes": 2}],
    }  # fmt: skip
    result = tp.place(tp.load(document)).model_dump(mode="json", by_alias=True)
    with pytest.raises(InputError, match=message):
        tp.place(tp.load(bent(document, change)))
    with contextlib.suppress(ValidationError):
        wrong = DragonflyResult.model_validate(result | {"instance": bent(document, change)})
        assert not check_document(wrong).holds


@needs_minizinc
@pytest.mark.parametrize(
    "seeds",
    [
        range(2),
        *(pytest.param(range(k, k + 14), marks=pytest.mark.slow) for k in range(2, 100, 14)),
    ],
)
def test_the_model_of_minizinc_finds_the_same(seeds: range) -> None:
    for seed in seeds:
        rule = rule_of(seed)
        found = tp.place(tp.load(drawn(seed)), "minizinc", interference=rule)
        exact = tp.place(tp.load(drawn(seed)), interference=rule)
        values = [[level.objective for level in one.levels] for one in (found, exact)]
        assert values[0] == values[1], seed
        assert tp.check(found).holds


def moved(rng: random.Random, mutant: dict[str, Any]) -> None:
    """Put a request on any of the free nodes."""
    tiny = Tiny(mutant["instance"], strict=True)
    own = rng.choice(mutant["solution"]["placements"])
    asked = next(one for one in mutant["instance"]["queue"] if one["id"] == own["request"])
    nodes = rng.sample(tiny.free, min(len(tiny.free), asked["nodes"]))
    own["nodes"] = ",".join(map(str, sorted(nodes)))


@cache
def every_outcome(instance: str, *, strict: bool) -> set[tuple[int, ...]]:
    return Tiny(json.loads(instance), strict=strict).outcomes()


def is_right(document: dict[str, Any]) -> bool:
    """Return whether a result keeps the rules and all its figures are true, by brute force."""
    strict = document["limits"]["interference"] == "strict"
    found = Tiny(document["instance"], strict=strict).judged(document["solution"]["placements"])
    signs = [1 if level["sense"] == "max" else -1 for level in document["levels"]]
    stated = tuple(s * v["objective"] for s, v in zip(signs, document["levels"], strict=True))
    if found != stated:
        return False
    every = every_outcome(json.dumps(document["instance"]), strict=strict)
    for k, (sign, level) in enumerate(zip(signs, document["levels"], strict=True)):
        good = [one for one in every if all(a >= b for a, b in zip(one[:k], found, strict=False))]
        if level["bound"] is not None and sign * level["bound"] < max(one[k] for one in good):
            return False
    return True


@pytest.mark.parametrize("tries", [200, pytest.param(1_000, marks=pytest.mark.slow)])
def test_bent_results_are_refused_or_right(tries: int) -> None:
    results = []
    for seed in range(12):
        result = tp.place(tp.load(drawn(f"bent-{seed}", most=8)), interference=rule_of(seed))
        results.append(result)
    hold_bent(results, moved, is_right, tries)


def test_the_certificate_of_the_page_proves_what_it_says() -> None:
    page = (Path(__file__).parent.parent / "docs" / "proofs" / "dragonfly.md").read_text()
    [code] = [line for line in page.splitlines() if line.startswith("    {")]
    machine = {"kind": "dragonfly", "name": "page", "groups": 3, "routers": [1], "nodes": 2}
    document = {
        "schema": "topoplace.snapshot/1", "name": "page", "machine": machine,
        "running": [{"id": "r", "nodes": "0,2"}],
        "queue": [{"id": "x", "nodes": 2}, {"id": "y", "nodes": 2}],
    }  # fmt: skip
    proven = {}
    for rule in ("strict", "off"):
        result = tp.place(tp.load(document), interference=rule)
        checker = DragonflyPlacements(result)
        checker.read()
        certificate = TypeAdapter(Certificate).validate_python(json.loads(code))
        bound = certified_bound(checker.oracle, certificate, [4])
        proven[rule] = [level.objective for level in result.levels][:2], bound and bound.value
    assert proven == {"strict": ([4, 4], -4), "off": ([4, 3], -2)}


# ---- The network --------------------------------------------------------------------------------


def searched(machine: Dragonfly, source: int) -> tuple[dict[int, int], dict[int, int]]:
    """Return distances and numbers of shortest routes with one global link at most, by search.

    A state is a router, and whether a global link was taken.
    """
    size, joined = machine.per_group, machine.local_hops
    local = {u: [u // size * size + v for v in range(size) if joined[u % size, v] == 1]
             for u in range(machine.num_routers)}  # fmt: skip
    far: dict[int, list[int]] = {u: [] for u in local}
    for u, v in machine.global_links.tolist():
        far[u].append(v)
        far[v].append(u)
    steps, ways, wave = {(source, False): 0}, Counter({(source, False): 1}), [(source, False)]
    while wave:
        ahead = []
        for u, used in wave:
            over = [(v, used) for v in local[u]] + ([] if used else [(v, True) for v in far[u]])
            for state in over:
                if state not in steps:
                    steps[state] = steps[u, used] + 1
                    ahead.append(state)
                if steps[state] == steps[u, used] + 1:
                    ways[state] += ways[u, used]
        wave = ahead
    found, counts = {}, {}
    for v in local:
        here = [state for state in ((v, False), (v, True)) if state in steps]
        found[v] = min(steps[state] for state in here)
        counts[v] = sum(ways[state] for state in here if steps[state] == found[v])
    return found, counts


MACHINES = [
    (groups, shape, ports, arrangement)
    for arrangement in ARRANGEMENTS
    for groups, shape, ports in (
        (9, (4,), 2), (5, (2, 3), 1), (3, (3,), 2), (7, (2,), 3),
        (4, (2, 2), 2), (2, (3,), 1), (6, (3, 3), 1),
    )
]  # fmt: skip


@pytest.mark.parametrize(("groups", "shape", "ports", "arrangement"), MACHINES)
def test_distances_and_minimal_routes_are_those_of_a_search(
    groups: int, shape: tuple[int, ...], ports: int, arrangement: str
) -> None:
    links = arranged(groups, math.prod(shape), ports, arrangement)
    machine = Dragonfly(groups, shape, 2, links)
    ends = Counter(links.ravel().tolist())
    assert max(ends.values()) <= ports
    for source in range(machine.num_routers):
        distances, counts = searched(machine, source)
        for target in range(machine.num_routers):
            routes = machine.routes(source, target)
            assert machine.distances[source, target] == distances[target]
            assert len(routes) == counts[target]
            assert {len(route) - 1 for route in routes} == {distances[target]}
            assert all(route[0] == source and route[-1] == target for route in routes)
    every = np.indices((machine.num_routers,) * 2).reshape(2, -1)
    loads = machine.loads(*every, np.full(len(every[0]), 6, dtype=np.int64))
    assert sum(loads.values()) == 6 * machine.distances.sum()
    joined = {frozenset(pair) for pair in links.tolist()}
    for u, v in loads:
        assert frozenset((u, v)) in joined or machine.distances[u, v] == 1


def test_tasks_are_mapped_by_minimal_routes() -> None:
    """Four tasks in a ring on nodes of three groups; all ways are tried."""
    document = drawn(1) | {"machine": {"kind": "dragonfly", "name": "map", "groups": 3,
                                       "routers": [2], "nodes": 1, "missing": "5"}}  # fmt: skip
    document |= {"running": [], "down": "0", "sets": {}, "queue": []}
    result = tp.map(tp.grid("4", periodic="x"), on=tp.load(document))
    network = network_of(DragonflyModel.model_validate(document["machine"]))
    cost = min(
        2 * sum(int(network.distances[a, b]) for a, b in zip(way, [*way[1:], way[0]], strict=True))
        for way in itertools.permutations([1, 2, 3, 4])
    )
    assert (result.objective, result.bound) == (cost, cost)
    assert tp.check(result).holds
    assert result.instance.machine == DragonflyModel.model_validate(document["machine"])


# ---- Switch trees read as dragonflies ------------------------------------------------------------

SLINGSHOT = """\
SwitchName=r0 Nodes=n[0-3]
SwitchName=r1 Nodes=n[4-7]
SwitchName=r2 Nodes=n[8-11]
SwitchName=r3 Nodes=n[12-14]
SwitchName=r4 Nodes=n[15-18]
SwitchName=g0 Switches=r[0-1]
SwitchName=g1 Switches=r[2-3]
SwitchName=g2 Switches=r4
SwitchName=top Switches=g[0-2]
"""


def test_a_tree_of_slurm_is_read_as_a_dragonfly(tmp_path: Path) -> None:
    file = tmp_path / "topology.conf"
    file.write_text(SLINGSHOT)
    document = tp.convert(file, from_format="slurm-topology", to_format="dragonfly").document
    assert isinstance(document, DragonflyModel)
    assert (document.groups, document.routers, document.nodes) == (3, [2], 4)
    assert (document.missing, document.names) == ("15,20-23", "n[0-18]")
    for more, error in (
        (SLINGSHOT.replace("SwitchName=top Switches=g[0-2]\n", ""), "one switch above all others"),
        (SLINGSHOT.replace("r[2-3]", "r2").replace("top Switches=", "top Switches=r3,"), "r3"),
    ):
        file.write_text(more)
        with pytest.raises(InputError, match=error):
            tp.convert(file, from_format="slurm-topology", to_format="dragonfly")


@pytest.mark.parametrize("seed", range(6))
def test_a_snapshot_read_as_a_dragonfly_has_the_same_optimum(seed: int, tmp_path: Path) -> None:
    file, rng = tmp_path / "topology.conf", random.Random(f"slingshot-{seed}")
    file.write_text(SLINGSHOT)
    model = tp.Model(tp.convert(file, from_format="slurm-topology").document)
    held, down, away = rng.sample(range(19), 3)
    model.add_running("old", f"n{held}")
    model.add_request("a", rng.randint(1, 6), excluded=f"n[{away}]")
    model.add_request("b", rng.randint(1, 8), at_most={"size": 2, "level": "leaf"})
    model.add_request("c", rng.randint(1, 7), required=rng.choice(["leaf", "switch1"]))
    tree = model.snapshot.model_copy(update={"down": f"n{down}"})
    found = of_switches(tree)
    expected, result = tp.place(tree), tp.place(found, interference="off")
    assert result.check().verified
    own = {level.name: level.objective for level in result.levels}
    for level in expected.levels[:3]:
        assert own[{"switch1": "group", "leaf": "router"}.get(level.name, level.name)] == (
            level.objective
        )


def test_arrangements_by_hand() -> None:
    """Of five groups with a port on each of four routers (Hastings 2015, section 2)."""
    absolute, relative, circulant = (arranged(5, 4, 1, name) for name in ARRANGEMENTS)
    of_first = [{int(v // 4): int(u) for u, v in links.tolist() if u < 4}
                for links in (absolute, relative, circulant)]  # fmt: skip
    assert of_first == [
        {1: 0, 2: 1, 3: 2, 4: 3},
        {1: 0, 2: 1, 3: 2, 4: 3},
        {1: 0, 4: 1, 2: 2, 3: 3},
    ]
    assert [12 + 1, 16 + 1] not in absolute.tolist()
    assert [12 + 3, 16 + 3] in absolute.tolist()  # ports of 3 lead to 0, 1, 2, 4, of 4 to 0 to 3
    assert [12 + 0, 16 + 3] in relative.tolist()
    assert [12 + 0, 16 + 1] in circulant.tolist()
