"""The best-first tree: the leaf of the largest bound is worked on next, until time is up."""

from __future__ import annotations

import heapq
import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator

from topoplace.packing import steering
from topoplace.packing.dual.relaxation import Relaxation
from topoplace.packing.tree.branching import Branch
from topoplace.packing.tree.nodes import NOTHING, Node, Writer
from topoplace.result.certificate import DEEPEST, Certificate

_FEWEST, _GROWTH = 4, 0.25  # leaves more, until it is seen again how long the certificate is
_OFTEN = 16  # leaves worked on, until it is seen again what the others hold


class BestFirstTree(ABC):
    """A tree that may be run again and again, with a certified bound at any time.

    It grows until its certificate fills its room. Leaves that are still worked on have what that
    goes on from; beyond `steering.OPEN_LEAVES` those of the least bounds keep their proofs alone.

    Parameters
    ----------
    lower
        Returns what the bound is lowered to: the incumbent's objective.
    groups
        Of alike requests, which the certificate names.

    Attributes
    ----------
    room
        Characters that its certificate may have.
    size
        Those that it had when that was looked at last, 0 before.
    """

    room = steering.CERTIFICATE
    size = 0

    def __init__(
        self,
        relaxation: Relaxation,
        top: Node,
        lower: Callable[[], int],
        groups: tuple[tuple[int, ...], ...] = (),
    ) -> None:
        self.relaxation, self.lower, self.groups = relaxation, lower, groups
        self._open: list[tuple[int, int, Node]] = []
        self._inner: list[tuple[int, int, Node]] = []  # whose own bound may still be of use
        self._ticket = itertools.count()
        self._num_leaves, self._next_look, self._worked_on = 1, _OFTEN, 0
        self._decided = NOTHING  # the largest bound of leaves that are not worked on any more
        self.top = top
        self.push(top)

    @property
    def bound(self) -> int:
        """What the tree certifies."""
        return max(self._decided, self.highest_open)

    def certificate(self) -> Certificate:
        """Return the tree as a certificate of its bound."""
        return Writer(self.relaxation, self.bound).write(self.top, self.groups)

    @property
    def highest_open(self) -> int:
        """The largest bound of a leaf that is still worked on."""
        return -self._open[0][0] if self._open else NOTHING

    def run(self, until: float) -> None:
        """Work on the leaf of the largest bound, until a time of the budget or the room is full."""
        while (
            self.relaxation.budget.now() < until
            and not self._is_full()
            and (node := self.pop()) is not None
        ):
            self.work_on(node, until)
            self._worked_on += 1
            if self._worked_on % _OFTEN == 0:
                self._lighten()
            while self._inner and -self._inner[0][0] > self.bound:
                heapq.heappop(self._inner)[2].forget()

    def _is_full(self) -> bool:
        """Tell whether the certificate fills the room; it is written now and then to see that."""
        if self._num_leaves >= self._next_look:
            self.size = len(self.certificate().model_dump_json())
            growth = min(_GROWTH, self.room / self.size - 1)
            self._next_look = self._num_leaves + max(_FEWEST, int(growth * self._num_leaves))
        return self.size >= self.room

    def _lighten(self) -> None:
        """Let the leaves of the least bounds keep only their proofs, if all hold too much."""
        known: set[int] = set()
        held = 0
        for node in sorted(self.open_leaves(), key=lambda node: -node.bound):
            held += node.held(known)
            if held > steering.OPEN_LEAVES:
                node.lighten()

    @abstractmethod
    def work_on(self, node: Node, until: float) -> None:
        """Bound a leaf better or split it; it is not open any more, unless pushed again."""

    def refresh(self, node: Node) -> None:  # noqa: B027 - not every tree has something to look at
        """Bring the bound of a leaf up to date."""

    def push(self, node: Node) -> None:
        """Take a leaf that is still worked on, if that can lower the tree's bound."""
        if node.bound > self.lower() and node.depth < DEEPEST:
            heapq.heappush(self._open, (-node.bound, next(self._ticket), node))
        else:
            self.settle(node)

    def settle(self, node: Node) -> None:
        """Work on a leaf no more."""
        node.close(max(self.lower(), node.bound))
        self._decided = max(self._decided, node.bound)

    def pop(self) -> Node | None:
        """Take the leaf of the largest bound; None if no work on leaves lowers the tree's."""
        while self.highest_open > max(self._decided, self.lower()):
            key, _, node = heapq.heappop(self._open)
            self.refresh(node)
            if node.bound == -key:
                node.take_up()
                return node
            self.push(node)
        return None

    def open_leaves(self) -> Iterator[Node]:
        """Yield the leaves that are still worked on, that of the largest bound first."""
        return (node for _, _, node in self._open)

    def split(self, node: Node, branch: Branch, children: tuple[Node, Node]) -> None:
        """Put the sides of a branch in a leaf's place."""
        node.branch, node.children = branch, children
        node.close()
        self._num_leaves += 1
        heapq.heappush(self._inner, (-node.bound, next(self._ticket), node))
        for child in children:
            self.push(child)
