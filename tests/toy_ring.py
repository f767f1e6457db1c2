"""A kind of problem that nobody ships: jobs on a ring of slots that hold several units each.

A job takes a window of consecutive slots, with one or two units in each: any of its shapes, from
any slot. Levels: its value, and then slots left out of the window, so that short ones are better.
`KIND` is all that topoplace needs of it (docs/develop/adding-a-machine.md).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from topoplace.certify.packing import Covers, Packings, Prices
from topoplace.certify.report import Claims, RefusedError
from topoplace.kinds import Kind, State
from topoplace.machine import format_node_set, parse_node_set
from topoplace.packing.listed import Listed, ListedPacking
from topoplace.placement.engine import Packed, exact
from topoplace.report.tiles import DOWN, FREE
from topoplace.report.view import View
from topoplace.result.base import Start
from topoplace.result.certificate import PackingLevel, PackingResult
from topoplace.snapshot.schema import MachineDocument, Model, Name, Snapshot
from topoplace.solving import Options, Outcome, register
from topoplace.solving.solve import Frame
from topoplace.types import IntArray


@dataclass(frozen=True)
class Ring:
    """Units that every slot holds, round the ring."""

    capacities: tuple[int, ...]


@dataclass(frozen=True)
class Job:
    """A request: its shapes are the units per slot of a window."""

    id: str
    value: int
    shapes: tuple[tuple[int, ...], ...]


def windows(ring: Ring, job: Job, q: int = 0) -> list[Listed]:
    """Return the candidates of a job, which is number `q` of a queue."""
    num, found = len(ring.capacities), []
    for shape, start in itertools.product(job.shapes, range(num)):
        slots = [(start + k) % num for k, units in enumerate(shape) for _ in range(units)]
        taken = np.bincount(slots, minlength=num)
        if len(shape) <= num and (taken <= ring.capacities).all():
            found.append(Listed(q, tuple(sorted(slots)), (job.value, num - len(shape))))
    return list(dict.fromkeys(found))


# ---- The checker's side -------------------------------------------------------------------------


@dataclass(frozen=True)
class RingOracle:
    """A ring as `certify.packing.CheckingOracle`, written apart from `windows`."""

    ring: Ring
    requests: tuple[Job, ...]

    @property
    def coverable(self) -> int:
        return len(self.ring.capacities)

    @property
    def rows(self) -> dict[str, IntArray]:
        return {"slots": np.array(self.ring.capacities, dtype=np.int64)}

    @property
    def largest(self) -> tuple[int, int]:
        return max((job.value for job in self.requests), default=0), self.coverable

    def may_replace(self, one: int, other: int) -> bool:
        return {*self.requests[one].shapes} >= {*self.requests[other].shapes}

    def among(self, chosen: Sequence[tuple[int, int]]) -> RingOracle:
        jobs = self.requests
        some = (replace(jobs[q], shapes=jobs[other].shapes) for q, other in chosen)
        return replace(self, requests=tuple(some))

    def best(self, prices: Prices, wanted: Mapping[int, Covers]) -> dict[int, int | None]:
        return {q: self._best(self.requests[q], prices, covers) for q, covers in wanted.items()}

    def _best(self, job: Job, prices: Prices, covers: Covers) -> int | None:
        num = self.coverable
        price = prices.rows.get("slots", np.zeros(num, dtype=np.int64))
        gains = []
        for shape in job.shapes:
            values = job.value, num - len(shape)
            worth = sum(f * v for f, v in zip(prices.factors, values, strict=False))
            for start in range(num) if len(shape) <= num else ():
                slots = (start + np.arange(len(shape))) % num
                too_much = (np.array(shape) > self.rows["slots"][slots]).any()
                if too_much or covers.inside - {*slots} or covers.outside & {*slots}:
                    continue
                gains.append(worth - int((price[slots] * shape).sum()))
        return max(gains, default=None)


# ---- The solver's side: a plug-in of the engine -------------------------------------------------


def ring_packing(ring: Ring, jobs: Sequence[Job]) -> ListedPacking:
    """Return jobs on a ring as a packing: slots are the rows."""
    every = [window for q, job in enumerate(jobs) for window in windows(ring, job, q)]
    names, values = [job.id for job in jobs], [job.value for job in jobs]
    return ListedPacking(names, values, {"slots": ring.capacities}, every, (1, 1))


# ---- Documents ----------------------------------------------------------------------------------


class RingModel(MachineDocument):
    """The machine: units that every slot holds."""

    kind: Literal["ring"]
    name: Name
    slots: list[int]


class RingPlacement(Model):
    """A request that starts: the slot of every unit."""

    request: Name
    slots: list[int]


class RingSolution(Model):
    placements: list[RingPlacement]


class RingResult(PackingResult[PackingLevel, RingSolution, Snapshot]):
    """One solve of one snapshot of a ring."""

    problem: Literal["ring"]


def ring_of(
    prefix: str, sizes: Sequence[int], after: Sequence[int] | None, spec: str
) -> RingModel | None:
    """Return the ring of ``ring:6:2``: six slots of two units."""
    if len(sizes) > 1 or after is None or len(after) > 1:
        return None
    return RingModel(kind="ring", name=spec.replace(":", "-"), slots=[after[0]] * sizes[0])


def left_on(snapshot: Snapshot) -> list[int]:
    """Return the units that running jobs and slots that are down leave on every slot."""
    left = list(snapshot.machine.slots)
    for job in snapshot.running:
        for slot in parse_node_set(job.nodes, len(left)):
            left[slot] -= 1
    for slot in parse_node_set(snapshot.down, len(left)):
        left[slot] = 0
    return left


def jobs_of(snapshot: Snapshot) -> tuple[Job, ...]:
    """Return the queue."""
    jobs = []
    for one in snapshot.queue:
        shapes = [(1,) * one.nodes, *([(2,) * (one.nodes // 2)] if one.nodes % 2 == 0 else [])]
        jobs.append(Job(one.id, one.nodes * one.priority, tuple(shapes)))
    return tuple(jobs)


# ---- The problem, and its methods ---------------------------------------------------------------

LEVELS = (("nodes", "max"), ("spare", "max"))


@dataclass(frozen=True)
class RingState(State):
    """A snapshot of a ring, checked."""

    kind: ClassVar[str] = "ring"
    snapshot: Snapshot
    ring: Ring
    requests: tuple[Job, ...]


def prepare(snapshot: Snapshot) -> RingState:
    """Check a snapshot of a ring."""
    return RingState(snapshot, Ring(tuple(left_on(snapshot))), jobs_of(snapshot))


def worth(state: RingState, started: Sequence[Listed]) -> list[int]:
    return [sum(one.values[level] for one in started) for level in range(2)]


def solution(state: RingState, started: Sequence[Listed]) -> RingSolution:
    names = [job.id for job in state.requests]
    own = [RingPlacement(request=names[one.request_idx], slots=[*one.rows]) for one in started]
    return RingSolution(placements=own)


def packed(state: RingState) -> Packed:
    return Packed(ring_packing(state.ring, state.requests), sorted)


register("ring", "exact")(exact)


@register("ring", "first-fit")
def first_fit(state: RingState, options: Options) -> Outcome:
    return Outcome(next(iter(packed(state).packing.starts(math.inf))))


FRAME = Frame(worth, RingResult, PackingLevel, solution, lambda state: LEVELS)


# ---- The checker's plug-in, and what tables and pictures show -----------------------------------


class RingPlacements(Packings[RingResult]):
    """A placement on a ring, as the checker's frame asks for it."""

    levels = LEVELS

    def read(self) -> str:
        return f"{len(left_on(self.result.instance))} slots"

    def follow(self, claims: Claims) -> bool:
        if self.result.solution is not None:
            self.values = claims.add("placements", self._worth) or []
        return claims.hold

    def _worth(self) -> list[int]:
        left, worth = np.array(left_on(self.result.instance)), [0, 0]
        jobs = {job.id: job for job in self.oracle.requests}
        for placed in self.result.solution.placements:
            job = jobs.pop(placed.request)
            units = np.bincount(placed.slots, minlength=len(left))
            turns = [np.roll(units, -k).tolist() for k in range(len(units))]
            own = [s for s in job.shapes if [*s, *[0] * (len(units) - len(s))] in turns]
            left -= units
            if not own or (left < 0).any():
                raise RefusedError(f"{placed.request} may not be there")
            worth = [worth[0] + job.value, worth[1] + len(units) - len(own[0])]
        return worth

    @cached_property
    def oracle(self) -> RingOracle:
        instance = self.result.instance
        return RingOracle(Ring(tuple(left_on(instance))), jobs_of(instance))


class RingView(View):
    """A cell for every slot."""

    cell = "slot"

    def _starts(self) -> list[Start]:
        return [
            Start(placed.request, tuple(placed.slots), format_node_set(sorted({*placed.slots})))
            for placed in self.result.solution.placements
        ]

    def ground(self) -> tuple[IntArray, Sequence[IntArray]]:
        free = np.array(self.state.ring.capacities) > 0
        return np.where(free, FREE, DOWN), ()


KIND = Kind(
    name="ring",
    title="on a ring",
    result="toy_ring:RingResult",
    frame="toy_ring:FRAME",
    checker="toy_ring:RingPlacements",
    view="toy_ring:RingView",
    prepare="toy_ring:prepare",
    machine="ring",
    model="toy_ring:RingModel",
    shorthands={"ring": "ring:6:2"},
    shorthand="toy_ring:ring_of",
    solution="toy_ring:RingSolution",
    methods={"exact": ("toy_ring", "optimal"), "first-fit": ("toy_ring", "in queue order")},
)
