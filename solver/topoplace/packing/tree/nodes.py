"""Nodes of a tree, the rules that split them, their bounds, and the certificates made of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from topoplace.packing.dual.columns import Columns
from topoplace.packing.dual.cut_pool import (
    NONE,
    CutPool,
    StartsBelow,
    few_that_cover,
)
from topoplace.packing.dual.generation import Bounded
from topoplace.packing.dual.later_pool import LaterPool, LeafParts
from topoplace.packing.dual.relaxation import DualPoint, DualValue, Relaxation
from topoplace.packing.problem import Cover, Kinds, PackingProblem, Subproblem
from topoplace.result.certificate import (
    Certificate,
    CertificateNode,
    CoverBranch,
    LeafRef,
    SharedLeaves,
    StartBranch,
    size_of,
)
from topoplace.types import FloatArray

_LEAST = 1e-4  # amount of a candidate that counts

Write = Callable[[CertificateNode, CertificateNode], CertificateNode]


@dataclass(frozen=True)
class Branch:
    """Two sides, and a function that writes the branch from their certificates."""

    sides: tuple[Subproblem, Subproblem]
    write: Write


class Dominance:
    """The requests that are preferred to others, among those that can start.

    On later levels those are the earlier ones of the same kind.
    """

    def __init__(self, problem: PackingProblem, startable: frozenset[int], level: int = 0) -> None:
        better = problem.earlier_of_kind if level else problem.dominating
        self.better = better(startable)
        """By request, those preferred to it."""
        self.worse: dict[int, frozenset[int]] = {}
        """By request, those it is preferred to."""
        for q, above in self.better.items():
            for b in above:
                self.worse[b] = self.worse.get(b, frozenset()) | {q}


def split_start(
    problem: PackingProblem, sub: Subproblem, q: int, dominance: Dominance | None = None
) -> Branch:
    """Split on whether a request starts: out, into; each with what follows by dominance."""
    out, into = {q}, {q}
    if dominance is not None:
        out |= dominance.worse.get(q, frozenset()) - sub.decided
        into |= dominance.better.get(q, frozenset()) - sub.decided
    name = problem.names[q]

    def write(low: CertificateNode, high: CertificateNode) -> CertificateNode:
        return StartBranch(request=name, out=low, into=high)

    sides = (
        replace(sub, excluded=sub.excluded | out),
        replace(sub, forced=sub.forced | into),
    )
    return Branch(sides, write)


def split_cover(
    problem: PackingProblem,
    sub: Subproblem,
    amounts: Sequence[tuple[float, Any]],
    groups: Sequence[tuple[int, ...]] = (),
) -> Branch | None:
    """Split on whether a request that starts uses a row or not.

    If one of several alike requests must start, either one of them uses the row, or none does. The
    row is one that a fractional solution covers by half; larger values go first. If alike requests
    cover all rows in whole numbers, it is one that half of their candidates use.

    Parameters
    ----------
    amounts
        The fractional solution.
    groups
        Of alike requests (see `PackingProblem.alike`).

    Returns
    -------
    The sides, inside first; None if every request is in one place.
    """
    best, among_alike = _NO_USE, _NO_USE
    kinds, num = Kinds(problem, sub), problem.num_covers
    of_kind: dict[int, list[tuple[float, Any]]] = {}
    for amount, candidate in amounts:
        if amount > _LEAST and kinds.admits(candidate):
            of_kind.setdefault(candidate.request_idx, []).append((amount, candidate))
    for requests in _interchangeable(kinds, sub, groups) if num else ():
        load, parted, parts = np.zeros(num), np.zeros(num), 0.0
        firsts = dict.fromkeys(kinds.first[q] for q in requests)
        own = [pair for first in firsts for pair in of_kind.get(first, ())]
        starts, taken = problem.rows_of_all([candidate for _, candidate in own])
        for k, (amount, _) in enumerate(own):
            rows, part = taken[starts[k] : starts[k + 1]], min(amount % 1, 1 - amount % 1)
            rows = rows[rows < num]
            load[rows] += amount  # once, however much it takes
            parted[rows] += part
            parts += part
        worth = max(1, *(int(problem.values[q]) for q in requests))
        load %= 1  # beside those that take of it as a whole
        best = _most(best, worth * np.minimum(load, 1 - load), requests)
        if sum(kinds.most[first] for first in firsts) > 1:
            split = np.minimum(parted, parts - parted)
            among_alike = _most(among_alike, worth * split, requests)
    _, requests, row = best if best[1] else among_alike
    return cover_branch(problem, sub, requests, row) if requests else None


def split_columns(
    sub: Subproblem, amounts: Sequence[tuple[float, Any]], columns: Columns
) -> Branch | None:
    """Split the known columns of a request that starts, where a solution has each in one place.

    The row is one that the request uses in the solution, and about half of its columns. The largest
    request for which there is one is chosen; None if there is none.
    """
    problem, kinds = columns.problem, Kinds(columns.problem, sub)
    admitted = columns.admitted(kinds, 0)
    placed = [c for amount, c in amounts if amount > _LEAST and kinds.least[c.request_idx]]
    for candidate in sorted(placed, key=lambda c: (-problem.values[c.request_idx], c.request_idx)):
        q = candidate.request_idx
        own = np.flatnonzero(admitted & (columns.owners() == q)).tolist()
        used = np.zeros(problem.num_rows)
        for k in own:
            used[columns.rows(k)] += 1
        rows = np.unique(problem.rows_of(candidate))
        rows = rows[(rows < problem.num_covers) & (used[rows] < len(own))]
        if len(rows):
            half = int(np.abs(used[rows] - len(own) / 2).argmin())
            return cover_branch(problem, sub, [kinds.one_of(q)], int(rows[half]))
    return None


def cover_branch(
    problem: PackingProblem, sub: Subproblem, requests: Sequence[int], row: int
) -> Branch:
    """Split on whether a request that starts, the first of alike ones, uses a row, or none does."""
    inside = (Cover(requests[0], row, inside=True),)
    outside = tuple(Cover(q, row, inside=False) for q in requests)
    name = problem.names[requests[0]]

    def write(low: CertificateNode, high: CertificateNode) -> CertificateNode:
        return CoverBranch(request=name, row=row, inside=low, outside=high)

    low, high = (replace(sub, covers=(*sub.covers, *covers)) for covers in (inside, outside))
    return Branch((low, high), write)


_Use = tuple[float, tuple[int, ...], int]  # of a row, by which requests, and the row
_NO_USE: _Use = (1e-6, (), 0)


def _most(best: _Use, use: FloatArray, requests: tuple[int, ...]) -> _Use:
    """Return the largest use of a row, or that of before if none is larger."""
    row = int(use.argmax())
    return (float(use[row]), requests, row) if use[row] > best[0] else best


def _interchangeable(
    kinds: Kinds, sub: Subproblem, groups: Sequence[tuple[int, ...]]
) -> list[tuple[int, ...]]:
    """Return the requests that may take each other's place, first one that must start.

    A request in no group is alone, and represents the requests of its kind.
    """
    group_of = {q: number for number, group in enumerate(groups) for q in group}
    found: dict[object, list[int]] = {}
    for first, members in kinds.members.items():
        if first not in group_of:
            if kinds.least[first]:
                found["alone", first] = [kinds.one_of(first)]
            continue
        covers = frozenset((x.row, x.inside) for x in sub.covers_of.get(first, ()))
        together = found.setdefault((group_of[first], covers), [])
        if kinds.least[first]:
            one = kinds.one_of(first)
            together[:0] = [one, *(q for q in members if q != one)]
        else:
            together += members
    found = {key: own for key, own in found.items() if own and own[0] in sub.forced}
    return [tuple(requests) for requests in found.values()]


_AMOUNT_BYTES = 400  # of an amount and its candidate

NOTHING = -(1 << 62)
"""The bound of a node that has no placement."""


class Proof(Protocol):
    """The proof of a bound."""

    @property
    def bound(self) -> int:
        """Certified bound."""

    def certificate(self, room: int) -> Certificate:
        """Return the certificate of the bound, which rises if that of a lower one does not fit."""


@dataclass
class Root:
    """A level's subproblem, its bound without branches, and the trees that go on from there.

    Attributes
    ----------
    room
        Size limit of its certificate, in bytes.
    step_size
        The step size of the bundle that lowered the bound.
    below
        The proof of a better bound, if there is one.
    """

    sub: Subproblem
    bounded: Bounded
    room: int
    step_size: float = 0.0
    below: Proof | None = None

    @property
    def bound(self) -> int | None:
        """Certified bound: its own, or that of the proof below if it is lower."""
        own = self.bounded.value.certified
        if own is None or self.below is None:
            return own
        return min(own, self.below.bound)

    def certificate(self, relaxation: Relaxation) -> Certificate:
        """Return the certificate of the bound, which rises until the certificate fits."""
        own = self.bounded.value.certified
        if self.below is not None and own is not None and self.below.bound < own:
            found = self.below.certificate(self.room)
            if self.below.bound <= own and size_of(found) <= self.room:
                return found
        self.below = None
        leaf = relaxation.leaf(*self.bounded.value.leaf_parts)
        if size_of(leaf) > self.room:
            self.bounded = replace(self.bounded, value=relaxation.without_pricing(self.sub))
            leaf = relaxation.leaf(*self.bounded.value.leaf_parts)
        return leaf


def certificate_of_better(better: Callable[[], Proof], room: int) -> Certificate:
    """Return the certificate of the better one; writing it may change which one that is."""
    while True:
        found = (chosen := better()).certificate(room)
        if better() is chosen:
            return found


def bound_of(value: DualValue) -> int:
    """Return the certified bound, which for an empty node is `NOTHING`."""
    return NOTHING if value.certified is None else value.certified


def no_points() -> FloatArray:
    """Return the bounds of a pool without points."""
    return np.zeros(0)


@dataclass(eq=False)
class Node:
    """A node: a leaf until it is split.

    Attributes
    ----------
    above
        The certified bound of the node that it was split from, which also holds for it.
    pooled
        The bound by every point of the tree's pool that was seen so far.
    bounded
        The best prices of its own; None as long as the pool bounds it.
    amounts
        The fractional solution that belongs to them.
    step_size
        The step size of the bundle that lowers it (see `Bundle`).
    converged
        Whether the bundle can make no more progress.
    own, starts
        Points for its limits of places, and the tree of starts bounded by them.
    closed
        The value of `bounded`, once the node is not worked on any more.
    """

    sub: Subproblem
    above: int
    depth: int = 0
    pooled: FloatArray = field(default_factory=no_points)
    bounded: Bounded | None = None
    amounts: list[tuple[float, Any]] | None = None
    step_size: float = 0.0
    converged: bool = False
    own: CutPool | None = None
    starts: StartsBelow | None = None
    branch: Branch | None = None
    children: tuple[Node, Node] | None = None
    closed: DualValue | None = None

    @property
    def bound(self) -> int:
        """The certified bound without the children."""
        bound = self.above
        if len(self.pooled):
            bound = min(bound, int(np.floor(self.pooled.min())))
        if self.starts is not None:
            bound = min(bound, self.starts.bound)
        if (value := self.value) is not None:
            bound = min(bound, bound_of(value))
        return bound

    @property
    def value(self) -> DualValue | None:
        """That of its own prices, if it has any."""
        return self.closed if self.bounded is None else self.bounded.value

    def close(self, enough: int = NOTHING) -> None:
        """Keep only what a certificate needs: one proof, if one is enough for a bound."""
        self.closed = self.value
        self.bounded = self.amounts = self.own = None
        if len(self.pooled) and np.floor(self.pooled.min()) <= enough:
            self.closed = self.starts = None
        elif self.closed is not None and bound_of(self.closed) <= enough:
            self.starts = None
        elif self.starts is not None and self.starts.bound <= enough:
            self.closed = None

    def forget(self) -> None:
        """Keep the bound, but not its proof: the children have a better one."""
        self.above = self.bound
        self.pooled, self.closed, self.starts = no_points(), None, None

    def lighten(self) -> None:
        """Keep only one proof of a leaf's bound, from which it can be resumed."""
        self.close(self.bound)
        self.converged = False

    def take_up(self) -> None:
        """Resume from the prices of the proof, if nothing else was kept."""
        if self.bounded is None and self.closed is not None:
            self.bounded = Bounded(self.closed, DualPoint.rounded(self.closed))

    def held(self, known: set[int]) -> int:
        """Return about how many bytes it holds to be resumed, without the known prices."""
        points = [] if self.own is None else self.own.points()
        if self.bounded is not None:
            points.append(self.bounded.value.leaf_parts[1])
        new = {id(point): point.num_bytes for point in points if id(point) not in known}
        known.update(new)
        return sum(new.values()) + _AMOUNT_BYTES * len(self.amounts or ())

    def leaves(self, bound: int) -> Iterator[Node]:
        """Yield the topmost nodes below, or itself, that certify a bound."""
        if self.children is None or self.bound <= bound:
            yield self
        else:
            for child in self.children:
                yield from child.leaves(bound)

    def refresh(self, pool: CutPool | LaterPool) -> None:
        """Look at the points that joined the pool since."""
        new = pool.bounds(self.sub.forced, self.sub.excluded, len(self.pooled))
        if len(new):
            self.pooled = np.concatenate([self.pooled, new])


def shared_points(leaves: Sequence[Node], bound: int, pool: CutPool | LaterPool) -> list[int]:
    """Return for each leaf a point of the pool with its bound, few in total; NONE without one."""
    for leaf in leaves:
        leaf.refresh(pool)
    return few_that_cover(np.array([np.floor(leaf.pooled) <= bound for leaf in leaves]))


class Writer:
    """Writes a tree as a certificate of a bound; leaves that a pool bounds are shared."""

    def __init__(self, relaxation: Relaxation, bound: int) -> None:
        self._relaxation, self._bound, self._pool = relaxation, bound, relaxation.pool
        self._number_of: dict[int, int] = {}
        self._leaves: list[Any] = []
        self._written: dict[int, int] = {}

    def write(self, top: Node, groups: Sequence[tuple[int, ...]] = ()) -> Certificate:
        """Return the certificate; requests of a group are alike."""
        leaves = list(top.leaves(self._bound))
        numbers = [NONE] * len(leaves)
        if self._pool is not None:
            numbers = shared_points(leaves, self._bound, self._pool)
        self._number_of = {id(leaf): k for leaf, k in zip(leaves, numbers, strict=True)}
        if self._pool is None and not groups:
            return self._node(top)
        if self._pool is not None:
            for k in sorted(set(numbers) - {NONE}):
                self._share(self._pool.parts(k))
        names = self._relaxation.problem.names
        alike = [[names[q] for q in group] for group in groups]
        tree = self._node(top)
        return SharedLeaves(alike=alike, leaves=self._leaves, tree=tree)

    def _share(self, parts: LeafParts) -> int:
        """Return the number of a shared leaf with the prices of a point, written once."""
        key = id(parts[1])
        if key not in self._written:
            self._written[key] = len(self._leaves)
            self._leaves.append(self._relaxation.leaf(*parts))
        return self._written[key]

    def _node(self, node: Node) -> CertificateNode:
        if id(node) in self._number_of:
            return self._leaf(node)
        assert node.children is not None
        assert node.branch is not None
        low, high = node.children
        return node.branch.write(self._node(low), self._node(high))

    def _leaf(self, leaf: Node) -> CertificateNode:
        relaxation, pool, number = self._relaxation, self._pool, self._number_of[id(leaf)]
        if pool is not None and number != NONE:
            times, over = pool.multiple(number, leaf.sub.forced, leaf.sub.excluded)
            return LeafRef(leaf=self._share(pool.parts(number)), times=times, over=over)
        value, starts = leaf.value, leaf.starts
        if value is None or bound_of(value) > self._bound:
            assert isinstance(pool, CutPool), "what no point bounds has prices of its own"
            assert starts is not None, "or points that bound who starts"
            numbers = [self._share((pool.scale, point, ())) for point in starts.points]
            return starts.written(relaxation.problem.names, numbers)
        return relaxation.leaf(*value.leaf_parts)
