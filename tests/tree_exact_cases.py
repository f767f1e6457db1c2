"""Tiny random trees with a queue, and the exact method's answers as numbers."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from topoplace.placement.switches.cost import CostModel
from topoplace.placement.switches.exact.job import Job, job_of
from topoplace.placement.switches.exact.requests import Room
from topoplace.placement.switches.problem import TreeProblem
from topoplace.result.tree import AllocationResult
from topoplace.snapshot.hierarchy_state import HierarchyState, prepare_contention
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
from topoplace.solving import Options, solve
from tree_cases import two_level

KINDS = ("flat", "flat", "deep", "fat", "apart")


def tiny_machine(rng: random.Random, num_leaves: int) -> TreeModel:
    """Return leaves of two to five nodes under one root, deeper, or under two, apart or not."""
    switches = []
    for leaf in range(num_leaves):
        names = [f"n{leaf}-{k}" for k in range(rng.choice((2, 2, 3, 4, 4, 5)))]
        switches.append(SwitchModel(name=f"s{leaf}", nodes=",".join(names)))
    names = [f"s{leaf}" for leaf in range(num_leaves)]
    kind = rng.choice(KINDS) if num_leaves > 2 else "flat"
    half = num_leaves // 2
    uppers = {
        "flat": {"root": names},
        "deep": {"a": names[:half], "b": names[half:], "root": ["a", "b"]},
        "fat": {"a": names, "b": names},
        "apart": {"a": names[:half], "b": names[half:]},
    }[kind]
    switches += [SwitchModel(name=n, switches=",".join(below)) for n, below in uppers.items()]
    return TreeModel(kind="tree", name="tiny", switches=switches)


def tiny_snapshot(
    seed: int, *, most_ranks: int, num_requests: int = 1, silent: float = 0.15
) -> Snapshot:
    """Return a machine of one to four leaves, partly held, and requests that wait.

    `silent` is the share of requests without patterns.
    """
    rng = random.Random(f"tiny-{seed}")
    machine = tiny_machine(rng, rng.randint(1, 4))
    nodes = [n for s in machine.switches if s.nodes for n in s.nodes.split(",")]
    num_nodes = len(nodes)
    rng.shuffle(nodes)
    held = nodes[: rng.randint(0, max(0, num_nodes - 3))]
    running = []
    while held:
        job = [held.pop() for _ in range(min(len(held), rng.randint(1, 3)))]
        kind = rng.choice((Communication.STRICT, Communication.STRICT, Communication.NONE))
        running.append(RunningJob(id=f"r{len(held)}", nodes=",".join(job), communication=kind))
    queue = [
        Request(
            id=f"q{number}",
            nodes=rng.randint(1, min(num_nodes, most_ranks)),
            priority=rng.choice((1, 1, 2)),
            patterns=None if rng.random() < silent else _patterns(rng),
        )
        for number in range(num_requests)
    ]
    return Snapshot(
        schema_version="topoplace.snapshot/1",
        name="tiny",
        machine=machine,
        running=running,
        queue=queue,
    )


def _patterns(rng: random.Random) -> list[PatternUse]:
    return [
        PatternUse(pattern=p, share=rng.choice((20, 40, 50)), message_bytes=rng.choice((1, 1, 3)))
        for p in rng.sample(list(Pattern), rng.choice((1, 1, 1, 2)))
    ]


def tiny_state(seed: int, *, most_ranks: int, num_requests: int = 1) -> HierarchyState:
    return prepare_contention(tiny_snapshot(seed, most_ranks=most_ranks, num_requests=num_requests))


def solved(state: HierarchyState, time_limit: float = 2.0) -> AllocationResult:
    return solve(state, "exact", Options(time_limit=time_limit))


def number(value: object) -> Fraction:
    """Return a fraction of a document."""
    assert value is not None
    return Fraction(value.numerator, value.denominator)  # type: ignore[attr-defined]


def job_on(
    sizes: Sequence[int], pattern: Pattern, ranks: int, busy: Sequence[int] | None = None
) -> Job:
    """Return a job on leaves of such sizes under one root, some nodes held by intensive jobs."""
    tree = two_level(sizes)
    comm = np.array(busy if busy is not None else [0] * len(sizes), dtype=np.int64)
    uses = [PatternUse(pattern=pattern)]
    return job_of(CostModel(tree), uses, ranks, comm, np.array(sizes) - comm, np.arange(len(sizes)))


def worst_hops(job: Job, leaves: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the dearest hops of every step, in units of 1 / `job.scale`."""
    comm = job.comm + np.bincount(leaves, minlength=len(job.comm))
    ends = [leaves[step.pairs] for step in job.steps]
    return np.array([job.model.scaled_hops(e[:, 0], e[:, 1], comm).max() for e in ends])


def jobs_of(state: HierarchyState, number: int = 0) -> list[Job]:
    """Return a request alone, once per set of leaves that it may use together."""
    problem, request = TreeProblem(state), state.requests[number]
    free = problem.occupancy().free_per_leaf
    return Room(problem.costs, state.comm, free).jobs(request.patterns, request.nodes)
