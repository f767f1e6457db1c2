"""Running jobs of tori and meshes that may move, and the prisms that they may have."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from topoplace.certify.moves import Ground, Instance, may_change
from topoplace.certify.packing import Covers, Prices
from topoplace.certify.report import Claims, RefusedError, require_none
from topoplace.certify.torus.instance import (
    Instance as TorusInstance,
)
from topoplace.certify.torus.instance import (
    Job,
    Request,
    both_tolerant,
    read_instance,
)
from topoplace.certify.torus.shapes import Box, ShapeTables, link_length, num_origins
from topoplace.certify.torus.starts import read_starts
from topoplace.machine import Torus
from topoplace.result import Interference, Placement, Solution
from topoplace.snapshot.geometry import Geometry
from topoplace.snapshot.schema import BY_SETS, OF_GANGS, Communication, KeepShape, Snapshot
from topoplace.snapshot.schema import Request as RequestModel
from topoplace.types import BoolArray, IntArray

Extents = tuple[int, ...]


class TorusGround(Ground):
    """Jobs on prisms: every pair is of a request and a mover."""

    def __init__(
        self,
        snapshot: Snapshot,
        wanted: Sequence[RequestModel],
        document: Instance,
        interference: Interference,
    ) -> None:
        if getattr(document, "replace", ()):
            raise RefusedError("jobs are replaced on hierarchies and trees")
        whole = read_instance(snapshot.model_copy(update={"queue": [*wanted]}), interference)
        if whole.anchored:
            raise RefusedError("prisms of the machine are anchored")
        for request in wanted:
            require_none(request, *BY_SETS, "near")
            if isinstance(request.region, list):
                raise RefusedError(f"{request.id} has several regions, where jobs move")
        for job in snapshot.running:
            require_none(job, *OF_GANGS)
        changes = may_change(document)
        self._movers = [job for job in whole.jobs if changes(job.id) and _may_move(whole, job)]
        names = {job.id for job in self._movers}
        stay = [job for job in snapshot.running if job.id not in names]
        update = {"queue": [*wanted], "running": stay}
        left = read_instance(snapshot.model_copy(update=update), interference)
        moving = tuple(_as_request(whole, job, document.keep_shape) for job in self._movers)
        self.emptied = replace(left, requests=(*moving, *left.requests))
        self.text, self.num_running = whole.torus.text, len(whole.jobs)
        self.movers = {job.id: len(job.nodes) for job in self._movers}
        self.present = {job.id: job for job in self._movers}
        self.wanted = {request.id: request.value for request in left.requests}
        self.rows = self.emptied.rows
        self.coverable = whole.torus.num_routers
        self.num_pairs = len(names) * len(self.wanted)
        self._numbers = {request.id: q for q, request in enumerate(self.emptied.requests)}
        self._known: dict[object, list[Places]] = {}

    @property
    def class_size(self) -> int:
        """How many nodes the class of the last request has."""
        return int((self.emptied.node_class == self.emptied.requests[-1].class_idx).sum())

    def placed(self, placement: Any) -> Job:
        """Return where a mover or request is."""
        if not isinstance(placement, Placement) or placement.prism is None:
            raise RefusedError("a job has no prism")
        own = Solution(placements=[placement], num_shared_links=0, conforming=True)
        [start] = read_starts(self.emptied, own)
        return start

    def require_together(self, places: Sequence[tuple[str, Job]]) -> None:
        """Raise if two jobs have a router or a link against the rule."""
        for (name, one), (other, two) in itertools.combinations(places, 2):
            if not {*one.routers.tolist()}.isdisjoint(two.routers.tolist()):
                raise RefusedError(f"{name} would stand where {other} stands")
            if _share_links(one, two):
                raise RefusedError(f"{name} and {other} share a link against the rule")

    def claim(self, claims: Claims, places: Sequence[tuple[str, Job]]) -> None:
        """Add the claims that nobody shares a router, or a link against the rule."""
        claims.add("exclusive", lambda: _require_routers(places))
        claims.add("links", lambda: self._require_links(places))

    def _require_links(self, places: Sequence[tuple[str, Job]]) -> str:
        self.require_together(places)
        return "no link is shared against the rule"

    def staying(self, name: str) -> tuple[Mapping[int, int], set[int]]:
        """Return the routers that a mover holds, and its pairs with all requests."""
        routers = dict.fromkeys(self.present[name].routers.tolist(), 1)
        return routers, {*range(self._numbers[name], self.num_pairs, len(self.movers))}

    def paid_staying(self, name: str, prices: Prices) -> int:
        """Return what a mover pays for routers and links where it is."""
        job, paid = self.present[name], 0
        if "routers" in prices.rows:
            paid += int(prices.rows["routers"][job.routers].sum())
        links = self._links(self._numbers[name], prices)
        return paid if links is None else paid + int(links[job.links].sum())

    def least(
        self, names: Mapping[str, tuple[Covers, Covers]], prices: Prices, pairs: IntArray
    ) -> dict[str, int | None]:
        """Return what jobs pay on the cheapest prisms, going through all of them."""
        return {
            name: self._least(self._numbers[name], *covers, prices, pairs)
            for name, covers in names.items()
        }

    def _least(
        self, q: int, covers: Covers, of_pairs: Covers, prices: Prices, pairs: IntArray
    ) -> int | None:
        num = len(self.movers)
        first = (q - num) * num
        mine = range(first, first + num) if q >= num else range(0)
        amounts, routers = pairs[mine.start : mine.stop], prices.rows.get("routers")
        least: int | None = None
        for some in self._places_of(q):
            kept = np.ones(len(some.origins), dtype=bool)
            for row, inside in covers.named:
                kept &= some.holding(row) == inside
            for pair, inside in of_pairs.named:
                taken = np.zeros_like(kept)
                if pair in mine:
                    taken = some.beside[:, pair - first] == 0
                kept &= taken == inside
            if not kept.any():
                continue
            paid = some.paid(routers, self._links(q, prices))
            if amounts.any():
                paid = paid + (~some.beside).astype(np.int64) @ amounts
            cheapest = int(paid[kept].min())
            least = cheapest if least is None else min(least, cheapest)
        return least

    def _links(self, q: int, prices: Prices) -> IntArray | None:
        """Return what a request pays by link: in all families, or in its own if it is tolerant."""
        request = self.emptied.requests[q]
        paid = [row for family, row in prices.rows.items() if request.pays(family)]
        return np.asarray(np.sum(paid, axis=0)) if paid else None

    def _places_of(self, q: int) -> list[Places]:
        """Return the places of a request, as those of its kind have them."""
        r, num = self.emptied.requests[q], len(self.movers)
        key = q >= num, r.kind, r.nodes, r.geometries
        if key not in self._known:
            jobs = self._movers if q >= num else ()
            self._known[key] = [*_places(self.emptied, r, jobs)]
        return self._known[key]


def _require_routers(places: Sequence[tuple[str, Job]]) -> str:
    seen: set[int] = set()
    for name, job in places:
        own = {*job.routers.tolist()}
        if own & seen:
            raise RefusedError(f"{name} would stand where another job stands")
        seen |= own
    return "no node and no router of a prism has two jobs"


def _may_move(whole: TorusInstance, job: Job) -> bool:
    """Return whether a job has a prism, nodes of one class, and shares no link against the rule."""
    if job.prism is None or len({*whole.node_class[job.nodes].tolist()}) > 1:
        return False
    return not any(_share_links(job, other) for other in whole.jobs if other is not job)


def _share_links(one: Job, other: Job) -> bool:
    """Return whether two jobs share a link against the rule."""
    both = both_tolerant(one.sharing, other.sharing)
    return not both and not {*one.links.tolist()}.isdisjoint(other.links.tolist())


def _as_request(whole: TorusInstance, job: Job, keep: KeepShape) -> Request:
    """Return a running job as a request for the prisms that it may move to."""
    assert job.prism is not None
    torus, tables, own = whole.torus, ShapeTables(whole), job.prism.extents
    shapes: list[Extents] = [own] if keep is KeepShape.SAME else []
    if keep is KeepShape.AS_GOOD:
        every = [*itertools.product(*(range(1, n + 1) for n in torus.shape))]
        scores = tables.scores(np.array([own, *every], dtype=np.int64)).tolist()
        size = len(job.nodes)
        shapes = [
            e
            for e, score in zip(every, scores[1:], strict=True)
            if score >= scores[0] and math.prod(e) * torus.nodes_per_router >= size
        ]
    class_idx = int(whole.node_class[job.nodes[0]])
    geometries = tuple(Geometry(extents) for extents in shapes)
    return Request(job.id, len(job.nodes), 0, class_idx, geometries, None, job.sharing)


@dataclass(frozen=True)
class Places:
    """The places of a request with the same extents.

    `beside` says which jobs can stay if each of them is taken, shape ``(num_places, num_jobs)``.
    """

    box: Box
    origins: IntArray
    beside: BoolArray

    def holding(self, router: int) -> BoolArray:
        """Tell which places have a router."""
        torus = self.box.instance.torus
        ahead = (np.array(torus.coords(router)) - self.origins) % np.array(torus.shape)
        return np.asarray((ahead < np.array(self.box.extents)).all(axis=1))

    def paid(self, routers: IntArray | None, links: IntArray | None) -> IntArray:
        """Return what the places pay for routers and links."""
        at, total = tuple(self.origins.T), np.zeros(len(self.origins), dtype=np.int64)
        if routers is not None and routers.any():
            total = total + self.box.sums(routers)[at]
        if links is not None and links.any():
            total = total + self.box.links(links)[at]
        return total


def _places(instance: TorusInstance, request: Request, jobs: Sequence[Job]) -> Iterator[Places]:
    """Yield the prisms that a request may have and that contain no smaller one that it may have.

    The rows of a prism are among those of a larger one around it, so the smaller ones are enough.
    """
    torus = instance.torus
    asked = {(*g.extents[:-1], depth) for g in request.geometries for depth in g.depths}
    blocked, closed = ~instance.allowed(request), instance.closed(request.sharing)

    @cache
    def free(extents: Extents) -> BoolArray:
        box = Box(instance, extents)
        return np.asarray(box.sums(blocked) + box.links(closed) == 0)

    @cache
    def good(extents: Extents) -> BoolArray:
        return np.asarray(free(extents) & Box(instance, extents).enough(request))

    heads = itertools.product(*(range(1, n + 1) for n in torus.shape[:-1]))
    for head in heads:
        most = math.prod(head) * torus.nodes_per_router
        for depth in range(1, torus.shape[-1] + 1):
            extents = (*head, depth)
            if most * depth < request.nodes or (asked and extents not in asked):
                continue
            fitting = good(extents)
            minimal = fitting.copy()
            for d, e in enumerate(extents):
                less = (*extents[:d], e - 1, *extents[d + 1 :])
                if e > 1 and (not asked or less in asked):
                    minimal &= ~_holds(torus, d, e, good(less))
            if minimal.any():
                origins = np.argwhere(minimal)
                yield Places(
                    Box(instance, extents), origins, _beside(torus, request, extents, origins, jobs)
                )
            if not asked and (fitting | ~free(extents)).all():
                break  # deeper ones are blocked, or contain one of these


def _holds(torus: Torus, dim: int, extent: int, smaller: BoolArray) -> BoolArray:
    """Tell which prisms contain one of those whose extent in a dimension is less by one."""
    n = torus.shape[dim]
    num = num_origins(n, torus.wrap[dim], extent)
    if torus.wrap[dim] and extent == n:
        return np.asarray(smaller.any(axis=dim, keepdims=True))
    at = np.arange(num)
    after = np.take(smaller, (at + 1) % smaller.shape[dim], axis=dim)
    return np.asarray(np.take(smaller, at, axis=dim) | after)


def _beside(
    torus: Torus, request: Request, extents: Extents, origins: IntArray, jobs: Sequence[Job]
) -> BoolArray:
    """Return which prisms leave room for which jobs, shape ``(num_prisms, num_jobs)``.

    Links of a dimension are a box like the routers, as long as a row of them in that dimension.
    """
    prisms = [job.prism for job in jobs if job.prism is not None]
    first = np.array([p.origin for p in prisms], dtype=np.int64).reshape(-1, len(extents))
    theirs = np.array([p.extents for p in prisms], dtype=np.int64).reshape(first.shape)
    pairs = [(request.sharing, job.sharing) for job in jobs]
    closes = [Communication.NONE not in pair and not both_tolerant(*pair) for pair in pairs]
    ahead = [(first[:, d] - np.arange(n)[:, None]) % n for d, n in enumerate(torus.shape)]
    behind = [(n - part) % n for n, part in zip(torus.shape, ahead, strict=True)]

    def meet(mine: IntArray, others: IntArray) -> BoolArray:
        """Return which boxes have a place in common; one without length has none."""
        sides = zip(ahead, behind, mine, others.T, strict=True)
        along = [(m > 0) & (x > 0) & ((a < m) | (b < x)) for a, b, m, x in sides]
        every = [own[origins[:, d]] for d, own in enumerate(along)]  # they are by origin
        return np.asarray(np.logical_and.reduce(every))

    clash = meet(np.array(extents), theirs)
    for d, e in enumerate(extents):
        mine, other = np.array(extents), theirs.copy()
        mine[d] = link_length(torus, d, e)
        other[:, d] = [link_length(torus, d, x) for x in theirs[:, d].tolist()]
        clash |= meet(mine, other) & np.array(closes, dtype=bool)
    return ~clash
