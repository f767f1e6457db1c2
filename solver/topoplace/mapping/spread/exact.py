"""All mappings of a few tasks, one task after the other (docs/proofs/spread.md, "Enumeration")."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from topoplace import clock
from topoplace.mapping.evaluate import worth_of
from topoplace.mapping.objects.exact import order_of
from topoplace.mapping.problem import MappingProblem
from topoplace.result.mapping import SPREAD_STEPS, EnumerationCertificate
from topoplace.solving import Bound
from topoplace.types import IntArray

MOST_TASKS = 12
"""Larger problems are not enumerated."""

Bounds = tuple[Bound | None, Bound | None]


def enumerated(problem: MappingProblem, nodes: IntArray, stop: float) -> tuple[IntArray, Bounds]:
    """Return the best mapping and its proof, given one that is known; both levels in turn.

    A bound is None if there was no time for it, or more than `SPREAD_STEPS` steps.
    """
    walk = _Walk(problem, stop)
    proof = EnumerationCertificate(order=walk.order)
    while True:
        spread, hops = worth_of(problem, nodes)
        found = walk.better(spread - 1, None)
        if found is None:
            break
        nodes = found
    if walk.is_over:
        return nodes, (None, None)
    first = Bound(spread, proof)
    while True:
        spread, hops = worth_of(problem, nodes)
        found = walk.better(spread, hops)
        if found is None:
            return nodes, (first, None if walk.is_over else Bound(hops, proof))
        nodes = found


class _Walk:
    """A search in depth for a mapping of smaller spread, or of fewer hop-bytes."""

    def __init__(self, problem: MappingProblem, stop: float) -> None:
        levels = problem.machine.levels
        assert levels is not None
        num = problem.num_tasks
        self._problem, self._stop, self._levels = problem, stop, levels
        self._bytes = problem.graph.exchanged.matrix(num)
        joined = self._bytes.copy()
        for kind in problem.spread:
            for one in np.split(kind.task, kind.first[1:-1]):
                joined[np.ix_(one, one)] += 1
        fixed = np.zeros(num, dtype=bool)
        self.order: list[int] = order_of(joined, problem.loads, fixed).tolist()
        self._groups: list[list[tuple[int, int]]] = [[] for _ in range(num)]
        self._domain = levels.domain_of.tolist()
        count = 0
        for kind in problem.spread:
            for task, group in zip(kind.task.tolist(), kind.group.tolist(), strict=True):
                self._groups[task].append((count + group, kind.level))
            count += len(kind)
        self._inside: list[dict[int, int]] = [{} for _ in range(count)]
        self._room = np.minimum(problem.capacity, num).tolist()
        self._at: dict[int, int] = {}
        self._children, self._shape = self._tree()
        self._used = [[0] * (max(row) + 1) for row in self._domain]
        self.is_over = False
        self._steps = 0

    def _tree(self) -> tuple[list[list[list[int]]], list[list[object]]]:
        """Return the domains below every domain, by level, and what it looks like while empty."""
        children: list[list[list[int]]] = [[[] for _ in self._room]]
        shape: list[list[object]] = [[*self._room]]
        for low, high in zip(self._domain, self._domain[1:], strict=False):
            below = sorted({*zip(high, low, strict=True)})
            own = [[d for h, d in below if h == k] for k in range(max(high) + 1)]
            looks = [tuple(sorted(map(repr, (shape[-1][d] for d in one)))) for one in own]
            children.append(own)
            shape.append([*looks])
        return children, shape

    def better(self, spread: int, hops: int | None) -> IntArray | None:
        """Return a mapping of at most this spread and of fewer hop-bytes; None if none is found."""
        self._steps = 0
        if spread < 1 or not self._down(0, 0, spread, hops):
            return None
        found = np.array([self._at[t] for t in range(len(self.order))], dtype=np.int64)
        for task in self.order:
            self._take(task, -1)
        self._at.clear()
        return found

    def _down(self, depth: int, cost: int, spread: int, hops: int | None) -> bool:
        if depth == len(self.order):
            return True
        task = self.order[depth]
        for leaf in self._leaves(len(self._domain) - 1, 0):
            self._steps += 1
            if self._steps > SPREAD_STEPS or (self._steps & 255 == 0 and clock.now() >= self._stop):
                self.is_over = True
            if self.is_over:
                return False
            own = cost
            if hops is not None:
                for other, at in self._at.items():
                    size = int(self._bytes[task, other])
                    own += size * self._between(leaf, at) if size else 0
                if own >= hops:
                    continue
            self._at[task] = leaf
            self._take(task, 1)
            fits = all(len(self._inside[group]) <= spread for group, _ in self._groups[task])
            if fits and self._down(depth + 1, own, spread, hops):
                return True
            self._take(task, -1)
            del self._at[task]
        return False

    def _leaves(self, level: int, domain: int) -> Iterator[int]:
        """Yield leaves with room, of empty domains that look alike only the first."""
        if level == 0:
            if self._used[0][domain] < self._room[domain]:
                yield domain
            return
        seen: set[object] = set()
        for below in self._children[level][domain]:
            if not self._used[level - 1][below]:
                look = self._shape[level - 1][below]
                if look in seen:
                    continue
                seen.add(look)
            yield from self._leaves(level - 1, below)

    def _take(self, task: int, sign: int) -> None:
        """Put a task on its leaf, or take it away."""
        leaf = self._at[task]
        for own, row in zip(self._used, self._domain, strict=True):
            own[row[leaf]] += sign
        for group, level in self._groups[task]:
            domain, inside = self._domain[level][leaf], self._inside[group]
            inside[domain] = inside.get(domain, 0) + sign
            if not inside[domain]:
                del inside[domain]

    def _between(self, a: int, b: int) -> int:
        for cost, row in zip([0, *self._levels.costs.tolist()], self._domain, strict=True):
            if row[a] == row[b]:
                return int(cost)
        return int(self._levels.costs[-1])
