"""The exact method: which requests start, where their ranks go, and the proofs."""

from __future__ import annotations

import importlib.metadata
import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from topoplace import clock
from topoplace.placement.switches.exact._annealing import Hops, exhaust
from topoplace.placement.switches.exact.binomial import doubles
from topoplace.placement.switches.exact.job import job_of
from topoplace.placement.switches.exact.requests import Answer, Placing, Room, least_cost
from topoplace.placement.switches.exact.starts import Choice, cheapest_choice, chosen, parts_of
from topoplace.placement.switches.problem import TreeProblem
from topoplace.result import Fraction as FractionModel
from topoplace.result.tree import ThresholdProof, ThresholdsCertificate
from topoplace.snapshot.hierarchy_state import HierarchyRequest
from topoplace.solving import Bound, Options, Outcome, register
from topoplace.types import IntArray

_SECONDS = 10.0
"""Per request, where no time limit is given."""

_SMALL_RANKS = 12
_SMALL_TRIES = 3_000_000
_SMALL_QUEUE = 6
_GRACE = 0.5
"""Seconds after the limit in which all assignments of few ranks may still be begun: it is the last
resort, and mostly over in some milliseconds."""

_LARGEST = 1 << 60


@register("allocation", "exact")
def exact(problem: TreeProblem, options: Options) -> Outcome:
    """Start the most priority-weighted nodes, then at the least total cost of eq. (6).

    Without a time limit the search stops ten seconds per request after its start.
    """
    return _Exact(problem, options).outcome()


class _Exact:
    """One solve; shares of the time limit say until when each part of it may run."""

    def __init__(self, problem: TreeProblem, options: Options) -> None:
        self.problem = problem
        self.options = options
        self.begin = clock.now()
        self.limit = options.time_limit
        if self.limit is None:
            self.limit = _SECONDS * max(1, len(problem.requests))
        self.placing = Placing(problem, options.seed)
        self.room = self.placing.room
        self.parts = parts_of(problem.state.machine, self.room.free)

    def outcome(self) -> Outcome:
        requests, placing = self.problem.requests, self.placing
        versions = {"ortools": importlib.metadata.version("ortools")}
        self.options.say("choice of requests")
        seed = self.options.seed
        most = chosen(requests, self.parts, self._left(0.2), seed=seed)
        nodes = Bound(Fraction(most.bound), most.certificate)
        served = placing.served()
        first = max(served, key=lambda leaves: (placing.worth(leaves), -placing.cost(leaves)))
        figures = (placing.worth(first), placing.cost(first))
        self.options.report(placing.nodes(first), figures, [nodes])
        self.options.say("bounds of each request", 1)
        if most.value < most.bound:
            # The cost's bound would have to hold for choices that are not known to exist.
            leaves = self._together(most, served, 0.9)
            return Outcome(placing.nodes(leaves), (nodes,), True, versions)
        alone = [self._alone(q) for q in range(len(requests))]
        bounds = [answer.bound if answer else Fraction(0) for answer in alone]
        choice = chosen(requests, self.parts, self._left(0.1), bounds, seed)
        if choice.value < most.value:  # the time was over before there was one
            choice = replace(most, total=choice.total)
        least = cheapest_choice(requests, bounds, int(self.room.free.sum()), most.value)
        value = max(choice.total, least or Fraction(0))
        if len(requests) == 1 and choice.started and alone[0] is not None:
            leaves = {0: alone[0].leaves}
        else:
            leaves = self._together(choice, served, 0.95)
        found = placing.cost(leaves)
        bound = Bound(value)
        if value < found:
            better, complete = self._all(most.value, found)
            leaves = better or leaves
            found = placing.cost(leaves)
            if complete:
                bound = Bound(found)
        if bound.value == value:
            bound = self._certified(value, most.value, alone)
        if not bound.value:
            bound = Bound(bound.value, ThresholdsCertificate(proofs=[]))
        hit = bound.value < found and self._left(1.0) < 0
        return Outcome(placing.nodes(leaves), (nodes, bound), hit, versions)

    def _together(
        self, choice: Choice, served: list[dict[int, IntArray]], share: float
    ) -> dict[int, IntArray]:
        """Return the best allocation found of several requests, no worse than those served."""
        placing = self.placing
        found = placing.place({q: self.parts[k] for q, k in choice.started.items()}, self._at(0.7))
        best = min(
            [found, *served], key=lambda leaves: (-placing.worth(leaves), placing.cost(leaves))
        )
        self.options.report(placing.nodes(best), [placing.worth(best), placing.cost(best)])
        self.options.say("allocations", 1)
        return placing.improved(best, self._at(share))

    def _at(self, share: float) -> float:
        """Return when a share of the limit is over."""
        assert self.limit is not None
        return self.begin + share * self.limit

    def _left(self, share: float) -> float:
        """Return the seconds left of a share of the limit."""
        return self._at(share) - clock.now()

    def _alone(self, q: int) -> Answer | None:
        """Return a request's best allocation and bound with the free nodes to itself."""
        requests = self.problem.requests
        request = requests[q]
        jobs = self.room.jobs(request.patterns, request.nodes) if request.intensive else []
        if not jobs:
            return None
        # Several requests are placed together after that, so their bounds get half the time.
        whole = 0.92 if len(requests) == 1 else 0.45
        begin = self._at(0.05 + whole * q / len(requests))
        end = self._at(0.05 + whole * (q + 1) / len(requests))
        # Where the search builds allocations itself, it needs less of a start.
        start = (end - begin) / (8 if all(map(doubles, jobs)) else 4)
        leaves = self.placing.good(q, self.room, begin + start)
        if leaves is None:
            return None
        if not jobs[0].steps:
            return Answer(leaves, Fraction(0), Fraction(0))
        return least_cost(jobs, leaves, end, self.options.seed)

    def _certified(self, value: Fraction, worth: int, answers: Sequence[Answer | None]) -> Bound:
        """Return the least sum of bounds of a choice of the value `worth`, with its proof.

        A bound without which the least sum is as large needs no proof.
        """
        requests, room = self.problem.requests, int(self.room.free.sum())
        bounds = [answer.bound if answer else Fraction(0) for answer in answers]
        if cheapest_choice(requests, bounds, room, worth) is None:
            return Bound(value)
        proofs: list[ThresholdProof] = []
        for q, answer in enumerate(answers):
            if answer is None or not answer.bound:
                continue
            less = [*bounds[:q], Fraction(0), *bounds[q + 1 :]]
            # With all of them started, no bound can be left out.
            some = worth < sum(request.value for request in requests) and self._left(1.0) > 0
            least = cheapest_choice(requests, less, room, worth) if some else None
            if least is not None and least >= value:
                bounds = less
                continue
            if answer.nogoods is None or len(self.problem.state.machine.roots) > 1:
                return Bound(value)
            bound = FractionModel.of(answer.bound)
            proofs.append(
                ThresholdProof(request=requests[q].id, bound=bound, nogoods=answer.nogoods)
            )
        return Bound(value, ThresholdsCertificate(proofs=proofs))

    def _all(self, value: int, cost: Fraction) -> tuple[dict[int, IntArray] | None, bool]:
        """Try every allocation of every choice of that value, if there are not too many.

        Returns
        -------
        The best one below the cost, if any, and whether none is better.
        """
        requests = self.problem.requests
        best = None
        if len(requests) > _SMALL_QUEUE:
            return best, False
        for picked in itertools.product((False, True), repeat=len(requests)):
            started = [q for q, starts in enumerate(picked) if starts]
            nodes = sum(requests[q].nodes for q in started)
            if sum(requests[q].value for q in started) != value or nodes > self.room.free.sum():
                continue
            if nodes > _SMALL_RANKS or self._left(1.0) < -_GRACE:
                return best, False
            found, complete = best_of_all(self.room, [requests[q] for q in started], cost)
            if found is not None:
                best = dict(zip(started, found, strict=True))
                cost = self.placing.cost(best)
            if not complete:
                return best, False
        return best, True


def best_of_all(
    room: Room, requests: Sequence[HierarchyRequest], to_beat: Fraction
) -> tuple[list[IntArray] | None, bool]:
    """Return the leaf of every rank of all requests at the least total cost below one.

    Returns
    -------
    The assignment per request, None if there is none below; and whether that is certain.
    """
    model, everywhere = room.model, np.arange(len(room.free))
    pairs = [np.zeros((0, 2), dtype=np.int64)]
    step: list[int] = []
    prices: list[int] = []
    begins = np.cumsum([0, *(request.nodes for request in requests)])
    for begin, request in zip(begins, requests, strict=False):
        uses = request.patterns if request.intensive else ()
        for own in job_of(model, uses, request.nodes, room.comm, room.free, everywhere).steps:
            pairs.append(np.sort(own.pairs, axis=1) + begin)
            step += [len(prices)] * len(own.pairs)
            prices.append(own.price)
    unit, scale = math.gcd(*prices) or 1, int(model.scale)
    levels, sizes = 2 * model.machine.common_level, model.machine.leaf_sizes
    if 4 * int(levels.max()) * scale * sum(prices) // unit >= _LARGEST:
        return None, False
    all_pairs = np.concatenate(pairs)
    order = np.argsort(all_pairs[:, 1], kind="stable")
    all_pairs = all_pairs[order]
    leaf, complete = exhaust(
        all_pairs,
        np.searchsorted(all_pairs[:, 1], np.arange(begins[-1] + 1)),
        np.array(step, dtype=np.int64)[order],
        np.array([price // unit for price in prices], dtype=np.int64),
        np.repeat(np.arange(len(requests)), [request.nodes for request in requests]),
        np.array([request.intensive for request in requests]),
        room.free,
        room.comm.copy(),
        Hops(levels, scale // sizes, scale // (2 * (sizes[:, None] + sizes))),
        scale,
        _twins(room),
        math.ceil(to_beat * 100 * scale / unit),
        _SMALL_TRIES,
    )
    return None if leaf[0] < 0 else np.split(leaf, begins[1:-1]), bool(complete)


def _twins(room: Room) -> IntArray:
    """Return, per leaf, the last leaf before it that is the same in size, state and place."""
    tree = room.model.machine
    own = np.stack([tree.leaf_sizes, room.comm, room.free])
    twin = np.full(tree.num_leaves, -1, dtype=np.int64)
    for leaf in range(tree.num_leaves):
        for other in range(leaf - 1, -1, -1):
            swapped = np.arange(tree.num_leaves)
            swapped[[leaf, other]] = other, leaf
            alike = tree.common_level[leaf] == tree.common_level[other][swapped]
            if alike.all() and (own[:, leaf] == own[:, other]).all():
                twin[leaf] = other
                break
    return twin
