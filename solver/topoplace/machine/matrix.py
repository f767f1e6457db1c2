"""Machines given as a matrix of distances, without links or coordinates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from topoplace.errors import InputError
from topoplace.machine.torus import Network
from topoplace.types import IntArray

MAX_DISTANCE = 1 << 20
MAX_PLACES = 1 << 12


@dataclass(frozen=True, eq=False)
class MatrixMachine(Network):
    """Routers of one node each, with any distances between them.

    Attributes
    ----------
    distances
        ``distances[a, b]`` is the cost of a byte from router a to router b, shape ``(n, n)``;
        not negative, 0 on the diagonal, not necessarily symmetric.
    """

    distances: IntArray

    def __post_init__(self) -> None:
        matrix = self.distances
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not len(matrix):
            raise InputError("a square matrix", field="distances", value=matrix.shape)
        if len(matrix) > MAX_PLACES:
            raise InputError(f"at most {MAX_PLACES} rows", field="distances", value=len(matrix))
        if matrix.min() < 0 or matrix.max() > MAX_DISTANCE:
            raise InputError(f"distances from 0 to {MAX_DISTANCE}", field="distances")
        if np.diag(matrix).any():
            raise InputError("zeros on the diagonal", field="distances")

    @property
    def num_routers(self) -> int:
        """Number of routers."""
        return len(self.distances)

    @property
    def num_nodes(self) -> int:
        """Number of nodes, one on each router."""
        return len(self.distances)

    @property
    def nodes_per_router(self) -> int:
        """Nodes on every router: one."""
        return 1

    @property
    def diameter(self) -> int:
        """Largest distance."""
        return int(self.distances.max())

    @property
    def is_symmetric(self) -> bool:
        """Whether the matrix is symmetric."""
        return bool((self.distances == self.distances.T).all())

    @property
    def place_shape(self) -> tuple[int, ...]:
        """How many places there are: one coordinate, the number of the node."""
        return (self.num_routers,)

    def places_of(self, nodes: IntArray) -> IntArray:
        """Return the coordinates of nodes: their numbers."""
        return nodes[..., None]

    def node_hops(self, nodes: IntArray, others: IntArray) -> IntArray:
        """Return the distances between nodes, elementwise."""
        return self.hops(nodes, others)

    @property
    def text(self) -> str:
        """Short form such as ``matrix of 16``."""
        return f"matrix of {self.num_routers}"

    def hops(self, sources: IntArray, targets: IntArray) -> IntArray:
        """Return the distances of router pairs, elementwise."""
        found: IntArray = self.distances[sources, targets]
        return found

    def distances_from(self, router: int) -> IntArray:
        """Return the distance from a router to every router."""
        found: IntArray = self.distances[router]
        return found
