"""The model of a packing on one level: a variable for each request, and for each candidate.

Earlier levels are rows. A request starts on exactly one candidate, and candidates keep within the
capacities of the rows (docs/proofs/placement.md, "Packings").
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from ortools.sat.python import cp_model

from topoplace.errors import InputError
from topoplace.explicit.model import Model, Sum, word
from topoplace.explicit.writers import cp_model_of
from topoplace.packing.problem import PackingProblem
from topoplace.placement.engine import packed
from topoplace.solving.solve import frame_of
from topoplace.types import IntArray

if TYPE_CHECKING:
    from topoplace.explicit.chosen import Chosen

MOST_CANDIDATES = 400_000
"""Most candidates of a model that is written: files then have tens of megabytes."""

_COUNTED = 10 * MOST_CANDIDATES  # so many candidates are counted before it is given up


@dataclass(eq=False)
class PackedModel:
    """A packing whose candidates are all listed, and its model.

    Attributes
    ----------
    packing, level, earlier
        The problem, the number of the level, and what earlier levels must reach, maximised; None
        where nothing is required.
    model
        Its first variables are those of the requests, then those of the candidates follow.
    request
        By candidate, its request.
    amounts
        What candidates take of rows, shape ``(num_candidates, num_rows)``.
    values
        By candidate and level, up to this one.
    row
        By row of the packing its row in the model, -1 if no candidate takes any of it.
    one, kept
        By request the row that gives it one candidate; by earlier level its row, or None.
    solution_of
        Turns candidates into a solution of the problem.
    """

    packing: PackingProblem
    level: int
    earlier: Sequence[int | None]
    model: Model
    request: IntArray
    amounts: sp.csr_matrix
    values: IntArray
    row: IntArray
    one: list[int]
    kept: list[int | None]
    candidates: Sequence[Any]
    solution_of: Callable[[list[Any]], Any] = list

    @property
    def first(self) -> Any:
        """The placement that starts nothing."""
        return self.solution_of([])

    def solution(self, values: IntArray) -> Any:
        """Return the solution of the problem that values of the variables stand for."""
        chosen = np.flatnonzero(values[len(self.packing.names) :])
        return self.solution_of([self.candidates[k] for k in chosen.tolist()])

    def start(self, q: int) -> str:
        """Return the variable of a request."""
        return self.model.variables[q]

    def variable(self, candidate: int) -> str:
        """Return the variable of a candidate."""
        return self.model.variables[len(self.packing.names) + candidate]

    def of(self, q: int) -> IntArray:
        """Return the candidates of a request."""
        first, last = np.searchsorted(self.request, [q, q + 1])
        return np.arange(first, last)


def model_of(own: Chosen) -> PackedModel:
    """Return the model of a level of a placement, with the solution if a result has one."""
    whole = packed(own.problem)
    packing = whole.packing
    if len(packing.senses) != len(frame_of(own.problem.kind).levels(own.problem)):
        raise InputError("a placement without hop-bytes", field="levels", found=own.name)
    earlier = [None if v is None else packing.reported(k, v) for k, v in enumerate(own.earlier)]
    model = packed_model(packing, own.number, earlier, own.title)
    offset = packing.reported(own.number, 0)  # of anchored prisms, all that can stay free
    model.model.offset, model.model.sign = offset, offset - packing.reported(own.number, 1)
    model.model.notes.append(model.model.told(own.name))
    model.solution_of = whole.solution_of
    if own.level is not None and own.level.objective is not None:
        taken = {start.request: packing.rows_at(start) for start in own.result.placements}
        solved_as(model, taken, packing.reported(own.number, own.level.objective))
        model.model.require_solution()
    return model


def packed_model(
    packing: PackingProblem, level: int, earlier: Sequence[int | None], title: str
) -> PackedModel:
    """Return the model of a level of a packing.

    Raises
    ------
    InputError
        If there are too many candidates.
    """
    candidates = _listed(packing, level)
    rows = [packing.rows_of(candidate) for candidate in candidates]
    amounts = _amounts(rows, packing.num_rows)
    open_to = np.asarray((amounts > packing.capacities).sum(axis=1)).ravel() == 0
    candidates = [c for c, fits in zip(candidates, open_to.tolist(), strict=True) if fits]
    amounts = amounts[open_to]
    request = np.array([c.request_idx for c in candidates], dtype=np.int64)
    values = packing.values_of(candidates)[:, : level + 1]
    model = Model([title])
    names = [f"q{q}_{word(name)}" for q, name in enumerate(packing.names)]
    for name in names:
        model.variable(name)
    labels = zip(candidates, request.tolist(), itertools.count(), strict=False)
    for candidate, q, k in labels:
        model.variable(f"{names[q]}_{word(packing.label(candidate)) or k}")
    num = len(names)
    one = []
    for q, name in enumerate(names):
        first, last = np.searchsorted(request, [q, q + 1]).tolist()
        own = np.arange(num + first, num + last)
        terms = Sum(np.append(own, q), np.append(np.ones_like(own), -1))
        one.append(model.add(f"one_{name}", terms, "=", 0))
    by_row, row = amounts.tocsc(), np.full(packing.num_rows, -1, dtype=np.int64)
    for family, where in packing.families.items():
        for number, r in enumerate(range(where.start, where.stop)):
            a, b = by_row.indptr[r : r + 2]
            if a < b:
                total = Sum(num + by_row.indices[a:b].astype(np.int64), by_row.data[a:b])
                limit = int(packing.capacities[r])
                row[r] = model.add(f"{word(family)}_{number}", total, "<=", limit)
    kept = [
        None
        if least is None
        else model.add(f"level_{k}", _values(packing, values, num, k), ">=", least)
        for k, least in enumerate(earlier)
    ]
    worth = _values(packing, values, num, level)
    model.objective = Sum(worth.variables, -worth.coefficients)
    return PackedModel(
        packing, level, earlier, model, request, amounts, values, row, one, kept, candidates
    )


def _values(packing: PackingProblem, values: IntArray, num: int, level: int) -> Sum:
    """Return the value of a level: on the first one of requests, on others of candidates."""
    own = np.asarray(packing.values) if level == 0 else values[:, level]
    marked = np.flatnonzero(own)
    return Sum(marked + (0 if level == 0 else num), own[marked])


def _listed(packing: PackingProblem, level: int) -> list[Any]:
    every = iter(packing.listed(level))
    found = list(itertools.islice(every, MOST_CANDIDATES + 1))
    if len(found) > MOST_CANDIDATES:
        count = len(found) + sum(1 for _ in itertools.islice(every, _COUNTED))
        told = f"{count}" if count < _COUNTED else f"more than {_COUNTED}"
        raise InputError(f"at most {MOST_CANDIDATES} candidates", field="export", found=told)
    return found


def _amounts(rows: Sequence[IntArray], num_rows: int) -> sp.csr_matrix:
    of = np.repeat(np.arange(len(rows)), [len(own) for own in rows])
    flat = np.concatenate([np.zeros(0, dtype=np.int64), *rows])
    ones, shape = np.ones(len(flat), dtype=np.int64), (len(rows), num_rows)
    return sp.csr_matrix((ones, (of, flat)), shape=shape)


def solved_as(packed: PackedModel, taken: Mapping[str, Collection[int]], value: int) -> None:
    """Set the solution of a model to one that starts some requests where a result does.

    Parameters
    ----------
    taken
        By request that starts, what it takes of the rows of the first family.
    value
        The value of the level in maximising sense, which the solution has to reach.

    Raises
    ------
    InputError
        If there is none: then the model is not that of the result.
    """
    model, packing = packed.model, packed.packing
    number = {name: q for q, name in enumerate(packing.names)}
    family = next(iter(packing.families.values()))
    closed = np.zeros(len(packed.request), dtype=bool)
    for name, rows in taken.items():
        own = packed.of(number[name])
        others = np.ones(family.stop, dtype=bool)
        others[list(rows)] = False
        closed[own] = packed.amounts[own][:, : family.stop] @ others > 0
    program = cp_model_of(model, {len(packing.names) + k for k in np.flatnonzero(closed).tolist()})
    queue = [q for q, name in enumerate(packing.names) if packing.values[q] or name in taken]
    for q in queue:
        program.add(program.get_bool_var_from_proto_index(q) == (packing.names[q] in taken))
    terms = model.objective.terms()
    every = [program.get_bool_var_from_proto_index(v) for v in range(len(model.variables))]
    program.add(sum((c * every[v] for v, c in terms), start=0) <= -value)
    program.clear_objective()
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    if solver.solve(program) not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        raise InputError("a solution of the model", field="solution", found="none")
    model.solution = np.array([solver.value(own) for own in every], dtype=np.int64)
