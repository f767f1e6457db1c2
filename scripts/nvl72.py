"""Draw clusters of NVL72 racks: 18 hosts a rack, jobs in segments inside racks, a queue.

Seeds from 900 are for tuning, those from 500 for what is reported.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from pathlib import Path

from topoplace.machine.hostlist import format_host_list
from topoplace.snapshot.files import write_document
from topoplace.snapshot.schema import (
    SNAPSHOT_SCHEMA,
    HierarchyModel,
    HostsModel,
    Request,
    RunningJob,
    Segment,
    Snapshot,
)

HOSTS = 18
"""Compute trays of a rack, of four GPUs each (NVIDIA's reference architecture of the GB200)."""

SEGMENTS = (1, 2, 4, 6, 8, 9, 12, 16, 18)
"""Hosts of a segment; 1 asks for nothing."""

_PARTS = (1, 1, 1, 2, 2, 3, 4, 6, 8)
_FULL = 0.95  # of the hosts: then jobs end, until the load is as wanted
_DOWN = 0.01
_MISSES = 50


def cluster(
    seed: int,
    racks: int = 56,
    hosts_per_rack: int = HOSTS,
    load: float = 0.6,
    jobs: int = 40,
    segments: Sequence[int] = SEGMENTS,
) -> Snapshot:
    """Return a cluster on which jobs have come and gone, with a queue.

    Jobs are drawn alike whether they run or wait: one to eight segments of a size drawn first. One
    host in a hundred is down. Segments of running jobs came into any racks with room until the
    cluster was full; then jobs ended in any order, down to the load.

    Parameters
    ----------
    load
        Share of all hosts that running jobs hold, at most.
    jobs
        How many wait.
    segments
        Hosts of a segment, one of them for each job; each at most `hosts_per_rack`.
    """
    rng = random.Random(f"nvl72-{seed}-{racks}-{hosts_per_rack}-{load}-{jobs}")
    names = [[f"r{r:03d}h{h:02d}" for h in range(hosts_per_rack)] for r in range(racks)]
    every = [name for rack in names for name in rack]
    down = set(rng.sample(every, round(_DOWN * len(every))))
    held = _running(rng, [[n for n in rack if n not in down] for rack in names], load, segments)
    hosts = [
        HostsModel(hosts=format_host_list(rack), domains=[f"r{r:03d}"])
        for r, rack in enumerate(names)
    ]
    model = HierarchyModel(
        kind="hierarchy", name=f"nvl72_{racks}", levels=["rack", "host"], hosts=hosts
    )
    return Snapshot(
        schema_version=SNAPSHOT_SCHEMA,
        name=f"nvl72_{racks}x{hosts_per_rack}_{round(100 * load)}_{jobs}_{seed}",
        machine=model,
        down=format_host_list(sorted(down)),
        running=[
            RunningJob(id=f"run{k}", nodes=format_host_list(sorted(own)))
            for k, own in enumerate(held)
        ],
        queue=[_request(rng, f"job{k}", segments) for k in range(jobs)],
        seed=seed,
    )


def _request(rng: random.Random, name: str, segments: Sequence[int]) -> Request:
    size, parts = rng.choice(segments), rng.choice(_PARTS)
    together = [Segment(size=size, level="rack")] if size > 1 else None
    return Request(id=name, nodes=size * parts, segments=together)


def _running(
    rng: random.Random, free: list[list[str]], load: float, segments: Sequence[int]
) -> list[list[str]]:
    """Return the hosts of the running jobs; `free` has those of every rack that are up."""
    total = sum(map(len, free))
    held: list[list[str]] = []
    busy = misses = 0
    while busy < _FULL * total and misses < _MISSES:
        request, own = _request(rng, "running", segments), []
        size = request.segments[0].size if request.segments else 1
        for _ in range(request.nodes // size):
            fitting = [rack for rack in free if len(rack) >= size]
            if not fitting:
                break
            rack = rng.choice(fitting)
            own += [rack.pop(rng.randrange(len(rack))) for _ in range(size)]
        misses += not own
        held += [own] if own else []
        busy += len(own)
    rng.shuffle(held)
    while held and busy > load * total:
        busy -= len(held.pop())
    return held


def main() -> None:
    """Write snapshots into a folder."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("seeds", type=int, nargs="+")
    parser.add_argument("--racks", type=int, default=56)
    parser.add_argument("--load", type=float, default=0.6)
    parser.add_argument("--jobs", type=int, default=40)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for seed in options.seeds:
        snapshot = cluster(seed, options.racks, load=options.load, jobs=options.jobs)
        write_document(options.folder / f"{snapshot.name}.json", snapshot)


if __name__ == "__main__":
    main()
