"""Which links a job uses: those of a prism, and those of a scattered set of nodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

import numpy as np

from topoplace.machine.prism import Prism, uses_whole_ring
from topoplace.machine.torus import Torus
from topoplace.types import BoolArray, IntArray


def prism_links(torus: Torus, prism: Prism) -> IntArray:
    """Return the link numbers a job on a prism may use, ascending.

    In each dimension these are the links of the rows through the prism: the links inside the
    prism's own interval where shortest routes stay in it, else those of the whole ring. The set
    equals the union of the routes between all pairs of routers of the prism, ties both ways.
    """
    chosen = []
    for d, (e, n) in enumerate(zip(prism.extents, torus.shape, strict=True)):
        if e == 1:
            continue
        length = n if uses_whole_ring(torus, d, e) else e - 1
        links = np.array([d * torus.num_routers], dtype=np.int64)
        for k, (o, along) in enumerate(zip(prism.origin, prism.extents, strict=True)):
            places = _places(o, length if k == d else along, torus.shape[k], torus.strides[k])
            links = (links[:, None] + places).ravel()
        chosen.append(links)
    return np.concatenate(chosen) if chosen else np.zeros(0, dtype=np.int64)


@lru_cache(maxsize=1 << 14)
def _places(start: int, length: int, ring: int, stride: int) -> IntArray:
    """Return what `length` steps from a coordinate add to a router's number, ascending.

    Sums of ascending places, dimension by dimension, are ascending: no links need sorting.
    """
    places = np.sort(np.arange(start, start + length, dtype=np.int64) % ring) * stride
    places.flags.writeable = False
    return places


def scattered_links(torus: Torus, routers: Iterable[int]) -> IntArray:
    """Return the links on the routes between all pairs of the given routers, ascending.

    Both directions of every pair count, and a tie at half a ring counts as using both ways
    round. Works per dimension d on rows: a route corrects d on the row whose earlier
    coordinates are the target's and whose later ones are the source's, so the arcs on that row
    are those from the sources' d-coordinates (given the later ones) to the targets' (given the
    earlier ones).
    """
    coords = torus.coordinates[np.unique(np.fromiter(routers, dtype=np.int64))]
    used = np.zeros((torus.num_dims, *torus.shape), dtype=bool)
    if len(coords) < 2:
        return np.zeros(0, dtype=np.int64)
    for d, n in enumerate(torus.shape):
        if n == 1:
            continue
        targets = _masks_by(coords[:, :d], coords[:, d])
        sources = _masks_by(coords[:, d + 1 :], coords[:, d])
        for earlier, to_mask in targets.items():
            for later, from_mask in sources.items():
                arcs = _arc_union(n, torus.wrap[d], from_mask, to_mask)
                row: tuple[int | slice, ...] = (d, *earlier, slice(None), *later)
                used[row] |= arcs
    return np.flatnonzero(used)


def _masks_by(keys: IntArray, positions: IntArray) -> dict[tuple[int, ...], int]:
    """Group positions by key, each group as a bit mask."""
    groups: dict[tuple[int, ...], int] = {}
    for key, position in zip(map(tuple, keys.tolist()), positions.tolist(), strict=True):
        groups[key] = groups.get(key, 0) | 1 << position
    return groups


@lru_cache(maxsize=1 << 16)
def _arc_union(n: int, wraps: bool, from_mask: int, to_mask: int) -> BoolArray:
    """Return which links of one row of `n` lie on a shortest way between the two sets.

    Of the arcs from one start in one direction the longest holds the others, so only the
    farthest target within half the ring matters each way round.
    """
    used = np.zeros(n, dtype=bool)
    if not wraps:
        both = from_mask | to_mask
        used[(both & -both).bit_length() - 1 : both.bit_length() - 1] = True
        return used
    half = n // 2
    near = (1 << half + 1) - 1
    everywhere = (1 << n) - 1
    links = 0
    for a in range(n):
        if not from_mask >> a & 1:
            continue
        ahead = (to_mask >> a | to_mask << n - a) & everywhere  # bit f: a target f steps ahead
        forward = max(0, (ahead & near).bit_length() - 1)
        behind = ahead >> n - half if half else 0
        backward = half - (behind & -behind).bit_length() + 1 if behind else 0
        arc = (1 << forward + backward) - 1
        at = (a - backward) % n
        links |= arc << at | arc << at >> n
    for z in range(n):
        used[z] = links >> z & 1
    return used


def route_links(
    torus: Torus, sources: IntArray, targets: IntArray
) -> tuple[IntArray, IntArray, IntArray]:
    """Return which links messages between routers take, in dimension-ordered routing.

    A tie at half a ring goes the positive way.

    Parameters
    ----------
    sources, targets
        Routers at the ends of every message, shape ``(num_messages,)``.

    Returns
    -------
    message, link, way
        One entry per hop, message by message in the order of its route: the message, the link's
        number (`Torus`), and 1 where the link is taken up its dimension, -1 down.
    """
    parts = [(np.zeros(0, dtype=np.int64),) * 3]
    at = np.asarray(sources, dtype=np.int64)
    targets = np.asarray(targets, dtype=np.int64)
    for d, (n, stride, wraps) in enumerate(
        zip(torus.shape, torus.strides, torus.wrap, strict=True)
    ):
        here, goal = at // stride % n, targets // stride % n
        ahead = goal - here
        if wraps:
            ahead = ahead % n
            ahead = np.where(2 * ahead > n, ahead - n, ahead)
        length = np.abs(ahead)
        message = np.repeat(np.arange(len(at)), length)
        step = np.arange(len(message)) - np.repeat(np.cumsum(length) - length, length)
        way = np.sign(ahead)[message]
        low = (here[message] + way * step - (way < 0)) % n  # the lower end of the link
        base = (at - here * stride)[message]
        parts.append((message, d * torus.num_routers + base + low * stride, way))
        at = at + (goal - here) * stride
    message, link, way = (np.concatenate(part) for part in zip(*parts, strict=True))
    order = np.argsort(message, kind="stable")
    return message[order], link[order], way[order]


def tree_arms(
    torus: Torus, roots: IntArray, tree: IntArray, members: IntArray
) -> Iterator[tuple[IntArray, IntArray, IntArray, IntArray]]:
    """Yield the arms of trees, dimension by dimension.

    A tree is all links on the dimension-ordered routes from its root to its members. Routes that
    have reached the same router take the same links of a dimension, up to where each leaves it: an
    arm each way.

    Parameters
    ----------
    roots
        Router of the root of every tree.
    tree, members
        Of every member its tree, and its router.

    Yields
    ------
    tree, router, up, down
        One entry per router at which routes of a tree set out along the dimension: how many links
        they take up from there, and how many down.
    """
    keys = np.sort(tree * torus.num_routers + members)  # a tree's routers by their coordinates
    keys = keys[np.diff(keys, prepend=-1) > 0]
    if not len(keys):
        return
    tree, at = np.divmod(keys, torus.num_routers)
    origin = roots[tree]
    for n, stride, wraps in zip(torus.shape, torus.strides, torus.wrap, strict=True):
        ahead = at // stride % n - origin // stride % n
        if wraps:
            ahead = ahead % n
            ahead = np.where(2 * ahead > n, ahead - n, ahead)
        begins = np.flatnonzero(np.diff(keys // (stride * n), prepend=-1))
        router = at[begins] - at[begins] % (stride * n) + origin[begins] % (stride * n)
        up, down = (np.maximum.reduceat(np.maximum(way * ahead, 0), begins) for way in (1, -1))
        yield tree[begins], router, up, down
