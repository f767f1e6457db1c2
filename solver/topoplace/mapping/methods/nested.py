"""Grids on trees and hierarchies: boxes of tasks within boxes, one for every domain."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from topoplace.errors import InputError
from topoplace.machine import LevelMachine
from topoplace.mapping.bounds.levels import lines_of
from topoplace.mapping.mapped import outcome_of
from topoplace.mapping.parallelism import Line, lines_of_grid
from topoplace.mapping.problem import MappingProblem
from topoplace.solving import Options, Outcome, register
from topoplace.types import IntArray

Extents = tuple[int, ...]
"""Tasks of a box along every line of a product."""

MOST_BOXES = 1 << 12
"""Boxes that are tried for a level."""


FAR = np.int64(1 << 62)
"""More than any cost."""


@register("mapping", "nested-boxes")
def map_nested_boxes(problem: MappingProblem, options: Options) -> Outcome:
    """Cut a grid or training job into boxes, these into smaller ones, one for every domain.

    Of all boxes whose sides divide those of the box around them it takes those of least cost
    (diagonal messages left out), by dynamic programming over the levels.

    Raises `InputError` if the machine is not a tree or hierarchy, its domains of a level differ in
    size, the application is not a product of lines, or no boxes fit.
    """
    machine, lines = problem.machine, _lines(problem)
    if not isinstance(machine, LevelMachine):
        raise InputError("a tree or hierarchy", field="machine", value=machine.text)
    if lines is None:
        raise InputError("a grid or a training job", field="application", found="a graph")
    places = _regular_places(problem, machine)
    boxes = _best_boxes(lines, machine.steps.tolist(), *places)
    if boxes is None:
        raise InputError("a grid whose boxes fit the domains", field="nodes")
    return outcome_of(_laid_out(problem, machine, [line.size for line in lines], boxes))


def _lines(problem: MappingProblem) -> tuple[Line, ...] | None:
    """Return the lines whose product the application is, without diagonals; else None."""
    return lines_of_grid(problem.grid) if problem.grid is not None else lines_of(problem)


def _regular_places(problem: MappingProblem, machine: LevelMachine) -> tuple[list[int], list[int]]:
    """Return by level the places of a domain, and the parts of one of the next level."""
    rooms, parts = [], []
    used = np.flatnonzero(problem.capacity)
    for below, above in itertools.pairwise(machine.domain_of):
        room = np.bincount(below, problem.capacity)
        pairs = np.unique(np.stack([above[used], below[used]]), axis=1)
        count = np.unique(np.bincount(pairs[0])[np.unique(pairs[0])])
        if len(np.unique(room[room > 0])) > 1 or len(count) > 1:
            expected = "domains of a level that have as many places and parts"
            raise InputError(expected, field="nodes", found="others")
        rooms.append(int(room.max()))
        parts.append(int(count[0]))
    return rooms, parts


def _best_boxes(
    lines: Sequence[Line], steps: Sequence[int], rooms: Sequence[int], parts: Sequence[int]
) -> list[Extents] | None:
    """Return the boxes of every level and the whole grid, the leaves' first; None if none fit."""
    whole = tuple(line.size for line in lines)
    sides = [[e for e in range(1, n + 1) if n % e == 0] for n in whole]
    if math.prod(map(len, sides)) > MOST_BOXES:
        return None
    every = np.array(list(itertools.product(*sides)), dtype=np.int64)
    crossing = np.zeros(len(every), dtype=np.int64)
    for d, line in enumerate(lines):
        along = {e: math.prod(whole) // line.size * line.crossing(e) for e in sides[d]}
        crossing += np.array([along[e] for e in every[:, d].tolist()], dtype=np.int64)
    volume = every.prod(axis=1)
    best = np.where(volume <= rooms[0], steps[0] * crossing, FAR)
    inner = []  # by level above the leaves, of every box the best one inside it
    for step, room, num in zip([*steps[1:], 0], [*rooms[1:], math.inf], parts, strict=True):
        chosen = np.zeros(len(every), dtype=np.int64)
        cost = np.full(len(every), FAR)
        for k in np.flatnonzero(volume <= room).tolist():
            fits = (every[k] % every == 0).all(axis=1) & (volume[k] <= num * volume)
            chosen[k] = np.where(fits, best, FAR).argmin()
            if fits[chosen[k]] and best[chosen[k]] < FAR:
                cost[k] = best[chosen[k]] + step * crossing[k]
        best = cost
        inner.append(chosen)
    at = len(every) - 1  # the whole grid
    if best[at] >= FAR:
        return None
    boxes = [at]
    for chosen in reversed(inner):
        boxes.append(int(chosen[boxes[-1]]))
    return [tuple(every[k].tolist()) for k in reversed(boxes)]


def _laid_out(
    problem: MappingProblem, machine: LevelMachine, whole: Sequence[int], boxes: Sequence[Extents]
) -> IntArray:
    """Return the node of every task: boxes go to domains, both in their order, from the top."""
    at = np.stack(np.unravel_index(np.arange(problem.num_tasks), tuple(whole)), axis=1)
    keys = []  # which box of a level a task is in, inside the one around it
    for outer, inner in itertools.pairwise(reversed(boxes)):
        counts = [a // b for a, b in zip(outer, inner, strict=True)]
        within = at % outer // inner
        keys.append(np.ravel_multi_index(tuple(within.T), counts))
    used = np.flatnonzero(problem.capacity)
    nodes = np.zeros(problem.num_tasks, dtype=np.int64)
    path = _sibling_numbers(machine, used)
    place = {tuple(row): int(node) for row, node in zip(path.tolist(), used, strict=True)}
    for task, key in enumerate(np.stack(keys, axis=1).tolist()):
        nodes[task] = place[tuple(key)]
    return nodes


def _sibling_numbers(machine: LevelMachine, used: IntArray) -> IntArray:
    """Return by level, top first, the number of a used leaf's domain in the domain above."""
    columns = []
    for below, above in itertools.pairwise(machine.domain_of):
        pairs = np.unique(np.stack([above[used], below[used]], axis=1), axis=0)
        first = np.searchsorted(pairs[:, 0], pairs[:, 0])
        number = dict(zip(map(tuple, pairs.tolist()), range(len(pairs)), strict=True))
        ends = zip(above[used].tolist(), below[used].tolist(), strict=True)
        own = [number[pair] for pair in ends]
        columns.append((np.arange(len(pairs)) - first)[own])
    return np.stack(columns[::-1], axis=1)
