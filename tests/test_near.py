"""Requests with routers of I/O nodes in or next to their prism (Enos 2014, II.C)."""

from __future__ import annotations

import json
import math
import random
from collections import Counter

import pytest

import topoplace as tp
from brute_force import Tiny, best_placement
from few import few_of
from random_certificates import oracle_is_right
from random_instances import random_snapshot
from solved_results import Case, solved
from tiny_instances import tiny_placement, torus_model
from tiny_packing import packing_of
from topoplace.certify.torus.instance import read_instance
from topoplace.certify.torus.oracle import TorusOracle
from topoplace.errors import InputError
from topoplace.machine import format_node_set
from topoplace.result import Interference
from topoplace.snapshot.schema import Near, Request, Snapshot


def with_routers(rng: random.Random, snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with two sets of nodes, some of which requests want near them."""
    machine = torus_model(snapshot)
    nodes = range(math.prod(machine.shape) * machine.nodes_per_router)
    share = rng.choice((0.1, 0.3, 0.6))
    sets = {name: format_node_set(n for n in nodes if rng.random() < share) for name in "ab"}
    queue = [
        request.model_copy(update={"near": Near(routers=rng.choice((1, 1, 2, 3)), of=of)})
        if rng.random() < 0.7
        else request
        for request in snapshot.queue
        for of in [rng.choice(("a", "a", "a|b", "a&!b"))]
    ]
    return snapshot.model_copy(update={"sets": sets, "queue": queue})


@pytest.mark.parametrize(
    "seeds", few_of([range(2), *(range(k, k + 10) for k in range(2, 302, 10))], 1)
)
def test_prisms_have_routers_near_them(seeds: range) -> None:
    """Exact = brute force, whose rule is its own; documents that ask for more are refused."""
    refused = tried = 0
    for k in seeds:
        rng, rule = random.Random(f"near-{k}"), [*Interference][k % 3]
        snapshot = with_routers(rng, tiny_placement(f"near-{k}"))
        best, _ = best_placement(snapshot, rule)
        found = tp.place(snapshot, interference=rule)
        signs = [1 if level.sense == "max" else -1 for level in found.levels]
        values = [s * (level.objective or 0) for s, level in zip(signs, found.levels, strict=True)]
        assert values == [*best], k
        assert found.check().verified, found.check()
        for method in ("first-fit", "best-fit", "cp-sat", "alps-o2"):
            own = tp.place(snapshot, method=method, interference=rule, time_limit=1)
            assert own.check().holds, own.check()
        for idx in range(len(snapshot.queue)):
            document = found.model_dump(mode="json", by_alias=True)
            asked = {"routers": rng.randint(1, 4), "of": rng.choice("ab")}
            document["instance"]["queue"][idx]["near"] = asked
            changed = Snapshot.model_validate(document["instance"])
            same = best_placement(changed, rule)[0] == best
            verdict = tp.check(json.loads(json.dumps(document)))
            tried += 1
            refused += not verdict.holds
            assert verdict.holds is False or same or not verdict.verified, k
    assert tried >= refused > 0


@pytest.mark.parametrize("seeds", few_of([range(2), range(2, 600)], 1))
def test_prisms_without_their_routers_are_refused(seeds: range) -> None:
    """Forged results start a request where all is well but the routers near it."""
    refused = 0
    for seed in seeds:
        rng = random.Random(f"far-{seed}")
        snapshot = with_routers(rng, random_snapshot(rng, max_routers=12))
        case = solved(rng, snapshot, [*Interference][seed % 3])
        assert tp.check(case.document).holds, seed
        for best, bound, sign in zip(case.best, case.bounds, (1, 1, -1), strict=True):
            assert sign * bound.value >= best, seed
        free = [request.model_copy(update={"near": None}) for request in snapshot.queue]
        lawless = Tiny(snapshot.model_copy(update={"queue": free}), case.mode)
        for request in free:
            near = {choice.box for choice in case.tiny.choices(request_of(case, request.id))}
            far = [choice for choice in lawless.choices(request) if choice.box not in near]
            for choice in rng.sample(far, min(8, len(far))):
                document = case.document_of(case.chosen | {request.id: choice})
                report = tp.check(document)
                assert report.failures[0].name == "placements", (seed, request.id, choice.box)
                refused += 1
    assert refused > (1000 if len(seeds) > 100 else 5)


@pytest.mark.parametrize("seeds", few_of([range(6), range(6, 300)], 1))
def test_the_checker_finds_the_best_prism_with_routers_near_it(seeds: range) -> None:
    """At any prices, under any covers: the best of those that brute force lists."""
    seen: Counter[bool] = Counter()
    for seed in seeds:
        rng = random.Random(f"near-oracle-{seed}")
        snapshot = with_routers(rng, random_snapshot(rng, max_routers=16))
        rule = [*Interference][seed % 3]
        oracle = TorusOracle(read_instance(snapshot, rule))
        seen += oracle_is_right(rng, packing_of(Tiny(snapshot, rule)), oracle)
    assert min(seen.values()) > 10, seen


def request_of(case: Case, name: str) -> Request:
    return next(request for request in case.snapshot.queue if request.id == name)


def ring(num: int, **fields: str) -> tp.Model:
    """Return a ring of nodes, the last of which is for I/O."""
    model = tp.Model(tp.torus(num, **fields))
    model.add_set("io", str(num - 1))
    return model


def test_a_prism_next_to_a_service_node_by_hand() -> None:
    model = ring(8, service="7")
    model.add_request("far", 3, priority=2)
    model.add_request("near", 2, near={"routers": 1, "of": "io"})
    found = tp.place(model)
    near = next(start for start in found.placements if start.request == "near")
    assert [int(node) for node in near.nodes] in ([0, 1], [5, 6])
    assert found.check().verified


def test_the_router_at_both_ends_of_a_prism_is_one() -> None:
    model = ring(4)
    model.add_request("q", 3, near={"routers": 2, "of": "io"})
    found = tp.place(model)
    assert not found.placements
    assert "3 compute nodes near 2 routers of io" in found.explanations[0].text
    assert found.check().verified
    model.replace("q", nodes=3, near={"routers": 1, "of": "io"})
    assert tp.place(model).objective == 3
    model.add_down("3")
    assert tp.place(model).objective == 0


@pytest.mark.parametrize(
    ("machine", "where"),
    [
        ("tree:2x3", "a tree"),
        ("hierarchy:4x4", "a hierarchy"),
        ("dragonfly:3x2x2", "a dragonfly"),
        ("fattree:16", "a fat tree"),
        ("cubes:64", "cubes"),
    ],
)
def test_other_machines_have_no_routers_near(machine: str, where: str) -> None:
    model = tp.Model(machine)
    with pytest.raises(InputError, match=f"near: expected no near on {where}"):
        model.add_request("q", 1, near={"routers": 1, "of": "io"})


def test_where_routers_near_are_refused() -> None:
    model = ring(6)
    near = {"routers": 1, "of": "io"}
    with pytest.raises(InputError, match="expected one of io, found 'lnet'"):
        model.add_request("q", 1, near={"routers": 1, "of": "lnet"})
    model.add_request("q", 1, near=near)
    with pytest.raises(InputError, match="near: expected no near on the MiniZinc model"):
        tp.place(model, method="minizinc")
    with pytest.raises(InputError, match="near: expected no near on a torus or mesh where jobs"):
        tp.repack(model, start=["q"])
    with pytest.raises(InputError, match="near: expected no near on a request with tasks"):
        model.add_request("t", 2, near=near, application=tp.grid(2))
