"""A round of decisions in the order of the queue: a verdict on every request.

Each request is held against those before it that the scheduler started, wherever these are. Who
could not start alongside them, or would have delayed the reservation of the first that waits, waits
rightly (docs/proofs/order.md).
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from topoplace.certify.hierarchy.instance import read_instance, require_room
from topoplace.certify.report import RefusedError
from topoplace.formats.decisions import Decided, Taken
from topoplace.interrupts import is_asked
from topoplace.machine.hostlist import expand_host_list
from topoplace.packing.budget import Budget
from topoplace.placement.hierarchy.later import LaterOnHierarchy
from topoplace.placement.hierarchy.packing import HierarchyPacking
from topoplace.placement.hierarchy.problem import HierarchyProblem, Placed
from topoplace.placement.order import InOrderSearch, Queue
from topoplace.snapshot.held import (
    ELSEWHERE,
    FOR_NOW,
    PLANS,
    PREFERENCE,
    RESERVATION_END,
    RESERVATION_LATER,
    RESERVATIONS,
    WINDOW,
    hold_text,
    in_order,
    options_ahead,
)
from topoplace.snapshot.hierarchy_state import prepare_hierarchy
from topoplace.snapshot.schema import NodeSet, Order, Request
from topoplace.solving import Bound, Options, Outcome, result_of
from topoplace.study.audit.cases import Case
from topoplace.study.audit.judging import (
    FREE,
    Keep,
    Row,
    Standing,
    Verdict,
    ended_text,
    in_words,
    is_of_blocks,
    not_modelled,
    require_checked,
    started_in,
    under,
)

_LATER = frozenset((RESERVATION_END, RESERVATION_LATER))

_STEP = 60
"""Seconds: schedulers reckon in steps, and end a job before a reservation by one (Slurm's default).

Less than that is too little to say that a job was missed.
"""


def judge_in_order(
    case: Case,
    order: Order,
    options: Options,
    keep: Keep | None = None,
    contract: str | None = None,
) -> list[Row]:
    """Return a row for every request of a round, in the order of the queue.

    With a contract, on machines with block sizes, requests are held to it.

    Raises
    ------
    TopoplaceError
        If the checker does not confirm what is proven.
    """
    return _Round(case, order, options, contract if is_of_blocks(case) else None).rows(keep)


class _Round:
    def __init__(self, case: Case, order: Order, options: Options, contract: str | None) -> None:
        self._case, self._options = case, options
        under_it = (case.snapshot, {}) if contract is None else under(case, contract)
        held_to_it, self._refused = under_it
        self._doubt = next(iter(sorted(case.doubtful, key=self._place)), None)
        self._backfills = order is Order.BACKFILL
        if order is Order.BACKFILL and self._doubt is not None:
            order = Order.PRIORITY  # whose reservation it is that counts is not known
            self._hides = True
        else:
            self._hides = False
        self._snapshot = in_order(held_to_it, order)
        self._problem = HierarchyProblem(prepare_hierarchy(self._snapshot))
        self._faults = dict(case.broken)
        self._started = self._valid()
        self._order: Sequence[int] = ()
        self._all_held = True

    def _place(self, name: str) -> int:
        names = [request.id for request in self._case.snapshot.queue]
        return names.index(name) if name in names else len(names)

    def _valid(self) -> dict[int, Any]:
        """Return where the started requests are that keep the rules, by number."""
        instance, given = read_instance(self._snapshot), self._case.started
        fine: list[tuple[str, Taken]] = []
        for name, taken in given:
            if name in self._refused:
                continue
            try:
                fine += [(name, taken)] if [*started_in(instance, [(name, taken)])] else []
            except RefusedError as error:
                self._faults[name] = str(error)
        try:
            require_room(instance, [*started_in(instance, fine)])
        except RefusedError as error:
            self._faults |= {name: str(error) for name, _ in fine}
            fine = []
        numbers = {name: host for host, name in enumerate(self._problem.machine.host_names)}
        by_name = {request.id: q for q, request in enumerate(self._problem.requests)}
        return {
            by_name[name]: tuple(
                {numbers[host]: units for host, units in taken[part.name].items()}
                for part in self._problem.requests[by_name[name]].parts
            )
            for name, taken in fine
        }

    def rows(self, keep: Keep | None) -> list[Row]:
        """Return a row for every request, and hand over the result that proves them."""
        verdicts = dict(self._judged(keep))
        there = {*self._case.broken, *(name for name, _ in self._case.started)}
        for name, why in self._refused.items():
            started = name in there
            verdict = Verdict.INVALID if started else Verdict.RIGHTLY_WAITING
            verdicts[name] = Standing(verdict, why if started else None, jobs=(name,), reason=why)
        requests = {request.id: request for request in self._case.snapshot.queue}
        return [
            self._row(requests.get(name), name, verdicts)
            for name in dict.fromkeys([*requests, *self._case.held])
        ]

    def _judged(self, keep: Keep | None) -> Iterator[tuple[str, Standing]]:
        problem = self._problem
        packing = HierarchyPacking(problem)
        later = LaterOnHierarchy(problem) if self._snapshot.order is Order.BACKFILL else None
        budget = Budget(self._options.time_limit)
        search = InOrderSearch(
            packing, self._snapshot, budget, self._options.seed, packing.started, later
        )
        self._order = search.order
        placed = {c.request_idx: c for c in packing.candidates(self._started)}
        for q in search.order:
            name = packing.names[q]
            if name in self._faults:
                yield name, Standing(Verdict.INVALID, self._faults[name], jobs=(name,))
                continue
            if budget.is_over():
                why = f"not judged: {'interrupted' if is_asked() else 'time'}"
                yield name, self._of(Verdict.UNPROVEN, name, why)
                continue
            yield name, self._standing(search, packing, placed, q)
        value, proof = search.bound  # about who starts: where is the search's own choice
        outcome = Outcome(search.solution, [Bound(value, proof)])
        result = result_of(problem, outcome, "exact", self._options, 0.0)
        require_checked(self._snapshot, result)
        if keep is not None:
            keep((FREE, result))

    def _standing(
        self, search: InOrderSearch, packing: HierarchyPacking, placed: Mapping[int, Any], q: int
    ) -> Standing:
        """Return the verdict on a request that keeps its rules, or waits."""
        name, before = packing.names[q], copy.copy(search.queue)
        if q in placed and search.reserved is None:
            search.queue.start(q, [*search.queue.placement, placed[q]])
            return self._of(Verdict.STARTED, name)
        found = search.decided(q)
        if q in placed:
            return self._after_reservation(search, name, found)
        if found is not False:
            search.queue = before
            return self._as_they_are(search, q, proven=found is True)
        why = "no room alongside those before it"
        if search.reserved is not None:
            why += f" and the reservation of {search.reserved.request}"
            if search.reserved.request == name:
                why = f"reserved: it can start in {search.reserved.at:,} s"
        return self._of(Verdict.RIGHTLY_WAITING, name, why)

    def _after_reservation(self, search: InOrderSearch, name: str, fits: bool | None) -> Standing:
        """Return the verdict on a request that was started after one that has a reservation."""
        assert search.reserved is not None
        self._all_held &= fits is True  # otherwise what it has is free for those after it
        if fits is False and not self._delays(search, name):
            return self._of(Verdict.STARTED, name)
        if fits is False:
            why, window = f"it delays {search.reserved.request}", self._snapshot.window
            if window is not None and search.reserved.at > window - _STEP:
                why += f", which can start in {search.reserved.at:,} s, as the window ends"
                return self._of(Verdict.UNJUDGED, name, why)
            own = {request.id: request for request in self._snapshot.queue}
            plan, ends = own[search.reserved.request].planned, own[name].walltime
            if plan is not None and ends is not None and ends <= plan.at:
                return self._of(
                    Verdict.UNJUDGED, name, f"{why}, but not the scheduler's plan for it"
                )
            return self._of(Verdict.OUT_OF_TURN, name, why)
        return self._of(Verdict.UNPROVEN if fits is None else Verdict.STARTED, name)

    def _delays(self, search: InOrderSearch, name: str) -> bool:
        """Tell whether the reservation has no place within a step of its time next to a request.

        All that started up to this request are where they are.
        """
        assert search.reserved is not None
        names = [request.id for request in self._problem.requests]
        alone, last = names.index(search.reserved.request), self._order.index(names.index(name))
        up_to = {*self._order[: last + 1]}
        there = {q: placed for q, placed in self._started.items() if q in up_to}
        then = LaterOnHierarchy(self._problem).at(search.reserved.at + _STEP, alone)
        left = then.left_by(then.candidates(there), (alone,))
        return Queue(left, search.budget, self._options.seed).together([0]) is not True

    def _as_they_are(self, search: InOrderSearch, q: int, *, proven: bool) -> Standing:
        """Return the verdict on a request that waits though it may fit alongside those before it.

        It is missed if it fits with all that started where they are, and with the scheduler's plans
        for those before it. Else only other places or plans would have room for it.
        """
        name = self._problem.requests[q].id
        blocked = self._hides and self._place(self._doubt or "") < self._place(name)
        if not self._fits_beside(search, q, self._started):
            before = {*self._order[: self._order.index(q)]}
            higher = {k: placed for k, placed in self._started.items() if k in before}
            if not blocked and self._fits_beside(search, q, higher):
                why = "those after it that started have its room, and those before it leave some"
                return self._missed(search, q, why, higher)
            why = "no room alongside those that started"
            why += " and the plans" if self._planned(q) else ""
            if proven and not blocked and self._all_held:
                why += "; other places for them would leave room for it"
            return self._of(Verdict.RIGHTLY_WAITING, name, why)
        if blocked:
            why = f"{self._doubt} is before it, and what holds that one is not modelled"
            return self._of(Verdict.UNJUDGED, name, why)
        why = "it fits, with all that started where they are"
        return self._missed(search, q, why, self._started)

    def _missed(
        self, search: InOrderSearch, q: int, why: str, beside: Mapping[int, Placed]
    ) -> Standing:
        """Return the verdict on a request that fits, unless it may be in the way of a plan.

        That is so where the plans are not known for all that wait before it, and not the place of
        the reservation alone: because of one that is held, or because plans have whole nodes. Nor
        is it missed if it fits only where jobs ended meanwhile.
        """
        name, ended = self._problem.requests[q].id, self._case.ended
        if ended and not self._fits_beside(search, q, beside, [ended]):
            return self._of(Verdict.UNJUDGED, name, ended_text(self._case))
        planned = {request.id for request in self._snapshot.queue if request.planned is not None}
        before = [*self._order[: self._order.index(q)]] if self._backfills else []
        waits = [self._problem.requests[o].id for o in before if o not in self._started]
        unknown = next((other for other in waits if other not in planned), None)
        ahead = options_ahead(self._snapshot)
        whole = PLANS in ahead
        if unknown is not None and not (whole or self._hides):
            own = None if search.reserved is None else search.reserved.request
            others = [k for k in waits if k not in {own, *planned} and self._may_meet(k, name)]
            unknown = next(iter(others), None) if RESERVATIONS in ahead else None
        if unknown is None:
            return self._of(Verdict.MISSED, name, why)
        why = f"the scheduler's plan for {unknown} is not known"
        why += ", which may have its nodes" + (" as whole ones" if whole else "")
        return self._of(Verdict.UNJUDGED, name, why)

    def _may_meet(self, one: str, other: str) -> bool:
        """Tell whether two requests may have nodes in common."""
        own = {request.id: request for request in self._problem.state.requests}
        parts = [[part for way in own[name].ways for part in way] for name in (one, other)]
        if any(part.eligible is None for each in parts for part in each):
            return True
        pairs = itertools.product(
            *([p.eligible.mask for p in each if p.eligible] for each in parts)
        )
        return any(bool((a & b).any()) for a, b in pairs)

    def _planned(self, q: int) -> list[NodeSet]:
        """Return where requests before one are planned, before that one would end."""
        own = {request.id: request for request in self._snapshot.queue}
        ends = own[self._problem.requests[q].id].walltime
        found = []
        for other in self._order[: self._order.index(q)]:
            plan = own[self._problem.requests[other].id].planned
            waits = other not in self._started and plan is not None
            if plan is not None and waits and (ends is None or plan.at < ends + _STEP):
                found.append(plan.nodes)
        return found

    def _fits_beside(
        self,
        search: InOrderSearch,
        q: int,
        started: Mapping[int, Placed],
        without: Sequence[NodeSet] = (),
    ) -> bool:
        """Return whether a request fits with some that started in their places, and the plans.

        Without a plan, the reservation has a place beside them. It may not have nodes `without`
        which it is tried; then the reservation does not count.
        """
        plans = [*self._planned(q), *without]
        if not plans and search.reserved is not None:
            alone = [r.id for r in self._problem.requests].index(search.reserved.request)
            then = LaterOnHierarchy(self._problem, _STEP).at(search.reserved.at, alone)
            both = alone, q
            left = then.left_by(then.candidates(started), both)
            return Queue(left, search.budget, self._options.seed).together([0, 1]) is True
        packing = self._without(started, plans)
        return packing.with_one_more(packing.candidates(started), q) is not None

    def _without(self, started: Mapping[int, Placed], plans: Sequence[NodeSet]) -> HierarchyPacking:
        """Return the packing without what some that started leave of nodes that plans have.

        A scheduler such as Slurm plans whole nodes, no matter how much of them a job takes.
        """
        state, requests = self._problem.state, self._problem.requests
        used = np.zeros_like(state.free)
        for q, placed in started.items():
            for part, units in zip(requests[q].parts, placed, strict=True):
                for host, n in units.items():
                    used[host] += n * np.array(part.takes)
        free = state.free - used
        numbers = {name: host for host, name in enumerate(self._problem.machine.host_names)}
        for nodes in plans:
            free[[numbers[name] for name in expand_host_list(nodes) if name in numbers]] = 0
        return HierarchyPacking(HierarchyProblem(replace(state, free=free + used)))

    def _of(self, verdict: Verdict, name: str, why: str = "") -> Standing:
        apart = {PLANS, FOR_NOW, ELSEWHERE, PREFERENCE, RESERVATIONS, WINDOW}
        apart |= {*(() if self._backfills else _LATER)}
        ahead = not_modelled(self._snapshot, apart)
        if ahead and verdict in (Verdict.MISSED, Verdict.OUT_OF_TURN):
            verdict, why = Verdict.UNJUDGED, ahead
        return Standing(verdict, jobs=(name,), reason=why)

    def _row(self, request: Request | None, name: str, verdicts: Mapping[str, Standing]) -> Row:
        case, held = self._case, self._case.held.get(name, ())
        standing = verdicts.get(name)
        if standing is None:
            waits = request is not None and name not in case.doubtful
            verdict = Verdict.RIGHTLY_WAITING if waits else Verdict.UNJUDGED
            standing = self._of(verdict, name, hold_text(held))
        started = {*case.broken, *(own for own, _ in case.started)}
        outcome = Decided.STARTED if name in started or request is None else Decided.WAITING
        text = name if request is None else f"{name}: {in_words([request])}"
        return Row(case.snapshot.name, case.group, text, outcome, False, (), standing, None)
