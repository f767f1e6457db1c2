"""Requests on grids: tiny and middling trees, what the search over lines proves of them."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from topoplace.certify.tree_machine.instance import read_instance
from topoplace.certify.tree_machine.lines import Lines
from topoplace.certify.tree_machine.relaxed import Relaxed
from topoplace.placement.tree.exact.job import Job
from topoplace.placement.tree.exact.lines.certificate import line_nogoods_of
from topoplace.placement.tree.exact.lines.search import LineSearch
from topoplace.result.tree import LineNogood
from topoplace.snapshot.schema import Communication, Pattern, PatternUse, Snapshot
from topoplace.snapshot.tree_state import prepare_tree
from tree_cases import model_of, snapshot_on
from tree_exact_cases import jobs_of

GRIDS = (Pattern.STENCIL_2D, Pattern.STENCIL_3D)


def grid_snapshot(
    seed: int,
    ranks: Sequence[int],
    sizes: Sequence[int] = (2, 3, 4, 5),
    num_leaves: tuple[int, int] = (2, 4),
) -> Snapshot:
    """Return leaves of some sizes, partly held, and a request on a grid that fits.

    In one case of three it needs every free node, or all but one.
    """
    rng = random.Random(f"grid-{seed}")
    wanted = rng.choice(ranks)
    leaves = [rng.choice(sizes) for _ in range(rng.randint(*num_leaves))]
    while sum(leaves) < wanted:
        leaves.append(rng.choice(sizes))
    names = [f"n{k}" for k in range(sum(leaves))]
    rng.shuffle(names)
    most = len(names) - wanted
    num_held = max(0, most - rng.randint(0, 1)) if rng.random() < 1 / 3 else rng.randint(0, most)
    kinds = (Communication.STRICT, Communication.STRICT, Communication.NONE)
    running = [(name, rng.choice(kinds)) for name in names[:num_held]]
    use = PatternUse(pattern=rng.choice(GRIDS), share=rng.choice((30, 100)))
    return snapshot_on(model_of(leaves), running, [(wanted, [use])])


def job_on(snapshot: Snapshot) -> Job:
    """Return the request alone; all leaves are under one root."""
    (job,) = jobs_of(prepare_tree(snapshot))
    return job


def job_of_leaves(sizes: list[int], held: int, ranks: int, pattern: Pattern) -> Job:
    """Return a job on leaves of which the last has some nodes in use."""
    names = [f"n{k}" for k in range(sum(sizes))]
    running = [(name, Communication.STRICT) for name in names[len(names) - held :]]
    return job_on(snapshot_on(model_of(sizes), running, [(ranks, [PatternUse(pattern=pattern)])]))


def counts_of(job: Job, leaves: np.ndarray) -> np.ndarray:
    """Return leaves per state of an allocation."""
    found = np.zeros(len(job.states.count), dtype=np.int64)
    for leaf, ranks in Counter(leaves.tolist()).items():
        (kind,) = (t for t, own in enumerate(job.states.leaves) if leaf in own)
        found[(job.states.type == kind) & (job.states.count == ranks)] += 1
    return found


def in_order(job: Job) -> np.ndarray:
    """Return the leaf of every rank, leaf after leaf."""
    return np.repeat(job.domain, job.free[job.domain])[: job.ranks]


def proven(
    job: Job, seconds: float = 20.0, to_beat: int | None = None
) -> tuple[Fraction, list[LineNogood]]:
    """Return the bound that the search over lines finds, and what proves it."""
    to_beat = job.cost(in_order(job)) if to_beat is None else to_beat
    search = LineSearch(job, to_beat, time.perf_counter() + seconds)
    left = next(search.open_thresholds(), None)
    units = search.to_beat if left is None else left.cost
    nogoods = line_nogoods_of(search)
    assert nogoods is not None
    return Fraction(units, 100 * job.scale), nogoods


def relaxed_of(snapshot: Snapshot) -> Relaxed:
    """Return what the checker reads of the request."""
    instance = read_instance(snapshot)
    return Relaxed(instance, instance.wishes["q0"])


def follow(snapshot: Snapshot, nogoods: Sequence[LineNogood], bound: Fraction) -> None:
    """Have the checker follow nogoods; raises `RefusedError` unless they prove the bound."""
    instance = read_instance(snapshot)
    wish = instance.wishes["q0"]
    Lines(Relaxed(instance, wish), wish).follow(nogoods, bound)


def step_values(job: Job, leaves: np.ndarray) -> np.ndarray:
    """Return the hops of every step of an allocation."""
    comm = job.comm + np.bincount(leaves, minlength=len(job.comm))
    ends = [leaves[step.pairs] for step in job.steps]
    values = [job.model.scaled_hops(e[:, 0], e[:, 1], comm).max() for e in ends]
    return np.array(values, dtype=np.int64)
