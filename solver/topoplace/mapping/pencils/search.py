"""The search for the best pencil placement of all layouts."""

from __future__ import annotations

import dataclasses
import heapq
import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from topoplace import clock
from topoplace.mapping.layouts import Layout, cells, node_slots, off_router_bytes
from topoplace.mapping.mapped import Mapped, outcome_of
from topoplace.mapping.pencils.network import PencilCut, cut_selection, stretch_bound
from topoplace.mapping.pencils.space import (
    CellTerms,
    PencilWindow,
    WindowTables,
    admissible_layouts,
    box_of,
    cell_terms,
    deepening,
    no_room,
    window_at,
)
from topoplace.mapping.problem import MappingProblem
from topoplace.result import Proof
from topoplace.result.mapping import ClassOptimum, LayoutModel
from topoplace.solving import Options, Outcome
from topoplace.types import IntArray

# ---- The best pencil placement of all layouts in all windows: best-first, pruned by bounds -------


@dataclass(frozen=True)
class _Found:
    """A placement: its hop-bytes, where it lies, and how it was found."""

    hop_bytes: int
    layout: Layout
    origin: tuple[int, ...]
    window: PencilWindow
    cut: PencilCut
    window_bound: int | None


Steps = Iterator[tuple[int, int]]
"""Deferred work: each part after the least cost of its outcome, and its rank in a tie."""


def search_pencils(problem: MappingProblem, options: Options) -> Outcome:
    """Return a best pencil placement of all admissible layouts in all windows.

    The pencils lie along the last dimension of the machine; windows may begin at any router and
    go on round rings. Lower bounds of growing cost defer the next step, and mostly make it
    unnecessary: for a layout the bytes between its cells, then its hop-bytes with nothing unusable;
    for a window the least that unusable routers add (`stretch_bound`), and last the minimum cut.

    Raises `InputError` if the grid has no admissible layout, or no window can hold one.
    """
    return _Search(problem, options).run()


DEFAULT_SECONDS = 30.0
"""Time limit if none is given: if all windows have many unusable routers, the search is long."""

FIRST_WINDOW_GRACE = 0.7
"""Seconds beyond the time limit to find any placement at all."""


class _Search:
    def __init__(self, problem: MappingProblem, options: Options) -> None:
        self.problem = problem
        self.pencil = problem.torus.num_dims - 1
        self.tables = WindowTables(problem.torus, problem.whole_routers, self.pencil)
        self.layouts = admissible_layouts(problem, options.max_depth)
        limit = DEFAULT_SECONDS if options.time_limit is None else options.time_limit
        self.options, self.deadline = options, clock.deadline(limit)
        self.max_depth = options.max_depth
        self.num_windows = 0
        self.best: _Found | None = None
        self.unsettled: list[int] = []
        """Lower bounds of the parts that the search left open."""

    def run(self) -> Outcome:
        extent = self.problem.torus.shape[self.pencil]
        hit = False
        for depths in deepening(self.layouts, self.pencil, extent, self.max_depth):
            hit = self._search_depths(depths)
            if self.best is not None or hit:
                return self._outcome(depths, hit)
        raise no_room(self.problem)

    def _search_depths(self, depths: list[int]) -> bool:
        """Search the windows of one depth per layout; return whether the time ran out."""
        numbers = itertools.count()  # so that the heap never compares iterators
        heap: list[tuple[int, int, int, Steps]] = []

        def put_off(steps: Steps) -> None:
            ahead = next(steps, None)
            if ahead is not None:
                heapq.heappush(heap, (*ahead, next(numbers), steps))

        self.num_windows = 0
        self.options.say("windows")
        assert self.problem.grid is not None
        between = off_router_bytes(self.layouts, self.problem.grid)
        for layout, depth, least in zip(self.layouts, depths, between, strict=True):
            self.num_windows += self.tables.num_begins(box_of(layout.extents, self.pencil, depth))
            put_off(self._steps(layout, depth, least))
        while heap and (self.best is None or heap[0][0] < self.best.hop_bytes):
            late = clock.now() - self.deadline
            if late > (FIRST_WINDOW_GRACE if self.best is None else 0):
                self.unsettled.append(heap[0][0])
                return True
            put_off(heapq.heappop(heap)[-1])
        return False

    def _steps(self, layout: Layout, depth: int, least_bytes: int) -> Steps:
        problem, tables, extents = self.problem, self.tables, layout.extents
        assert problem.grid is not None
        yield least_bytes, 0
        fits = tables.fits(extents, depth)
        if not fits.any():
            return
        at = cells(layout, problem.grid)
        terms = cell_terms(problem.torus, problem.graph, at, extents, self.pencil)
        bound = stretch_bound(terms, depth - terms.levels)
        yield bound.base, 0
        routers = np.flatnonzero(fits)
        least = bound.base + tables.weighted_stretch(extents, depth, bound.price).ravel()[routers]
        blocked = tables.blocked(extents, depth).ravel()[routers]
        for k in np.lexsort((blocked, least)):
            yield int(least[k]), int(blocked[k])
            self._try(layout, terms, problem.torus.coords(int(routers[k])), depth, int(least[k]))

    def _try(
        self, layout: Layout, terms: CellTerms, origin: tuple[int, ...], depth: int, least: int
    ) -> None:
        """Select the routers of one window, and keep the placement if it is the best."""
        problem = self.problem
        window = window_at(
            problem.torus, problem.whole_routers, layout.extents, self.pencil, origin, depth
        )
        cut = cut_selection(window, terms)
        cost = terms.hop_bytes(cut.selection)
        exact = not terms.mixed(window.slack).any()
        if not exact and least < cost:
            self.unsettled.append(least)
        if self.best is None or cost < self.best.hop_bytes:
            best = self.best = _Found(cost, layout, origin, window, cut, cost if exact else None)
            self.options.report(Mapped(self._nodes(best)), [cost])

    def _outcome(self, depths: list[int], hit: bool) -> Outcome:
        best = self.best
        if best is None:
            return outcome_of(None, hit=hit)
        bound = min([best.hop_bytes, *self.unsettled])
        boxes = [
            box_of(layout.extents, self.pencil, depth)
            for layout, depth in zip(self.layouts, depths, strict=True)
        ]
        optimum = ClassOptimum(
            objective=best.hop_bytes,
            bound=bound,
            proof=Proof.SEARCH if bound == best.hop_bytes else Proof.NONE,
            layouts=len(self.layouts),
            windows=self.num_windows,
            max_depth=[max(extents) for extents in zip(*boxes, strict=True)],
            window_bound=best.window_bound,
            flow=best.cut.certificate() if best.window_bound is not None else None,
        )
        model = layout_model(best.layout, self.pencil, best.origin, best.window.depth)
        return outcome_of(self._nodes(best), model, optimum, hit=hit)

    def _nodes(self, found: _Found) -> IntArray:
        return nodes_of(self.problem, found.layout, self.pencil, found.window, found.cut.selection)


# ---- From a selection to the node of every task --------------------------------------------------


def nodes_of(
    problem: MappingProblem, layout: Layout, pencil: int, window: PencilWindow, selection: IntArray
) -> IntArray:
    """Return the node of every task, given the position of every level of every pencil."""
    assert problem.grid is not None
    at = cells(layout, problem.grid)
    pencils = np.zeros(len(at), dtype=np.int64)
    for d, extent in enumerate(layout.extents):
        if d != pencil:
            pencils = pencils * extent + at[:, d]
    routers = window.routers_of(selection)[pencils, at[:, pencil]]
    return routers * problem.torus.nodes_per_router + node_slots(layout, problem.grid)


def layout_model(layout: Layout, pencil: int, origin: tuple[int, ...], depth: int) -> LayoutModel:
    """Return the layout and its window as results show them."""
    names = LayoutModel.model_fields.keys() - {"pencil", "origin", "depth"}
    of_layout = {name: getattr(layout, name) for name in names}
    lists = {name: list(x) if isinstance(x, tuple) else x for name, x in of_layout.items()}
    if layout.path is not None:
        lists["path"] = {**dataclasses.asdict(layout.path), "block": list(layout.path.block)}
    window = {"pencil": pencil, "origin": list(origin), "depth": depth}
    return LayoutModel.model_validate(lists | window)
