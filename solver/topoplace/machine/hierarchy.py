"""Hierarchies: domains within domains, and hosts with room for several units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from topoplace.types import IntArray


@dataclass(frozen=True)
class Hierarchy:
    """Hosts below domains of several levels, numbered in the order of the description.

    Attributes
    ----------
    levels
        Names of the levels, top first; the last one is that of the hosts.
    host_names
        Names of the hosts.
    resources
        Names of the resources.
    capacity
        What hosts have of every resource, shape ``(num_hosts, num_resources)``.
    domain_names
        By level the names of its domains, each with those it lies in, as ``b1/r2``.
    domain_of
        By level the domain of every host, shape ``(num_levels, num_hosts)``.
    block_sizes
        Slurm's, ascending; empty on other machines.
    """

    levels: tuple[str, ...]
    host_names: tuple[str, ...]
    resources: tuple[str, ...]
    capacity: IntArray
    domain_names: tuple[tuple[str, ...], ...]
    domain_of: IntArray
    block_sizes: tuple[int, ...] = ()

    @property
    def num_hosts(self) -> int:
        """Number of hosts."""
        return len(self.host_names)

    @property
    def num_levels(self) -> int:
        """Number of levels, that of the hosts among them."""
        return len(self.levels)

    @cached_property
    def parents(self) -> tuple[IntArray, ...]:
        """By level the domain of the level above that each of its domains lies in; 0 at the top."""
        above = [np.zeros_like(self.domain_of[0]), *self.domain_of]
        found = []
        for names, own, upper in zip(self.domain_names, self.domain_of, above, strict=False):
            parent = np.zeros(len(names), dtype=np.int64)
            parent[own] = upper
            found.append(parent)
        return tuple(found)

    @property
    def lowest(self) -> IntArray:
        """The domain just above every host, shape ``(num_hosts,)``; 0 if there is none."""
        if self.num_levels == 1:
            return np.zeros(self.num_hosts, dtype=np.int64)
        return np.asarray(self.domain_of[-2])


def build_hierarchy(
    levels: Sequence[str],
    resources: Sequence[str],
    hosts: Sequence[tuple[str, Sequence[str], Sequence[int]]],
    block_sizes: Sequence[int] = (),
) -> Hierarchy:
    """Return the hierarchy of hosts: name, names of the domains it is in (top first), capacities.

    Domains are numbered in the order in which hosts name them.
    """
    numbers: list[dict[tuple[str, ...], int]] = [{} for _ in levels]
    domain_of = np.zeros((len(levels), len(hosts)), dtype=np.int64)
    for idx, (name, domains, _) in enumerate(hosts):
        path = (*domains, name)
        for level, known in enumerate(numbers):
            domain_of[level, idx] = known.setdefault(path[: level + 1], len(known))
    return Hierarchy(
        tuple(levels),
        tuple(name for name, _, _ in hosts),
        tuple(resources),
        np.array([own for _, _, own in hosts], dtype=np.int64).reshape(-1, len(resources)),
        tuple(tuple("/".join(path) for path in known) for known in numbers),
        domain_of,
        tuple(sorted(block_sizes)),
    )
