"""What stands on every router: the picture of a result before any drawing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topoplace.machine import Prism, Torus, parse_node_set
from topoplace.result import PlacementResult
from topoplace.snapshot import SnapshotState

FREE, DOWN, SERVICE, RUNNING = -1, -2, -3, -4
"""Codes of routers without a started job: free, down, service, held by a running job."""

IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class DrawnJob:
    """A started job as it is drawn."""

    name: str
    nodes: int
    prism: Prism | None


@dataclass(frozen=True)
class CellMap:
    """The routers of a machine by what holds them.

    Attributes
    ----------
    codes
        Per router the position of its job in `jobs`, or one of the codes `FREE`, `DOWN`,
        `SERVICE`, `RUNNING`, shape ``torus.shape``.
    owner
        Which job holds a router (started jobs first, then running ones), -1 if none; tells
        neighbouring jobs apart, same shape.
    special
        Whether the router holds nodes of a class that is not the default one, same shape. Where
        such nodes fill a block but for service routers, the whole block counts.
    special_block
        That block, if there is one.
    jobs
        Started jobs, the largest first.
    """

    codes: IntArray
    owner: IntArray
    special: NDArray[np.bool_]
    jobs: tuple[DrawnJob, ...]
    special_block: Prism | None
    special_name: str

    @property
    def shape(self) -> tuple[int, ...]:
        """Routers per dimension."""
        return self.codes.shape


def cell_map(result: PlacementResult, state: SnapshotState) -> CellMap:
    """Return what stands on every router under a result.

    A service or down router inside a job's prism stays what it is; all other routers of a prism
    carry the job's code, the idle ones too. Of several jobs on one router the smallest is shown.
    """
    torus = state.torus
    per_router = state.node_class.reshape(torus.num_routers, -1)
    codes = np.full(torus.num_routers, FREE, dtype=np.int64)
    codes[~_up(state).reshape(torus.num_routers, -1).any(axis=1)] = DOWN
    codes[(per_router < 0).all(axis=1)] = SERVICE
    fixed = codes != FREE
    owner = np.full(torus.num_routers, -1, dtype=np.int64)
    jobs: list[tuple[DrawnJob, IntArray]] = []
    sizes = {request.id: request.nodes for request in state.queue}
    for placement in result.solution.placements if result.solution else []:
        nodes = parse_node_set(placement.nodes, torus.num_nodes)
        prism = None
        routers = np.unique(nodes // torus.nodes_per_router)
        if placement.prism is not None:
            prism = Prism(tuple(placement.prism.origin), tuple(placement.prism.extents))
            routers = prism.routers(torus)
        nodes_wanted = sizes.get(placement.request, len(nodes))
        jobs.append((DrawnJob(placement.request, nodes_wanted, prism), routers))
    jobs.sort(key=lambda item: (-item[0].nodes, item[0].name))
    for idx, running in enumerate(state.running):
        codes[running.routers[~fixed[running.routers]]] = RUNNING
        owner[running.routers] = len(jobs) + idx
    for idx, (_, routers) in enumerate(jobs):
        codes[routers[~fixed[routers]]] = idx
        owner[routers] = idx
    special = np.asarray((per_router > 0).any(axis=1), dtype=bool).reshape(-1)
    block = _block_around(torus, special)
    if block is not None:
        inside = block.routers(torus)
        if (special | (codes == SERVICE))[inside].all():
            special[inside] = True
        else:
            block = None
    return CellMap(
        codes.reshape(torus.shape),
        owner.reshape(torus.shape),
        special.reshape(torus.shape),
        tuple(job for job, _ in jobs),
        block,
        ", ".join(state.classes[1:]).upper(),
    )


def _block_around(torus: Torus, marked: NDArray[np.bool_]) -> Prism | None:
    """Return the smallest prism around some routers: per ring, all but the widest gap."""
    if not marked.any():
        return None
    origin, extents = [], []
    for d, n in enumerate(torus.shape):
        held = np.unique(torus.coordinates[marked, d])
        if torus.wrap[d]:
            gaps = np.diff(held, append=held[0] + n)
            widest = int(gaps.argmax())
            extent = n - int(gaps[widest]) + 1
            start = int(held[(widest + 1) % len(held)])
        else:
            start, extent = int(held[0]), int(held[-1] - held[0]) + 1
        origin.append(0 if extent == n else start)
        extents.append(extent)
    return Prism(tuple(origin), tuple(extents))


def _up(state: SnapshotState) -> NDArray[np.bool_]:
    up = np.ones(state.torus.num_nodes, dtype=bool)
    up[parse_node_set(state.snapshot.down, state.torus.num_nodes)] = False
    return up
