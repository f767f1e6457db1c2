"""The claims of a plan of moves, and what its bounds prove (docs/proofs/placement.md).

A kind of machine says by a `Ground` who may move there, and where to: `Kind.moved`.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from topoplace.certify.candidates import candidates
from topoplace.certify.order import is_ordered
from topoplace.certify.packing import Covers, Prices, certified_bound
from topoplace.certify.report import Claims, Number, Problem, RefusedError
from topoplace.errors import number_of
from topoplace.kinds import kind_named, kind_of_machine
from topoplace.result import Interference
from topoplace.result.placement import Action, RepackResult, RepackSolution
from topoplace.snapshot.schema import (
    SPARE_PREFIX,
    DefragmentInstance,
    RepackInstance,
    Request,
    Snapshot,
)
from topoplace.types import IntArray

MOST_STEPS = 200_000
"""Steps of jobs that are tried to see whether fewer suspended jobs would do."""

Instance = RepackInstance | DefragmentInstance
Placed = Any
"""Where a job is, as a ground has it."""


class Ground(ABC):
    """A machine with its running jobs, as the checker reads it; made of a snapshot.

    Attributes
    ----------
    text
        What the machine is.
    num_running
        Running jobs, gangs as one.
    movers
        By name of the jobs that may move, as requests for what they may have: their nodes.
    present
        Where they are.
    wanted
        By name of the requests that have to start, their value.
    rows, coverable
        As a `CheckingOracle` has them, for movers and requests on the machine without the movers.
    num_pairs
        How many pairs there are.
    """

    text: str
    num_running: int
    movers: Mapping[str, int]
    present: Mapping[str, Placed]
    wanted: Mapping[str, int]
    rows: Mapping[str, IntArray]
    coverable: int
    num_pairs: int

    @abstractmethod
    def placed(self, placement: Any) -> Placed:
        """Return where a mover or request is; raise unless it keeps all rules that are its own."""

    @abstractmethod
    def require_together(self, places: Sequence[tuple[str, Placed]]) -> None:
        """Raise unless jobs can be in some places at the same time, one of them in two perhaps."""

    def claim(self, claims: Claims, places: Sequence[tuple[str, Placed]]) -> None:
        """Add the claims that jobs can be where a plan has them in the end."""
        claims.add("exclusive", lambda: self._together(places))

    def _together(self, places: Sequence[tuple[str, Placed]]) -> str:
        self.require_together(places)
        return f"{number_of(len(places), 'job')} side by side"

    @abstractmethod
    def staying(self, name: str) -> tuple[Mapping[int, int], set[int]]:
        """Return the amounts of rows that branches may name that a mover holds, and its pairs.

        Rows are numbered through all families, pairs from 0.
        """

    @abstractmethod
    def paid_staying(self, name: str, prices: Prices) -> int:
        """Return what a mover pays for rows other than pairs where it is."""

    @abstractmethod
    def least(
        self, names: Mapping[str, tuple[Covers, Covers]], prices: Prices, pairs: IntArray
    ) -> Mapping[str, int | None]:
        """Return by job the least that it pays in another place, None if there is none.

        A place obeys the covers of rows and of pairs.
        """


@dataclass(frozen=True)
class Repacking:
    """An instance as the checker reads it.

    Attributes
    ----------
    costs, ends
        What it costs to move or end each mover, None if it may not.
    losses
        By level of what ends, whose ends it counts: of those that hold spares, then of others.
    budgets
        Movers, and how many of them may move or end.
    """

    ground: Ground
    costs: Mapping[str, int | None]
    ends: Mapping[str, int | None]
    losses: Mapping[str, frozenset[str]]
    budgets: Sequence[tuple[frozenset[str], int]]

    @cached_property
    def movers(self) -> Mapping[str, int]:
        """The movers with the nodes that count if they move or end."""
        movers = self.ground.movers
        return {name: 0 if _is_spare(name) else nodes for name, nodes in movers.items()}

    def lost(self, name: str) -> list[int]:
        """Return what the end of a job counts, by level of what ends."""
        return [(self.ends[name] or 0) * (name in own) for own in self.losses.values()]


def read_repacking(
    document: Instance, interference: Interference, snapshot: Snapshot | None = None
) -> Repacking:
    """Return the checker's view of an instance, by default with the queue that it has.

    Where moves make room, all of the queue is wanted.
    """
    ids = [job.id for job in document.snapshot.running]
    ids += [request.id for request in document.snapshot.queue]
    gangs = {job.gang for job in document.snapshot.running if job.gang is not None}
    if len({*ids}) < len(ids) or gangs & {*ids}:
        raise RefusedError("two jobs of the instance have one id")
    snapshot = snapshot or document.snapshot
    queue = {request.id: request for request in candidates(snapshot)}
    names = {job.gang or job.id for job in snapshot.running}
    start = document.wanted(queue)
    named: list[tuple[Any, Any]] = [(start, queue)]
    named += [(some, names) for some in (document.fixed, document.costs, document.ends)]
    replaced = getattr(document, "replace", [])
    named += [(replaced, names)]
    named += [(budget.jobs, names) for budget in document.budgets]
    for some, known in named:
        if len({*some}) < len(some) or not {*some} <= {*known}:
            raise RefusedError(
                "start, fixed, costs, ends or budgets name somebody twice, or nobody"
            )
    if is_ordered(snapshot):
        raise RefusedError("requests start in an order, and jobs move")
    if snapshot.free is not None:
        raise RefusedError("free domains count, and jobs move")
    wanted: list[Request] = [queue[name] for name in start]
    kind = kind_of_machine(snapshot.written.kind)
    make = None if kind is None else kind_named(_moving(kind.name, snapshot)).get("moved")
    if make is None:
        raise RefusedError("jobs do not move on the machine")
    if not all(map(_may_move(document.model_copy(update={"moving": True})), replaced)):
        raise RefusedError("a job is replaced, and a rule of it is not modelled")
    ground: Ground = make(snapshot, wanted, document, interference)
    moves = _may_move(document)
    return Repacking(
        ground,
        {n: document.costs.get(n, 1) if moves(n) else None for n in ground.movers},
        {n: document.ends.get(n) for n in ground.movers},
        _losses(document),
        [(frozenset({*own.jobs} & {*ground.movers}), own.most) for own in document.budgets],
    )


def _is_spare(name: str) -> bool:
    return name.startswith(SPARE_PREFIX)


def _losses(document: Instance) -> dict[str, frozenset[str]]:
    """Return by level of what ends, of an instance with some, whose ends it counts."""
    spares = frozenset(filter(_is_spare, document.ends))
    found = {"spares": spares, "ended": frozenset(document.ends) - spares}
    return {name: own for name, own in found.items() if own}


def _moving(kind: str, snapshot: Snapshot) -> str:
    """Return the kind of problem whose rules jobs keep: on switch trees, that of domains."""
    return "hierarchy" if snapshot.written.has_contention else kind


def may_change(document: Instance) -> Callable[[str], bool]:
    """Return what says whether an instance lets a job of a name move or end."""
    held = {*document.fixed, *getattr(document, "replace", ())}
    for budget in document.budgets:
        held |= {*budget.jobs} if budget.most == 0 else set()
    moves = _may_move(document)
    return lambda name: name not in held and (name in document.ends or moves(name))


def _may_move(document: Instance) -> Callable[[str], bool]:
    """Return what says whether a job may move: not where a rule of it is not modelled."""
    snapshot = document.snapshot
    held = {
        job.gang or job.id
        for job in snapshot.running
        for one in job.left_out or ()
        if one.option not in snapshot.ignored
    }
    return lambda name: document.moving and name not in held and not _is_spare(name)


# ---- The plan ------------------------------------------------------------------------------------


class Repack(Problem[RepackResult]):
    """A plan, as the frame asks for it."""

    searches = "none"
    _repacking: Repacking

    @property
    def levels(self) -> Sequence[tuple[str, str]]:
        """Name and sense of the levels: who ends counts where some may."""
        lost = [(name, "min") for name in _losses(self.result.instance)]
        return [("started", "max"), *lost, ("moves", "min"), ("moved_nodes", "min")]

    def read(self) -> str:
        """Read the instance and return what it is."""
        rule = self.result.limits.interference
        self._repacking = read_repacking(self.result.instance, rule)
        ground, spares = self._repacking.ground, len(self.result.instance.spares)
        movers = sum(not _is_spare(name) for name in ground.movers)
        counts = f"{ground.num_running - spares} running, {movers} may move, "
        counts += f"{len(ground.wanted)} start"
        if spares:
            counts += f", {number_of(spares, 'spare')}"
        return f"{ground.text}, {counts}, {rule.value} interference"

    def follow(self, claims: Claims) -> bool:
        """Add the claims about the places, and about the steps that lead there."""
        solution = self.result.solution
        if solution is None:
            return True
        followed = follow_plan(self._repacking, solution, claims)
        if followed is not None and claims.hold:
            self.values = [len(solution.placements), *followed]
        return followed is not None

    def bound(self, level_idx: int) -> tuple[Number, str]:
        """Return what the certificate of a level proves, and where."""
        level = self.result.levels[level_idx]
        assert level.certificate is not None
        oracle = self._oracle
        shift = len(self._repacking.movers) * oracle.weight
        known = [int(value) for value in self.values[:level_idx] if value is not None]
        earlier = [shift + known[0], *(-value for value in known[1:])] if known else []
        proven = certified_bound(oracle, level.certificate, earlier)
        if proven is None:
            raise RefusedError("the certificate leaves no plan at all")
        return -proven.value if level_idx else proven.value - shift, proven.where

    @cached_property
    def _oracle(self) -> RepackOracle:
        return RepackOracle.of(self._repacking)


def follow_plan(repacking: Repacking, solution: RepackSolution, claims: Claims) -> list[int] | None:
    """Add the claims about a plan; return what ends and moves cost and hold, None if it is none."""
    found = claims.add("placements", lambda: _places(repacking, solution), _counts)
    if found is None:
        return None
    ground, ended, moved = repacking.ground, [*solution.ended], {m.request for m in solution.moves}
    stay = [(n, p) for n, p in ground.present.items() if n not in moved and n not in ended]
    ground.claim(claims, [*stay, *found.items()])
    claims.add("steps", lambda: _check_steps(repacking, found, solution))
    if repacking.budgets:
        claims.add("budgets", lambda: _check_budgets(repacking, {*ended, *moved}))
    none = [0] * len(repacking.losses)
    lost = [sum(own) for own in zip(none, *map(repacking.lost, ended), strict=True)]
    cost = sum(repacking.costs[name] or 0 for name in moved)
    nodes = sum(repacking.movers[name] for name in (*ended, *moved))
    return [*lost, cost, nodes]


def _places(repacking: Repacking, solution: RepackSolution) -> dict[str, Placed]:
    """Return where jobs are that move or start."""
    ground = repacking.ground
    moved = [placement.request for placement in solution.moves]
    if any(repacking.costs.get(name) is None for name in moved):
        raise RefusedError("a job moves that may not")
    if any(repacking.ends.get(name) is None for name in solution.ended):
        raise RefusedError("a job ends that may not")
    if not {placement.request for placement in solution.placements} <= ground.wanted.keys():
        raise RefusedError("a request starts that is none of those that have to")
    every = [*solution.moves, *solution.placements]
    names = [*solution.ended, *(placement.request for placement in every)]
    if len({*names}) < len(names):
        raise RefusedError("a job moves, starts or ends twice")
    return {placement.request: ground.placed(placement) for placement in every}


def _counts(found: Mapping[str, Placed]) -> str:
    return f"moved or started: {number_of(len(found), 'job')}"


def _check_budgets(repacking: Repacking, changed: set[str]) -> str:
    for jobs, most in repacking.budgets:
        if len(jobs & changed) > most:
            raise RefusedError(f"{len(jobs & changed)} of a budget move or end, {most} may")
    return f"{number_of(len(repacking.budgets), 'budget')} kept"


def _check_steps(
    repacking: Repacking, target: Mapping[str, Placed], solution: RepackSolution
) -> str:
    """Carry out the steps one by one; raise at the first that is not possible."""
    ground = repacking.ground
    present = dict(ground.present)
    moved = {placement.request for placement in solution.moves}
    done: dict[str, list[Action]] = {}
    for step in solution.steps:
        name, action = step.job, step.action
        done.setdefault(name, []).append(action)
        if action in (Action.SUSPEND, Action.END):
            present.pop(name, None)
            continue
        if name not in target:
            raise RefusedError(f"a step of {name}, which neither moves nor starts")
        try:
            ground.require_together([*present.items(), (name, target[name])])
        except RefusedError as error:
            raise RefusedError(f"{name} finds no room: {error}") from None
        present[name] = target[name]
    aside = {n for n, actions in done.items() if actions == [Action.SUSPEND, Action.RESUME]}
    ways = {name: [[Action.START]] for name in target}
    ways |= {name: [[Action.MOVE], [Action.SUSPEND, Action.RESUME]] for name in moved}
    ways |= {name: [[Action.END]] for name in solution.ended}
    for name in {*ways, *done}:
        if done.get(name) not in ways.get(name, []):
            raise RefusedError(f"the steps of {name} are not what moves, starts or ends it")
    if len(solution.suspended) != len(aside) or {*solution.suspended} != aside:
        raise RefusedError("other jobs are suspended than the steps say")
    if solution.fewest_suspended and aside:
        stay = {n: p for n, p in ground.present.items() if n not in {*moved, *solution.ended}}
        _check_fewest(ground, stay, {name: target[name] for name in moved}, len(aside))
    fewest = ", no fewer will do" if solution.fewest_suspended and aside else ""
    return (
        f"{number_of(len(solution.steps), 'step')}, {number_of(len(aside), 'job')} "
        f"suspended{fewest}"
    )


def _check_fewest(
    ground: Ground, stay: Mapping[str, Placed], target: Mapping[str, Placed], number: int
) -> None:
    """Raise unless no fewer jobs, suspended, let the others move one after the other."""
    tried = 0
    for gone in itertools.combinations(sorted(target), number - 1):
        # sets of jobs that have moved so far, each tried once
        rest = frozenset(target) - {*gone}
        known, todo = {frozenset[str]()}, [frozenset[str]()]
        while todo:
            done = todo.pop()
            if done == rest:
                raise RefusedError(
                    f"{number_of(number, 'job')} suspended where {number - 1} would do"
                )
            now = [*stay.items(), *((n, target[n]) for n in done)]
            now += [(n, ground.present[n]) for n in rest - done]
            for name in sorted(rest - done):
                tried += 1
                if tried > MOST_STEPS:
                    raise RefusedError("too many jobs move to try all that might be suspended")
                after = done | {name}
                if after not in known and _fits(ground, [*now, (name, target[name])]):
                    known.add(after)
                    todo.append(after)


def _fits(ground: Ground, places: Sequence[tuple[str, Placed]]) -> bool:
    try:
        ground.require_together(places)
    except RefusedError:
        return False
    return True


# ---- The packing ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Party:
    """A mover or a request that has to start, as the packing has it."""

    id: str
    value: int


@dataclass(frozen=True)
class RepackOracle:
    """Movers where they stand, elsewhere or at an end, and requests (see `CheckingOracle`).

    `chosen` are the numbers of the requests that it has. Where moves make room, requests count by
    their value on the third level, and on no other.
    """

    repacking: Repacking
    chosen: tuple[int, ...]
    makes_room: bool = False

    @classmethod
    def of(cls, repacking: Repacking, *, makes_room: bool = False) -> RepackOracle:
        """Return the oracle of all movers and requests."""
        num = len(repacking.movers) + len(repacking.ground.wanted)
        return cls(repacking, tuple(range(num)), makes_room)

    @property
    def weight(self) -> int:
        """The value of a mover on the first level: more than all that have to start."""
        return 1 if self.makes_room else len(self.repacking.ground.wanted) + 1

    @cached_property
    def requests(self) -> tuple[Party, ...]:
        """The movers, then the requests that have to start."""
        every = [Party(name, self.weight) for name in self.repacking.movers]
        every += [Party(name, 1 - self.makes_room) for name in self.repacking.ground.wanted]
        return tuple(every[q] for q in self.chosen)

    @property
    def _pairs(self) -> range:
        """The numbers of the rows of pairs."""
        ground = self.repacking.ground
        return range(ground.coverable, ground.coverable + ground.num_pairs)

    @property
    def coverable(self) -> int:
        """Rows that branches may name: those of the ground, pairs, and budgets."""
        return self._pairs.stop + len(self.repacking.budgets)

    @cached_property
    def rows(self) -> dict[str, IntArray]:
        """One job per pair, as many as may be per budget, and the rows of the ground."""
        found: dict[str, IntArray] = {}
        ground, at = self.repacking.ground, 0
        for name, capacities in ground.rows.items():
            if at == ground.coverable and "pairs" not in found:
                found |= self._own_rows
            found[name] = capacities
            at += len(capacities)
        return found if "pairs" in found else found | self._own_rows

    @property
    def _own_rows(self) -> dict[str, IntArray]:
        limits = [most for _, most in self.repacking.budgets]
        pairs = {"pairs": np.ones(len(self._pairs), dtype=np.int64)}
        return pairs | ({"budgets": np.array(limits, dtype=np.int64)} if limits else {})

    @cached_property
    def largest(self) -> tuple[int, ...]:
        """Limits of a candidate's value on each level."""
        own, ground = self.repacking, self.repacking.ground
        cost = max((n or 0 for n in own.costs.values()), default=0)
        if self.makes_room:
            return self.weight, cost, max(ground.wanted.values(), default=0)
        none = [0] * len(own.losses)
        lost = map(max, zip(none, *map(own.lost, own.movers), strict=True))
        nodes = max(own.movers.values(), default=0)
        return (self.weight, *lost, cost, nodes)

    def may_replace(self, one: int, other: int) -> bool:
        """No request takes another's place."""
        return one == other

    def among(self, chosen: Sequence[tuple[int, int]]) -> RepackOracle:
        """Return an oracle of some requests alone."""
        return replace(self, chosen=tuple(self.chosen[q] for q, _ in chosen))

    def best(self, prices: Prices, wanted: Mapping[int, Covers]) -> dict[int, int | None]:
        """Return what the best places gain: where a job is, elsewhere, or at an end."""
        own = self.repacking
        factors = (*prices.factors, *(0 for _ in self.largest))[: len(self.largest)]
        pairs = prices.rows.get("pairs", np.zeros(len(self._pairs), dtype=np.int64))
        limits = prices.rows.get("budgets", np.zeros(len(own.budgets), dtype=np.int64)).tolist()
        names = {q: self.requests[q].id for q in wanted}
        away = {}
        for q, covers in wanted.items():
            name, budgets = names[q], self._budgets_of(names[q])
            goes = name not in own.movers or own.costs[name] is not None
            if goes and covers_of(covers, self._pairs.stop, self.coverable).admit(budgets):
                ground = own.ground
                of_ground = covers_of(covers, 0, ground.coverable)
                away[name] = of_ground, covers_of(covers, ground.coverable, self._pairs.stop)
        least = own.ground.least(away, prices, pairs)
        found: dict[int, int | None] = {}
        for q, covers in wanted.items():
            name, budgets = names[q], self._budgets_of(names[q])
            gone = sum(limits[b] for b in budgets)
            gains = [self._staying(name, prices, pairs, covers, factors[0])]
            if least.get(name) is not None:
                gains.append(self._value(name, factors) - gone - (least[name] or 0))
            rows = {self._pairs.stop + b for b in budgets}
            if own.ends.get(name) is not None and covers.admit(rows):
                gains.append(self._value(name, factors, ends=True) - gone)
            found[q] = max((gain for gain in gains if gain is not None), default=None)
        return found

    def _budgets_of(self, name: str) -> set[int]:
        return {b for b, (jobs, _) in enumerate(self.repacking.budgets) if name in jobs}

    def _value(self, name: str, factors: Sequence[int], *, ends: bool = False) -> int:
        """Return what a job gains that moves, starts or ends, prices aside."""
        own = self.repacking
        if name not in own.movers:
            value = own.ground.wanted[name]
            return factors[2] * value if self.makes_room else factors[0]
        gain = factors[0] * self.weight
        if self.makes_room:
            return gain - factors[1] * (own.costs[name] or 0)
        gain -= factors[-1] * own.movers[name]
        if ends:
            pairs = zip(factors[1:], own.lost(name), strict=False)
            return gain - sum(factor * lost for factor, lost in pairs)
        return gain - factors[-2] * (own.costs[name] or 0)

    def _staying(
        self, name: str, prices: Prices, pairs: IntArray, covers: Covers, to_value: int
    ) -> int | None:
        """Return the gain of a mover at its place, None if it may not stay there."""
        if name not in self.repacking.movers:
            return None
        held, own_pairs = self.repacking.ground.staying(name)
        if not covers.admit({*held, *(self._pairs.start + k for k in own_pairs)}):
            return None
        paid = self.repacking.ground.paid_staying(name, prices)
        return to_value * self.weight - paid - int(pairs[sorted(own_pairs)].sum())


def covers_of(covers: Covers, start: int, stop: int) -> Covers:
    """Return covers of some rows, numbered from 0."""

    def own(rows: frozenset[int]) -> Iterator[int]:
        return (row - start for row in rows if start <= row < stop)

    return Covers(frozenset(own(covers.inside)), frozenset(own(covers.outside)))
