"""Prisms, boxes of routers that may wrap around a ring, and which links a job uses.

A job uses those of its prism, or of all routes within a scattered set of nodes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from topoplace.errors import InputError, number_of
from topoplace.machine.torus import Torus
from topoplace.types import BoolArray, IntArray


@dataclass(frozen=True, order=True)
class Prism:
    """A box of routers: `extents` routers from `origin` in the positive directions.

    On a ring the box may cross the last coordinate and go on at 0. A box that spans a ring has
    origin 0 there, so that every set of routers has one description.
    """

    origin: tuple[int, ...]
    extents: tuple[int, ...]

    @property
    def volume(self) -> int:
        """Number of routers inside, service and down ones included."""
        return math.prod(self.extents)

    @property
    def text(self) -> str:
        """Short form such as ``12x2x12@0,4,6``."""
        return f"{'x'.join(map(str, self.extents))}@{','.join(map(str, self.origin))}"

    def require_inside(self, torus: Torus, field: str = "prism") -> None:
        """Raise `InputError` unless the prism is a canonical box of this machine."""
        if len(self.origin) != torus.num_dims or len(self.extents) != torus.num_dims:
            raise InputError(
                f"{number_of(torus.num_dims, 'coordinate')} and extents",
                field=field,
                value=self.text,
            )
        for o, e, n, wraps in zip(self.origin, self.extents, torus.shape, torus.wrap, strict=True):
            if not 0 <= o < n:
                raise InputError(f"an origin inside {torus.text}", field=field, value=self.text)
            if not 1 <= e <= n:
                raise InputError(
                    f"extents from 1 to the machine's, {torus.text}", field=field, value=self.text
                )
            if not wraps and o + e > n:
                raise InputError("a prism that ends inside the mesh", field=field, value=self.text)
            if wraps and e == n and o != 0:
                raise InputError(
                    "origin 0 where the prism spans the ring", field=field, value=self.text
                )

    def routers(self, torus: Torus) -> IntArray:
        """Return the routers inside, in row-major order from the origin."""
        axes = [
            (np.arange(o, o + e, dtype=np.int64) % n) * s
            for o, e, n, s in zip(
                self.origin, self.extents, torus.shape, torus.strides, strict=True
            )
        ]
        total = axes[0]
        for axis in axes[1:]:
            total = (total[:, None] + axis).ravel()
        return total

    def max_hops(self, torus: Torus) -> int:
        """Return the largest hop distance between two routers of the prism."""
        return sum(
            min(e - 1, n // 2) if wraps else e - 1
            for e, n, wraps in zip(self.extents, torus.shape, torus.wrap, strict=True)
        )

    def num_wrapping_dims(self, torus: Torus) -> int:
        """Count the dimensions where traffic leaves the prism (see `uses_whole_ring`)."""
        return sum(
            e < torus.shape[d] and uses_whole_ring(torus, d, e) for d, e in enumerate(self.extents)
        )


def uses_whole_ring(torus: Torus, dim: int, extent: int) -> bool:
    """Return whether an extent makes a job use its whole ring rather than its own interval.

    Shortest routes stay within an interval of ``n`` routers on a ring of ``N`` if
    ``2 (n - 1) < N``; at equality the two ways round tie, and both count as used. A mesh
    dimension, and a single router, never use more than the interval.
    """
    return torus.wrap[dim] and extent > 1 and 2 * (extent - 1) >= torus.shape[dim]


def bisection_bandwidth(torus: Torus, extents: tuple[int, ...]) -> Fraction:
    """Return the bisection bandwidth of a prism, in the unit of `Torus.bandwidth`.

    The least over the dimensions of (product of the other extents) x (link bandwidth) x f, where
    on a ring of N an extent n has f = 2 if it spans the ring, f = 1 up to half of it, and
    f = 2(n-1)/(N-1) between; on a mesh f = 1 (Fiedler 2014, "Bisection Bandwidth: Slab w/N
    Geminis in Y").
    """
    widths = []
    for d, n in enumerate(extents):
        ring = torus.shape[d]
        factor = Fraction(1)
        if torus.wrap[d] and ring > 1:
            if n == ring:
                factor = Fraction(2)
            elif 2 * n > ring:
                factor = Fraction(2 * (n - 1), ring - 1)
        others = math.prod(e for k, e in enumerate(extents) if k != d)
        widths.append(others * torus.bandwidth[d] * factor)
    return min(widths)


def bisection_per_node(torus: Torus, extents: tuple[int, ...]) -> Fraction:
    """Return `bisection_bandwidth` divided by the number of all nodes of the prism."""
    return bisection_bandwidth(torus, extents) / (math.prod(extents) * torus.nodes_per_router)


def all_origins(torus: Torus, extents: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Return every canonical origin of a prism with these extents, in row-major order."""
    axes = []
    for e, n, wraps in zip(extents, torus.shape, torus.wrap, strict=True):
        if e > n:
            return []
        axes.append(range(1) if e == n else range(n) if wraps else range(n - e + 1))
    return list(itertools.product(*axes))


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
