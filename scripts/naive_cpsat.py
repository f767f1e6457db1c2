"""The naive model: the candidates of every request given to CP-SAT at once, level 1 only.

It is what a modeller would write first, so it is what the exact method is measured against: once
with all candidates, and once with the minimal ones alone, those that contain no other candidate of
their request. The others start the same nodes and take more routers and links, so no optimum of
level 1 needs them; to see that is the first thing a modeller would do against the size.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from ortools.sat.python import cp_model

from topoplace.machine import Prism, uses_whole_ring
from topoplace.placement.torus.footprints import Footprints, ReachArray
from topoplace.placement.torus.oracle.pricing import ScanPricer
from topoplace.placement.torus.packing import TorusPacking
from topoplace.placement.torus.problem import Candidate, PlacementProblem

NEVER = np.iinfo(np.int16).max
MAX_CANDIDATES = 1_000_000
MAX_LITERALS = 60_000_000
"""More than this would take many GB of memory in CP-SAT; such a model is not built."""


@dataclass(frozen=True)
class NaiveRun:
    """What came of the naive model; `seconds` is all of it, `solving` CP-SAT's part."""

    status: str
    objective: int | None
    bound: int | None
    num_candidates: int
    num_literals: int | None
    seconds: float
    solving: float

    @property
    def finished(self) -> bool:
        """Whether optimality was proven."""
        return self.status == "OPTIMAL"


def solve_naively(
    problem: PlacementProblem, *, minimal: bool, time_limit: float, workers: int
) -> NaiveRun:
    """Maximise the nodes started by CP-SAT, over all candidates or over the minimal ones."""
    start = time.perf_counter()
    tables = list(_tables(problem, minimal=minimal))
    num = sum(table.num_prisms * len(table.requests) for table in tables)
    num_literals = None
    if num <= MAX_CANDIDATES:
        candidates = [Candidate(i, p) for t in tables for p in t.prisms() for i in t.requests]
        covered = _covered(problem, candidates)
        num_literals = sum(map(len, covered))
    if num_literals is None or num_literals > MAX_LITERALS:
        seconds = time.perf_counter() - start
        return NaiveRun("TOO LARGE", None, None, num, num_literals, seconds, 0.0)
    model = cp_model.CpModel()
    variables = [model.new_bool_var("") for _ in candidates]
    for members in _groups(covered):
        model.proto.constraints.add().at_most_one.literals.extend(members)
    of_request: dict[int, list[int]] = {}
    for k, candidate in enumerate(candidates):
        of_request.setdefault(candidate.request_idx, []).append(k)
    for choices in of_request.values():
        model.add_at_most_one(variables[k] for k in choices)
    values = [problem.requests[candidate.request_idx].value for candidate in candidates]
    model.maximize(cp_model.LinearExpr.weighted_sum(variables, values))
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = time_limit
    solver.parameters.num_workers = workers
    before = time.perf_counter()
    status = solver.solve(model)
    end = time.perf_counter()
    found = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    # 0 is what CP-SAT says before it has a bound: with candidates no bound can be that low
    bound = math.floor(solver.best_objective_bound + 1e-6)
    return NaiveRun(
        status=solver.status_name(status),
        objective=round(solver.objective_value) if found else None,
        bound=bound if bound or not candidates else None,
        num_candidates=len(candidates),
        num_literals=num_literals,
        seconds=end - start,
        solving=end - before,
    )


def _covered(problem: PlacementProblem, candidates: list[Candidate]) -> list[NDArray[np.int32]]:
    """Return the packing rows of every candidate that can decide anything.

    A link with both ends in a prism is shared only by prisms that share its routers, so a link's
    row is left out if no candidate uses the link from outside.
    """
    torus, rows = problem.torus, TorusPacking(problem)
    from_outside = np.zeros(rows.num_rows, dtype=bool)
    from_outside[: rows.num_covers] = True
    for candidate in candidates:
        sizes = zip(candidate.prism.extents, torus.shape, strict=True)
        if any(e < n and uses_whole_ring(torus, d, e) for d, (e, n) in enumerate(sizes)):
            from_outside[rows.rows_of(candidate)] = True
    found = []
    for candidate in candidates:
        mine = rows.rows_of(candidate)
        found.append(mine[from_outside[mine]].astype(np.int32))
    return found


def _groups(covered: list[NDArray[np.int32]]) -> Iterator[list[int]]:
    """Yield the candidates that hold a row, for every set of at least two, once."""
    if not covered:
        return
    flat = np.concatenate(covered)
    owner = np.repeat(np.arange(len(covered), dtype=np.int32), [len(rows) for rows in covered])
    order = np.argsort(flat, kind="stable")
    ends = np.flatnonzero(np.diff(flat[order])) + 1
    seen: set[bytes] = set()
    for members in np.split(owner[order], ends):
        if len(members) > 1 and (key := members.tobytes()) not in seen:
            seen.add(key)
            yield members.tolist()


@dataclass(frozen=True)
class _Table:
    """The prisms of requests that share them: depths `low..high` per footprint, line and slice."""

    requests: list[int]
    view: Footprints
    low: NDArray[np.int16]
    high: ReachArray | NDArray[np.int16]

    @property
    def num_prisms(self) -> int:
        return int(np.maximum(self.high.astype(np.int64) - self.low + 1, 0).sum())

    def prisms(self) -> Iterator[Prism]:
        n, num_lines = self.view.depth, len(self.view.bases)
        for f, line, z in np.argwhere(self.low <= self.high).tolist():
            for depth in range(self.low[f, line, z], self.high[f, line, z] + 1):
                yield self.view.prism(((f * n + depth - 1) * num_lines + line) * n + z)


def candidates_of(problem: PlacementProblem, *, minimal: bool) -> Iterator[Candidate]:
    """Yield all candidates, or those that contain no other candidate of their request.

    Raises
    ------
    ValueError
        If a request has a geometry: its candidates are few, and containment says nothing there.
    """
    for table in _tables(problem, minimal=minimal):
        for prism in table.prisms():
            for idx in table.requests:
                yield Candidate(idx, prism)


def _tables(problem: PlacementProblem, *, minimal: bool) -> Iterator[_Table]:
    if any(request.geometries for request in problem.requests):
        raise ValueError("the naive model knows no geometries")
    for group in ScanPricer(problem).groups:
        reach = group.depths[group.row]
        for nodes in sorted({problem.requests[idx].nodes for idx in group.requests}):
            alike = [idx for idx in group.requests if problem.requests[idx].nodes == nodes]
            low = _least_depths(group.view, reach, group.count_sat, nodes)
            high = reach
            if minimal:
                low = np.where(_is_minimal(group.view, low), low, NEVER)
                high = np.where(low < NEVER, low, 0)
            yield _Table(alike, group.view, low, high)


def _least_depths(
    view: Footprints, reach: ReachArray, count_sat: NDArray[np.int64], nodes: int
) -> NDArray[np.int16]:
    """Return the least depth that holds the nodes, per footprint, line and first slice."""
    n = view.depth
    depths = np.full(reach.shape, NEVER, dtype=np.int16)
    ahead = np.arange(n)[:, None] + np.arange(n)  # slice numbers from every first slice
    for f in range(len(reach)):
        lines, first = np.nonzero(reach[f])
        if not len(lines):
            continue
        corners = view.bases[:, None] + view.box[f]
        per_slice = np.einsum("lkz,k->lz", count_sat[corners], view.signs)
        held = np.take(per_slice, ahead % n, axis=1)[lines, first].cumsum(axis=1)
        least = (held < nodes).sum(axis=1) + 1
        fits = least <= reach[f, lines, first]
        depths[f, lines[fits], first[fits]] = least[fits]
    return depths


def _is_minimal(view: Footprints, depths: NDArray[np.int16]) -> NDArray[np.bool_]:
    """Tell which prisms of least depth contain no candidate one router smaller."""
    torus, n = view.turned, view.depth
    head = torus.shape[:-1]
    behind = np.roll(depths, -1, axis=2)
    if not torus.wrap[-1]:
        behind[:, :, -1] = NEVER
    spanning = np.where(depths == n, depths.min(axis=2, keepdims=True), NEVER)
    minimal = (depths < NEVER) & (behind >= depths) & (spanning >= n)
    for d in range(len(head)):
        for f in range(len(depths)):
            smaller = view.smaller[f, d]
            if smaller < 0 or not minimal[f].any():
                continue
            table = depths[smaller].reshape(*head, n)
            if view.extents[f, d] == head[d] and torus.wrap[d]:
                inside = np.broadcast_to(table.min(axis=d, keepdims=True), table.shape)
            else:
                shifted = np.roll(table, -1, axis=d)
                if not torus.wrap[d]:
                    np.moveaxis(shifted, d, 0)[-1] = NEVER
                inside = np.minimum(table, shifted)
            minimal[f] &= inside.reshape(-1, n) > depths[f]
    return minimal
