"""Simulated annealing over refills: drop some jobs, refill with the best-packed prisms.

A form is the extents that a request may have; tables say at which origins.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topoplace import clock
from topoplace.kernels import compile_late
from topoplace.machine import Prism, Torus, uses_whole_ring
from topoplace.packing.budget import Budget
from topoplace.placement.torus._ruin_recreate import anneal
from topoplace.placement.torus.footprints import CountSums, Reach
from topoplace.placement.torus.heuristics.prism_search import search_of
from topoplace.placement.torus.problem import Candidate, PlacementProblem
from topoplace.snapshot.state import QueuedState
from topoplace.types import BoolArray, FloatArray, IntArray

_MOST_FORMS, _FEW_FORMS = 90, 30  # per request, and per one that is not large
_FEWEST_FORMS = 4
_MOST_PLACES = 1 << 24  # of all requests together, about
_SLACK = 1.25  # volume of a form over the least there is


@dataclass(frozen=True)
class Forms:
    """Forms of every request, those of request q at `first[q]` to `first[q+1] - 1`.

    Dimensions and routers are those of the machine as `PlacementProblem.view` turns it.

    Attributes
    ----------
    extents, passing
        Per form, and whether it passes through a ring it does not span.
    begins, places
        The origins of form f next to the running jobs: from `begins[f]` to `begins[f+1] - 1`.
    waste
        Per place, the usable nodes left idle in it, at most 255.
    volumes
        Least volume of a prism of every request.
    """

    first: IntArray
    extents: IntArray
    passing: NDArray[np.uint8]
    begins: IntArray
    places: NDArray[np.int32]
    waste: NDArray[np.uint8]
    volumes: IntArray


@dataclass(frozen=True)
class _Form:
    """Extents of a request, and where they can be."""

    rank: float
    extents: tuple[int, ...]
    places: NDArray[np.int32]
    waste: NDArray[np.uint8]


def forms_of(problem: PlacementProblem, large: BoolArray, deadline: float = math.inf) -> Forms:
    """Return the forms of a problem: per request those of least waste and surface.

    Requests that are not large have few, those that come after the deadline none.
    """
    view = problem.view
    torus = view.turned
    room = _MOST_PLACES // max(1, len(problem.requests))
    every = view.sums(problem.state.usable_of_any)
    tables = [*problem.usable_sums, every]

    def usable(class_idx: int, size: tuple[int, ...]) -> CountSums:
        """Return the usable nodes at every origin, of one class or (-1) of all."""
        return view.everywhere(tables[class_idx], size)

    def found_for(idx: int, most: int) -> list[_Form]:
        """Return the best forms of a request."""
        request = problem.requests[idx]
        found: dict[tuple[int, ...], tuple[float, NDArray[np.uint8]]] = {}
        reach = problem.reach(request, view)
        for way in request.ways:
            num = num_places = 0
            for rough, footprint, depth, least in _promising(problem, idx, way, reach, 2 * most):
                if num >= most or (num >= _FEWEST_FORMS and num_places > room):
                    break
                here = (reach.of(footprint) >= depth) & (least <= depth)
                size = (*view.extents[footprint].tolist(), depth)
                inside = usable(way.class_idx, size)
                here &= inside >= request.nodes
                if not (num_here := int(here.sum())):
                    continue
                num, num_places = num + 1, num_places + num_here
                of_all = inside if len(problem.usable_sums) == 1 else usable(-1, size)
                row = np.where(here, np.minimum(255, 1 + of_all - request.nodes), 0)
                _, known = found.get(size, (rough, np.zeros_like(row)))
                found[size] = rough, np.maximum(row, known).astype(np.uint8)
        ranked = []
        for size, (rough, row) in found.items():
            places = np.flatnonzero(row).astype(np.int32)
            waste = row[places] - np.uint8(1)
            ranked.append(_Form(int(waste.min()) + rough, size, places, waste))
        return sorted(ranked, key=lambda form: (form.rank, form.extents))[:most]

    known: dict[object, list[_Form]] = {}
    first, found = [0], []
    for idx, r in enumerate(problem.requests):
        if clock.now() < deadline:
            kind = r.classes, r.nodes, r.region, r.communication, r.geometries, r.near
            if kind not in known:
                known[kind] = found_for(idx, _MOST_FORMS if large[idx] else _FEW_FORMS)
            found += known[kind]
        first.append(len(found))
    extents = np.array([form.extents for form in found], dtype=np.int64)
    extents = extents.reshape(-1, torus.num_dims)
    nowhere = np.zeros(0, dtype=np.int32)
    per = torus.nodes_per_router
    return Forms(
        first=np.array(first, dtype=np.int64),
        extents=extents,
        passing=passes(torus, extents).astype(np.uint8),
        begins=np.cumsum([0, *(len(form.places) for form in found)]),
        places=np.concatenate([nowhere, *(form.places for form in found)]),
        waste=np.concatenate([nowhere, *(form.waste for form in found)]).astype(np.uint8),
        volumes=np.array([-(-r.nodes // per) for r in problem.requests], dtype=np.int64),
    )


def passes(torus: Torus, extents: IntArray) -> BoolArray:
    """Return which prisms use links of a ring that they do not span; a row of extents for each."""
    found = np.zeros(len(extents), dtype=bool)
    for d, n in enumerate(torus.shape):
        by_extent = np.array([e < n and uses_whole_ring(torus, d, e) for e in range(n + 1)])
        found |= by_extent[extents[:, d]]
    return found


def _promising(
    problem: PlacementProblem, idx: int, request: QueuedState, reach: Reach, most: int
) -> Iterator[tuple[float, int, int, IntArray]]:
    """Yield (roughness, footprint, depth, least depth per origin) of a request's best forms.

    Compact and tight ones come first. The request has one kind of nodes alone.
    """
    view = problem.view
    torus, entries = view.turned, search_of(problem).entries(problem, idx, request)
    per = torus.nodes_per_router
    routers = -(-request.nodes // per)
    largest = torus.num_routers if request.has_depths else max(_SLACK * routers, routers + per)
    footprint, low, high, row, _ = entries.table.T
    high = np.minimum(high, int(largest) // view.area[footprint])
    high = np.minimum(high, reach.deepest[footprint])
    many = np.maximum(0, high - low + 1)
    footprint, low, row = (np.repeat(of_entry, many) for of_entry in (footprint, low, row))
    depth = low + np.arange(len(low)) - np.repeat(many.cumsum() - many, many)
    sizes = np.column_stack([view.extents[footprint], depth])
    rough = _roughness(torus, sizes)
    rank = per * (sizes.prod(axis=1) - routers) + rough
    nothing = np.zeros(torus.num_routers, dtype=np.int64)
    for k in np.lexsort((row, depth, footprint, rank))[:most].tolist():
        least = nothing if row[k] < 0 else entries.least[row[k]]
        yield float(rough[k]), int(footprint[k]), int(depth[k]), least


def _roughness(torus: Torus, extents: IntArray) -> FloatArray:
    """Return what makes extents bad for packing, in nodes: surface, and rings passed through."""
    faces = (extents.prod(axis=1)[:, None] // extents).sum(axis=1)
    rough: FloatArray = 0.02 * faces + 100.0 * passes(torus, extents)
    return rough


_LOOK = 0.1  # seconds between looks at the clock, about
_MOST_STEPS = 50  # between two: what takes less is counted in steps
_STEPS = 20  # between two, where work counts
_STEP_WORK = 6e-8  # nominal seconds of a step, by router
_LARGE = 0.0125  # of the value of the start: the least value of a request that is moved
_SMOOTH = 0.3  # nodes, the cost of a pair of neighbours, one free and one not

STRICT, TOLERANT, NO_LINKS = 0, 1, 2


class Annealer:
    """Improves first-level placements.

    A refill looks at every form of a request and every place that holds it, and takes the one
    that leaves fewest nodes idle in it and fewest free routers at its faces, with weights drawn
    again for each refill. Forms are made by the first run.
    """

    def __init__(self, problem: PlacementProblem, deadline: float = math.inf) -> None:
        self.problem, self.deadline = problem, deadline
        self._forms: Forms | None = None
        requests = problem.requests
        self._values = np.array([r.value for r in requests], dtype=np.int64)
        self._kinds = np.array(
            [
                NO_LINKS
                if not problem.uses_links(r.communication)
                else (TOLERANT if problem.is_tolerant(r.communication) else STRICT)
                for r in requests
            ],
            dtype=np.int64,
        )

    def run(
        self,
        start: Sequence[Candidate],
        budget: Budget,
        until: float,
        temperature: float,
        seed: int,
        is_over: Callable[[], bool] = lambda: False,
    ) -> list[Candidate]:
        """Return the best placement met; releases the interpreter lock.

        Parameters
        ----------
        until
            When to end, in the budget's time.
        temperature
            Initial temperature, in units of the objective; falls linearly to 0 at the end.
        is_over
            Whether to end before that.
        """
        compile_late("placement.annealing")
        before = int(self._values[[c.request_idx for c in start]].sum())
        large = self._values >= _LARGE * before
        if self._values[large].sum() < before:
            large[:] = True
        if self._forms is None:
            self._forms = forms_of(self.problem, large, self.deadline)
            self.problem.forget_reaches()
        view, forms = self.problem.view, self._forms
        torus = view.turned
        num = len(self.problem.requests)
        form_of = np.full(num, -1, dtype=np.int64)
        origin_of = np.zeros(num, dtype=np.int64)
        # the prisms of the start get forms of their own, that no request takes again
        own = np.array([view.coords(c.prism.extents) for c in start], dtype=np.int64)
        own = own.reshape(-1, torus.num_dims)
        extents = np.concatenate([forms.extents, own])
        passing = np.concatenate([forms.passing, passes(torus, own).astype(np.uint8)])
        for k, candidate in enumerate(start):
            form_of[candidate.request_idx] = len(forms.extents) + k
            origin_of[candidate.request_idx] = torus.router(view.coords(candidate.prism.origin))
        best_form, best_origin = form_of.copy(), origin_of.copy()
        step_form, step_origin = form_of.copy(), origin_of.copy()
        known = np.array([before, -1])
        rng = np.array([(seed + 1) * 0x9E3779B97F4A7C15 % (1 << 64)], dtype=np.uint64)
        free = view.per_router(~self.problem.state.occupied).ravel().astype(np.uint8)
        began = budget.now()
        span = max(1e-9, until - began)
        steps = _STEPS if budget.counts_work else 1
        while len(forms.extents) and (now := budget.now()) < until and not is_over():
            heat = temperature * (until - now) / span
            best = known[0]
            anneal(
                np.array(torus.shape), np.array(torus.strides), np.array(torus.wrap),
                forms.first, extents, forms.begins, forms.places, forms.waste, passing,
                self._kinds, self._values, forms.volumes, large.view(np.uint8), free,
                form_of, origin_of, known, step_form, step_origin, steps, heat, _SMOOTH, rng,
            )  # fmt: skip
            if budget.counts_work:
                budget.spend(_STEP_WORK * steps * torus.num_routers)
            else:
                pace = _LOOK * steps / max(1e-9, budget.now() - now)
                steps = max(1, min(_MOST_STEPS, 2 * steps, int(pace)))
            if known[0] > best:
                best_form, best_origin = step_form.copy(), step_origin.copy()

        def prism(origin: int, extents: IntArray) -> Prism:
            return Prism(view.back(torus.coords(origin)), view.back(extents.tolist()))

        return [
            Candidate(q, prism(int(best_origin[q]), extents[best_form[q]]))
            for q in range(num)
            if best_form[q] >= 0
        ]
