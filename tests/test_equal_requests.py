"""Queues of equal requests: a kind is solved once, not request by request."""

from __future__ import annotations

import random

import numpy as np

from topoplace.certify import check_document
from topoplace.machine import format_node_set
from topoplace.packing.problem import Query
from topoplace.placement.torus.oracle.pricing import Prices, ScanPricer
from topoplace.placement.torus.problem import PlacementProblem
from topoplace.result import Interference
from topoplace.snapshot.schema import SNAPSHOT_SCHEMA, AnchoredModel, Request, Snapshot, TorusModel
from topoplace.snapshot.state import prepare
from topoplace.solving import Options, solve


def crowded(queue: list[tuple[int, int]], **more: str) -> Snapshot:
    """Return a machine of 512 routers, three in five of them down, and equal requests for nodes."""
    rng = random.Random("crowded")
    spans: list[range] = []
    while not spans or spans[-1].stop < 512:
        start = spans[-1].stop if spans else 0
        spans.append(range(start, min(512, start + rng.randint(4, 32))))
    rng.shuffle(spans)
    down: list[int] = []
    for span in spans:
        if len(down) + len(span) <= 307:
            down += span
    requests = [
        Request(id=f"{nodes}-{k}", nodes=nodes, **more)
        for number, nodes in queue
        for k in range(number)
    ]
    machine = TorusModel(name="cube", shape=[8, 8, 8])
    return Snapshot(
        schema_version=SNAPSHOT_SCHEMA,
        name="crowded",
        machine=machine,
        down=format_node_set(down),
        queue=requests,
    )


def test_equal_requests_are_proven() -> None:
    result = solve(prepare(crowded([(10, 24)])), "exact", Options())
    assert result.levels[0].gap == 0
    assert check_document(result).holds


def test_requests_of_which_halves_cover_all_routers_as_a_whole_are_proven() -> None:
    machine = TorusModel(
        name="tiny", shape=[3, 5], nodes_per_router=3, anchored=[AnchoredModel(dims=[2, 2])]
    )
    snapshot = Snapshot(
        schema_version=SNAPSHOT_SCHEMA,
        name="halves",
        machine=machine,
        queue=[Request(id=f"j{k}", nodes=12) for k in range(4)],
    )
    result = solve(prepare(snapshot), "exact", Options(interference=Interference.OFF))
    assert [level.gap for level in result.levels] == [0, 0]
    assert check_document(result).verified


def test_the_oracle_prices_equal_geometries_once() -> None:
    snapshot = crowded([(20, 8)], shapes="2x2x2/2x4x1")
    pricer = ScanPricer(PlacementProblem(prepare(snapshot)))
    assert len(pricer.groups) == 2


def test_tolerant_requests_are_priced_together_unless_they_pay_for_links_of_their_own() -> None:
    snapshot = crowded([(6, 8), (6, 10)], communication="tolerant")
    problem = PlacementProblem(prepare(snapshot), Interference.TOLERANT)
    pricer = ScanPricer(problem)
    assert len(pricer.groups) == 1
    torus = problem.torus
    nothing, prices = np.zeros(torus.num_routers, np.int64), np.full(torus.num_links, 10, np.int64)
    best = pricer.price(Prices(nothing, {3: prices}), Query((1,), 24)).best
    assert best[3] < best[2] == best[4]
