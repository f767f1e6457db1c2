"""Placement by the reference MiniZinc model, `models/hierarchy.mzn`.

It states all rules host by host, and is used for comparison, on machines of a dozen hosts.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from topoplace.errors import InputError
from topoplace.explicit.chosen import Chosen
from topoplace.placement.hierarchy.outcome import worth
from topoplace.placement.hierarchy.problem import HierarchyProblem, Started, written_out
from topoplace.snapshot.files import data_folder
from topoplace.snapshot.hierarchy_state import HierarchyRequest, PartState
from topoplace.snapshot.schema import WITHOUT_GPUS
from topoplace.solving import Options, Outcome
from topoplace.solving.minizinc import LevelRun, level_by_level, require_small, run_level

MAX_HOSTS = 64
"""Largest machine accepted: the model has a variable for every part, level and domain."""


def minizinc(problem: HierarchyProblem, options: Options) -> Outcome:
    """Place the queue by runs of the MiniZinc model, one per level.

    Raises
    ------
    InputError
        If the machine or the values are too large for the model.
    MissingToolError
        If the `minizinc` program is not installed.
    """
    _require_small(problem)

    def solved(level_idx: int, reached: Sequence[int], left: float | None) -> LevelRun[Started]:
        return solve_level(problem, level_idx, reached, time_limit=left, solver=options.solver)

    def worths(started: Started) -> tuple[int, ...]:
        return totals(problem, started)

    nothing: Started = {}
    return level_by_level(
        problem.levels, solved, worths, nothing, options, is_empty=not problem.requests
    )


def _require_small(problem: HierarchyProblem) -> None:
    num_hosts = problem.machine.num_hosts
    if num_hosts > MAX_HOSTS:
        expected = f"at most {MAX_HOSTS} hosts for method minizinc"
        raise InputError(expected, field="machine.hosts", value=num_hosts)
    parts = sum(len(request.parts) for request in problem.requests)
    require_small(sum(request.value + request.without_gpus for request in problem.requests))
    require_small(int(problem.state.free.sum()) * (1 + parts))


def totals(problem: HierarchyProblem, started: Started) -> tuple[int, ...]:
    """Return the values of a placement on all levels, all to be maximised."""
    signs = [1 if sense == "max" else -1 for _, sense in problem.levels]
    return tuple(s * v for s, v in zip(signs, worth(problem, started), strict=True))


def data_of(problem: HierarchyProblem, level_idx: int, reached: Sequence[int]) -> dict[str, Any]:
    """Return the model's data: the snapshot, and the level to optimise; levels count from 1.

    The model always has the value of requests without GPUs, all levels and balance. What the
    problem does not count may be anything there.
    """
    if problem.free_name is not None:
        expected = "no level of free domains in the MiniZinc model"
        raise InputError(expected, field="objective", value=problem.free_name)
    machine, state, requests = problem.machine, problem.state, written_out(problem).requests
    parts = [(q, part) for q, request in enumerate(requests, 1) for part in request.parts]
    goals = ["nodes", WITHOUT_GPUS, *machine.levels, "balance", "stranded"]
    counted = [name for name, _ in problem.levels]
    before = goals[: goals.index(counted[level_idx])]
    any_number = dict.fromkeys(machine.levels, -sum(part.units for _, part in parts))
    at_least = any_number | dict(zip(counted, reached, strict=False))
    ways = [(q, own) for q, one in enumerate(requests, 1) if one.others for own in one.ways]
    numbers = [(q, k) for q, one in enumerate(requests, 1) for k in range(len(one.parts))]
    columns = [column for one in requests for column in zip(*one.ways, strict=True)]
    apart = [(q, *key) for q, own in enumerate(requests, 1) for key in own.parts[0].apart]
    names = sorted({key[1:] for key in apart})
    rules = [(p, *rule) for p, (_, part) in enumerate(parts, 1) for rule in _rules(part)]
    return {
        "hosts": machine.num_hosts,
        "resources": len(machine.resources),
        "levels": machine.num_levels,
        "host_free": state.free.ravel().tolist(),
        "domains": (machine.domain_of.ravel() + 1).tolist(),
        "busy_hosts": {"set": (np.flatnonzero(state.occupied) + 1).tolist()},
        "request_value": [request.value for request in requests],
        "request_second": [request.without_gpus for request in requests],
        "request_exclusive": [_number(request.exclusive) for request in requests],
        "apart_request": [q for q, _, _ in apart],
        "apart_level": [level + 1 for _, level, _ in apart],
        "apart_name": [names.index((level, name)) + 1 for _, level, name in apart],
        "part_request": [q for q, _ in parts],
        "part_group": list(_groups(requests)),
        "part_units": [part.units for _, part in parts],
        "part_takes": [amount for _, part in parts for amount in part.takes],
        "part_barred": [
            {"set": sorted(set.intersection(*map(_barred, column)))} for column in columns
        ],
        "way_request": [q for q, _ in ways],
        "way_barred": [
            {"set": sorted(_barred(own[k])) if r == q else []}
            for q, own in ways
            for r, k in numbers
        ],
        "part_required": [_number(part.required) for _, part in parts],
        "part_balance": [_number(part.balance) for _, part in parts],
        "rule_kind": [{"e": kind} for _, kind, _, _ in rules],
        "rule_part": [p for p, _, _, _ in rules],
        "rule_level": [level + 1 for _, _, level, _ in rules],
        "rule_size": [size for _, _, _, size in rules],
        "goal": 1 + len(before),
        "reached": [at_least.get(name, 0) for name in before],
    } | dict(itertools.chain(*(own.items() for own in problem.beside.values())))


def _number(level: int | None) -> int:
    """Return the number of a level in the model, 0 for none."""
    return 0 if level is None else level + 1


def _barred(part: PartState) -> set[int]:
    """Return the hosts that a part may not have, counted from 1."""
    return set() if part.eligible is None else {*(np.flatnonzero(~part.eligible.mask) + 1).tolist()}


def _groups(requests: Sequence[HierarchyRequest]) -> Iterator[int]:
    """Yield the group of every part, numbered over all requests."""
    before = 0
    for request in requests:
        yield from (before + 1 + part.group for part in request.parts)
        before += len(request.parts)


def _rules(part: PartState) -> Iterator[tuple[str, int, int]]:
    """Yield kind, level and size of the rules about units in a domain, or domains used."""
    yield from (("segment", level, size) for level, size in part.segments)
    if part.spread is not None:
        yield ("spread", *part.spread)
    if part.at_most is not None:
        yield ("at_most", *part.at_most)


def solve_level(
    problem: HierarchyProblem,
    level_idx: int,
    reached: Sequence[int],
    *,
    time_limit: float | None = None,
    checked: bool = False,
    definitions: str = "",
    solver: str | None = None,
) -> LevelRun[Started]:
    """Run the model for one level, the earlier ones held at `reached` (see `run_minizinc`)."""

    def read(found: Any) -> Started:
        units = ({h: n for h, n in enumerate(own) if n} for own in found.here)
        placed = [tuple(itertools.islice(units, len(r.parts))) for r in problem.requests]
        return {q: own for q, own in enumerate(placed) if found.start[q]}

    files = (str(data_folder("models") / f"{name}.mzn") for name in problem.beside)
    includes = (f"include {json.dumps(file)};" for file in files)
    return run_level(
        "hierarchy",
        data_of(problem, level_idx, reached),
        read,
        lambda started: totals(problem, started)[level_idx],
        time_limit=time_limit,
        checked=checked,
        definitions="".join([*includes, definitions]),
        solver=solver,
    )


def reference(own: Chosen) -> tuple[str, dict[str, Any]]:
    """Return the model of a level and its data."""
    problem = own.problem
    assert isinstance(problem, HierarchyProblem)
    signs = [1 if sense == "max" else -1 for _, sense in problem.levels]
    reached = [s * v for s, v in zip(signs, own.reached, strict=False)]
    return " ".join(["hierarchy", *problem.beside]), data_of(problem, own.number, reached)
