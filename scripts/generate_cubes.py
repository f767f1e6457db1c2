"""Draw snapshots of pods of cubes: some chips down, some jobs running, a queue of many sizes.

Seeds from 900 are for tuning, those from 500 for what is reported (docs/proofs/cubes.md).
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path

import numpy as np

from topoplace.machine import format_node_set
from topoplace.placement.cubes.problem import CubesProblem, Placed, Room
from topoplace.snapshot.cubes_state import prepare_cubes
from topoplace.snapshot.files import write_document
from topoplace.snapshot.machines import load_machine
from topoplace.snapshot.schema import SNAPSHOT_SCHEMA, Request, RunningJob, Snapshot

PARTS = {4: "2x2x1", 8: "2x2x2", 16: "2x2x4", 32: "2x4x4"}
"""Slices of a TPU v4 that are smaller than a cube, by their chips (Google's page on TPU v4)."""

SHAPES = ("listed", "any", "mixed")
"""Whether requests for parts have those shapes, any, or some these and some any."""


def generate_cubes(
    seed: int,
    num_jobs: int = 200,
    shapes: str = "listed",
    machine: str = "cubes:64",
) -> Snapshot:
    """Return a snapshot of a pod: jobs run wherever they came to stand, others wait.

    Parts are of a host's four chips to half a cube, and whole cubes up to half a pod. How many jobs
    take whole cubes, how busy the machine is, and how many chips are down is drawn first: some
    queues ask for less than is free, others for many times as much. A third of the requests has a
    priority from 2 to 4.
    """
    rng = random.Random(f"cubes-{seed}")
    model = load_machine(machine)
    empty = Snapshot(schema_version=SNAPSHOT_SCHEMA, name=f"cubes_{shapes}_{seed}", machine=model)
    num_chips = prepare_cubes(empty).machine.num_chips
    busy, wholes = rng.uniform(0.2, 0.7), rng.choice([0, 0.02, 0.05, 0.1])
    drawn = [_request(rng, f"r{k}", shapes, num_chips, wholes) for k in range(num_chips // 8)]
    problem = CubesProblem(prepare_cubes(empty.model_copy(update={"queue": drawn})))
    held = _running(rng, problem, busy)
    running = [
        RunningJob(id=f"run{k}", nodes=format_node_set(chips)) for k, chips in enumerate(held)
    ]
    down = sorted(rng.sample(range(num_chips), rng.randint(0, num_chips // 200)))
    queue = [_request(rng, f"job{k}", shapes, num_chips, wholes) for k in range(num_jobs)]
    fields = {"down": format_node_set(down), "running": running, "queue": queue, "seed": seed}
    return empty.model_copy(update=fields)


def _request(rng: random.Random, name: str, shapes: str, num_chips: int, wholes: float) -> Request:
    most = max(1, num_chips // 128)
    cubes = min(most, rng.choice([1, 1, 1, 2, 2, 3, 4, 4, 6, 8, 12, 16, 32]))
    nodes = 64 * cubes if rng.random() < wholes else rng.choice([4, 4, 4, 8, 8, 16, 16, 32])
    listed = nodes in PARTS and (shapes == "listed" or (shapes == "mixed" and rng.random() < 0.5))
    priority = 1 if rng.random() < 2 / 3 else rng.randint(2, 4)
    shape = PARTS[nodes] if listed else None
    return Request(id=name, nodes=nodes, shapes=shape, priority=priority)


def _running(rng: random.Random, problem: CubesProblem, busy: float) -> list[list[int]]:
    """Return the chips of jobs that stand anywhere, until the machine is as busy as wanted."""
    room, held = Room(problem), []
    num_cubes, want = problem.machine.num_cubes, int(busy * problem.machine.num_chips)
    for idx, request in enumerate(problem.requests):
        if want <= 0:
            break
        if request.nodes > max(64, want):
            continue
        among = np.array([rng.random() < 0.2 for _ in range(num_cubes)])
        placed: Placed | None
        if request.num_cubes:
            placed = room.whole(idx)
        else:
            placed = room.part(idx, request.parts, among, fullest=rng.random() < 0.5)
        if placed is not None:
            held.append(problem.chips_of(placed).tolist())
            want -= request.nodes
    return held


def main() -> None:
    """Write snapshots into a folder."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("seeds", type=int, nargs="+")
    parser.add_argument("--shapes", choices=SHAPES, default="listed")
    parser.add_argument("--jobs", type=int, default=200)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for seed in options.seeds:
        snapshot = generate_cubes(seed, options.jobs, options.shapes)
        write_document(options.folder / f"{snapshot.name}.json", snapshot)


if __name__ == "__main__":
    main()
