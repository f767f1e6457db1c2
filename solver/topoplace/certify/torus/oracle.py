"""A placement on a torus or mesh as a packing, for the walk through a certificate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from topoplace.certify.packing import Covers, Prices
from topoplace.certify.torus.instance import Instance, Request
from topoplace.certify.torus.shapes import Box, ShapeTables
from topoplace.certify.torus.sweep import NONE, Gains, Group, Sweep
from topoplace.result import Interference
from topoplace.snapshot.schema import Communication
from topoplace.types import IntArray


@dataclass(frozen=True)
class TorusOracle:
    """Candidates are prisms, rows are routers and links (`certify.packing.CheckingOracle`)."""

    instance: Instance

    @property
    def requests(self) -> tuple[Request, ...]:
        """The queue."""
        return self.instance.requests

    @property
    def coverable(self) -> int:
        """Routers are covered."""
        return self.instance.torus.num_routers

    @cached_property
    def rows(self) -> dict[str, IntArray]:
        """One job per router, and per link by family of link rows."""
        torus = self.instance.torus
        links = np.ones(torus.num_links, dtype=np.int64)
        found = {"routers": np.ones(torus.num_routers, dtype=np.int64)}
        if self.instance.interference is not Interference.OFF:
            found["links"] = links
        # only under the tolerant rule does any request count as tolerant
        tolerant = (r for r in self.requests if r.sharing is Communication.TOLERANT)
        return found | {f"links of {request.id}": links for request in tolerant}

    @cached_property
    def largest(self) -> tuple[int, int, int]:
        """Of nodes, shape and faces."""
        torus = self.instance.torus
        value = max((request.value for request in self.requests), default=0)
        return value, ShapeTables(self.instance).largest, 2 * torus.num_dims * torus.num_routers

    def may_replace(self, one: int, other: int) -> bool:
        """Tell whether a request is of the same kind as another and needs no more nodes."""
        a, b = self.requests[one], self.requests[other]
        return a.kind == b.kind and a.nodes <= b.nodes and not a.geometries and not b.geometries

    def among(self, chosen: Sequence[tuple[int, int]]) -> TorusOracle:
        """Return an oracle of some requests, each of which needs as few nodes as another."""
        queue = self.requests
        some = tuple(replace(queue[q], nodes=queue[other].nodes) for q, other in chosen)
        return TorusOracle(replace(self.instance, requests=some))

    def best(self, prices: Prices, wanted: Mapping[int, Covers]) -> dict[int, int | None]:
        """Return what the best prisms gain.

        Sweeps go over all prisms, one sweep for each set of routers to be covered; requests with a
        geometry have few shapes, which are gone through one by one.
        """
        to_value, to_shape, to_boundary = (*prices.factors, 0, 0)[:3]
        routers = prices.rows.get("routers", np.zeros(self.coverable, dtype=np.int64))
        gains = Gains(routers, to_shape, to_boundary)
        found: dict[int, int] = {}
        together: dict[frozenset[int], dict[tuple[object, ...], list[int]]] = {}
        for q, covers in wanted.items():
            request = self.requests[q]
            if request.geometries:
                group = self._group([q], prices, covers.outside)
                found[q] = self._best_of_shapes(request, group.link_prices, gains, covers)
            else:
                payer = q if f"links of {request.id}" in prices.rows else None
                kind = (covers.outside, *request.kind, payer)
                together.setdefault(covers.inside, {}).setdefault(kind, []).append(q)
        for inside, kinds in together.items():
            groups = [self._group(own, prices, wanted[own[0]].outside) for own in kinds.values()]
            reaches = Sweep(self.instance, groups, gains, inside).run()
            for own, group, reach in zip(kinds.values(), groups, reaches, strict=True):
                places = np.searchsorted(group.needs, [self.requests[q].nodes for q in own])
                found |= dict(zip(own, reach[places].tolist(), strict=True))
        idle = to_shape * self.instance.snapshot.weights.idle
        shared = {q: to_value * r.value + idle * r.nodes for q, r in enumerate(self.requests)}
        return {q: None if gain == NONE else gain + shared[q] for q, gain in found.items()}

    def _group(self, own: Sequence[int], prices: Prices, outside: frozenset[int]) -> Group:
        """Return requests of one kind as sweeps have them."""
        first = self.requests[own[0]]
        blocked = ~self.instance.allowed(first)
        blocked[sorted(outside)] = True
        paid = [np.zeros(self.instance.torus.num_links, dtype=np.int64)]
        paid += [
            row
            for family, row in prices.rows.items()
            if (first.sharing is Communication.STRICT and family != "routers")
            or (first.sharing is Communication.TOLERANT and family == f"links of {first.id}")
        ]
        return Group(
            self.instance.usable_counts[first.class_idx],
            blocked,
            self.instance.closed(first.sharing),
            np.sum(paid, axis=0),
            np.unique(np.array([self.requests[q].nodes for q in own], dtype=np.int64)),
        )

    def _best_of_shapes(
        self, request: Request, link_prices: IntArray, gains: Gains, covers: Covers
    ) -> int:
        """Return the largest gain of a request with a geometry, `NONE` without a candidate."""
        inside, outside = np.zeros((2, self.coverable), dtype=np.int64)
        inside[sorted(covers.inside)] = outside[sorted(covers.outside)] = 1
        usable = self.instance.usable_counts[request.class_idx]
        paid = gains.router_prices + gains.to_shape * self.instance.snapshot.weights.idle * usable
        best = NONE
        for extents in {(*g.extents[:-1], depth) for g in request.geometries for depth in g.depths}:
            box = Box(self.instance, extents)
            good = box.candidates(request) & (box.sums(outside) == 0)
            good &= box.sums(inside) == len(covers.inside)
            if not good.any():
                continue
            found = gains.to_shape * box.score - box.sums(paid) - box.links(link_prices)
            if gains.to_boundary:
                found -= gains.to_boundary * box.faces(self.instance.free)
            best = max(best, int(found[good].max()))
        return best
