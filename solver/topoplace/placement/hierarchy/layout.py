"""The domains of a machine as a tree of nodes, and the rows of a queue on it.

The rows are those of docs/proofs/hierarchy.md. Hosts that hold at most one unit, of any kind in the
queue, and fit the same kinds, are a *pool* if they are in one lowest domain: one node of the tree,
with one row. Every other host has a row for each resource. Domains in which requests need units
together have *rounded* rows as well: at most one request that fills more than half fits, and so on.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from topoplace.placement.hierarchy._kernels import Tree
from topoplace.placement.hierarchy.problem import HierarchyProblem
from topoplace.snapshot.hierarchy_state import PartState
from topoplace.types import BoolArray, IntArray

ROUNDED = range(1, 17)
"""Capacities of the rounded rows of a domain (docs/proofs/hierarchy.md, "Rounded rows")."""


@dataclass(frozen=True)
class Node:
    """A domain, the whole machine (level -1), a host, or a pool of hosts.

    Attributes
    ----------
    level, domain
        Level of the machine, and number of the domain on it; a pool has those of its first host.
    children
        Numbers of the nodes in it; none of hosts and pools.
    hosts
        The hosts of a pool or a single host; else none.
    pool
        Row of a pool; None for all others.
    """

    level: int
    domain: int = 0
    children: tuple[int, ...] = ()
    hosts: tuple[int, ...] = ()
    pool: int | None = None


@dataclass(frozen=True)
class Rounded:
    """The rounded rows of a node for one resource, or for units of pools.

    Attributes
    ----------
    capacity
        The free amount of all hosts in it together.
    resource
        Number of the resource; None if it has only pools, and units are counted.
    rows
        By capacity of `ROUNDED`, if it is below `capacity`.
    """

    capacity: int
    resource: int | None
    rows: dict[int, int]


class Layout:
    """The tree of a machine for a queue, and its rows.

    Attributes
    ----------
    kinds
        What units of the queue take of every resource, in multiples of `grain`, shape
        ``(num_kinds, num_resources)``. Units are of one kind if they take the same and may have the
        same hosts.
    rooms
        How many units of a kind every host holds alone, 0 if they may not have it, shape
        ``(num_hosts, num_kinds)``.
    capacities
        Capacities of the rows, shape ``(num_rows,)``; the first `num_base` are those of hosts and
        pools.
    families
        The rows by name.
    nodes
        Children before their parents; the last one is the whole machine.
    rounded
        By node its rounded rows.
    apart
        By level and name the row of the first domain, of which requests that are apart take one.
    first_row
        The row of host 0 for every resource that some unit takes.
    windows
        The places of requests that are contiguous, as far as they are known, by what these ask for.
    """

    def __init__(self, problem: HierarchyProblem) -> None:
        self.machine, self.state = problem.machine, problem.state
        self._free_hosts = problem.free_hosts
        self.parts = [p for request in problem.requests for way in request.ways for p in way]
        kinds = list(dict.fromkeys(part.kind for part in self.parts))
        takes = [own for own, _ in kinds]
        table = np.array(takes, dtype=np.int64).reshape(-1, len(self.machine.resources))
        self.kind_of = {own: k for k, own in enumerate(kinds)}
        self.grain = np.maximum(1, np.gcd.reduce(table, axis=0, initial=0))
        self.kinds = table // self.grain
        self.free = self.state.free // self.grain
        self.rooms = rooms_of(self.free, self.kinds)
        for k, (_, eligible) in enumerate(kinds):
            if eligible is not None:
                self.rooms[~eligible.mask, k] = 0
        self.windows: dict[Hashable, list[Any]] = {}
        self._alone: dict[Hashable, tuple[list[int], bool]] = {}
        self._pools = self._pools_of_domains()
        self._number_rows()
        self.nodes: list[Node] = []
        self.node_of_host: dict[int, int] = {}
        self._make_tree()
        self.rounded: list[list[Rounded]] = [[] for _ in self.nodes]
        self._add_rounded()
        self._add_apart()

    # ---- Pools

    def _pools_of_domains(self) -> list[tuple[int, ...]]:
        """Return the pools, in the order of their first hosts."""
        last = self.machine.num_levels - 1
        if any(last in levels_named(part) for part in self.parts):
            return []
        fits = self.rooms > 0
        alone = self._holds_one(fits)
        found: dict[object, list[int]] = {}
        lowest = self.machine.leaf_of
        for host in np.flatnonzero(alone).tolist():
            found.setdefault((int(lowest[host]), fits[host].tobytes()), []).append(host)
        return [tuple(hosts) for hosts in found.values()]

    def _holds_one(self, fits: BoolArray) -> BoolArray:
        """Mark the hosts that hold one unit, and no two units of any kinds."""
        found = fits.any(axis=1)
        for k, first in enumerate(self.kinds):
            for other in self.kinds[k:]:
                found &= (first + other > self.free).any(axis=1)
        return np.asarray(found)

    # ---- Rows

    def _number_rows(self) -> None:
        num_hosts, resources = self.machine.num_hosts, self.machine.resources
        pooled = np.zeros(num_hosts, dtype=bool)
        pooled[[host for pool in self._pools for host in pool]] = True
        wanted = self.kinds.any(axis=0)
        parts, self.families = [], {}
        at = 0
        self.first_row: dict[int, int] = {}
        for r, name in enumerate(resources):
            if wanted[r]:
                self.first_row[r] = at
                self.families[f"hosts:{name}"] = slice(at, at + num_hosts)
                usable = (self.rooms > 0).any(axis=1) & ~pooled
                parts.append(np.where(usable, self.free[:, r], 0))
                at += num_hosts
        self._first_pool = at
        self.families["pools"] = slice(at, at + len(self._pools))
        parts.append(np.array([len(pool) for pool in self._pools], dtype=np.int64))
        self.capacities = np.concatenate(parts).astype(np.int64)
        self.num_base = len(self.capacities)

    def _add_rounded(self) -> None:
        """Number the rounded rows: by resource, capacity, level and domain."""
        machine = self.machine
        first_of, size = {}, 0
        for level in sorted(self._rounded_levels):
            first_of[level] = size
            size += len(machine.domain_names[level])
        nodes = [
            k for k, node in enumerate(self.nodes) if node.level in first_of and node.pool is None
        ]
        at, parts = self.num_base, [self.capacities]
        for resource in (*self.first_row, None):
            whole = {k: self._capacity_of(k, resource) for k in nodes}
            found = {k: Rounded(capacity, resource, {}) for k, capacity in whole.items()}
            for most in ROUNDED:
                name = "" if resource is None else f":{machine.resources[resource]}"
                self.families[f"rounded{name}:{most}"] = slice(at, at + size)
                held = np.zeros(size, dtype=np.int64)
                for k, capacity in whole.items():
                    number = first_of[self.nodes[k].level] + self.nodes[k].domain
                    if most < capacity:
                        held[number] = most
                        found[k].rows[most] = at + number
                parts.append(held)
                at += size
            for k, own in found.items():
                if own.rows:
                    self.rounded[k].append(own)
        self.capacities = np.concatenate(parts)

    def _add_apart(self) -> None:
        """Number the rows of domains that at most one of the requests with a name may be in."""
        self.apart: dict[tuple[int, str], int] = {}
        for level, name in sorted({key for part in self.parts for key in part.apart}):
            at, size = len(self.capacities), len(self.machine.domain_names[level])
            self.apart[level, name] = at
            self.families[f"apart:{level}:{name}"] = slice(at, at + size)
            self.capacities = np.concatenate([self.capacities, np.ones(size, dtype=np.int64)])

    @cached_property
    def apart_at(self) -> dict[tuple[int, str], tuple[IntArray, IntArray]]:
        """By level and name the nodes of the level, and the row of each."""
        level, domain = np.array([(node.level, node.domain) for node in self.nodes]).T
        found = {}
        for key, first in self.apart.items():
            nodes = np.flatnonzero(level == key[0])
            found[key] = nodes, first + domain[nodes]
        return found

    @cached_property
    def _rounded_levels(self) -> frozenset[int]:
        """Levels whose domains get units together, and that of hosts if some are not in a pool."""
        found = {level for part in self.parts for level in levels_named(part)}
        last = self.machine.num_levels - 1
        alone = any(node.hosts and node.pool is None for node in self.nodes)
        return frozenset(found | ({last} if alone else set()))

    def _capacity_of(self, number: int, resource: int | None) -> int:
        """Return what the hosts of a node have of a resource, or its pools of units.

        It is 0 if a node has both pools and other hosts, whose units take from different rows.
        """
        below = [self.nodes[k] for k in self.below[number]]
        pools = [node for node in below if node.pool is not None]
        if resource is None:
            return sum(len(node.hosts) for node in pools) if len(pools) == len(below) else 0
        if pools:
            return 0
        return int(self.free[[node.hosts[0] for node in below], resource].sum())

    @cached_property
    def below(self) -> list[tuple[int, ...]]:
        """By node the hosts and pools in it."""
        found: list[tuple[int, ...]] = []
        for number, node in enumerate(self.nodes):
            own = (number,) if node.hosts else ()
            found.append(own + tuple(k for child in node.children for k in found[child]))
        return found

    @cached_property
    def chain(self) -> list[tuple[int, ...]]:
        """By node the node itself and all that contain it, except for the whole machine."""
        found: list[tuple[int, ...]] = [()] * len(self.nodes)
        for number in reversed(range(len(self.nodes))):
            for child in self.nodes[number].children:
                found[child] = (child, *found[number])
        return found

    def pool_hosts(self, leaf: int) -> Sequence[int]:
        """Return the hosts of a pool in the order in which units get them: free ones last."""
        hosts = self.nodes[leaf].hosts
        if not self._free_hosts:
            return hosts
        return sorted(hosts, key=lambda host: host in self._free_hosts)

    def leaf_of_row(self, row: int) -> tuple[int, int | None]:
        """Return the node of a row with capacity, and the resource: None for a pool."""
        pools = self.families["pools"]
        if pools.start <= row < pools.stop:
            return self.node_of_host[self._pools[row - pools.start][0]], None
        r, first = max(
            ((r, first) for r, first in self.first_row.items() if first <= row),
            key=lambda pair: pair[1],
        )
        return self.node_of_host[row - first], r

    @cached_property
    def tree(self) -> Tree:
        """The nodes and rounded rows as arrays."""
        counts = [len(node.children) for node in self.nodes]
        cuts = [
            [
                (-1 if own.resource is None else own.resource, own.capacity, most, row)
                for own in rounded
                for most, row in own.rows.items()
            ]
            for rounded in self.rounded
        ]
        first = [self.first_row.get(r, -1) for r in range(len(self.machine.resources))]
        flat = [
            [node.level for node in self.nodes],
            np.concatenate([[0], np.cumsum(counts)]),
            [child for node in self.nodes for child in node.children],
            [node.hosts[0] if node.hosts else -1 for node in self.nodes],
            [-1 if node.pool is None else node.pool for node in self.nodes],
            np.concatenate([[0], np.cumsum([len(own) for own in cuts])]),
            np.array([cut for own in cuts for cut in own], dtype=np.int64).reshape(-1, 4),
            first,
            self.rooms,
        ]
        return Tree(*(np.ascontiguousarray(own, dtype=np.int64) for own in flat))

    def alone(self, number: int, kinds: Iterable[int]) -> tuple[list[int], bool]:
        """Return the rows of a domain that units of some kinds have alone, and if another is there.

        These are the rows of all resources of now, or of a later time, or of both, if there are
        two and units are there at these times.
        """
        key = number, frozenset(kinds)
        if key not in self._alone:
            self._alone[key] = self._alone_of(*key)
        return self._alone[key]

    def _alone_of(self, number: int, kinds: Iterable[int]) -> tuple[list[int], bool]:
        times, node = (self.state.occupied, self.state.occupied_then), self.nodes[number]
        num = len(self.machine.resources) // (1 if times[1] is None else 2)
        taken = {r // num for kind in kinds for r in np.flatnonzero(self.kinds[kind]).tolist()}
        inside = self.machine.domain_of[node.level] == node.domain
        busy = any(
            own[inside].any() for k, own in enumerate(times) if k in taken and own is not None
        )
        return self._rows_under(
            number, {r for k in taken for r in range(k * num, (k + 1) * num)}
        ), busy

    def _rows_under(self, number: int, resources: Set[int]) -> list[int]:
        """Return the rows of pools and of some resources in a node, also the rounded ones."""
        node, found = self.nodes[number], []
        if node.pool is not None:
            found.append(node.pool)
        elif node.hosts:
            found += [n + node.hosts[0] for r, n in self.first_row.items() if r in resources]
        for own in self.rounded[number]:
            found += own.rows.values() if own.resource in {None, *resources} else ()
        return found + [
            row for child in node.children for row in self._rows_under(child, resources)
        ]

    # ---- The tree

    def _make_tree(self) -> None:
        machine, last = self.machine, self.machine.num_levels - 1
        lowest = machine.leaf_of
        usable = np.asarray((self.rooms > 0).any(axis=1))
        of_domain: list[list[int]] = [[] for _ in range(int(lowest.max(initial=0)) + 1)]
        for pool, hosts in enumerate(self._pools):
            usable[list(hosts)] = False
            self._add(of_domain, lowest, Node(last, hosts[0], (), hosts, self._first_pool + pool))
        for host in np.flatnonzero(usable).tolist():
            self._add(of_domain, lowest, Node(last, host, (), (host,)))
        below: Sequence[list[int]] = of_domain
        for level in reversed(range(last)):
            numbers = [self._joined(level, d, children) for d, children in enumerate(below)]
            above: list[list[int]] = [[]]
            if level:
                above = [[] for _ in machine.domain_names[level - 1]]
            for number, parent in zip(numbers, machine.parents[level].tolist(), strict=True):
                if number is not None:
                    above[parent].append(number)
            below = above
        self.nodes.append(Node(-1, 0, tuple(below[0])))

    def _add(self, of_domain: list[list[int]], lowest: IntArray, node: Node) -> None:
        of_domain[int(lowest[node.hosts[0]])].append(len(self.nodes))
        self.node_of_host.update(dict.fromkeys(node.hosts, len(self.nodes)))
        self.nodes.append(node)

    def _joined(self, level: int, domain: int, children: list[int]) -> int | None:
        """Return the number of a new domain; None if no host in it holds a unit."""
        if not children:
            return None
        self.nodes.append(Node(level, domain, tuple(children)))
        return len(self.nodes) - 1


def rounded(amount: int, capacity: int, most: int) -> int:
    """Return what an amount taken from a domain takes of a rounded row."""
    return max(0, (amount * (most + 1) - 1) // capacity)


def levels_named(part: PartState) -> set[int]:
    """Return the levels whose domains the rules of a part name."""
    named = {part.required, part.balance, part.exclusive} - {None}
    pairs = (part.spread, part.at_most)
    spread = {pair[0] for pair in pairs if pair is not None} | {lv for lv, _ in part.apart}
    return (
        {level for level in named if level is not None} | {lv for lv, _ in part.segments} | spread
    )


def rooms_of(free: IntArray, kinds: IntArray) -> IntArray:
    """Return how many units of every kind hosts hold alone, shape ``(num_hosts, num_kinds)``."""
    found = np.zeros((len(free), len(kinds)), dtype=np.int64)
    for k, takes in enumerate(kinds):
        used = takes > 0
        found[:, k] = (free[:, used] // takes[used]).min(axis=1)
    return found
