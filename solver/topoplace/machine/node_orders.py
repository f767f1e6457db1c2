"""The orders in which ALPS lists the nodes of Blue Waters (Enos 2014, II.B.2 and Figs. 2 to 4).

An order is given by its *digits*, slowest first. A digit ``(dim, coarse, fine)`` is the place,
along dimension `dim`, of a piece `fine` routers long inside the piece `coarse` routers long that it
belongs to (`coarse` 0: the whole dimension). Whenever a slower digit moves on, the faster ones run
the other way, so that the pieces are filled along a serpentine, the space-filling curve that Enos
2014 describes ("reverses the direction [..] after jumping to the next set of x (or y) values").

The paper does not say how routers follow each other inside a block. Of all orders, only z fastest,
then y, then x gives the largest hops of its Table III (9 and 16, docs/studies/enos2014.md).
"""

from __future__ import annotations

import numpy as np

from topoplace.errors import unknown_name
from topoplace.machine.torus import Torus
from topoplace.types import IntArray

Digit = tuple[int, int, int]

X, Y, Z = 0, 1, 2

O2: tuple[Digit, ...] = (
    (X, 0, 4), (Y, 0, 4), (Z, 0, 2), (X, 4, 2),  # slabs; 2x4x2 blocks along y, z and within x
    (Y, 4, 1), (X, 2, 1), (Z, 2, 1),  # routers of a block
)  # fmt: skip
"""yz slabs 4 thick in x, of 2x4x2 blocks."""

ONE_Y: tuple[Digit, ...] = (
    (Y, 0, 1), (X, 0, 4), (Z, 0, 8), (X, 4, 1), (Z, 8, 1),
)  # fmt: skip
"""xz planes, of 4x8 blocks: plain ``-OY``, whose blocks are inferred from its successors."""

TWO_Y: tuple[Digit, ...] = (
    (Y, 0, 2), (X, 0, 4), (Z, 0, 8),  # 4x2x8 blocks fill z, then x, then y
    (X, 4, 1), (Y, 2, 1), (Z, 8, 1),  # routers of a block
)  # fmt: skip
"""xz slabs 2 thick in y, of 4x2x8 blocks."""

FOUR_Y: tuple[Digit, ...] = (
    (Y, 0, 4), (X, 0, 4), (Z, 0, 8), (Y, 4, 2),  # as 2Y, two blocks on top of each other
    (X, 4, 1), (Y, 2, 1), (Z, 8, 1),
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


ORDERS: dict[str, tuple[Digit, ...]] = {
    "alps-o2": O2,
    "alps-oy": ONE_Y,
    "alps-2y": TWO_Y,
    "alps-4y": FOUR_Y,
}
"""The orders of ALPS by name."""


def nodes_in_order(torus: Torus, order: str, nodes: IntArray) -> IntArray:
    """Return nodes in an order of `ORDERS`, or by ``number``.

    Raises `InputError` if there is no such order.
    """
    if order == "number":
        return np.sort(nodes)
    if order not in ORDERS:
        raise unknown_name(order, (*ORDERS, "number"), field="--node-order")
    listed = torus.nodes_of(block_order(torus, ORDERS[order]))
    return listed[np.isin(listed, nodes)]
