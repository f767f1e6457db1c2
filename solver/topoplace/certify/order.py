"""Who starts in an order: what its proof says (docs/proofs/order.md)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from topoplace.certify.candidates import candidates
from topoplace.certify.packing import CheckingOracle, Packings, certified_bound
from topoplace.certify.report import Number, RefusedError
from topoplace.result.certificate import InOrder, Reserved, Together
from topoplace.snapshot.schema import Order, Request, Snapshot


def is_ordered(instance: object) -> bool:
    """Return whether an instance is a snapshot whose requests start in an order."""
    return isinstance(instance, Snapshot) and instance.order is not Order.VALUE


def bound_in_order(problem: Packings[Any], level_idx: int) -> tuple[Number, str]:
    """Return what the evidence of a level proves, and where, if requests start in an order.

    On the first level that is the value of those that start, and, from the first one on that is
    undecided, of all. Later levels are about placements of the requests that start, alone.

    Raises
    ------
    RefusedError
        If a part of the proof does not hold.
    """
    certificate = problem.result.levels[level_idx].certificate
    if level_idx:
        oracle = problem.oracle
        chosen = _numbered(oracle, _started(problem))
        chosen += [q for q, request in enumerate(oracle.requests) if not request.value]
        some = oracle.among([(q, q) for q in chosen])
        return problem.proven(level_idx, certificate, problem.held[:level_idx], some)
    if not isinstance(certificate, InOrder):
        raise RefusedError("who starts in an order has a proof of its own form")
    return _Order(problem, certificate).bound(), ""


def _started(problem: Packings[Any]) -> set[str]:
    """Return the requests that start."""
    placements = getattr(problem.result.solution, "placements", None)
    if placements is None:
        raise RefusedError("a proof of who starts without placements")
    return {placement.request for placement in placements}


def _numbered(oracle: CheckingOracle, names: Iterable[str]) -> list[int]:
    numbers = {request.id: q for q, request in enumerate(oracle.requests)}
    return sorted(numbers[name] for name in names)


class _Order:
    """The queue in its order, from the first request to the last."""

    def __init__(self, problem: Packings[Any], proof: InOrder) -> None:
        self._problem, self._proof = problem, proof
        self._snapshot: Snapshot = problem.result.instance
        self._waits = {wait.request: wait for wait in proof.waits}
        if len(self._waits) < len(proof.waits):
            raise RefusedError("a request waits twice")
        self._oracle = problem.oracle  # what other requests have to fit beside
        self._before: list[str] = []
        self._beside: set[str] = set()
        self._never: set[str] = set()
        self._seen: Reserved | None = None
        self._reserves = self._snapshot.order is Order.BACKFILL  # for the first that waits
        if proof.reserved is not None and not self._reserves:
            raise RefusedError(f"a reservation in the order {self._snapshot.order}")

    def bound(self) -> int:
        """Return the value of those that start, and of all from the first undecided one on."""
        started = _started(self._problem)
        value = {request.id: request.value for request in self._oracle.requests}
        queue = sorted(candidates(self._snapshot), key=lambda request: -request.priority)
        total, is_open = 0, False
        for request in queue:
            starts = request.id in started
            if starts:
                self._before.append(request.id)
                self._beside.add(request.id)
            elif not self._is_decided(request) or self._lacks_reservation(request.id):
                is_open = True  # those behind it may be in its way
            total += value[request.id] if starts or is_open else 0
        if self._waits or self._proof.reserved not in (None, self._seen):
            raise RefusedError("a proof about requests that start, or are none")
        return total

    def _lacks_reservation(self, name: str) -> bool:
        """Return whether a request that waits should have a reservation, and has none."""
        return self._reserves and self._seen is None and name not in self._never

    def _is_decided(self, request: Request) -> bool:
        """Return whether it is proven that a request waits, and since when it may start."""
        wait, reserved = self._waits.pop(request.id, None), self._proof.reserved
        if wait is not None and wait.ever:
            if not self._reserves:
                raise RefusedError(f"{request.id}: when jobs end is not asked in this order")
            last = self._problem.later(self._snapshot.window, request.id)
            self._require_apart(last, wait, request.id)
            self._never.add(request.id)
            return True
        if wait is not None:
            self._require_apart(self._oracle, wait, request.id)
            return True
        first = self._seen is None and reserved is not None
        if not first or reserved is None or reserved.request != request.id:
            return False
        return self._is_earliest(reserved)

    def _is_earliest(self, own: Reserved) -> bool:
        """Follow a reservation; return whether it is proven that there is no earlier one."""
        window = self._snapshot.window
        if window is not None and own.at > window:
            raise RefusedError(f"{own.request}: a reservation in {own.at} s, after the window")
        self._require_apart(self._oracle, own.now, own.request)
        ends = {job.ends for job in self._snapshot.running if job.ends is not None}
        before = {*self._before}
        ends |= {
            max(1, one.walltime)
            for one in self._snapshot.queue
            if one.id in before and one.walltime is not None
        }
        last = max((end for end in ends if end < own.at), default=0)
        if own.before is not None:
            if not last <= own.before.at < own.at:
                raise RefusedError(f"{own.request}: jobs end between {own.before.at} and {own.at}")
            earlier = self._problem.later(own.before.at, own.request)
            self._require_apart(earlier, own.before, own.request)
        self._oracle = self._problem.later(own.at, own.request)
        self._problem.require_reserved(own)
        self._beside.add(own.request)
        self._seen = own
        return own.before is not None or not last

    def _require_apart(self, oracle: CheckingOracle, proof: Together, request: str) -> None:
        """Raise unless a request is proven not to fit alongside some before it that start."""
        if not {*proof.beside} <= self._beside or len({*proof.beside}) < len(proof.beside):
            raise RefusedError(f"{request} waits for requests that do not start before it")
        chosen = _numbered(oracle, [*proof.beside, request])
        some = oracle.among([(q, q) for q in chosen])
        proven = certified_bound(some, proof.certificate, [])
        whole = sum(one.value for one in some.requests)
        if proven is not None and proven.value >= whole:
            raise RefusedError(
                f"{request} may start: {proven.value} is proven at most, and {whole} would be all"
            )
