"""Branching on which requests start and where, if linear programs are too slow to guide it.

The relaxation likes to start a bit of every large request where there is no room for a whole one,
or leaves out a bit of each. A leaf is bounded by the bundle alone. Before a leaf is split, the
largest requests that are undecided are *probed*: some steps of the bundle bound the side that the
fractional solution does not take. A side that falls to the incumbent decides its request. Of the
others, the one with the lowest bound is split, and what the probes found serves the leaves below.
Where all large requests are decided, the place of one that starts is split.
"""

from __future__ import annotations

import heapq
import itertools
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from topoplace.placement.exact.branching import Node, place_branch, start_branch
from topoplace.placement.exact.bundle import Bundle
from topoplace.placement.exact.generation import Bounded
from topoplace.placement.exact.integer import least_losses, losses_at
from topoplace.placement.exact.relaxation import DualPoint, Subproblem
from topoplace.placement.problem import Candidate

if TYPE_CHECKING:
    from topoplace.placement.exact.search import ExactSearch

_LARGE = 0.02  # of the bound: requests of less value are not decided
_PROBED = 8  # undecided requests that are probed at once
_PROBE_STEPS = 10  # of the bundle
_MOST_STEPS = 200  # for a leaf
_MOST_COLUMNS = 2000
_OUT, _INTO = 0, 1  # the sides of a branch
_SETTLED = 0.95  # of a request on one prism: its place is not split
_HALF = 0.5  # of a request, in the fractional solution: above it, its likely side is `_INTO`


@dataclass(frozen=True)
class _Probe:
    """What bounds a side of a request's branch, here or above."""

    side: int
    point: DualPoint
    bound: float


@dataclass
class Leaf:
    """A leaf whose bound is above the incumbent.

    Attributes
    ----------
    amounts
        The fractional solution to start the bundle from.
    settled
        Whether the bundle can do no more.
    probes
        By request; only of undecided ones.
    """

    node: Node
    amounts: list[tuple[float, Candidate]]
    settled: bool = False
    probes: dict[int, _Probe] = field(default_factory=dict)

    def without(self, decided: set[int]) -> dict[int, _Probe]:
        """Return the probes of the requests that are not among those decided."""
        return {q: probe for q, probe in self.probes.items() if q not in decided}


class StartTree:
    """A best-first tree below the root of the first level; may be run again and again."""

    def __init__(self, search: ExactSearch, root: Node) -> None:
        self._search = search
        self._open: list[tuple[float, int, Leaf]] = []
        self._ticket = itertools.count()
        free = DualPoint(np.zeros(search.rows.num_rows))
        best = search.relaxation.evaluate(root.sub, free, 1).priced.best
        least = _LARGE * root.bounded.value.bound
        self._large = frozenset(
            q
            for q, request in enumerate(search.problem.requests)
            if best[q] > 0 and request.value >= least
        )
        self._decided: list[Node] = []  # leaves that have nothing left to decide
        self._push(Leaf(root, search.master.amounts(), settled=True))

    def highest(self) -> Leaf | None:
        """Return the leaf of the largest bound, None if splitting leaves cannot lower the bound."""
        if not self._open:
            return None
        leaf = self._open[0][2]
        above = (node.bounded.value.bound for node in self._decided if self._above(node))
        splitting_helps = leaf.node.bounded.value.bound > max(above, default=0.0)
        return leaf if splitting_helps and self._above(leaf.node) else None

    def run(self, until: float, deadline: float) -> None:
        """Split leaves, the largest bound first; none is begun after `until`."""
        amounts = self._search.master.amounts()
        while time.perf_counter() < until and self.highest() is not None:
            _, _, top = heapq.heappop(self._open)
            if not top.settled:
                self._lower(top, deadline)
            elif top.probes:
                self._split(top)
                continue
            elif self._largest(top.node.sub):
                top = self._probe(top, deadline)
            else:
                self._split_place(top)
                continue
            self._push(top)
        self._search.master.set_amounts(amounts)  # the bundle of the root goes on from them

    def _trim(self, sub: Subproblem, at: Bounded) -> None:
        """Forget the columns that lose most at some prices: steps grow with them."""
        search = self._search
        if len(search.master.columns) > 1.5 * _MOST_COLUMNS:
            losses = losses_at(search.relaxation, sub, search.master.columns, at)
            search.master.keep(least_losses(losses, _MOST_COLUMNS))

    def _above(self, node: Node) -> bool:
        bound = node.bounded.value.certified
        return bound is not None and bound > self._search.objective(0)

    def _push(self, leaf: Leaf) -> None:
        if not self._above(leaf.node):
            return
        entry = (-leaf.node.bounded.value.bound, next(self._ticket), leaf)
        heapq.heappush(self._open, entry)

    def _largest(self, sub: Subproblem) -> list[int]:
        """Return some undecided large requests, the largest first."""
        requests = self._search.problem.requests
        undecided = self._large - sub.forced - sub.excluded
        return sorted(undecided, key=lambda q: (-requests[q].value, q))[:_PROBED]

    def _lower(self, leaf: Leaf, deadline: float) -> None:
        node = leaf.node
        node.bounded, leaf.settled = self._bounded(node.sub, node.bounded, leaf.amounts, deadline)
        leaf.amounts = self._search.master.amounts()

    def _bounded(
        self,
        sub: Subproblem,
        start: Bounded,
        amounts: list[tuple[float, Candidate]],
        deadline: float,
        max_steps: int = _MOST_STEPS,
    ) -> tuple[Bounded, bool]:
        search = self._search
        self._trim(sub, start)
        search.master.set_amounts(amounts)
        bundle = Bundle(search.relaxation, search.master, sub)
        lower = search.objective(0)
        bounded = bundle.run(start, lower, deadline=deadline, max_steps=max_steps)
        return bounded, bundle.settled or time.perf_counter() < deadline

    def _probe(self, leaf: Leaf, deadline: float) -> Leaf:
        """Probe the largest undecided requests; return the leaf that is left to split."""
        search = self._search
        decided = leaf
        taken = dict.fromkeys(range(len(search.problem.requests)), 0.0)
        for amount, candidate in leaf.amounts:
            taken[candidate.request_idx] += amount
        probes: dict[int, _Probe] = {}
        for q in self._largest(leaf.node.sub):
            if time.perf_counter() >= deadline:
                break
            node = decided.node
            subs, write = start_branch(search.problem, node.sub, q)
            side = _OUT if taken[q] > _HALF else _INTO
            bounded = self._from(subs[side], leaf.node.bounded.point)
            bounded, _ = self._bounded(subs[side], bounded, leaf.amounts, deadline, _PROBE_STEPS)
            tried = Node(subs[side], bounded)
            if self._above(tried):
                probes[q] = _Probe(side, bounded.point, bounded.value.bound)
                continue
            # the prices of a node bound its children, too
            other = Node(subs[1 - side], node.bounded)
            node.children, node.write = _in_order(side, tried, other), write
            decided = Leaf(other, leaf.amounts)
        decided.probes = probes
        return decided

    def _split(self, leaf: Leaf) -> None:
        q = min(leaf.probes, key=lambda q: (leaf.probes[q].bound, q))
        probe, node = leaf.probes[q], leaf.node
        subs, write = start_branch(self._search.problem, node.sub, q)
        starts = (self._from(subs[probe.side], p) for p in (probe.point, node.bounded.point))
        tried = Node(subs[probe.side], min(starts, key=lambda start: start.value.bound))
        other = Node(subs[1 - probe.side], node.bounded)
        node.children, node.write = _in_order(probe.side, tried, other), write
        left = leaf.without({q})
        self._push(Leaf(tried, leaf.amounts, probes=left))
        # whose bound the bundle hardly lowers: that waits until more is decided
        self._push(Leaf(other, leaf.amounts, settled=bool(left), probes=left))

    def _split_place(self, leaf: Leaf) -> None:
        """Split the places of the largest request that is spread over several."""
        requests, node = self._search.problem.requests, leaf.node
        for q in sorted(node.sub.forced, key=lambda q: (-requests[q].value, q)):
            mine = [(c, amount) for amount, c in leaf.amounts if c.request_idx == q]
            parts = place_branch(self._search.problem, node.sub, q, mine)
            if parts is None or max(amount for _, amount in mine) > _SETTLED:
                continue
            subs, write = parts
            low, high = (Node(sub, self._from(sub, node.bounded.point)) for sub in subs)
            node.children, node.write = (low, high), write
            for child in node.children:
                self._push(Leaf(child, leaf.amounts))
            return
        self._decided.append(node)

    def _from(self, sub: Subproblem, point: DualPoint) -> Bounded:
        return Bounded(self._search.relaxation.evaluate(sub, point, 4), point)


def _in_order(side: int, tried: Node, other: Node) -> tuple[Node, Node]:
    return (tried, other) if side == _OUT else (other, tried)
