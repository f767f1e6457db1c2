"""Requests with several regions: they are in the first that has room (Enos 2014, II.B)."""

from __future__ import annotations

import random

import pytest

import topoplace as tp
from brute_force import best_placement
from few import few_of
from random_instances import random_prism
from tiny_instances import tiny_placement, torus_model
from topoplace.errors import InputError
from topoplace.result import Interference
from topoplace.snapshot.schema import Snapshot


def with_regions(rng: random.Random, snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with four regions, and requests that name up to three of them."""
    machine = torus_model(snapshot)
    shape, wrap = list(machine.shape), machine.wrap or [True] * len(machine.shape)
    regions = {
        f"r{k}": [random_prism(rng, shape, wrap) for _ in range(rng.randint(1, 3))]
        for k in range(4)
    }
    queue = [
        request.model_copy(update={"region": rng.sample(sorted(regions), rng.randint(1, 3))})
        if rng.random() < 0.8
        else request.model_copy(update={"region": None})
        for request in snapshot.queue
    ]
    return snapshot.model_copy(update={"regions": regions, "queue": queue})


@pytest.mark.parametrize("chunk", few_of(range(30), 1))
def test_requests_are_in_the_first_of_their_regions_with_room(chunk: int) -> None:
    """Exact = brute force, whose rule is its own; documents with other regions are refused."""
    refused = tried = 0
    for k in range(10 * chunk, 10 * chunk + 10):
        rng, rule = random.Random(f"regions-{k}"), [*Interference][k % 3]
        snapshot = with_regions(rng, tiny_placement(f"regions-{k}"))
        best, _ = best_placement(snapshot, rule)
        found = tp.place(snapshot, interference=rule)
        signs = [1 if level.sense == "max" else -1 for level in found.levels]
        values = [s * (level.objective or 0) for s, level in zip(signs, found.levels, strict=True)]
        assert values == [*best], k
        assert found.check().verified, found.check()
        for method in ("first-fit", "best-fit", "alps-o2"):
            own = tp.place(snapshot, method=method, interference=rule, time_limit=1)
            assert own.check().holds, own.check()
        for idx in range(len(snapshot.queue)):
            document = found.model_dump(mode="json", by_alias=True)
            document["instance"]["queue"][idx]["region"] = rng.sample(["r0", "r1", "r2", "r3"], 3)
            changed = Snapshot.model_validate(document["instance"])
            same = best_placement(changed, rule)[0] == best
            verdict = tp.check(document)
            tried += 1
            refused += not verdict.holds
            assert verdict.holds is False or same or not verdict.verified, k
    assert tried >= refused > 0


def line() -> tp.Model:
    """Return a ring of six nodes, of which a job holds two, and two regions of three."""
    model = tp.Model(tp.torus(6))
    model.add_region("low", (0,), (3,))
    model.add_region("high", (3,), (3,))
    model.add_running("there", (0, 1))
    return model


def test_the_first_set_with_room_by_hand() -> None:
    model = line()
    model.add_request("one", 1, region=["low", "high"])
    model.add_request("two", 2, region=["low", "high"])
    model.add_request("three", 3, region=["low"])
    found = tp.place(model)
    places = {start.request: [int(n) for n in start.nodes] for start in found.placements}
    assert places["one"] == [2]  # low has room for one, though high has too
    assert places["two"] in ([3, 4], [4, 5])
    assert "three" not in places
    assert found.check().verified
    assert "in region low" in next(e.text for e in found.explanations if e.request == "three")


def test_where_one_region_is_needed() -> None:
    model = line()
    with pytest.raises(InputError, match="expected a region of the snapshot, found 'west'"):
        model.add_request("q", 1, region=["low", "west"])
    model.add_request("q", 2, region=["low", "high"])
    with pytest.raises(InputError, match="one region in the order backfill"):
        tp.place(model, order="backfill")
    assert tp.place(model, order="priority").check().verified
    with pytest.raises(InputError, match="one region of a request where jobs move"):
        tp.repack(model, start=["q"])
