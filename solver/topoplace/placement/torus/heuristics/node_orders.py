"""First fit of nodes: every request in turn takes the first usable nodes of a fixed order.

The orders are random, or those of ALPS on Blue Waters (Enos 2014, II.B.2 and Figs. 2 to 4). Such an
order is given by its *digits*, slowest first. A digit ``(dim, coarse, fine)`` is the place, along
dimension `dim`, of a piece `fine` routers long inside the piece `coarse` routers long that it
belongs to (`coarse` 0: the whole dimension). Whenever a slower digit moves on, the faster ones run
the other way, so that the pieces are filled along a serpentine, the space-filling curve that Enos
2014 describes ("reverses the direction [..] after jumping to the next set of x (or y) values").
"""

from __future__ import annotations

import numpy as np

from topoplace.machine import Torus
from topoplace.placement.torus.outcome import Scattered
from topoplace.placement.torus.problem import PlacementProblem
from topoplace.solving import Options, Outcome, register
from topoplace.types import IntArray

Digit = tuple[int, int, int]

X, Y, Z = 0, 1, 2

O2: tuple[Digit, ...] = (
    (X, 0, 4), (Y, 0, 4), (Z, 0, 2), (X, 4, 2),  # slabs; 2x4x2 blocks along y, z and within x
    (Y, 4, 1), (X, 2, 1), (Z, 2, 1),  # routers of a block
)  # fmt: skip
"""yz slabs 4 thick in x, of 2x4x2 blocks."""

TWO_Y: tuple[Digit, ...] = (
    (Y, 0, 2), (X, 0, 4), (Z, 0, 8),  # 4x2x8 blocks fill z, then x, then y
    (X, 4, 1), (Z, 8, 1), (Y, 2, 1),  # routers of a block, blade by blade
)  # fmt: skip
"""xz slabs 2 thick in y, of 4x2x8 blocks."""

FOUR_Y: tuple[Digit, ...] = (
    (Y, 0, 4), (X, 0, 4), (Z, 0, 8), (Y, 4, 2),  # as 2Y, two blocks on top of each other
    (X, 4, 1), (Z, 8, 1), (Y, 2, 1),
)  # fmt: skip
"""xz slabs 4 thick in y, of 4x2x8 blocks."""


def block_order(torus: Torus, digits: tuple[Digit, ...]) -> IntArray:
    """Return the routers of a machine in the order of the digits.

    Digits of dimensions that the machine does not have are left out; pieces are cut off at its
    edge. Dimensions beyond the third come first and step by single routers: a machine of more
    dimensions is a row of three-dimensional ones.
    """
    beyond = tuple((d, 0, 1) for d in range(3, torus.num_dims))
    rank = np.zeros(torus.num_routers, dtype=np.int64)
    for dim, coarse, fine in (*beyond, *digits):
        if dim >= torus.num_dims:
            continue
        n = torus.shape[dim]
        at = torus.coordinates[:, dim]
        outer = coarse or n
        start = at // outer * outer
        count = -(-np.minimum(outer, n - start) // fine)
        place = (at - start) // fine
        place = np.where(rank % 2 == 1, count - 1 - place, place)
        _, rank = np.unique(rank * n + place, return_inverse=True)
    return np.argsort(rank, kind="stable")


def place_in_order(problem: PlacementProblem, nodes: IntArray) -> list[Scattered]:
    """Give every request, in queue order, the first free nodes that it can use.

    A request starts if enough usable nodes of its class, inside its region if it names one, are
    left. Geometries and links are ignored: as under ALPS, a job's nodes need not form a prism,
    jobs may share links, and two jobs may have nodes on one router.

    Parameters
    ----------
    nodes
        Every node of the machine, in the order to take them.
    """
    state = problem.state
    left = state.usable.copy()
    started = []
    for idx, request in enumerate(problem.requests):
        fits = left & state.of_kind(request.class_idx)
        if request.region is not None:
            fits &= np.repeat(state.regions[request.region], problem.torus.nodes_per_router)
        taken = nodes[fits[nodes]][: request.nodes]
        if len(taken) == request.nodes:
            left[taken] = False
            started.append(Scattered(idx, np.sort(taken)))
    return started


@register("placement", "random-nodes", uses_prisms=False)
def _random_nodes(problem: PlacementProblem, options: Options) -> Outcome:
    order = np.random.default_rng(options.seed).permutation(problem.torus.num_nodes)
    return Outcome(place_in_order(problem, order))


def _alps(name: str, digits: tuple[Digit, ...]) -> None:
    """Register an order of ALPS."""

    @register("placement", name, uses_prisms=False)
    def _place(problem: PlacementProblem, options: Options) -> Outcome:
        routers = block_order(problem.torus, digits)
        return Outcome(place_in_order(problem, problem.torus.nodes_of(routers)))


_alps("alps-o2", O2)
_alps("alps-2y", TWO_Y)
_alps("alps-4y", FOUR_Y)
