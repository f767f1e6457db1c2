"""Allocation on a tree: every algorithm's cost beside the optimum, its bound, gap and seconds.

The machine is a Slurm topology file (`--topology`), or 4,392 nodes with so many per leaf
(`--nodes-per-leaf`). It is filled with running jobs, nine in ten communication-intensive, up to
an occupancy: `jobs`, as Slurm's default places them while others end, or `scattered`, on nodes
drawn at random (`--fill`). One request of every pattern and size then waits alone. What is drawn
is compared as `topoplace compare` does.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from study import groups, parsed
from study_mishra2020 import NUM_NODES, leaves_of
from topoplace import compare
from topoplace.placement.switches.allocators import registered_allocator
from topoplace.placement.switches.occupancy import Occupancy
from topoplace.placement.switches.problem import TreeProblem
from topoplace.snapshot.hierarchy_state import HierarchyRequest, prepare_contention
from topoplace.snapshot.machines import load_machine
from topoplace.snapshot.schema import (
    Communication,
    Pattern,
    PatternUse,
    Request,
    RunningJob,
    Snapshot,
    TreeModel,
)
from topoplace.solving import Options, solve

SECONDS = 10.0
METHODS = ("exact", "default", "greedy", "balanced", "adaptive", "fewest-domains", "random")


def main(given: Sequence[str] | None = None) -> None:
    """Print the table, then the share that was proven in time."""
    options = parsed(
        __doc__,
        given,
        topology=Path,
        nodes_per_leaf=16,
        fill="jobs",
        busy=[50, 60, 70, 80, 90],
        seeds=1,
        patterns=[pattern.value for pattern in Pattern],
        sizes=[16, 32, 64, 128, 256, 512],
        limit=0.95 * SECONDS,
    )
    machine = leaves_of(NUM_NODES, options.nodes_per_leaf).snapshot.machine
    if options.topology:
        machine = load_machine(str(options.topology))
    assert isinstance(machine, TreeModel)
    nearly_full = fill(machine, 90, 0, "jobs")
    for pattern in Pattern:  # compile or load the kernels, so that no case is charged for it
        state = prepare_contention(case(machine, nearly_full, pattern, 64))
        solve(state, "exact", Options(time_limit=4))
    cases = [
        case(machine, running, Pattern(pattern), size, f"-busy{busy}-seed{seed}")
        for busy in options.busy
        for seed in range(options.seeds)
        for running in [fill(machine, busy, seed, options.fill)]
        for pattern in options.patterns
        for size in options.sizes
    ]
    fitting = [one for one in cases if prepare_contention(one).free.sum() >= one.queue[0].nodes]
    found = compare(
        *fitting,
        methods=METHODS,
        time_limit=options.limit,
        keep=lambda row, *_: print(
            f"{row.instance}, {row.method}: {row.seconds:.1f} s", file=sys.stderr
        ),
    )
    print(found)
    exact = [row for row in found.rows if row.method == "exact"]
    by_pattern = groups(exact, lambda row: row.instance.split("-")[0])
    for name, own in (by_pattern | {"all": exact}).items():
        closed = sum(row.status == "optimal" and row.seconds < SECONDS for row in own)
        share = f"{closed} of {len(own)}, {100 * closed / len(own):.1f} %"
        print(f"{name}: {share} proven optimal in {SECONDS:g} s")


def case(
    machine: TreeModel, running: list[RunningJob], pattern: Pattern, size: int, state: str = ""
) -> Snapshot:
    """Return a snapshot in which one request waits."""
    return Snapshot(
        schema_version="topoplace.snapshot/1",
        name=f"{pattern.value}-{size}{state}",
        machine=machine,
        running=running,
        queue=[Request(id="job", nodes=size, patterns=[PatternUse(pattern=pattern)])],
    )


def fill(machine: TreeModel, busy: int, seed: int, how: str) -> list[RunningJob]:
    """Return running jobs that hold so many percent of the nodes."""
    rng = random.Random(f"{busy}-{seed}-{how}")
    empty = TreeProblem(prepare_contention(case(machine, [], Pattern.RING, 1)))
    occupancy = empty.occupancy()
    held: list[tuple[np.ndarray, bool]] = []
    num_nodes = occupancy.machine.num_nodes
    # Twice nearly full and mostly drained again, so that what is free lies as jobs leave it.
    for percent in (97, 97, busy) if how == "jobs" else (busy,):
        for job in _arrivals(occupancy, rng, round(num_nodes * percent / 100), how):
            held.append(job)
        if percent != busy:
            rng.shuffle(held)
            for nodes, intensive in held[len(held) // 3 :]:
                occupancy.end(nodes, intensive)
            del held[len(held) // 3 :]
    names = occupancy.machine.host_names
    return [
        RunningJob(
            id=f"r{k}",
            nodes=",".join(names[node] for node in nodes),
            communication=Communication.STRICT if intensive else Communication.NONE,
        )
        for k, (nodes, intensive) in enumerate(held)
    ]


def _arrivals(
    occupancy: Occupancy, rng: random.Random, most: int, how: str
) -> Iterator[tuple[np.ndarray, bool]]:
    """Start jobs of 1 to 128 nodes until so many nodes are held."""
    default = registered_allocator("default")
    while (left := most - int(occupancy.busy.sum())) > 0:
        size = min(1 << rng.randrange(8), left)
        intensive = rng.random() < 0.9
        if how == "jobs":
            request = HierarchyRequest("r", size, 1, ())
            nodes = default(occupancy, request, np.random.default_rng(0))
        else:
            nodes = np.array(rng.sample(np.flatnonzero(occupancy.free).tolist(), size))
        occupancy.start(nodes, intensive)
        yield nodes, intensive


if __name__ == "__main__":
    main()
