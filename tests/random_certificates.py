"""Random certificates of any packing, legal by the schema and often tight.

A document is what a file holds, but for prices, which are lists of ``[price, count]`` so that a
search reaches each; `certificate_of` returns what a file holds. Prices mostly come from the dual of
the relaxation that `docs/proofs/placement.md` describes, as loose certificates find nothing.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from pydantic import TypeAdapter
from scipy.optimize import linprog

from topoplace.certify.packing import LARGEST, CheckingOracle, Covers, Prices
from topoplace.result.certificate import Certificate

Json = Any
Row = tuple[str, int]
"""A row: its family, and its number there."""

KINDS = ("leaf", "start", "cover", "shared", "parts", "alike")
_SCHEMA: TypeAdapter[Any] = TypeAdapter(Certificate)
_SCALES = (1, 1, 2, 6, 60, 5040, 10**6, 10**9 - 1, 10**9)
_FACTORS = (1, 2, 7, 1 << 20, (1 << 31) - 1, 1 << 31, 1 << 52, 1 << 58, 1 << 62, (1 << 64) + 1)


@dataclass(frozen=True)
class Column:
    """A candidate: what it uses of every row, the rows it covers, its values on the levels."""

    request: str
    rows: Mapping[Row, int]
    covers: frozenset[int]
    values: tuple[int, ...]


@dataclass(frozen=True)
class Scope:
    """What the branches above a node say: who starts or does not, who covers a row or not."""

    starts: dict[str, bool] = field(default_factory=dict)
    covers: frozenset[tuple[str, int, bool]] = frozenset()

    @property
    def forced(self) -> list[str]:
        """Those that must start."""
        return [name for name, starts in self.starts.items() if starts]

    def cuts(self, name: str) -> set[tuple[int, bool]]:
        """Return which rows a request covers and which it does not."""
        return {(row, inside) for other, row, inside in self.covers if other == name}

    def with_start(self, name: str, starts: bool) -> Scope:
        return Scope(self.starts | {name: starts}, self.covers)


@dataclass
class Packing:
    """What certificates of a packing may speak of, and its relaxation.

    Attributes
    ----------
    capacities
        Of the rows, by family.
    kinds
        Requests of which some may be said to be alike.
    among
        Returns the packing of some requests alone, each with the candidates of another.
    """

    names: list[str]
    capacities: dict[str, list[int]]
    columns: list[Column]
    coverable: int
    largest: Sequence[int]
    kinds: list[list[str]]
    among: Callable[[Sequence[tuple[str, str]]], Packing]
    earlier: Sequence[int] = ()
    known: dict[object, tuple[dict[Row, float], list[float]]] = field(default_factory=dict)

    @property
    def level_idx(self) -> int:
        """Number of the level, from 0."""
        return len(self.earlier)

    def dual(self, scope: Scope) -> tuple[dict[Row, float], list[float]]:
        """Return the best prices and multipliers under some branches."""
        key = frozenset(scope.starts.items()), scope.covers
        if key not in self.known:
            self.known[key] = self._solved(scope)
        return self.known[key]

    def _solved(self, scope: Scope) -> tuple[dict[Row, float], list[float]]:
        """Solve with a reward for those that must start, so that there is always a solution."""
        columns = [
            column
            for column in self.columns
            if scope.starts.get(column.request, True)
            and all((row in column.covers) is inside for row, inside in scope.cuts(column.request))
        ]
        rows = [(family, k) for family, own in self.capacities.items() for k in range(len(own))]
        at: dict[object, int] = {key: k for k, key in enumerate([*rows, *self.names])}
        matrix = np.zeros((len(at) + self.level_idx, len(columns) + self.level_idx))
        limits = np.array([self.capacities[f][k] for f, k in rows] + [1] * len(self.names), float)
        limits = np.append(limits, [-max(value, -1e9) for value in self.earlier])
        for k, column in enumerate(columns):
            for key, amount in {**column.rows, column.request: 1}.items():
                matrix[at[key], k] = amount
            matrix[len(at) :, k] = [-value for value in column.values[: self.level_idx]]
        matrix[len(at) :, len(columns) :] = -np.eye(self.level_idx)
        values = np.array([column.values[self.level_idx] for column in columns], dtype=float)
        reward = 4 * float(np.abs(values).sum()) + 1 if len(columns) < 60 else 1e7
        forced = np.array([column.request in scope.forced for column in columns], dtype=float)
        gains = np.append(values + reward * forced, np.full(self.level_idx, -reward))
        found = linprog(-gains, A_ub=matrix, b_ub=limits) if columns else None
        if found is None or found.status != 0:
            return {}, [0.0] * self.level_idx
        prices = [-float(price) for price in found.ineqlin.marginals]
        return dict(zip(rows, prices, strict=False)), prices[len(at) :]


def certificate_of(document: Json) -> Any:
    """Return the certificate that a document is of.

    Raises
    ------
    ValidationError
        If the schema does not admit it.
    """
    return _SCHEMA.validate_json(json.dumps(_written(document)))


def _written(document: Json) -> Json:
    if isinstance(document, list):
        return [_written(below) for below in document]
    if not isinstance(document, dict):
        return document
    done = {key: _written(below) for key, below in document.items()}
    if "prices" in done:
        done["prices"] = {
            family: " ".join(str(p) if c == 1 else f"{p}*{c}" for p, c in runs)
            for family, runs in done["prices"].items()
        }
    return done


def draw(rng: random.Random, packing: Packing, kind: str, *, odd: bool = True) -> Json:
    """Return a document of a kind, now and then one that the checker refuses if it may be odd."""
    depth = rng.choice((0, 1, 1, 2, 2, 3, 4, 7) if odd else (0, 1, 2, 4))
    if kind == "leaf":
        return Writer(rng, packing, odd=odd).leaf(Scope())
    if kind == "parts":
        return _parts(rng, packing, odd)
    if kind == "alike":
        groups = random_groups(rng, packing, odd=odd)
        writer = Writer(rng, packing, odd=odd, groups=groups, shares=True, cover_share=0.5)
        return writer.whole(1 + depth, forcing=rng.random() < 0.4)
    share = {"start": 0.0, "cover": 0.9}.get(kind, 0.4)
    shares = kind == "shared" or (odd and packing.level_idx > 0 and rng.random() < 0.02)
    writer = Writer(rng, packing, odd=odd, shares=shares, cover_share=share)
    return writer.whole(depth + (kind == "cover"), forcing=kind == "cover" and rng.random() < 0.2)


def random_certificate(rng: random.Random, packing: Packing) -> Any:
    """Return a certificate of any kind for a level, in one piece, that no checker refuses."""
    kind = rng.choice(("start", "cover", "shared", "alike"))
    return certificate_of(draw(rng, packing, "any" if packing.level_idx else kind, odd=False))


def random_groups(rng: random.Random, packing: Packing, *, odd: bool) -> list[list[str]]:
    """Return groups of requests that may be said to be alike, if they may be odd also others."""
    groups = [[name for name in kind if rng.random() < 0.8] for kind in packing.kinds]
    groups = [group for group in groups if group and rng.random() < 0.8]
    if odd and rng.random() < 0.12:  # whether they are alike or not, and some twice
        groups = [[name for name in packing.names if rng.random() < 0.8] for _ in range(2)]
    if odd and rng.random() < 0.1:
        groups.append([])
    return groups


def _parts(rng: random.Random, packing: Packing, odd: bool) -> Json:
    parts: list[list[str]] = [[] for _ in range(rng.randint(1, 3))]
    for name in rng.sample(packing.names, len(packing.names)):
        rng.choice(parts).append(name)
    documents = []
    for names in parts:
        part = packing.among([(name, name) for name in names])
        writer = Writer(rng, part, odd=odd, shares=rng.random() < 0.5)
        documents.append({"requests": names, "certificate": writer.whole(rng.choice((0, 1, 4)))})
    if odd and rng.random() < 0.04 and packing.names:
        rng.choice(documents)["requests"].append(rng.choice(packing.names))
    return {"kind": "parts", "parts": documents}


class Writer:
    """Draws the leaves and the trees of one document."""

    def __init__(
        self,
        rng: random.Random,
        packing: Packing,
        *,
        odd: bool = False,
        groups: Sequence[Sequence[str]] = (),
        shares: bool = False,
        cover_share: float = 0.4,
    ) -> None:
        self.rng, self.packing, self.odd, self.groups = rng, packing, odd, groups
        self.earnest = rng.random() < 0.7
        self.shared: list[Json] | None = [] if shares else None
        self.cover_share = cover_share
        like = {name: group for group in groups for name in group}
        self.relaxed = packing
        if like and all(sum(name in group for group in groups) < 2 for name in like):
            kinds = [{*kind} for kind in packing.kinds]
            if all(any({*group} <= kind for kind in kinds) for group in groups if group):
                self.relaxed = packing.among(
                    [(name, self._widest(like.get(name, [name]))) for name in packing.names]
                )

    def _widest(self, group: Sequence[str]) -> str:
        """Return the request of a group that has the most candidates."""
        count = [sum(column.request == name for column in self.packing.columns) for name in group]
        return group[count.index(max(count))]

    def leaf(self, scope: Scope) -> Json:
        """Return a leaf, mostly one that proves about all that a leaf can under some branches."""
        rng, level_idx = self.rng, self.packing.level_idx
        prices, multipliers = self._prices(scope)
        largest = self.packing.largest
        room = LARGEST // (16 * max(1, largest[level_idx]))
        scales = [s for s in _SCALES[2 * self.earnest :] if s <= room]
        scale = rng.choice(scales if scales and rng.random() < 0.99 else _SCALES[:3])
        shift = 0.5 if self.earnest else rng.choice((0.5, 0.0, 0.999))
        whole = {row: int(scale * price + shift) for row, price in prices.items() if price > 0}
        rounded = [int(scale * m + rng.choice((shift, shift, 0, 1))) for m in multipliers]
        if self.odd and rng.random() < 0.003:
            rounded.append(0)
        if rounded and rng.random() < 0.2:  # all that is worth what it must be pays it back
            rounded[rng.randrange(len(rounded))] += rng.choice((scale, 1000 * scale))
        paid = sum(p * self.packing.capacities[f][k] for (f, k), p in whole.items())
        factors = [*rounded, scale]
        reach = paid + sum(f * max(1, v) for f, v in zip(factors, largest, strict=False))
        self._toll(scope, whole, LARGEST - reach)
        if not self.odd and reach >= LARGEST:
            scale, whole, rounded = 1, {}, [0] * level_idx
        families: Json = {}
        for family, capacities in self.packing.capacities.items():
            row = [whole.get((family, k), 0) for k in range(len(capacities))]
            if any(row) or not self.odd or rng.random() < 0.05:
                families[family] = self._runs(row)
        return {"kind": "leaf", "scale": scale, "prices": families, "multipliers": rounded}

    def _prices(self, scope: Scope) -> tuple[Mapping[Row, float], list[float]]:
        rng, packing = self.rng, self.packing
        idle = not self.odd and rng.random() < 0.8  # legal will do
        if not idle and ((self.earnest and rng.random() < 0.97) or rng.random() < 0.5):
            return self.relaxed.dual(scope if rng.random() < 0.7 else self._narrower(scope))
        if not idle and rng.random() < 0.3:
            return self.relaxed.dual(Scope())
        top = rng.choice((0, 1, 5, 100))
        rows = {
            (family, k): float(rng.choice((0, rng.randint(0, top))))
            for family, capacities in packing.capacities.items()
            for k in range(len(capacities))
        }
        return rows, [float(rng.randint(0, 3)) for _ in packing.earlier]

    def _narrower(self, scope: Scope) -> Scope:
        """Return less than the branches leave, what a checker that goes wrong may take them for."""
        rng = self.rng
        last = next(reversed(scope.starts.values()), True)
        guess = [last] if rng.random() < 0.6 else [True, False]
        starts = scope.starts | {
            name: rng.choice(guess)
            for name in self.packing.names
            if name not in scope.starts and rng.random() < 0.5
        }
        cut = rng.choice(sorted(scope.covers)) if scope.covers else None
        if cut is None or rng.random() < 0.3:
            return Scope(starts, scope.covers)
        group = next((group for group in self.groups if cut[0] in group), self.packing.names)
        return Scope(starts, scope.covers | {(n, *cut[1:]) for n in group if starts.get(n)})

    def _toll(self, scope: Scope, prices: dict[Row, int], room: int) -> None:
        """Charge much for what somebody uses in any case: that keeps what the leaf proves."""
        rng = self.rng
        rows = [(f, k) for f, own in self.packing.capacities.items() for k in range(len(own))]
        if not self.odd or rng.random() > 0.25 or room < 3 or not (scope.forced or self.earnest):
            return
        amounts = (1, 1 << 31, 1 << 52, room - 2, room - 1, room - 1)
        beyond = (room, room + 1, 1 << 62, (1 << 62) + 1, (1 << 63) - 1)
        family = next(iter(self.packing.capacities))
        used = [(family, row) for _, row, inside in sorted(scope.covers) if inside]
        row = rng.choice(used if used and rng.random() < 0.8 else rows)
        if used or scope.forced or rng.random() < 0.2:
            amount = rng.choice(beyond if rng.random() < 0.08 else amounts)
            prices[row] = prices.get(row, 0) + amount

    def _runs(self, prices: Sequence[int]) -> Json:
        """Return prices by runs, some split oddly."""
        runs: list[list[int]] = []
        for price in prices:
            if runs and runs[-1][0] == price and self.rng.random() < 0.9:
                runs[-1][1] += 1
            else:
                runs.append([price, 1])
        return runs

    def whole(self, depth: int, *, forcing: bool = False) -> Json:
        """Return a whole certificate; where it is forcing, all are forced to start first."""
        tree = self._tree(Scope(), depth, self.packing.names if forcing else ())
        if self.shared is None:
            return tree
        if self.rng.random() < 0.1:
            self.shared.append(self.leaf(Scope()))
        return {"kind": "shared", "alike": list(self.groups), "leaves": self.shared, "tree": tree}

    def _tree(self, scope: Scope, depth: int, first: Sequence[str] = ()) -> Json:
        """Return a tree, mostly a chain of so many branches below those that force some."""
        rng = self.rng
        undecided = [name for name in self.packing.names if name not in scope.starts]
        if not first and (depth <= 0 or not self.packing.names):
            return self._end(scope)
        may_cover = not first and scope.forced and self.packing.coverable
        if may_cover and (rng.random() < self.cover_share or not undecided):
            return self._cover(scope, depth)
        if not undecided and not (self.odd and rng.random() < 0.02):
            return self._end(scope)
        name = first[0] if first else rng.choice(undecided or self.packing.names)
        low, high = self._depths(depth, second=rng.random() < max(0.6, self.cover_share))
        out, into = (scope.with_start(name, starts) for starts in (False, True))
        return {
            "kind": "start",
            "request": name,
            "out": self._end(out) if first else self._tree(out, low),
            "into": self._tree(into, depth if first else high, first[1:]),
        }

    def _depths(self, depth: int, *, second: bool) -> tuple[int, int]:
        """Return how deep the two sides go."""
        if self.rng.random() < 0.2:
            return depth // 2, depth // 2
        return (0, depth - 1) if second else (depth - 1, 0)

    def _cover(self, scope: Scope, depth: int) -> Json:
        rng = self.rng
        name = rng.choice(scope.forced)
        cuts = scope.cuts(name)
        row = rng.randrange(self.packing.coverable)
        if cuts and rng.random() < 0.15:
            row = rng.choice(sorted(cuts))[0]
        like = {name}
        if rng.random() < 0.8:  # as the page has it; else prices that know less
            group = next((group for group in self.groups if name in group), ())
            like |= {q for q in group if scope.starts.get(q) and scope.cuts(q) == cuts}
        inside = Scope(scope.starts, scope.covers | {(name, row, True)})
        outside = Scope(scope.starts, scope.covers | {(q, row, False) for q in like})
        depths = self._depths(depth, second=rng.random() < 0.5)
        sides = {"inside": self._tree(inside, depths[0]), "outside": self._tree(outside, depths[1])}
        return {"kind": "cover", "request": name, "row": row, **sides}

    def _end(self, scope: Scope) -> Json:
        rng = self.rng
        if self.shared is None or rng.random() < 0.1:
            return self.leaf(scope)
        at = rng.randrange(max(1, len(self.shared)))
        if not self.shared or (len(self.shared) < 6 and rng.random() < 0.6):
            at = len(self.shared)
            self.shared.append(self.leaf(scope))
        many = rng.choice(_FACTORS)
        times, over = rng.choice(
            (
                *((1, 1), (1, 1), (many, many), (many, many)),
                *((many + 1, many), (many, many + 1), (many - 1, many)),
                *((0, many), (1, 2), (many, 1), (rng.randint(1, 9), rng.randint(1, 9))),
            )
        )
        return {"kind": "ref", "leaf": at, "times": times, "over": over}


def random_covers(rng: random.Random, packing: Packing, name: str) -> Covers:
    """Return rows of which a request must or must not take, mostly of one of its candidates."""
    rows = [row for c in packing.columns if c.request == name for row in c.covers]
    covers = Covers()
    for _ in range(rng.choice((0, 0, 1, 1, 2, 3))):
        if packing.coverable:
            every = rows if rows and rng.random() < 0.8 else range(packing.coverable)
            covers = covers.split(rng.choice(every), inside=rng.random() < 0.5)
    return covers


def random_prices(rng: random.Random, packing: Packing) -> dict[str, list[int]]:
    """Return prices of the rows of most families, many of them 0."""
    top = rng.choice((1, 3, 100))
    return {
        name: [rng.choice((0, rng.randint(0, top))) for _ in own]
        for name, own in packing.capacities.items()
        if rng.random() < 0.8
    }


def best_gain(
    packing: Packing,
    name: str,
    prices: Mapping[str, Sequence[int]],
    factors: Sequence[int],
    covers: Covers,
) -> int | None:
    """Return the most that a candidate of a request gains, of all that there are."""
    gains = [
        sum(f * v for f, v in zip(factors, column.values, strict=False))
        - sum(prices[f][k] * n for (f, k), n in column.rows.items() if f in prices)
        for column in packing.columns
        if column.request == name
        and covers.inside <= column.covers
        and not covers.outside & column.covers
    ]
    return max(gains, default=None)


def oracle_is_right(rng: random.Random, packing: Packing, oracle: CheckingOracle) -> Counter[bool]:
    """Hold an oracle against all candidates; return how often there was one, and how often none."""
    rows = {name: own.tolist() for name, own in oracle.rows.items()}
    assert list(rows.items()) == list(packing.capacities.items())
    assert oracle.coverable == packing.coverable
    assert [request.id for request in oracle.requests] == packing.names
    seen: Counter[bool] = Counter()
    for _ in range(6):
        prices = random_prices(rng, packing)
        num_factors = rng.randint(1, len(packing.largest))
        factors = tuple(rng.choice((0, 1, 7, 40)) for _ in range(num_factors))
        wanted = {q: random_covers(rng, packing, n) for q, n in enumerate(packing.names)}
        arrays = {name: np.array(own, dtype=np.int64) for name, own in prices.items()}
        found = oracle.best(Prices(arrays, 0, factors), wanted)
        for q, covers in wanted.items():
            best = best_gain(packing, packing.names[q], prices, factors, covers)
            assert found[q] == best, (q, covers, prices, factors)
            seen[best is None] += 1
    return seen


def best_at_least(packing: Packing, level_idx: int, earlier: Sequence[int]) -> int | None:
    """Return the best of a level among the packings whose earlier levels reach some values."""
    # the best come last, and are tried first
    columns = sorted(packing.columns, key=lambda column: column.values[: level_idx + 1][::-1])
    by_request = [[c for c in columns if c.request == name] for name in packing.names]
    rest = [[0] * (level_idx + 1)]  # no more can be gained by those that are left
    for columns in reversed(by_request):
        tops = [max([0, *(c.values[k] for c in columns)]) for k in range(level_idx + 1)]
        rest.append([a + b for a, b in zip(rest[-1], tops, strict=True)])
    best: int | None = None
    todo: list[tuple[int, list[int], Mapping[Row, int]]] = [(0, [0] * (level_idx + 1), {})]
    while todo:
        idx, total, used = todo.pop()
        *most, last = [a + b for a, b in zip(total, rest[-1 - idx], strict=True)]
        if any(a < b for a, b in zip(most, earlier, strict=True)) or (
            best is not None and last <= best
        ):
            continue
        if idx == len(by_request):
            best = last
            continue
        todo.append((idx + 1, total, used))
        for column in by_request[idx]:
            now = {row: used.get(row, 0) + amount for row, amount in column.rows.items()}
            if all(now[f, k] <= packing.capacities[f][k] for f, k in now):
                more = [a + b for a, b in zip(total, column.values, strict=False)]
                todo.append((idx + 1, more, {**used, **now}))
    return best
