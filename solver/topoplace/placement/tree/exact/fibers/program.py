"""Thresholds of a cube refuted by a program over fibers and leaves (docs/proofs-tree.md)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from ortools.sat.python import cp_model

from topoplace import clock
from topoplace.placement.tree.exact.fibers.families import Family, families_of
from topoplace.placement.tree.exact.fibers.patterns import patterns
from topoplace.placement.tree.exact.job import Job
from topoplace.placement.tree.exact.lines.tables import box_tables, no_guess, standing

IntArray = NDArray[np.int64]

_MOST_STATES = 80
_WORK = 1.0  # CP-SAT's deterministic time


def has_fibers(job: Job) -> bool:
    """Tell whether a job is one that `FiberProgram` is made for: a full cube on few states."""
    alone = len(job.families) == 1 and bool(job.families[0].alike)
    return alone and job.exact and len(job.states.count) <= _MOST_STATES


class FiberProgram:
    """Programs over the fibers of a cube, in whole numbers of leaves, fibers and components."""

    def __init__(self, job: Job) -> None:
        # a cube is a grid of two layers each way
        self.tables = box_tables(job, [2] * job.families[0].num_dims)
        self._key = job.states.key

    def refutes(self, thresholds: IntArray) -> bool:
        """Tell whether thresholds, ascending, are impossible; what takes too long may not be."""
        tables = self.tables
        view = standing(tables, thresholds, no_guess(tables))
        if view is None:
            return True
        unit, families = families_of(tables, self._key, thresholds, view)
        if not families:
            return False
        model = cp_model.CpModel()
        units = tables.ranks // unit
        leaves = {
            s: model.new_int_var(0, int(tables.multiplicity[tables.leaf_type[s]]), "")
            for s in np.flatnonzero(view.alive).tolist()
        }
        for t, there in enumerate(tables.multiplicity.tolist()):
            own = [number for s, number in leaves.items() if tables.leaf_type[s] == t]
            if own:
                model.add(sum(own) <= there)
        held = sum(int(units[s]) * number for s, number in leaves.items())
        model.add(held == tables.cells // unit)
        for family in families:
            _add_fibers(model, family, units, leaves)
        solver = cp_model.CpSolver()
        solver.parameters.max_deterministic_time = _WORK
        solver.parameters.num_workers = 1
        solver.parameters.catch_sigint_signal = False
        with clock.ended_by(solver.stop_search):
            return bool(solver.solve(model) == cp_model.INFEASIBLE)


def _add_fibers(
    model: cp_model.CpModel,
    family: Family,
    units: IntArray,
    leaves: Mapping[int, cp_model.IntVar],
) -> None:
    """Say that the fibers of a family hold what the leaves do.

    Which component is of which state only matters for how many of a size are of each.
    """
    number = {pattern: model.new_int_var(0, family.fibers, "") for pattern in patterns(family.dims)}
    model.add(sum(number.values()) == family.fibers)
    bad = [s for s in leaves if family.bad[s]]
    most = family.fibers * family.size
    of_size = {
        (size, s): model.new_int_var(0, most, "")
        for s in bad
        for size in range(1, min(int(units[s]), family.size) + 1)
    }
    for size in range(1, family.size + 1):
        there = sum(Counter(p.components)[size] * v for p, v in number.items())
        model.add(there == sum(v for (own, _), v in of_size.items() if own == size))
    for s in bad:
        own = {size: v for (size, state), v in of_size.items() if state == s}
        model.add(sum(size * v for size, v in own.items()) == int(units[s]) * leaves[s])
        met = -(-int(units[s]) // family.size)
        model.add(sum(own.values()) >= met * leaves[s])
    other = sum(int(units[s]) * leaves[s] for s in leaves if family.other[s])
    model.add(other <= sum(p.apart * v for p, v in number.items()))
