"""The recognised pattern of a graph, as a value that prints in a line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from topoplace.errors import number_of
from topoplace.mapping.recognition.factors import ALL, LINE, NONE, RING
from topoplace.snapshot.schema import GridApplication
from topoplace.types import IntArray

Range = tuple[int, int]
"""Least and most bytes, both ways together, of the pairs of a dimension."""


@dataclass(frozen=True, eq=False)
class Recognition:
    """The recognised pattern of a communication graph.

    Attributes
    ----------
    kind
        ``grid``, ``all-to-all`` (along one or several dimensions), ``mixed`` (along some, others
        being lines or rings), ``groups`` (copies of one pattern that exchange nothing, or
        all-to-alls of several sizes), ``tree``, or ``none`` of these.
    num_tasks
        Tasks of the graph, silent ones included.
    shape, links
        Tasks along every dimension, and how they are linked: ``line``, ``ring``, ``all``, or
        ``none`` for copies. Empty for trees, and all-to-alls of several sizes.
    tasks
        The task of every cell, row-major, shape ``(num_cells,)``; of a tree in the order of a
        breadth-first search, of groups group by group.
    form
        Of grids ``nearest``, or ``full`` where diagonal neighbours are partners too; of trees
        ``binomial``, ``star`` or empty.
    bytes
        Per dimension the least and the most bytes of a pair of partners, both ways together.
    diagonals
        Of grids, the same for pairs that differ in 2, 3, ... dimensions; zeros where these are no
        partners.
    extras
        Messages between tasks that are not partners in the pattern, shape ``(num_extras, 3)``:
        source, target, bytes.
    total_bytes
        Of all messages.
    sizes
        Of all-to-alls of several sizes.
    application
        Of grids of 1 to 4 dimensions: the grid, with the least bytes of each kind of neighbours.
        Between any two tasks the graph has at least its bytes, both ways together.
    """

    kind: str
    num_tasks: int
    shape: tuple[int, ...]
    links: tuple[str, ...]
    tasks: IntArray
    form: str
    bytes: tuple[Range, ...]
    diagonals: tuple[Range, ...]
    extras: IntArray
    total_bytes: int
    application: GridApplication | None
    sizes: tuple[int, ...] = ()

    @property
    def numbering(self) -> str:
        """``row-major`` (the last dimension fastest) or ``permuted``."""
        in_order = (self.tasks == np.arange(len(self.tasks))).all()
        return "row-major" if in_order else "permuted"

    @property
    def extra_bytes(self) -> int:
        """Bytes of the extras."""
        return sum(self.extras[:, 2].tolist())

    @property
    def is_even(self) -> bool:
        """Whether all pairs of a dimension, and of a kind of diagonals, exchange the same bytes."""
        return all(least == most for least, most in (*self.bytes, *self.diagonals))

    @property
    def text(self) -> str:
        """The pattern in one line, such as ``a 4x4 grid, nearest neighbours``."""
        if self.kind == "none":
            return "no pattern found: no grid, no all-to-all in parts, no tree"
        parts = [self._named, *self._details]
        if len(self.tasks) < self.num_tasks:
            parts.append(f"of {len(self.tasks):,} of the {number_of(self.num_tasks, 'task')}")
        if self.kind not in ("tree", "groups") or self.shape:
            parts.append(f"numbering {self.numbering}")
        if len(self.extras):
            share = 100 * self.extra_bytes / self.total_bytes
            parts.append(
                f"and {number_of(len(self.extras), 'other message')} ({share:.2g} % of the bytes)"
            )
        return ", ".join(parts)

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__

    @property
    def _named(self) -> str:
        if self.kind == "tree":
            form = f"{self.form} tree" if self.form == "binomial" else self.form or "tree"
            return f"a {form} of {number_of(len(self.tasks), 'task')}"
        if not self.shape:
            sizes = f"{min(self.sizes)} to {max(self.sizes)}"
            return f"all-to-all in {number_of(len(self.sizes), 'group')} of {sizes}"
        if self.links[0] != NONE:
            return _array_text(self.shape, self.links)
        if self.links[1:] == (ALL,):
            return f"all-to-all in {number_of(self.shape[0], 'group')} of {self.shape[1]}"
        if self.shape[1:] == (2,):
            return f"{number_of(self.shape[0], 'pair')} of tasks"
        return f"{self.shape[0]} times {_array_text(self.shape[1:], self.links[1:])}"

    @property
    def _details(self) -> list[str]:
        if self.kind == "tree" and self.form != "star":
            return [f"from task {self.tasks[0]}"]
        own = [link for link in self.links if link != NONE]
        if ALL in own or len(own) < 2:
            return []
        if self.form == "nearest":
            return ["nearest neighbours"]
        moves = [str(k) for k, (_, most) in enumerate(self.diagonals, 2) if most]
        if len(moves) == len(own) - 1:
            return ["full stencil"]
        return [f"nearest neighbours and diagonals of {' and '.join(moves)} moves"]


def _array_text(shape: Sequence[int], links: Sequence[str]) -> str:
    """Return the name of an array of linked dimensions."""
    sizes = "x".join(map(str, shape))
    if set(links) == {ALL}:
        if len(shape) == 2:
            return f"a transpose: all-to-all in the rows and columns of {sizes} tasks"
        along = " along each dimension" if len(shape) > 2 else ""
        return f"all-to-all{along} of {sizes} tasks"
    if ALL in links:
        told = {LINE: "lines", RING: "rings", ALL: "all-to-all"}
        named = [f"{told[link]} in dimension {d}" for d, link in enumerate(links, 1)]
        article = "an" if sizes[0] == "8" or shape[0] in (11, 18) else "a"
        return f"{article} {sizes} array, {', '.join(named)}"
    if len(shape) == 1:
        return f"a {links[0]} of {sizes} tasks"
    if len(shape) > 2 and set(shape) == {2}:
        return f"a hypercube of {number_of(2 ** len(shape), 'task')} ({sizes} grid)"
    return _grid_text(sizes, [d for d, link in enumerate(links, 1) if link == RING], len(shape))


def _grid_text(sizes: str, closed: Sequence[int], num_dims: int) -> str:
    periodic = " periodic" if len(closed) == num_dims else ""
    article = "an" if re.match(r"8|1[18](x|$)", sizes) else "a"
    text = f"{article} {sizes}{periodic} grid"
    if not closed or periodic:
        return text
    return f"{text}, periodic in dimension {' and '.join(map(str, closed))}"
