"""The bounds of certificates against a naive evaluation and against the best placements."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from pydantic import TypeAdapter

from random_instances import random_snapshot
from small_snapshot import snapshot_of
from topoplace.certify.packing import ANYWHERE, Covers, Prices
from topoplace.certify.torus import oracle as torus_oracle
from topoplace.certify.torus.instance import Instance, read_instance
from topoplace.certify.torus.oracle import TorusOracle
from topoplace.result import (
    Interference,
    Leaf,
    Part,
    Parts,
    PlacementLevel,
    Proof,
    SharedLeaves,
    StartBranch,
    Status,
)
from topoplace.result.certificate import DEEPEST, CertificateNode
from topoplace.snapshot.geometry import Geometry
from topoplace.snapshot.schema import SNAPSHOT_SCHEMA, Request, Snapshot, TorusModel

MODES = list(Interference)


def random_prices(rng: random.Random, oracle: TorusOracle, level_idx: int) -> Prices:
    scale = rng.choice((1, 3, 1000))
    top = rng.choice((0, 1, 10, 1000)) * scale
    rows = {
        family: np.array([rng.choice((0, rng.randint(0, top))) for _ in capacities])
        for family, capacities in oracle.rows.items()
    }
    return Prices(rows, 0, (*(rng.randint(0, 5 * scale) for _ in range(level_idx)), scale))


def with_all_shapes(instance: Instance) -> Instance:
    """Return the instance in which requests may have any shape, each said in their geometry."""
    ranges = [range(1, n + 1) for n in instance.torus.shape]
    every = tuple(Geometry(extents) for extents in itertools.product(*ranges))
    requests = [replace(r, geometries=r.geometries or every) for r in instance.requests]
    return replace(instance, requests=tuple(requests))


def test_the_deepest_tree_can_be_written_and_read() -> None:
    leaf = Leaf(scale=1, prices={"routers": "0*4"})
    tree: CertificateNode = leaf
    for k in range(DEEPEST):
        tree = StartBranch(request=f"r{k}", out=leaf, into=tree)
    whole_tree = SharedLeaves(leaves=[leaf], tree=tree)
    level = PlacementLevel(
        name="nodes",
        sense="max",
        status=Status.FEASIBLE,
        objective=0,
        bound=1,
        gap=1.0,
        proof=Proof.CERTIFICATE,
        certificate=Parts(parts=[Part(requests=[], certificate=whole_tree)]),
    )
    text = f'{{"result": {{"levels": [{level.model_dump_json()}]}}}}'
    whole = TypeAdapter(dict[str, dict[str, list[PlacementLevel]]]).validate_json(text)
    assert whole["result"]["levels"] == [level]


def long_rings(rng: random.Random) -> Snapshot:
    """Return a machine with a ring that can be gone round either way, some of it occupied."""
    shape = rng.choice(([11], [9, 2], [2, 9], [10, 3], [3, 8, 2]))
    num = math.prod(shape)
    held = rng.sample(range(num), rng.randint(0, num // 4))
    running = [{"id": f"r{k}", "nodes": str(node)} for k, node in enumerate(held)]
    return snapshot_of(
        shape, [{"nodes": rng.randint(1, num // 2)} for _ in range(3)], running=running
    )


@pytest.mark.parametrize(
    ("draw", "num"), [(long_rings, 60), (partial(random_snapshot, max_routers=60), 24)]
)
def test_the_sweep_finds_what_the_shapes_tried_one_by_one_do(
    draw: Callable[[random.Random], Snapshot], num: int
) -> None:
    """Also prisms that cover routers either way round a ring, on machines that are large."""
    far_apart = 0
    for seed in range(num):
        rng = random.Random(seed)
        instance = read_instance(draw(rng), MODES[seed % 3])
        routers = range(instance.torus.num_routers)
        oracle = TorusOracle(instance)
        prices = random_prices(rng, oracle, rng.choice((0, 0, 1, 2)))
        inside = frozenset(rng.sample(routers, min(len(routers), rng.randint(1, 3))))
        outside = frozenset(rng.sample(routers, min(len(routers), rng.randint(0, 2)))) - inside
        wanted = dict.fromkeys(range(len(instance.requests)), ANYWHERE)
        wanted |= {
            q: own for q, own in enumerate((Covers(inside, outside), Covers(inside))) if q in wanted
        }
        swept = oracle.best(prices, wanted)
        assert TorusOracle(with_all_shapes(instance)).best(prices, wanted) == swept, seed
        far_apart += len(inside) > 1 and swept.get(1) is not None
    assert far_apart > num // 10


def test_leaves_looked_at_together_gain_what_each_gains_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With prices, factors and covers of their own, and links for which single requests pay."""
    own_links = several = 0
    for seed in range(30):
        rng = random.Random(f"together-{seed}")
        instance = read_instance(random_snapshot(rng, max_routers=40), MODES[seed % 3])
        oracle, routers = TorusOracle(instance), range(instance.torus.num_routers)
        covers = [ANYWHERE, ANYWHERE]
        for inside in (0, 1, 2):
            named = rng.sample(routers, min(len(routers), inside + 2))
            covers.append(Covers(frozenset(named[:inside]), frozenset(named[inside:])))
        level_idx = rng.choice((0, 1, 2))
        asked = [
            (
                random_prices(rng, oracle, level_idx),
                {q: rng.choice(covers) for q in range(len(oracle.requests)) if rng.random() < 0.9},
            )
            for _ in range(6)
        ]
        shapes = TorusOracle(with_all_shapes(instance))
        alone = [shapes.best(*one) for one in asked]
        for room in (1, 3 * len(routers), 1 << 17):
            monkeypatch.setattr(torus_oracle, "_ROOM", room)
            assert oracle.best_of_several(asked) == alone, (seed, room)
        own_links += any(name.startswith("links of") for name in oracle.rows)
        several += sum(gain is not None for one in alone for gain in one.values())
    assert own_links > 2
    assert several > 100


@pytest.mark.parametrize("shape", [(5, 6), (9, 10), (2, 9, 10)])
def test_no_extent_is_left_out_of_the_parts_of_a_sweep(
    monkeypatch: pytest.MonkeyPatch, shape: tuple[int, ...]
) -> None:
    """Every number of nodes is asked for, so that each extent is the best for some request."""
    monkeypatch.setattr(torus_oracle.os, "cpu_count", lambda: 2)
    num = math.prod(shape)
    machine = TorusModel(name="m", shape=list(shape), wrap=[False] * len(shape))
    queue = [Request(id=f"q{n}", nodes=n) for n in range(1, num + 1)]
    snapshot = Snapshot(schema_version=SNAPSHOT_SCHEMA, name="s", machine=machine, queue=queue)
    oracle = TorusOracle(read_instance(snapshot, Interference.OFF))
    prices = Prices({"routers": np.ones(num, dtype=np.int64)}, 0, (2,))
    monkeypatch.setattr(torus_oracle, "_LARGE", 0)
    found = oracle.best(prices, dict.fromkeys(range(num), ANYWHERE))
    volumes = [math.prod(e) for e in itertools.product(*(range(1, n + 1) for n in shape))]
    least = [min(v for v in volumes if v >= n) for n in range(1, num + 1)]
    assert found == {n - 1: 2 * n - least[n - 1] for n in range(1, num + 1)}


def test_sweeps_in_parts_find_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torus_oracle.os, "cpu_count", lambda: 2)
    for seed in range(40):
        snapshot = random_snapshot(random.Random(f"parts-{seed}"), 30)
        oracle = TorusOracle(read_instance(snapshot, MODES[seed % 3]))
        rng = np.random.default_rng(seed)
        rows = {name: rng.integers(0, 9, len(row)) for name, row in oracle.rows.items()}
        prices = Prices(rows, 0, [(5,), (5, 1), (5, 1, 1)][seed % 3])
        wanted = dict.fromkeys(range(len(oracle.requests)), ANYWHERE)
        found = []
        for large in (0, 1 << 60):
            monkeypatch.setattr(torus_oracle, "_LARGE", large)
            found.append(oracle.best(prices, wanted))
        assert found[0] == found[1], seed
