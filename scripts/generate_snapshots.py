"""Snapshots of tori and meshes at any fill: the shipped ones, and those of studies."""

from __future__ import annotations

import itertools
import math
import random
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from topoplace.errors import InputError
from topoplace.machine import (
    Prism,
    Torus,
    bisection_per_node,
    format_node_set,
    prism_links,
    scattered_links,
)
from topoplace.snapshot.files import data_folder, read_document
from topoplace.snapshot.schema import (
    SNAPSHOT_SCHEMA,
    Model,
    Name,
    PrismModel,
    Request,
    RunningJob,
    Snapshot,
    TorusModel,
)
from topoplace.snapshot.state import prepare
from topoplace.types import BoolArray, IntArray

# ---- Tables of applications and job sizes, from which queues and running jobs are drawn ----------

WORKLOAD_SCHEMA = "topoplace.workload/1"


class WorkloadRow(Model):
    """Job sizes of one application, each for every class; shortest and longest time limit."""

    application: Name
    nodes: list[int]
    classes: list[Name]
    minutes: list[int]


class Workload(Model):
    """A workload table."""

    schema_version: Annotated[Literal["topoplace.workload/1"], Field(alias="schema")]
    name: Name
    source: str | None = None
    rows: list[WorkloadRow]


def load_workload() -> Workload:
    """Read Table II of Enos 2014."""
    shipped = data_folder("instances") / "workloads" / "enos2014_table2.json"
    return read_document(shipped, Workload, WORKLOAD_SCHEMA)


def workload_for(machine: TorusModel) -> Workload:
    """Return the workload of Enos 2014, Table II, for a machine.

    One without the classes of Blue Waters gets the jobs that run on XE nodes, with as large a share
    of its nodes as they have of all XE nodes.
    """
    workload = load_workload()
    if "xk" in machine.classes:
        return workload
    nodes, xe_nodes = machine.nodes_per_router, 22_640
    for extent in machine.shape:
        nodes *= extent
    rows = []
    for row in workload.rows:
        if "xe" in row.classes:
            sizes = sorted({max(1, round(size * nodes / xe_nodes)) for size in row.nodes})
            rows.append(row.model_copy(update={"nodes": sizes, "classes": [machine.default_class]}))
    return workload.model_copy(update={"rows": rows, "source": f"{workload.source}, scaled"})


def workload_jobs(workload: Workload) -> list[Request]:
    """Return every size x class of a table, in table order, with its longest time limit."""
    return [
        Request(
            id=f"{row.application.lower()}-{node_class}-{nodes}",
            nodes=nodes,
            node_class=node_class,
            application=row.application,
            walltime=60 * row.minutes[1],
        )
        for row in workload.rows
        for nodes in row.nodes
        for node_class in row.classes
    ]


# ---- Put running jobs on a machine: prisms and compact scattered sets, link by link apart --------

_NUM_SHAPES = 8  # best shapes of a job, tried in random order
_NUM_STARTS = 12  # random starts of a scattered job
SNAKE_BLOCK = (4, 2, 8)  # of the node order in three dimensions


@dataclass(frozen=True)
class Put:
    """A job on its nodes; scattered if it has no prism."""

    job: Request
    nodes: IntArray
    prism: Prism | None
    routers: IntArray
    links: IntArray


@dataclass
class Filling:
    """A machine while jobs are put on it, about `scattered_percent` of their nodes without a prism.

    `free` counts the nodes of each class a job may still take on each router (none on routers
    that are held). Prisms share no link with any job; scattered jobs may share links with each
    other, as jobs on node lists do.
    """

    torus: Torus
    node_class: dict[str | None, BoolArray]
    down: BoolArray
    scattered_percent: int
    puts: list[Put] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.order = np.arange(self.torus.num_routers)
        if self.torus.num_dims == len(SNAKE_BLOCK):
            self.order = snake_order(self.torus, SNAKE_BLOCK)
        self.replace(self.puts)

    def replace(self, puts: list[Put]) -> None:
        """Keep exactly these jobs."""
        self.puts = []
        self._too_large: set[tuple[int, str | None]] = set()  # jobs that fit on no prism, nor will
        self._grids: dict[str, NDArray[np.generic]] = {}
        self.held = np.zeros(self.torus.num_routers, dtype=bool)
        self.prism_link = np.zeros(self.torus.num_links, dtype=bool)
        self.scattered_link = np.zeros(self.torus.num_links, dtype=bool)
        for put in puts:
            self._add(put)

    def busy(self, node_class: str | None, *, scattered_only: bool = False) -> int:
        """Count the nodes that jobs of a class hold."""
        return sum(
            put.job.nodes
            for put in self.puts
            if put.job.node_class == node_class and not (scattered_only and put.prism)
        )

    def put_prism(self, job: Request, rng: random.Random) -> bool:
        """Put a job on a prism that touches much of what is taken; tell whether one fits."""
        if (job.nodes, job.node_class) in self._too_large:
            return False
        shapes = list(prism_shapes(self.torus, job.nodes))
        rng.shuffle(shapes)
        for extents in shapes:
            origins = self._origins(extents, job)
            if not len(origins):
                continue
            contact = self._contact(job.node_class, extents).ravel()[origins]
            best = origins[10 * contact >= 9 * contact.max()]
            prism = Prism(self.torus.coords(int(best[rng.randrange(len(best))])), extents)
            routers = np.sort(prism.routers(self.torus))
            nodes = self._usable(routers, job.node_class)[: job.nodes]
            self._add(Put(job, nodes, prism, routers, prism_links(self.torus, prism)))
            return True
        self._too_large.add((job.nodes, job.node_class))
        return False

    def _origins(self, extents: tuple[int, ...], job: Request) -> IntArray:
        """Return the origins where a prism of these extents holds a job, apart from others."""
        fits = self._sums("held", extents) == 0
        if fits.any():
            fits &= self._sums(f"free {job.node_class}", extents) >= job.nodes
        for d, (e, n) in enumerate(zip(extents, self.torus.shape, strict=True)):
            if e == n or not self.torus.wrap[d]:
                beyond = slice(n - e + 1, None)
                fits[tuple(beyond if k == d else slice(None) for k in range(fits.ndim))] = False
            if e > 1 and fits.any():
                inside = e if e == n else e - 1
                window = tuple(inside if k == d else x for k, x in enumerate(extents))
                fits &= self._sums(f"link {d}", window) == 0
        return np.flatnonzero(fits)

    def put_scattered(self, job: Request, rng: random.Random) -> bool:
        """Put a job on the next free nodes of the node order from a random start."""
        usable = self._usable(self.order, job.node_class)
        if len(usable) < job.nodes:
            return False
        for _ in range(_NUM_STARTS):
            start = rng.randrange(len(usable))
            nodes = np.sort(np.roll(usable, -start)[: job.nodes])
            routers = np.unique(nodes // self.torus.nodes_per_router)
            links = scattered_links(self.torus, routers)
            if not self.prism_link[links].any():
                self._add(Put(job, nodes, None, routers, links))
                return True
        return False

    def _add(self, put: Put) -> None:
        self.puts.append(put)
        self.held[put.routers] = True
        used = self.scattered_link if put.prism is None else self.prism_link
        used[put.links] = True
        self._grids.clear()

    def _usable(self, routers: IntArray, node_class: str | None) -> IntArray:
        per = self.torus.nodes_per_router
        nodes = (routers[~self.held[routers]][:, None] * per + np.arange(per)).ravel()
        usable: IntArray = nodes[self.node_class[node_class][nodes] & ~self.down[nodes]]
        return usable

    def _sums(self, what: str, extents: tuple[int, ...]) -> NDArray[np.int64]:
        """Return the box sums of a grid of the present state; the grid is made once per change."""
        if what not in self._grids:
            kind, _, key = what.partition(" ")
            if kind == "held":
                values: NDArray[np.generic] = self.held
            elif kind == "link":
                values = self.scattered_link.reshape(self.torus.num_dims, -1)[int(key)]
            else:
                values = (self.node_class[key] & ~self.down).reshape(len(self.held), -1).sum(axis=1)
                values[self.held] = 0
                values = values == 0 if kind == "taken" else values
            self._grids[what] = values.reshape(self.torus.shape)
        return box_sums(self._grids[what], extents)

    def _contact(self, node_class: str | None, extents: tuple[int, ...]) -> IntArray:
        """Count, for every origin, the routers beside the prism that the class cannot take."""
        contact = np.zeros(self.torus.shape, dtype=np.int64)
        for d, (e, n) in enumerate(zip(extents, self.torus.shape, strict=True)):
            if e < n:
                side = tuple(1 if k == d else x for k, x in enumerate(extents))
                face = self._sums(f"taken {node_class}", side)
                contact += np.roll(face, 1, axis=d) + np.roll(face, -e, axis=d)
        return contact


def box_sums(values: NDArray[np.generic], extents: tuple[int, ...]) -> NDArray[np.int64]:
    """Return, for every origin, the sum over the wrapping box that starts there."""
    total = values.astype(np.int64)
    for d, extent in enumerate(extents):
        if extent > 1:
            along = np.moveaxis(total, d, 0)
            upto = np.cumsum(np.concatenate([along, along[: extent - 1]]), axis=0)
            upto[extent:] -= upto[:-extent].copy()
            total = np.moveaxis(upto[extent - 1 :], 0, d)
    return total


@lru_cache(maxsize=256)
def prism_shapes(torus: Torus, nodes: int) -> tuple[tuple[int, ...], ...]:
    """Return the best few extents for a job, by the site-weighted score of Fiedler 2014.

    Only extents whose jobs keep to their own links: up to half a ring, or all of it, and any on a
    mesh. 0 to 30 % of the routers may be left over for service and down nodes.
    """
    need = -(-nodes // torus.nodes_per_router)
    room = need + max(2, 3 * need // 10)
    scored = []
    axes = [
        [e for e in range(1, n + 1) if 2 * e <= n or e == n or not wraps]
        for n, wraps in zip(torus.shape, torus.wrap, strict=True)
    ]
    for extents in itertools.product(*axes):
        if not need <= math.prod(extents) <= room:
            continue
        prism = Prism((0,) * torus.num_dims, extents)
        per_node = 1000 * bisection_per_node(torus, extents) / min(torus.bandwidth)
        score = 4 * math.floor(per_node) - prism.volume - 4 * prism.max_hops(torus)
        scored.append((-score, extents))
    return tuple(extents for _, extents in sorted(scored)[:_NUM_SHAPES])


def snake_order(torus: Torus, block: tuple[int, int, int]) -> IntArray:
    """Return the routers block by block along z, then x, then y, turning round after each jump.

    The order of node lists on Blue Waters (Enos 2014, II.B.2), for three dimensions.
    """
    x, y, z = torus.coordinates.T
    bx, by, bz = x // block[0], y // block[1], z // block[2]
    num_bx, num_bz = -(-torus.shape[0] // block[0]), -(-torus.shape[2] // block[2])
    along_x = np.where(by % 2 == 0, bx, num_bx - 1 - bx)
    row = by * num_bx + along_x
    along_z = np.where(row % 2 == 0, bz, num_bz - 1 - bz)
    return np.lexsort((z, x, y, along_z, row)).astype(np.int64)


# ---- Seeded snapshots of Blue Waters at a given share of busy nodes ------------------------------

XK_BLOCK = Prism((16, 0, 0), (15, 6, 24))
"""The XK region of Blue Waters: its size is Enos 2014's, its origin is ours."""

FEATURE_DEPTH = 6  # y-planes of a node feature

SCATTERED_PERCENT = 4
"""Share of the busy nodes held by jobs without a prism.

While jobs end it stays between a half and seven quarters of it, where the fill reached that.
"""

DOWN_PER_MILLE = 3
"""Share of the compute nodes that are down."""

_MAX_FAILURES = 10  # draws in a row that fit nowhere: a scheduler looks no further down its queue
_MAX_TRIES = 20  # ways to end jobs, until the scattered jobs' share is in range
_MAX_SCATTERED = 456  # larger jobs on node lists would close most of a machine of prisms


def blue_waters_features() -> dict[str, list[PrismModel]]:
    """Return the 24x6x24 node features s1 to s13, which avoid the XK planes (Enos 2014, II.B.1)."""
    first = XK_BLOCK.origin[1] + XK_BLOCK.extents[1]
    return {
        f"s{k + 1}": [PrismModel(origin=[0, first + k, 0], extents=[24, FEATURE_DEPTH, 24])]
        for k in range(24 - first - FEATURE_DEPTH + 1)
    }


def generate_snapshot(
    machine: TorusModel,
    workload: Workload,
    busy_percent: int,
    seed: int,
    scattered_percent: int = SCATTERED_PERCENT,
) -> Snapshot:
    """Return a snapshot of a torus or mesh.

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
    scattered_percent
        Share of the busy nodes held by jobs on node lists; with 100 no job runs on a prism.

    Raises
    ------
    InputError
        If the target cannot be reached.
    """
    state = prepare(Snapshot(schema_version=SNAPSHOT_SCHEMA, name=machine.name, machine=machine))
    rng = random.Random(seed)
    compute = np.flatnonzero(state.node_class >= 0).tolist()
    down = sorted(rng.sample(compute, DOWN_PER_MILLE * len(compute) // 1000))
    is_down = np.zeros(state.torus.num_nodes, dtype=bool)
    is_down[down] = True
    classes: dict[str | None, BoolArray] = {
        name: state.node_class == idx for idx, name in enumerate(state.classes)
    }
    filling = Filling(state.torus, classes, is_down, scattered_percent)
    jobs = workload_jobs(workload)
    for name, members in classes.items() if busy_percent else ():
        drawn = [job for job in jobs if job.node_class == name]
        target = busy_percent * int(members.sum()) / 100
        _fill(filling, drawn, rng)
        full = filling.puts
        for _ in range(_MAX_TRIES):
            filling.replace(full)
            _end_jobs(filling, name, target, rng)
            _top_up(filling, drawn, target, rng)
            if _is_right(filling, filling.busy(name, scattered_only=True), filling.busy(name)):
                break
    return Snapshot(
        schema_version=SNAPSHOT_SCHEMA,
        name=f"{machine.name}_{busy_percent or 'empty'}",
        machine=machine.name,
        down=format_node_set(down),
        running=[_running(idx, put) for idx, put in enumerate(filling.puts, start=1)],
        regions=blue_waters_features() if machine.name == "blue_waters" else {},
        queue=jobs,
        seed=seed,
        source=f"generated; running jobs and queue: {workload.source}",
    )


def _fill(filling: Filling, jobs: list[Request], rng: random.Random) -> None:
    """Put jobs drawn evenly until `_MAX_FAILURES` draws in a row fit nowhere."""
    failures = 0
    while failures < _MAX_FAILURES:
        failures = 0 if _put(filling, jobs, rng) else failures + 1


def _put(filling: Filling, jobs: list[Request], rng: random.Random) -> bool:
    """Put one of the jobs, a small one scattered if scattered jobs are short of their share."""
    node_class = jobs[0].node_class
    scattered = filling.busy(node_class, scattered_only=True)
    share = filling.scattered_percent
    no_prisms = share == 100
    small = jobs if no_prisms else [job for job in jobs if job.nodes <= _MAX_SCATTERED]
    short = no_prisms or 100 * scattered < share * filling.busy(node_class)
    if short and small and filling.put_scattered(small[rng.randrange(len(small))], rng):
        return True
    return not no_prisms and filling.put_prism(jobs[rng.randrange(len(jobs))], rng)


def _end_jobs(filling: Filling, node_class: str | None, target: float, rng: random.Random) -> None:
    """End random jobs of a class while it is above the target, the smallest if none is right."""
    low, high = 0.995 * target, 1.005 * target
    while (busy := filling.busy(node_class)) > high:
        scattered = filling.busy(node_class, scattered_only=True)
        mine = [put for put in filling.puts if put.job.node_class == node_class]
        right = [put for put in mine if busy - put.job.nodes >= low]
        keeping = [put for put in right if _is_right(filling, *_without(put, scattered, busy))]
        too_many = 100 * scattered > filling.scattered_percent * busy
        mending = [put for put in right if (put.prism is None) == too_many]
        choice = keeping or mending or right
        ending = (
            choice[rng.randrange(len(choice))] if choice else min(mine, key=lambda p: p.job.nodes)
        )
        filling.replace([put for put in filling.puts if put is not ending])


def _is_right(filling: Filling, scattered: int, busy: int) -> bool:
    """Tell whether the scattered jobs have their share of the busy nodes."""
    share = filling.scattered_percent
    return share <= 2 * (100 * scattered / busy) and 4 * (100 * scattered / busy) <= 7 * share


def _without(put: Put, scattered: int, busy: int) -> tuple[int, int]:
    """Return the scattered and the busy nodes once a job has ended."""
    return scattered - (put.job.nodes if put.prism is None else 0), busy - put.job.nodes


def _top_up(filling: Filling, jobs: list[Request], target: float, rng: random.Random) -> None:
    """Put jobs of a class that stay below the target until it is met."""
    low, high = 0.995 * target, 1.005 * target
    failures = 0
    while (busy := filling.busy(jobs[0].node_class)) < low:
        right = [job for job in jobs if busy + job.nodes <= high]
        if not right or failures == 10 * _MAX_FAILURES:
            expected = "a share of busy nodes that can be reached"
            raise InputError(expected, field="busy_percent", value=busy)
        failures = 0 if _put(filling, right, rng) else failures + 1


def _running(idx: int, put: Put) -> RunningJob:
    prism = None
    if put.prism is not None:
        prism = PrismModel(origin=list(put.prism.origin), extents=list(put.prism.extents))
    return RunningJob(
        id=f"r{idx:03d}-{put.job.id}",
        nodes=format_node_set(put.nodes),
        prism=prism,
        application=put.job.application,
    )
