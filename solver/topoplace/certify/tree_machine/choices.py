"""The least that requests cost which may start together (docs/proofs-tree.md, "Certificates")."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

from topoplace.certify.integers import require_room
from topoplace.certify.report import RefusedError
from topoplace.certify.tree_machine.instance import Instance

MOST_STATES = 1 << 21
"""Pairs of nodes and value that are followed, over all requests: some seconds of work."""


def least_of_choices(instance: Instance, bounds: Mapping[str, Fraction], worth: int) -> Fraction:
    """Return the least sum of bounds over all choices of requests that are worth enough.

    Parameters
    ----------
    bounds
        What requests cost at least; those that are absent, nothing.
    worth
        The least value of a choice. It has no more nodes than are free.

    Raises
    ------
    RefusedError
        If the choices are too many to be followed, or there are none.
    """
    scale = math.lcm(*(bound.denominator for bound in bounds.values()))
    wishes = instance.wishes.values()
    room, rest = len(instance.free), sum(wish.value for wish in wishes)
    # By nodes and value of those chosen so far, the least cost; value beyond `worth` is cut off.
    best = {(0, 0): 0}
    followed = 0
    for wish in wishes:
        rest -= wish.value
        cost = int(bounds.get(wish.id, Fraction(0)) * scale)
        found: dict[tuple[int, int], int] = {}
        for (nodes, value), total in best.items():
            more = (nodes + wish.nodes, min(worth, value + wish.value))
            for state, sum_of in (((nodes, value), total), (more, total + cost)):
                if state[0] <= room and state[1] + rest >= worth:
                    found[state] = min(sum_of, found.get(state, sum_of))
        best = found
        followed += len(best)
        require_room(followed, "choices of requests", MOST_STATES)
    if not best:
        raise RefusedError(f"no choice of requests that fits is worth {worth}")
    return Fraction(min(best.values()), scale)
