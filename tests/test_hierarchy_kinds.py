"""Programs over kinds of places: their placements fit, and their prices bound what is best."""

from __future__ import annotations

import math
import random
from collections.abc import Hashable, Sequence

import pytest

from tiny_hierarchies import best_of, prepared, random_hierarchy
from topoplace.packing.budget import Budget
from topoplace.packing.dual.relaxation import DualPoint, Relaxation
from topoplace.packing.problem import Subproblem, fits
from topoplace.placement.hierarchy.kinds import splits_of
from topoplace.placement.hierarchy.packing import Candidate, HierarchyPacking
from topoplace.placement.hierarchy.patterns import Patterns
from topoplace.placement.hierarchy.problem import HierarchyProblem
from topoplace.snapshot.schema import SNAPSHOT_SCHEMA

RACKS = (3, 3, 5, 7, 7, 7, 2)


def cluster(sizes: list[tuple[int, int]]) -> HierarchyPacking:
    """Return racks of hosts that hold one unit each, and requests of units in segments."""
    hosts = [
        {"hosts": f"r{r}h[0-{n - 1}]", "domains": [f"r{r}"], "capacity": {"slots": 1}}
        for r, n in enumerate(RACKS)
    ]
    queue = [
        {"id": f"q{k}", "nodes": n, "segments": [{"size": size, "level": "rack"}]}
        for k, (n, size) in enumerate(sizes)
    ]
    levels = ["rack", "host"]
    machine = {"kind": "hierarchy", "name": "racks", "levels": levels, "hosts": hosts}
    document = {"schema": SNAPSHOT_SCHEMA, "name": "racks", "machine": machine, "queue": queue}
    return HierarchyPacking(HierarchyProblem(prepared(document)))


def programmed(
    packing: HierarchyPacking, kinds: Sequence[Hashable] | None = None
) -> tuple[bool, list[list[int]]]:
    """Return whether the program knows all, and what its placements are worth on all levels."""
    program = Patterns(
        packing.layout, packing.requests, kinds or packing.kinds, packing.places, math.inf
    )
    found = []
    for placement in program.placements(0):
        started = [Candidate(q, uses) for q, uses in placement]
        assert fits(packing, started)
        found.append(packing.values_of(started).sum(axis=0).tolist())
    assert program.is_solved == (program.knows_all and len(found) == 2)
    return program.knows_all, found


@pytest.mark.parametrize("seed", range(40))
def test_what_is_programmed_is_a_placement_and_best_where_all_is_known(seed: int) -> None:
    state = prepared(random_hierarchy(random.Random(f"kinds-{seed}")))
    packing = HierarchyPacking(HierarchyProblem(state))
    knows_all, found = programmed(packing)
    best = best_of(state)
    assert all(values[0] <= best[0] for values in found)
    if knows_all and found:
        assert found[-1][:2] == best[:2]


def test_equal_requests_are_one_kind_and_not_where_many_splits_are_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    packing = cluster([(4, 2)] * 3 + [(6, 3)] * 2 + [(5, 5)] * 3 + [(8, 1), (8, 1)])
    best = programmed(packing)[1][-1]
    assert programmed(packing, range(10))[1][-1] == best
    assert splits_of(6, (2, 4, 6)) == [(6,), (4, 2), (2, 2, 2)]
    assert splits_of(7, (2, 4, 6)) == []
    monkeypatch.setattr("topoplace.placement.hierarchy.kinds._MOST_STEPS", 3)
    assert splits_of(6, (2, 4, 6)) is None
    assert programmed(packing)[1][-1] == best


def test_prices_of_kinds_bound_both_levels() -> None:
    packing = cluster([(12, 4), (4, 4), (9, 3), (3, 3), (3, 3), (2, 1), (30, 5)])
    relaxation = Relaxation(packing, Budget(None))
    value, racks = programmed(packing)[1][-1][:2]
    for sub, reached in ((Subproblem(), value), (Subproblem(1, (value,)), racks)):
        known = packing.first_prices(sub)
        assert known is not None
        certified = relaxation.evaluate(sub, DualPoint(*known)).certified
        assert certified is not None
        assert reached <= certified <= reached + 1


def test_what_candidates_take_is_added_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search in an order adds one request after another to the same placement."""
    hosts = [{"hosts": f"h{k}", "domains": [f"r{k % 3}"], "capacity": {"gpu": 4}} for k in range(9)]
    machine = {"kind": "hierarchy", "name": "m", "levels": ["rack", "host"], "hosts": hosts}
    queue = [{"id": f"q{k}", "nodes": 2, "takes": {"gpu": 1 + k % 2}} for k in range(10)]
    document = {"schema": SNAPSHOT_SCHEMA, "name": "s", "machine": machine, "queue": queue}
    packing = HierarchyPacking(HierarchyProblem(prepared(document)))
    asked: list[Candidate] = []
    rows_of = packing.rows_of
    monkeypatch.setattr(packing, "rows_of", lambda one: asked.append(one) or rows_of(one))
    placed: list[Candidate] = []
    for q in range(10):
        placed = packing.with_one_more(placed, q) or placed
    assert len(placed) == len(asked) == 10
    assert fits(packing, placed)
