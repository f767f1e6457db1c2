"""Seeded snapshots of Blue Waters at a given share of busy nodes."""

from __future__ import annotations

import random

import numpy as np

from topoplace.errors import InputError
from topoplace.machine import format_node_set
from topoplace.snapshot._filling import Filling, Put
from topoplace.snapshot.named import blue_waters_features
from topoplace.snapshot.schema import (
    PrismModel,
    RunningJob,
    Snapshot,
    TorusModel,
)
from topoplace.snapshot.state import prepare
from topoplace.snapshot.workload import Workload, WorkloadJob, workload_jobs, workload_queue

SCATTERED_PERCENT = 4
"""Share of the busy nodes held by jobs without a prism."""

_SCATTERED_RANGE = (2, 7)  # in percent; kept while jobs end, where the fill reached it

DOWN_PER_MILLE = 3
"""Share of the compute nodes that are down."""

_MAX_FAILURES = 10  # draws in a row that fit nowhere: a scheduler looks no further down its queue
_MAX_TRIES = 20  # ways to end jobs, until the scattered jobs' share is in range
_MAX_SCATTERED = 456  # larger jobs on node lists would close most of the machine


def generate_snapshot(
    machine: TorusModel, workload: Workload, busy_percent: int, seed: int
) -> Snapshot:
    """Return a snapshot of a shipped three-dimensional machine.

    Jobs drawn evenly from the workload fill the machine until no more fit, then jobs end at
    random until the target is reached: the holes are those that a running system has.

    Parameters
    ----------
    machine
        A machine with the classes of the workload.
    workload
        Where running jobs are drawn from; the queue holds each of its jobs once.
    busy_percent
        Busy nodes of every class, in percent of all nodes of the class; met within 1 % of itself.
    seed
        Same seed, same snapshot.

    Raises
    ------
    InputError
        If the target cannot be reached.
    """
    bare = Snapshot(schema_version="topoplace.snapshot/1", name=machine.name, machine=machine)
    state = prepare(bare)
    rng = random.Random(seed)
    compute = np.flatnonzero(state.node_class >= 0).tolist()
    down = sorted(rng.sample(compute, DOWN_PER_MILLE * len(compute) // 1000))
    is_down = np.zeros(state.torus.num_nodes, dtype=bool)
    is_down[down] = True
    classes = {name: state.node_class == idx for idx, name in enumerate(state.classes)}
    filling = Filling(state.torus, classes, is_down)
    jobs = workload_jobs(workload)
    for name, members in classes.items() if busy_percent else ():
        drawn = [job for job in jobs if job.node_class == name]
        target = busy_percent * int(members.sum()) / 100
        _fill(filling, drawn, rng)
        full = filling.puts
        for _ in range(_MAX_TRIES):
            filling.replace(full)
            _end_jobs(filling, name, target, rng)
            _top_up(filling, drawn, name, target, rng)
            if _share_is_right(filling, name):
                break
    label = f"{busy_percent}" if busy_percent else "empty"
    return Snapshot(
        schema_version="topoplace.snapshot/1",
        name=f"{machine.name}_{label}",
        machine=machine.name,
        down=format_node_set(down),
        running=[_running(idx, put) for idx, put in enumerate(filling.puts, start=1)],
        regions=blue_waters_features() if machine.name == "blue_waters" else {},
        queue=workload_queue(workload),
        seed=seed,
        source=f"generated; running jobs and queue: {workload.source}",
    )


def _fill(filling: Filling, jobs: list[WorkloadJob], rng: random.Random) -> None:
    """Put jobs drawn evenly until `_MAX_FAILURES` draws in a row fit nowhere."""
    failures = 0
    while failures < _MAX_FAILURES:
        done = _put(filling, jobs, rng)
        failures = 0 if done else failures + 1


def _put(filling: Filling, jobs: list[WorkloadJob], rng: random.Random) -> bool:
    """Put one of the jobs, a small one scattered if scattered jobs are short of their share."""
    node_class = jobs[0].node_class
    scattered = filling.busy(node_class, scattered_only=True)
    small = [job for job in jobs if job.nodes <= _MAX_SCATTERED]
    short = 100 * scattered < SCATTERED_PERCENT * filling.busy(node_class)
    if short and small and filling.put_scattered(small[rng.randrange(len(small))], rng):
        return True
    return filling.put_prism(jobs[rng.randrange(len(jobs))], rng)


def _end_jobs(filling: Filling, node_class: str, target: float, rng: random.Random) -> None:
    """End random jobs of a class while it is above the target, the smallest if none is right."""
    low, high = 0.995 * target, 1.005 * target
    least, share, most = _SCATTERED_RANGE[0], SCATTERED_PERCENT, _SCATTERED_RANGE[1]
    while (busy := filling.busy(node_class)) > high:
        scattered = filling.busy(node_class, scattered_only=True)
        mine = [put for put in filling.puts if put.job.node_class == node_class]
        right = [put for put in mine if busy - put.job.nodes >= low]
        keeping = [put for put in right if least <= _share_without(put, scattered, busy) <= most]
        mending = [put for put in right if (put.prism is None) == (100 * scattered > share * busy)]
        choice = keeping or mending or right
        ending = (
            choice[rng.randrange(len(choice))] if choice else min(mine, key=lambda p: p.job.nodes)
        )
        filling.replace([put for put in filling.puts if put is not ending])


def _share_is_right(filling: Filling, node_class: str) -> bool:
    scattered = filling.busy(node_class, scattered_only=True)
    share = 100 * scattered / filling.busy(node_class)
    return _SCATTERED_RANGE[0] <= share <= _SCATTERED_RANGE[1]


def _share_without(put: Put, scattered: int, busy: int) -> float:
    """Return the scattered jobs' share, in percent, once a job has ended."""
    return 100 * (scattered - (put.job.nodes if put.prism is None else 0)) / (busy - put.job.nodes)


def _top_up(
    filling: Filling, jobs: list[WorkloadJob], node_class: str, target: float, rng: random.Random
) -> None:
    """Put jobs that stay below the target until it is met."""
    low, high = 0.995 * target, 1.005 * target
    failures = 0
    while (busy := filling.busy(node_class)) < low:
        right = [job for job in jobs if busy + job.nodes <= high]
        if not right or failures == 10 * _MAX_FAILURES:
            raise InputError(
                "a share of busy nodes that can be reached", field="busy_percent", value=busy
            )
        done = _put(filling, right, rng)
        failures = 0 if done else failures + 1


def _running(idx: int, put: Put) -> RunningJob:
    prism = None
    if put.prism is not None:
        prism = PrismModel(origin=list(put.prism.origin), extents=list(put.prism.extents))
    return RunningJob(
        id=f"r{idx:03d}-{put.job.name}",
        nodes=format_node_set(put.nodes),
        prism=prism,
        application=put.job.application,
    )
