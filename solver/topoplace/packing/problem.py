"""A problem as the engine sees it: rows, requests, candidates, and an oracle that prices them.

A *row* has an integer capacity (a router or a link: 1; a host with c slots: c). A *request* may
start once, as one of its *candidates*, which takes amounts of some rows and has a value on every
level of the objective. Levels are maximised one after the other. A machine is a plug-in of the
engine if it defines these (`PackingProblem`). It may also define what makes searches faster:
dominance and symmetry between requests, heuristics, and the problem around fixed jobs.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from topoplace import clock
from topoplace.errors import InputError
from topoplace.packing.budget import Budget
from topoplace.types import BoolArray, FloatArray, IntArray

NO_VALUE = -(1 << 62)
"""Value of a request without candidates."""


class Candidate(Protocol):
    """A request in a place: a frozen, ordered dataclass with a field `request_idx`.

    The plug-in decides what else it has.
    """

    @property
    def request_idx(self) -> int:
        """Position of the request in the queue."""

    def __lt__(self, other: Any, /) -> bool:
        """Order the candidates of a problem."""


@dataclass(frozen=True)
class Cover:
    """A branch on a request: its candidate uses a row (`inside`) or not."""

    request_idx: int
    row: int
    inside: bool


def by_request(covers: Iterable[Cover]) -> dict[int, list[Cover]]:
    """Return by request the covers that branches impose on its candidates."""
    found: dict[int, list[Cover]] = {}
    for cover in covers:
        found.setdefault(cover.request_idx, []).append(cover)
    return found


@dataclass(frozen=True)
class Query:
    """What the oracle is asked for at some prices.

    Attributes
    ----------
    weights
        A non-negative integer per level up to the one that is solved, in the scale of the prices.
    per_request
        At most this many columns per request, the best ones or nearly so.
    covers
        What branches say of requests; the candidates of a request obey all that name it.
    exact_for
        Requests whose `best` has to be exact; of others it may be any value that is not positive
        where it would not be. None: it is exact for all.
    wanted
        Requests whose columns are wanted at any gain; of others those that lose may be left out.
        None: all are wanted.
    """

    weights: tuple[int, ...]
    per_request: int
    covers: tuple[Cover, ...] = ()
    exact_for: frozenset[int] | None = None
    wanted: frozenset[int] | None = None

    @cached_property
    def covers_of(self) -> dict[int, list[Cover]]:
        """What branches say of the candidates of each request that they name."""
        return by_request(self.covers)


@dataclass(frozen=True)
class Priced:
    """The oracle's answer.

    Attributes
    ----------
    best
        Per request the largest (value - price), `NO_VALUE` without candidate; shape
        ``(num_requests,)``.
    columns
        Per request some candidates with their (value - price), best first; requests of a kind
        under the same covers may leave theirs to the first of them.
    """

    best: IntArray
    columns: list[list[tuple[int, Any]]]


class PrimalHeuristic(Protocol):
    """A search for better placements that a thread can run along with the bounds."""

    def run(
        self,
        start: Sequence[Any],
        budget: Budget,
        until: float,
        temperature: float,
        seed: int,
        is_over: Callable[[], bool],
    ) -> list[Any]:
        """Return the best placement met on the first level, `start` or better.

        Parameters
        ----------
        until
            When to end, by ``budget.now()``; work done is reported to ``budget.spend``.
        temperature
            How much worse a placement may become at the beginning, in units of the objective.
        is_over
            Whether to end at once.
        """


@dataclass(frozen=True)
class Program:
    """The dual solution of a linear program that a problem has of its own, without columns.

    Attributes
    ----------
    prices, multipliers
        Of rows and of earlier levels, in true units.
    undecided
        How undecided its solution leaves whether a request uses a row, the request and the row, the
        most undecided first.
    """

    prices: FloatArray
    multipliers: tuple[float, ...]
    undecided: list[tuple[float, int, int]]


class PackingProblem(ABC):
    """Rows, requests and an oracle (docs/proofs/placement.md, "Packings").

    All figures are integers, and every level is maximised: where less is better, values are
    negated. Sums of prices times amounts fit into 64 bits.

    Attributes
    ----------
    names, values
        The ids of the requests, and what starting one adds to the first level with any
        candidate, at least 0; shape ``(num_requests,)``.
    capacities
        Capacities of the rows, at least 0; shape ``(num_rows,)``.
    num_covers
        This number of first rows binds from the beginning, and branches may ask whether a candidate
        uses one of them. The others are added once a solution violates them.
    families
        The rows by name, as certificates call them, in the order of their numbers.
    senses
        By level, the factor that turns its values into reported ones: 1, or -1 if less is better.
    most_at_once
        Searches that may run at the same time: one if the tables of the oracle take much memory.
    row_of
        The row of the first family that a node is on; None if nodes are these rows.
    deadline
        When calls of the oracle end, by `topoplace.clock`; searches set it.
    """

    names: Sequence[str]
    values: IntArray
    capacities: IntArray
    num_covers: int
    families: Mapping[str, slice]
    senses: Sequence[int]
    most_at_once: int = 2
    row_of: Sequence[int] | None = None
    deadline: float = math.inf

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return len(self.capacities)

    @cached_property
    def takable(self) -> BoolArray:
        """Rows that some candidate may use, shape ``(num_rows,)``; others cost nothing."""
        return self.capacities > 0

    @cached_property
    def is_unit(self) -> bool:
        """Whether no capacity exceeds 1, so a candidate takes 0 or 1 of every row."""
        return bool(self.capacities.max(initial=0) <= 1)

    @cached_property
    def worthless(self) -> frozenset[int]:
        """Requests of value 0 on the first level, which take no part in it."""
        return frozenset(np.flatnonzero(np.asarray(self.values) == 0).tolist())

    def reported(self, level: int, value: int) -> int:
        """Return a value of a level, or a bound on it, as reported, or the other way round."""
        return self.senses[level] * value

    @cached_property
    def row_weights(self) -> FloatArray:
        """How the price of rows that no column distinguishes is spread over them, all positive."""
        return np.ones(self.num_rows)

    # candidates

    @abstractmethod
    def rows_of(self, candidate: Any) -> IntArray:
        """Return the rows that a candidate uses, each repeated by the amount."""

    def rows_of_all(self, candidates: Sequence[Any]) -> tuple[IntArray, IntArray]:
        """Return the rows that candidates use, one after the other, and before them their starts.

        Those of the k-th are ``rows[starts[k]:starts[k + 1]]``.
        """
        found = [np.zeros(0, dtype=np.int64), *map(self.rows_of, candidates)]
        return np.cumsum([len(rows) for rows in found]), np.concatenate(found)

    @abstractmethod
    def values_of(self, candidates: Sequence[Any]) -> IntArray:
        """Return the values of candidates (there may be none), ``(num_candidates, num_levels)``."""

    @abstractmethod
    def largest(self, level: int) -> int:
        """Return an upper bound on the absolute value of a candidate on a level."""

    def most(self, level: int) -> int:
        """Return an upper bound on the value of a placement on a level after the first."""
        return len(self.names) * self.largest(level)

    def covers(self, candidate: Any, row: int) -> bool:
        """Return whether a candidate uses a row."""
        return bool((self.rows_of(candidate) == row).any())

    def breakable(self, candidate: Any, rows: IntArray) -> IntArray:
        """Return those of a candidate's rows beyond the first `num_covers` that others may need.

        Rows that bind only if earlier rows also bind may be left out.
        """
        return rows[rows >= self.num_covers]

    def breakable_of_all(
        self, candidates: Sequence[Any], starts: IntArray, rows: IntArray
    ) -> IntArray:
        """Return the `breakable` rows of candidates, whose rows are those of `rows_of_all`."""
        every = enumerate(candidates)
        found = (self.breakable(c, rows[starts[k] : starts[k + 1]]) for k, c in every)
        return np.concatenate([np.zeros(0, dtype=np.int64), *found])

    # the oracle

    @abstractmethod
    def work(self, level: int) -> float:
        """Return the seconds that a call of the oracle takes, as measured once (see `Budget`)."""

    @abstractmethod
    def price(self, row_prices: IntArray, query: Query) -> Priced:
        """Return the best candidates of every request at some prices.

        The gain of a candidate is the sum of weights times values, minus the sum of prices times
        amounts.

        Parameters
        ----------
        row_prices
            A non-negative integer per row, shape ``(num_rows,)``.

        Raises
        ------
        topoplace.clock.OutOfTimeError
            At the deadline (`topoplace.clock.check`), if a call takes more than tenths of a second.
        """

    @property
    def every_candidate(self) -> list[Any] | None:
        """All candidates, if they are few enough to be listed; made once."""
        return None

    def listed(self, level: int) -> Iterable[Any]:
        """Return what the model of a level lists, request by request: all candidates that matter.

        On the first level, candidates may be left out that are never better than another one that
        is there. A request keeps all that it has in common with one that it dominates.
        """
        expected = "a machine on which all places of requests are listed, for a model of them"
        raise InputError(expected, field="machine", found="a larger one")

    def label(self, candidate: Any) -> str:
        """Return what a candidate of a request is called in models, empty for its number."""
        return ""

    def rows_at(self, start: Any) -> Sequence[int]:
        """Return what a start of a result (`Start`) takes of the first family of rows."""
        return [node if self.row_of is None else self.row_of[node] for node in start.nodes]

    def beside(self, fixed: Sequence[Any]) -> PackingProblem:
        """Return this problem, whose oracle may leave out what fixed jobs exclude."""
        return self

    @property
    def is_small(self) -> bool:
        """Whether every candidate can be looked at quickly: then all levels are proven."""
        return False

    @property
    def start_prices(self) -> IntArray:
        """Prices at which no request has a value above what it pays, shape ``(num_rows,)``.

        The search begins with them, and uses them for bounds if there is no time for pricing. The
        default is for candidates that take one unit of one of the first `num_covers` rows; where
        they take many units, lower prices save the first steps.
        """
        prices = np.zeros(self.num_rows, dtype=np.int64)
        prices[: self.num_covers] = self.values.max(initial=0)
        return prices

    def first_prices(self, sub: Subproblem) -> tuple[FloatArray, tuple[float, ...]] | None:
        """Return prices of rows at which a subproblem begins, and factors of earlier levels.

        By default `start_prices` on the first level, and None on later ones: these begin with the
        best prices of the level before, and branches with the best ones above them.
        """
        return None if sub.level else (self.start_prices.astype(float), ())

    @property
    def has_program(self) -> bool:
        """Whether a linear program of the problem's own bounds levels before columns do."""
        return False

    def program(self, sub: Subproblem) -> Program | None:
        """Return the solution of that program, None if it is not solved."""
        return None

    # what is known of requests

    @property
    def kinds(self) -> Sequence[Hashable]:
        """The kind of every request.

        Requests of one kind have the same candidates except for `request_idx`, which use the same
        rows by the same amounts and have the same value on every level.
        """
        return range(len(self.names))

    @cached_property
    def first_of_kind(self) -> list[int]:
        """By request, the first of its kind."""
        first: dict[Hashable, int] = {}
        return [first.setdefault(kind, q) for q, kind in enumerate(self.kinds)]

    def kin(self, requests: Iterable[int]) -> frozenset[int]:
        """Return all requests of the kinds that some requests have."""
        kinds = {self.first_of_kind[q] for q in requests}
        return frozenset(q for q, kind in enumerate(self.first_of_kind) if kind in kinds)

    def merged(self, candidates: Iterable[Any]) -> list[Any]:
        """Return candidates as those of the first request of their kind, each once."""
        first = self.first_of_kind
        found = ((c, first[c.request_idx]) for c in candidates)
        own = (c if c.request_idx == q else replace(c, request_idx=q) for c, q in found)
        return list(dict.fromkeys(own))

    def equal_groups(self, among: Iterable[int]) -> list[tuple[int, ...]]:
        """Return the kinds that have several of some requests, as groups."""
        groups: dict[int, list[int]] = {}
        for q in sorted(among):
            groups.setdefault(self.first_of_kind[q], []).append(q)
        return [tuple(group) for group in groups.values() if len(group) > 1]

    def dominating(self, startable: frozenset[int]) -> dict[int, frozenset[int]]:
        """Return by request those that can take its place for at least its value.

        On the first level, some optimal placement starts no request without these. The relation is
        transitive and antisymmetric, and includes the earlier requests of the same kind.
        """
        return self.earlier_of_kind(startable)

    def earlier_of_kind(self, among: Iterable[int]) -> dict[int, frozenset[int]]:
        """Return by request those of its kind that come earlier."""
        return {
            q: frozenset(group[:k])
            for group in self.equal_groups(among)
            for k, q in enumerate(group)
        }

    def alike(self, among: Iterable[int]) -> list[tuple[int, ...]]:
        """Return groups of requests so similar that `unified` loses little; see its certificate."""
        return []

    def unified(self, groups: Sequence[tuple[int, ...]]) -> PackingProblem:
        """Return a relaxation in which the requests of a group have the same candidates."""
        return self

    @property
    def classes(self) -> Sequence[object]:
        """The class of every request; those of different classes compete for little."""
        return [0] * len(self.names)

    def only(self, requests: frozenset[int]) -> PackingProblem:
        """Return the problem in which no other request has a candidate; needed for classes."""
        raise NotImplementedError

    def families_of(self, requests: frozenset[int]) -> BoolArray:
        """Mark the rows that the candidates of some requests may use."""
        return np.ones(self.num_rows, dtype=bool)

    # primal side

    def starts(self, deadline: float) -> Iterable[list[Any]]:
        """Yield placements of heuristics, at least one (it may be empty), the quickest first.

        No heuristic begins after the deadline, a time of `topoplace.clock`. The default is first
        fit: the most valuable request first, each where it takes the fewest units.
        """
        placed: list[Any] = []
        for q in sorted(range(len(self.names)), key=lambda q: -self.values[q]):
            if clock.now() >= deadline:
                break
            placed = self.with_one_more(placed, q) or placed
        yield placed

    def with_one_more(self, placed: Sequence[Any], q: int) -> list[Any] | None:
        """Return a placement with a request in addition; None if it does not fit as they are.

        The default puts it where it takes the fewest units.
        """
        rest = Residual(self.left_by(placed, (q,)), tuple(placed), 0, (q,))
        capacities = rest.problem.capacities
        weight = 1 + int(capacities.sum())
        [columns] = rest.problem.price(np.ones_like(capacities), Query((weight,), 1)).columns
        found = rest.together([candidate for _, candidate in columns])
        return found if len(found) > len(placed) and fits(self, found) else None

    @abstractmethod
    def left_by(self, fixed: Sequence[Any], kept: Sequence[int]) -> PackingProblem:
        """Return the problem of some requests, renumbered in this order, around fixed jobs.

        The capacities that fixed jobs leave are `capacities_left`. Rows may have other numbers.
        """

    def completed(self, placement: Iterable[Any]) -> list[Any]:
        """Return a placement, sorted, with additions that lose nothing on any level."""
        return sorted(placement)

    def around(self, fixed: Sequence[Any], excluded: frozenset[int]) -> Residual:
        """Return the problem around fixed jobs, without the excluded requests."""
        gone = excluded | {c.request_idx for c in fixed}
        kept = tuple(q for q in range(len(self.names)) if q not in gone)
        worth = sum(int(self.values[c.request_idx]) for c in fixed)
        return Residual(self.left_by(fixed, kept), tuple(fixed), worth, kept)

    def near(self, candidates: Sequence[Any], first: Any) -> list[float]:
        """Return how far candidates are from one, in any unit; at most 1 means next to it."""
        return [0.0] * len(candidates)

    def heuristic(self, budget: Budget) -> PrimalHeuristic | None:
        """Return a heuristic that improves placements, if there is one."""
        return None


@dataclass(frozen=True)
class Residual:
    """The problem around fixed jobs, as one of its own.

    Attributes
    ----------
    problem
        The smaller problem.
    fixed, worth
        The jobs, candidates of the whole problem, and their value on the first level.
    kept
        Positions in the whole queue of the requests that the smaller problem has.
    """

    problem: PackingProblem
    fixed: tuple[Any, ...]
    worth: int
    kept: tuple[int, ...]

    def here(self, candidates: Iterable[Any]) -> list[Any]:
        """Return candidates of the whole problem as those of the smaller one."""
        position = {whole: here for here, whole in enumerate(self.kept)}
        return [replace(c, request_idx=position[c.request_idx]) for c in candidates]

    def together(self, found: Iterable[Any]) -> list[Any]:
        """Return the fixed jobs with a placement of the smaller problem."""
        mine = (replace(c, request_idx=self.kept[c.request_idx]) for c in found)
        return sorted([*self.fixed, *mine])


@dataclass(frozen=True)
class Subproblem:
    """A level of the objective, with thresholds of earlier levels, and the branches.

    An earlier level for which `reached` has None has no threshold. `fixed` are jobs in their
    places, whose requests are among the excluded; a subproblem with fixed jobs has no certificate.
    """

    level: int = 0
    reached: tuple[int | None, ...] = ()
    forced: frozenset[int] = frozenset()
    excluded: frozenset[int] = frozenset()
    covers: tuple[Cover, ...] = ()
    fixed: tuple[Any, ...] = ()

    @cached_property
    def covers_of(self) -> dict[int, list[Cover]]:
        """What is said of the candidates of each request."""
        return by_request(self.covers)

    @cached_property
    def decided(self) -> frozenset[int]:
        """Requests for which it is decided whether they start."""
        return self.forced | self.excluded


class Kinds:
    """Requests that a subproblem does not distinguish: of one kind, with the same covers.

    The first of them has all of their columns, even if it may not start itself: the amounts of
    these say how many start where, not which.

    Attributes
    ----------
    first
        By request, the first of those that are not distinguished from it.
    members
        By such a first request, those that may start, with those that must start before the others.
    least, most
        How many of them start, by the first request (0 elsewhere), shape ``(num_requests,)``.
    covers_of, limited
        What branches say of the places of requests; marks of those it is said of, shape
        ``(num_requests,)``.
    """

    def __init__(self, problem: PackingProblem, sub: Subproblem) -> None:
        self._problem, self._sub = problem, sub
        num = len(problem.names)
        self.first = list(range(num))
        self.members: dict[int, list[int]] = {}
        self.least, self.most = np.zeros(num, dtype=np.int64), np.zeros(num, dtype=np.int64)
        self.covers_of = sub.covers_of
        self.limited = np.array([q in sub.covers_of for q in range(num)], dtype=bool)
        known: dict[object, int] = {}
        self._of_kind: dict[int, list[int]] = {}
        for q, kind in enumerate(problem.first_of_kind):
            covers = frozenset((c.row, c.inside) for c in sub.covers_of.get(q, ()))
            first = self.first[q] = known.setdefault((kind, covers), q)
            if first == q:
                self._of_kind.setdefault(kind, []).append(q)
                self.members[q] = []
            if q not in sub.excluded:
                self.members[first].append(q)
                self.most[first] += 1
                self.least[first] += q in sub.forced
        for members in self.members.values():
            members.sort(key=lambda q: q not in sub.forced)

    def admits(self, candidate: Candidate) -> bool:
        """Return whether a candidate is one of a first request, and may be part of a solution."""
        q = candidate.request_idx
        return bool(self.most[q] > 0) and all(
            self._problem.covers(candidate, cover.row) is cover.inside
            for cover in self._sub.covers_of.get(q, ())
        )

    def others(self, q: int) -> list[int]:
        """Return the first requests of the kind of a request, except for itself."""
        return [f for f in self._of_kind[self._problem.first_of_kind[q]] if f != q]

    def one_of(self, first: int) -> int:
        """Return the one to be distinguished from the others: the last that must start, or may."""
        one: int = self.members[first][int(self.least[first]) - 1]
        return one

    def placed(self, chosen: Iterable[Any]) -> list[Any]:
        """Return the columns of a solution as those of members, each as often as it is taken."""
        left = {first: iter(members) for first, members in self.members.items()}
        return [replace(c, request_idx=next(left[c.request_idx])) for c in chosen]


def capacities_left(problem: PackingProblem, started: Iterable[Candidate]) -> IntArray:
    """Return the amounts of every row that some candidates leave."""
    left = problem.capacities
    for number, candidate in enumerate(started):
        if not number:
            left = left.copy()
        np.subtract.at(left, problem.rows_of(candidate), 1)
    return left


def fits(problem: PackingProblem, started: Sequence[Candidate]) -> bool:
    """Return whether no request starts twice and no row is overfull."""
    once = Counter(c.request_idx for c in started)
    return max(once.values(), default=0) <= 1 and bool(
        (capacities_left(problem, started) >= 0).all()
    )
