"""Torus and mesh machines of any number of dimensions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from topoplace.errors import InputError, number_of
from topoplace.types import BoolArray, IntArray

MAX_ROUTERS = 1 << 21
"""Largest machine accepted; above it tables of one integer per router stop being cheap."""


class Network:
    """The interface of any network, with the answers of one that has only distances."""

    @property
    def torus(self) -> Torus | None:
        """The machine as a torus or mesh, with links and routes; None if it is of another kind."""
        return None

    @property
    def levels(self) -> Any:
        """The machine as a `LevelMachine`, domains within domains; None if it has no domains."""
        return None

    @property
    def is_symmetric(self) -> bool:
        """Whether a byte costs the same in both directions, between any two routers."""
        return True

    @property
    def is_transitive(self) -> bool:
        """Whether all routers are equivalent: some symmetry takes any of them to any other."""
        return False


@dataclass(frozen=True)
class Torus(Network):
    """Routers on an n-dimensional grid, each dimension a ring (wrap) or a line (mesh).

    Routers are numbered in row-major order of their coordinates (the last dimension varies
    fastest); node `k` of router `r` has the number ``r * nodes_per_router + k``. The *d-link* of
    a router leads from it to its neighbour in the positive direction of dimension ``d`` and has
    the number ``d * num_routers + router``.

    Parameters
    ----------
    shape
        Routers per dimension, each at least 1.
    wrap
        Per dimension, whether it closes to a ring. Defaults to all true.
    bandwidth
        Per dimension, the bandwidth of a link in any common integer unit. Defaults to all 1.
    nodes_per_router
        Nodes attached to every router (2 on a Gemini).

    Raises
    ------
    InputError
        If a size is out of range or the tuples differ in length.
    """

    shape: tuple[int, ...]
    wrap: tuple[bool, ...] = ()
    bandwidth: tuple[int, ...] = ()
    nodes_per_router: int = 1

    def __post_init__(self) -> None:
        if not self.wrap:
            object.__setattr__(self, "wrap", (True,) * len(self.shape))
        if not self.bandwidth:
            object.__setattr__(self, "bandwidth", (1,) * len(self.shape))
        if not self.shape:
            raise InputError("at least one dimension", field="shape", value=self.shape)
        if any(n < 1 for n in self.shape):
            raise InputError("positive sizes", field="shape", value=self.shape)
        if math.prod(self.shape) > MAX_ROUTERS:
            raise InputError(f"at most {MAX_ROUTERS} routers", field="shape", value=self.shape)
        for name in ("wrap", "bandwidth"):
            if len(getattr(self, name)) != len(self.shape):
                raise InputError(
                    f"{number_of(len(self.shape), 'entry')}, one for each dimension",
                    field=name,
                    value=getattr(self, name),
                )
        if any(b < 1 for b in self.bandwidth):
            raise InputError("positive integers", field="bandwidth", value=self.bandwidth)
        if self.nodes_per_router < 1:
            raise InputError(
                "a positive integer", field="nodes_per_router", value=self.nodes_per_router
            )

    @property
    def num_dims(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @cached_property
    def num_routers(self) -> int:
        """Number of routers, service and down ones included."""
        return math.prod(self.shape)

    @property
    def num_nodes(self) -> int:
        """Number of nodes, service and down ones included."""
        return self.num_routers * self.nodes_per_router

    @property
    def num_links(self) -> int:
        """Size of the link numbering (a mesh leaves the numbers of its missing links unused)."""
        return self.num_dims * self.num_routers

    @cached_property
    def strides(self) -> tuple[int, ...]:
        """Router-number step of one hop in each dimension."""
        return tuple(math.prod(self.shape[d + 1 :]) for d in range(self.num_dims))

    @cached_property
    def coordinates(self) -> IntArray:
        """Coordinates of every router, shape ``(num_routers, num_dims)``."""
        grid = np.indices(self.shape, dtype=np.int64)
        return np.ascontiguousarray(grid.reshape(self.num_dims, -1).T)

    def router(self, coords: Sequence[int]) -> int:
        """Return the router at the given coordinates.

        Raises
        ------
        InputError
            If a coordinate lies outside the machine.
        """
        if len(coords) != self.num_dims or any(
            not 0 <= c < n for c, n in zip(coords, self.shape, strict=True)
        ):
            raise InputError(
                f"coordinates inside {self.text}", field="coordinates", value=tuple(coords)
            )
        return sum(c * s for c, s in zip(coords, self.strides, strict=True))

    def coords(self, router: int) -> tuple[int, ...]:
        """Return the coordinates of a router."""
        return tuple(router // s % n for s, n in zip(self.strides, self.shape, strict=True))

    def nodes_of(self, routers: IntArray) -> IntArray:
        """Return the nodes of routers, router by router in the order given."""
        per = self.nodes_per_router
        return (routers[:, None] * per + np.arange(per)).ravel()

    @cached_property
    def link_mask(self) -> BoolArray:
        """Which link numbers are real links, shape ``(num_dims, *shape)``."""
        mask = np.ones((self.num_dims, *self.shape), dtype=bool)
        for d, n in enumerate(self.shape):
            if n == 1:
                mask[d] = False
            elif not self.wrap[d]:
                np.moveaxis(mask[d], d, 0)[n - 1] = False
        return mask

    @property
    def diameter(self) -> int:
        """Largest hop distance of two routers."""
        return sum(n // 2 if w else n - 1 for n, w in zip(self.shape, self.wrap, strict=True))

    def hops(self, sources: IntArray, targets: IntArray) -> IntArray:
        """Return the hop distances of router pairs, elementwise."""
        total = np.zeros(np.broadcast(sources, targets).shape, dtype=np.int64)
        for n, along, wraps in zip(self.shape, self.coordinates.T, self.wrap, strict=True):
            step = np.abs(along[sources] - along[targets])
            total += np.minimum(step, n - step) if wraps else step
        return total

    def distances_from(self, router: int) -> IntArray:
        """Return the hop distance from one router to every router, shape ``(num_routers,)``."""
        return self.hops(np.array(router), np.arange(self.num_routers))

    @property
    def torus(self) -> Torus:
        """The machine itself."""
        return self

    @property
    def is_transitive(self) -> bool:
        """Whether all dimensions are rings."""
        return all(self.wrap)

    @property
    def place_shape(self) -> tuple[int, ...]:
        """The number of places along every coordinate of a node's place."""
        return self.shape

    def places_of(self, nodes: IntArray) -> IntArray:
        """Return the coordinates of nodes: those of their routers."""
        return self.coordinates[nodes // self.nodes_per_router]

    def node_hops(self, nodes: IntArray, others: IntArray) -> IntArray:
        """Return the hops between nodes, elementwise."""
        return self.hops(nodes // self.nodes_per_router, others // self.nodes_per_router)

    @property
    def text(self) -> str:
        """Short form such as ``torus 24x24x24``."""
        kind = "torus" if all(self.wrap) else "mesh" if not any(self.wrap) else "mixed torus"
        return f"{kind} {'x'.join(map(str, self.shape))}"
