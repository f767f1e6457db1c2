"""Requests served in queue order, as schedulers do: each on what the earlier ones leave.

A rule chooses the hosts of one request. A request that finds no place waits, and later ones are
still served. The rule of a scheduler leaves a request waiting if it needs something that the
scheduler does not know.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property

import numpy as np

from topoplace.placement.hierarchy.problem import HierarchyProblem, Placed, units_by_domain
from topoplace.snapshot.hierarchy_state import HierarchyRequest, PartState
from topoplace.solving import Options, Outcome, register
from topoplace.types import BoolArray

_HARD = ("segments", "required", "exclusive", "spread", "apart", "order")


class Vacancy:
    """The free part of a machine while a queue is served.

    Attributes
    ----------
    free
        The free amounts on every host, shape ``(num_hosts, num_resources)``.
    occupied
        Whether another job, running or started, has a part of the host or keeps it for itself,
        shape ``(num_hosts,)``.
    """

    def __init__(self, problem: HierarchyProblem) -> None:
        self.machine = problem.machine
        self.free = problem.state.free.copy()
        self.occupied = problem.state.occupied.copy()
        self._apart: dict[tuple[int, str], BoolArray] = {}

    @cached_property
    def name_ranks(self) -> tuple[list[int], ...]:
        """By level the rank of every domain if they are sorted by the names on their paths."""
        found, paths = [], [((), "")]
        for names, parents in zip(self.machine.domain_names, self.machine.parents, strict=True):
            above = [paths[parent] for parent in parents]
            paths = [
                ((*path, name.removeprefix(prefix)), f"{name}/")
                for name, (path, prefix) in zip(names, above, strict=True)
            ]
            in_order = sorted(range(len(names)), key=paths.__getitem__)
            found.append(np.argsort(in_order).tolist())
        return tuple(found)

    def take(self, part: PartState, hosts: Mapping[int, int]) -> None:
        """Take the amounts that units of a part need from their hosts."""
        for host, units in hosts.items():
            self.free[host] -= units * np.array(part.takes)

    def closed(self, part: PartState) -> BoolArray:
        """Mark the hosts of domains that a part may not share with those there."""
        found = np.zeros(self.machine.num_hosts, dtype=bool)
        for key in part.apart:
            found |= self._apart.get(key, np.False_)
        if part.exclusive is not None:
            domain_of = self.machine.domain_of[part.exclusive]
            found |= np.isin(domain_of, domain_of[self.occupied])
        return found

    def start(self, request: HierarchyRequest, placed: Placed) -> None:
        """Close the domains that a request does not share; its units are taken already."""
        for part, hosts in zip(request.parts, placed, strict=True):
            own = list(hosts)
            self.occupied[own] = True
            for key in part.apart:
                domain_of = self.machine.domain_of[key[0]]
                mask = self._apart.setdefault(key, np.zeros(self.machine.num_hosts, dtype=bool))
                mask |= np.isin(domain_of, domain_of[own])
            if part.exclusive is not None:
                domain_of = self.machine.domain_of[part.exclusive]
                closed = np.isin(domain_of, domain_of[own])
                self.occupied[closed] = True
                self.free[closed] = 0


Rule = Callable[[Vacancy, HierarchyRequest, np.random.Generator], Placed | None]
"""Chooses the hosts of a request and takes them, or returns None and may leave anything taken."""


def register_rule(name: str, summary: str = "") -> Callable[[Rule], Rule]:
    """Return a decorator that registers the method which serves a queue by a rule."""

    def add(rule: Rule) -> Rule:
        def method(problem: HierarchyProblem, options: Options) -> Outcome:
            return Outcome(serve(rule, problem, options.seed))

        register("hierarchy", name, summary)(method)
        return rule

    return add


def serve(rule: Rule, problem: HierarchyProblem, seed: int = 0) -> dict[int, Placed]:
    """Return the started requests if a rule serves the queue, by the number of the request."""
    rng = np.random.default_rng(seed)
    vacancy = Vacancy(problem)
    started = {}
    for idx, request in enumerate(problem.requests):
        placed = served(rule, problem, vacancy, request, rng)
        if placed is not None:
            vacancy.start(request, placed)
            started[idx] = placed
    return started


def served(
    rule: Rule,
    problem: HierarchyProblem,
    vacancy: Vacancy,
    request: HierarchyRequest,
    rng: np.random.Generator,
) -> Placed | None:
    """Return the hosts of a request by a rule, taken from the vacancy; None leaves it as it was."""
    before = vacancy.free.copy()
    for way in request.ways:  # of several sets of hosts the first in which it fits
        placed = rule(vacancy, replace(request, parts=way, others=()), rng)
        if placed is not None and not _uses_too_many(problem, request, placed):
            return placed
        vacancy.free = before.copy()
    return None


def _uses_too_many(problem: HierarchyProblem, request: HierarchyRequest, placed: Placed) -> bool:
    """Return whether a request uses more domains of a level than it may; no rule respects that."""
    return any(
        part.at_most is not None
        and len(units_by_domain(problem.machine, part.at_most[0], hosts)) > part.at_most[1]
        for part, hosts in zip(request.parts, placed, strict=True)
    )


def asks_only(request: HierarchyRequest, *known: str) -> bool:
    """Whether a request has no hard rules but those named, of segments, required, and so on."""
    asked = (getattr(part, name) for part in request.parts for name in _HARD if name not in known)
    return all(value in (None, ()) for value in asked)


def groups_of(request: HierarchyRequest) -> list[list[int]]:
    """Return the numbers of the parts of every group."""
    found: dict[int, list[int]] = {}
    for number, part in enumerate(request.parts):
        found.setdefault(part.group, []).append(number)
    return list(found.values())
