"""Branching rules, and branch and price: a tree whose leaves carry the prices that bound them.

A branch asks whether a request starts, or whether its prism covers a router.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from topoplace import clock
from topoplace.placement.exact.generation import Bounded, generate_columns
from topoplace.placement.exact.groups import PlaceLimit
from topoplace.placement.exact.master import LpSolution, Master
from topoplace.placement.exact.relaxation import Relaxation, Subproblem
from topoplace.placement.torus.problem import Candidate, PlacementProblem
from topoplace.result import CoverBranch, StartBranch
from topoplace.result.certificate import DEEPEST, Certificate, CertificateNode

WriteBranch = Callable[[CertificateNode, CertificateNode], CertificateNode]
"""Writes a branch, given the certificates of its two sides."""

Branch = tuple[tuple[Subproblem, Subproblem], WriteBranch]
"""Two sides, and what writes them."""

_LEAST = 1e-4  # amount of a candidate that counts


def split_start(problem: PlacementProblem, sub: Subproblem, idx: int) -> Branch:
    """Split on whether a request starts: out, into."""
    out = replace(sub, excluded=sub.excluded | {idx})
    into = replace(sub, forced=sub.forced | {idx})
    name = problem.requests[idx].id

    def write(low: CertificateNode, high: CertificateNode) -> CertificateNode:
        return StartBranch(request=name, out=low, into=high)

    return (out, into), write


def split_place(
    problem: PlacementProblem,
    sub: Subproblem,
    amounts: Sequence[tuple[float, Candidate]],
    groups: Sequence[tuple[int, ...]] = (),
) -> Branch | None:
    """Split on whether a request that starts covers a router: it does, or it does not.

    Of some alike requests one covers the router, or none does. The router is one that a fractional
    solution covers by half; larger values go first.

    Parameters
    ----------
    amounts
        The fractional solution.
    groups
        Of alike requests (see `alike`).

    Returns
    -------
    The sides, inside first; None if every request is in one place.
    """
    torus = problem.torus
    best: tuple[float, tuple[int, ...], int] = (1e-6, (), 0)
    for requests in _interchangeable(problem, sub, groups):
        load = np.zeros(torus.num_routers)
        for amount, candidate in amounts:
            if candidate.request_idx in requests and amount > _LEAST and sub.admits(candidate):
                load[candidate.prism.routers(torus)] += amount
        value = max(problem.requests[q].value for q in requests)
        use = value * np.minimum(load, 1 - load)
        router = int(use.argmax())
        if use[router] > best[0]:
            best = (float(use[router]), requests, router)
    _, requests, router = best
    if not requests:
        return None
    coords = torus.coords(router)
    inside = PlaceLimit(requests[0], coords, torus.shape, inside=True)
    outside = tuple(PlaceLimit(q, coords, torus.shape, inside=False) for q in requests)
    name = problem.requests[requests[0]].id

    def write(low: CertificateNode, high: CertificateNode) -> CertificateNode:
        return CoverBranch(request=name, row=router, inside=low, outside=high)

    sides = ((inside,), outside)
    low, high = (replace(sub, limits=(*sub.limits, *limits)) for limits in sides)
    return (low, high), write


def _interchangeable(
    problem: PlacementProblem, sub: Subproblem, groups: Sequence[tuple[int, ...]]
) -> list[tuple[int, ...]]:
    """Return the requests that must start, together those that may take each other's place."""
    group_of = {q: number for number, group in enumerate(groups) for q in group}
    found: dict[object, list[int]] = {}
    for q in sorted(sub.forced, key=lambda q: (-problem.requests[q].value, q)):
        own = (group_of[q],) if q in group_of else ("alone", q)
        limits = frozenset((x.coords, x.inside) for x in sub.limits if x.request_idx == q)
        found.setdefault((own, limits), []).append(q)
    return [tuple(requests) for requests in found.values()]


class Below(Protocol):
    """A tree of another kind that goes on from a root."""

    @property
    def bound(self) -> int:
        """Certified bound."""

    def certificate(self) -> Certificate:
        """Return the certificate of the bound."""


@dataclass
class Node:
    """A subproblem, its bound, and the branch that split it (None: a leaf).

    Attributes
    ----------
    children, write
        The two sides of the branch, and what writes it.
    below
        The tree that goes on from a root, if not by `children`.
    """

    sub: Subproblem
    bounded: Bounded
    children: tuple[Node, Node] | None = None
    write: WriteBranch | None = None
    below: Below | None = None

    @property
    def bound(self) -> int | None:
        """Certified bound: its own, or what is below proves where that is less."""
        own = self.bounded.value.certified
        if own is None or (self.below is None and self.children is None):
            return own
        if self.below is not None:
            return min(own, self.below.bound)
        bounds = [b for b in (c.bound for c in self.children or ()) if b is not None]
        return min(own, max(bounds)) if bounds else None

    @property
    def is_enough(self) -> bool:
        """Whether nothing below proves more than the node itself."""
        return self.bound == self.bounded.value.certified

    def proof(self, relaxation: Relaxation) -> Certificate:
        """Return the certificate of a root."""
        if self.below is not None and not self.is_enough:
            return self.below.certificate()
        return self.certificate(relaxation)

    def certificate(self, relaxation: Relaxation) -> CertificateNode:
        """Return the certificate of this node and those below it."""
        if self.children is None or self.write is None or self.is_enough:
            return relaxation.leaf(self.bounded.value)
        low, high = self.children
        return self.write(low.certificate(relaxation), high.certificate(relaxation))


@dataclass
class Tree:
    """A best-first search that can be stopped at any time with a valid bound."""

    relaxation: Relaxation
    master: Master
    root: Node
    on_solution: Callable[[list[Candidate]], int]
    _open: list[tuple[int, int, Node]] = field(default_factory=list)
    _ticket: itertools.count[int] = field(default_factory=itertools.count)

    def run(self, lower: int, deadline: float, max_nodes: int) -> int:
        """Search until no open node's bound exceeds the incumbent; return nodes expanded."""
        self._push(self.root, lower)
        expanded = 0
        while self._open and expanded < max_nodes and clock.now() < deadline:
            _, _, node = heapq.heappop(self._open)
            bound = node.bounded.value.certified
            if bound is None or bound <= lower:
                continue
            lp = node.bounded.lp or self.master.solve_lp(node.sub)
            if lp is None:
                continue
            parts = self._split(node, lp)
            if parts is None:
                continue
            expanded += 1
            subs, write = parts
            children = []
            for sub in subs:
                child, lower = self._bounded(sub, node, lower, deadline)
                children.append(child)
            node.children, node.write = (children[0], children[1]), write
            for child in children:
                self._push(child, lower)
        return expanded

    def _push(self, node: Node, lower: int) -> None:
        bound = node.bounded.value.certified
        sub = node.sub
        depth = len(sub.forced) + len(sub.excluded) + len(sub.limits)
        if bound is not None and bound > lower and depth < DEEPEST:
            heapq.heappush(self._open, (-bound, next(self._ticket), node))

    def _bounded(
        self, sub: Subproblem, parent: Node, lower: int, deadline: float
    ) -> tuple[Node, int]:
        point = parent.bounded.point
        start = Bounded(self.relaxation.evaluate(sub, point), point)
        bounded = generate_columns(
            self.relaxation, self.master, sub, start, lower, deadline=deadline, max_work=1 << 62
        )
        lp = bounded.lp
        if lp is not None and lp.complete:
            ones = [c for c, a in zip(lp.columns, lp.amounts, strict=True) if a > 0.5]
            if np.all((lp.amounts < 1e-6) | (lp.amounts > 1 - 1e-6)):
                lower = max(lower, self.on_solution([c.candidate for c in ones]))
        return Node(sub, bounded), lower

    def _split(self, node: Node, lp: LpSolution) -> Branch | None:
        problem = self.relaxation.problem
        sub = node.sub
        starts = np.zeros(len(problem.requests))
        for column, amount in zip(lp.columns, lp.amounts, strict=True):
            starts[column.candidate.request_idx] += amount
        undecided = [i for i in range(len(starts)) if i not in sub.forced and i not in sub.excluded]
        fractional = [i for i in undecided if 1e-6 < starts[i] < 1 - 1e-6]
        if fractional:
            chosen = max(
                fractional,
                key=lambda i: (min(starts[i], 1 - starts[i]) * problem.requests[i].value, -i),
            )
            return split_start(problem, sub, chosen)
        spread = _most_spread(lp)
        if spread is None:
            return None
        if spread not in sub.forced:
            return split_start(problem, sub, spread)
        mine = [
            (float(a), c.candidate)
            for c, a in zip(lp.columns, lp.amounts, strict=True)
            if c.candidate.request_idx == spread
        ]
        return split_place(problem, sub, mine)


def _most_spread(lp: LpSolution) -> int | None:
    """Return the request whose columns are split most, None if the solution is integral."""
    parts: dict[int, float] = {}
    for column, amount in zip(lp.columns, lp.amounts, strict=True):
        if 1e-6 < amount < 1 - 1e-6:
            idx = column.candidate.request_idx
            parts[idx] = parts.get(idx, 0.0) + amount * (1 - amount)
    return max(parts, key=lambda i: (parts[i], -i)) if parts else None
