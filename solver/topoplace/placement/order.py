"""Who starts in an order, on any machine: one request after the other, each with a proof.

A request starts if it fits alongside those before it that do, wherever these are. With a
reservation for the first that waits, others have to leave room for it, too (docs/proofs/order.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from topoplace.packing.budget import LATER_WORK, Budget
from topoplace.packing.problem import PackingProblem, Residual, fits
from topoplace.packing.search import Found, Search
from topoplace.packing.twice import Times
from topoplace.result.certificate import (
    Before,
    Certificate,
    InOrder,
    Leaf,
    LeafRef,
    Reserved,
    SharedLeaves,
    Together,
    Wait,
)
from topoplace.snapshot.schema import Order, Snapshot
from topoplace.solving import Bound, Options, Outcome

_WHO_STARTS = 0.75
"""Share of the budget to decide who starts; the rest is for the later levels."""

_OF_THE_REST = 0.25
"""Share of what is left of that for one request, unless it is among the last."""


_AT_ONCE = 0.5
"""Seconds for a search that begins with a placement of all requests but one."""


class Later(Protocol):
    """A packing whose jobs end, as reservations see it."""

    def ends(self, started: Sequence[int]) -> list[int]:
        """Return in how many seconds running jobs and some requests end, ascending, each once."""

    def at(self, seconds: int | None, alone: int) -> PackingProblem:
        """Return the packing of now and then, when alone a request takes what it wants.

        None stands for the time at which all have ended that have an end.
        """

    def solution(self, packing: PackingProblem, placement: Sequence[Any]) -> dict[int, Any]:
        """Return where requests are, by their number, of a placement of one of these packings."""

    def candidates(self, packing: PackingProblem, solution: Mapping[int, Any]) -> list[Any]:
        """Return requests in their places as candidates of one of these packings."""

    def answer(self, solution: dict[int, Any]) -> Any:
        """Return requests in their places as a solution of the problem."""

    def where(self, packing: PackingProblem, q: int, place: Any) -> dict[str, Any]:
        """Return where a request of a packing is: fields of `Reserved`."""


class Ends:
    """When running jobs and requests end by their limits.

    Parameters
    ----------
    requests
        The requests of the problem by name, in its order.
    slack
        Seconds by which requests last longer than their limits, if they have one.
    """

    def __init__(self, snapshot: Snapshot, requests: Sequence[str], slack: int = 0) -> None:
        self._snapshot = snapshot
        walltime = {request.id: request.walltime for request in snapshot.queue}
        own = [walltime[name] for name in requests]
        self._lasts = [None if seconds is None else max(1, seconds) + slack for seconds in own]

    def ends(self, started: Sequence[int]) -> list[int]:
        """Return in how many seconds running jobs and some requests end, ascending, each once."""
        running = [job.ends for job in self._snapshot.running]
        every = [*running, *(self._lasts[q] for q in started)]
        return sorted({end for end in every if end is not None})

    def snapshot_at(self, seconds: int | None) -> Snapshot:
        """Return the snapshot with the running jobs that are still there at a time."""
        lasting = [job for job in self._snapshot.running if _lasts(job.ends, seconds)]
        return self._snapshot.model_copy(update={"running": lasting})

    def times(self, q: int, seconds: int | None, alone: int) -> Times:
        """Return when a request is there, if one is placed at a time alone."""
        return Times(q != alone, q == alone or _lasts(self._lasts[q], seconds))


def _lasts(end: int | None, seconds: int | None) -> bool:
    return end is None or (seconds is not None and end > seconds)


@dataclass
class Queue:
    """Requests of a packing, and who of them starts so far."""

    packing: PackingProblem
    budget: Budget
    seed: int
    started: list[int] = field(default_factory=list)
    placement: list[Any] = field(default_factory=list)
    _known: dict[Any, Together] = field(default_factory=dict)

    def tried(self, q: int) -> Together | None:
        """Start a request if it fits; else return the proof that it does not, if there is one."""
        more = self.packing.with_one_more(self.placement, q)
        if more is not None:
            self.start(q, more)
            return None
        kind = self.packing.kinds[q]
        if kind in self._known:
            return self._known[kind]
        alone = self.packing.with_one_more([], q) is None
        beside = [] if alone else self.started
        found, rest = self._searched([*beside, q], self.placement)
        if found.is_answer:
            if beside == self.started:
                self.start(q, rest.together(found.placement))
            return None
        certificate = _proof(found, rest.problem)
        if certificate is None:
            return None
        own = Together(beside=[self.packing.names[o] for o in beside], certificate=certificate)
        if _names_nobody(certificate):
            self._known[kind] = own
        return own

    def start(self, q: int, placement: list[Any]) -> None:
        """Start a request; the placement has it, and all that started before."""
        self.started = sorted([*self.started, q])
        self.placement = placement

    def _searched(self, kept: Sequence[int], start: Sequence[Any] | None) -> tuple[Found, Residual]:
        """Look for a placement in which some requests all start.

        Most are settled at once, from a placement of all others. What is not gets the placements of
        heuristics, and more time.
        """
        rest = residual(self.packing, kept)
        whole = int(rest.problem.values.sum())
        left = _OF_THE_REST * max(0.0, self.budget.end - self.budget.now())

        def found(seconds: float, start: Sequence[Any] | None) -> Found:
            return Search(
                rest.problem,
                self.budget.within(seconds),
                seed=self.seed,
                start=start,
                floors={0: whole},
                num_levels=1,
            ).run()

        if start is not None:
            here = rest.here(c for c in start if c.request_idx in rest.kept)
            first = found(min(_AT_ONCE, left), here)
            if first.is_answer or _proof(first, rest.problem) is not None:
                return first, rest
        return found(left, None), rest

    def together(self, kept: Sequence[int]) -> Certificate | bool:
        """Start some requests at once; else return the proof that they do not fit, or False."""
        found, rest = self._searched(kept, None)
        if found.is_answer:
            self.started, self.placement = sorted(kept), rest.together(found.placement)
            return True
        return _proof(found, rest.problem) or False


def residual(packing: PackingProblem, kept: Iterable[int]) -> Residual:
    """Return the problem of some requests alone."""
    own = tuple(sorted(kept))
    return Residual(packing.left_by([], own), (), 0, own)


def _proof(found: Found, problem: PackingProblem) -> Certificate | None:
    """Return the proof that not all requests of a problem start, if a search found one."""
    bound = found.bounds[0] if found.bounds else None
    short = bound is not None and bound.value < int(problem.values.sum())
    return bound.certificate if bound is not None and short else None


def _names_nobody(certificate: Certificate) -> bool:
    """Return whether a certificate is as true of a request of the same kind."""
    if isinstance(certificate, SharedLeaves):
        return not certificate.alike and isinstance(certificate.tree, Leaf | LeafRef)
    return isinstance(certificate, Leaf)


class InOrderSearch:
    """Decides who starts in the order of a snapshot.

    Attributes
    ----------
    queue
        Who starts so far.
    waits
        The requests that wait, with their proofs.
    """

    def __init__(
        self,
        packing: PackingProblem,
        snapshot: Snapshot,
        budget: Budget,
        seed: int,
        solution_of: Callable[[list[Any]], Any],
        later: Later | None,
    ) -> None:
        self._solution_of = solution_of
        self._packing, self.budget, self._seed = packing, budget, seed
        priority = {request.id: request.priority for request in snapshot.queue}
        every = [q for q, name in enumerate(packing.names) if name in priority]
        self.order = sorted(every, key=lambda q: -priority[packing.names[q]])
        self._later = later if snapshot.order is Order.BACKFILL else None
        self._window = snapshot.window
        self.queue = Queue(packing, budget, seed)
        self.waits: list[Wait] = []
        self._reserved: Reserved | None = None
        self._alone: int | None = None

    def run(self, report: Callable[[], None]) -> None:
        """Decide on one request after the other, as far as the budget goes.

        `report` is called whenever more is known.
        """
        for q in self.order:
            if self.budget.is_over():
                return
            self.decided(q)
            report()

    def decided(self, q: int) -> bool | None:
        """Return whether a request starts alongside those that do so far; None if it is open.

        The first that waits gets its reservation.
        """
        proof = self.queue.tried(q)
        if proof is None:
            return True if q in self.queue.started else None
        looks = self._later is not None and self._alone is None
        if not looks or not self._reserve(q, proof):
            self.waits.append(Wait(request=self._packing.names[q], **dict(proof)))
        return False

    def _reserve(self, q: int, now: Together) -> bool:
        """Find when a request starts at the earliest, or prove that it cannot within the window.

        Returns
        -------
        bool
            Whether there is more to say of it than that it waits.
        """
        assert self._later is not None
        beside = list(self.queue.started)
        names, name = [self._packing.names[o] for o in beside], self._packing.names[q]

        def at(seconds: int | None) -> tuple[Certificate | bool, Queue]:
            assert self._later is not None
            then = Queue(self._later.at(seconds, q), self.budget, self._seed)
            return then.together([*beside, q]), then

        ok, found = at(self._window)[0], cast(Queue | None, None)
        ends, first = self._later.ends(beside), -1
        if self._window is not None:
            ends = [end for end in ends if end <= self._window]
        if ok is not True:
            if ok is False:
                return False
            self.waits.append(Wait(request=name, beside=names, certificate=ok, ever=True))
            return True
        last, proofs = len(ends) - 1, dict[int, Certificate]()
        while last - first > 1:  # it fits when `last` has ended, and not when `first` has
            middle = (first + last) // 2
            ok, then = at(ends[middle])
            if ok is True:
                last, found = middle, then
                continue
            first = middle
            if ok is not False:
                proofs[middle] = ok
        if found is None and ends:  # those behind it may last longer than the last of these
            ok, then = at(ends[last])
            found = then if ok is True else None
        if found is None:
            return False
        before = None
        if first in proofs:
            before = Before(at=ends[first], beside=names, certificate=proofs[first])
        place = self._later.solution(found.packing, found.placement)[q]
        own = self._later.where(found.packing, q, place)
        self._reserved = Reserved(request=name, at=ends[last], now=now, before=before, **own)
        self.queue, self._alone = found, q
        return True

    @property
    def reserved(self) -> Reserved | None:
        """The reservation of the first that waits, where it leaves room for all that start."""
        if self._later is None or self._alone is None or self._reserved is None:
            return None
        found = self._later.solution(self.queue.packing, self.queue.placement)
        own = self._later.where(self.queue.packing, self._alone, found[self._alone])
        return self._reserved.model_copy(update=own)

    @property
    def started(self) -> set[int]:
        """The requests that start now."""
        return {*self.queue.started} - {self._alone}

    @property
    def solution(self) -> Any:
        """Where the requests are that start."""
        if self._later is None or self._alone is None:
            return self._solution_of(self.queue.placement)
        return self._later.answer(self._places)

    @property
    def _places(self) -> dict[int, Any]:
        """Where the requests are that start, by their number, if there is a reservation."""
        assert self._later is not None
        found = self._later.solution(self.queue.packing, self.queue.placement)
        return {q: place for q, place in found.items() if q != self._alone}

    @property
    def starts(self) -> list[Any]:
        """The candidates of the requests that start, of the packing of now."""
        if self._later is None or self._alone is None:
            return self.queue.placement
        return self._later.candidates(self._packing, self._places)

    def offer(self, placement: list[Any]) -> None:
        """Take a placement of the requests that start, if it leaves room for the reservation."""
        if self._later is None or self._alone is None:
            self.queue.placement = placement
            return
        places = self._later.solution(self._packing, placement)
        there = self._later.candidates(self.queue.packing, places)
        more = self.queue.packing.with_one_more(there, self._alone)
        if more is not None and fits(self.queue.packing, more):
            self.queue.placement = more

    @property
    def bound(self) -> tuple[int, InOrder]:
        """The value of those that start, and of all from the first undecided one on; the proof."""
        names, values = self._packing.names, self._packing.values
        started = self.started
        decided = {wait.request for wait in self.waits}
        never = {wait.request for wait in self.waits if wait.ever}
        total, is_open, waiting = 0, False, False
        for q in self.order:
            name = names[q]
            if q not in started:
                if q == self._alone:
                    is_open |= not self._is_earliest(started)
                else:
                    lacks = self._later is not None and not waiting and name not in never
                    is_open |= name not in decided or lacks
                waiting |= name not in never
            total += int(values[q]) if q in started or is_open else 0
        return total, InOrder(waits=self.waits, reserved=self.reserved)

    def _is_earliest(self, started: set[int]) -> bool:
        """Return whether it is proven that there is no earlier time for the reservation."""
        assert self._reserved is not None
        assert self._later is not None
        before = [q for q in self.order[: self.order.index(self._alone or 0)] if q in started]
        earlier = [end for end in self._later.ends(before) if end < self._reserved.at]
        return self._reserved.before is not None or not earlier


def solved_in_order(
    packing: PackingProblem,
    snapshot: Snapshot,
    options: Options,
    budget: Budget,
    solution_of: Callable[[list[Any]], Any],
    later: Later | None,
) -> Outcome:
    """Decide who starts, then improve the later levels among placements of these requests."""
    deciding = budget.within(_WHO_STARTS * budget.length)
    search = InOrderSearch(packing, snapshot, deciding, options.seed, solution_of, later)

    def report() -> None:
        value, proof = search.bound
        started = sum(int(packing.values[q]) for q in search.started)
        options.report(search.solution, (started,), (Bound(value, proof),))
        options.say("in order", 0, None)

    report()
    search.run(report)
    rest = residual(packing, {*packing.worthless, *(c.request_idx for c in search.starts)})
    whole = int(rest.problem.values.sum())
    found = Search(
        rest.problem,
        budget,
        seed=options.seed,
        num_levels=1 if options.first_level else None,
        later_work=math.inf if packing.is_small else LATER_WORK,
        start=rest.here(search.starts),
        floors={0: whole},
    ).run()
    search.offer(rest.together(found.placement))
    value, proof = search.bound
    bounds: list[Bound | None] = [Bound(value, proof)]
    values = packing.values_of(search.starts).sum(axis=0).tolist()
    for level, b in enumerate(found.bounds[1:], 1):
        # a bound holds under the values of the levels before, which are worse if the placement
        # that reaches them leaves no room for the reservation
        held = search.reserved is None or values[1:level] == [*found.values][1:level]
        if b is None or not held:
            bounds.append(None)
        else:
            bounds.append(Bound(packing.reported(level, b.value), b.certificate))
    return Outcome(search.solution, bounds, budget.is_over(), first_level=options.first_level)
