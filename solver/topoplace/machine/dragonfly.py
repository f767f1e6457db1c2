"""Dragonflies: groups of routers that local links join, and global links between the groups.

A minimal route takes at most one global link (Kim 2008): it goes on local links to a router that
has one to the other group, over it, and on local links to the end. A path through a third group
may have fewer links; it is not minimal in this sense (Bunde 2019).
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from topoplace.errors import InputError
from topoplace.types import IntArray

ARRANGEMENTS = ("absolute", "relative", "circulant")


@dataclass(frozen=True)
class Dragonfly:
    """Groups, their routers, and the nodes of these, numbered in this order.

    Attributes
    ----------
    num_groups
        Number of groups.
    routers
        Routers of a group: one number if all are joined, rows and columns if those of a row, and
        those of a column, are.
    nodes_per_router
        Nodes of a router.
    global_links
        The routers at the ends of every global link, shape ``(num_global, 2)``: one at least
        between any two groups, and none inside a group.
    """

    num_groups: int
    routers: tuple[int, ...]
    nodes_per_router: int
    global_links: IntArray

    def __post_init__(self) -> None:
        links = self.global_links
        if len(links) and (links.min() < 0 or links.max() >= self.num_routers):
            expected = f"routers from 0 to {self.num_routers - 1}"
            raise InputError(expected, field="links", value=int(links.max()))
        for g, h in itertools.combinations_with_replacement(range(self.num_groups), 2):
            if (g == h) == ((g, h) in self.between):
                expected = "global links between any two groups, and none inside a group"
                found = f"{'one inside' if g == h else 'none between'} {g} and {h}"
                raise InputError(expected, field="links", found=found)

    @property
    def per_group(self) -> int:
        """Routers of a group."""
        return math.prod(self.routers)

    @property
    def num_routers(self) -> int:
        """Number of routers."""
        return self.num_groups * self.per_group

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""
        return self.num_routers * self.nodes_per_router

    def groups_of(self, nodes: IntArray) -> IntArray:
        """Return the groups of some nodes, each once, ascending."""
        return np.unique(nodes // (self.nodes_per_router * self.per_group))

    @cached_property
    def local_hops(self) -> IntArray:
        """Local links between two routers of a group, shape ``(per_group, per_group)``."""
        places = np.indices(self.routers).reshape(len(self.routers), -1)
        return np.asarray((places[:, :, None] != places[:, None]).sum(axis=0))

    @cached_property
    def between(self) -> dict[tuple[int, int], IntArray]:
        """By two groups, in either order, the links between them: a router in each."""
        found: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for ends in self.global_links.tolist():
            for u, v in (ends, ends[::-1]):
                found.setdefault((u // self.per_group, v // self.per_group), []).append((u, v))
        return {pair: np.array(links) for pair, links in found.items()}

    @cached_property
    def distances(self) -> IntArray:
        """Links of a minimal route between two routers, shape ``(num_routers, num_routers)``."""
        size, num = self.per_group, self.num_groups
        found = np.full((num, size, num, size), self.num_routers, dtype=np.int64)
        for g in range(num):
            found[g, :, g] = self.local_hops
        for (g, h), links in self.between.items():
            for u, v in (links % size).tolist():
                via = self.local_hops[:, u, None] + 1 + self.local_hops[v]
                np.minimum(found[g, :, h], via, out=found[g, :, h])
        return found.reshape(self.num_routers, self.num_routers)

    def local_routes(self, source: int, target: int) -> list[tuple[int, ...]]:
        """Return the shortest routes within a group: both ways round a corner."""
        if source == target:
            return [(source,)]
        far, first = self.distances, source // self.per_group * self.per_group
        near = far[source, first : first + self.per_group] == 1
        near &= far[first : first + self.per_group, target] == far[source, target] - 1
        ahead = (np.flatnonzero(near) + first).tolist()
        return [(source, *rest) for via in ahead for rest in self.local_routes(via, target)]

    def routes(self, source: int, target: int) -> list[tuple[int, ...]]:
        """Return the routers of every minimal route; parallel links have a route each."""
        g, h, far = source // self.per_group, target // self.per_group, self.distances
        if g == h:
            return self.local_routes(source, target)
        found = []
        for u, v in self.between[g, h].tolist():
            if far[source, u] + 1 + far[v, target] == far[source, target]:
                ways = itertools.product(self.local_routes(source, u), self.local_routes(v, target))
                found += [one + other for one, other in ways]
        return found

    def loads(
        self, sources: IntArray, targets: IntArray, sizes: IntArray
    ) -> dict[tuple[int, int], Fraction]:
        """Return the bytes from a router to the next, by both, of messages between routers.

        A message is split evenly over its minimal routes.
        """
        found: dict[tuple[int, int], Fraction] = {}
        for u, v, size in zip(sources.tolist(), targets.tolist(), sizes.tolist(), strict=True):
            routes = self.routes(u, v)
            for link in itertools.chain(*map(itertools.pairwise, routes)):
                found[link] = found.get(link, Fraction(0)) + Fraction(size, len(routes))
        return found


def arranged(num_groups: int, per_group: int, ports: int, arrangement: str) -> IntArray:
    """Return the global links of an arrangement, as the routers at their ends.

    Port k of a group, of its router ``k // ports``, leads to another group: the absolute
    arrangement (Kim 2008) skips the group itself, the relative one goes to the group k + 1 further
    on, and the circulant one to those 1 further on, 1 back, 2 further on and so on (Hastings 2015).
    If a group has more ports than there are other groups, it starts again, as long as there are
    enough for all groups; ports left over have no link.

    Parameters
    ----------
    ports
        Global links of a router.
    """
    others = num_groups - 1
    group, k = np.indices((num_groups, others))
    if arrangement == "absolute":
        target = k + (k >= group)
    else:
        back = (k % 2 == 1) & (arrangement == "circulant")
        step = k + 1 if arrangement == "relative" else k // 2 + 1
        target = (group + np.where(back, -step, step)) % num_groups
    port_to = np.argsort(target, axis=1)  # by group, of the other groups in their order
    g, h = np.triu_indices(num_groups, 1)
    rounds = np.arange(per_group * ports // others if others else 0)[:, None, None]
    port = rounds * others + np.stack([port_to[g, h - 1], port_to[h, g]])
    routers = np.stack([g, h]) * per_group + port // ports
    return np.asarray(routers.transpose(0, 2, 1).reshape(-1, 2))
