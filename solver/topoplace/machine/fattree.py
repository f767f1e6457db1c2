"""Fat trees of two or three levels: pods of leaves, and links that have numbers and names.

Every leaf has a link to each switch of its pod. Switch i of every pod has a link to each spine of
plane i; a tree of two levels is one pod without spines, whose switches are at the top.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from topoplace.errors import InputError
from topoplace.machine.hostlist import NodeLists, format_host_list


@dataclass(frozen=True)
class FatTree:
    """A fat tree; leaves are numbered pod by pod, nodes leaf by leaf.

    Its *rows* are numbered through: the nodes of every leaf, the links of every leaf to the
    switches of its pod (``leaf3-0``), the links of switches to spines (``pod1-2-0``).

    Attributes
    ----------
    pods
        By pod, the nodes on each of its leaves.
    switches
        Switches of a pod.
    spines
        Spines of a plane; 0 in a tree of two levels.
    """

    pods: tuple[tuple[int, ...], ...]
    switches: int
    spines: int

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The nodes on every leaf."""
        return tuple(size for pod in self.pods for size in pod)

    @cached_property
    def pod_of(self) -> tuple[int, ...]:
        """The pod of every leaf."""
        return tuple(p for p, pod in enumerate(self.pods) for _ in pod)

    @cached_property
    def leaf_of(self) -> tuple[int, ...]:
        """The leaf of every node."""
        return tuple(leaf for leaf, size in enumerate(self.sizes) for _ in range(size))

    @cached_property
    def leaves(self) -> tuple[range, ...]:
        """The leaves of every pod."""
        ends = np.cumsum([0, *map(len, self.pods)]).tolist()
        return tuple(range(a, b) for a, b in pairwise(ends))

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""
        return sum(self.sizes)

    @cached_property
    def families(self) -> dict[str, slice]:
        """The rows by what they are."""
        leaves = len(self.sizes)
        links = leaves + leaves * self.switches
        ups = links + len(self.pods) * self.switches * self.spines
        return {"hosts": slice(leaves), "links": slice(leaves, links), "ups": slice(links, ups)}

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return int(self.families["ups"].stop)

    def link(self, leaf: int, switch: int) -> int:
        """Return the row of a leaf's link to a switch of its pod."""
        return len(self.sizes) + leaf * self.switches + switch

    def up(self, pod: int, switch: int, spine: int) -> int:
        """Return the row of a switch's link to a spine of its plane."""
        start: int = self.families["ups"].start
        return start + (pod * self.switches + switch) * self.spines + spine

    def way(self, a: int, b: int, switch: int, spine: int | None) -> list[int]:
        """Return the links of a way between leaves: at a switch, and over a spine between pods."""
        p, q = self.pod_of[a], self.pod_of[b]
        over = [] if p == q or spine is None else [self.up(pod, switch, spine) for pod in (p, q)]
        return [self.link(a, switch), *over, self.link(b, switch)] if a != b else []

    def ends(self, row: int) -> tuple[int, ...]:
        """Return leaf and switch of a link, or pod, switch and spine."""
        start = self.families["ups"].start
        if row < start:
            return divmod(row - len(self.sizes), self.switches)
        upper, spine = divmod(row - start, self.spines)
        return (*divmod(upper, self.switches), spine)

    def num_links(self, rows: Iterable[int]) -> int:
        """Return how many of some rows are links."""
        return sum(row >= len(self.sizes) for row in rows)

    def name(self, link: int) -> str:
        """Return the name of a link."""
        ends = self.ends(link)
        return ("leaf" if len(ends) == 2 else "pod") + "-".join(map(str, ends))

    @cached_property
    def _row_of(self) -> dict[str, int]:
        return {self.name(row): row for row in range(len(self.sizes), self.num_rows)}

    def text(self, links: Iterable[int]) -> str:
        """Return links as a host list of their names."""
        return format_host_list(map(self.name, sorted(links)))

    def rows(self, text: str, field: str) -> list[int]:
        """Return the rows of links by their names, each once, ascending.

        Raises
        ------
        InputError
            At a name that no link of the tree has, or that is there twice.
        """
        names = NodeLists(self.num_rows).hosts(text, field)
        for name in names:
            if name not in self._row_of:
                expected = "links of the tree, such as leaf0-1 or pod0-1-0"
                raise InputError(expected, field=field, value=name)
        if len({*names}) < len(names):
            raise InputError("each link once", field=field, value=text)
        return sorted(self._row_of[name] for name in names)
