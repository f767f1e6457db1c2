"""Allocation on a tree: every algorithm's cost beside the optimum, its bound, gap and seconds.

The machine is a Slurm topology file (`--topology`), or 4,392 nodes with so many per leaf
(`--nodes-per-leaf`). It is filled with running jobs, nine in ten communication-intensive, up to
an occupancy: `jobs`, as Slurm's default places them while others end, or `scattered`, on nodes
drawn at random. One request of every pattern and size then waits alone.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Iterator
from fractions import Fraction
from numbers import Rational
from pathlib import Path

import numpy as np

from study_page import line, say, table_head
from topoplace.placement.switches.allocators import registered_allocator
from topoplace.placement.switches.occupancy import Occupancy
from topoplace.placement.switches.problem import TreeProblem
from topoplace.result.tree import AllocationResult
from topoplace.snapshot.machines import load_machine
from topoplace.snapshot.schema import (
    Communication,
    Pattern,
    PatternUse,
    Request,
    RunningJob,
    Snapshot,
    SwitchModel,
    TreeModel,
)
from topoplace.snapshot.tree_state import TreeRequest, prepare_tree
from topoplace.solving import Options, methods, solve

OCCUPANCIES = (50, 60, 70, 80, 90)
SIZES = (16, 32, 64, 128, 256, 512)
SECONDS = 10.0
ALGORITHMS = ("default", "greedy", "balanced", "adaptive", "fewest-domains", "random")
HEAD = ("busy %", "seed", "pattern", "nodes", *ALGORITHMS, "exact", "bound", "gap %", "s")


def main() -> None:
    """Print the table, then the share that was proven in time."""
    options = _options()
    machine = (
        load_machine(str(options.topology))
        if options.topology
        else synthetic(4392, options.nodes_per_leaf)
    )
    assert isinstance(machine, TreeModel)
    methods("allocation")
    say(table_head(HEAD))
    proven: dict[str, list[bool]] = {}
    _warm_up(machine)
    for busy in options.busy:
        for seed in range(options.seeds):
            running = fill(machine, busy, seed, options.fill)
            for pattern in options.patterns:
                for size in options.sizes:
                    snapshot = case(machine, running, Pattern(pattern), size)
                    cells, done = _measure(snapshot, options.limit)
                    if cells:
                        proven.setdefault(pattern, []).append(done)
                        say([line([busy, seed, pattern, size, *cells])])
    print()
    for pattern, done in proven.items():
        print(f"{pattern}: {sum(done)} of {len(done)} proven optimal in {SECONDS:g} s")
    total = [each for done in proven.values() for each in done]
    print(f"all: {sum(total)} of {len(total)}, {100 * sum(total) / len(total):.1f} %")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--topology", type=Path, help="a topology.conf")
    parser.add_argument("--nodes-per-leaf", type=int, default=16)
    parser.add_argument("--fill", choices=("jobs", "scattered"), default="jobs")
    parser.add_argument("--busy", type=int, nargs="*", default=OCCUPANCIES)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--patterns", nargs="*", default=[pattern.value for pattern in Pattern])
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES)
    parser.add_argument("--limit", type=float, default=0.95 * SECONDS)
    return parser.parse_args()


def synthetic(num_nodes: int, per_leaf: int) -> TreeModel:
    """Return a machine of two levels; the last leaf has what is left."""
    names = [f"n{node}" for node in range(num_nodes)]
    leaves = [names[at : at + per_leaf] for at in range(0, num_nodes, per_leaf)]
    switches = [SwitchModel(name=f"s{k}", nodes=",".join(nodes)) for k, nodes in enumerate(leaves)]
    root = SwitchModel(name="root", switches=",".join(switch.name for switch in switches))
    return TreeModel(kind="tree", name=f"tree{per_leaf}", switches=[*switches, root])


def case(machine: TreeModel, running: list[RunningJob], pattern: Pattern, size: int) -> Snapshot:
    """Return a snapshot in which one request waits."""
    return Snapshot(
        schema_version="topoplace.snapshot/1",
        name="bench",
        machine=machine,
        running=running,
        queue=[Request(id="job", nodes=size, patterns=[PatternUse(pattern=pattern)])],
    )


def fill(machine: TreeModel, busy: int, seed: int, how: str) -> list[RunningJob]:
    """Return running jobs that hold so many percent of the nodes."""
    rng = random.Random(f"{busy}-{seed}-{how}")
    empty = TreeProblem(prepare_tree(case(machine, [], Pattern.RING, 1)))
    occupancy = empty.occupancy()
    held: list[tuple[np.ndarray, bool]] = []
    num_nodes = occupancy.tree.num_nodes
    # Twice nearly full and mostly drained again, so that what is free lies as jobs leave it.
    for percent in (97, 97, busy) if how == "jobs" else (busy,):
        for job in _arrivals(occupancy, rng, round(num_nodes * percent / 100), how):
            held.append(job)
        if percent != busy:
            rng.shuffle(held)
            for nodes, intensive in held[len(held) // 3 :]:
                occupancy.end(nodes, intensive)
            del held[len(held) // 3 :]
    names = occupancy.tree.node_names
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
            request = TreeRequest("r", size, 1, (), intensive)
            nodes = default(occupancy, request, np.random.default_rng(0))
        else:
            nodes = np.array(rng.sample(np.flatnonzero(occupancy.free).tolist(), size))
        occupancy.start(nodes, intensive)
        yield nodes, intensive


def _measure(snapshot: Snapshot, limit: float) -> tuple[list[str], bool]:
    state = prepare_tree(snapshot)
    if state.free.sum() < state.requests[0].nodes:
        return [], False
    costs = [_value(solve(state, name).levels[1].objective) for name in ALGORITHMS]
    start = time.perf_counter()
    result: AllocationResult = solve(state, "exact", Options(time_limit=limit))
    seconds = time.perf_counter() - start
    level = result.levels[1]
    found, bound = _value(level.objective), _value(level.bound)
    assert found <= min(costs)
    cells = [f"{float(cost):.3f}" for cost in (*costs, found, bound)]
    gap = 100 * float((found - bound) / found) if found else 0.0
    return [*cells, f"{gap:.2f}", f"{seconds:.1f}"], found == bound and seconds < SECONDS


def _value(number: Rational) -> Fraction:
    return Fraction(number.numerator, number.denominator)


def _warm_up(machine: TreeModel) -> None:
    """Compile or load the kernels, so that no case is charged for it."""
    running = fill(machine, OCCUPANCIES[-1], 0, "jobs")
    for pattern in Pattern:
        state = prepare_tree(case(machine, running, pattern, 64))
        solve(state, "exact", Options(time_limit=4))


if __name__ == "__main__":
    main()
