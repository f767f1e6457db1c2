"""Measure what links of their own cost the jobs of a fat tree: exact, Jigsaw, LaaS, no isolation.

Trees are k-ary; jobs come and go by first fit until a share of the nodes is busy, and 100 requests
wait. Sizes are 1 plus an exponential number, of mean k (`small`) or 4k (`large`), or more than a
leaf has (`spanning`). Limits count CPU seconds, of all threads together. Seeds from 900 are for
tuning, those from 500 for what is reported. Runs are recorded in docs/studies/fattrees.csv in place
of those of the same seed.

    python scripts/study_fattrees.py [--ports K ..] [--families NAME ..] [--seeds N]
        [--from-seed S] [--limit SECONDS]
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial
from types import SimpleNamespace

import numpy as np

from study import Column, Record, Study, read_rows, table, timed, where
from topoplace import clock
from topoplace.machine import format_node_set
from topoplace.placement.fattree.places import Room, shapes
from topoplace.placement.fattree.state import FatTreeState, fat_tree_of, prepare
from topoplace.snapshot.schema import SNAPSHOT_SCHEMA, Request, RunningJob, Snapshot
from topoplace.solving import Options, solve

BUSY = 0.6
FAMILIES = {
    "small": (0, 1, 1),
    "large": (0, 4, 1),
    "priorities": (0, 1, 3),
    "spanning": (1, 1, 1),
}
"""By name the leaves that a job has at least, how often k its mean size is besides, and the highest
priority."""
METHODS = ("first-fit", "jigsaw", "laas", "exact")
_MISSES = 5  # jobs that find no place, until the tree is full


def draw(ports: int, seed: int, family: str, queue: int = 100) -> Snapshot:
    """Return a k-ary tree with running jobs that own their links, and a queue."""
    rng = random.Random(f"{ports}-{seed}-{family}")
    model = fat_tree_of("fattree", [ports], None, f"fattree:{ports}")
    assert model is not None
    tree, (leaves, mean, highest) = model.tree, FAMILIES[family]

    def size() -> int:
        least = 1 + leaves * ports // 2
        return min(tree.num_nodes, least + int(rng.expovariate(1 / (mean * ports))))

    left = np.ones(tree.num_rows, dtype=np.int64)
    left[: len(tree.sizes)] = tree.sizes
    placed: list[tuple[int, ...]] = []
    misses = 0
    while misses < _MISSES:
        rows = Room(tree, left).first(shapes(tree, size()))
        if rows is None:
            misses += 1
            continue
        np.subtract.at(left, list(rows), 1)
        placed.append(rows)
    rng.shuffle(placed)
    running, owned, total = [], {}, 0
    free: list[list[int]] = [[] for _ in tree.sizes]
    for node, leaf in enumerate(tree.leaf_of):
        free[leaf].append(node)
    for k, rows in enumerate(placed):
        hosts = [row for row in rows if row < len(tree.sizes)]
        if total + len(hosts) <= BUSY * tree.num_nodes:
            total += len(hosts)
            nodes = [free[leaf].pop(rng.randrange(len(free[leaf]))) for leaf in hosts]
            running.append(RunningJob(id=f"run{k}", nodes=format_node_set(nodes)))
            if len(rows) > len(hosts):
                owned[f"run{k}"] = tree.text(rows[len(hosts) :])
    return Snapshot(
        schema_version=SNAPSHOT_SCHEMA,
        name=f"{family}-{ports}-{seed}",
        machine=model.model_copy(update={"owned": owned}),
        running=running,
        queue=[
            Request(id=f"job{k}", nodes=size(), priority=rng.randint(1, highest))
            for k in range(queue)
        ],
    )


def without_isolation(state: FatTreeState) -> int:
    """Return the most value that starts where jobs share links: a knapsack of the free nodes."""
    free = int(state.left[: len(state.tree.sizes)].sum())
    best = np.zeros(free + 1, dtype=np.int64)
    for request in state.requests:
        if request.nodes <= free:
            more = best[: free + 1 - request.nodes] + request.value
            best[request.nodes :] = np.maximum(best[request.nodes :], more)
    return int(best.max())


def runs_of(ports: int, seed: int, family: str, limit: float) -> Iterator[Record]:
    """Yield what every method reaches."""
    state = prepare(draw(ports, seed, family))
    sizes = {request.id: request.nodes for request in state.requests}
    busy = state.tree.num_nodes - int(state.left[: len(state.tree.sizes)].sum())
    most = without_isolation(state)
    for method in METHODS:
        options = Options(time_limit=limit)
        result, seconds = timed(partial(solve, state, method, options), time.process_time)
        started = sum(sizes[one.request] for one in result.solution.placements)
        yield Record(
            ports=ports,
            family=family,
            seed=seed,
            method=method,
            value=result.levels[0].objective,
            bound=result.levels[0].bound,
            shared=most,
            used=round((busy + started) / state.tree.num_nodes, 4),
            seconds=round(seconds, 1),
            checked=result.check().holds,
        )


def row_of(runs: Sequence[Record]) -> Record:
    """Return a row of the table: the runs of all methods on one snapshot."""
    by = {run.method: run for run in runs}
    exact = by["exact"]
    return Record(
        seed=exact.seed,
        **{name.replace("-", "_"): by[name].value for name in METHODS},
        **{f"{name.replace('-', '_')}_used": f"{by[name].used:.1%}" for name in METHODS},
        bound=exact.bound,
        shared=exact.shared,
        gap=f"{exact.bound / exact.value - 1:.2%}",
        least=f"{1 - exact.bound / exact.shared:.2%}",
        most=f"{1 - exact.value / exact.shared:.2%}",
        seconds=exact.seconds,
    )


COLUMNS: list[Column] = [
    *("seed", ("LaaS", "laas"), ("Jigsaw", "jigsaw"), ("first fit", "first_fit"), "exact"),
    *("bound", "gap", ("no isolation", "shared"), ("costs at least", "least")),
    *(("at most", "most"), ("used: LaaS", "laas_used"), ("Jigsaw", "jigsaw_used")),
    *(("exact", "exact_used"), ("CPU s", "seconds")),
]


def write(study: Study, rows: Sequence[Record]) -> None:
    """Write the records, and a table for every size and family."""
    study.write(rows)
    parts = []
    for ports in sorted({row.ports for row in rows}):
        for family in FAMILIES:
            own = where(rows, ports=ports, family=family)
            if own:
                seeds = sorted({row.seed for row in own})
                found = [row_of(where(own, seed=seed)) for seed in seeds]
                parts += [f"## {ports**3 // 4:,} nodes, {family}", table(found, COLUMNS)]
    study.page(*parts, title="Fat trees")


def main(given: Sequence[str] | None = None) -> None:
    """Measure, record and write."""
    study = Study(
        "fattrees",
        __doc__,
        given,
        ports=[16, 28],
        families=[*FAMILIES],
        seeds=3,
        from_seed=500,
        limit=60.0,
    )
    options = study.options
    solve(prepare(draw(8, 999, "small", 8)), "exact", Options(time_limit=20))  # compiles
    setattr(clock, "time", SimpleNamespace(perf_counter=time.process_time))  # noqa: B010
    rows = read_rows(study.file(".csv"))
    for ports in options.ports:
        for seed in range(options.from_seed, options.from_seed + options.seeds):
            for family in options.families:
                own = [*runs_of(ports, seed, family, options.limit)]
                print(*own, sep="\n", file=sys.stderr, flush=True)
                same = where(rows, ports=ports, seed=seed, family=family)
                rows = [*(row for row in rows if row not in same), *own]
                write(study, sorted(rows, key=lambda run: (run.ports, run.seed)))


if __name__ == "__main__":
    main()
