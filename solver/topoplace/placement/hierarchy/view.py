"""What tables and pictures show of placements on hierarchies, and on trees by domains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from topoplace.errors import number_of
from topoplace.machine.hostlist import NodeLists, expand_host_list, format_host_list
from topoplace.placement.hierarchy.fragmentation import after_result, before
from topoplace.placement.hierarchy.heuristics.fits import tree_best_fit
from topoplace.placement.hierarchy.heuristics.queue import Vacancy, serve, served
from topoplace.placement.hierarchy.problem import HierarchyProblem, held, room
from topoplace.report.domains import Boxes, domain_boxes
from topoplace.report.tiles import DOWN, FREE, RUNNING, Cells
from topoplace.report.view import View, with_units
from topoplace.result import Status
from topoplace.result.base import Start
from topoplace.result.certificate import InOrder, Share
from topoplace.snapshot.hierarchy_state import HierarchyRequest, PartState, Sets
from topoplace.snapshot.running import job_name
from topoplace.snapshot.schema import Counted, Order, Part, Request
from topoplace.snapshot.value import gpus_in
from topoplace.types import BoolArray, IntArray

_MOST_STANDING = 4


class HierarchyView(View):
    """Units on hosts; a picture has a cell for every host."""

    cell: ClassVar[str] = "host"
    named: ClassVar[bool] = True

    @property
    def unit(self) -> str:
        """The unit of requests: nodes on switch trees, else units."""
        kind = getattr(self.result.instance.machine, "kind", None)
        return "unit" if kind == "hierarchy" else "node"

    def left(self) -> str:
        """Return Slurm's own figure of fragmentation on its blocks, now and once these start."""
        if not self.state.machine.block_sizes:
            return ""
        snapshot = self.result.instance
        now, then = before(snapshot), after_result(snapshot, self.result)
        return f"; Slurm's fragmentation {now:,} now, {then:,} then"

    def _starts(self) -> list[Start]:
        numbers = {name: number for number, name in enumerate(self.state.machine.host_names)}
        starts = []
        lists = NodeLists()
        for own in self.result.solution.placements:
            shares = [share for part in own.parts for share in part.shares]
            names = [n for share in shares for n in lists.hosts(share.hosts, "hosts", share.units)]
            nodes = tuple(sorted(numbers[name] for name in names))
            plain = format_host_list(dict.fromkeys(names))
            starts.append(Start(own.request, nodes, with_units(shares), plain=plain))
        return starts

    @cached_property
    def _left(self) -> IntArray:
        """What is free on every host beside what starts."""
        left: IntArray = self.state.free.copy()
        takes = {request.id: request for request in self.state.requests}
        names = {name: number for number, name in enumerate(self.state.machine.host_names)}
        started = self.result.solution.placements if self.result.solution else ()
        for own in started:
            for part, placed in zip(takes[own.request].parts, own.parts, strict=True):
                for host, units in _hosts(placed.shares, names).items():
                    left[host] -= np.array(part.takes) * units
        return left

    @cached_property
    def cells(self) -> Cells:
        """What stands on every host, and how much of it is in use: of its GPUs, if these count."""
        found, capacity = super().cells, self.state.machine.capacity
        share = np.where(capacity > 0, self._left / np.maximum(capacity, 1), 1.0)
        free = share.min(axis=1)
        if self.result.instance.value is Counted.GPUS:
            gpus = [r for r, name in enumerate(self.state.machine.resources) if gpus_in({name: 1})]
            free = np.where(capacity[:, gpus].any(axis=1), share[:, gpus].min(axis=1), free)
        in_use = np.flatnonzero(((found.codes >= 0) | (found.codes == RUNNING)) & (free > 0))
        return replace(found, used={host: 1 - free[host] for host in in_use.tolist()})

    def reasons(self) -> Mapping[str, str]:
        """Return why requests wait: where the most space is free, and which jobs are there."""
        state, begun, left = self.state, self.started, self._left
        names = {name: number for number, name in enumerate(state.machine.host_names)}
        documents = {request.id: request for request in self.result.instance.queue}
        reserved, in_order = self.reserved(), self._in_order()

        def lacks(request: HierarchyRequest, documents_of: Sequence[Request | Part]) -> str | None:
            """Return what a request lacks, or why it waits for others; None if that is its turn."""
            for part, document in zip(self._roomiest(request, left), documents_of, strict=True):
                several = bool(request.others)
                text = None if several else self._beside(part, document, names)
                text = text or self._short_of(part, document, names, of_several=several)
                if text is not None:
                    return text
            if self.result.instance.order is not Order.VALUE:
                return None
            if self.result.levels[0].status is Status.OPTIMAL and not begun:
                return "no place keeps all its rules"
            if self.result.levels[0].status is Status.OPTIMAL:
                own = HierarchyProblem(replace(state, requests=(request,)))
                fits = serve(tree_best_fit, own)
                return self.outbid if fits else "no place was found for it, even alone"
            return "no place for it beside the started jobs was found"

        known: dict[object, str | None] = {}  # equal requests wait for the same reason

        def text(request: HierarchyRequest) -> str:
            whole = documents[request.id]
            if request.id in reserved:
                return reserved[request.id]
            own = whole.parts or [whole]
            key = request.parts, request.others, tuple((d.eligible, d.excluded) for d in own)
            if key not in known:
                known[key] = lacks(request, own)
            return known[key] or in_order.get(request.id, "not decided in the time")

        return {one.id: text(one) for one in state.requests if one.id not in begun}

    def _beside(
        self, part: PartState, document: Request | Part, numbers: Mapping[str, int]
    ) -> str | None:
        """Return that a part has room only in domains of jobs that it is apart from, if so."""
        machine, free, lists = self.state.machine, self.state.free, NodeLists()
        of = np.zeros(machine.num_hosts, dtype=np.int64)
        if part.required is not None:
            of = machine.domain_of[part.required]

        def hosts_of(text: str, field: str) -> IntArray:
            return np.array([numbers[name] for name in lists.hosts(text, field)], dtype=np.int64)

        def most(amounts: IntArray) -> int:
            return int(np.bincount(of, weights=amounts).max())

        if not part.apart or most(room(free, part)) >= part.units:
            return None
        sets = Sets(self.result.instance.sets, machine, hosts_of)
        named = sets.allowed(document.eligible, document.excluded, "")
        if most(held(free, part.takes) * named) < part.units:
            return None
        of_part = "" if part.name is None else f" of {part.name}"
        asked = f"{number_of(part.units, self.unit)}{of_part}"
        if {level for level, _ in part.apart} == {part.required}:
            level = machine.levels[part.apart[0][0]]
            return f"each {level} with {asked} free has a job that it is apart from"
        return f"{asked} wanted, free only beside jobs that it is apart from"

    def _short_of(
        self,
        part: PartState,
        document: Request | Part,
        names: dict[str, int],
        *,
        of_several: bool,
    ) -> str | None:
        """Return of what a part lacks where most of it is free, without what starts, if it does."""
        state, machine = self.state, self.state.machine
        inside = np.ones(machine.num_hosts, dtype=bool)
        where = "the machine"
        if part.eligible is not None:
            inside = part.eligible.mask
            there = number_of(int(inside.sum()), "node" if self.unit == "node" else "host")
            where = f"the {there} of {document.eligible or 'those not excluded'}"
            if of_several:
                where = f"the {there} of the roomiest of its sets"
            if not inside.any() and not part.apart:
                sets = "its sets" if of_several else document.eligible or "those not excluded"
                return f"no {'host' if self.unit == 'unit' else 'node'} is in {sets}"
        for r, amount in enumerate(part.takes if inside.any() or not part.apart else ()):
            if amount > machine.capacity[inside, r].max(initial=0):
                nowhere = (
                    f"no {machine.levels[-1]}" if part.eligible is None else f"none of {where}"
                )
                return f"{nowhere} has {amount:,} of {machine.resources[r]}"
        level = part.required
        if part.at_most is not None and part.at_most[1] == 1:
            level = max(part.at_most[0], -1 if level is None else level)
        of = np.zeros(machine.num_hosts, dtype=np.int64)
        if level is not None:
            of = machine.domain_of[level]
        most = np.bincount(of, weights=room(state.free, part)).astype(int)
        best = int(most.argmax())
        if most[best] >= part.units:
            return None if of_several else self._in_segments(part)
        if level is not None:
            domain = f"{machine.levels[level]} {machine.domain_names[level][best]}"
            where = domain if part.eligible is None else f"{where} in {domain}"
        of_part = "" if part.name is None else f" of {part.name}"
        asked = f"{number_of(part.units, self.unit)}{of_part}"
        text = f"{asked} wanted, {most[best]:,} free in {where}"
        if level is not None and (level != part.required or (machine.fabrics and level == 0)):
            text = f"no {machine.levels[level]} has {asked} free, at most {most[best]:,} in {where}"
        there = (of == best) & inside
        return text + self._standing(names, np.flatnonzero(there)) + self._lacks(part, there)

    def _in_a_row(self, part: PartState) -> str | None:
        """Return how many hosts with room follow each other at most, if these are too few."""
        assert part.order is not None
        order = part.order.hosts
        free = np.concatenate([[False], room(self.state.free, part)[order] > 0, [False]])
        first, end = np.flatnonzero(np.diff(free)).reshape(-1, 2).T
        most = int((end - first).max(initial=0))
        if most >= part.units:
            return None
        what = number_of(part.units, "node" if self.unit == "node" else "host")
        at = int(first[np.argmax(end - first)]) if most else 0
        names = [self.state.machine.host_names[host] for host in order[at : at + most]]
        where = f" ({format_host_list(names)})" if names else ""
        return f"{what} in a row wanted, at most {most} in a row have room{where}"

    def _in_segments(self, part: PartState) -> str | None:
        """Return how many units have room in whole segments, if these are fewer than wanted."""
        machine, units = self.state.machine, room(self.state.free, part)
        if part.order is not None:
            return self._in_a_row(part)
        if not part.segments:
            return None
        limits = dict([part.spread] if part.spread else ())
        for level, size in part.segments:
            found, first = np.unique(machine.domain_of[level], return_index=True)
            whole = np.bincount(machine.domain_of[level], weights=units).astype(int)[found] // size
            units = np.zeros_like(units)
            units[first] = np.minimum(whole, limits.get(level, part.units) // size) * size
        of = machine.domain_of[0 if part.required is None else part.required]
        most = int(units.sum() if part.required is None else np.bincount(of, weights=units).max())
        if most >= part.units:
            return None
        each = " and ".join(f"{n} in one {machine.levels[level]}" for level, n in part.segments)
        alone = "".join(f", at most {n} a {machine.levels[level]}" for level, n in limits.items())
        asked = number_of(part.units, self.unit)
        return f"{asked} wanted, each {each}{alone}; {most:,} free in this way"

    def _lacks(self, part: PartState, there: BoolArray) -> str:
        """Return which of several resources is short on some hosts, even where it is alone."""
        machine, free = self.state.machine, self.state.free[there]
        taken = [r for r, amount in enumerate(part.takes) if amount]
        if len(taken) == 1:
            return ""
        alone = {r: int((free[:, r] // part.takes[r]).sum()) for r in taken}
        least = min(alone.values())
        if least >= part.units:
            return ": not all that a unit takes is free on the same host"
        short = [machine.resources[r] for r in taken if alone[r] == least]
        if len(short) == len(taken):
            return ""
        short = [name for name in short if name != "node"] or short  # Slurm's places for jobs
        return f": too little of {' and '.join(short)}"

    def _roomiest(self, request: HierarchyRequest, left: IntArray) -> Sequence[PartState]:
        """Return the parts of a request in the one of its sets that has most room left."""

        def free(parts: Sequence[PartState]) -> int:
            return min(min(part.units, int(room(left, part).sum())) for part in parts)

        return max(request.ways, key=free)

    def _in_order(self) -> dict[str, str]:
        """Return why requests wait of which an order proves that they do."""
        proof, snapshot = self.result.levels[0].certificate, self.result.instance
        if not isinstance(proof, InOrder):
            return {}
        beside = {wait.request: wait.beside for wait in proof.waits}
        first = None if proof.reserved is None else proof.reserved.request
        priority = {request.id: request.priority for request in snapshot.queue}
        problem = HierarchyProblem(self.state)
        vacancy, rng = Vacancy(problem), np.random.default_rng(0)
        names = {name: number for number, name in enumerate(self.state.machine.host_names)}
        started = self.result.solution.placements if self.result.solution else ()
        placed = {own.request: own for own in started}
        found = {}
        for request in sorted(problem.requests, key=lambda one: -priority[one.id]):
            if request.id in placed:
                hosts = [_hosts(part.shares, names) for part in placed[request.id].parts]
                for part, own in zip(request.parts, hosts, strict=True):
                    vacancy.take(part, own)
                vacancy.start(request, tuple(hosts))
            elif not beside.get(request.id):
                if request.id in beside:
                    found[request.id] = "no place keeps all its rules"
            elif first not in beside[request.id]:
                found[request.id] = "it does not fit alongside those before it in the order"
            else:
                before = vacancy.free.copy()
                fits = served(tree_best_fit, problem, vacancy, request, rng) is not None
                vacancy.free = before
                text = f"it does not fit alongside those before it and {first}, which is reserved"
                found[request.id] = f"it would delay {first}, which is reserved" if fits else text
        return found

    def _standing(self, names: dict[str, int], hosts: IntArray) -> str:
        """Return which running jobs are on some hosts, those that hold most of them first."""
        inside, there = set(hosts.tolist()), dict[str, set[int]]()
        for job in self.result.instance.running:
            held = {names[name] for name in expand_host_list(job.nodes, "nodes")}
            there.setdefault(job_name(job), set()).update(held & inside)
        order = sorted((name for name, own in there.items() if own), key=lambda k: -len(there[k]))
        more = f" and {len(order) - _MOST_STANDING} more" if len(order) > _MOST_STANDING else ""
        if not order:
            return ""
        jobs, one = ", ".join(order[:_MOST_STANDING]) + more, len(order) == 1
        if order[0][0].isdigit():
            jobs = f"job{'' if one else 's'} {jobs}"
        return f", where {jobs} {'runs' if one else 'run'}"

    def ground(self) -> tuple[IntArray, Sequence[IntArray]]:
        """Return what is on every host before anything starts."""
        state = self.state
        codes = np.where(state.occupied, RUNNING, FREE)
        codes[~state.free.any(axis=1) & ~state.occupied] = DOWN
        return codes, ()

    @property
    def tiles(self) -> Boxes:
        """Boxes of domains."""
        return domain_boxes(self.state.machine)


def _hosts(shares: Sequence[Share], names: Mapping[str, int]) -> dict[int, int]:
    """Return the units on every host of some shares, by its number."""
    return {
        names[name]: share.units
        for share in shares
        for name in expand_host_list(share.hosts, "hosts")
    }
