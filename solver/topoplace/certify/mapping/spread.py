"""What groups of tasks span, and what is proven of that (docs/proofs/spread.md)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from topoplace.certify.mapping.groups import Kind
from topoplace.certify.mapping.instance import Instance
from topoplace.certify.mapping.levels import kept_inside, layered
from topoplace.certify.report import RefusedError, fraction_of
from topoplace.errors import number_of
from topoplace.machine import LevelMachine
from topoplace.result.mapping import (
    SPREAD_STEPS,
    CountingCertificate,
    EnumerationCertificate,
    TouchingCertificate,
)
from topoplace.snapshot.schema import ParallelismApplication
from topoplace.types import IntArray


def spans_of(instance: Instance, routers: IntArray) -> list[int]:
    """Return for every kind of groups the most domains that one of them spans."""
    rows = _machine(instance).domain_of
    return [
        max(len({*rows[kind.level][routers[tasks]].tolist()}) for tasks in kind.groups)
        for kind in instance.kinds
    ]


def spread_proven(instance: Instance, certificate: Any, application: Any) -> int:
    """Return the domains that some group spans in any mapping, by a certificate."""
    if isinstance(certificate, CountingCertificate):
        return _counted(instance)
    if isinstance(certificate, TouchingCertificate):
        return _touched(instance, certificate, application)
    raise RefusedError("the certificate is none of this level")


def _machine(instance: Instance) -> LevelMachine:
    machine = instance.machine.levels
    if machine is None:
        raise RefusedError("groups span domains of trees and hierarchies")
    return machine


def _rooms(instance: Instance, level: int) -> list[int]:
    """Return how many tasks every domain of a level has room for."""
    rooms: dict[int, int] = {}
    row = _machine(instance).domain_of[level]
    for domain, places in zip(row.tolist(), instance.capacity.tolist(), strict=True):
        rooms[domain] = min(instance.num_tasks, rooms.get(domain, 0) + places)
    return sorted(rooms.values(), reverse=True)


# ---- Counting ------------------------------------------------------------------------------------


def _counted(instance: Instance) -> int:
    """Return what sizes alone prove."""
    least = 1
    for kind in instance.kinds:
        left, needed = max(len(tasks) for tasks in kind.groups), 0
        for room in _rooms(instance, kind.level):
            if left > 0:
                left, needed = left - room, needed + 1
        least = max(least, needed)
    for level in {kind.level for kind in instance.kinds}:
        joined = _joined(instance, (k for k in instance.kinds if k.level <= level))
        if joined > _rooms(instance, level)[0]:
            least = max(least, 2)  # all in one domain each would have all that hangs together so
    return least


def _joined(instance: Instance, kinds: Iterable[Kind]) -> int:
    """Return the most tasks that hang together by groups."""
    parent = list(range(instance.num_tasks))

    def root(task: int) -> int:
        while parent[task] != task:
            parent[task] = parent[parent[task]]
            task = parent[task]
        return task

    for kind in kinds:
        for tasks in kind.groups:
            first, *others = tasks.tolist()
            for other in others:
                parent[root(other)] = root(first)
    sizes: dict[int, int] = {}
    for task in range(instance.num_tasks):
        own = root(task)
        sizes[own] = sizes.get(own, 0) + 1
    return max(sizes.values())


# ---- Touching ------------------------------------------------------------------------------------


def _touched(instance: Instance, certificate: TouchingCertificate, application: Any) -> int:
    """Return what the groups prove that the tasks of every domain touch at least."""
    names = _machine(instance).hierarchy.levels[::-1]
    if certificate.level not in names or len(certificate.weights) != len(instance.kinds):
        raise RefusedError("the certificate is of another level, or of other groups")
    level = names.index(certificate.level)
    if not isinstance(application, ParallelismApplication):
        raise RefusedError("only training jobs have axes")
    taken: set[int] = set()
    lines, groups = [], 0
    for kind, weight in zip(instance.kinds, certificate.weights, strict=True):
        if not weight:
            continue
        if kind.level > level or not kind.axes or taken & kind.axes:
            raise RefusedError("groups of a level above, without axes, or with some in common")
        taken |= kind.axes
        lines.append((math.prod(application.axes[k].size for k in kind.axes), weight))
        groups += weight * len(kind.groups)
    if not lines:
        raise RefusedError("no groups have a weight")
    others = instance.num_tasks // math.prod(size for size, _ in lines)
    rooms = _rooms(instance, level)
    psi = np.zeros(2, dtype=np.int64)
    for size, weight in [*lines, (others, 0)]:
        psi = layered(psi[: rooms[0] + 1], size, "line", weight, rooms[0])
    weights = sum(weight for _, weight in lines)
    inside = kept_inside(psi, fraction_of(certificate.slope), rooms, instance.num_tasks)
    # of s tasks the lines of all kinds, by weight, are at least s x weights - psi(s)
    return math.ceil((weights * instance.num_tasks - inside) / groups)


# ---- Enumeration ---------------------------------------------------------------------------------


def gone_through(
    instance: Instance, certificate: EnumerationCertificate, spread: int, hops: int | None
) -> str:
    """Refuse unless no mapping spans at most `spread` domains, at fewer hop-bytes than `hops`."""
    if sorted(certificate.order) != list(range(instance.num_tasks)):
        raise RefusedError("the order is not one of all tasks")
    if spread < 1:
        return ""
    walk = _Walk(instance, certificate.order, spread, hops)
    walk.place(0, 0)
    return number_of(walk.steps, "step")


class _Walk:
    """All ways to put tasks on leaves, in an order, as long as groups span few domains."""

    def __init__(self, instance: Instance, order: list[int], spread: int, hops: int | None) -> None:
        machine = _machine(instance)
        self.order, self.spread, self.hops, self.steps = order, spread, hops, 0
        self.rows, self.costs = machine.domain_of.tolist(), machine.costs.tolist()
        self.free = np.minimum(instance.capacity, instance.num_tasks).tolist()
        self.leaf = [-1] * instance.num_tasks
        volumes = instance.volumes
        self.sent: list[dict[int, int]] = [{} for _ in range(instance.num_tasks)]
        ends = zip(volumes.tasks.tolist(), volumes.partners.tolist(), strict=True)
        for (task, partner), size in zip(ends, volumes.sizes.tolist(), strict=True):
            self.sent[task][partner] = size
        self.groups: list[list[tuple[int, list[int]]]] = [[] for _ in range(instance.num_tasks)]
        for kind in instance.kinds:
            for tasks in kind.groups:
                for task in tasks.tolist():
                    self.groups[task].append((kind.level, tasks.tolist()))
        # what is below every domain, written so that domains that look alike read alike
        self.below: list[dict[int, list[int]]] = [{k: [] for k in range(len(self.free))}]
        self.look: list[dict[int, str]] = [{k: str(room) for k, room in enumerate(self.free)}]
        for low, high in zip(self.rows, self.rows[1:], strict=False):
            below: dict[int, list[int]] = {}
            for lower, higher in zip(low, high, strict=True):
                if lower not in below.setdefault(higher, []):
                    below[higher].append(lower)
            last = self.look[-1]
            self.below.append({k: sorted(own) for k, own in below.items()})
            self.look.append(
                {k: f"({','.join(sorted(last[d] for d in own))})" for k, own in below.items()}
            )

    def place(self, depth: int, cost: int) -> None:
        """Put the tasks from `depth` on wherever they may go; refuse if all find a place."""
        if depth == len(self.order):
            raise RefusedError("there is a better mapping")
        task = self.order[depth]
        for leaf in self.choices():
            self.steps += 1
            if self.steps > SPREAD_STEPS:
                raise RefusedError(f"more than {SPREAD_STEPS:,} steps")
            self.leaf[task] = leaf
            more = cost if self.hops is None else cost + self.added(task)
            if (self.hops is None or more < self.hops) and self.together(task):
                self.free[leaf] -= 1
                self.place(depth + 1, more)
                self.free[leaf] += 1
            self.leaf[task] = -1

    def choices(self) -> list[int]:
        """Return the leaves with room; of empty domains that look alike, those of one."""
        used = [{row[leaf] for leaf in self.leaf if leaf >= 0} for row in self.rows]
        domains = [0]
        for level in range(len(self.rows) - 1, 0, -1):
            chosen = []
            for domain in domains:
                known: set[str] = set()
                for below in self.below[level][domain]:
                    look = self.look[level - 1][below]
                    if below in used[level - 1] or look not in known:
                        chosen.append(below)
                    if below not in used[level - 1]:
                        known.add(look)
            domains = chosen
        return [leaf for leaf in domains if self.free[leaf] > 0]

    def added(self, task: int) -> int:
        """Return what messages to tasks that have a leaf cost."""
        total = 0
        for other, size in self.sent[task].items():
            if self.leaf[other] >= 0:
                meeting = next(
                    k
                    for k, row in enumerate(self.rows)
                    if row[self.leaf[task]] == row[self.leaf[other]]
                )
                total += size * (self.costs[meeting - 1] if meeting else 0)
        return total

    def together(self, task: int) -> bool:
        """Tell whether the groups of a task span few enough domains, as far as they have leaves."""
        return all(
            len({self.rows[level][self.leaf[t]] for t in tasks if self.leaf[t] >= 0}) <= self.spread
            for level, tasks in self.groups[task]
        )
