"""Moves on a hierarchy as a linear program: who stays, goes or ends, and units on hosts and pools.

It has no columns, so that one solve gives prices of all rows, where column generation goes through
thousands of candidates. Any prices prove a bound, by the oracle; so a rule of requests that the
program leaves out costs time only.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from ortools.linear_solver.python import model_builder_helper as mbh

from topoplace import clock
from topoplace.packing.problem import Program, Subproblem
from topoplace.placement.hierarchy.layout import levels_named, rounded
from topoplace.placement.hierarchy.plans import Ground, plan_of
from topoplace.placement.hierarchy.tables import part_shape
from topoplace.placement.repack.problem import ENDS, GOES, STAYS, RepackProblem, Seat
from topoplace.snapshot.hierarchy_state import PartState
from topoplace.types import FloatArray, IntArray

_MOST_UNITS = 20_000
"""Parts times hosts and pools beyond which the program takes longer than it saves."""

_NODES = "limits/nodes = 500"
_WHOLE = 1e-6
_STAYS, _USES, _MOVES = 1.0, 0.9, 0.01  # weights of branches: on movers, requests, and where to


class Relocation:
    """The program of a site.

    Variables are the ways of all jobs, then the units of parts on leaves (hosts and pools). Rows
    are those of the packing, of pairs and of budgets, then that a job is there once, then that its
    units are there if it goes, as often as on any leaf.
    """

    def __init__(self, site: Ground, problem: RepackProblem) -> None:
        self._site, self._problem = site, problem
        self._layout, self._num = site.packing.layout, len(site.names)
        self._cells: list[tuple[Any, Any, Any]] = []
        self._pairs = len(site.packing.capacities)
        self._budgets = self._pairs + site.num_pairs
        self._present = self._budgets + len(problem.budgets)
        self._end = self._present + self._num
        self._units: dict[tuple[int, int, int], int] = {}
        self._most: list[int] = []
        self._steps: list[int] = []
        self._equal: list[int] = []
        self._add_ways()
        for q in range(self._num):
            self._add_units(q)
        for q in range(problem.num_movers, self._num):
            for pair, own, least in self._beyond(q):
                self._put(self._pairs + pair, [*own], [*own.values()])
                self._put(self._pairs + pair, self._way(GOES, q), least)
        for q, kept in site.kept.items():
            for part, leaf, units in kept.uses:
                at = self._units.get((q, part, leaf))
                self._put(self._end, self._way(GOES, q), units)
                self._put(self._end, [] if at is None else [at], -1)
                self._end += 1
        cells = [np.broadcast_arrays(*own) for own in self._cells]
        rows, columns, amounts = (
            np.concatenate([own[k].ravel() for own in cells]) for k in range(3)
        )
        shape = self._end, 3 * self._num + len(self._units)
        self._matrix = sp.csr_matrix((amounts.astype(float), (rows, columns)), shape=shape)
        upper = np.zeros(self._end)
        upper[: self._pairs] = site.packing.capacities
        upper[self._pairs : self._present + self._num] = 1
        upper[self._budgets : self._present] = [most for _, most in problem.budgets]
        lower = np.full(self._end, -np.inf)
        lower[self._equal] = 0
        self._limits = lower, upper

    @staticmethod
    def is_small(site: Ground) -> bool:
        """Return whether the program of a site is solved fast enough."""
        parts = sum(len(request.parts) for request in site.requests)
        return parts * len(site.packing.layout.below[-1]) <= _MOST_UNITS

    def _put(self, rows: Any, columns: Any, amounts: Any) -> None:
        self._cells.append((rows, np.array(columns, dtype=np.int64), amounts))

    def _way(self, way: int, q: int) -> int:
        return way * self._num + q

    def _add_ways(self) -> None:
        site, movers = self._site, self._problem.num_movers
        for q in range(self._num):
            ways = (STAYS, GOES, ENDS) if q < movers else (GOES,)
            self._put(self._present + q, [self._way(way, q) for way in ways], 1)
        for q, own in enumerate(site.own):
            taken = np.bincount(site.packing.rows_of(site.candidate(q, own)))
            rows = np.flatnonzero(taken)
            self._put(rows, self._way(STAYS, q), taken[rows])
            self._put(self._pairs + site.pairs(q, own, stays=True), self._way(STAYS, q), 1)
        for b, (jobs, _) in enumerate(self._problem.budgets):
            own_ways = [self._way(way, q) for way in (GOES, ENDS) for q in sorted(jobs)]
            self._put(self._budgets + b, own_ways, 1)

    # ---- units

    def _add_units(self, q: int) -> None:
        layout, request = self._layout, self._site.requests[q]
        for p, part in enumerate(request.parts):
            kinds = [layout.kind_of[way[p].kind] for way in request.ways]
            shape = part_shape(layout, part, None, beside_others=len(request.parts) > 1)
            own: list[int] = []
            for leaf in layout.below[-1]:
                node = layout.nodes[leaf]
                room = int(layout.rooms[node.hosts[0], kinds].max())
                room = len(node.hosts) * (room > 0) if node.pool is not None else room
                lone = (v for v in layout.chain[leaf] if layout.below[v] == (leaf,))
                step = max(shape.together[layout.nodes[v].level + 1] for v in lone)
                most = min(part.units, room) // step * step
                taken = self._taken(q, kinds[0], leaf, shape.together) if most else None
                if taken is None:
                    continue
                own.append(3 * self._num + len(self._units))
                self._units[q, p, leaf] = own[-1]
                self._most.append(most)
                self._steps.append(step)
                self._put(np.array([*taken]), own[-1], np.array([*taken.values()]))
                self._put(self._end, [own[-1], self._way(GOES, q)], [1, -most])
                self._end += 1
            self._put(self._end, [*own, self._way(GOES, q)], [1] * len(own) + [-part.units])
            self._equal.append(self._end)
            self._end += 1

    def _taken(
        self, q: int, kind: int, leaf: int, together: tuple[int, ...]
    ) -> dict[int, float] | None:
        """Return what a unit takes of rows at least, None if it may not be there."""
        layout, alone = self._layout, self._site.requests[q].exclusive
        units = sum(part.units for part in self._site.requests[q].parts)
        found: dict[int, float] = {}
        for number in layout.chain[leaf]:
            node = layout.nodes[number]
            if node.level == alone:
                rows, is_occupied = layout.alone(number, [kind])
                if is_occupied:
                    return None
                found |= {row: layout.capacities[row] / units for row in rows}
            elif alone is None or node.level < alone:
                found |= self._own_rows(kind, number, together[node.level + 1])
        return found

    def _own_rows(self, kind: int, number: int, step: int) -> dict[int, float]:
        """Return what a unit takes of the rows of a node if so many are there together."""
        layout, takes = self._layout, self._layout.kinds[kind].tolist()
        node, found = layout.nodes[number], {}
        if node.pool is not None:
            found[node.pool] = 1.0
        elif node.hosts:
            found = {n + node.hosts[0]: float(takes[r]) for r, n in layout.first_row.items()}
        for own in layout.rounded[number]:
            whole = step if own.resource is None else step * takes[own.resource]
            for most, row in own.rows.items():
                found[row] = rounded(whole, own.capacity, most) / step
        return {row: amount for row, amount in found.items() if amount}

    def _beyond(self, q: int) -> Iterator[tuple[int, dict[int, float], float]]:
        """Yield the pairs of a request, and how its units take of each: a straight line below."""
        for pair, number, part, limit in self._site.pairs_of(q):
            inside = set(self._layout.below[number])
            own = [
                (at, self._most[at - 3 * self._num], self._steps[at - 3 * self._num])
                for (job, p, leaf), at in self._units.items()
                if job == q and p == part and leaf in inside
            ]
            most = min(self._site.requests[q].parts[part].units, sum(n for _, n, _ in own))
            base = 0 if all(limit < step for _, _, step in own) else limit
            if most > base:
                yield pair, {at: 1 / (most - base) for at, _, _ in own}, -base / (most - base)

    # ---- plans

    @cached_property
    def is_complete(self) -> bool:
        """Whether its solutions in whole steps are plans: it states all rules of all requests."""
        layout = self._layout
        lone = {
            level
            for level in range(layout.machine.num_levels)
            if all(
                len(layout.below[v]) == 1 for v, n in enumerate(layout.nodes) if n.level == level
            )
        }
        return all(
            len(r.parts) == len(r.ways) == 1 and _states(p) == p and levels_named(p) <= lone
            for r in self._site.requests
            for p in r.parts
        )

    def seats(self, costs: IntArray, deadline: float) -> Iterator[list[Seat]]:
        """Yield better and better plans; costs are by way, job and level after the first."""
        num, movers, room = self._num, self._problem.num_movers, self._problem.makes_room
        steps = np.concatenate([np.ones(3 * num), np.array(self._steps, dtype=float)])
        matrix, (lower, upper) = self._matrix @ sp.diags(steps), self._limits
        lower = lower.copy()
        lower[self._present : self._present + movers] = 1
        starts = np.zeros(len(steps))
        starts[GOES * num + movers : (GOES + 1) * num] = 1
        gains = [np.concatenate([-costs[:, :, k].ravel(), steps[3 * num :] * 0])
                 for k in range(costs.shape[2])]  # fmt: skip
        if not room:
            gains[0] = gains[0] + (1 + np.abs(gains[0]).sum()) * starts
        found: FloatArray | None = None
        for k, gain in enumerate(gains):
            if found is not None:
                matrix = sp.vstack([matrix, sp.csr_matrix(gains[k - 1])], format="csr")
                lower = np.append(lower, round(float(gains[k - 1] @ found)))
                upper = np.append(upper, np.inf)
            found = self._in_steps(matrix, (lower, upper), gain, deadline)
            if found is None:
                return
            uses: dict[int, list[tuple[int, int, int]]] = {}
            for (q, p, leaf), at in self._units.items():
                if found[at]:
                    uses.setdefault(q, []).append((p, leaf, int(found[at] * steps[at])))
            gone = {q: tuple(sorted(own)) for q, own in uses.items()}
            ends = np.flatnonzero(found[ENDS * num : ENDS * num + num]).tolist()
            yield plan_of(self._problem, gone, {*ends})

    def _in_steps(
        self, matrix: Any, limits: tuple[FloatArray, FloatArray], gain: FloatArray, deadline: float
    ) -> FloatArray | None:
        """Return a solution in whole numbers that gains much, None if none is found."""
        most = self._most_of_all()
        most[3 * self._num :] /= self._steps
        helper: Any = mbh.ModelBuilderHelper()
        helper.fill_model_from_sparse_data(np.zeros(len(most)), most, -gain, *limits, matrix)
        for column in range(len(most)):
            helper.set_var_integrality(column, True)
        solver = mbh.ModelSolverHelper("scip")
        solver.set_solver_specific_parameters(_NODES)
        solver.set_time_limit_in_seconds(min(3600.0, max(0.1, deadline - clock.now())))
        with clock.ended_by(solver.interrupt_solve):
            solver.solve(helper)
        if not solver.has_solution():
            return None
        return np.asarray(np.rint(np.array(solver.variable_values(), dtype=np.float64)))

    def _most_of_all(self) -> FloatArray:
        """Return the upper limits of all variables."""
        num, problem = self._num, self._problem
        found = np.concatenate([np.ones(3 * num), np.array(self._most, dtype=float)])
        for way in (STAYS, ENDS):  # what waits only goes
            found[way * num + problem.num_movers : (way + 1) * num] = 0
        found[ENDS * num :][: problem.num_movers] = problem.ends > 0
        found[GOES * num :][: problem.num_movers] = problem.costs > 0
        return found

    # ---- a subproblem

    def solved(
        self, sub: Subproblem, costs: IntArray, values: IntArray, deadline: float
    ) -> Program | None:
        """Return prices for a subproblem, and what its solution leaves undecided.

        Parameters
        ----------
        costs
            By way, job and level after the first.
        values
            Of jobs on the first level.
        sub
            Its covers name rows of the machine, then pairs and budgets.

        Returns
        -------
        Row prices are of rows of the packing, pairs and budgets, in this order.
        """
        level, num = sub.level, self._num
        gain = np.zeros(self._matrix.shape[1])
        scale = 1.0 if not level else 1.0 + float(costs[:, :, level - 1].clip(0).max(0).sum())
        for way in (STAYS, GOES, ENDS):
            own = scale * values - (costs[way, :, level - 1] if level else 0)
            gain[way * num : (way + 1) * num] = own
        upper = self._most_of_all()
        for q in sub.excluded:
            upper[[self._way(way, q) for way in (STAYS, GOES, ENDS)]] = 0
        lower_rows, upper_rows = self._limits
        extra = self._cover_rows(sub, upper)
        more = [sp.csr_matrix(extra)] if len(extra) else []
        floors = [0.0] * len(extra)
        for k, reached in enumerate(sub.reached[1:]):
            row = np.concatenate([-costs[:, :, k].ravel(), np.zeros(len(self._units))])
            more.append(sp.csr_matrix(row))
            floors.append(-np.inf if reached is None else float(reached))
        matrix = sp.vstack([self._matrix, *more], format="csr")
        helper: Any = mbh.ModelBuilderHelper()
        helper.fill_model_from_sparse_data(
            np.zeros(len(upper)),
            upper,
            -gain,
            np.concatenate([lower_rows, floors]),
            np.concatenate([upper_rows, np.full(len(floors), np.inf)]),
            matrix,
        )
        solver = mbh.ModelSolverHelper("glop")
        solver.set_time_limit_in_seconds(min(3600.0, max(0.1, deadline - clock.now())))
        solver.solve(helper)
        if solver.status() != mbh.SolveStatus.OPTIMAL:
            return None
        duals = np.maximum(0.0, -np.array(solver.dual_values()))
        of_levels = np.maximum(0.0, np.array(solver.dual_values()))[matrix.shape[0] - level + 1 :]
        factors = (scale, *map(float, of_levels)) if level else ()
        undecided = [*self._undecided(np.array(solver.variable_values()))]
        return Program(duals[: self._present], factors, sorted(undecided, reverse=True))

    def _cover_rows(self, sub: Subproblem, upper: FloatArray) -> FloatArray:
        """Return rows that are at least 0 by covers, of others take away upper limits."""
        site, found = self._site, []
        movers, first = self._problem.num_movers, site.packing.num_covers
        for cover in sub.covers:
            q, row, inside = cover.request_idx, cover.row, cover.inside
            stays, goes, ends = (self._way(way, q) for way in (STAYS, GOES, ENDS))
            own: Iterable[int] = ()
            least = 1.0
            if row >= first + site.num_pairs:
                upper[[stays] if inside else [goes, ends]] = 0
                continue
            if row >= first and q < movers:
                upper[[goes, ends] if inside else [stays]] = 0
                continue
            if q < movers:
                held = row in site.packing.rows_of(site.candidate(q, site.own[q]))
                upper[[ends] if inside else []] = 0
                if held is not inside:
                    upper[stays] = 0
            if row >= first:
                _, number, part, limit = site.pairs_of(q, row - first)[0]
                inner = set(self._layout.below[number])
                own = [
                    v for (j, p, k), v in self._units.items() if (j, p) == (q, part) and k in inner
                ]
                least = limit + 1.0
            elif site.requests[q].exclusive is None:
                leaf, _ = self._layout.leaf_of_row(row)
                own = [v for (j, _, k), v in self._units.items() if j == q and k == leaf]
                if not inside:
                    upper[[*own]] = 0
            else:
                continue
            values = np.zeros(len(upper))
            values[[*own]] = 1.0 if inside else -1.0
            values[goes] = -least if inside else least - 1.0
            found.append(values)
        return np.array(found).reshape(-1, len(upper))

    def _undecided(self, solution: FloatArray) -> Iterator[tuple[float, int, int]]:
        """Yield branches: their weight, the job, and the row that it uses or not."""
        site, movers = self._site, self._problem.num_movers
        first = site.packing.num_covers
        for q in range(movers):
            part = min(solution[q], 1 - solution[q])
            pairs = site.pairs(q, site.own[q], stays=True)
            if part > _WHOLE and len(pairs):
                yield _STAYS * part, q, first + int(pairs[0])
        used: dict[tuple[int, int], float] = defaultdict(float)
        for ((q, p, leaf), at), most in zip(self._units.items(), self._most, strict=True):
            if solution[at] > _WHOLE:
                row = self._row(q, p, leaf)
                share = solution[at] / most
                used[q, row] += min(share, 1 - share)
        for (q, row), part in used.items():
            if part > _WHOLE:
                yield part * (_MOVES if q < movers else _USES), q, row

    def _row(self, q: int, p: int, leaf: int) -> int:
        """Return a row that a unit takes of on a leaf."""
        node, layout = self._layout.nodes[leaf], self._layout
        if node.pool is not None:
            return node.pool
        takes = self._site.requests[q].parts[p].takes
        return next(n + node.hosts[0] for r, n in layout.first_row.items() if takes[r])


def _states(part: PartState) -> PartState:
    """Return a part with the rules that the program states, and no others."""
    return PartState(
        name=part.name,
        units=part.units,
        takes=part.takes,
        segments=part.segments,
        required=part.required,
        preferred=part.preferred,
        group=part.group,
        eligible=part.eligible,
    )
