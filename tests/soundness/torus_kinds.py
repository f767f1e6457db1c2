"""Certificates of every kind for tiny torus problems, legal by the schema and often tight.

A document is what a file holds, but for prices, which are a list of ``[price, count]`` so
that the search reaches each; `written` returns what a file holds. Prices mostly come from the dual
of the relaxation that `docs/proofs.md` describes, as loose certificates find nothing.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from pydantic import TypeAdapter, ValidationError
from scipy.optimize import linprog

from brute_force import Choice, Tiny, brute_force
from random_certificates import link_families, link_number, random_groups, real_links
from random_instances import random_snapshot
from soundness.attack import Json, Target, integers, number, replaced
from topoplace.certify.packing import LARGEST, certified_bound
from topoplace.certify.report import RefusedError
from topoplace.certify.torus.instance import read_instance
from topoplace.certify.torus.oracle import TorusOracle
from topoplace.errors import InputError
from topoplace.result import Interference
from topoplace.result.certificate import Certificate
from topoplace.snapshot import Snapshot
from topoplace.snapshot.schema import (
    MAX_PRIORITY,
    MAX_WEIGHT,
    SNAPSHOT_SCHEMA,
    Communication,
    Request,
    ShapeWeights,
    TorusModel,
)

KINDS = ("leaf", "start", "cover", "shared", "parts", "alike", "level 2", "level 3")

NOTHING = -(1 << 100)
"""Stands for the bound of a certificate that leaves no placement, below what any placement has."""

_SCHEMA: TypeAdapter[Any] = TypeAdapter(Certificate)
_MODES = tuple(Interference)
_SCALES = (1, 1, 2, 6, 60, 5040, 10**6, 10**9 - 1, 10**9)
_FACTORS = (1, 2, 7, 1 << 20, (1 << 31) - 1, 1 << 31, 1 << 52, 1 << 58, 1 << 62, (1 << 64) + 1)


def targets(kind: str, seed: int) -> Iterator[Target]:
    """Yield tiny problems with what draws certificates of a kind for them."""
    level_idx = {"level 2": 1, "level 3": 2}.get(kind, 0)
    for at in range(1 << 30):
        rng = random.Random(f"{kind}, problem {at} of seed {seed}")
        problem = Problem(_snapshot(rng, kind), _MODES[at % 3], level_idx, rng)
        if not problem.contended and problem.tiny.snapshot.name != "full" and rng.random() < 0.75:
            continue

        def draw(rng: random.Random, problem: Problem = problem) -> Json:
            return _spoilt(rng, _DRAWS[kind](rng, problem))

        yield Target(problem.truth, True, draw, problem.proven)


# Problems and their truth.


def _snapshot(rng: random.Random, kind: str) -> Snapshot:
    """Return a tiny snapshot, often one that is extreme in some way."""
    way = rng.choice(("any", "any", "any", "ring", "one", "open", "full"))
    if way == "full" or (kind == "alike" and rng.random() < 0.3):
        return _full(rng)
    snapshot = random_snapshot(rng, max_routers=rng.choice((2, 4, 6, 9)))
    if way in ("ring", "one"):
        shapes = (
            ([11], [8], [2, 5], [3, 4]) if way == "ring" else ([1], [2], [1, 2], [2, 2], [1] * 3)
        )
        snapshot = _bare(rng, rng.choice(shapes))
    if way == "open":
        snapshot = snapshot.model_copy(update={"running": [], "down": ""})
    queue = list(snapshot.queue)
    if queue and rng.random() < (0.9 if kind == "alike" else 0.4):
        queue = _look_alikes(rng, snapshot, rng.choice(queue))
    if rng.random() < 0.3:
        priorities = (1, MAX_PRIORITY - 1, MAX_PRIORITY)
        queue = [r.model_copy(update={"priority": rng.choice(priorities)}) for r in queue]
    if rng.random() < 0.1:
        nodes = rng.choice(((1 << 31) - 1, 1 << 31))
        queue.append(Request(id="vast", nodes=nodes, priority=rng.choice((1, MAX_PRIORITY))))
    if rng.random() < 0.05:
        queue = []
    weights = snapshot.weights
    if rng.random() < 0.3:
        of = rng.choice(((0,), (MAX_WEIGHT,), (0, 1, MAX_WEIGHT)))
        weights = ShapeWeights(**{name: rng.choice(of) for name in ShapeWeights.model_fields})
    return snapshot.model_copy(update={"queue": queue, "weights": weights})


def _bare(rng: random.Random, shape: Sequence[int]) -> Snapshot:
    """Return a machine of a shape with nothing on it, and up to three requests."""
    per_router = rng.choice((1, 1, 2, 40))
    most = per_router * int(np.prod(shape))
    communication = rng.choice(("strict", "tolerant"))
    queue = [
        {"id": f"q{k}", "nodes": rng.randint(1, max(1, most // 2)), "communication": communication}
        for k in range(rng.randint(1, 3))
    ]
    machine = {"kind": "torus", "name": "bare", "shape": shape, "nodes_per_router": per_router}
    if rng.random() < 0.3:
        machine["bandwidth"] = [rng.choice((1, 2, 1 << 21)) for _ in shape]
    if rng.random() < 0.4:
        machine["wrap"] = [rng.random() < 0.5 for _ in shape]
    return Snapshot.model_validate(
        {"schema": "topoplace.snapshot/1", "name": "bare", "machine": machine, "queue": queue}
    )


def _full(rng: random.Random) -> Snapshot:
    """Return a machine that equal requests fill, or one more than can start."""
    shape = rng.choice(([2], [3], [4], [2, 2], [5], [2, 3]))
    size = int(np.prod(shape))
    nodes = rng.choice([n for n in (1, 1, 2, 3) if n <= size])
    kind = rng.choice(tuple(Communication))
    num = min(5, size // nodes + rng.choice((0, 0, 0, 1)))
    queue = [Request(id=f"q{k}", nodes=nodes, communication=kind) for k in range(num)]
    if rng.random() < 0.3:
        queue[0] = queue[0].model_copy(update={"priority": rng.choice((2, MAX_PRIORITY))})
    if rng.random() < 0.3:  # two of one value, for the same places
        small = rng.randint(1, max(1, size // 2))
        queue = [
            Request(id="large", nodes=2 * small, communication=kind),
            Request(id="small", nodes=small, priority=2, communication=kind),
        ]
        rng.shuffle(queue)
    machine = TorusModel(name="full", shape=shape, wrap=[rng.random() < 0.5 for _ in shape])
    return Snapshot(schema_version=SNAPSHOT_SCHEMA, name="full", machine=machine, queue=queue)


def _look_alikes(rng: random.Random, snapshot: Snapshot, first: Request) -> list[Request]:
    """Return some requests that are equal or differ in little, and some of the others."""
    also = [r for r in snapshot.queue if r is not first and rng.random() < 0.3]
    nodes = min(first.nodes, rng.choice((1, 2, 4)))
    equal = [
        first.model_copy(
            update={
                "id": f"like{k}",
                "shapes": None,
                "nodes": nodes + rng.choice((0, 0, 0, 1)),
                "priority": rng.choice((first.priority, first.priority, 1)),
            }
        )
        for k in range(rng.randint(2, 4))
    ]
    if rng.random() < 0.35:  # of one value, for more nodes
        equal[0] = equal[0].model_copy(update={"nodes": nodes, "priority": 2})
        equal[1] = equal[1].model_copy(update={"nodes": 2 * nodes, "priority": 1})
    if rng.random() < 0.4:
        at = rng.randrange(len(equal))
        equal[at] = equal[at].model_copy(update=_difference(rng, snapshot))
    return rng.sample(equal + also, len(equal + also))


def _difference(rng: random.Random, snapshot: Snapshot) -> dict[str, Any]:
    """Return how a request differs so that it cannot stand for one without."""
    assert isinstance(snapshot.machine, TorusModel)
    ways: list[dict[str, Any]] = [{"communication": kind} for kind in Communication]
    ways += [{"region": name} for name in (None, *snapshot.regions)]
    ways += [{"node_class": name} for name in (None, *snapshot.machine.classes)]
    ways.append({"shapes": "x".join(map(str, snapshot.machine.shape)), "nodes": 1})
    return rng.choice(ways)


def best_at_least(tiny: Tiny, level_idx: int, earlier: Sequence[int]) -> int | None:
    """Return the best of a level among the placements whose earlier levels reach some values."""
    least = (*earlier, NOTHING)
    queue = [(tiny.kind(r.communication.value), tiny.choices(r)) for r in tiny.snapshot.queue]
    rest = [(0,) * (level_idx + 1)]
    for _, choices in reversed(queue):
        tops = [max((0, *(c.values[k] for c in choices))) for k in range(level_idx + 1)]
        rest.append(tuple(a + b for a, b in zip(rest[-1], tops, strict=True)))
    rest.reverse()
    best: int | None = None
    none: frozenset[Any] = frozenset()
    todo = [(0, (0,) * (level_idx + 1), none, none, none)]
    while todo:
        idx, total, routers, strict, tolerant = todo.pop()
        most = [a + b for a, b in zip(total, rest[idx], strict=True)]
        if any(a < b for a, b in zip(most, least, strict=True)):
            continue
        if best is not None and most[-1] <= best:
            continue
        if idx == len(queue):
            best = total[-1]
            continue
        kind, choices = queue[idx]
        todo.append((idx + 1, total, routers, strict, tolerant))
        for choice in choices:
            if choice.routers & routers or choice.links & strict:
                continue
            if kind == "strict" and choice.links & tolerant:
                continue
            more = tuple(a + b for a, b in zip(total, choice.values, strict=False))
            links = [
                used | choice.links if kind == name else used
                for name, used in (("strict", strict), ("tolerant", tolerant))
            ]
            todo.append((idx + 1, more, routers | choice.routers, links[0], links[1]))
    return best


def _earlier(rng: random.Random, tiny: Tiny, best: Sequence[int], level_idx: int) -> list[int]:
    """Return values that earlier levels can reach together: the best ones, or smaller ones."""
    if rng.random() < 0.5:
        return list(best[:level_idx])
    earlier: list[int] = []
    for k in range(level_idx):
        top = best_at_least(tiny, k, earlier)
        assert top is not None
        less = rng.choice((0, 0, 1, rng.randint(0, max(1, abs(top))), 1 << 31, 1 << 62))
        earlier.append(top - less)
    return earlier


@dataclass(frozen=True)
class Scope:
    """What the branches above a node say: who starts or does not, who covers a router or not."""

    starts: dict[str, bool] = field(default_factory=dict)
    covers: frozenset[tuple[str, int, bool]] = frozenset()

    @property
    def key(self) -> object:
        """What tells it from others."""
        return frozenset(self.starts.items()), self.covers

    @property
    def forced(self) -> list[str]:
        """Those that must start."""
        return [name for name, starts in self.starts.items() if starts]

    def cuts(self, name: str) -> set[tuple[int, bool]]:
        """Return which routers a request covers and which it does not."""
        return {(router, inside) for other, router, inside in self.covers if other == name}


@dataclass(frozen=True)
class Dual:
    """Prices as real numbers; those of links by row and number."""

    routers: list[float]
    links: dict[tuple[str, int], float]
    multipliers: list[float]


class Problem:
    """A tiny snapshot under a rule, and one level of it with values for the levels before."""

    def __init__(
        self, snapshot: Snapshot, mode: Interference, level_idx: int, rng: random.Random
    ) -> None:
        self.tiny = Tiny(snapshot, mode)
        self.oracle = TorusOracle(read_instance(snapshot, mode))
        self.level_idx = level_idx
        best = brute_force(snapshot, mode)
        self.most = best[0]
        self.earlier = _earlier(rng, self.tiny, best, level_idx)
        truth: int | None = best[level_idx]
        if self.earlier != list(best[:level_idx]):
            truth = best_at_least(self.tiny, level_idx, self.earlier)
        assert truth is not None
        self.truth = truth
        self.choices = {request.id: self.tiny.choices(request) for request in snapshot.queue}
        self.names = list(self.choices)
        self.links = real_links(self.tiny)
        self.rows = link_families(self.tiny)
        self._relaxed: dict[object, Relaxation] = {}

    def relaxed(self, groups: Sequence[Sequence[str]] = ()) -> Relaxation:
        """Return the relaxation in which requests need the fewest nodes of their group."""
        key = tuple(map(tuple, groups))
        if key not in self._relaxed:
            self._relaxed[key] = Relaxation(self, groups)
        return self._relaxed[key]

    @property
    def contended(self) -> bool:
        """Tell whether not all that have a candidate can start."""
        queue = self.tiny.snapshot.queue
        return self.most < sum(r.priority * r.nodes for r in queue if self.choices[r.id])

    def proven(self, document: Json) -> int | None:
        """Return what a document proves, None if it is refused."""
        try:
            certificate = _SCHEMA.validate_json(json.dumps(written(document)))
            bound = certified_bound(self.oracle, certificate, self.earlier)
        except (ValidationError, RefusedError, InputError, OverflowError):
            return None
        except Exception as error:
            error.add_note(f"{self.tiny.mode}, earlier {self.earlier}: {document}")
            error.add_note(self.tiny.snapshot.model_dump_json())
            raise
        return NOTHING if bound is None else bound.value


def written(document: Json) -> Json:
    """Return a document as a file holds it."""
    if isinstance(document, list):
        return [written(below) for below in document]
    if not isinstance(document, dict):
        return document
    done = {key: written(below) for key, below in document.items()}
    if "prices" in done:
        done["prices"] = {
            family: " ".join(str(p) if c == 1 else f"{p}*{c}" for p, c in runs)
            for family, runs in done["prices"].items()
        }
    return done


# Tight prices.


class Relaxation:
    """The problem with parts of candidates, whose dual prices prove most of all prices."""

    def __init__(self, problem: Problem, groups: Sequence[Sequence[str]]) -> None:
        tiny = problem.tiny
        self._problem = problem
        self._known: dict[object, Dual] = {}
        self._columns = [
            (request.id, tiny.kind(request.communication.value), choice)
            for request in tiny.snapshot.queue
            for choice in _lowered(problem, request, groups)
        ]
        keys: list[object] = [*tiny.all_routers]
        keys += [(row, link) for row in problem.rows for link in problem.links]
        keys += [*range(problem.level_idx), *problem.names]
        self._at = {key: at for at, key in enumerate(keys)}
        numbers = {
            link: link_number(tiny, link) for _, _, choice in self._columns for link in choice.links
        }
        self._matrix = np.zeros((len(keys), len(self._columns)))
        for column, (name, kind, choice) in enumerate(self._columns):
            rows = {"strict": problem.rows, "tolerant": [f"links of {name}"]}.get(kind, [])
            used: list[object] = [(row, numbers[link]) for row in rows for link in choice.links]
            for key in (*choice.routers, *used, name):
                self._matrix[self._at[key], column] = 1
            for k in range(problem.level_idx):
                self._matrix[self._at[k], column] = -choice.values[k]

    def dual(self, scope: Scope) -> Dual:
        """Return the best prices under some branches."""
        if scope.key not in self._known:
            self._known[scope.key] = self._solved(scope)
        return self._known[scope.key]

    def _solved(self, scope: Scope) -> Dual:
        """Solve with a reward for those that must start, so that there is always a solution."""
        level_idx, earlier = self._problem.level_idx, self._problem.earlier
        kept = [at for at, column in enumerate(self._columns) if self._open(scope, column)]
        values = np.array([self._columns[at][2].values[level_idx] for at in kept], dtype=float)
        reward = 4 * float(np.abs(values).sum()) + 1 if len(kept) < 60 else 1e7
        if not kept:
            return self._of(np.zeros(len(self._at)))
        forced = np.array([self._columns[at][0] in scope.forced for at in kept])
        slack = np.zeros((len(self._at), level_idx))
        limits = np.ones(len(self._at))
        for k in range(level_idx):
            slack[self._at[k], k] = -1
            limits[self._at[k]] = -max(earlier[k], -1e9)
        found = linprog(
            -np.concatenate([values + reward * forced, np.full(level_idx, -reward)]),
            A_ub=np.hstack([self._matrix[:, kept], slack]),
            b_ub=limits,
        )
        solved = found.status == 0
        return self._of(-found.ineqlin.marginals if solved else np.zeros(len(self._at)))

    def _open(self, scope: Scope, column: tuple[str, str, Choice]) -> bool:
        """Tell whether the branches leave a candidate."""
        name, _, choice = column
        routers = self._problem.tiny.all_routers
        return scope.starts.get(name, True) and all(
            (routers[router] in choice.routers) is inside for router, inside in scope.cuts(name)
        )

    def _of(self, prices: Any) -> Dual:
        of = {key: float(prices[at]) for key, at in self._at.items()}
        problem = self._problem
        links = {(row, link): of[row, link] for row in problem.rows for link in problem.links}
        return Dual(
            [of[router] for router in problem.tiny.all_routers],
            {key: price for key, price in links.items() if price > 0},
            [of[k] for k in range(problem.level_idx)],
        )


def _lowered(problem: Problem, request: Request, groups: Sequence[Sequence[str]]) -> list[Choice]:
    """Return the candidates of a request that needs only the fewest nodes of its group."""
    group = next((group for group in groups if request.id in group), [request.id])
    fewest = min(other.nodes for other in problem.tiny.snapshot.queue if other.id in group)
    if fewest == request.nodes:
        return problem.choices[request.id]
    value = request.priority * request.nodes
    choices = problem.tiny.choices(request.model_copy(update={"nodes": fewest}))
    return [Choice(c.box, c.routers, c.links, (value, *c.values[1:])) for c in choices]


# Documents.


class _Writer:
    """Draws the leaves and the trees of one document."""

    def __init__(
        self,
        rng: random.Random,
        problem: Problem,
        *,
        names: Sequence[str] | None = None,
        groups: Sequence[Sequence[str]] = (),
        shares: bool = False,
        cover_share: float = 0.4,
        forcing: float = 0.0,
    ) -> None:
        self.rng, self.problem, self.groups = rng, problem, groups
        self.earnest = rng.random() < 0.7
        self.names = problem.names if names is None else names
        self.others = {name: False for name in problem.names if name not in self.names}
        self.shared: list[Json] | None = [] if shares else None
        self.cover_share, self.forcing = cover_share, forcing
        self.rows = ["links", *(f"links of {name}" for name in self.names)]
        self.rows = [row for row in problem.rows if row in self.rows]

    def leaf(self, scope: Scope) -> Json:
        """Return a leaf, mostly one that proves about all that a leaf can under some branches."""
        rng = self.rng
        dual = self._dual(scope)
        largest = self.problem.oracle.largest
        room = LARGEST // (16 * max(1, largest[self.problem.level_idx]))
        scales = _SCALES[2:] if self.earnest else _SCALES
        scale = rng.choice([s for s in scales if s <= room or rng.random() < 0.01] or [1])
        shift = 0.5 if self.earnest else rng.choice((0.5, 0.0, 0.999))
        prices = [int(scale * price + shift) for price in dual.routers]
        links: dict[tuple[str, int], int] = {}
        for (row, link), price in dual.links.items():
            # Without the requests of other parts, their rows say what the row of strict jobs says.
            key = (row if row in self.rows else "links", link)
            links[key] = links.get(key, 0) + int(scale * price + shift)
        multipliers = [int(scale * m + rng.choice((shift, shift, 0, 1))) for m in dual.multipliers]
        if rng.random() < 0.003:
            multipliers.append(0)
        factors = [*multipliers, scale, 0, 0]
        reach = sum(prices) + sum(links.values())
        reach += sum(f * v for f, v in zip(factors, largest, strict=False))
        self._toll(scope, prices, links, LARGEST - reach)
        if multipliers and rng.random() < 0.2:  # all that is worth what it must be pays it back
            multipliers[rng.randrange(len(multipliers))] += rng.choice((scale, 1000 * scale))
        return {
            "kind": "leaf",
            "scale": scale,
            "prices": {"routers": self._runs(prices), **self._rows(links)},
            "multipliers": multipliers,
        }

    def _dual(self, scope: Scope) -> Dual:
        rng, problem = self.rng, self.problem
        relaxed = problem.relaxed(self.groups)
        ways = ("here", "here", "here", "here", "root", "flat", "none", "any")
        way = "here" if self.earnest and rng.random() < 0.97 else rng.choice(ways)
        if way == "root":
            return relaxed.dual(Scope(self.others))
        if way == "here":
            here = Scope(self.others | scope.starts, scope.covers)
            return relaxed.dual(here if rng.random() < 0.7 else self._narrower(here))
        routers = problem.tiny.all_routers
        none = [0.0] * problem.level_idx
        if way == "none":
            return Dual([0.0] * len(routers), {}, none)
        if way == "flat":
            most = max((r.priority for r in problem.tiny.snapshot.queue), default=0)
            return Dual([float(most * len(problem.tiny.usable[r])) for r in routers], {}, none)
        top = rng.choice((1, 5, 100))
        links = {
            (row, link): rng.randint(0, top) for row in self.rows for link in problem.links[:3]
        }
        return Dual(
            [float(rng.randint(0, top)) for _ in routers],
            {key: float(price) for key, price in links.items()},
            [float(rng.randint(0, 3)) for _ in none],
        )

    def _narrower(self, scope: Scope) -> Scope:
        """Return less than the branches leave, what a checker that goes wrong may take them for."""
        rng = self.rng
        last = next(reversed(scope.starts.values()), True)
        guess = [last] if rng.random() < 0.6 else [True, False]
        starts = scope.starts | {
            name: rng.choice(guess)
            for name in self.names
            if name not in scope.starts and rng.random() < 0.5
        }
        cut = rng.choice(sorted(scope.covers)) if scope.covers else None
        if cut is None or rng.random() < 0.3:
            return Scope(starts, scope.covers)
        _, router, inside = cut
        group = next((group for group in self.groups if cut[0] in group), self.names)
        also = {(name, router, inside) for name in group if starts.get(name)}
        return Scope(starts, scope.covers | also)

    def _toll(
        self, scope: Scope, prices: list[int], links: dict[tuple[str, int], int], room: int
    ) -> None:
        """Charge much for what somebody uses in any case: that keeps what the leaf proves."""
        rng = self.rng
        if rng.random() > 0.25 or room < 3:
            return
        amounts = (1, 1 << 31, 1 << 52, room - 2, room - 1, room - 1)
        beyond = (room, room + 1, 1 << 62, (1 << 62) + 1, (1 << 63) - 1)
        amount = rng.choice(beyond if rng.random() < 0.08 else amounts)
        used = sorted(router for _, router, inside in scope.covers if inside)
        if links and rng.random() < 0.2:
            links[rng.choice(sorted(links))] += amount
        elif used:
            prices[rng.choice(used)] += amount
        elif scope.forced or rng.random() < 0.2:
            prices[rng.randrange(len(prices))] += amount

    def _runs(self, prices: Sequence[int]) -> Json:
        """Return prices by runs, some split oddly, some of no router."""
        rng = self.rng
        runs: list[list[int]] = []
        for price in prices:
            if rng.random() < 0.02:
                runs.append([number(rng, 0, 1, 7), 0])
            if runs and runs[-1][0] == price and runs[-1][1] and rng.random() < 0.9:
                runs[-1][1] += 1
            else:
                runs.append([price, 1])
        return runs

    def _rows(self, links: dict[tuple[str, int], int]) -> Json:
        """Return the prices of link rows by family, now and then of one where all are 0."""
        num = len(self.problem.tiny.shape) * len(self.problem.tiny.all_routers)
        rows: Json = {}
        for family in self.rows:
            prices = [links.get((family, link), 0) for link in range(num)]
            if any(prices) or self.rng.random() < 0.05:
                rows[family] = self._runs(prices)
        return rows

    def tree(self, scope: Scope, depth: int) -> Json:
        """Return a tree, mostly a chain of so many branches."""
        rng = self.rng
        undecided = [name for name in self.names if name not in scope.starts]
        if depth <= 0 or not self.names:
            return self._end(scope)
        if scope.forced and (rng.random() < self.cover_share or not undecided):
            return self._cover(scope, depth)
        if not undecided and rng.random() < 0.98:
            return self._end(scope)
        name = rng.choice(undecided or list(self.names))
        out, into = (Scope(scope.starts | {name: now}, scope.covers) for now in (False, True))
        depths = self._depths(depth, rng.random() < max(0.6, self.cover_share))
        return {
            "kind": "start",
            "request": name,
            "out": self.tree(out, depths[0]),
            "into": self.tree(into, depths[1]),
        }

    def _opened(self, scope: Scope, first: Sequence[str], depth: int) -> Json:
        """Return a tree that first branches on some requests, and goes on where all start."""
        if not first:
            return self.tree(scope, depth)
        out, into = (Scope(scope.starts | {first[0]: now}, scope.covers) for now in (False, True))
        return {
            "kind": "start",
            "request": first[0],
            "out": self._end(out),
            "into": self._opened(into, first[1:], depth),
        }

    def _depths(self, depth: int, second: bool) -> tuple[int, int]:
        """Return how deep the two sides go."""
        if self.rng.random() < 0.2:
            return depth // 2, depth // 2
        return (0, depth - 1) if second else (depth - 1, 0)

    def _cover(self, scope: Scope, depth: int) -> Json:
        rng = self.rng
        name = rng.choice(scope.forced)
        cuts = scope.cuts(name)
        num_routers = len(self.problem.tiny.all_routers)
        router = rng.randrange(num_routers)
        if rng.random() < 0.15:
            router = rng.choice([router for router, _ in sorted(cuts)] or [router])
        like = {name}
        if rng.random() < 0.8:  # as the page has it; else prices that know less
            group = next((group for group in self.groups if name in group), ())
            like |= {q for q in group if scope.starts.get(q) and scope.cuts(q) == cuts}
        inside = Scope(scope.starts, scope.covers | {(name, router, True)})
        outside = Scope(scope.starts, scope.covers | {(q, router, False) for q in like})
        depths = self._depths(depth, rng.random() < 0.5)
        return {
            "kind": "cover",
            "request": name,
            "row": router,
            "inside": self.tree(inside, depths[0]),
            "outside": self.tree(outside, depths[1]),
        }

    def _end(self, scope: Scope) -> Json:
        rng = self.rng
        if self.shared is None or rng.random() < 0.1:
            return self.leaf(scope)
        if not self.shared or (len(self.shared) < 6 and rng.random() < 0.6):
            self.shared.append(self.leaf(scope))
            at = len(self.shared) - 1
        else:
            at = rng.randrange(len(self.shared))
        return {"kind": "ref", "leaf": at, **self._multiple()}

    def _multiple(self) -> Json:
        rng = self.rng
        many = rng.choice(_FACTORS)
        times, over = rng.choice(
            (
                *((1, 1), (1, 1), (many, many), (many, many)),
                *((many + 1, many), (many, many + 1), (many - 1, many)),
                *((0, many), (1, 2), (many, 1), (rng.randint(1, 9), rng.randint(1, 9))),
            )
        )
        if times == over == 1 and rng.random() < 0.5:
            return {}
        return {"times": times, "over": over}

    def whole(self, depth: int) -> Json:
        """Return a whole certificate."""
        first = list(reversed(self.names)) if self.rng.random() < self.forcing else []
        tree = self._opened(Scope(self.others), first, depth)
        if self.shared is None:
            return tree
        if self.rng.random() < 0.1:
            self.shared.append(self.leaf(Scope(self.others)))
        return {"kind": "shared", "alike": list(self.groups), "leaves": self.shared, "tree": tree}


def _depth(rng: random.Random) -> int:
    return rng.choice((0, 1, 1, 2, 2, 3, 4, 6, 12))


def _parts(rng: random.Random, problem: Problem) -> Json:
    parts: list[list[str]] = [[] for _ in range(rng.randint(1, 3))]
    for name in rng.sample(problem.names, len(problem.names)):
        rng.choice(parts).append(name)
    if rng.random() < 0.04 and problem.names:
        rng.choice(parts).append(rng.choice(problem.names))
    documents = []
    for names in parts:
        writer = _Writer(rng, problem, names=names, shares=rng.random() < 0.5)
        certificate = writer.whole(rng.choice((0, 0, 1, 2, 4)))
        documents.append({"requests": names, "certificate": certificate})
    return {"kind": "parts", "parts": documents}


def _alike(rng: random.Random, problem: Problem) -> Json:
    groups = random_groups(rng, problem.tiny)
    if rng.random() < 0.3:  # groups of one
        groups = [[name] for name in problem.names if rng.random() < 0.5]
    if rng.random() < 0.12:  # whether they are alike or not, and some twice
        groups = [[name for name in problem.names if rng.random() < 0.8] for _ in range(2)]
        groups = groups[: rng.randint(1, 2)]
    if rng.random() < 0.1:
        groups.append([])
    writer = _Writer(rng, problem, groups=groups, shares=True, cover_share=0.5, forcing=0.4)
    return writer.whole(1 + _depth(rng))


def _level(rng: random.Random, problem: Problem) -> Json:
    shares = rng.random() < 0.02  # not on these levels
    return _Writer(rng, problem, shares=shares).whole(_depth(rng))


_DRAWS: dict[str, Callable[[random.Random, Problem], Json]] = {
    "leaf": lambda rng, problem: _Writer(rng, problem).leaf(Scope()),
    "start": lambda rng, problem: _Writer(rng, problem, cover_share=0.0).whole(max(1, _depth(rng))),
    "cover": lambda rng, problem: _Writer(rng, problem, cover_share=0.9, forcing=0.2).whole(
        1 + _depth(rng)
    ),
    "shared": lambda rng, problem: _Writer(rng, problem, shares=True).whole(_depth(rng)),
    "parts": _parts,
    "alike": _alike,
    "level 2": _level,
    "level 3": _level,
}


def _spoilt(rng: random.Random, document: Json) -> Json:
    """Return a document, now and then with one or two integers or one list changed."""
    for _ in range(rng.choice((0, 0, 0, 0, 1, 2))):
        places = list(integers(document))
        if places:
            document = replaced(document, rng.choice(places), number(rng, 0, 1, 2, 3, extremes=0.5))
    if rng.random() < 0.1:
        document = copy.deepcopy(document)
        lists = [some for some in _lists(document) if some]
        if lists:
            some = rng.choice(lists)
            at = rng.randrange(len(some))
            some[at : at + 1] = rng.choice(([], [some[at]] * 2, [some[at - 1]]))
    return document


def _lists(document: Json) -> Iterator[list[Json]]:
    """Yield the lists of a document, but for the runs of prices."""
    if isinstance(document, dict):
        for below in document.values():
            yield from _lists(below)
    elif isinstance(document, list):
        if not any(
            isinstance(run, list) and list(map(type, run)) == [int, int] for run in document
        ):
            yield document
        for below in document:
            if isinstance(below, dict):
                yield from _lists(below)
