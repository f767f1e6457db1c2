"""The requests of each node class by themselves: what they are worth together bounds the queue.

Jobs of different classes compete for links alone, and for routers that a prism covers without using
them. Where that is little, two small trees do what takes a large one a branch in one for every
branch in the other (docs/proofs.md, "Parts").
"""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from topoplace import clock
from topoplace.placement.exact.alike import resized
from topoplace.placement.exact.bundle import Bundle
from topoplace.placement.exact.generation import Bounded
from topoplace.placement.exact.ground import new_pool
from topoplace.placement.exact.master import Master
from topoplace.placement.exact.relaxation import DualPoint, Subproblem
from topoplace.placement.exact.trees import Trees, relaxation_like
from topoplace.placement.problem import PlacementProblem
from topoplace.result import Part, Parts

if TYPE_CHECKING:
    from topoplace.placement.exact.search import ExactSearch

_ROOT_SHARE = 0.02  # of the time limit, for the bound of a part without branches
_SLICE = 2.0  # seconds for a part, until it is seen how it does


@dataclass
class _Part:
    """A part of the queue.

    Attributes
    ----------
    spent
        Seconds of work.
    still
        Runs in a row that did not lower its bound.
    """

    requests: list[int]
    trees: Trees
    spent: float = 0.0
    still: int = 0

    @property
    def closed(self) -> bool:
        """Whether its bound is what the incumbent has of it."""
        return self.trees.bound <= self.trees.lower()

    def run(self, until: float) -> bool:
        """Work on its trees; return whether time was up, and not the work that lowers its bound."""
        now, before = clock.now(), self.trees.bound
        self.trees.run(until)
        end = clock.now()
        self.spent += end - now
        self.still = 0 if self.trees.bound < before else self.still + 1
        return end >= until


class PartTrees:
    """Trees of each part of the queue, worked on in turn.

    Two at once, a thread each, as long as neither asks for places, which takes two threads.
    """

    def __init__(self, search: ExactSearch, root: Bounded) -> None:
        self._search = search
        self._threads = ThreadPoolExecutor(2)
        classes: dict[int, list[int]] = {}
        for q, request in enumerate(search.problem.requests):
            classes.setdefault(request.class_idx, []).append(q)
        parts = self._threads.map(lambda requests: self._begin(requests, root), classes.values())
        self._parts = list(parts)

    @property
    def bound(self) -> int:
        """What the parts' trees certify together."""
        return sum(part.trees.bound for part in self._parts)

    def certificate(self) -> Parts:
        """Return the certificate of the bound."""
        requests = self._search.problem.requests
        return Parts(
            parts=[
                Part(
                    requests=[requests[q].id for q in part.requests],
                    certificate=part.trees.certificate(),
                )
                for part in self._parts
            ]
        )

    def bounds(self) -> tuple[int, ...]:
        """Return what the trees of each part certify."""
        return tuple(part.trees.bound for part in self._parts)

    @property
    def asks_places(self) -> bool:
        """Whether no part is left that asks for starts alone."""
        return all(part.closed or part.trees.asks_places for part in self._parts)

    def run(self, until: float) -> None:
        """Work on the parts in turn, least on those whose bound stands still."""
        left = list(self._parts)
        while left := [part for part in left if not part.closed]:
            now = clock.now()
            if now >= until or self.bound <= self._search.objective(0):
                return
            left.sort(key=lambda part: part.spent * (1 + part.still))
            chosen = left[:2]
            if any(part.trees.asks_places for part in chosen):
                chosen = left[:1]
            end = min(until, now + _SLICE)
            time_is_up = list(self._threads.map(_Part.run, chosen, itertools.repeat(end)))
            ended = [part for part, is_up in zip(chosen, time_is_up, strict=True) if not is_up]
            left = [part for part in left if part not in ended]

    def _begin(self, requests: list[int], root: Bounded) -> _Part:
        search, mine = self._search, frozenset(requests)

        def lower() -> int:
            started = (c.request_idx for c in search.incumbent)
            return sum(search.problem.requests[q].value for q in started if q in mine)

        relaxation = relaxation_like(search.relaxation, _with_only(search.problem, mine))
        master = Master(relaxation.rows, search.deadline)
        master.add(c.candidate for c in search.master.columns if c.candidate.request_idx in mine)
        master.set_amounts((a, c) for a, c in search.master.amounts() if c.request_idx in mine)
        new_pool(relaxation)
        prices = root.point.row_prices.copy()
        for k, family in enumerate(relaxation.rows.families):
            if family is not None and family not in mine:
                prices[relaxation.rows.links_of(k)] = 0.0
        sub, point = Subproblem(), DualPoint(prices)
        bounded = Bundle(relaxation, master, sub).run(
            Bounded(relaxation.evaluate(sub, point, 4), point),
            lower(),
            deadline=clock.now() + _ROOT_SHARE * (search.deadline - search.start),
        )
        return _Part(requests, Trees(relaxation, master, bounded, lower))


def _with_only(problem: PlacementProblem, among: frozenset[int]) -> PlacementProblem:
    """Return the problem in which no other request has a prism."""
    too_many = problem.torus.num_nodes + 1
    queue = tuple(
        request if q in among else resized(request, too_many)
        for q, request in enumerate(problem.requests)
    )
    return PlacementProblem(replace(problem.state, queue=queue), problem.interference)
