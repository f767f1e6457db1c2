"""Machines whose prisms are anchored: what may be where, and what a placement blocks.

There are few such prisms, so all are listed, each once, in the order of their extents, then of
their origins (docs/proofs/placement.md, "Anchored prisms").
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np

from topoplace.machine import Prism, Torus
from topoplace.placement.torus.problem import Candidate, PlacementProblem
from topoplace.snapshot.anchored import AnchoredShape
from topoplace.snapshot.state import QueuedState
from topoplace.types import BoolArray, IntArray

if TYPE_CHECKING:
    import scipy.sparse as sp


@dataclass(frozen=True)
class AnchoredPrisms:
    """The anchored prisms of a machine.

    Attributes
    ----------
    prisms
        Each once.
    worth
        The value of every prism, which is lost if it is blocked, in nodes: its size, times the
        number of anchors that mean it; shape ``(num_prisms,)``.
    listed
        By shape of the list, the numbers of its prisms in the order of its anchors.
    inside
        Which routers are in which prism, 1 or 0, shape ``(num_prisms, num_routers)``.
    """

    torus: Torus
    prisms: tuple[Prism, ...]
    worth: IntArray
    listed: tuple[IntArray, ...]
    inside: sp.csr_matrix

    @cached_property
    def nodes(self) -> IntArray:
        """Nodes of every prism, shape ``(num_prisms,)``."""
        volumes = np.diff(self.inside.indptr).astype(np.int64)
        return np.asarray(volumes * self.torus.nodes_per_router)

    @cached_property
    def numbers(self) -> dict[Prism, int]:
        """The number of every prism."""
        return {prism: number for number, prism in enumerate(self.prisms)}

    def meeting(self, routers: BoolArray) -> BoolArray:
        """Mark the prisms that hold some of these routers."""
        return np.asarray(self.inside @ routers.astype(np.int64) > 0)

    @cached_property
    def blocks(self) -> IntArray:
        """The block of every router: routers in the same prisms have the same; ``(num_routers,)``.

        Numbers have no order.
        """
        block = np.zeros(self.torus.num_routers, dtype=np.int64)
        for number in range(len(self.prisms)):
            mine = self.inside.indices[self.inside.indptr[number] : self.inside.indptr[number + 1]]
            fresh = block.max(initial=0) + 1
            _, block[mine] = np.unique(block[mine], return_inverse=True)
            block[mine] += fresh
        return np.unique(block, return_inverse=True)[1].astype(np.int64)


@lru_cache(maxsize=4)
def anchored_prisms(torus: Torus, shapes: tuple[AnchoredShape, ...]) -> AnchoredPrisms:
    """Return the prisms that anchored shapes admit."""
    of_shape = [shape.prisms(torus) for shape in shapes]
    times = Counter(prism for prisms in of_shape for prism in prisms)
    prisms = tuple(sorted(times, key=lambda prism: (prism.extents, prism.origin)))
    numbers = {prism: number for number, prism in enumerate(prisms)}
    routers = [np.sort(prism.routers(torus)) for prism in prisms]
    flat = np.concatenate([np.zeros(0, dtype=np.int64), *routers])
    ends = np.cumsum([0, *map(len, routers)])
    from scipy.sparse import csr_matrix  # noqa: PLC0415 - heavy, and few machines need it

    inside = csr_matrix(
        (np.ones(len(flat), dtype=np.int64), flat, ends), shape=(len(prisms), torus.num_routers)
    )
    worth = [times[prism] * prism.volume * torus.nodes_per_router for prism in prisms]
    listed = tuple(np.array([numbers[p] for p in own], dtype=np.int64) for own in of_shape)
    return AnchoredPrisms(torus, prisms, np.array(worth, dtype=np.int64), listed, inside)


def prisms_of(problem: PlacementProblem) -> AnchoredPrisms:
    """Return the anchored prisms of a problem's machine."""
    return anchored_prisms(problem.torus, problem.state.anchored)


def candidates_of(problem: PlacementProblem, idx: int, way: QueuedState | None = None) -> IntArray:
    """Return the prisms that a request may have with the running jobs in place, by number.

    One in segments has several of them, all with nodes of one of its kinds.

    Parameters
    ----------
    way
        The request with one kind of nodes alone; None: all its prisms.
    """
    request = way or problem.requests[idx]
    if request.others:
        each = [candidates_of(problem, idx, one) for one in request.ways]
        return np.unique(np.concatenate(each))
    size = request.segment or request.nodes
    key = "anchored", request.class_idx, request.region, request.communication, size
    if key not in problem._memo:
        allowed = problem.allowed_routers(request) & problem.whole_routers(request.class_idx)
        found = whole_prisms(problem, size, allowed)
        closed = problem.closed_links(request.communication)
        if closed.any():
            every = prisms_of(problem).prisms
            links = (problem.links_of(Candidate(idx, every[k])) for k in found.tolist())
            found = found[[not closed[own].any() for own in links]]
        problem._memo[key] = found
    known = problem._memo[key]
    assert isinstance(known, np.ndarray)
    return known


def whole_prisms(problem: PlacementProblem, nodes: int, allowed: BoolArray) -> IntArray:
    """Return the prisms of a given number of nodes whose routers are all allowed, by number."""
    prisms = prisms_of(problem)
    return np.flatnonzero((prisms.nodes == nodes) & ~prisms.meeting(~allowed))


def busy_routers(problem: PlacementProblem) -> BoolArray:
    """Mark the routers with a node that is down or that a running job holds; service is neither."""
    state, torus = problem.state, problem.torus
    busy = (state.node_class >= 0) & ~state.usable
    return np.asarray(busy.reshape(torus.num_routers, -1).any(axis=1))


def fragmentation(problem: PlacementProblem, started: Iterable[Candidate]) -> int:
    """Return the value of the anchored prisms that a placement, or what is there now, blocks."""
    taken = busy_routers(problem)
    for candidate in started:
        taken[candidate.routers(problem.torus)] = True
    prisms = prisms_of(problem)
    return int(prisms.worth[prisms.meeting(taken)].sum())
