"""Plans in whole numbers: how many leaves go through which active ranks."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from numpy.typing import NDArray
from ortools.sat.python import cp_model

from topoplace import clock
from topoplace.placement.tree.exact.doubling.kernels.cuts import cuts
from topoplace.placement.tree.exact.doubling.kernels.standing import standing
from topoplace.placement.tree.exact.doubling.tables import Cuts, Standing, Tables

IntArray = NDArray[np.int64]
Arc = tuple[int, int, int, int]
"""State, step, and active ranks before and after it."""


class WholePlans:
    """Leaves by plan under thresholds, as whole flows through active ranks per step and state."""

    def __init__(self, tables: Tables, thresholds: IntArray) -> None:
        self.tables = tables
        self.view: Standing = standing(tables, thresholds)
        self.rows: Cuts = cuts(tables, self.view, thresholds)
        self.model = cp_model.CpModel()
        self.arcs: dict[Arc, cp_model.IntVar] = {}
        self._add_arcs()
        self._add_totals()
        self._add_cuts()

    def _moves(self, s: int, n: int, a: int) -> range:
        """Return the active ranks that a leaf can have after a step."""
        highest = min(int(self.tables.ranks[s]), int(self.tables.active[n + 1]))
        if not self.view.closed[n, s]:
            return range(a, highest + 1)
        if a and not (self.view.able[n, s] and 2 * a <= highest):
            return range(0)
        return range(2 * a, 2 * a + 1)

    def _add_arcs(self) -> None:
        tables, model = self.tables, self.model
        num_steps = len(tables.idle)
        self._begins: dict[tuple[int, int], list[cp_model.IntVar]] = defaultdict(list)
        for s in np.flatnonzero(self.view.alive).tolist():
            ranks = int(tables.ranks[s])
            most = int(tables.multiplicity[tables.leaf_type[s]])
            useful = [{ranks}]
            for n in reversed(range(num_steps)):
                useful.append(
                    {a for a in range(ranks + 1) if useful[-1] & set(self._moves(s, n, a))}
                )
            useful.reverse()
            reached = {0, 1} & useful[0]
            into: dict[int, list[cp_model.IntVar]] = {}
            for n in range(num_steps):
                out: dict[int, list[cp_model.IntVar]] = defaultdict(list)
                for a in sorted(reached):
                    own = []
                    for after in self._moves(s, n, a):
                        if after in useful[n + 1]:
                            arc = model.new_int_var(0, most, "")
                            self.arcs[s, n, a, after] = arc
                            own.append(arc)
                            out[after].append(arc)
                    if n:
                        model.add(sum(own) == sum(into[a]))
                    else:
                        self._begins[s, a] = own
                reached, into = set(out), out

    def _add_totals(self) -> None:
        tables, model = self.tables, self.model
        for t, there in enumerate(tables.multiplicity.tolist()):
            own = [
                v
                for (s, _), begins in self._begins.items()
                if tables.leaf_type[s] == t
                for v in begins
            ]
            if tables.held[t]:
                model.add(sum(own) == there)
            else:
                model.add(sum(own) <= there)
        model.add(sum(v for (_, a), begins in self._begins.items() if a for v in begins) == 1)
        for n in range(len(tables.idle)):
            after = [(c, v) for (_, m, _, c), v in self.arcs.items() if m == n]
            model.add(sum(c * v for c, v in after) == int(tables.active[n + 1]))

    def _add_cuts(self) -> None:
        rows, view = self.rows, self.view
        of_step: dict[int, list[tuple[Arc, cp_model.IntVar]]] = defaultdict(list)
        for arc, variable in self.arcs.items():
            of_step[arc[1]].append((arc, variable))
        for n, bad, near in zip(rows.step.tolist(), rows.bad, rows.near, strict=True):
            sent, received = [], []
            for (s, _, a, after), variable in of_step[n]:
                new = after - a
                inside = min(a, new) if view.able[n, s] else 0
                if bad[s]:
                    sent.append((a - inside) * variable)
                    received.append((new - inside) * variable)
                elif near[s]:
                    sent.append(-new * variable)
                    received.append(-a * variable)
            self.model.add(sum(sent) <= int(self.tables.idle[n]))
            self.model.add(sum(received) <= 0)

    def solve(self, seconds: float) -> tuple[list[tuple[int, IntArray]] | None, bool]:
        """Return state and trajectory of every leaf if found, and whether that is certain."""
        solver = cp_model.CpSolver()
        solver.parameters.max_time_in_seconds = max(seconds, 0.01)
        solver.parameters.num_workers = 1
        solver.parameters.catch_sigint_signal = False
        # presolving takes longer than most searches, and the search after it is slower
        solver.parameters.cp_model_presolve = False
        with clock.ended_by(solver.stop_search):
            status = solver.solve(self.model)
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return None, status == cp_model.INFEASIBLE
        left = {arc: int(solver.value(v)) for arc, v in self.arcs.items() if solver.value(v)}
        leaves = []
        while left:
            s, _, a, _ = min(left, key=lambda arc: arc[1])
            path = [a]
            for n in range(len(self.tables.idle)):
                arc = next(arc for arc in left if arc[:3] == (s, n, path[-1]))
                path.append(arc[3])
                left[arc] -= 1
                if not left[arc]:
                    del left[arc]
            leaves.append((s, np.array(path, dtype=np.int64)))
        return leaves, True
