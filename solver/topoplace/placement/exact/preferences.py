"""Which request is preferred to which, so that branches do not try both ways round.

A request that needs no more nodes than another, is worth no less and is like it in all else can
take its place. On the first level some best placement never starts the other without it
(docs/proofs.md, "A tree of leaves").
"""

from __future__ import annotations

from dataclasses import replace

from topoplace.placement.exact.relaxation import Subproblem
from topoplace.placement.exact.splits import Branch, split_start
from topoplace.placement.problem import PlacementProblem


class Preferences:
    """The requests of a problem that are preferred to others, among those that can start."""

    def __init__(self, problem: PlacementProblem, startable: frozenset[int]) -> None:
        self._problem = problem
        self.better: dict[int, frozenset[int]] = {}
        """By request, those preferred to it."""
        self.worse: dict[int, frozenset[int]] = {}
        """By request, those it is preferred to."""
        alike: dict[object, list[int]] = {}
        for q in sorted(startable):
            request = problem.requests[q]
            if not request.geometries:
                kind = (request.class_idx, request.region, request.communication)
                alike.setdefault(kind, []).append(q)
        for members in alike.values():
            members.sort(key=lambda q: (-problem.requests[q].value, problem.requests[q].nodes, q))
            for k, q in enumerate(members):
                nodes = problem.requests[q].nodes
                fits = {b: problem.requests[b].nodes <= nodes for b in members[:k]}
                self.better[q] = frozenset(b for b, small in fits.items() if small)
        for q, above in self.better.items():
            for b in above:
                self.worse[b] = self.worse.get(b, frozenset()) | {q}

    def branch(self, sub: Subproblem, q: int) -> Branch:
        """Return the sides of a branch on a start with what follows, and what writes it."""
        decided = sub.forced | sub.excluded
        (out, into), write = split_start(self._problem, sub, q)
        also_out = self.worse.get(q, frozenset()) - decided
        also_in = self.better.get(q, frozenset()) - decided
        out = replace(out, excluded=out.excluded | also_out)
        into = replace(into, forced=into.forced | also_in)
        return (out, into), write
