"""The model of a placement on a hierarchy or switch tree: units on hosts, and domains in use.

The rules are those of docs/proofs/hierarchy.md, host by host. Candidates are too many to be listed,
so that certificates are not about this model: its proofs are found anew (`search_proof`).
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from topoplace.errors import InputError
from topoplace.explicit.model import Model, Sum, word
from topoplace.explicit.search_proof import prove_by_search
from topoplace.machine.hostlist import expand_host_list
from topoplace.placement.hierarchy.problem import (
    HierarchyProblem,
    Placed,
    Started,
    held,
    room,
    written_out,
)
from topoplace.snapshot.hierarchy_state import PartState
from topoplace.snapshot.schema import WITHOUT_GPUS
from topoplace.types import IntArray

if TYPE_CHECKING:
    from topoplace.explicit.chosen import Chosen

MOST_VARIABLES = 200_000
"""Most variables of units on hosts of a model that is written."""


@dataclass(eq=False)
class LevelsModel:
    """A placement on a hierarchy and its model.

    Attributes
    ----------
    start, ways
        The variable of a request, and those of the sets of hosts of which it has one.
    units
        By request, part and host the variables for a unit there, for two, and so on.
    used
        By request, group of parts, level and domain, whether there are units.
    pieces
        By request, part, level and domain the variables for a segment there, for two, and so on.
    least
        By request and part with balance, the variables for at least a unit in each domain, two, ..
    free
        Where free domains count, the variable of each one that stays so.
    """

    problem: HierarchyProblem
    model: Model
    start: list[int] = field(default_factory=list)
    ways: dict[int, list[int]] = field(default_factory=dict)
    units: dict[tuple[int, int, int], list[int]] = field(default_factory=dict)
    used: dict[tuple[int, int, int, int], int] = field(default_factory=dict)
    pieces: dict[tuple[int, int, int, int], list[int]] = field(default_factory=dict)
    least: dict[tuple[int, int], list[int]] = field(default_factory=dict)
    free: dict[int, int] = field(default_factory=dict)

    def prove(self, own: Chosen, write: Callable[[str], object]) -> None:
        """Write a proof of the bound of a result's level."""
        prove_by_search(self.model, self.model.sign * int(own.level.bound), write, "domains")

    # ---- what the rules need to know

    @cached_property
    def rooms(self) -> dict[tuple[int, int], IntArray]:
        """By request and part the units that each host has room for, with any of the ways."""
        return {
            (q, p): np.max([room(self.problem.state.free, way[p]) for way in request.ways], axis=0)
            for q, request in enumerate(self.problem.requests)
            for p in range(len(request.parts))
        }

    def domain(self, level: int, host: int) -> int:
        """Return the domain of a host on a level."""
        return int(self.problem.machine.domain_of[level][host])

    def units_in(self, q: int, p: int, level: int) -> dict[int, list[int]]:
        """Return the variables of a part's units by domain of a level."""
        found: dict[int, list[int]] = defaultdict(list)
        for (request, part, host), own in self.units.items():
            if (request, part) == (q, p):
                found[self.domain(level, host)] += own
        return found

    # ---- the model

    def complete(self, own: Chosen, started: Started | None) -> None:
        """Build the model of a level, with the values of a placement if there is one."""
        problem, model = self.problem, self.model
        name, sense = problem.levels[own.number]
        model.sign = 1 if sense == "min" else -1
        model.notes.append(model.told(name))
        self.build()
        for (level, direction), least in zip(problem.levels, own.earlier, strict=False):
            if least is not None:
                relation = ">=" if direction == "max" else "<="
                model.add(f"level_{word(level)}", self.worth(level), relation, least)
        model.objective = Sum.of({v: model.sign * c for v, c in self.worth(name).items()})
        if started is not None:
            model.solution = self.values_at(started)
            model.require_solution()

    def build(self) -> None:
        """Add variables and rows."""
        requests = self.problem.requests
        num = sum(
            int(np.minimum(own, requests[q].parts[p].units).sum())
            for (q, p), own in self.rooms.items()
        )
        if num > MOST_VARIABLES:
            raise InputError(f"at most {MOST_VARIABLES} units on hosts", field="export", value=num)
        self.start = [self.model.variable(f"q{q}_{word(r.id)}") for q, r in enumerate(requests)]
        for q in range(len(requests)):
            self._add_request(q)
        for q, request in enumerate(requests):
            for p in range(len(request.parts)):
                self._add_rules(q, p)
        self._add_capacities()
        self._add_exclusive()
        self._add_free()

    def _add_request(self, q: int) -> None:
        """Add the domains and hosts of a request, and that all its units are there or none."""
        model, request = self.model, self.problem.requests[q]
        name = model.variables[self.start[q]]
        if request.others:
            self.ways[q] = [model.variable(f"{name}_way{k}") for k in range(len(request.ways))]
            model.add(f"way_{name}", dict.fromkeys(self.ways[q], 1) | {self.start[q]: -1}, "=", 0)
        levels = range(len(self.problem.machine.domain_of))
        for level in levels:
            for p, part in enumerate(request.parts):
                for host in np.flatnonzero(self.rooms[q, p]).tolist():
                    key = q, part.group, level, self.domain(level, host)
                    if key not in self.used:
                        words = "_".join(map(str, key[1:]))
                        self.used[key] = model.variable(f"{name}_in_{words}")
        for p, part in enumerate(request.parts):
            for host, most in enumerate(np.minimum(self.rooms[q, p], part.units).tolist()):
                if not most:
                    continue
                own = self.units[q, p, host] = [
                    model.variable(f"{name}_p{p}_h{host}_{k + 1}") for k in range(most)
                ]
                for one, more in itertools.pairwise(own):
                    model.add(f"more_{model.variables[more]}", {one: 1, more: -1}, ">=", 0)
                last = self.used[q, part.group, levels[-1], self.domain(levels[-1], host)]
                model.add(f"at_{model.variables[own[0]]}", {last: 1, own[0]: -1}, ">=", 0)
                if request.others:
                    allowed = (
                        self.ways[q][k]
                        for k, way in enumerate(request.ways)
                        if _may_have(way[p], host)
                    )
                    terms = dict.fromkeys(allowed, 1) | {own[0]: -1}
                    model.add(f"may_{model.variables[own[0]]}", terms, ">=", 0)
            every = [v for key, own in self.units.items() if key[:2] == (q, p) for v in own]
            terms = dict.fromkeys(every, 1) | {self.start[q]: -part.units}
            model.add(f"units_{name}_p{p}", terms, "=", 0)
        for (request_idx, group, level, d), v in list(self.used.items()):
            if request_idx == q:
                members = [p for p, part in enumerate(request.parts) if part.group == group]
                inside = [w for p in members for w in self.units_in(q, p, level).get(d, [])]
                most = min(len(inside), sum(request.parts[p].units for p in members))
                terms = dict.fromkeys(inside, -1) | {v: most}
                model.add(f"use_{model.variables[v]}", terms, ">=", 0)

    def _add_rules(self, q: int, p: int) -> None:
        """Add what a part asks of domains."""
        model, part = self.model, self.problem.requests[q].parts[p]
        name = f"{model.variables[self.start[q]]}_p{p}"
        for level, size in part.segments:
            for d, inside in self.units_in(q, p, level).items():
                most = min(len(inside), part.units) // size
                own = self.pieces[q, p, level, d] = [
                    model.variable(f"{name}_segment_{level}_{d}_{k + 1}") for k in range(most)
                ]
                terms = dict.fromkeys(inside, 1) | dict.fromkeys(own, -size)
                model.add(f"segments_{name}_{level}_{d}", terms, "=", 0)
        limits = [] if part.required is None else [(part.required, 1)]
        limits += [] if part.at_most is None else [part.at_most]
        for level, most in limits:
            own = [v for key, v in self.used.items() if key[:3] == (q, part.group, level)]
            terms = dict.fromkeys(own, -1) | {self.start[q]: most}
            model.add(f"domains_{name}_{level}", terms, ">=", 0)
        if part.spread is not None:
            level, most = part.spread
            for d, inside in self.units_in(q, p, level).items():
                terms = dict.fromkeys(inside, -1) | {self.used[q, part.group, level, d]: most}
                model.add(f"spread_{name}_{level}_{d}", terms, ">=", 0)
        if part.balance is not None:
            own = self.least[q, p] = [
                model.variable(f"{name}_least_{k + 1}") for k in range(part.units)
            ]
            for k, v in enumerate(own):
                model.add(f"least_{name}_{k}", {self.start[q]: 1, v: -1}, ">=", 0)
                for d, inside in self.units_in(q, p, part.balance).items():
                    for first in self._firsts(q, p, part.balance, d):  # a unit there uses it
                        terms = dict.fromkeys(inside, 1) | {v: -(k + 1), first: -k}
                        model.add(f"least_{name}_{k}_{d}_{first}", terms, ">=", -(k + 1))

    def _firsts(self, q: int, p: int, level: int, d: int) -> Iterable[int]:
        return (
            own[0]
            for (request, part, host), own in self.units.items()
            if (request, part) == (q, p) and self.domain(level, host) == d
        )

    def _add_capacities(self) -> None:
        taken: dict[tuple[int, int], dict[int, int]] = defaultdict(dict)
        for (q, p, host), own in self.units.items():
            for r, amount in enumerate(self.problem.requests[q].parts[p].takes):
                if amount:
                    taken[host, r] |= dict.fromkeys(own, amount)
        for (host, r), terms in taken.items():
            free = int(self.problem.state.free[host, r])
            if sum(terms.values()) > free:
                self.model.add(f"free_h{host}_{r}", terms, "<=", free)

    def _add_exclusive(self) -> None:
        """Add that domains of exclusive requests, and those of requests apart, are of one only."""
        requests, busy = self.problem.requests, np.flatnonzero(self.problem.state.occupied).tolist()
        alone: dict[tuple[int, str, int], dict[int, list[int]]] = defaultdict(
            lambda: defaultdict(list)
        )
        for (q, _, level, d), v in self.used.items():
            name = self.model.variables[v]
            for key in requests[q].parts[0].apart:
                if key[0] == level:
                    alone[*key, d][q].append(v)
            if requests[q].exclusive != level:
                continue
            if any(self.domain(level, host) == d for host in busy):
                self.model.add(f"busy_{name}", {v: 1}, "<=", 0)
            for (other, _, at, domain), w in self.used.items():
                if other != q and at == level and domain == d:
                    both = f"alone_{name}_{self.model.variables[w]}"
                    self.model.add(both, {v: 1, w: 1}, "<=", 1)
        for (level, name, d), owners in alone.items():
            owner = list(owners.items())
            for k, (_, own) in enumerate(owner):
                for _, others in owner[k + 1 :]:
                    for v in own:
                        for w in others:
                            row = f"apart_{level}_{word(name)}_{d}_{v}_{w}"
                            self.model.add(row, {v: 1, w: 1}, "<=", 1)

    def _add_free(self) -> None:
        """Add the domains that stay free: no request has units there."""
        domains = self.problem.free_domains.tolist()
        self.free = {d: self.model.variable(f"free_{d}") for d in domains}
        for d, v in self.free.items():
            for w in self._using(d):
                self.model.add(f"used_{d}_{self.model.variables[w]}", {v: 1, w: 1}, "<=", 1)

    def _using(self, d: int) -> list[int]:
        """Return the variables of requests that use a domain of the level of free ones."""
        level = self.problem.machine.levels.index(self.problem.state.snapshot.free or "")
        return [v for key, v in self.used.items() if key[2:] == (level, d)]

    # ---- levels of the objective, and solutions

    def worth(self, level: str) -> dict[int, int]:
        """Return what the variables add to a level, as it is reported."""
        requests, machine = self.problem.requests, self.problem.machine
        if level in ("nodes", WITHOUT_GPUS):
            value = "value" if level == "nodes" else "without_gpus"
            return {v: getattr(r, value) for v, r in zip(self.start, requests, strict=True)}
        if level == "balance":
            return {v: 1 for own in self.least.values() for v in own}
        if level == self.problem.free_name:
            return dict.fromkeys(self.free.values(), 1)
        if level in machine.levels:
            at = list(machine.levels).index(level)
            return {v: 1 for key, v in self.used.items() if key[2] == at}
        terms: dict[int, int] = {}
        for (q, p, host), own in self.units.items():
            most = int(held(self.problem.state.free, requests[q].parts[p].takes)[host])
            terms |= dict.fromkeys(own, -1) | {own[0]: most - 1}
        return terms

    def values_at(self, started: Started) -> IntArray:
        """Return the values of the variables in a placement."""
        values = np.zeros(len(self.model.variables), dtype=np.int64)
        requests = self.problem.requests
        for q, placed in started.items():
            values[self.start[q]] = 1
            for p, (part, hosts) in enumerate(zip(requests[q].parts, placed, strict=True)):
                for host, units in hosts.items():
                    values[self.units[q, p, host][:units]] = 1
                    for level in range(len(self.problem.machine.domain_of)):
                        values[self.used[q, part.group, level, self.domain(level, host)]] = 1
            if q in self.ways:
                fits = [
                    all(
                        _may_have(part, host)
                        for part, hosts in zip(way, placed, strict=True)
                        for host in hosts
                    )
                    for way in requests[q].ways
                ]
                values[self.ways[q][fits.index(True)]] = 1
        for (q, p, level, d), own in self.pieces.items():
            inside = self.units_in(q, p, level)[d]
            size = next(n for lv, n in requests[q].parts[p].segments if lv == level)
            values[own[: int(values[inside].sum()) // size]] = 1
        for (q, p), own in self.least.items():
            at = requests[q].parts[p].balance
            assert at is not None
            sums = [int(values[vs].sum()) for vs in self.units_in(q, p, at).values()]
            values[own[: min([n for n in sums if n], default=0)]] = 1
        for d, v in self.free.items():
            values[v] = not values[self._using(d)].any()
        return values

    def placed(self, placement: Any) -> Placed:
        """Return where a request of a solution is."""
        host = self.problem.machine.numbers
        return tuple(
            {
                host[name]: share.units
                for share in part.shares
                for name in expand_host_list(share.hosts)
            }
            for part in placement.parts
        )

    @property
    def first(self) -> Started:
        """The placement that starts nothing."""
        return {}

    def solution(self, values: IntArray) -> Started:
        """Return the placement of values of the variables."""
        found: dict[int, Placed] = {}
        for q, request in enumerate(self.problem.requests):
            if values[self.start[q]]:
                found[q] = tuple(
                    {
                        host: int(values[own].sum())
                        for (one, part, host), own in self.units.items()
                        if (one, part) == (q, p) and values[own[0]]
                    }
                    for p in range(len(request.parts))
                )
        return found


def _may_have(part: PartState, host: int) -> bool:
    return part.eligible is None or bool(part.eligible.mask[host])


def model_of(own: Chosen, make: type[LevelsModel] = LevelsModel) -> LevelsModel:
    """Return the model of a level of a placement, with the solution if a result has one."""
    problem = own.problem
    assert isinstance(problem, HierarchyProblem)
    solution = None if own.result is None else own.result.solution
    found = make(written_out(problem), Model([own.title]))
    started = None
    if solution is not None:
        number = {request.id: q for q, request in enumerate(problem.requests)}
        started = {number[one.request]: found.placed(one) for one in solution.placements}
    found.complete(own, started)
    return found
