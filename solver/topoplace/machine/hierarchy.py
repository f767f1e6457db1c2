"""Hierarchies: domains within domains, and hosts that can hold several units."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from topoplace.errors import InputError
from topoplace.machine.switches import Switches
from topoplace.types import BoolArray, IntArray

NODE, LEAF, FABRIC = "node", "leaf", "fabric"
"""Levels of a switch tree; those between are ``switch1``, .. ."""

PLACES = "node"
"""The resource of hosts that Slurm's jobs share: places, as many on each, one for each CPU."""

APART = 1 << 40
"""The distance of hosts of different fabrics."""


@dataclass(frozen=True)
class Hierarchy:
    """Hosts below domains of several levels, numbered in the order of the description.

    The domains just above the hosts are its *leaves*: leaf switches, racks, or the whole machine
    if there is no level above the hosts.

    Attributes
    ----------
    levels
        Names of the levels, top first; the last one is that of the hosts.
    host_names
        Names of the hosts.
    resources
        Names of the resources.
    capacity
        The amount of every resource on hosts, shape ``(num_hosts, num_resources)``.
    domain_names
        By level the names of its domains, each after those that contain it, as ``b1/r2``.
    domain_of
        By level the domain of every host, shape ``(num_levels, num_hosts)``.
    block_sizes
        Slurm's, ascending; empty on other machines.
    fabrics
        Whether the domains of the top level are unconnected: a request lies in one of them.
    """

    levels: tuple[str, ...]
    host_names: tuple[str, ...]
    resources: tuple[str, ...]
    capacity: IntArray
    domain_names: tuple[tuple[str, ...], ...]
    domain_of: IntArray
    block_sizes: tuple[int, ...] = ()
    fabrics: bool = False
    nodes_per_router: ClassVar[int] = 1

    @property
    def num_nodes(self) -> int:
        """Number of hosts, which are its nodes."""
        return len(self.host_names)

    @property
    def num_hosts(self) -> int:
        """Number of hosts."""
        return len(self.host_names)

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number of every host by its name."""
        return {name: host for host, name in enumerate(self.host_names)}

    @property
    def num_levels(self) -> int:
        """Number of levels, that of the hosts among them."""
        return len(self.levels)

    @property
    def counted(self) -> tuple[str, ...]:
        """Names of the levels whose domains are counted: not fabrics, as no request has two."""
        return self.levels[1:] if self.fabrics else self.levels

    def without(self, level: int, hosts: Iterable[int]) -> BoolArray:
        """Mark the domains of a level that have none of some hosts, shape ``(num_domains,)``."""
        found = np.ones(len(self.domain_names[level]), dtype=bool)
        found[self.domain_of[level][[*hosts]]] = False
        return found

    @property
    def paths(self) -> tuple[list[str], ...]:
        """By level above the hosts, the name of the domain of every host, without its path."""
        whole = [
            [names[domain] for domain in of.tolist()]
            for names, of in zip(self.domain_names[:-1], self.domain_of, strict=False)
        ]
        return tuple(
            [name.removeprefix(f"{upper}/") for name, upper in zip(own, above, strict=True)]
            for own, above in zip(whole, [[""] * self.num_hosts, *whole], strict=False)
        )

    @cached_property
    def parents(self) -> tuple[IntArray, ...]:
        """By level, the domain above each of its domains, as a number; 0 at the top."""
        above = [np.zeros_like(self.domain_of[0]), *self.domain_of]
        found = []
        for names, own, upper in zip(self.domain_names, self.domain_of, above, strict=False):
            parent = np.zeros(len(names), dtype=np.int64)
            parent[own] = upper
            found.append(parent)
        return tuple(found)

    @property
    def text(self) -> str:
        """Short form such as ``hierarchy of block > rack > host``."""
        return f"hierarchy of {' > '.join(self.levels)}"

    @cached_property
    def _sibling_numbers(self) -> list[IntArray]:
        """By level, the number of every domain within the domain above it."""
        found = []
        for parent in self.parents:
            order = np.argsort(parent, kind="stable")
            first = np.searchsorted(parent[order], parent[order])
            numbers = np.empty(len(parent), dtype=np.int64)
            numbers[order] = np.arange(len(parent)) - first
            found.append(numbers)
        return found

    @property
    def place_shape(self) -> tuple[int, ...]:
        """By level, the largest number of its domains within one domain above."""
        return tuple(int(numbers.max()) + 1 for numbers in self._sibling_numbers)

    def places_of(self, nodes: IntArray) -> IntArray:
        """Return the coordinates of hosts: by level the number of their domain in the one above."""
        numbers = zip(self._sibling_numbers, self.domain_of, strict=True)
        return np.stack([own[domain[nodes]] for own, domain in numbers], axis=-1)

    def node_hops(self, nodes: IntArray, others: IntArray) -> IntArray:
        """Return the levels up and down between hosts, elementwise; 0 on one host.

        On a switch tree that is d of Mishra 2020, eq. 4. It is `APART` between fabrics.
        """
        ends = np.broadcast_arrays(nodes, others)
        apart = self.domain_of[:, ends[0]] != self.domain_of[:, ends[1]]
        hops = 2 * apart.sum(axis=0)
        return np.asarray(np.where(apart[0], APART, hops) if self.fabrics else hops)

    # ---- Leaves ----------------------------------------------------------------------------------

    @cached_property
    def leaf_of(self) -> IntArray:
        """The leaf of every host, shape ``(num_hosts,)``."""
        if self.num_levels == 1:
            return np.zeros(self.num_hosts, dtype=np.int64)
        return np.asarray(self.domain_of[-2])

    @cached_property
    def own_names(self) -> tuple[tuple[str, ...], ...]:
        """By level above the hosts the names of its domains, without the path."""
        found = []
        whole = zip(self.domain_names[:-1], self.parents, [(), *self.domain_names], strict=False)
        for names, parents, uppers in whole:
            above = [f"{uppers[upper]}/" if uppers else "" for upper in parents.tolist()]
            found.append(tuple(map(str.removeprefix, names, above)))
        return tuple(found)

    @property
    def leaf_names(self) -> tuple[str, ...]:
        """Own name of every leaf, without the path."""
        return self.own_names[-1] if self.num_levels > 1 else ("",)

    @property
    def num_leaves(self) -> int:
        """Number of leaves."""
        return len(self.domain_names[-2]) if self.num_levels > 1 else 1

    @cached_property
    def leaf_sizes(self) -> IntArray:
        """Hosts of every leaf, shape ``(num_leaves,)``."""
        return np.bincount(self.leaf_of, minlength=self.num_leaves)

    @cached_property
    def above_leaves(self) -> IntArray:
        """By level down to the leaves the domain above every leaf, first a root above all.

        There is no such root where there are fabrics, which the first level has then. Shape
        ``(num_levels, num_leaves)``, or a row less.
        """
        _, firsts = np.unique(self.leaf_of, return_index=True)
        above = self.domain_of[: max(0, self.num_levels - 1), firsts]
        return above if self.fabrics else np.pad(above, ((1, 0), (0, 0)))

    @cached_property
    def common_level(self) -> IntArray:
        """The level of the lowest domain above two leaves, counted from 1, that of the leaves.

        It is 0 where there is none. Shape ``(num_leaves, num_leaves)``.
        """
        above = self.above_leaves
        common = np.ones((self.num_leaves, self.num_leaves), dtype=np.int64)
        for of in above[1:]:
            common += of[:, None] != of
        common[above[0][:, None] != above[0]] = 0
        return common

    @property
    def roots(self) -> list[IntArray]:
        """The leaves of every fabric, or all; a job lies below one of them."""
        root = self.above_leaves[0]
        return [np.flatnonzero(root == own) for own in range(int(root.max()) + 1)]


def build_hierarchy(
    levels: Sequence[str],
    resources: Sequence[str],
    hosts: Sequence[tuple[str, Sequence[str], Sequence[int]]],
    block_sizes: Sequence[int] = (),
    *,
    fabrics: bool = False,
) -> Hierarchy:
    """Return the hierarchy of hosts: name, names of the domains it is in (top first), capacities.

    Domains are numbered in the order in which hosts name them. No two hosts have the same name.
    """
    numbers: list[dict[tuple[str, ...], int]] = [{} for _ in levels[:-1]]
    above: list[list[int]] = []
    sizes: list[int] = []
    paths: list[str] = []
    for domains, group in itertools.groupby(hosts, key=operator.itemgetter(1)):
        path = tuple(domains)
        above.append([of.setdefault(path[:k], len(of)) for k, of in enumerate(numbers, start=1)])
        names = ["/".join([*path, name]) for name, _, _ in group]
        sizes.append(len(names))
        paths += names
    domain_of = np.array(above, dtype=np.int64).reshape(len(above), len(numbers)).T
    of_hosts = np.arange(len(hosts), dtype=np.int64)
    return Hierarchy(
        tuple(levels),
        tuple(name for name, _, _ in hosts),
        tuple(resources),
        np.array([own for _, _, own in hosts], dtype=np.int64).reshape(-1, len(resources)),
        (*(tuple("/".join(path) for path in of) for of in numbers), tuple(paths)),
        np.vstack([np.repeat(domain_of, np.array(sizes, dtype=np.int64), axis=1), of_hosts]),
        tuple(sorted(block_sizes)),
        fabrics,
    )


# ---- Switch trees (docs/reference/formats.md, "Trees as hierarchies") --------------------------


def hierarchy_of_switches(switches: Switches) -> Hierarchy:
    """Return a switch tree as a hierarchy: its nodes are hosts of one slot, its switches domains.

    Switches that hold the same nodes are one domain. A switch is one level above the highest that
    it holds, leaves are the lowest; if a node has no switch on a level, the highest switch above
    the node and below that level stands in for it. The top level is left out if it has one domain;
    several are fabrics.

    Raises
    ------
    InputError
        If two switches share some of their nodes, and neither has all nodes of the other.
    """
    domains, chains = _domains_of(switches)
    depth = max(height for height, _ in domains)
    paths = [
        [[name for height, name in chain if height <= level][-1] for level in range(depth, 0, -1)]
        for chain in ([domains[number] for number in numbers] for numbers in chains)
    ]
    several = len({numbers[-1] for numbers in chains}) > 1
    levels = [*(f"switch{level}" for level in range(depth - 1, 0, -1)), LEAF]
    if several:
        paths = [[path[0], *path[min(1, depth - 1) :]] for path in paths]
        levels = [FABRIC, *levels[min(1, depth - 1) :]]
    elif depth > 1:
        levels, paths = levels[1:], [path[1:] for path in paths]
    hosts = [
        (name, path, (1,))
        for path, nodes in zip(paths, switches.nodes, strict=True)
        for name in nodes
    ]
    return build_hierarchy([*levels, NODE], ["slots"], hosts, fabrics=several)


def _domains_of(switches: Switches) -> tuple[list[tuple[int, str]], list[list[int]]]:
    """Return height and name of every set of nodes that a switch holds, and by leaf its sets.

    The leaf itself is the first of its sets, and every other one holds those before it.
    """
    domains: list[tuple[int, str]] = []
    sizes: list[int] = []
    chains: list[list[int]] = [[] for _ in switches.nodes]
    known: set[tuple[int, ...]] = set()
    for name, leaves in sorted(switches.leaves.items(), key=lambda own: len(own[1])):
        if leaves in known:
            continue
        known.add(leaves)
        inside = {chains[leaf][-1] for leaf in leaves if chains[leaf]}
        if sum(sizes[number] for number in inside) > len(leaves):
            other = next(
                domains[number][1]
                for number in inside
                if sum(number in chains[leaf] for leaf in leaves) < sizes[number]
            )
            expected = "switches that share all nodes of one of them or none"
            raise InputError(expected, field="switches", found=f"{other} and {name}")
        for leaf in leaves:
            chains[leaf].append(len(domains))
        domains.append((1 + max((domains[number][0] for number in inside), default=0), name))
        sizes.append(len(leaves))
    return domains, chains
