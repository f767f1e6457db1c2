"""Put running jobs on a machine: prisms and compact scattered sets, link by link apart."""

from __future__ import annotations

import itertools
import math
import random
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from topoplace.machine import Prism, Torus, bisection_per_node, prism_links, scattered_links
from topoplace.snapshot.workload import WorkloadJob

_NUM_SHAPES = 8  # best shapes of a job, tried in random order
_NUM_STARTS = 12  # random starts of a scattered job


@dataclass(frozen=True)
class Put:
    """A job on its nodes; scattered if it has no prism."""

    job: WorkloadJob
    nodes: NDArray[np.int64]
    prism: Prism | None
    routers: NDArray[np.int64]
    links: NDArray[np.int64]


@dataclass
class Filling:
    """A machine while jobs are put on it.

    `free` counts the nodes of each class a job may still take on each router (none on routers
    that are held). Prisms share no link with any job; scattered jobs may share links with each
    other, as jobs on node lists do.
    """

    torus: Torus
    node_class: dict[str, NDArray[np.bool_]]
    down: NDArray[np.bool_]
    puts: list[Put] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.order = snake_order(self.torus, (4, 2, 8))
        self.replace(self.puts)

    def replace(self, puts: list[Put]) -> None:
        """Keep exactly these jobs."""
        self.puts = []
        self._too_large: set[tuple[int, str]] = set()  # jobs that fit on no prism, nor will
        self._tables: dict[str, BoxSums] = {}
        self.held = np.zeros(self.torus.num_routers, dtype=bool)
        self.prism_link = np.zeros(self.torus.num_links, dtype=bool)
        self.scattered_link = np.zeros(self.torus.num_links, dtype=bool)
        for put in puts:
            self._add(put)

    def busy(self, node_class: str, *, scattered_only: bool = False) -> int:
        """Count the nodes that jobs of a class hold."""
        return sum(
            put.job.nodes
            for put in self.puts
            if put.job.node_class == node_class and not (scattered_only and put.prism)
        )

    def put_prism(self, job: WorkloadJob, rng: random.Random) -> bool:
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

    def _origins(self, extents: tuple[int, ...], job: WorkloadJob) -> NDArray[np.int64]:
        """Return the origins where a prism of these extents holds a job, apart from others."""
        fits = self._sums("held").of(extents) == 0
        if fits.any():
            fits &= self._sums(f"free {job.node_class}").of(extents) >= job.nodes
        for d, (e, n) in enumerate(zip(extents, self.torus.shape, strict=True)):
            if e == n:
                fits[tuple(slice(1 if k == d else 0, None) for k in range(fits.ndim))] = False
            if e > 1 and fits.any():
                inside = e if e == n else e - 1
                window = tuple(inside if k == d else x for k, x in enumerate(extents))
                fits &= self._sums(f"link {d}").of(window) == 0
        return np.flatnonzero(fits)

    def put_scattered(self, job: WorkloadJob, rng: random.Random) -> bool:
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
        self._tables.clear()

    def _usable(self, routers: NDArray[np.int64], node_class: str) -> NDArray[np.int64]:
        per = self.torus.nodes_per_router
        nodes = (routers[~self.held[routers]][:, None] * per + np.arange(per)).ravel()
        usable: NDArray[np.int64] = nodes[self.node_class[node_class][nodes] & ~self.down[nodes]]
        return usable

    def _sums(self, what: str) -> BoxSums:
        """Return the box sums of a grid of the present state, made once per change."""
        if what not in self._tables:
            kind, _, key = what.partition(" ")
            if kind == "held":
                values = self.held
            elif kind == "link":
                values = self.scattered_link.reshape(self.torus.num_dims, -1)[int(key)]
            else:
                values = (self.node_class[key] & ~self.down).reshape(len(self.held), -1).sum(axis=1)
                values[self.held] = 0
                values = values == 0 if kind == "taken" else values
            self._tables[what] = BoxSums(values.reshape(self.torus.shape))
        return self._tables[what]

    def _contact(self, node_class: str, extents: tuple[int, ...]) -> NDArray[np.int64]:
        """Count, for every origin, the routers beside the prism that the class cannot take."""
        contact = np.zeros(self.torus.shape, dtype=np.int64)
        taken = self._sums(f"taken {node_class}")
        for d, (e, n) in enumerate(zip(extents, self.torus.shape, strict=True)):
            if e < n:
                face = taken.of(tuple(1 if k == d else x for k, x in enumerate(extents)))
                contact += np.roll(face, 1, axis=d) + np.roll(face, -e, axis=d)
        return contact


class BoxSums:
    """Sums over all boxes of given extents on a torus, from one summed-area table."""

    def __init__(self, values: NDArray[np.generic]) -> None:
        self.shape = values.shape
        table = values.astype(np.int32)
        for d in range(values.ndim):
            table = np.cumsum(np.concatenate([table, table], axis=d), axis=d, dtype=np.int32)
        self.table = np.pad(table, [(1, 0)] * values.ndim)

    def of(self, extents: tuple[int, ...]) -> NDArray[np.int32]:
        """Return, for every origin, the sum over the wrapping box that starts there."""
        total = np.zeros(self.shape, dtype=np.int32)
        for corner in itertools.product((0, 1), repeat=len(self.shape)):
            at = tuple(
                slice(c * e, c * e + n) for c, e, n in zip(corner, extents, self.shape, strict=True)
            )
            if (len(corner) - sum(corner)) % 2:
                total -= self.table[at]
            else:
                total += self.table[at]
        return total


@lru_cache(maxsize=256)
def prism_shapes(torus: Torus, nodes: int) -> tuple[tuple[int, ...], ...]:
    """Return the best few extents for a job, by the site-weighted score of Fiedler 2014.

    Only extents up to half a ring, or all of it, whose jobs keep to their own links; 0 to 30 %
    of the routers may be left over for service and down nodes.
    """
    need = -(-nodes // torus.nodes_per_router)
    room = need + max(2, 3 * need // 10)
    scored = []
    axes = [[e for e in range(1, n + 1) if 2 * e <= n or e == n] for n in torus.shape]
    for extents in _boxes(axes, room):
        if math.prod(extents) < need:
            continue
        prism = Prism((0,) * torus.num_dims, extents)
        per_node = 1000 * bisection_per_node(torus, extents) / min(torus.bandwidth)
        score = 4 * math.floor(per_node) - prism.volume - 4 * prism.max_hops(torus)
        scored.append((-score, extents))
    return tuple(extents for _, extents in sorted(scored)[:_NUM_SHAPES])


def _boxes(axes: list[list[int]], room: int) -> list[tuple[int, ...]]:
    boxes: list[tuple[int, ...]] = [()]
    for axis in axes:
        boxes = [(*b, e) for b in boxes for e in axis if math.prod(b) * e <= room]
    return boxes


def snake_order(torus: Torus, block: tuple[int, int, int]) -> NDArray[np.int64]:
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
