"""Snapshots and short ways to solve them, for the tests of the exact method."""

from __future__ import annotations

import json
import math
import random
from typing import Any

from random_instances import KIND_WEIGHTS, KINDS, random_prism, routers_inside
from topoplace import solving
from topoplace.machine import format_node_set
from topoplace.result import Interference, PlacementResult
from topoplace.snapshot.schema import SNAPSHOT_SCHEMA, Request, RunningJob, Snapshot, TorusModel
from topoplace.snapshot.state import prepare
from topoplace.solving import Options

MODES = list(Interference)


def mid_size_snapshot(seed: int, shape: tuple[int, ...] = (8, 8, 8), jobs: int = 10) -> Snapshot:
    """Return a machine of a few hundred routers with running jobs and 15 requests."""
    rng = random.Random(f"mid-size-{seed}")
    sizes, wrap = list(shape), [rng.random() < 0.8 for _ in shape]
    num_routers = math.prod(shape)
    held: set[int] = set()
    running: list[RunningJob] = []
    while len(running) < jobs:
        prism = random_prism(rng, sizes, wrap, largest=4) if rng.random() < 0.8 else None
        if prism is None:
            start = rng.randrange(num_routers - 3)
            routers = [start, start + 1, start + 2]
        else:
            routers = routers_inside(prism, sizes)
        if held & set(routers):
            continue
        held |= set(routers)
        running.append(
            RunningJob(
                id=f"run{len(running)}",
                nodes=format_node_set(2 * r + k for r in routers for k in (0, 1)),
                prism=prism,
                communication=rng.choices(KINDS, KIND_WEIGHTS)[0],
            )
        )
    free = [2 * r + k for r in range(num_routers) if r not in held for k in (0, 1)]
    queue = [
        Request(
            id=f"job{idx}",
            nodes=rng.choice((1, 4, 10, 16, 24, 40, 60, 90)),
            priority=rng.choice((1, 1, 1, 2)),
            communication=rng.choices(KINDS, KIND_WEIGHTS)[0],
        )
        for idx in range(15)
    ]
    return Snapshot(
        schema_version=SNAPSHOT_SCHEMA,
        name=f"mid-size-{seed}",
        machine=TorusModel(name="mid-size", shape=sizes, wrap=wrap, nodes_per_router=2),
        down=format_node_set(rng.sample(free, 4)),
        running=running,
        queue=queue,
    )


def solve(
    snapshot: Snapshot,
    mode: Interference,
    method: str = "exact",
    *,
    time_limit: float | None = None,
    seed: int = 0,
    first_level: bool = False,
) -> PlacementResult:
    """Run a method on a snapshot."""
    options = Options(time_limit=time_limit, interference=mode, seed=seed, first_level=first_level)
    return solving.solve(prepare(snapshot), method, options)


def reached(result: PlacementResult) -> tuple[int, ...]:
    """Return the objectives of the levels, all in maximising sense."""
    totals = []
    for level in result.levels:
        assert level.objective is not None, level.name
        totals.append(-level.objective if level.sense == "min" else level.objective)
    return tuple(totals)


def text_without_seconds(result: PlacementResult) -> str:
    """Return a result as it is written to a file, but for the time it took."""
    document: dict[str, Any] = result.model_dump(mode="json")
    document.pop("seconds")
    return json.dumps(document)
