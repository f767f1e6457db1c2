"""Communication graphs of known patterns, and a slow check of what was recognised in one."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

import numpy as np

from topoplace.mapping.graph import TaskGraph, grid_of
from topoplace.mapping.recognition import Recognition

Messages = dict[tuple[int, int], int]
"""Bytes from one task to another."""


def graph_from(messages: Messages, num_tasks: int) -> TaskGraph:
    """Return the graph of some messages."""
    ends = np.array([*messages], dtype=np.int64).reshape(-1, 2)
    sizes = np.array([*messages.values()], dtype=np.int64)
    return TaskGraph(num_tasks, ends[:, 0], ends[:, 1], sizes)


def messages_of(graph: TaskGraph) -> Messages:
    """Return the messages of a graph, those of one task to one other added up."""
    found: Messages = {}
    for a, b, size in zip(graph.sources, graph.targets, graph.bytes, strict=True):
        found[int(a), int(b)] = found.get((int(a), int(b)), 0) + int(size)
    return found


def both_ways(pairs: Iterable[tuple[int, int]], size: int = 1) -> Messages:
    """Return a message each way between pairs."""
    return {ends: size for a, b in pairs for ends in ((a, b), (b, a))}


def product(
    shape: Sequence[int], links: Sequence[str], sizes: Sequence[int] | None = None
) -> Messages:
    """Return the messages of a product of lines, rings and all-to-alls, bytes by dimension."""
    found: Messages = {}
    cells = list(itertools.product(*map(range, shape)))
    number = {cell: k for k, cell in enumerate(cells)}
    for cell, (d, link) in itertools.product(cells, enumerate(links)):
        n = shape[d]
        there = {
            "line": [x for x in (cell[d] - 1, cell[d] + 1) if 0 <= x < n],
            "ring": [(cell[d] - 1) % n, (cell[d] + 1) % n],
            "all": [x for x in range(n) if x != cell[d]],
            "none": [],
        }[link]
        for x in there:
            other = (*cell[:d], x, *cell[d + 1 :])
            found[number[cell], number[other]] = 1 if sizes is None else sizes[d]
    return found


def permuted(messages: Messages, num_tasks: int, rng: np.random.Generator) -> Messages:
    """Return the messages between tasks numbered anew at random."""
    label = rng.permutation(num_tasks).tolist()
    return {(label[a], label[b]): size for (a, b), size in messages.items()}


def with_noise(
    messages: Messages, num_tasks: int, rng: np.random.Generator, share: float = 0.05
) -> Messages:
    """Return the messages and so many more, each less than a fifth of the smallest."""
    found, least = dict(messages), min(messages.values())
    for _ in range(int(share * len(messages))):
        a, b = (int(task) for task in rng.integers(num_tasks, size=2))
        if a != b and (a, b) not in messages and (b, a) not in messages:
            found[a, b] = int(rng.integers(1, max(2, least // 5)))
    return found


def require_exact(found: Recognition, graph: TaskGraph) -> None:
    """Assert that a pattern's partners are exactly the pairs that exchange more than the extras."""
    sent = messages_of(graph)
    pairs = {frozenset(ends) for ends in sent}
    extras = {frozenset((a, b)) for a, b, _ in found.extras.tolist()}
    told = {(a, b): size for a, b, size in found.extras.tolist()}
    assert told == {ends: size for ends, size in sent.items() if frozenset(ends) in extras}
    assert 20 * sum(told.values()) <= sum(sent.values())
    weight = {pair: sum(sent.get(ends, 0) for ends in _ways(pair)) for pair in pairs}
    kept = pairs - extras
    if extras:
        assert max(weight[pair] for pair in extras) < min(weight[pair] for pair in kept)
    tasks = found.tasks.tolist()
    assert len(set(tasks)) == len(tasks)
    assert {task for pair in kept for task in pair} == set(tasks)
    if not found.shape:
        return
    partners = _partners(found)
    assert {pair for pairs in partners.values() for pair in pairs} == kept
    assert sum(map(len, partners.values())) == len(kept)
    for key, own in partners.items():
        sizes = [weight[pair] for pair in own]
        least, most = found.bytes[key] if key >= 0 else found.diagonals[-key - 2]
        assert (least, most) == ((min(sizes), max(sizes)) if sizes else (0, 0))
    if found.application is not None:
        require_below(found, weight)


def require_below(found: Recognition, weight: dict[frozenset[int], int]) -> None:
    """Assert that the grid has no more bytes than the graph between any two tasks."""
    assert found.application is not None
    grid = grid_of(found.application).graph()
    below: dict[frozenset[int], int] = {}
    tasks = found.tasks.tolist()
    for a, b, size in zip(grid.sources, grid.targets, grid.bytes, strict=True):
        pair = frozenset((tasks[a], tasks[b]))
        below[pair] = below.get(pair, 0) + int(size)
    assert all(size <= weight[pair] for pair, size in below.items())
    if found.is_even and all(least % 2 == 0 for least, _ in found.diagonals):
        assert all(below[pair] == weight[pair] for pair in below)


def _ways(pair: frozenset[int]) -> list[tuple[int, int]]:
    a, b = sorted(pair)
    return [(a, b), (b, a)]


def _partners(found: Recognition) -> dict[int, set[frozenset[int]]]:
    """Return pairs by dimension, and by minus the number of moves of diagonals, cell by cell."""
    cells = np.array(list(itertools.product(*map(range, found.shape))))
    assert len(found.tasks) == len(cells)
    moves = np.zeros((len(cells),) * 2, dtype=np.int64)
    moved = np.zeros_like(moves)
    near = np.ones_like(moves, dtype=bool)
    for d, (size, link) in enumerate(zip(found.shape, found.links, strict=True)):
        step = np.abs(cells[:, None, d] - cells[None, :, d])
        steps = {"line": [1], "ring": [1, size - 1], "all": range(1, size), "none": []}[link]
        near &= np.isin(step, [0, *steps])
        moves += step > 0
        moved += d * (step > 0)
    partners: dict[int, set[frozenset[int]]] = {d: set() for d in range(len(found.shape))}
    kinds = [1, *(k for k, (_, most) in enumerate(found.diagonals, 2) if most)]
    for a, b in np.argwhere(np.triu(near & np.isin(moves, kinds))).tolist():
        key = int(moved[a, b] if moves[a, b] == 1 else -moves[a, b])
        pair = frozenset((int(found.tasks[a]), int(found.tasks[b])))
        partners.setdefault(key, set()).add(pair)
    return partners
