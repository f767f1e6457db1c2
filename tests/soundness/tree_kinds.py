"""Allocations on tiny trees: certificates and claims of every kind, and what is true of them.

A certificate is held against the checker inside a result whose solution is as dear as brute force
finds one, so that nothing but the certificate stands against a bound that is too high. Nogoods are
sought by linear programs over what the checker itself leaves of the states: a state or a neighbour
that it wrongly drops is one that the programs make use of.
"""

from __future__ import annotations

import copy
import heapq
import itertools
import json
import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError
from scipy.optimize import linprog
from scipy.sparse import coo_array

from soundness.attack import EXTREMES, Json, Number, Target, number
from topoplace.certify import check_document
from topoplace.certify.report import RefusedError
from topoplace.certify.tree_machine.binomial import Plans, PlanView
from topoplace.certify.tree_machine.box_states import Assumed, View
from topoplace.certify.tree_machine.cubes import Sides
from topoplace.certify.tree_machine.instance import Wish, read_instance
from topoplace.certify.tree_machine.lines import Lines, least_met
from topoplace.certify.tree_machine.nogoods import Nogoods
from topoplace.certify.tree_machine.relaxed import Relaxed
from topoplace.placement.tree.exact.requests import domains as domains_of
from topoplace.placement.tree.exact.starts import certificate_of
from topoplace.result.tree import AllocationResult, DomainsCertificate, ThresholdNogood
from topoplace.snapshot.schema import Pattern, Snapshot
from topoplace.snapshot.tree_state import TreeRequest
from tree_brute_force import hops, state_of, steps_of

IntArray = NDArray[np.int64]
Counts = tuple[int, ...]
At = tuple[int, ...]

CUBES = (Pattern.RECURSIVE_DOUBLING, Pattern.VECTOR_DOUBLING)
GRIDS = (Pattern.STENCIL_2D, Pattern.STENCIL_3D)
AGAIN = 4
"""How often a problem is attacked before the next one is drawn."""


# Snapshots


def snapshot_document(
    rng: random.Random, patterns: Sequence[Pattern], sizes: Sequence[int], *, others: float
) -> Json:
    """Return a tiny tree with a request of some size and patterns, and perhaps others."""
    wanted = rng.choice(sizes)
    most = 10 if wanted > 5 else 8
    leaves = [rng.choice((1, 2, 2, 3, 3, 4)) for _ in range(rng.choice((1, 2, 2, 3, 3, 4)))]
    while sum(leaves) < wanted:
        leaves = [size + 1 for size in leaves] if len(leaves) > 3 else [*leaves, rng.randint(1, 4)]
    names = [f"n{leaf}-{k}" for leaf, size in enumerate(leaves) for k in range(size)]
    rng.shuffle(names)
    room = max(wanted, min(most, len(names)) - (rng.random() < 0.5) * rng.randint(0, 3))
    unused = names[room:]
    down, held = [], []
    for name in unused:
        (down if rng.random() < 0.2 else held).append(name)
    queue = [_request(rng, 0, wanted, patterns)]
    if wanted <= 4 and rng.random() < others:
        for n in range(1, rng.choice((2, 2, 3))):
            any_patterns = rng.sample(list(Pattern), rng.choice((0, 1, 1, 2)))
            size = min(sum(leaves), rng.choice((1, 2, 2, 3)))
            queue.append(_request(rng, n, size, any_patterns))
    return {
        "schema": "topoplace.snapshot/1",
        "name": "tiny",
        "machine": {"kind": "tree", "name": "tiny", "switches": _switches(rng, leaves)},
        "down": ",".join([*down, *(held[:1] if rng.random() < 0.2 else [])]),
        "running": _running(rng, held),
        "queue": queue,
    }


def _switches(rng: random.Random, leaves: Sequence[int]) -> Json:
    """Return leaves under one root, deeper, under two roots, or partly apart."""
    names = [f"s{leaf}" for leaf in range(len(leaves))]
    found = [
        {"name": name, "nodes": ",".join(f"n{leaf}-{k}" for k in range(leaves[leaf]))}
        for leaf, name in enumerate(names)
    ]
    ways = ["flat"] * 10 + ["deep"] * 3 + ["fat"] * 2 + ["apart"]
    half = max(1, len(names) // 2)
    uppers = {
        "flat": {"root": names},
        "deep": {"a": names[:half], "b": names[half:], "root": ["a", "b"]},
        "fat": {"a": names, "b": names},
        "apart": {"a": names[:half], "b": names[half - 1 :]},
    }["flat" if len(names) < 3 else rng.choice(ways)]
    return found + [{"name": n, "switches": ",".join(below)} for n, below in uppers.items()]


def _running(rng: random.Random, held: list[str]) -> Json:
    jobs = []
    rest = list(held)
    while rest:
        own = [rest.pop() for _ in range(min(len(rest), rng.randint(1, 3)))]
        kind = rng.choice(("strict", "strict", "tolerant", "none"))
        jobs.append({"id": f"r{len(rest)}", "nodes": ",".join(own), "communication": kind})
    return jobs


def _request(rng: random.Random, n: int, nodes: int, patterns: Sequence[Pattern]) -> Json:
    share = 100 // max(1, len(patterns))
    uses = [
        {
            "pattern": pattern.value,
            "share": rng.choice((share, share, rng.randint(1, share))),
            "message_bytes": rng.choice((1, 1, 1, 3, 1 << 20, 1 << 40)),
        }
        for pattern in patterns
    ]
    found: Json = {"id": f"q{n}", "nodes": nodes}
    found["priority"] = rng.choice((1, 1, 1, 2, 3, 1_000_000))
    found["communication"] = rng.choice(("strict", "tolerant", "none" if n else "strict"))
    found["patterns"] = uses or None
    return found


# The truth


@lru_cache(maxsize=4096)
def _orders(counts: Counts) -> NDArray[np.int8]:
    """Return the leaf of every rank in all orders of so many ranks per leaf."""
    found = set(_orders_of(counts))
    return np.array(sorted(found), dtype=np.int8).reshape(len(found), sum(counts))


def _orders_of(counts: Counts) -> Iterator[At]:
    if not any(counts):
        yield ()
    for leaf, count in enumerate(counts):
        if count:
            fewer = (*counts[:leaf], count - 1, *counts[leaf + 1 :])
            for rest in _orders_of(fewer):
                yield (leaf, *rest)


class Truth:
    """What brute force knows of a snapshot: ranks per leaf, and every order of them."""

    def __init__(self, snapshot: Snapshot) -> None:
        state = state_of(snapshot)
        self.tree, self.requests = state.tree, state.requests
        leaf_of = self.tree.leaf_of_node
        self.free = [int(state.free[leaf_of == n].sum()) for n in range(self.tree.num_leaves)]
        self.names = [
            [str(self.tree.node_names[k]) for k in np.flatnonzero(state.free & (leaf_of == n))]
            for n in range(self.tree.num_leaves)
        ]
        self.running = tuple(int(n) for n in state.comm)

    @cached_property
    def costs(self) -> dict[int, Fraction]:
        """Return the least cost by priority-weighted nodes started."""
        found: dict[int, Fraction] = {}
        for starts in itertools.product((False, True), repeat=len(self.requests)):
            started = [one for one, start in zip(self.requests, starts, strict=True) if start]
            worth = sum(one.value for one in started)
            for cost in self.costs_of(started):
                if worth not in found or cost < found[worth]:
                    found[worth] = cost
        return found

    @property
    def most(self) -> int:
        """Return the most priority-weighted nodes that can start."""
        return max(self.costs)

    def least(self, worth: int) -> Fraction:
        """Return the least cost of all allocations worth at least as much."""
        return min(cost for own, cost in self.costs.items() if own >= worth)

    def costs_of(self, started: Sequence[TreeRequest]) -> Iterator[Fraction]:
        """Yield the least cost for all ranks per leaf that the requests can have."""
        for placed in self._placed(started, self.free):
            comm = self.with_ranks(started, placed)
            yield sum(
                (
                    self._least_of(one, counts, comm)
                    for one, counts in zip(started, placed, strict=True)
                    if one.intensive
                ),
                Fraction(0),
            )

    def with_ranks(self, started: Sequence[TreeRequest], placed: Sequence[Counts]) -> Counts:
        """Return the communicating nodes per leaf with requests that start."""
        own = [counts for one, counts in zip(started, placed, strict=True) if one.intensive]
        return tuple(map(sum, zip(self.running, *own, strict=True)))

    def _placed(
        self, started: Sequence[TreeRequest], free: Sequence[int]
    ) -> Iterator[list[Counts]]:
        if not started:
            yield []
            return
        for counts in self.counts(started[0], free):
            left = [room - count for room, count in zip(free, counts, strict=True)]
            for rest in self._placed(started[1:], left):
                yield [counts, *rest]

    def counts(self, request: TreeRequest, free: Sequence[int]) -> Iterator[Counts]:
        """Yield the ranks per leaf that a request can have."""
        level = self.tree.common_level
        for counts in _sums(request.nodes, free):
            used = [leaf for leaf, count in enumerate(counts) if count]
            if not request.intensive or all(level[a, b] for a in used for b in used):
                yield counts

    def _least_of(self, request: TreeRequest, counts: Counts, comm: Counts) -> Fraction:
        """Return the least cost over all orders of the ranks."""
        prices = [
            Fraction(use.share, 100) * use.message_bytes * weight
            for use in request.patterns
            for _, weight in steps_of(use.pattern, request.nodes)
        ]
        return min(
            sum((p * h for p, h in zip(prices, own, strict=True)), Fraction(0))
            for own in self.profiles(request, counts, comm)
        )

    def profiles(
        self, request: TreeRequest, counts: Counts, comm: Counts, level: int | None = None
    ) -> set[tuple[Fraction, ...]]:
        """Return what the dearest hops of all steps can be, over all orders of the ranks.

        With `level` all leaves are taken to be below a switch of that level.
        """
        used = [leaf for leaf, count in enumerate(counts) if count]
        table = {(a, b): hops(self.tree, comm, a, b) for a in used for b in used}
        if level is not None:
            for a, b in itertools.permutations(used, 2):
                table[a, b] *= Fraction(level, int(self.tree.common_level[a, b]))
        values = sorted(set(table.values()))
        numbers = np.zeros([len(counts)] * 2, dtype=np.int64)
        for pair, value in table.items():
            numbers[pair] = values.index(value)
        orders = _orders(counts)
        code = np.zeros(len(orders), dtype=np.int64)
        steps = [
            pairs for use in request.patterns for pairs, _ in steps_of(use.pattern, request.nodes)
        ]
        for pairs in steps:
            i, j = np.array(pairs).T
            code = code * len(values) + numbers[orders[:, i], orders[:, j]].max(axis=1)
        found = set()
        powers = [len(values) ** n for n in reversed(range(len(steps)))]
        for one in np.unique(code).tolist():
            found.add(tuple(values[one // power % len(values)] for power in powers))
        return found


def _sums(total: int, most: Sequence[int]) -> Iterator[Counts]:
    """Yield numbers up to some most that add up to a total."""
    if not most:
        if total == 0:
            yield ()
        return
    for first in range(min(total, most[0]) + 1):
        for rest in _sums(total - first, most[1:]):
            yield (first, *rest)


# Results


def fraction(value: Number) -> Json:
    """Return a number as documents have it."""
    value = Fraction(value)
    return {"numerator": value.numerator, "denominator": value.denominator}


def _number(document: Json) -> Fraction:
    """Return a number of a document, 0 for a denominator that the schema does not allow."""
    if document["denominator"] < 1:
        return Fraction(0)
    return Fraction(document["numerator"], document["denominator"])


def _gap(value: Fraction, bound: Fraction) -> float:
    return float(abs(value - bound) / max(Fraction(1), abs(value)))


def level_document(name: str, value: Number, bound: Number | None, certificate: Json) -> Json:
    """Return a level whose figures fit each other."""
    return {
        "name": name,
        "sense": "max" if name == "nodes" else "min",
        "status": "optimal" if bound == value else "feasible",
        "objective": fraction(value),
        "bound": None if bound is None else fraction(bound),
        "gap": None if bound is None else _gap(Fraction(value), Fraction(bound)),
        "proof": "none" if bound is None else "certificate",
        "certificate": certificate,
    }


class Problem:
    """A tiny snapshot, its truth, and results of it."""

    def __init__(self, document: Json) -> None:
        self.document = document
        self.snapshot = Snapshot.model_validate_json(json.dumps(document))
        self.truth = Truth(self.snapshot)
        self.instance = read_instance(self.snapshot)

    def result(self, claims: Json) -> AllocationResult:
        """Return a result with levels and a solution; its top figures are those of `nodes`."""
        first = claims["levels"][0]
        top = {key: first[key] for key in ("status", "gap", "proof")}
        for key in ("objective", "bound"):
            own = first[key]
            top[key] = None if own is None else int(_number(own))
        document = {
            "schema": "topoplace.result/3",
            "problem": "allocation",
            "method": "drawn",
            **top,
            "seconds": 0.0,
            "limits": {},
            "seed": None,
            "versions": {},
            **claims,
            "instance": self.document,
        }
        return AllocationResult.model_validate_json(json.dumps(document))

    def accepts(self, claims: Json) -> bool:
        """Tell whether schema and checker take what is claimed."""
        try:
            result = self.result(claims)
        except ValidationError:
            return False
        return check_document(result).verified

    def solution(self, rng: random.Random, names: Sequence[str], tries: int, sign: int) -> Json:
        """Return a solution that starts these requests, or as many of them as fit.

        It is the cheapest of some tries with `sign` 1, the dearest with -1.
        """
        drawn = [self._solution(rng, names) for _ in range(tries)]
        return max(drawn, key=lambda one: (len(one["allocations"]), -sign * _number(one["cost"])))

    def _solution(self, rng: random.Random, names: Sequence[str]) -> Json:
        truth = self.truth
        room = [list(names) for names in truth.names]
        started, placed, nodes = [], [], {}
        for request in truth.requests:
            if request.id not in names:
                continue
            ways = list(truth.counts(request, [len(own) for own in room]))
            if not ways:
                continue
            counts = rng.choice(ways)
            own = [room[leaf].pop() for leaf, count in enumerate(counts) for _ in range(count)]
            rng.shuffle(own)
            started.append(request)
            placed.append(counts)
            nodes[request.id] = own
        comm = truth.with_ranks(started, placed)
        found, total = [], Fraction(0)
        for request in started:
            cost = self._cost(request, nodes[request.id], comm)
            total += cost
            found.append(
                {"request": request.id, "nodes": nodes[request.id], "cost": fraction(cost)}
            )
        return {"allocations": found, "cost": fraction(total)}

    def _cost(self, request: TreeRequest, nodes: Sequence[str], comm: Counts) -> Fraction:
        leaves = [self.instance.leaf_of[name] for name in nodes]
        total = Fraction(0)
        for use in request.patterns if request.intensive else ():
            for pairs, weight in steps_of(use.pattern, len(leaves)):
                worst = max(hops(self.truth.tree, comm, leaves[i], leaves[j]) for i, j in pairs)
                total += Fraction(use.share, 100) * use.message_bytes * weight * worst
        return total

    def worth(self, solution: Json) -> int:
        """Return the priority-weighted nodes of a solution."""
        started = {one["request"] for one in solution["allocations"]}
        return sum(one.value for one in self.truth.requests if one.id in started)


# Linear programs


class Program:
    """A linear program in unknowns by name, for multipliers that are rounded and checked later."""

    def __init__(self) -> None:
        self._names: dict[Hashable, int] = {}
        self._bounds: list[tuple[float, float]] = []
        self._rows: list[dict[int, float]] = []

    def unknown(self, name: Hashable, low: float, high: float) -> None:
        self._names[name] = len(self._bounds)
        self._bounds.append((low, high))

    def at_most_zero(self, *terms: tuple[Hashable, float]) -> None:
        """Add that a sum of unknowns, each times a factor, is not above 0."""
        row: dict[int, float] = {}
        for name, factor in terms:
            row[self._names[name]] = row.get(self._names[name], 0.0) + factor
        self._rows.append(row)

    def largest(self, *terms: tuple[Hashable, float]) -> tuple[float, dict[Hashable, float]]:
        """Return the most that a sum can be, and the unknowns there."""
        objective = np.zeros(len(self._bounds))
        for name, factor in terms:
            objective[self._names[name]] -= factor
        at = [(n, column) for n, row in enumerate(self._rows) for column in row]
        data = [factor for row in self._rows for factor in row.values()]
        shape = len(self._rows), len(self._bounds)
        rows, columns = np.array(at).reshape(-1, 2).T
        matrix = coo_array((data, (rows, columns)), shape=shape).tocsr()
        found = linprog(objective, matrix, np.zeros(shape[0]), bounds=self._bounds, method="highs")
        if found.x is None:
            return 0.0, dict.fromkeys(self._names, 0.0)
        return -found.fun, {name: float(found.x[n]) for name, n in self._names.items()}


FAR = 1e4


# Trees of nogoods


class Refuter(ABC):
    """Seeks trees that the checker takes against thresholds of one request.

    Attributes
    ----------
    nogoods, bound
        Those found from the cheapest thresholds on, and the cost of the first ones not refuted.
    """

    def __init__(self, relaxed: Relaxed, wish: Wish) -> None:
        self.relaxed, self.wish = relaxed, wish
        self.boxes = Nogoods(relaxed, wish).boxes()
        self.num_states, self.num_values = len(relaxed.states), len(relaxed.values)
        self.steps = len(relaxed.prices)
        self.none = Assumed((0,) * self.num_states)
        self.nogoods: list[Json] = []
        self.bound = Fraction(0)

    @abstractmethod
    def view(self, at: At, assumed: Assumed) -> View | PlanView | None:
        """Return what the checker leaves of the states."""

    @abstractmethod
    def leaf(self, rng: random.Random, view: View | PlanView) -> Json | None:
        """Return multipliers that may rule out thresholds, None if a program finds none."""

    @abstractmethod
    def wild(self, rng: random.Random) -> Json:
        """Return any leaf of a tree."""

    def accepts(self, nogood: Json) -> bool:
        """Tell whether the checker takes a nogood, whatever it is good for."""
        try:
            own = ThresholdNogood.model_validate_json(json.dumps(nogood))
            return Nogoods(self.relaxed, self.wish).is_right(own)
        except (RefusedError, OverflowError, ValidationError):
            return False

    def nothing(self, rng: random.Random) -> Json:
        """Return a leaf where nothing is left."""
        return {"kind": "empty"} if rng.random() < 0.8 else self.wild(rng)

    def tree(
        self, rng: random.Random, at: At, depth: int, assumed: Assumed | None = None
    ) -> Json | None:
        """Return a tree that may rule out thresholds, None if none is found."""
        assumed = self.none if assumed is None else assumed
        view = self.view(at, assumed)
        if view is None:
            return self.nothing(rng)
        found = self.leaf(rng, view)
        if found is not None or depth == 0:
            return found
        state = rng.randrange(self.num_states)
        without = self.tree(rng, at, depth - 1, assumed.without(state))
        if without is None:
            return None
        more = self.tree(rng, at, depth - 1, assumed.more(state))
        if more is None:
            return None
        return {"kind": "branch", "state": state, "without": without, "more": more}

    def wild_tree(self, rng: random.Random, at: At, depth: int, assumed: Assumed) -> Json:
        """Return a tree of any depth, whose leaves are right where that is easy."""
        if depth > 0 and rng.random() < 0.7:
            state = number(rng, *range(self.num_states), extremes=0.01)
            inside = 0 <= state < self.num_states
            without = assumed.without(state) if inside else assumed
            more = assumed.more(state) if inside else assumed
            return {
                "kind": "branch",
                "state": state,
                "without": self.wild_tree(rng, at, depth - 1, without),
                "more": self.wild_tree(rng, at, depth - 1, more),
            }
        view = self.view(at, assumed) if rng.random() < 0.9 else None
        found = self.nothing(rng) if view is None else self.leaf(rng, view)
        return self.wild(rng) if found is None else found

    def search(self, rng: random.Random, most: int) -> None:
        """Refute thresholds from the cheapest on, each lifted as far as its tree serves."""
        heap: list[tuple[Fraction, int, list[int], list[int]]] = []
        number_of = itertools.count()

        def push(low: list[int], high: list[int]) -> None:
            for chain in self.relaxed.chains:
                for one, other in itertools.pairwise(chain):
                    low[other] = max(low[one], low[other])
            if all(a <= b for a, b in zip(low, high, strict=True)):
                heapq.heappush(heap, (self.relaxed.cost(low), next(number_of), low, high))

        for low, high in self.boxes:
            push(list(low), list(high))
        while heap:
            cost, _, low, high = heapq.heappop(heap)
            over = next((n["at"] for n in self.nogoods if _is_under(low, n["at"])), None)
            if over is None:
                tree = self._right_tree(rng, tuple(low)) if len(self.nogoods) < most else None
                if tree is None:
                    self.bound = cost
                    return
                over = self._lifted(rng, tuple(low), tree)["at"]
            for step, top in enumerate(over):
                if top < high[step]:
                    push([*low[:step], max(low[step], top + 1), *low[step + 1 :]], high.copy())
                    high[step] = top
        self.bound = self.relaxed.cost([self.num_values - 1] * self.steps)

    def _right_tree(self, rng: random.Random, at: At) -> Json | None:
        """Return a tree that the checker takes, None if a few are not."""
        for _ in range(4):
            tree = self.tree(rng, at, 2)
            if tree is None:
                return None
            if self.accepts({"at": list(at), "proof": tree}):
                return tree
        return None

    def _lifted(self, rng: random.Random, at: At, tree: Json) -> Json:
        """Return a nogood with thresholds raised one by one, with another tree if need be."""
        best = {"at": list(at), "proof": tree}
        for step in rng.sample(range(self.steps), self.steps):
            while best["at"][step] + 1 < self.num_values:
                above = list(best["at"])
                above[step] += 1
                trial = {"at": above, "proof": best["proof"]}
                if not self.accepts(trial):
                    other = self.tree(rng, tuple(above), 0)
                    trial = {"at": above, "proof": other}
                    if other is None or not self.accepts(trial):
                        break
                best = trial
        self.nogoods.append(best)
        return best


def _is_under(at: Sequence[int], top: Sequence[int]) -> bool:
    return all(a <= b for a, b in zip(at, top, strict=True))


class StateRefuter(Refuter):
    """Nothing but the states left, of any patterns."""

    def view(self, at: At, assumed: Assumed) -> View | PlanView | None:
        return None if assumed == self.none and not self.relaxed.possible(at) else NOTHING_KNOWN

    def leaf(self, rng: random.Random, view: View | PlanView) -> Json | None:
        return None

    def wild(self, rng: random.Random) -> Json:
        return {"kind": "empty"}


NOTHING_KNOWN = View(*[np.zeros(0, dtype=np.int64)] * 7)  # type: ignore[arg-type]


def _lowest(rng: random.Random) -> float:
    """Return the least multiplier where none may be below 0: now and then one that is."""
    return -1.0 if rng.random() < 0.05 else 0.0


def _scaled(rng: random.Random, found: Sequence[float], limit: int) -> list[int]:
    """Return multipliers as integers, the largest now and then at or beyond a limit."""
    most = max((abs(one) for one in found), default=0.0) or 1.0
    usual = (12, 60, 840, 10_000, 1 << 20, 1 << 20, limit - 1, limit, limit)
    scale = number(rng, *usual, limit + 1, 1 << rng.randint(36, 64), extremes=0.0)
    return [round(one / most * scale) for one in found]


def _leaves_worth(program: Program, view: View, types: IntArray, ranks: IntArray) -> None:
    """Add the worths of leaves by type, at a price of a rank.

    Worths are the unknowns ("worth", place), prices ("type", t) and "rank".
    """
    program.unknown("rank", -FAR, FAR)
    for t in sorted(set(types[view.states].tolist())):
        program.unknown(("type", t), 0, FAR)
    for place, state in enumerate(view.states.tolist()):
        if view.open[place]:
            terms = (("worth", place), 1.0), (("type", int(types[state])), -1.0)
            program.at_most_zero(*terms, ("rank", -float(ranks[state])))


def _all_worth(
    view: View, types: IntArray, ranks: IntArray, wanted: int
) -> list[tuple[Hashable, float]]:
    """Return the terms of what all leaves are worth at most."""
    terms: list[tuple[Hashable, float]] = [("rank", float(wanted))]
    for t in sorted(set(types[view.states].tolist())):
        terms.append((("type", t), float(view.free[t])))
    for place, state in enumerate(view.states.tolist()):
        sure = float(view.assumed[place])
        terms += [(("worth", place), sure), ("rank", -sure * float(ranks[state]))]
    return terms


class LineRefuter(Refuter):
    """Prices of lines, segments and whole segments of a grid."""

    def __init__(self, relaxed: Relaxed, wish: Wish) -> None:
        super().__init__(relaxed, wish)
        rules = Lines(relaxed, wish.patterns[0].pattern)
        self.extents, self._states = rules.extents, rules.states

    def view(self, at: At, assumed: Assumed) -> View | None:
        return self._states.view(at, assumed)

    def leaf(self, rng: random.Random, view: View | PlanView) -> Json | None:
        assert isinstance(view, View)
        wholes = rng.random() < 0.5
        program = self._program(view, wholes, -_lowest(rng))
        ranks, types, wanted = self._states.ranks, self._states.types, self.wish.nodes
        worths = [(name, -f) for name, f in _all_worth(view, types, ranks, wanted)]
        lines = [(("line", d), wanted / n) for d, n in enumerate(self.extents)]
        margin, found = program.largest(*worths, *lines)
        if margin < 1e-6:
            return None
        return self._prices(rng, view, found, wholes)

    def _prices(
        self, rng: random.Random, view: View, found: dict[Hashable, float], wholes: bool
    ) -> Json:
        """Return prices as integers; those of states that are gone may be anything."""
        parts = ("cell", "segment", "whole") if wholes else ("cell", "segment")
        dims, left = range(len(self.extents)), range(len(view.states))
        names = [(part, d, s) for part in parts for d in dims for s in left]
        scaled = iter(_scaled(rng, [found[name] for name in names], 1 << 35))
        tables = {}
        for part in parts:
            usual = (-1, 0, 0, 0) if part == "segment" else (-1, 0, 1)
            rows = [[number(rng, *usual, extremes=0.0)] * self.num_states for _ in dims]
            for d in dims:
                for s in left:
                    rows[d][view.states[s]] = next(scaled)
            tables[f"{part}s"] = rows
        return {"kind": "prices", **tables}

    def wild(self, rng: random.Random) -> Json:
        extremes = rng.choice((0.0, 0.0, 0.02, 0.3))

        def table(*usual: int) -> list[list[int]]:
            return [
                [number(rng, *usual, extremes=extremes) for _ in range(self.num_states)]
                for _ in self.extents
            ]

        found = {"kind": "prices", "cells": table(-2, -1, 0, 1, 2), "segments": table(-3, -1, 0, 0)}
        if rng.random() < 0.5:
            found["wholes"] = table(-2, 0, 0, 1, 5)
        return found

    def _program(self, view: View, wholes: bool, highest: float) -> Program:
        """Return the program: lines as paths from segment to segment, leaves by their worth."""
        program = Program()
        for d in range(len(self.extents)):
            program.unknown(("line", d), -FAR, FAR)
            for s in range(len(view.states)):
                program.unknown(("cell", d, s), -1, 1)
                program.unknown(("segment", d, s), -1, highest)
                program.unknown(("whole", d, s), *((-1, 1) if wholes else (0, 0)))
            self._lines(program, view, d)
        for s, state in enumerate(view.states.tolist()):
            program.unknown(("worth", s), -FAR, FAR)
            self._worth(program, view, s, int(self._states.ranks[state]), wholes)
        _leaves_worth(program, view, self._states.types, self._states.ranks)
        return program

    def _lines(self, program: Program, view: View, d: int) -> None:
        extent, ranks = self.extents[d], self._states.ranks[view.states].tolist()
        for cells in range(1, extent + 1):
            for s in range(len(ranks)):
                program.unknown(("end", d, cells, s), -FAR, FAR)

        def price(s: int, length: int) -> list[tuple[Hashable, float]]:
            found: list[tuple[Hashable, float]] = [(("cell", d, s), -float(length))]
            found.append((("segment", d, s), -1.0))
            return [*found, (("whole", d, s), -1.0)] if length == ranks[s] else found

        for s in range(len(ranks)):
            if view.keeps[d, s]:
                program.at_most_zero((("line", d), 1.0), *price(s, extent))
                continue
            program.at_most_zero((("line", d), 1.0), (("end", d, extent, s), -1.0))
            longest = min(extent, ranks[s] if view.able[d, s] else 1)
            before = np.flatnonzero(view.beside[d][:, s]).tolist()
            for cells in range(1, extent + 1):
                end = (("end", d, cells, s), 1.0)
                for length in range(1, min(longest, cells) + 1):
                    if length == cells:
                        program.at_most_zero(end, *price(s, length))
                        continue
                    for b in before:
                        prior = (("end", d, cells - length, b), -1.0)
                        program.at_most_zero(end, prior, *price(s, length))

    def _worth(self, program: Program, view: View, s: int, ranks: int, wholes: bool) -> None:
        dims = range(len(self.extents))
        for way in self._ways(ranks, wholes):
            kept = [d for d in dims if view.keeps[d, s]]
            if any(way[d] * self.extents[d] != ranks for d in kept):
                continue
            terms: list[tuple[Hashable, float]] = [(("worth", s), -1.0)]
            for d in dims:
                terms += [(("cell", d, s), float(ranks)), (("segment", d, s), float(way[d]))]
                if way[d] == 1:
                    terms.append((("whole", d, s), 1.0))
            program.at_most_zero(*terms)

    def _ways(self, ranks: int, wholes: bool) -> list[list[int]]:
        """Return segments per dimension that ranks of one leaf may be in, as documented."""
        dims = range(len(self.extents))
        ways: list[list[int]] = least_met(ranks, self.extents).T.tolist()
        if not wholes:
            return ways
        if ranks == 1:
            return [[1] * len(self.extents)]
        runs = [[1 if d == e else ranks for e in dims] for d in dims if ranks <= self.extents[d]]
        return runs + [[max(2, own) for own in way] for way in ways]


class SideRefuter(Refuter):
    """Multipliers of the sides of a cube, or of a ring."""

    def __init__(self, relaxed: Relaxed, wish: Wish) -> None:
        super().__init__(relaxed, wish)
        self._rules = Sides(relaxed, wish.patterns[0].pattern)
        self._states = self._rules.states
        known = {value: n for n, value in enumerate(relaxed.values)}
        kinds = [relaxed.kind(state) for state in relaxed.states]
        self._keys = sorted({known[relaxed.between[kind, kind]] for kind in kinds})

    def view(self, at: At, assumed: Assumed) -> View | None:
        return self._states.view(at, assumed)

    def leaf(self, rng: random.Random, view: View | PlanView) -> Json | None:
        assert isinstance(view, View)
        sides = [(m, h) for m in range(1, self.steps + 1) for h in self._keys]
        needs = {side: self._rules.side(view, *side) for side in sides}
        program = Program()
        lowest = _lowest(rng)
        for side in sides:
            program.unknown(side, lowest, 1)
        for s in range(len(view.states)):
            program.unknown(("worth", s), -FAR, FAR)
            own = [(side, -float(needs[side][s])) for side in sides]
            program.at_most_zero((("worth", s), -1.0), *own)
        types, ranks = self._states.types, self._states.ranks
        _leaves_worth(program, view, types, ranks)
        worths = [(name, -f) for name, f in _all_worth(view, types, ranks, self.wish.nodes)]
        crowds = [(side, float(self._rules._crowd(view, needs[side]))) for side in sides]
        margin, found = program.largest(*worths, *crowds)
        if margin < 1e-6:
            return None
        scaled = _scaled(rng, [found[side] for side in sides], 1 << 34)
        drawn = [[*side, much] for side, much in zip(sides, scaled, strict=True) if much]
        rng.shuffle(drawn)
        return {"kind": "needs", "sides": drawn}

    def wild(self, rng: random.Random) -> Json:
        extremes = rng.choice((0.0, 0.0, 0.05, 0.3))
        sides = [
            [
                number(rng, *range(1, self.steps + 1), extremes=extremes / 2),
                number(rng, *self._keys, extremes=extremes),
                number(rng, 0, 1, 1, 2, 3, -1, 1 << 34, extremes=extremes),
            ]
            for _ in range(rng.randint(0, 3))
        ]
        return {"kind": "needs", "sides": sides}


class PlanRefuter(Refuter):
    """Multipliers of active ranks, and of the senders and receivers of bad leaves."""

    def __init__(self, relaxed: Relaxed, wish: Wish) -> None:
        super().__init__(relaxed, wish)
        children = [len(pairs) for pairs, _ in steps_of(Pattern.BINOMIAL, wish.nodes)]
        self._active = [1, *(1 + int(n) for n in np.cumsum(children))]
        self._idle = [a - n for a, n in zip(self._active, children, strict=False)]
        self._states = Plans(relaxed).states

    def view(self, at: At, assumed: Assumed) -> PlanView | None:
        return self._states.view(at, assumed)

    def leaf(self, rng: random.Random, view: View | PlanView) -> Json | None:
        assert isinstance(view, PlanView)
        steps = range(self.steps)
        keys = sorted(set(view.key.tolist()))
        program = Program()
        for n in range(self.steps + 1):
            program.unknown(("share", n), -1, 1)
        names = [(side, n, key) for n in steps for key in keys for side in ("out", "in")]
        lowest = _lowest(rng)
        for name in names:
            program.unknown(name, lowest, 1)
        for t, (leaves, full) in enumerate(zip(view.leaves, view.full, strict=True)):
            program.unknown(("type", t), -FAR if full and leaves else 0, FAR)
        for s in range(len(view.ranks)):
            self._plans(program, view, s, keys)
        wanted = [(("share", n), float(a)) for n, a in enumerate(self._active)]
        wanted += [(("out", n, key), -float(self._idle[n])) for n in steps for key in keys]
        worth = [(("type", t), -float(leaves)) for t, leaves in enumerate(view.leaves)]
        margin, found = program.largest(*wanted, *worth)
        if margin < 1e-6:
            return None
        return self._shares(rng, found, keys)

    def _shares(self, rng: random.Random, found: dict[Hashable, float], keys: list[int]) -> Json:
        cuts = [(n, key) for n in range(self.steps) for key in keys]
        names: list[Hashable] = [("share", n) for n in range(self.steps + 1)]
        names += [(side, *cut) for cut in cuts for side in ("out", "in")]
        most = (1 << 58) // (self.wish.nodes * len(names))
        scaled = _scaled(rng, [found[name] for name in names], rng.choice((1 << 30, most)))
        shares, rest = scaled[: self.steps + 1], iter(scaled[self.steps + 1 :])
        drawn = [[*cut, next(rest), next(rest)] for cut in cuts]
        drawn = [cut for cut in drawn if cut[2] or cut[3]]
        rng.shuffle(drawn)
        return {"kind": "shares", "shares": shares, "cuts": drawn}

    def _plans(self, program: Program, view: PlanView, s: int, keys: list[int]) -> None:
        """Add that a type's price is not below any plan of a state, step by step."""
        most, active = int(view.ranks[s]), self._active
        roles = {(n, key): self._role(view, s, n, key) for n in range(self.steps) for key in keys}
        program.unknown((s, 0, 0), 0, 0)
        program.unknown((s, 0, 1), -FAR, FAR)
        program.at_most_zero((("share", 0), 1.0), ((s, 0, 1), -1.0))
        now = {0, 1}
        for n in range(self.steps):
            after: set[int] = set()
            for a in sorted(now):
                for end in self._ends(view, s, n, a, min(most, active[n + 1])):
                    if end not in after:
                        program.unknown((s, n + 1, end), -FAR, FAR)
                        after.add(end)
                    terms: list[tuple[Hashable, float]] = [((s, n + 1, end), -1.0)]
                    terms += [((s, n, a), 1.0), (("share", n + 1), float(end))]
                    terms += self._of_cuts(roles, keys, n, a, end, bool(view.able[n, s]))
                    program.at_most_zero(*terms)
            now = after
        if most in now:
            program.at_most_zero(((s, self.steps, most), 1.0), (("type", int(view.types[s])), -1.0))

    @staticmethod
    def _role(view: PlanView, s: int, n: int, key: int) -> str:
        high = view.key >= key
        if view.beside[n][s, high].any():
            return "near"
        return "bad" if high[s] else "neither"

    @staticmethod
    def _ends(view: PlanView, s: int, n: int, a: int, highest: int) -> range:
        if view.crosses[n, s]:
            return range(a, highest + 1)
        if a > 0 and not view.able[n, s]:
            return range(0)
        return range(2 * a, min(2 * a, highest) + 1)

    @staticmethod
    def _of_cuts(
        roles: dict[tuple[int, int], str], keys: list[int], n: int, a: int, end: int, able: bool
    ) -> list[tuple[Hashable, float]]:
        new = end - a
        inside = min(a, new) if able else 0
        found: list[tuple[Hashable, float]] = []
        for key in keys:
            role = roles[n, key]
            if role == "near":
                found += [(("out", n, key), float(new)), (("in", n, key), float(a))]
            elif role == "bad":
                found.append((("out", n, key), float(inside - a)))
                found.append((("in", n, key), float(inside - new)))
        return found

    def wild(self, rng: random.Random) -> Json:
        extremes = rng.choice((0.0, 0.0, 0.05, 0.3))
        shares = [number(rng, -1, 0, 0, 1, 2, -3, extremes=extremes) for _ in range(self.steps + 1)]
        cuts = [
            [
                number(rng, *range(self.steps), extremes=extremes / 4),
                number(rng, *range(self.num_values), extremes=extremes / 4),
                number(rng, 0, 0, 1, 1, 2, 1 << 50, extremes=extremes),
                number(rng, 0, 0, 1, 1, 3, extremes=extremes),
            ]
            for _ in range(rng.randint(0, 3))
        ]
        return {"kind": "shares", "shares": shares, "cuts": cuts}


# Proofs of one request


REFUTERS: dict[str, type[Refuter]] = {
    "states": StateRefuter,
    "lines": LineRefuter,
    "cubes": SideRefuter,
    "rings": SideRefuter,
    "binomial": PlanRefuter,
}


class Alone:
    """A request alone with the running jobs: what the checker proves of it, and what is true.

    Attributes
    ----------
    kind
        What its proofs are made of: one of `REFUTERS`.
    proven
        The bound that a right proof is known for.
    """

    def __init__(self, problem: Problem, name: str, kind: str) -> None:
        self._problem, self.name, self.kind = problem, name, kind
        (self._request,) = (one for one in problem.truth.requests if one.id == name)
        wish = problem.instance.wishes[name]
        self.relaxed = Relaxed(problem.instance, wish)
        self._refuter = REFUTERS[kind](self.relaxed, wish)
        self._refuter.search(random.Random(name), 30)
        self.proven = self._refuter.bound

    @cached_property
    def least(self) -> Fraction:
        """The least cost that the request can have; what is proven if it cannot start."""
        return min(self._problem.truth.costs_of([self._request]), default=self.proven)

    @cached_property
    def achieved(self) -> list[At]:
        """The numbers of the dearest hops of the steps that allocations have, and none above."""
        truth, relaxed = self._problem.truth, self.relaxed
        leaves = [leaf for leaf, room in enumerate(truth.free) if room]
        pairs = itertools.combinations(leaves, 2)
        level = min((int(truth.tree.common_level[pair]) for pair in pairs), default=2)
        known = {Fraction(value, relaxed.scale): n for n, value in enumerate(relaxed.values)}
        found: set[At] = set()
        for counts in truth.counts(self._request, truth.free):
            comm = truth.with_ranks([self._request], [counts])
            for profile in truth.profiles(self._request, counts, comm, level):
                at = [known[value] for value in profile[: len(relaxed.prices)]]
                found.add(tuple(sorted(at) if self.kind == "cubes" else at))
        every = np.array(sorted(found))
        below = (every[None] <= every[:, None]).all(axis=2).sum(axis=1)
        return [at for at, number in zip(sorted(found), below.tolist(), strict=True) if number == 1]

    def proof(self, rng: random.Random, wrong: float) -> Json:
        """Return a proof of the request; `wrong` is about how much of it is wild."""
        bound = drawn_bound(rng, self.proven, self.least)
        if wrong and rng.random() < 0.5:
            bound = self.least + rng.choice((Fraction(1, 1 << 40), 1, self.least / 20))
        found = {"request": self.name, "bound": unreduced(rng, bound)}
        return {**found, "nogoods": self._nogoods(rng, wrong)}

    def _nogoods(self, rng: random.Random, wrong: float) -> list[Json]:
        found = list(self._refuter.nogoods)
        rng.shuffle(found)
        while rng.random() < wrong:
            found.insert(rng.randint(0, len(found)), self.nogood(rng))
        if rng.random() < wrong / 2 and found:
            found.pop(rng.randrange(len(found)))
        return found

    def nogood(self, rng: random.Random) -> Json:
        """Return a nogood near thresholds that some allocation has."""
        top = len(self.relaxed.values)
        if self.kind == "states":
            at = [number(rng, *range(top), extremes=0.01) for _ in self.relaxed.prices]
            return {"at": at, "proof": {"kind": "empty"}}
        at = list(rng.choice(self.achieved))
        for _ in range(rng.choice((0, 1, 1, 1, 2))):
            step = rng.randrange(len(at))
            at[step] = number(rng, at[step] - 1, at[step] - 1, at[step] + 1, extremes=0.02)
        at = at if rng.random() < 0.05 else [max(0, value) for value in at]
        legal = all(0 <= value < len(self.relaxed.values) for value in at)
        depth = rng.choice((0, 0, 1, 2, 3, 5))
        tree = None
        if legal and rng.random() < 0.6:
            tree = self._refuter.tree(rng, tuple(at), min(depth, 2))
        if tree is None:
            known = self.achieved[0] if not legal else tuple(at)
            tree = self._refuter.wild_tree(rng, known, depth, self._refuter.none)
        return {"at": at, "proof": tree}

    def with_nogood(self, nogood: Json) -> Json:
        """Return a proof of nothing that has a nogood."""
        return {"request": self.name, "bound": fraction(0), "nogoods": [nogood]}

    def distance(self, at: Sequence[int]) -> int:
        """Return by how much thresholds miss the nearest ones that some allocation has."""
        own = np.array(sorted(at) if self.kind == "cubes" else at)
        return int(np.maximum(0, np.array(self.achieved) - own).sum(axis=1).min())


def drawn_bound(rng: random.Random, proven: Fraction, least: Fraction) -> Fraction:
    """Return a bound around what can be proven and what is true."""
    tiny = Fraction(1, rng.choice((7, 1000, 1 << 31, 1 << 62, 1 << 64)))
    between = proven + (least - proven) * Fraction(rng.randint(0, 8), 8)
    extreme = Fraction(rng.choice(EXTREMES), abs(rng.choice(EXTREMES)) or 1)
    ways = [*[proven] * 8, least, least, between, proven + tiny, least + tiny, proven - tiny]
    return rng.choice([*ways, proven * Fraction(99, 100), Fraction(0), Fraction(-1), extreme])


def unreduced(rng: random.Random, bound: Fraction) -> Json:
    """Return a fraction, now and then not in lowest terms."""
    factor = rng.choice((1, 1, 1, 2, 1 << 31, 1 << 62))
    return {"numerator": bound.numerator * factor, "denominator": bound.denominator * factor}


# Targets of certificates


class _Certified:
    """A problem with a dear solution, which certificates of its cost are held beside."""

    def __init__(self, rng: random.Random, problem: Problem, started: float) -> None:
        self._problem = problem
        every = [request.id for request in problem.truth.requests]
        names = [name for name in every if rng.random() < started] or every
        self._solution = problem.solution(rng, names, 25, -1)
        self._worth = problem.worth(self._solution)
        self._all = sum(request.value for request in problem.truth.requests)
        self._cost = _number(self._solution["cost"])

    @property
    def truth(self) -> Fraction:
        return self._problem.truth.least(self._worth)

    def proven(self, certificate: Json) -> Fraction | None:
        """Return what a certificate proves of the cost, as far as the solution lets it."""
        total = sum((_number(one["bound"]) for one in certificate["proofs"]), Fraction(0))
        bound = min(total, self._cost)
        levels = [
            level_document("nodes", self._worth, self._all, {"kind": "all-start"}),
            level_document("cost", self._cost, bound, certificate),
        ]
        claims = {"levels": levels, "solution": self._solution}
        return bound if self._problem.accepts(claims) else None


@dataclass(frozen=True)
class Family:
    """What requests a kind of certificate is for.

    Attributes
    ----------
    others
        The share of problems with other requests.
    started
        The share of requests that start if they fit.
    """

    kind: str
    patterns: Callable[[random.Random], list[Pattern]]
    sizes: tuple[int, ...]
    others: float = 0.4
    started: float = 1.0


def _one_of(*patterns: Pattern) -> Callable[[random.Random], list[Pattern]]:
    return lambda rng: [rng.choice(patterns)]


FAMILIES = {
    "states": Family(
        "states",
        lambda rng: rng.sample(list(Pattern), rng.choice((1, 1, 2, 3))),
        (1, 2, 3, 4, 4, 5, 6, 7, 8),
    ),
    "cubes": Family(
        "cubes",
        lambda rng: rng.sample(CUBES, rng.choice((1, 1, 2))),
        (2, 4, 4, 8, 8, 8),
    ),
    "rings": Family("rings", _one_of(Pattern.RING), (3, 4, 5, 6, 7, 8, 8)),
    "lines": Family("lines", _one_of(*GRIDS), (2, 3, 4, 5, 6, 6, 7, 8, 8)),
    "binomial": Family("binomial", _one_of(Pattern.BINOMIAL), (2, 3, 4, 4, 5, 6, 7, 8, 8)),
    "choices": Family("states", _one_of(*Pattern), (2, 3, 4), others=1.0, started=0.6),
}


def _problems(name: str, seed: int, family: Family) -> Iterator[tuple[random.Random, Problem]]:
    """Yield problems whose first request the checker can be asked about."""
    for n in itertools.count():
        rng = random.Random(f"{name} problem {n} of {seed}")
        problem = Problem(
            snapshot_document(rng, family.patterns(rng), family.sizes, others=family.others)
        )
        free, instance = problem.truth.free, problem.instance
        used = [leaf for leaf, room in enumerate(free) if room]
        if sum(free) < problem.truth.requests[0].nodes or not instance.have_common_switch(used):
            continue
        yield rng, problem


def certificates(name: str, seed: int) -> Iterator[Target]:
    """Yield problems for the certificates of `FAMILIES`."""
    family = FAMILIES[name]
    for rng, problem in _problems(name, seed, family):
        held = _Certified(rng, problem, family.started)
        alone = [
            Alone(problem, request.id, "states" if n else family.kind)
            for n, request in enumerate(problem.truth.requests)
            if request.intensive
        ]
        target = Target(held.truth, False, _drawing(alone), held.proven)
        yield from itertools.repeat(target, AGAIN)
        if family.kind != "states":
            yield from itertools.repeat(_nogood_target(held, alone[0]), AGAIN)


def _drawing(alone: Sequence[Alone]) -> Callable[[random.Random], Json]:
    def draw(rng: random.Random) -> Json:
        wrong = rng.choice((0.0, 0.0, 0.3))
        proofs = [one.proof(rng, wrong) for one in alone if rng.random() < 0.9]
        if rng.random() < 0.05:
            proofs.append(rng.choice(alone).proof(rng, wrong))
        rng.shuffle(proofs)
        return {"kind": "thresholds", "proofs": proofs}

    return draw


def _nogood_target(held: _Certified, alone: Alone) -> Target:
    """Return the target of single nogoods: they have to miss all that allocations have."""

    def proven(nogood: Json) -> int | None:
        proofs = [alone.with_nogood(nogood)]
        if held.proven({"kind": "thresholds", "proofs": proofs}) is None:
            return None
        return -alone.distance(nogood["at"])

    return Target(-1, False, alone.nogood, proven)


def all_start(seed: int) -> Iterator[Target]:
    """Yield problems for the certificate that all requests start."""
    for n in itertools.count():
        rng = random.Random(f"all-start problem {n} of {seed}")
        patterns = rng.sample(list(Pattern), 1)
        problem = Problem(snapshot_document(rng, patterns, (1, 2, 3, 4), others=0.9))
        target = _nodes_target(problem, lambda rng: {"kind": "all-start"})
        yield from itertools.repeat(target, AGAIN)


def counting(seed: int) -> Iterator[Target]:
    """Yield problems for the certificate that counts free nodes."""
    for n in itertools.count():
        rng = random.Random(f"counting problem {n} of {seed}")
        problem = Problem(_full_document(rng, apart=0.3))
        target = _nodes_target(problem, lambda rng: {"kind": "counting"})
        yield from itertools.repeat(target, AGAIN)


def domains(seed: int) -> Iterator[Target]:
    """Yield problems for prices of domains, few of which hold all that waits."""
    for n in itertools.count():
        rng = random.Random(f"domains problem {n} of {seed}")
        problem = Problem(_full_document(rng, apart=0.8))
        target = _nodes_target(problem, _domain_prices(problem))
        yield from itertools.repeat(target, AGAIN)


def _full_document(rng: random.Random, *, apart: float) -> Json:
    """Return a tiny tree, perhaps without common switches, and more requests than fit at most."""
    patterns = rng.sample(list(Pattern), 1)
    document = snapshot_document(rng, patterns, (1, 2, 3, 4), others=0.9)
    switches = document["machine"]["switches"]
    if rng.random() < apart:
        leaves = [one for one in switches if "nodes" in one]
        uppers = _pairs(rng, [one["name"] for one in leaves])
        document["machine"]["switches"] = [*leaves, *uppers]
    num_nodes = sum(one["nodes"].count(",") + 1 for one in switches if "nodes" in one)
    while len(document["queue"]) < 4 and rng.random() < 0.8:
        any_patterns = rng.sample(list(Pattern), rng.choice((0, 1, 1)))
        most = document["queue"][0]["nodes"] if any_patterns else num_nodes
        size = rng.randint(1, min(6, most))
        document["queue"].append(_request(rng, len(document["queue"]), size, any_patterns))
    return document


def _pairs(rng: random.Random, names: list[str]) -> Json:
    """Return switches over one or two leaves each, now and then one that joins two of them."""
    names = rng.sample(names, len(names))
    found = [{"name": f"t{k}", "switches": ",".join(names[k : k + 2])} for k in range(0, 4, 2)]
    found = [one for one in found if one["switches"]]
    if len(names) > 2 and rng.random() < 0.2:
        found.append({"name": "joint", "switches": ",".join(names[1:3])})
    return found


def _domain_prices(problem: Problem) -> Callable[[random.Random], Json]:
    """Return what draws prices: the solver's, or round ones that pay for some requests."""
    requests, truth = problem.truth.requests, problem.truth
    known = certificate_of(
        truth.most, requests, domains_of(truth.tree), np.array(truth.free, dtype=np.int64), 1.0
    )
    right = known.model_dump(mode="json") if isinstance(known, DomainsCertificate) else None

    def draw(rng: random.Random) -> Json:
        if right is not None and rng.random() < 0.4:
            return copy.deepcopy(right)
        scale = rng.choice((1, 1, 2, 6))
        prices = [
            rng.choice((0, 0, scale * one.value, scale * one.value // 2, scale * one.priority))
            for one in requests
        ]
        if rng.random() < 0.1:
            prices[rng.randrange(len(prices))] = number(rng, 0, extremes=1.0)
        if rng.random() < 0.03:
            prices.pop()
        each = rng.choice((0, 0, scale, scale * min(one.priority for one in requests)))
        return {"kind": "domains", "scale": scale, "prices": prices, "node_price": each}

    return draw


def _nodes_target(problem: Problem, certificate: Callable[[random.Random], Json]) -> Target:
    """Return the target of a bound of the nodes that start, with certificates as drawn."""
    values = [request.value for request in problem.truth.requests]
    total, most = sum(values), problem.truth.most

    def draw(rng: random.Random) -> Json:
        bound = number(rng, total, total, total, most, most, total - 1, total + 1, most - 1)
        kind = certificate(rng) if rng.random() < 0.9 else {"kind": "thresholds", "proofs": []}
        below = 1 if rng.random() < 0.8 else abs(rng.choice(EXTREMES)) or 1
        return {"bound": {"numerator": bound * below, "denominator": below}, "certificate": kind}

    def proven(document: Json) -> Fraction | None:
        bound = _number(document["bound"])
        first = level_document("nodes", 0, bound, document["certificate"])
        levels = [first | {"bound": document["bound"]}, level_document("cost", 0, None, None)]
        nothing = {"allocations": [], "cost": fraction(0)}
        return bound if problem.accepts({"levels": levels, "solution": nothing}) else None

    return Target(Fraction(most), True, draw, proven)


# Targets of claims


STATUSES = ("optimal", "feasible", "infeasible", "unknown")


class _Claims:
    """Whole results of a problem: any solution, and what is claimed of it."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._alone: list[Alone] = []
        for request in problem.truth.requests:
            if request.intensive:
                self._add(request)

    def _add(self, request: TreeRequest) -> None:
        patterns = {use.pattern for use in request.patterns}
        truth, kind = self._problem.truth, "states"
        if next(truth.counts(request, truth.free), None) is None:
            pass  # it cannot start at all
        elif request.nodes > 1 and patterns == {Pattern.BINOMIAL}:
            kind = "binomial"
        elif request.nodes > 2 and patterns == {Pattern.RING}:
            kind = "rings"
        elif request.nodes > 1 and len(patterns) == 1 and patterns <= set(GRIDS):
            kind = "lines"
        elif request.nodes in (2, 4, 8) and patterns <= set(CUBES):
            kind = "cubes"
        try:
            self._alone.append(Alone(self._problem, request.id, kind))
        except RefusedError:
            return

    def draw(self, rng: random.Random) -> Json:
        names = [request.id for request in self._problem.truth.requests]
        some = [name for name in names if rng.random() < 0.6]
        solution = self._problem.solution(rng, some, rng.choice((1, 5, 25)), 1)
        worth, cost = self._problem.worth(solution), _number(solution["cost"])
        levels = [self._nodes(rng, worth), self._cost(rng, worth, cost)]
        if rng.random() < 0.1:
            for level in levels:
                level["objective"] = None
                level["status"] = "unknown" if rng.random() < 0.8 else rng.choice(STATUSES)
            return {"levels": levels, "solution": None}
        return {"levels": levels, "solution": solution}

    def _nodes(self, rng: random.Random, worth: int) -> Json:
        truth = self._problem.truth
        total = sum(request.value for request in truth.requests)
        bound = rng.choice((None, total, total, total, truth.most, worth, total + 1, worth + 1))
        usual = ({"kind": "all-start"},) * 4 + ({"kind": "counting"},) * 2
        certificate = rng.choice((*usual, None, self._certificate(rng)))
        return self._level(rng, "nodes", worth, bound, certificate)

    def _cost(self, rng: random.Random, worth: int, cost: Fraction) -> Json:
        certificate = self._certificate(rng)
        total = sum((_number(one["bound"]) for one in certificate["proofs"]), Fraction(0))
        least = self._problem.truth.least(worth)
        bounds = (None, min(total, cost), min(total, cost), total, cost, least, Fraction(0))
        bound = rng.choice(bounds)
        if bound is not None and rng.random() < 0.1:
            bound = drawn_bound(rng, bound, least)
        other = rng.choice((None, {"kind": "all-start"}))
        used = certificate if rng.random() < 0.9 else other
        return self._level(rng, "cost", cost, bound, used)

    def _certificate(self, rng: random.Random) -> Json:
        """Return right proofs of some requests, or nearly so."""
        some = [one for one in self._alone if rng.random() < 0.6]
        wrong = rng.choice((0.0, 0.0, 0.0, 0.2))
        return {"kind": "thresholds", "proofs": [one.proof(rng, wrong) for one in some]}

    @staticmethod
    def _level(
        rng: random.Random, name: str, value: Number, bound: Number | None, certificate: Json
    ) -> Json:
        """Return a level that fits, or one with any status, gap and proof."""
        found = level_document(name, value, bound, None if bound is None else certificate)
        found["proof"] = "none" if found["certificate"] is None else "certificate"
        if rng.random() < 0.15:
            found["status"] = rng.choice(STATUSES)
        if rng.random() < 0.03:
            found["gap"] = rng.choice((None, 0.0, -1.0, 1e-13, 1e308, 0.5))
        if rng.random() < 0.03:
            found["proof"] = rng.choice(("certificate", "none", "search"))
        if rng.random() < 0.03:
            found["sense"] = rng.choice(("max", "min"))
        return found

    def proven(self, claims: Json) -> Fraction | None:
        """Return by how much a claim is on the wrong side of the truth; None if refused."""
        if not self._problem.accepts(claims):
            return None
        nodes, cost = claims["levels"]
        solution, truth = claims["solution"], self._problem.truth
        worth = truth.most if solution is None else self._problem.worth(solution)
        least = truth.least(worth)
        wrong = [Fraction(-1 << 80)]
        if nodes["bound"] is not None:
            wrong.append(truth.most - _number(nodes["bound"]))
        if cost["bound"] is not None:
            wrong.append(_number(cost["bound"]) - least)
        for level, best in ((nodes, Fraction(truth.most)), (cost, least)):
            wrong.append(Fraction(-1 << 80) if _is_true(level, best) else Fraction(1))
        return max(wrong)


def _is_true(level: Json, best: Fraction) -> bool:
    """Tell whether a status is true; without a solution nothing is established."""
    if level["objective"] is None:
        return bool(level["status"] == "unknown")
    optimal = _number(level["objective"]) == best
    return level["status"] == "feasible" or (level["status"] == "optimal" and optimal)


def claims(seed: int) -> Iterator[Target]:
    """Yield problems for results of any status, bound and certificate."""
    for n in itertools.count():
        rng = random.Random(f"claims problem {n} of {seed}")
        family = FAMILIES[rng.choice(sorted(FAMILIES))]
        sizes = (1, 2, 2, 3, 4, 4)
        problem = Problem(snapshot_document(rng, family.patterns(rng), sizes, others=0.8))
        drawn = _Claims(problem)
        target = Target(Fraction(0), False, drawn.draw, drawn.proven)
        yield from itertools.repeat(target, AGAIN)


def _of_family(name: str) -> Callable[[int], Iterator[Target]]:
    return lambda seed: certificates(name, seed)


KINDS: dict[str, Callable[[int], Iterator[Target]]] = {
    "all-start": all_start,
    "counting": counting,
    "domains": domains,
    **{name: _of_family(name) for name in FAMILIES},
    "claims": claims,
}
"""Targets by kind, from a seed."""
