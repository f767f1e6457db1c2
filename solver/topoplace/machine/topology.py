"""The nodes of a job as its ranks see them: the topology manager of Bhatele 2009, section 3.2."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from topoplace.errors import InputError, number_of
from topoplace.machine.hierarchy import APART, Hierarchy
from topoplace.machine.links import route_links
from topoplace.machine.matrix import MatrixMachine
from topoplace.machine.torus import Torus
from topoplace.types import IntArray

AnyMachine = Torus | MatrixMachine | Hierarchy

NOT_THERE = -1
"""The rank of coordinates without a rank."""


class Route(NamedTuple):
    """The route of a message: its routers from end to end, and the links between them.

    Link ``d * num_routers + router`` leads from that router to the next one up dimension d; a
    message takes it up (way 1) or, from the far end, down (way -1).
    """

    routers: IntArray
    links: IntArray
    ways: IntArray


@dataclass(frozen=True, eq=False, repr=False)
class Topology:
    """Where the ranks of a job are, and their distances.

    Methods take a rank or an array of ranks where the argument is named `ranks`, and broadcast as
    numpy does. They raise `InputError` for ranks that the job does not have.

    Attributes
    ----------
    machine
        The whole machine, which messages may cross outside the job's nodes.
    nodes
        Node of every rank, shape ``(num_ranks,)``.
    cores
        Most ranks on a node (``getDimNT`` of the paper, on routers of one node).
    """

    machine: AnyMachine
    nodes: IntArray
    cores: int = 1

    def __post_init__(self) -> None:
        nodes = np.asarray(self.nodes, dtype=np.int64)
        object.__setattr__(self, "nodes", nodes)
        if self.cores < 1:
            raise InputError("at least one rank on a node", field="cores", value=self.cores)
        if nodes.ndim != 1 or not len(nodes):
            raise InputError("a node for each of one rank or more", field="nodes")
        strange = nodes[(nodes < 0) | (nodes >= self.machine.num_nodes)]
        if len(strange):
            raise InputError("nodes of the machine", field="nodes", value=int(strange[0]))
        fullest = int(np.bincount(nodes).argmax())
        if int((nodes == fullest).sum()) > self.cores:
            expected = f"at most {number_of(self.cores, 'rank')} on a node (cores)"
            raise InputError(expected, field="nodes", found=f"more on node {fullest}")

    # ---- The allocated partition: getDimNX, getDimNY, getDimNZ, getDimNT, isTorusX, ... ----------

    @property
    def num_ranks(self) -> int:
        """Number of ranks."""
        return len(self.nodes)

    @property
    def num_nodes(self) -> int:
        """Number of nodes that have a rank."""
        return len(np.unique(self.nodes))

    @property
    def slots(self) -> int:
        """Most ranks at one place: the cores of all nodes of a router, or of a node elsewhere."""
        return self.cores * self.machine.nodes_per_router

    @cached_property
    def _box(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Origin and extents of the least box around all ranks; of all places except on tori."""
        machine = self.torus
        if machine is None:
            shape = self.machine.place_shape
            return (0,) * len(shape), shape
        places = machine.places_of(np.unique(self.nodes))
        spans = [
            _span(np.unique(column), n, wraps=w)
            for column, n, w in zip(places.T, machine.shape, machine.wrap, strict=True)
        ]
        return tuple(start for start, _ in spans), tuple(extent for _, extent in spans)

    @property
    def origin(self) -> tuple[int, ...]:
        """Machine coordinates of the place with coordinates 0, 0, ... here."""
        return self._box[0]

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the job's partition (``getDimNX``, ``getDimNY``, ``getDimNZ``).

        On a torus or mesh the extents of the least box of routers around all ranks, which may cross
        the edge of a ring. On a tree or hierarchy the most domains in a domain, level by level, on
        a matrix its size.
        """
        return self._box[1]

    @property
    def wrap(self) -> tuple[bool, ...]:
        """Which dimensions of `shape` close (``isTorusX``, ...): those of rings spanned whole."""
        if self.torus is None:
            return (False,) * len(self.shape)
        sizes = zip(self.shape, self.torus.shape, self.torus.wrap, strict=True)
        return tuple(wraps and extent == n for extent, n, wraps in sizes)

    # ---- Ranks and coordinates: rankToCoordinates, coordinatesToRank -----------------------------

    @cached_property
    def _coordinates(self) -> IntArray:
        places = self.machine.places_of(self.nodes)
        if self.torus is not None:
            places = (places - self.origin) % self.torus.shape
        order = np.argsort(self.nodes, kind="stable")
        first = np.searchsorted(self.nodes[order], self.nodes[order])
        slot = np.empty(self.num_ranks, dtype=np.int64)
        slot[order] = np.arange(self.num_ranks) - first
        slot += self.cores * (self.nodes % (self.slots // self.cores))
        return np.column_stack([places, slot])

    def coordinates(self, ranks: ArrayLike) -> IntArray:
        """Return where ranks are in the partition, the slot last (``rankToCoordinates``).

        Shape ``(..., len(shape) + 1)``. Slots number the cores of a router node by node, those of
        a node in the order of its ranks.
        """
        return self._coordinates[self._known(ranks)]

    def machine_coordinates(self, ranks: ArrayLike) -> IntArray:
        """Return where ranks are on the machine, without the slot."""
        return self.machine.places_of(self.nodes[self._known(ranks)])

    @cached_property
    def _by_coordinates(self) -> tuple[IntArray, IntArray]:
        """The ranks in the order of their coordinates, and the keys of these."""
        keys = self._keys(self._coordinates)
        order = np.argsort(keys)
        return order, keys[order]

    def _keys(self, coordinates: IntArray) -> IntArray:
        keys = np.zeros(coordinates.shape[:-1], dtype=np.int64)
        if math.prod(self.shape) * self.slots >= 1 << 62:
            raise InputError("fewer coordinates than 2^62", field="shape", value=self.shape)
        for axis, size in enumerate((*self.shape, self.slots)):
            keys = keys * size + coordinates[..., axis]
        return keys

    def rank_at(self, coordinates: ArrayLike) -> IntArray:
        """Return the ranks at coordinates (``coordinatesToRank``), -1 where there is none.

        The last axis has the coordinates, as `coordinates` returns them. `InputError` if one lies
        outside `shape`.
        """
        given = np.asarray(coordinates, dtype=np.int64)
        sizes = np.array([*self.shape, self.slots])
        if given.ndim < 1 or given.shape[-1] != len(sizes):
            raise InputError(
                f"{number_of(len(sizes), 'coordinate')}, the slot last", field="coordinates"
            )
        outside = ((given < 0) | (given >= sizes)).any(axis=-1)
        if outside.any():
            found = given[outside][0] if given.ndim > 1 else given
            expected = f"coordinates below {sizes.tolist()}"
            raise InputError(expected, field="coordinates", value=found.tolist())
        order, known = self._by_coordinates
        keys = self._keys(given)
        at = np.minimum(np.searchsorted(known, keys), len(known) - 1)
        return np.where(known[at] == keys, order[at], NOT_THERE)

    def ranks_on(self, node: int) -> IntArray:
        """Return the ranks on a node, ascending."""
        return np.flatnonzero(self.nodes == node)

    # ---- Distances: getHopsBetweenRanks, pickClosestRank, sortRanksByHops ------------------------

    def hops(self, ranks: ArrayLike, others: ArrayLike) -> IntArray:
        """Return the hops between ranks (``getHopsBetweenRanks``), elementwise.

        Links of a torus or mesh on the whole machine; entries of a matrix; on a tree or hierarchy
        levels up and down again (Mishra 2020, eq. 4), 0 on one node. `InputError` for nodes of
        different fabrics.
        """
        found = self._hops(self._known(ranks), self._known(others))
        if (found >= APART).any():
            raise InputError("ranks below a common switch", field="ranks", found="others")
        return found

    def _hops(self, ranks: IntArray, others: IntArray) -> IntArray:
        return self.machine.node_hops(self.nodes[ranks], self.nodes[others])

    def closest(self, rank: int, of: ArrayLike) -> int:
        """Return the one of some ranks that is nearest to a rank; of equal ones, the first.

        This is ``pickClosestRank``. `InputError` if there are none.
        """
        ranks = self._known(of).ravel()
        if not len(ranks):
            raise InputError("at least one rank", field="of", found="none")
        return int(ranks[self._hops(self._known(rank), ranks).argmin()])

    def sorted_by_hops(self, rank: int, of: ArrayLike | None = None) -> IntArray:
        """Return ranks, by default all, by their distance from one (``sortRanksByHops``).

        Equal ones stay in their order.
        """
        ranks = np.arange(self.num_ranks) if of is None else self._known(of).ravel()
        return ranks[np.argsort(self._hops(self._known(rank), ranks), kind="stable")]

    def neighbours(self, rank: int, within: int | None = None) -> IntArray:
        """Return the ranks on other nodes within a number of hops, ascending.

        By default one hop on a torus or mesh (the routers it is linked to, and its own), elsewhere
        as far as the nearest.
        """
        away = self._hops(self._known(rank), np.arange(self.num_ranks))
        elsewhere = self.nodes != self.nodes[rank]
        if within is None:
            near = away[elsewhere & (away < APART)].min(initial=APART)
            within = int(near) if self.torus is None else 1
        return np.flatnonzero(elsewhere & (away <= within) & (away < APART))

    # ---- Routes ----------------------------------------------------------------------------------

    def route(self, rank: int, other: int) -> Route:
        """Return the dimension-ordered route of a message from a rank to another.

        It takes the shorter way round in each dimension, and the positive way in a tie.
        `InputError` on machines other than tori and meshes.
        """
        torus = self._routed()
        ends = self.nodes[self._known([rank, other])] // torus.nodes_per_router
        _, links, ways = route_links(torus, ends[:1], ends[1:])
        dim, low = np.divmod(links, torus.num_routers)
        n, stride = np.array(torus.shape)[dim], np.array(torus.strides)[dim]
        over_the_edge = low // stride % n == n - 1
        high = low + stride - np.where(over_the_edge, n * stride, 0)
        ahead = np.where(ways > 0, high, low)
        return Route(np.concatenate([ends[:1], ahead]), links, ways)

    def links(self, ranks: ArrayLike, others: ArrayLike) -> tuple[IntArray, IntArray, IntArray]:
        """Return which links the messages between pairs of ranks take, as `route_links` does."""
        torus = self._routed()
        pairs = np.broadcast_arrays(self._known(ranks), self._known(others))
        ends = [self.nodes[one.ravel()] // torus.nodes_per_router for one in pairs]
        return route_links(torus, *ends)

    @property
    def torus(self) -> Torus | None:
        """The machine if it is a torus or mesh, whose routes are known; else None."""
        return self.machine if isinstance(self.machine, Torus) else None

    def _routed(self) -> Torus:
        if self.torus is None:
            raise InputError("a torus or mesh, whose routes are known", field="machine")
        return self.torus

    def _known(self, ranks: ArrayLike) -> IntArray:
        found = np.asarray(ranks)
        if found.size and found.dtype.kind not in "iu":
            raise InputError("integers", field="ranks", found=f"values of {found.dtype}")
        found = found.astype(np.int64)
        strange = found[(found < 0) | (found >= self.num_ranks)]
        if strange.size:
            expected = f"ranks from 0 to {self.num_ranks - 1}"
            raise InputError(expected, field="ranks", value=int(strange.flat[0]))
        return found

    def __repr__(self) -> str:
        box = "x".join(map(str, self.shape))
        if self.torus is not None:
            closed = "".join("xyzt"[d] if d < 4 else f"{d}," for d, w in enumerate(self.wrap) if w)
            box += f" routers at {','.join(map(str, self.origin))}"
            box += f", closed in {closed.strip(',')}" if closed else ", open"
        name = self.machine.text
        on = f"{number_of(self.num_ranks, 'rank')} on {number_of(self.num_nodes, 'node')}"
        return f"<Topology {name}: {on}, {box}, {self.cores} on a node at most>"


def _span(used: Sequence[int] | IntArray, size: int, *, wraps: bool) -> tuple[int, int]:
    """Return first place and extent of the least interval around ascending places.

    On a ring it is the complement of the widest gap; of equal ones, the interval that starts first.
    """
    places = np.asarray(used)
    if not wraps:
        return int(places[0]), int(places[-1] - places[0] + 1)
    gaps = np.diff(places, prepend=places[-1] - size)  # before every place
    if int(gaps.max()) == 1:
        return 0, size
    first = int(gaps.argmax())
    return int(places[first]), size - int(gaps[first]) + 1
