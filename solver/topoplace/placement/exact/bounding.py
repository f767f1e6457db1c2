"""What lowers the first level's bound where linear programs are slow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topoplace import clock
from topoplace.placement.exact.parts import PartTrees
from topoplace.placement.exact.start_leaves import Leaf
from topoplace.placement.exact.trees import Trees
from topoplace.result.placement import Certificate

if TYPE_CHECKING:
    from topoplace.placement.exact.branching import Node
    from topoplace.placement.exact.search import ExactSearch

_ALONE = 1.5  # seconds for the whole queue, before it is bounded in parts
_PARTS_SHARE = 0.9  # of the time, for parts, as long as their bound falls or is the lower one
_BEHIND_SHARE = 0.5  # else


class Bounding:
    """Trees of the whole queue, and if it asks for several classes, of each by itself.

    The root's bound is the lower of the two.
    """

    def __init__(self, search: ExactSearch, root: Node) -> None:
        self._search, self._root = search, root.bounded
        self._whole = Trees(
            search.relaxation, search.master, root.bounded, lambda: search.objective(0)
        )
        self._parts: PartTrees | None = None
        self._several = len({request.class_idx for request in search.problem.requests}) > 1
        self._spent = 0.0  # seconds, for the whole queue before parts are begun
        self._falls = True  # what the parts certify, when they were worked on last
        root.below = self

    @property
    def bound(self) -> int:
        """What is certified."""
        return self._better().bound

    def certificate(self) -> Certificate:
        """Return the certificate of the bound."""
        return self._better().certificate()

    def highest(self) -> Leaf | None:
        """Return the leaf of the largest bound of all starts if it has prices of its own."""
        return self._whole.highest()

    @property
    def asks_places(self) -> bool:
        """Whether trees that ask for places are under way."""
        return self._parts is not None or self._whole.asks_places

    def run(self, until: float) -> bool:
        """Work on the trees; return whether bounds still fell in the second half of the time.

        What counts are the trees of those that are ahead, the whole queue's or the parts'. Those
        of parts that are begun in that time are given more.
        """
        now, begun = clock.now(), self._parts is not None
        self._run(now + 0.5 * (until - now))
        better = self._better()
        before = better.bounds()
        self._run(until)
        fell = self._better() is not better or better.bounds() != before
        return fell or begun != (self._parts is not None)

    def _run(self, until: float) -> None:
        if self._several and self._parts is None:
            now = clock.now()
            alone = min(until, now + max(0.0, _ALONE - self._spent))
            self._whole.run(alone, ask_places=False)
            self._spent += clock.now() - now
            ended = clock.now() < alone
            if self._closed() or (self._spent < _ALONE and not ended):
                return
            self._parts = PartTrees(self._search, self._root)
        if self._parts is not None:
            now, before = clock.now(), self._parts.bound
            ahead = before < self._whole.bound
            share = _PARTS_SHARE if self._falls or ahead else _BEHIND_SHARE
            self._parts.run(now + share * (until - now))
            self._falls = self._parts.bound < before
        if not self._closed():
            done = self._parts is None or (self._parts.asks_places and not self._falls)
            self._whole.run(until, ask_places=done)

    def _closed(self) -> bool:
        return self.bound <= self._search.objective(0)

    def _better(self) -> Trees | PartTrees:
        if self._parts is not None and self._parts.bound < self._whole.bound:
            return self._parts
        return self._whole
