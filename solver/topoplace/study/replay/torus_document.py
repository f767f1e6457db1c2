"""A torus under a replay as a snapshot document."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from topoplace.machine import format_node_set, parse_node_set
from topoplace.placement.outcome import prism_model
from topoplace.snapshot import RunningState, SnapshotState
from topoplace.snapshot.schema import RunningJob, Snapshot
from topoplace.study.replay.log import LogJob
from topoplace.study.replay.site import waiting_request


def torus_document(
    state: SnapshotState, running: Collection[RunningState], name: str, queue: Sequence[LogJob]
) -> Snapshot:
    """Return a machine with these jobs besides its own as a document.

    A job inside another's prism, which the format has no place for, has its nodes marked down as
    long as the other runs: they are as closed to the queue as the prism itself.
    """
    base, torus = state.snapshot, state.torus
    in_prism = np.zeros(torus.num_routers, dtype=bool)
    for job in running:
        if job.prism is not None:
            in_prism[job.routers] = True
    down = parse_node_set(base.down, torus.num_nodes).tolist()
    jobs = []
    for job in running:
        if job.prism is None and in_prism[job.routers].any():
            down += job.nodes.tolist()
            continue
        jobs.append(
            RunningJob(
                id=job.id,
                nodes=format_node_set(job.nodes.tolist()),
                prism=None if job.prism is None else prism_model(job.prism),
                communication=job.communication,
            )
        )
    return base.model_copy(
        update={
            "name": name,
            "down": format_node_set(down),
            "running": [*base.running, *jobs],
            "queue": [waiting_request(job, with_patterns=False) for job in queue],
        }
    )
