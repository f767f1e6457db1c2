"""Hierarchies as a plug-in of the engine: rows of hosts, and a dynamic program as oracle."""

from __future__ import annotations

import contextlib
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from topoplace import clock
from topoplace.packing.budget import Budget
from topoplace.packing.problem import (
    NO_VALUE,
    Cover,
    PackingProblem,
    Priced,
    Query,
    Subproblem,
    capacities_left,
)
from topoplace.packing.ruin_recreate import RuinRecreate, ruined
from topoplace.placement.hierarchy.assignment import MOST_VARIABLES, Assignment
from topoplace.placement.hierarchy.heuristics.fits import first_fit, tree_best_fit
from topoplace.placement.hierarchy.heuristics.queue import serve
from topoplace.placement.hierarchy.kinds import Place, places_of, prices_of
from topoplace.placement.hierarchy.layout import Layout, Node, rounded
from topoplace.placement.hierarchy.patterns import Patterns
from topoplace.placement.hierarchy.problem import (
    HierarchyProblem,
    Placed,
    Started,
    windows_of,
)
from topoplace.placement.hierarchy.tables import (
    NO_STEPS,
    Costs,
    PartShape,
    Shape,
    Steps,
    Tables,
    Uses,
    part_shape,
)
from topoplace.placement.hierarchy.windows import Windows
from topoplace.snapshot.hierarchy_state import HierarchyRequest, PartState
from topoplace.snapshot.schema import WITHOUT_GPUS
from topoplace.types import BoolArray, FloatArray, IntArray

_SMALL = 2_000
"""Requests times hosts and pools up to which all levels are solved to the end."""

_FEW_WINDOWS = 64
"""Places of a contiguous request up to which an integer program over all hosts is tried."""

_NODE_SECONDS, _KIND_SECONDS = 2e-6, 1e-4
"""Time for a node in one table, and for a kind of request in addition to its tables."""

_MOST_RUINED = 12
"""Requests taken out at once by the search for better placements, at most."""

_REMEMBERED = 500
"""Candidates whose amounts are kept."""

_NOISE = 0.4
"""The relative variation of a request's difficulty from try to try."""


@dataclass(frozen=True, order=True)
class Candidate:
    """A request in a place: units of its parts on hosts and in pools."""

    request_idx: int
    uses: Uses


class HierarchyPacking(PackingProblem):
    """A queue on a hierarchy as rows, requests and an oracle.

    Parameters
    ----------
    layout, left, requests
        For a problem that is a part of another: the rows of that one, the amounts left, and the
        waiting requests. By default this is the whole problem.
    """

    def __init__(
        self,
        problem: HierarchyProblem,
        layout: Layout | None = None,
        left: IntArray | None = None,
        requests: Sequence[HierarchyRequest] | None = None,
    ) -> None:
        self.hierarchy, self.layout = problem, layout or Layout(problem)
        self._is_whole = left is None
        self.requests = list(problem.requests if requests is None else requests)
        self.names = [request.id for request in self.requests]
        self.values = np.array([request.value for request in self.requests], dtype=np.int64)
        self.capacities = self.layout.capacities if left is None else left
        self.num_covers = self.layout.num_base
        self.families = self.layout.families
        self.senses = [1 if sense == "max" else -1 for _, sense in problem.levels]
        self._level_of = {name: k for k, (name, _) in enumerate(problem.levels)}
        self._amounts: dict[Candidate, IntArray] = {}

    @property
    def is_small(self) -> bool:
        """Whether linear programs and branches close every level quickly."""
        return len(self.requests) * len(self.layout.below[-1]) <= _SMALL

    @cached_property
    def takable(self) -> BoolArray:
        """Rows that are not used up."""
        return np.asarray(self.capacities > 0)

    @property
    def kinds(self) -> Sequence[Hashable]:
        """All fields of requests except their names."""
        return [(r.value, r.without_gpus, _asked(r)) for r in self.requests]

    @cached_property
    def start_prices(self) -> IntArray:
        """The highest value per unit of a row, rounded up, on the rows of hosts and pools."""
        most = np.zeros(self.num_rows, dtype=np.int64)
        of_resource = np.zeros(len(self.layout.machine.resources))
        per_unit = 0.0
        for request in self.requests:
            taken = sum(np.array(p.takes) * p.units for p in request.parts) / self.layout.grain
            per_unit = max(per_unit, request.value / sum(part.units for part in request.parts))
            with np.errstate(divide="ignore"):
                dear = np.where(taken > 0, request.value / np.maximum(taken, 1), 0)
            of_resource = np.maximum(of_resource, dear)
        for r, first in self.layout.first_row.items():
            most[first : first + self.layout.machine.num_hosts] = int(np.ceil(of_resource[r]))
        most[self.families["pools"]] = int(np.ceil(per_unit))
        return most

    @cached_property
    def places(self) -> list[Place]:
        """Kinds of hosts and pools that are not used up."""
        return places_of(self.layout, self.capacities)

    def first_prices(self, sub: Subproblem) -> tuple[FloatArray, tuple[float, ...]] | None:
        """Return prices of a linear program over kinds of hosts and requests."""
        found, free = None, self.hierarchy.free_level
        if clock.now() < self.deadline and (free is None or sub.level < free):
            names = [name for name, _ in self.hierarchy.levels[: sub.level + 1]]
            found = prices_of(self.layout, self.requests, self.places, names, sub, self.deadline)
        return found or super().first_prices(sub)

    # ---- candidates

    def rows_of(self, candidate: Candidate) -> IntArray:
        """Return the rows that a candidate uses, each repeated by the amount."""
        request, layout = self.requests[candidate.request_idx], self.layout
        amounts: dict[int, int] = defaultdict(int)
        units: dict[int, dict[int, int]] = defaultdict(lambda: defaultdict(int))
        for part, leaf, count in candidate.uses:
            kind = layout.kind_of[request.parts[part].kind]
            for inside in layout.chain[leaf]:
                units[inside][kind] += count
        for level, name in request.parts[0].apart:
            for node in (layout.nodes[number] for number in units):
                if node.level == level:
                    amounts[layout.apart[level, name] + node.domain] = 1
        whole = set()
        for number, by_kind in units.items():
            node = layout.nodes[number]
            if request.exclusive is not None and node.level >= request.exclusive:
                if node.level == request.exclusive:
                    whole.update(layout.alone(number, by_kind)[0])
                continue
            self._take(amounts, number, node, by_kind)
        for row in whole:
            amounts[row] = int(layout.capacities[row])
        rows = np.array(sorted(amounts), dtype=np.int64)
        return np.repeat(rows, [amounts[row] for row in rows.tolist()])

    def _take(
        self, amounts: dict[int, int], number: int, node: Node, units: dict[int, int]
    ) -> None:
        """Add the amounts that units of some kinds in a node take of its own rows."""
        layout = self.layout
        if node.pool is not None:
            amounts[node.pool] += sum(units.values())
        taken = sum(layout.kinds[kind] * n for kind, n in units.items())
        if node.hosts and node.pool is None:
            for r, first in layout.first_row.items():
                amounts[first + node.hosts[0]] += int(taken[r])
        for own in layout.rounded[number]:
            whole = sum(units.values()) if own.resource is None else int(taken[own.resource])
            for most, row in own.rows.items():
                amounts[row] += rounded(whole, own.capacity, most)

    def values_of(self, candidates: Sequence[Candidate]) -> IntArray:
        """Return the values of candidates on all levels, costs negated."""
        found = np.zeros((len(candidates), len(self.senses)), dtype=np.int64)
        for row, candidate in zip(found, candidates, strict=True):
            request = self.requests[candidate.request_idx]
            row[:] = self.hierarchy.values_of(request, self.placed(candidate))
        return found * np.array(self.senses, dtype=np.int64)

    def placed(self, candidate: Candidate, taken: dict[int, int] | None = None) -> Placed:
        """Return a candidate as units on hosts.

        Parameters
        ----------
        taken
            How many hosts of every pool other requests have; it is updated.
        """
        taken = {} if taken is None else taken
        request = self.requests[candidate.request_idx]
        placed: Placed = tuple({} for _ in request.parts)
        for part, leaf, number in candidate.uses:
            node, hosts = self.layout.nodes[leaf], dict(placed[part])
            if node.pool is None:
                hosts[node.hosts[0]] = number
            else:
                first, own = taken.get(leaf, 0), self.layout.pool_hosts(leaf)
                taken[leaf] = first + number
                hosts |= dict.fromkeys(own[first : first + number], 1)
            placed = (*placed[:part], hosts, *placed[part + 1 :])
        return placed

    def started(self, placement: Sequence[Candidate]) -> dict[int, Placed]:
        """Return a placement as units on hosts, every pool's hosts in their order."""
        taken: dict[int, int] = {}
        return {c.request_idx: self.placed(c, taken) for c in sorted(placement)}

    def with_one_more(self, placed: Sequence[Candidate], q: int) -> list[Candidate] | None:
        """Return a placement with a request in addition, where hosts have the least left."""
        found = self.with_best_fits(placed, [q], Budget(None))
        return found if len(found) > len(placed) else None

    def candidates(self, started: Started) -> list[Candidate]:
        """Return started requests as candidates, the inverse of `placed`."""
        node_of = self.layout.node_of_host
        found = []
        for q, placed in started.items():
            uses: Counter[tuple[int, int]] = Counter()
            for part, hosts in enumerate(placed):
                for host, units in hosts.items():
                    uses[part, node_of[host]] += units
            found.append(Candidate(q, tuple(sorted((*key, n) for key, n in uses.items()))))
        return found

    @cached_property
    def _largest(self) -> list[int]:
        """Upper bounds on the absolute values of a candidate by level."""
        units = max((sum(p.units for p in r.parts) for r in self.requests), default=0)
        rooms = int(self.layout.rooms.max(initial=0))
        largest = [units] * len(self.senses)
        largest[0] = int(self.values.max(initial=0))
        if WITHOUT_GPUS in self._level_of:
            without = max((r.without_gpus for r in self.requests), default=0)
            largest[self._level_of[WITHOUT_GPUS]] = without
        largest[-1] = units * rooms
        return largest

    def largest(self, level: int) -> int:
        """Return an upper bound on a candidate's value, whatever the sign."""
        return self._largest[level]

    def most(self, level: int) -> int:
        """Return an upper limit of a later level: 0 where values are negated costs."""
        if level == self._level_of.get(WITHOUT_GPUS):
            return sum(request.without_gpus for request in self.requests)
        return 0 if self.senses[level] < 0 else len(self.names) * self.largest(level)

    # ---- the oracle

    @cached_property
    def _work(self) -> float:
        """By the tables of a call, one for all requests that differ only in numbers of units."""
        pricing = Pricing(self, np.zeros(self.num_rows, dtype=np.int64), (1,))
        tabled = (request for request in self.requests if request.parts[0].order is None)
        shapes = {shape for request in tabled for shape, _ in pricing.shapes(request)}
        tables = _NODE_SECONDS * len(self.layout.nodes) * len(shapes)
        return _KIND_SECONDS * (1 + len(set(self.kinds))) + tables

    def work(self, level: int) -> float:
        """Return what a call of the oracle takes, in nominal seconds."""
        return self._work

    def price(self, row_prices: IntArray, query: Query) -> Priced:
        """Return the best candidate of every request."""
        pricing = Pricing(self, row_prices, query.weights)
        best = np.full(len(self.names), NO_VALUE, dtype=np.int64)
        columns: list[list[tuple[int, Candidate]]] = [[] for _ in self.names]
        known: dict[object, tuple[int, Uses] | None] = {}
        for q, kind in enumerate(self.kinds[: len(self.requests)]):
            clock.check(self.deadline)
            own = query.covers_of.get(q, [])
            key = kind, frozenset((c.row, c.inside) for c in own)
            if key not in known:
                known[key] = pricing.best(q, own)
            found = known[key]
            if found is not None:
                best[q] = found[0]
                columns[q].append((found[0], Candidate(q, found[1])))
        return Priced(best, columns)

    def starts(self, deadline: float) -> Iterator[list[Candidate]]:
        """Yield placements of integer programs over kinds or all hosts, heuristics and best fits.

        The program over kinds comes first: it is small on machines of any size, and where it solves
        all, the others are not needed. The heuristics of the whole queue use no compiled code and
        ignore the time limit, so that there is a placement at once. Best fits take first the
        requests with many units that stay together, or those of the largest value.
        """
        patterns: Patterns | None = None
        with contextlib.suppress(clock.OutOfTimeError):
            patterns = Patterns(self.layout, self.requests, self.kinds, self.places, deadline)
            for found in patterns.placements(0):
                yield [Candidate(q, uses) for q, uses in found]
        if patterns is not None and patterns.is_solved:
            return
        if self._is_whole:
            for rule in (first_fit, tree_best_fit):
                yield self.candidates(serve(rule, self.hierarchy))
        for key in (self.hardness, self.values[: len(self.requests)]):
            order = np.argsort(-key, kind="stable").tolist()
            yield self.with_best_fits([], order, Budget(max(0.0, deadline - clock.now())))
        if patterns is not None and not patterns.knows_all:
            with contextlib.suppress(clock.OutOfTimeError):
                yield from self._assigned(deadline)

    def _assigned(self, deadline: float) -> Iterator[list[Candidate]]:
        """Yield solutions of an integer program over all hosts, if it is not too large."""
        many = Assignment.num_variables(self.layout, self.requests) > MOST_VARIABLES
        many |= any(
            one.parts[0].order is not None
            and sum(own.num for own in self.windows(q)) > _FEW_WINDOWS
            for q, one in enumerate(self.requests)
        )
        if many:
            return
        levels = self.layout.machine.num_levels
        program = Assignment(self.layout, self.requests, self.capacities, levels, deadline)
        for found in program.placements(0):
            yield [Candidate(q, uses) for q, uses in found]

    def windows(self, q: int) -> list[Windows]:
        """Return all places of a request that is contiguous, by the sets of hosts it may have."""
        request = self.requests[q]
        key = request.value, request.without_gpus, _asked(request)
        if key not in self.layout.windows:
            found = []
            for (part,) in request.ways:
                may = self.layout.rooms[:, self.layout.kind_of[part.kind]] > 0
                hosts = windows_of(self.layout.machine, part, may)
                places = []
                for own in hosts.tolist():
                    clock.check(self.deadline)
                    leaves = sorted(self.layout.node_of_host[host] for host in own)
                    places.append(Candidate(q, tuple((0, leaf, 1) for leaf in leaves)))
                if places:
                    rows = [self.rows_of(place) for place in places]
                    found.append(Windows(self.layout, hosts, rows, self.values_of(places)))
            self.layout.windows[key] = found
        return self.layout.windows[key]

    @cached_property
    def hardness(self) -> IntArray:
        """How hard requests are to place: by the units that stay together, then by their value."""
        together = [max(n for p in r.parts for n in _sizes(p)) for r in self.requests]
        values = self.values[: len(self.requests)]
        return np.asarray(np.array(together) * (1 + values.max(initial=0)) + values)

    def with_best_fits(
        self,
        kept: Sequence[Candidate],
        order: Sequence[int],
        budget: Budget,
    ) -> list[Candidate]:
        """Return a placement with others added, in an order, where hosts have the least left."""
        placed = list(kept)
        left = self.capacities.copy()
        for candidate in placed:
            left -= self.amounts_of(candidate)
        for q in order:
            if budget.is_over():
                break
            budget.spend(_KIND_SECONDS + _NODE_SECONDS * len(self.layout.nodes))
            prices = left.copy()
            prices[self.num_covers :] = 0
            try:
                [columns] = self._of((q,), left).price(prices, Query((1,), 1)).columns
            except clock.OutOfTimeError:
                break
            for _, candidate in columns:
                placed.append(replace(candidate, request_idx=q))
                left = left - self.amounts_of(placed[-1])
        return sorted(placed)

    def amounts_of(self, candidate: Candidate) -> IntArray:
        """Return what a candidate takes of every row, shape ``(num_rows,)``: not to be changed."""
        found = self._amounts.get(candidate)
        if found is None:
            if len(self._amounts) >= _REMEMBERED:
                self._amounts.clear()
            found = np.bincount(self.rows_of(candidate), minlength=self.num_rows)
            self._amounts[candidate] = found
        return found

    def heuristic(self, budget: Budget) -> RuinRecreate:
        """Return the search that runs along with the bounds.

        A request is taken out with others in its domains, and all waiting requests are tried in a
        random order that prefers those that are hard to place.
        """

        def again(now: list[Candidate], rng: np.random.Generator) -> list[Candidate]:
            jobs = [c for c in now if c.request_idx < len(self.requests)]
            kept = ruined(jobs, lambda c: (leaf for _, leaf, _ in c.uses), rng, _MOST_RUINED)
            started = {c.request_idx for c in kept}
            waiting = [q for q in range(len(self.requests)) if q not in started]
            hardness = self.hardness[waiting] * (1 + _NOISE * rng.standard_normal(len(waiting)))
            order = [waiting[k] for k in np.argsort(-hardness, kind="stable").tolist()]
            return self.with_best_fits(kept, order, budget)

        return RuinRecreate(self.values, again)

    def left_by(self, fixed: Sequence[Candidate], kept: Sequence[int]) -> HierarchyPacking:
        """Return the problem of some requests around fixed jobs; it has the same rows."""
        return self._of(kept, capacities_left(self, fixed))

    def _of(self, kept: Sequence[int], left: IntArray) -> HierarchyPacking:
        requests = [self.requests[q] for q in kept]
        found = type(self)(self.hierarchy, self.layout, left, requests)
        found.deadline = self.deadline
        return found


def _sizes(part: PartState) -> list[int]:
    """Return how many units of a part stay together, at any level."""
    required = 1 if part.required is None else part.units
    return [required, *(size for _, size in part.segments)]


def _asked(request: HierarchyRequest) -> Hashable:
    """Return all fields of a request except names."""
    return tuple(map(_rules, request.ways))


def _rules(parts: Sequence[PartState]) -> Hashable:
    return tuple(
        (
            p.units,
            p.takes,
            p.segments,
            p.required,
            p.exclusive,
            p.balance,
            p.spread,
            p.at_most,
            p.group,
            p.eligible,
            p.apart,
            p.order,
        )
        for p in parts
    )


class Pricing:
    """One call of the oracle: requests that differ only in numbers share tables."""

    def __init__(
        self, packing: HierarchyPacking, row_prices: IntArray, weights: Sequence[int]
    ) -> None:
        self._packing, self._layout = packing, packing.layout
        names = [name for name, _ in packing.hierarchy.levels]
        by_name = dict(zip(names, weights, strict=False))
        self._names, self._weights = names, by_name
        machine = packing.layout.machine
        of_domain = [by_name.get(name, 0) for name in machine.levels]
        stranded = by_name.get("stranded", 0)
        self._costs = Costs(row_prices, packing.capacities, of_domain, stranded)
        self._most: dict[Shape, int] = {}
        for request in packing.requests:
            if len(request.parts) == 1 and request.parts[0].order is None:
                for shape, _ in self.shapes(request):
                    most = self._most.get(shape, 0)
                    self._most[shape] = max(most, request.parts[0].units)
        self._tables: dict[object, Tables] = {}

    def best(
        self, q: int, covers: Sequence[Cover], steps: Steps = NO_STEPS
    ) -> tuple[int, Uses] | None:
        """Return the largest gain of a request and where it is; None if it has no place."""
        request = self._packing.requests[q]
        units = [part.units for part in request.parts]
        found: tuple[int, Tables] | None = None
        nothing = [c for c in covers if not self._layout.capacities[c.row]]
        if any(cover.inside for cover in nothing):
            return None
        covers = [c for c in covers if c not in nothing]
        if request.parts[0].order is not None:
            found_in = [
                own.best(self._costs, self._weights, self._names, covers, steps)
                for own in self._packing.windows(q)
            ]
            return max((own for own in found_in if own is not None), default=None)
        for shape, balance in self.shapes(request):
            tables = self._tables_of(shape, units, self._by_node(request, covers), steps)
            cost = tables.least(units)
            if cost is None:
                continue
            gain = self._weights["nodes"] * request.value - cost
            gain += self._weights.get(WITHOUT_GPUS, 0) * request.without_gpus
            gain += self._weights.get("balance", 0) * balance
            if found is None or gain > found[0]:
                found = gain, tables
        return None if found is None else (found[0], found[1].uses(units))

    def shapes(self, request: HierarchyRequest) -> list[tuple[Shape, int]]:
        """Return the shapes of a request, and the sum of the least balances of its parts.

        There is one for each set of hosts of which it may have one, and of those balances.
        """
        apart = request.parts[0].apart
        return [
            (Shape(parts, request.exclusive, apart), n)
            for way in request.ways
            for parts, n in self._of_parts(way)
        ]

    def _of_parts(self, own_parts: Sequence[PartState]) -> list[tuple[tuple[PartShape, ...], int]]:
        beside = len(own_parts) > 1
        shapes: list[tuple[tuple[PartShape, ...], int]] = [((), 0)]
        for part in own_parts:
            balanced = part.balance is not None and self._weights.get("balance")
            least: Iterable[int | None] = range(1, part.units + 1) if balanced else (None,)
            own = [(part_shape(self._layout, part, n, beside_others=beside), n or 0) for n in least]
            shapes = [((*found, shape), n + m) for found, n in shapes for shape, m in own]
        return shapes

    def _by_node(
        self, request: HierarchyRequest, covers: Sequence[Cover]
    ) -> dict[int, list[tuple[tuple[int, ...], bool]]]:
        """Return the branches on nodes: by which parts they are used, or not."""
        found: dict[int, list[tuple[tuple[int, ...], bool]]] = {}
        for cover in covers:
            number, resource = self._layout.leaf_of_row(cover.row)
            parts: tuple[int, ...]
            if request.exclusive is not None:
                parts = tuple(range(len(request.parts)))
                chain = self._layout.chain[number]
                number = next(k for k in chain if self._layout.nodes[k].level == request.exclusive)
            else:
                parts = tuple(
                    p
                    for p, part in enumerate(request.parts)
                    if resource is None or part.takes[resource]
                )
            found.setdefault(number, []).append((parts, cover.inside))
        return found

    def _tables_of(
        self,
        shape: Shape,
        units: Sequence[int],
        covers: dict[int, list[tuple[tuple[int, ...], bool]]],
        steps: Steps,
    ) -> Tables:
        most = [self._most[shape]] if len(units) == 1 else list(units)
        told = tuple(sorted((node, tuple(own)) for node, own in covers.items()))
        key = shape, tuple(most), told, steps.key
        if key not in self._tables:
            self._tables[key] = Tables(self._layout, shape, most, self._costs, covers, steps)
        return self._tables[key]
