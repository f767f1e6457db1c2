"""The least cost of thresholds that are not impossible: one search for all patterns.

The cost of eq. (6) is a sum over steps of prices times the largest hops of each. A *threshold* per
step bounds those from above. The search keeps boxes of thresholds, takes the cheapest low corner,
and asks an *oracle*, the plug-in of a pattern, whether it is impossible. If so, the *nogood* is
raised as long as it stays impossible, and everything under it is cut off the boxes. The oracle
solves a linear program over leaves in states; if its solution has parts of leaves, the search
branches: no further leaf is in a state, or one more than assumed so far. Every refutation is a tree
of integers that `certify` follows without a program (docs/proofs/tree.md).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from topoplace import clock
from topoplace.placement.switches.exact.boxes import Boxes, Corners
from topoplace.placement.switches.exact.job import Job
from topoplace.result.tree import Empty as EmptyDocument
from topoplace.result.tree import StateBranch, ThresholdNogood, ThresholdTree
from topoplace.types import BoolArray, FloatArray, IntArray

_MOST_DEPTH = 150
_MOST_PARTS = 10_000
"""Most branches on a path, and parts of a certificate: a checker needs half a minute for these."""

_WHOLE = 1e-4
_LIFT_SECONDS = 0.02
"""The time for raising a tree in addition to three times the time to find it."""


# ---- Assumptions, refutations, and what oracles answer ---------------------------------------


class Guess(NamedTuple):
    """The assumptions on leaves: the number in a state, and the states with no others."""

    forced: IntArray
    done: BoolArray

    @property
    def is_empty(self) -> bool:
        """Whether nothing is assumed."""
        return not (self.forced.any() or self.done.any())

    def branches(self, state: int) -> tuple[Guess, Guess]:
        """Return a guess with no leaf more in a state, and with one more."""
        done, forced = self.done.copy(), self.forced.copy()
        done[state] = True
        forced[state] += 1
        return Guess(self.forced, done), Guess(forced, self.done)


def no_guess(num_states: int) -> Guess:
    """Return the guess that assumes nothing."""
    return Guess(np.zeros(num_states, dtype=np.int64), np.zeros(num_states, dtype=np.bool_))


class Leaf(ABC):
    """Integers that rule out thresholds under a guess."""

    @abstractmethod
    def document(self, number: dict[int, int]) -> ThresholdTree:
        """Return them as a certificate states them, hops by their numbers."""


@dataclass(frozen=True)
class Empty(Leaf):
    """The states left cannot hold all ranks."""

    def document(self, number: dict[int, int]) -> ThresholdTree:
        """Return it as a certificate states it."""
        return EmptyDocument()


@dataclass(frozen=True)
class Branch:
    """Refutations for no leaf more in a state, and for one more."""

    state: int
    without: Proof
    more: Proof


Proof = Leaf | Branch


def document_of(proof: Proof, number: dict[int, int]) -> ThresholdTree:
    """Return a tree as a certificate states it, hops by their numbers."""
    if isinstance(proof, Leaf):
        return proof.document(number)
    without, more = document_of(proof.without, number), document_of(proof.more, number)
    return StateBranch(state=proof.state, without=without, more=more)


def num_parts(proof: Proof) -> int:
    """Return how many branches and leaves a tree has."""
    return 1 if isinstance(proof, Leaf) else 1 + num_parts(proof.without) + num_parts(proof.more)


@dataclass(frozen=True)
class Mix:
    """A solution of a program.

    Attributes
    ----------
    leaves
        Leaves per state, perhaps in parts; None if the oracle counts none.
    least
        The least thresholds that it has, by hops.
    state
        A state to branch on although all leaves are whole.
    """

    leaves: FloatArray | None
    least: IntArray
    state: int | None = None

    @property
    def counts(self) -> IntArray | None:
        """Leaves per state, if all are whole and there is nothing to branch on."""
        if self.leaves is None or self.state is not None:
            return None
        counts = np.rint(self.leaves).astype(np.int64)
        return counts if np.abs(self.leaves - counts).max() < _WHOLE else None

    def state_to_branch(self, ranks: IntArray) -> int:
        """Return a state with a part of a leaf.

        Small counts first: they separate others, and there are rarely many at once.
        """
        assert self.leaves is not None
        if self.state is not None:
            return self.state
        part = np.abs(self.leaves - np.rint(self.leaves))
        return int(np.argmax(part * (1 + ranks.max() - ranks)))


class Oracle(ABC):
    """The interface of a pattern for its thresholds.

    Attributes
    ----------
    ranks
        Per state.
    decide_programs, lift_programs
        Programs that may decide about the low corner of a box, and about each threshold that a
        refutation is raised to.
    """

    ranks: IntArray
    decide_programs: int
    lift_programs: int

    @abstractmethod
    def solve(self, thresholds: IntArray, guess: Guess, deadline: float) -> Leaf | Mix | None:
        """Return why thresholds are impossible, or a solution; None if neither is found."""

    @abstractmethod
    def holds(self, leaf: Leaf, thresholds: IntArray, guess: Guess) -> bool:
        """Tell whether the integers of a leaf rule out thresholds."""

    def raised(
        self, leaf: Leaf, at: IntArray, top: IntArray, order: IntArray, possible: Corners
    ) -> IntArray | None:
        """Return thresholds by number raised as far as a leaf rules them out, in an order.

        None are tried above some that are possible. None if the oracle knows no faster way than
        to try.
        """
        return None


class Decider:
    """Decides about thresholds with the programs of an oracle and branches on states."""

    def __init__(self, oracle: Oracle) -> None:
        self.oracle = oracle
        self._left, self._deadline = 0, 0.0

    def decide(self, thresholds: IntArray, programs: int, deadline: float) -> Proof | Mix | None:
        """Return why thresholds are impossible, or a solution; None if neither is found.

        After a number of programs, leaves of a solution may be in parts.
        """
        self._left, self._deadline = programs, deadline
        return self._decided(thresholds, no_guess(len(self.oracle.ranks)), 0)

    def _decided(self, thresholds: IntArray, guess: Guess, depth: int) -> Proof | Mix | None:
        self._left -= 1
        found = self.oracle.solve(thresholds, guess, self._deadline)
        if not isinstance(found, Mix) or found.leaves is None or found.counts is not None:
            return found
        if self._left <= 0 or depth == _MOST_DEPTH or clock.now() > self._deadline:
            return found
        state = found.state_to_branch(self.oracle.ranks)
        arms = guess.branches(state)
        proofs: dict[int, Proof] = {}
        nearer = int(found.leaves[state] % 1 > 0.5)  # if there is a solution, rather there
        for arm in (nearer, 1 - nearer):
            result = self._decided(thresholds, arms[arm], depth + 1)
            if result is None or isinstance(result, Mix):
                return result
            proofs[arm] = result
        return Branch(state, proofs[0], proofs[1])

    def refutes(self, proof: Proof, thresholds: IntArray, guess: Guess | None = None) -> bool:
        """Tell whether a tree rules out thresholds, in integers."""
        guess = guess or no_guess(len(self.oracle.ranks))
        if isinstance(proof, Leaf):
            return self.oracle.holds(proof, thresholds, guess)
        without, more = guess.branches(proof.state)
        return self.refutes(proof.without, thresholds, without) and self.refutes(
            proof.more, thresholds, more
        )


# ---- The search ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Nogood:
    """Thresholds by number that are impossible, and why; None if only CP-SAT has shown it."""

    at: IntArray
    proof: Proof | None


@dataclass(frozen=True)
class Open:
    """Thresholds that are not known to be impossible, by number, and their cost.

    `counts` are whole leaves per state that a program has there, if any were found.
    """

    cost: int
    at: IntArray
    counts: IntArray | None


class ThresholdSearch:
    """Finds a lower bound of the cost of a job.

    Thresholds are numbers of `job.values`, one per step. What is impossible stays so with lower
    thresholds, what is possible with higher ones.

    Parameters
    ----------
    oracle
        The plug-in of the job's pattern.
    to_beat
        The cost of an allocation, in units of 1 / (100 `job.scale`); it may be lowered.

    Attributes
    ----------
    nogoods
        Thresholds that are impossible.
    num_proven
        How many of them, the first ones, prove the bound; None if all are needed.
    """

    def __init__(
        self, job: Job, oracle: Oracle, to_beat: int, deadline: float, seed: int = 0
    ) -> None:
        num = len(job.prices)
        self.job, self.to_beat, self.deadline = job, to_beat, deadline
        self.nogoods: list[Nogood] = []
        self.num_proven: int | None = None
        self.rng = np.random.default_rng(seed)
        self._decider = Decider(oracle)
        self._top = np.full(num, len(job.values) - 1)
        self._boxes = Boxes(job)
        self._impossible, self._possible = Corners(num), Corners(num)

    def cost(self, at: IntArray) -> int:
        """Return the cost of thresholds by number."""
        return int(self.job.prices @ self.job.values[at])

    def begin(self) -> None:
        """Put what there is into boxes."""
        self._boxes.add(np.zeros_like(self._top), self._top)

    def open_thresholds(self) -> Iterator[Open]:
        """Yield thresholds that are not ruled out, cheapest first, while they cost less.

        The cost of the first bounds that of all allocations.
        """
        self.begin()
        while True:
            found = self._boxes.cheapest(self._impossible, self.to_beat, self.deadline)
            if found is None:
                return
            cost, low, high = found
            if not self._goes_on(cost):
                continue
            counts = None
            if clock.now() < self.deadline:
                decided = self._decided(low, high)
                if isinstance(decided, Nogood):
                    self.add(decided)
                    continue
                counts = decided
            if self.num_proven is None:
                self.num_proven = len(self.nogoods)
            yield Open(cost, low, counts)
            self._impossible.add(low)  # not because it is: the next one is wanted

    def _goes_on(self, cost: int) -> bool:
        """Do what is due between two boxes; return whether the cheapest is still to be cut."""
        return True

    def _noticed(self, least: IntArray) -> None:
        """Take notice of thresholds that programs have a solution at."""

    def rule_out(self, found: Open) -> None:
        """Record that open thresholds are impossible, as CP-SAT has shown."""
        self.num_proven = None
        self.nogoods.append(Nogood(found.at, None))

    def add(self, nogood: Nogood) -> None:
        """Take notice of a nogood."""
        self._impossible.add(nogood.at)
        self.nogoods.append(nogood)

    def _decided(self, low: IntArray, high: IntArray) -> Nogood | IntArray | None:
        """Return a nogood above the low corner of a box, else whole leaves per state if found."""
        begin, programs = clock.now(), self._decider.oracle.decide_programs
        found = self._decider.decide(self.job.values[low], programs, self.deadline)
        if isinstance(found, Leaf | Branch):
            return self._lifted(Nogood(low, found), high, clock.now() - begin)
        return None if found is None else found.counts

    def test(self, at: IntArray) -> Nogood | None:
        """Return why thresholds are impossible by a program or a few, or None."""
        if self._possible.below(at):
            return None
        programs = self._decider.oracle.lift_programs
        found = self._decider.decide(self.job.values[at], programs, self.deadline)
        if isinstance(found, Leaf | Branch):
            return Nogood(at, found)
        least = at if found is None else np.searchsorted(self.job.values, found.least)
        self._possible.add(least)
        self._noticed(least)
        return None

    def _lifted(self, nogood: Nogood, high: IntArray, seconds: float) -> Nogood:
        """Return a nogood as large as programs allow within a high corner.

        Beyond that, where it serves other boxes, by its integers only. The steps come in any
        order, so that nogoods differ.
        """
        end = self.deadline
        if isinstance(nogood.proof, Branch):
            end = min(end, clock.now() + _LIFT_SECONDS + 3 * seconds)
        order = self.order()
        nogood = self._within(nogood, high, order, end)
        # a step that may be as high as can be splits no box
        first = order[np.argsort((high - nogood.at)[order], kind="stable")]
        for steps, at_once in ((first, True), (order, False)):
            for step in steps.tolist():
                nogood = self._lifted_step(nogood, high, order, step, end, at_once=at_once)
        return self._within(nogood, self._top, order, end)

    def _lifted_step(
        self,
        nogood: Nogood,
        high: IntArray,
        order: IntArray,
        step: int,
        end: float,
        *,
        at_once: bool,
    ) -> Nogood:
        """Return a nogood with one step as high as programs allow, or else at its high or not."""
        top = int(high[step])
        while clock.now() < end:
            bottom = int(nogood.at[step])
            top = self._possible.ceiling(nogood.at, step, top)
            if bottom >= top or (at_once and top < high[step]):
                break
            at = nogood.at.copy()
            at[step] = top if at_once else (bottom + top + 1) // 2
            found = self.test(at)
            if found is not None:
                nogood = self._within(found, high, order, end)
            elif at_once:
                break
            else:
                top = int(at[step]) - 1
        return nogood

    def _within(self, nogood: Nogood, high: IntArray, order: IntArray, end: float) -> Nogood:
        """Return a nogood raised by its own integers."""
        proof, at = nogood.proof, nogood.at.copy()
        assert proof is not None
        if isinstance(proof, Leaf):
            found = self._decider.oracle.raised(proof, at, high, order, self._possible)
            if found is not None:
                return Nogood(found, proof)
        for step in order.tolist():
            top = self._possible.ceiling(at, step, int(high[step]))
            number = top
            while at[step] < top and clock.now() < end:
                trial = at.copy()
                trial[step] = number
                if self._decider.refutes(proof, self.job.values[trial]):
                    at = trial
                else:
                    top = number - 1
                number = (int(at[step]) + top + 1) // 2
        return Nogood(at, proof)

    def order(self) -> IntArray:
        """Return the steps in any order, except those of a chain from the last to the first.

        Thresholds ascend along a chain, so that none counts beyond the one after it.
        """
        order = self.rng.permutation(len(self._top))
        for chain in self.job.chains:
            there = np.flatnonzero(np.isin(order, chain))
            order[there] = chain[::-1]
        return order


def certificate_of(
    job: Job, nogoods: Sequence[Nogood], num: int | None = None
) -> list[ThresholdNogood] | None:
    """Return the first nogoods, without those under others, as a certificate states them.

    None if that is too long, or if only CP-SAT has shown that some thresholds are impossible.
    """
    corners = Corners(len(job.prices))
    for nogood in nogoods[:num]:
        corners.add(nogood.at)
    number = {value: n for n, value in enumerate(job.values.tolist())}
    documents: list[ThresholdNogood] = []
    parts = 0
    for own, nogood in enumerate(nogoods[:num]):
        above = corners.no_less(nogood.at)
        same = (corners.all[above] == nogood.at).all(axis=1)
        if not same.all() or above[0] != own:
            continue
        parts += 0 if nogood.proof is None else num_parts(nogood.proof)
        if nogood.proof is None or parts > _MOST_PARTS:
            return None
        proof = document_of(nogood.proof, number)
        documents.append(ThresholdNogood(at=nogood.at.tolist(), proof=proof))
    return documents
