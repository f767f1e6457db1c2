"""Binomial jobs: thresholds ruled out by what leaves can do step by step.

The active ranks double: in every step each gets a child. A *plan* is a state of a leaf with its
active ranks before every step and at the end. What is active on all leaves together doubles step
by step; and pairs that cross from leaves that pair badly go to others (docs/proofs/tree.md,
"Binomial jobs"). If programs have whole leaves, CP-SAT seeks whole plans, and flows pair the ranks.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np
from ortools.graph.python import max_flow
from ortools.sat.python import cp_model

from topoplace import clock
from topoplace.placement.switches.exact._plan_programs import (
    MIXED,
    REFUTED,
    Pool,
    Refutation,
    refute,
)
from topoplace.placement.switches.exact._plans import (
    Cuts,
    Standing,
    Tables,
    cuts,
    lowest,
    raised,
    rules_out,
    standing,
)
from topoplace.placement.switches.exact.boxes import Corners
from topoplace.placement.switches.exact.job import Job, states_of
from topoplace.placement.switches.exact.thresholds import Guess, Leaf, Mix, Oracle
from topoplace.result.tree import BinomialShares
from topoplace.types import BoolArray, IntArray

Arc = tuple[int, int, int, int]
"""State, step, and active ranks before and after it."""

_ROOM, _ROOM_IN_TREES = 1 << 13, 1 << 10
_MOST_PLANS = 60
"""Plans that are kept, and that a program begins with."""

_LONG_AGO = 1 << 40


# ---- Programs over plans -----------------------------------------------------------------------


def plan_tables(job: Job) -> Tables:
    """Return the states and steps of a job whose only pattern is binomial."""
    states = job.states
    pairs = np.array([len(step.pairs) for step in job.steps], dtype=np.int64)
    active = np.concatenate([[1], 1 + np.cumsum(pairs)]).astype(np.int64)
    return Tables(states, np.zeros(len(states.multiplicity), bool), active, active[:-1] - pairs)


def tables_under(tables: Tables, guess: Guess) -> tuple[Tables, IntArray]:
    """Return the tables of what is assumed, and the states that theirs are.

    Leaves assumed in a state are a type of their own, without empty leaves.
    """
    if guess.is_empty:
        return tables, np.arange(len(tables.states.ranks))
    states = tables.states
    held = np.flatnonzero(guess.forced)
    times = guess.forced[held]
    left = states.multiplicity.copy()
    np.subtract.at(left, states.leaf_type[held], times)
    others = np.flatnonzero((left[states.leaf_type] > 0) & ~guess.done)
    there, leaf_type = np.unique(states.leaf_type[others], return_inverse=True)
    num = len(there)
    source = np.concatenate([others, held])
    own = states_of(
        states.ranks[source],
        np.concatenate([leaf_type, num + np.arange(len(held))]),
        states.inside[source],
        states.apart[np.ix_(source, source)],
        np.concatenate([left[there], times]),
    )
    return tables._replace(states=own, held=np.arange(num + len(held)) >= num), source


def _pool(tables: Tables, room: int) -> Pool:
    """Return a pool without plans."""
    num_active = len(tables.active)
    return Pool(
        state=np.zeros(room, dtype=np.int64),
        path=np.zeros((room, num_active), dtype=np.int64),
        used=np.zeros(room, dtype=np.int64),
        served=np.full((num_active - 1, len(tables.states.ranks)), -_LONG_AGO, dtype=np.int64),
        size=np.zeros(2, dtype=np.int64),
    )


@dataclass(frozen=True)
class Shares(Leaf):
    """Multipliers by which the value of all leaves is too low."""

    refutation: Refutation

    def document(self, number: dict[int, int]) -> BinomialShares:
        """Return them as a certificate states them."""
        of = self.refutation
        cuts_ = zip(of.step, of.least, of.senders, of.receivers, strict=True)
        return BinomialShares(
            shares=of.shares.tolist(),
            cuts=[(int(n), number[int(key)], int(a), int(b)) for n, key, a, b in cuts_],
        )


class PlanOracle(Oracle):
    """Programs over all plans met so far."""

    decide_programs = 400
    lift_programs = 1

    def __init__(self, job: Job) -> None:
        self.tables = plan_tables(job)
        self.ranks = job.states.ranks
        self._values = job.values
        self.pool = _pool(self.tables, _ROOM)

    def solve(self, thresholds: IntArray, guess: Guess, deadline: float) -> Leaf | Mix | None:
        """Return why thresholds are impossible, or plans that have them; None if neither."""
        tables, source = tables_under(self.tables, guess)
        pool = self.pool if guess.is_empty else _pool(tables, _ROOM_IN_TREES)
        found = refute(tables, pool, thresholds, _MOST_PLANS)
        if found.verdict == REFUTED:
            return Shares(Refutation(*found.proof))
        if found.verdict != MIXED:
            return None
        weight, state, path = found.mix
        least = thresholds
        if guess.is_empty:
            at = np.searchsorted(self._values, thresholds)
            least = self._values[lowest(tables, self._values, at, weight, state, path)]
        return Mix(np.bincount(source[state], weight, len(self.ranks)).astype(float), least)

    def holds(self, leaf: Leaf, thresholds: IntArray, guess: Guess) -> bool:
        """Tell whether multipliers rule out thresholds, in integers."""
        assert isinstance(leaf, Shares)
        tables, _ = tables_under(self.tables, guess)
        return bool(rules_out(tables, leaf.refutation, thresholds, np.zeros(1, dtype=np.int64)))

    def raised(
        self, leaf: Leaf, at: IntArray, top: IntArray, order: IntArray, possible: Corners
    ) -> IntArray | None:
        """Return thresholds by number raised as far as multipliers rule them out."""
        assert isinstance(leaf, Shares)
        found: IntArray = raised(
            self.tables, leaf.refutation, self._values, at, top, order, possible.all, possible.sets
        )
        return found


# ---- Plans in whole numbers --------------------------------------------------------------------


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
        highest = min(int(self.tables.states.ranks[s]), int(self.tables.active[n + 1]))
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
            ranks = int(tables.states.ranks[s])
            most = int(tables.states.multiplicity[tables.states.leaf_type[s]])
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
        for t, there in enumerate(tables.states.multiplicity.tolist()):
            own = [
                v
                for (s, _), begins in self._begins.items()
                if tables.states.leaf_type[s] == t
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
        solver, status = solved(self.model, seconds)
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


def solved(model: cp_model.CpModel, seconds: float) -> tuple[cp_model.CpSolver, Any]:
    """Return the solver of a model after some seconds at most, and its status."""
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = max(seconds, 0.01)
    solver.parameters.num_workers = 1
    solver.parameters.catch_sigint_signal = False
    # presolving takes longer than most searches, and the search after it is slower
    solver.parameters.cp_model_presolve = False
    with clock.ended_by(solver.stop_search):
        status = solver.solve(model)
    return solver, status


# ---- Ranks from plans --------------------------------------------------------------------------


def assigned(job: Job, plans: list[tuple[int, IntArray]], thresholds: IntArray) -> IntArray | None:
    """Return the leaf of every rank with such a plan per leaf; None if the pairs do not fit."""
    spare = [leaves.tolist() for leaves in job.leaves]
    leaf = np.array([spare[job.states.leaf_type[s]].pop() for s, _ in plans], dtype=np.int64)
    path = np.stack([path for _, path in plans])
    comm = job.comm.copy()
    comm[leaf] += path[:, -1]
    hops = job.model.scaled_hops(leaf[:, None], leaf, comm) * job.scale // int(job.model.scale)
    found = np.full(job.ranks, -1, dtype=np.int64)
    held: list[list[int]] = [[] for _ in plans]
    root = int(np.flatnonzero(path[:, 0])[0])
    held[root].append(0)
    found[0] = root
    for n, step in enumerate(job.steps):
        child_of = dict(step.pairs.tolist())
        free = [[rank for rank in ranks if rank in child_of] for ranks in held]
        supply = np.array([len(ranks) for ranks in free])
        amounts = _pairing(supply, path[:, n + 1] - path[:, n], hops <= thresholds[n])
        if amounts is None:
            return None
        for sender, receiver, amount in amounts:
            for _ in range(amount):
                child = child_of[free[sender].pop()]
                held[receiver].append(child)
                found[child] = receiver
    return leaf[found]


def _pairing(
    supply: IntArray, demand: IntArray, allowed: BoolArray
) -> list[tuple[int, int, int]] | None:
    """Return how many pairs go from leaf to leaf; None if some would be left over."""
    num = len(supply)
    flow = max_flow.SimpleMaxFlow()
    senders, receivers = np.nonzero(allowed & (supply[:, None] > 0) & (demand > 0))
    source, sink = 2 * num, 2 * num + 1
    everyone = np.arange(num)
    arcs = flow.add_arcs_with_capacity(
        senders, num + receivers, np.minimum(supply[senders], demand[receivers])
    )
    flow.add_arcs_with_capacity(np.full(num, source), everyone, supply)
    flow.add_arcs_with_capacity(num + everyone, np.full(num, sink), demand)
    flow.solve(source, sink)
    if flow.optimal_flow() < int(demand.sum()):
        return None
    amounts = flow.flows(arcs)
    return [
        (int(a), int(b), int(amount))
        for a, b, amount in zip(senders, receivers, amounts, strict=True)
        if amount
    ]
