"""The best-first tree: the leaf of the largest bound is worked on next, until time is up.

`PriceTree` is the one whose leaves are bounded by column generation: branch and price. Those of a
`ProgramTree` are bounded by the prices of a linear program that the problem has of its own.
"""

from __future__ import annotations

import heapq
import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from topoplace.packing import steering
from topoplace.packing.dual.generation import Bounded, generate_columns, is_met
from topoplace.packing.dual.master import LpSolution, Master
from topoplace.packing.dual.relaxation import DualPoint, Relaxation
from topoplace.packing.problem import Kinds, Program, Subproblem
from topoplace.packing.tree.nodes import (
    NOTHING,
    Branch,
    Dominance,
    Node,
    Root,
    Writer,
    cover_branch,
    split_cover,
    split_start,
)
from topoplace.result.certificate import DEEPEST, Certificate, size_of

_GROWTH = (0.05, 3.0)  # of the leaves worked on, until the certificate is written again
_SHARE_OF_ROOM = 0.25  # by which it may grow until then, if it grows with them
_OFTEN = 16  # leaves worked on, until it is seen again what the others hold


class BestFirstTree(ABC):
    """A tree that may be run again and again, with a certified bound at any time.

    It grows until its certificate reaches its size limit; to check that, the certificate is written
    now and then. If it does not fit any more, the bound is that of the last one that did, and split
    nodes keep their proofs until then. Open leaves hold what is needed to resume them; beyond
    `steering.OPEN_LEAVES` those of the least bounds keep only their proofs.

    Parameters
    ----------
    lower
        Returns the goal of the bound: the incumbent's objective.
    groups
        Of alike requests, which the certificate names.
    room
        Size limit of the certificate, in bytes.

    Attributes
    ----------
    size
        The bytes of the last certificate that fitted, 0 before.
    """

    size = 0

    def __init__(
        self,
        relaxation: Relaxation,
        top: Node,
        lower: Callable[[], int],
        groups: tuple[tuple[int, ...], ...] = (),
        *,
        room: int,
    ) -> None:
        self.relaxation, self.lower, self.groups, self.room = relaxation, lower, groups, room
        self._open: list[tuple[int, int, Node]] = []
        self._inner: list[tuple[int, int, Node]] = []  # whose own bound may still be of use
        self._ticket = itertools.count()
        self._next_look, self._worked_on = _OFTEN, 0
        self._written, self._is_full = top.bound, False  # what the last that had room proves
        self._decided = NOTHING  # the largest bound of leaves that are not worked on any more
        self.top = top
        self.push(top)

    @property
    def bound(self) -> int:
        """The bound that the tree certifies."""
        return self._written if self._is_full else max(self._decided, self.highest_open)

    def certificate(self, room: int) -> Certificate:
        """Return the tree as a certificate of its bound, which rises if it does not fit."""
        found = self._look(room)
        return self._write() if self._is_full else found

    def _look(self, room: int) -> Certificate:
        """Write the certificate of the least bound, and check whether it fits."""
        self._is_full = False
        found = self._write()
        size = size_of(found)
        self._is_full = size > room
        if not self._is_full:
            self.size, self._written = size, self.bound
            while self._inner and -self._inner[0][0] > self.bound:
                heapq.heappop(self._inner)[2].forget()
        return found

    def _write(self) -> Certificate:
        return Writer(self.relaxation, self.bound).write(self.top, self.groups)

    @property
    def highest_open(self) -> int:
        """The largest bound of an open leaf."""
        return -self._open[0][0] if self._open else NOTHING

    def run(self, until: float) -> None:
        """Work on the leaf of the largest bound, until a time of the budget or the size limit."""
        while (
            self.relaxation.budget.now() < until
            and self._has_room()
            and (node := self.pop()) is not None
        ):
            self.work_on(node, until)
            self._worked_on += 1
            if self._worked_on % _OFTEN == 0:
                self._lighten()

    def _has_room(self) -> bool:
        """Return whether the certificate fits; it is written now and then to check that."""
        if self._worked_on >= self._next_look:
            self._look(self.room)
            least, most = _GROWTH
            more = _SHARE_OF_ROOM * (self.room / max(1, self.size) - 1)
            growth = min(most, max(least, more))
            self._next_look = math.ceil((1 + growth) * self._worked_on)
        return not self._is_full and self.size < self.room

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
        """Update the bound of a leaf."""

    def push(self, node: Node) -> None:
        """Take an open leaf, if work on it can lower the tree's bound."""
        if node.bound > self.lower() and node.depth < DEEPEST:
            heapq.heappush(self._open, (-node.bound, next(self._ticket), node))
        else:
            self.settle(node)

    def settle(self, node: Node) -> None:
        """Close a leaf."""
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
        """Yield the open leaves, that of the largest bound first."""
        return (node for _, _, node in self._open)

    def split(self, node: Node, branch: Branch, children: tuple[Node, Node]) -> None:
        """Put the sides of a branch in a leaf's place."""
        node.branch, node.children = branch, children
        node.close()
        heapq.heappush(self._inner, (-node.bound, next(self._ticket), node))
        for child in children:
            self.push(child)


_INTEGRAL = 1e-6


class PriceTree(BestFirstTree):
    """A tree of any level, for later levels and small problems.

    Parameters
    ----------
    offer
        Takes a placement that a linear program has found.
    """

    def __init__(
        self,
        relaxation: Relaxation,
        master: Master,
        root: Root,
        lower: Callable[[], int],
        offer: Callable[[list[Any]], object],
    ) -> None:
        own = root.bounded.value.certified
        top = Node(root.sub, NOTHING if own is None else own, bounded=root.bounded)
        problem, level = relaxation.problem, root.sub.level
        every = frozenset(range(len(problem.names)))
        groups = tuple(problem.equal_groups(every))
        super().__init__(relaxation.filling(None), top, lower, groups, room=root.room)
        self._master, self._offer = master, offer
        self._dominance = Dominance(problem, every, level)

    def work_on(self, node: Node, until: float) -> None:
        """Split a leaf, and bound both sides."""
        assert node.bounded is not None
        lp = node.bounded.lp or self._master.solve(node.sub)
        if lp is not None:
            self._offer_whole(node.sub, lp)
        branch = None if lp is None else self._branch(node.sub, lp)
        if branch is None:
            self.settle(node)
            return
        start, bound, depth = node.bounded, node.bound, node.depth + 1
        low, high = (
            Node(sub, bound, depth, bounded=self._bounded(sub, start, until))
            for sub in branch.sides
        )
        self.split(node, branch, (low, high))

    def _bounded(self, sub: Subproblem, parent: Bounded, until: float) -> Bounded:
        start = Bounded(self.relaxation.evaluate(sub, parent.point), parent.point)
        known = self.relaxation.problem.first_prices(sub) if sub.level else None
        if known is not None and not is_met(start, self.lower()):
            point = DualPoint(*known)
            start = min(
                start,
                Bounded(self.relaxation.evaluate(sub, point), point),
                key=lambda bounded: bounded.value.bound,
            )
        bounded = generate_columns(
            self.relaxation, self._master, sub, start, self.lower(), until=until
        )
        if bounded.lp is not None:
            self._offer_whole(sub, bounded.lp)
        return bounded

    def _offer_whole(self, sub: Subproblem, lp: LpSolution) -> None:
        """Offer the solution of a program if it is a placement."""
        times = np.rint(lp.amounts).astype(np.int64)
        if lp.complete and (np.abs(lp.amounts - times) < _INTEGRAL).all():
            started = np.repeat(np.arange(len(times)), times).tolist()
            kinds = Kinds(self.relaxation.problem, sub)
            self._offer(kinds.placed(lp.columns[k] for k in started))

    def _branch(self, sub: Subproblem, lp: LpSolution) -> Branch | None:
        """Split the least decided start, or else the places of the request that is most spread.

        For requests that share columns, the branch is whether more of them start than in the
        program, rounded down.
        """
        problem, kinds = self.relaxation.problem, Kinds(self.relaxation.problem, sub)
        starts = np.zeros(len(problem.names))
        spread: dict[int, float] = {}
        for candidate, amount in zip(lp.columns, lp.amounts.tolist(), strict=True):
            q = candidate.request_idx
            starts[q] += amount
            part = amount % 1
            if _INTEGRAL < part < 1 - _INTEGRAL:
                spread[q] = spread.get(q, 0.0) + part * (1 - part)
        whole = np.floor(starts + _INTEGRAL).astype(np.int64)
        worth = np.minimum(starts - whole, 1 - (starts - whole)) * problem.values
        undecided = np.flatnonzero(kinds.least < kinds.most).tolist()
        fractional = [q for q in undecided if starts[q] - whole[q] > _INTEGRAL]
        follow = [q for q in fractional if q in problem.worthless]  # starts and places decide these
        fractional = [q for q in fractional if q not in problem.worthless]
        if fractional:
            q = max(fractional, key=lambda q: (worth[q], -q))
            return split_start(problem, sub, kinds.members[q][whole[q]], self._dominance)
        for most in sorted(spread, key=lambda q: (-spread[q], q)):
            if kinds.least[most] < whole[most]:
                last = kinds.members[most][whole[most] - 1]
                return split_start(problem, sub, last, self._dominance)
            mine = [
                (float(amount), candidate)
                for candidate, amount in zip(lp.columns, lp.amounts, strict=True)
                if candidate.request_idx == most
            ]
            branch = split_cover(problem, sub, mine, self.groups)
            if branch is not None:  # else its candidates all use the same rows
                return branch
        for q in follow:
            return split_start(problem, sub, kinds.members[q][whole[q]], self._dominance)
        return None


class ProgramTree(BestFirstTree):
    """A tree of a problem's own linear programs (`PackingProblem.program`), of any level."""

    def __init__(self, relaxation: Relaxation, root: Root, lower: Callable[[], int]) -> None:
        own, problem = root.bounded.value.certified, relaxation.problem
        top = Node(root.sub, NOTHING if own is None else own, bounded=root.bounded)
        super().__init__(relaxation.filling(None), top, lower, room=root.room)
        self._dominance = Dominance(problem, frozenset(range(len(problem.names))), root.sub.level)

    def work_on(self, node: Node, until: float) -> None:
        """Split a leaf where its program is undecided, and bound both sides."""
        problem, sub, start = self.relaxation.problem, node.sub, node.bounded
        assert start is not None
        if node.amounts is None:
            program = problem.program(sub)
            node.amounts = [] if program is None else _places(program)
        named = {(cover.request_idx, cover.row) for cover in sub.covers}
        new = (own for _, own in node.amounts if own not in named)
        q, row = next(new, (None, 0))
        if q is None or q in sub.excluded:
            self.settle(node)
            return
        depth, bound = node.depth + 1, node.bound
        if q not in sub.forced:  # branches on rows are of requests that start
            branch = split_start(problem, sub, q, self._dominance)
            out, into = branch.sides
            value = Bounded(self.relaxation.evaluate(out, start.point), start.point)
            sides = Node(out, bound, depth, bounded=value), Node(into, bound, depth, bounded=start)
            sides[1].amounts = node.amounts
        else:
            branch = cover_branch(problem, sub, [q], row)
            low, high = (self._bounded(Node(side, bound, depth), start) for side in branch.sides)
            sides = low, high
        self.split(node, branch, sides)

    def _bounded(self, node: Node, parent: Bounded) -> Node:
        """Bound a new leaf by the better of its own prices and those of its parent."""
        evaluate, problem = self.relaxation.evaluate, self.relaxation.problem
        node.bounded = Bounded(evaluate(node.sub, parent.point, 1), parent.point)
        program = None if is_met(node.bounded, self.lower()) else problem.program(node.sub)
        if program is not None:
            node.amounts = _places(program)
            point = DualPoint(program.prices, program.multipliers)
            own = Bounded(evaluate(node.sub, point, 1), point)
            node.bounded = min(own, node.bounded, key=lambda bounded: bounded.value.bound)
        return node


def _places(program: Program) -> list[tuple[float, Any]]:
    return [(part, (q, row)) for part, q, row in program.undecided]
