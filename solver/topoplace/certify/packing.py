"""The bound that a certificate of a packing proves (docs/proofs/placement.md, "Packings").

Requests use rows of limited capacity; the oracle of a topology says which candidates use which.
"""

from __future__ import annotations

import itertools
import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from topoplace.certify.integers import require_room
from topoplace.certify.report import (
    AnyResult,
    Claims,
    Number,
    Problem,
    RefusedError,
    Searches,
    is_beyond,
)
from topoplace.errors import number_of
from topoplace.result.certificate import (
    CertificateNode,
    CoverBranch,
    FirstOrLater,
    InOrder,
    Leaf,
    LeafRef,
    Parts,
    Reserved,
    SharedLeaves,
    StartBranch,
    WholeTree,
)
from topoplace.types import IntArray

LARGEST = 1 << 58
"""Limit of the sum of all prices plus the largest value of a candidate at a leaf's factors.

An oracle adds up only prices and values of rows, at most twice each (prefix sums go round a ring
twice), so its sums stay below 2^60.
"""

LARGEST_SUM = 1 << 24
"""Largest sum of all values for which level 1 is rounded to a sum of values."""

_AT_ONCE, _PRICES = 32, 1 << 22
"""Leaves that an oracle looks at together, and prices of these, at most."""

_RUN = re.compile(r"([0-9]{1,30})(?:\*([1-9][0-9]{0,8}))?")


@dataclass(frozen=True)
class Covers:
    """Rows that a candidate must use, and rows that it must not; none if it may be anywhere."""

    inside: frozenset[int] = frozenset()
    outside: frozenset[int] = frozenset()

    @property
    def named(self) -> list[tuple[int, bool]]:
        """The rows that branches name, each with whether a candidate must use it."""
        return [(row, True) for row in self.inside] + [(row, False) for row in self.outside]

    def admit(self, rows: Set[int]) -> bool:
        """Return whether a candidate of some rows is allowed."""
        return self.inside <= rows and not self.outside & rows

    def split(self, row: int, *, inside: bool) -> Covers:
        """Return one side of a branch on a row."""
        if inside:
            return replace(self, inside=self.inside | {row})
        return replace(self, outside=self.outside | {row})


ANYWHERE = Covers()


@dataclass(frozen=True)
class Prices:
    """A leaf as arrays: the price of every row by family (absent ones are free).

    All rows cost `total`, price times capacity. `factors` multiply a candidate's values on the
    levels up to the leaf's: they are its multipliers and its scale.
    """

    rows: Mapping[str, IntArray]
    total: int
    factors: tuple[int, ...]


class PackedRequest(Protocol):
    """A request: all its candidates have the value `value` on the first level."""

    @property
    def id(self) -> str:
        """Its name in certificates."""

    @property
    def value(self) -> int:
        """Its value on the first level if it starts, at least 0."""


class CheckingOracle(Protocol):
    """What the checker has to know about a packing."""

    @property
    def requests(self) -> Sequence[PackedRequest]:
        """The queue, every id once."""

    @property
    def rows(self) -> Mapping[str, IntArray]:
        """Capacities of the rows, at least 0 each, by family."""

    @property
    def coverable(self) -> int:
        """How many rows a branch may name, numbered from 0 through the families in their order."""

    @property
    def largest(self) -> Sequence[int]:
        """By level, a limit of the absolute value of a candidate: sums have to fit into 64 bits."""

    def may_replace(self, one: int, other: int) -> bool:
        """Return whether every candidate of `other` is also one of `one`; transitive.

        Requests that may replace each other with the same value on the first level have it on all.
        """

    def among(self, chosen: Sequence[tuple[int, int]]) -> CheckingOracle:
        """Return an oracle of some requests, each in the places of one that may replace it.

        For each request that is kept, `chosen` has a pair: the request, and one that may replace
        it.
        """

    def best(self, prices: Prices, wanted: Mapping[int, Covers]) -> Mapping[int, int | None]:
        """Return for some requests the most that a candidate gains, None if there is no candidate.

        That is the sum of `prices.factors` times its values (of the levels there are factors for)
        less that of amounts times prices. The candidate obeys the covers in `wanted` of its
        request.
        """


@runtime_checkable
class AtSeveral(Protocol):
    """An oracle to which several leaves are less work together than one by one."""

    def best_of_several(
        self, asked: Sequence[tuple[Prices, Mapping[int, Covers]]]
    ) -> Sequence[Mapping[int, int | None]]:
        """Return what `CheckingOracle.best` does of each."""


@dataclass(frozen=True)
class Proven:
    """A bound in maximising sense, and which leaf decides it."""

    value: int
    where: str = ""


Earlier = Sequence[int | None]
"""The values of the levels before one, in maximising sense; None where nothing is required."""


class Packings(Problem[AnyResult]):
    """Placements that are packings: what certificates prove about all of them."""

    searches: ClassVar[Searches] = "none"

    @property
    @abstractmethod
    def oracle(self) -> CheckingOracle:
        """The oracle of the instance; known after `read`."""

    def places(self, solution: Any, distinct: str) -> Mapping[str, Hashable]:
        """Return the places of started requests, as the oracle knows them; on tori only."""
        raise RefusedError(f"{distinct} of a {self.result.problem}")

    def later(self, at: int | None, request: str) -> CheckingOracle:
        """Return an oracle of now and some seconds from now, when alone a request is placed.

        Then others hold what they have if they last longer. None stands for the time at which all
        have ended that have an end.
        """
        raise RefusedError(f"a reservation of a {self.result.problem}")

    def require_reserved(self, reserved: Reserved) -> None:
        """Raise unless a reservation is a place alongside all that start and last until then."""
        raise RefusedError(f"a reservation of a {self.result.problem}")

    def turned(self, level_idx: int, value: int) -> int:
        """Return a value of a level in maximising sense, or the reported form of such a value."""
        return value if self.levels[level_idx][1] == "max" else -value

    @property
    def least(self) -> Mapping[int, float]:
        """By level the least value of placements that count, maximised; known after `read`."""
        return {}

    @property
    def held(self) -> Sequence[Number | None]:
        """By level what the user required, else the value of the solution or witness."""
        required = (getattr(level, "required", None) for level in self.result.levels)
        reached = self._witnessed or self.values
        return [v if r is None else r for r, v in zip(required, reached, strict=True)]

    _witnessed: Sequence[Number | None] | None = None
    """The value of the witness by the checker's own computation; None if there is none."""

    def follow_witness(self, claims: Claims) -> bool:
        """Add the claim that the witness is a placement, and has the values it states."""
        witness = getattr(self.result, "witness", None)
        if witness is None:
            return True
        self._witnessed = claims.add("witness", lambda: self._worth_of(witness), _by_level)
        return self._witnessed is not None

    def _worth_of(self, witness: Any) -> Sequence[Number | None]:
        if self.result.solution is not None:
            raise RefusedError("a solution is there, and needs no witness")
        own = {"solution": witness.solution, "witness": None, "explanations": []}
        return self.worth_of(self.result.model_copy(update=own), witness.values)

    def worth_of(self, result: AnyResult, stated: Sequence[int]) -> Sequence[Number | None]:
        """Return the value of the solution of another result; raise unless it is as stated."""
        other, claims = copy(self), Claims()
        other.result, other.values = result, []
        other.follow(claims)
        for claim in claims:
            if not claim.holds:
                raise RefusedError(f"{claim.name}: {claim.detail}")
        if list(stated) != list(other.values):
            raise RefusedError(f"values are {stated}, not {list(other.values)}")
        return other.values

    def _check_witness(self, level_idx: int) -> None:
        """Raise unless the witness reaches what is required of the levels before one."""
        levels = self.result.levels[:level_idx]
        for level, value in zip(levels, self._witnessed or (), strict=False):
            required = getattr(level, "required", None)
            if required is not None and value is not None and is_beyond(level, value, required):
                raise RefusedError(f"the witness has {level.name} {value}, required is {required}")

    def bound(self, level_idx: int) -> tuple[Number, str]:
        """Return what the certificate of a level proves, and where."""
        self._check_witness(level_idx)
        certificate = self.result.levels[level_idx].certificate
        return self.proven(level_idx, certificate, self.held[:level_idx])

    def proven(
        self,
        level_idx: int,
        certificate: Any,
        held: Sequence[Number | None],
        oracle: CheckingOracle | None = None,
        claimed: int = 0,
    ) -> tuple[int, str]:
        """Return what a certificate proves about placements that are as good on earlier levels.

        An oracle other than that of the instance is about some of its placements only. `claimed` is
        the claimed bound, for problems in which certificates are about one.
        """
        earlier = [None if v is None else self.turned(k, int(v)) for k, v in enumerate(held)]
        proven = certified_bound(oracle or self.oracle, certificate, earlier)
        if proven is None:
            raise RefusedError("the certificate leaves no placement at all")
        return self.turned(level_idx, proven.value), proven.where


def _by_level(values: Sequence[Number | None]) -> str:
    return f"no answer, but a placement worth {', '.join(map(str, values))} by level"


def certified_bound(
    oracle: CheckingOracle, certificate: FirstOrLater, earlier: Earlier
) -> Proven | None:
    """Return the bound of a certificate in maximising sense, None if it leaves no packing.

    Parameters
    ----------
    earlier
        V_1 .. V_{k-1}, the values of the levels before level k, in maximising sense.

    Raises
    ------
    RefusedError
        If the certificate is not what docs/proofs/placement.md describes.
    """
    if isinstance(certificate, InOrder):
        raise RefusedError("requests start in no order here")
    if not isinstance(certificate, Parts):
        return _bound_of_tree(oracle, certificate, earlier)
    if earlier:
        raise RefusedError("the queue comes in parts on the first level only")
    bounds = [_bound_of_tree(part, tree, []) for part, tree in _parts_of(oracle, certificate)]
    known = [bound.value for bound in bounds if bound is not None]
    if len(known) < len(bounds):
        return None
    return Proven(sum(known), f" in parts: {' + '.join(map(str, known))}")


def read_prices(oracle: CheckingOracle, leaf: Leaf, level_idx: int) -> Prices:
    """Return a leaf's prices; refuse lists that do not fit the rows or 64 bits."""
    if len(leaf.multipliers) != level_idx:
        raise RefusedError(
            f"{number_of(len(leaf.multipliers), 'multiplier')} for "
            f"{number_of(level_idx, 'earlier level')}"
        )
    if any(m < 0 for m in leaf.multipliers):
        raise RefusedError("a multiplier is negative")
    factors = (*leaf.multipliers, leaf.scale)
    runs: dict[str, tuple[list[int], list[int]]] = {}
    total = reach = 0
    for family, text in leaf.prices.items():
        if family not in oracle.rows:
            raise RefusedError(f"no rows are called {family[:200]!r} under this rule")
        capacities = oracle.rows[family]
        prices, counts = runs[family] = _runs(text, family)
        if sum(counts) != len(capacities):
            raise RefusedError(
                f"prices of {family} are not one for each of {number_of(len(capacities), 'row')}"
            )
        until = np.concatenate([[0], np.cumsum(capacities)])[np.cumsum([0, *counts])]
        held = np.diff(until).tolist()
        total += sum(p * c for p, c in zip(prices, held, strict=True))
        # a price is a number of its own even where rows hold nothing
        reach += sum(p * max(c, n) for p, c, n in zip(prices, held, counts, strict=True))
    # a factor is a number of its own even where all values are 0
    reach += sum(f * max(1, v) for f, v in zip(factors, oracle.largest, strict=False))
    require_room(reach, "the prices and multipliers of a leaf", LARGEST)
    rows = {
        family: np.repeat(np.array(prices, dtype=np.int64), counts)
        for family, (prices, counts) in runs.items()
    }
    return Prices(rows, total, factors)


def _runs(text: str, family: str) -> tuple[list[int], list[int]]:
    prices, counts = [], []
    for word in text.split():
        match = _RUN.fullmatch(word)
        if match is None:
            raise RefusedError(f"prices of {family} are negative or malformed at {word[:40]!r}")
        prices.append(int(match[1]))
        counts.append(int(match[2] or 1))
    return prices, counts


def _parts_of(
    oracle: CheckingOracle, certificate: Parts
) -> Iterator[tuple[CheckingOracle, WholeTree]]:
    """Yield for every part an oracle of its requests, and its certificate."""
    numbers = {request.id: q for q, request in enumerate(oracle.requests)}
    named = Counter(name for part in certificate.parts for name in part.requests)
    for name in named | numbers:
        if name not in numbers:
            raise RefusedError(f"{name} in a part of the queue, which is no request")
        if named[name] != 1:
            raise RefusedError(f"{name} is {named[name]} times in parts of the queue, not once")
    for part in certificate.parts:
        yield oracle.among([(numbers[n], numbers[n]) for n in part.requests]), part.certificate


def _bound_of_tree(oracle: CheckingOracle, root: WholeTree, earlier: Earlier) -> Proven | None:
    if not isinstance(root, SharedLeaves):
        return _Walk(oracle, earlier, (), ()).bound(root)
    numbers = {request.id: q for q, request in enumerate(oracle.requests)}
    like = {q: q for q in numbers.values()}
    groups: list[list[int]] = []
    for names in root.alike:
        for name in names:
            if name not in numbers:
                raise RefusedError(f"{name} among alike requests, which is no request")
            if names.count(name) > 1 or any(numbers[name] in group for group in groups):
                raise RefusedError(f"{name} twice among alike requests")
        group = [numbers[name] for name in names]
        widest = [q for q in group if all(q == o or oracle.may_replace(q, o) for o in group)]
        if not group:
            continue
        values = {oracle.requests[q].value for q in group}
        if not widest or (earlier and (len(widest) < len(group) or len(values) > 1)):
            raise RefusedError(f"requests {', '.join(names)} are not alike")
        like |= dict.fromkeys(group, widest[0])
        groups.append(group)
    return _Walk(oracle.among([*like.items()]), earlier, groups, root.leaves).bound(root.tree)


@dataclass(frozen=True)
class _Scope:
    """What the branches above a node fix.

    These are the requests that must start or must not, those of them that a branch names, where
    requests may go, and the sides taken so far in words.
    """

    starts: dict[int, bool] = field(default_factory=dict)
    named: frozenset[int] = frozenset()
    places: dict[int, Covers] = field(default_factory=dict)
    path: tuple[str, ...] = ()

    @property
    def where(self) -> str:
        """Which leaf it is, for the reason of a refusal."""
        return f" at the leaf {', '.join(self.path)}" if self.path else ""


_Child = tuple[CertificateNode, _Scope]


@contextmanager
def _naming(scope: _Scope) -> Iterator[None]:
    """Say in refusals at which leaf they are."""
    try:
        yield
    except RefusedError as error:
        raise RefusedError(f"{error}{scope.where}") from None


class _Priced:
    """A leaf's prices, and what requests gain at most where they may go, once it is known."""

    def __init__(self, oracle: CheckingOracle, leaf: Leaf, level_idx: int) -> None:
        self.prices = read_prices(oracle, leaf, level_idx)
        self.best: dict[tuple[int, Covers], int | None] = {}
        self._asked: set[tuple[int, Covers]] = set()

    def not_asked(self, places: Mapping[int, Covers]) -> dict[int, Covers]:
        """Return the places that nobody asked for before; each of them is returned once."""
        new = {q: covers for q, covers in places.items() if (q, covers) not in self._asked}
        self._asked.update(new.items())
        return new


@dataclass(frozen=True)
class _AtLeaf:
    """A leaf on the way through a tree: its prices times `times / over`, and what is fixed there.

    `new` are the places to be looked at that no leaf before has asked for at these prices.
    """

    leaf: _Priced
    scope: _Scope
    new: Mapping[int, Covers]
    times: int = 1
    over: int = 1


class _Walk:
    """Goes through a tree once, from its root to its leaves."""

    def __init__(
        self,
        oracle: CheckingOracle,
        earlier: Earlier,
        groups: Sequence[Sequence[int]],
        leaves: Sequence[Leaf],
    ) -> None:
        self._oracle, self._earlier, self._groups = oracle, earlier, groups
        self._requests = oracle.requests
        self._numbers = {request.id: q for q, request in enumerate(self._requests)}
        self._shared = [_Priced(oracle, leaf, len(earlier)) for leaf in leaves]

    def bound(self, root: CertificateNode) -> Proven | None:
        """Return the largest bound of a leaf, None if all leaves are empty."""
        best: Proven | None = None
        num_rows = sum(map(len, self._oracle.rows.values()))
        leaves, at_once = self._leaves(root), max(1, min(_AT_ONCE, _PRICES // max(1, num_rows)))
        while some := [*itertools.islice(leaves, at_once)]:
            self._look(some)
            for at in some:
                bound = self._bound(at)
                if bound is not None and (best is None or bound > best.value):
                    best = Proven(bound, at.scope.where)
        return best

    def _leaves(self, root: CertificateNode) -> Iterator[_AtLeaf]:
        """Go through a tree, and yield its leaves."""
        todo: list[_Child] = [(root, _Scope())]
        while todo:
            node, scope = todo.pop()
            with _naming(scope):
                if isinstance(node, Leaf | LeafRef):
                    found = self._at(node, scope)
                else:
                    todo += self._sides(node, scope)
                    continue
            yield found

    def _sides(self, node: StartBranch | CoverBranch, scope: _Scope) -> Iterator[_Child]:
        if node.request not in self._numbers:
            raise RefusedError(f"a branch on {node.request}, which is no request")
        q = self._numbers[node.request]
        if isinstance(node, StartBranch):
            return self._starting(node, q, scope)
        return self._covering(node, q, scope)

    def _starting(self, node: StartBranch, q: int, scope: _Scope) -> Iterator[_Child]:
        if q in scope.named:
            raise RefusedError(f"a second branch on whether {node.request} starts")
        for child, starts in ((node.out, False), (node.into, True)):
            fixed = {q, *self._followers(q, starts)}
            if all(scope.starts.get(other, starts) == starts for other in fixed):
                within = scope.starts | dict.fromkeys(fixed, starts)
                path = (*scope.path, f"{node.request} {'in' if starts else 'out'}")
                named = scope.named | {q}
                yield child, replace(scope, starts=within, named=named, path=path)

    def _followers(self, q: int, starts: bool) -> list[int]:
        """Return the requests that also start if one does, or also do not start if it does not."""
        others = range(len(self._requests))
        return [o for o in others if (self._preferred(o, q) if starts else self._preferred(q, o))]

    def _preferred(self, one: int, other: int) -> bool:
        """Return whether a request can take any place of another, and comes before it."""
        gain = self._requests[one].value - self._requests[other].value
        if one == other or gain < 0 or not self._oracle.may_replace(one, other):
            return False
        equal = gain == 0 and self._oracle.may_replace(other, one)
        return one < other if equal else not self._earlier

    def _covering(self, node: CoverBranch, q: int, scope: _Scope) -> Iterator[_Child]:
        if not scope.starts.get(q, False):
            raise RefusedError(f"a cover branch on {node.request} outside an `into` of it")
        if node.row >= self._oracle.coverable:
            raise RefusedError(f"a cover branch on row {node.row}, which is none")
        covers = scope.places.get(q, ANYWHERE)
        alike = [
            other
            for group in self._groups
            if q in group
            for other in group
            if scope.starts.get(other, True) and scope.places.get(other, ANYWHERE) == covers
        ]
        for child, inside, whose in ((node.inside, True, [q]), (node.outside, False, [q, *alike])):
            places = scope.places | dict.fromkeys(whose, covers.split(node.row, inside=inside))
            path = (*scope.path, f"{node.request} {'on' if inside else 'off'} {node.row}")
            yield child, replace(scope, places=places, path=path)

    def _at(self, node: Leaf | LeafRef, scope: _Scope) -> _AtLeaf:
        """Return a leaf with its prices; refuse one that is none."""
        if isinstance(node, Leaf):
            leaf = _Priced(self._oracle, node, len(self._earlier))
            return _AtLeaf(leaf, scope, leaf.not_asked(self._places(scope)))
        if node.leaf >= len(self._shared):
            raise RefusedError(f"there is no shared leaf {node.leaf}")
        if self._earlier and (node.times, node.over) != (1, 1):
            raise RefusedError("a multiple of a shared leaf on a later level")
        leaf = self._shared[node.leaf]
        everywhere = {q: scope.places.get(q, ANYWHERE) for q in range(len(self._requests))}
        new = leaf.not_asked(everywhere)  # all at once, as others will be asked for
        return _AtLeaf(leaf, scope, new, node.times, node.over)

    def _places(self, scope: _Scope) -> dict[int, Covers]:
        """Return where the requests may be that may start."""
        requests = range(len(self._requests))
        return {q: scope.places.get(q, ANYWHERE) for q in requests if scope.starts.get(q, True)}

    def _look(self, leaves: Sequence[_AtLeaf]) -> None:
        """Have the oracle look at what is new at some leaves."""
        new = [at for at in leaves if at.new]
        if isinstance(self._oracle, AtSeveral):
            each = self._oracle.best_of_several([(at.leaf.prices, at.new) for at in new])
            for at, found in zip(new, each, strict=True):
                at.leaf.best |= {(q, covers): found[q] for q, covers in at.new.items()}
            return
        for at in new:
            with _naming(at.scope):
                found = self._oracle.best(at.leaf.prices, at.new)
            at.leaf.best |= {(q, covers): found[q] for q, covers in at.new.items()}

    def _bound(self, at: _AtLeaf) -> int | None:
        """Return the bound of a leaf."""
        leaf, scope, times, over = at.leaf, at.scope, at.times, at.over
        # On the first level a candidate's value is the request's: its cheapest candidate is the
        # best at every multiple.
        *multipliers, scale = leaf.prices.factors
        # `over` times the scale makes all of it true units
        side = times * leaf.prices.total
        for m, v in zip(multipliers, self._earlier, strict=True):
            if v is None and m:
                reason = "a multiplier of a level of which nothing is required"
                raise RefusedError(f"{reason}{scope.where}")
            side -= m * (v or 0)
        for place in self._places(scope).items():
            q, best = place[0], leaf.best[place]
            if best is not None:
                gain = times * best + (over - times) * scale * self._requests[q].value
                side += gain if q in scope.starts else max(0, gain)
            elif q in scope.starts:
                return None
        bound, most = side // (over * scale), sum(request.value for request in self._requests)
        if not self._earlier and most <= LARGEST_SUM:
            return self._largest_sum(scope, min(bound, most))
        return bound

    def _largest_sum(self, scope: _Scope, limit: int) -> int | None:
        """Return the largest total value of a set the scope admits, at most `limit`."""
        if limit < 0:
            return None
        sums = 1  # bit s: s is the total of some set
        for q, request in enumerate(self._requests):
            starts = scope.starts.get(q)
            if starts is None:
                sums |= sums << request.value
            elif starts:
                sums <<= request.value
        return (sums & ((1 << (limit + 1)) - 1)).bit_length() - 1 if sums else None
