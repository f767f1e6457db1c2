"""From a communication graph to its pattern, verified pair by pair."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy.sparse.csgraph import breadth_first_order

from topoplace.mapping.graph import Rows, TaskGraph, rows_of
from topoplace.mapping.recognition.arrangement import Arrangement, arrangements_of, copies_of
from topoplace.mapping.recognition.factors import (
    ALL,
    BOXES,
    LINE,
    NONE,
    RING,
    Edges,
    along_axes,
    factors_of,
    parts_of,
)
from topoplace.mapping.recognition.pattern import Range, Recognition
from topoplace.snapshot.schema import GridApplication
from topoplace.types import BoolArray, IntArray

MOST_EXTRA = Fraction(1, 20)
"""Largest share of the bytes between tasks that are not partners in a pattern."""

MOST_CUTS = 48
"""Most sizes of messages at which small ones are left out on trial."""

CUT_WORK = 20_000_000
"""Messages looked at, over all trials, of large graphs."""

MOST_GRID_DIMS = 4
LARGEST = 1 << 53
"""Bytes of a message that documents of grids may have."""

MOST_PARTS = 1 << 12
"""Most parts that exchange nothing with each other and are factored one by one."""


def recognise(graph: TaskGraph) -> Recognition:
    """Return the pattern of a communication graph: a grid, all-to-all in parts, a tree, or none.

    Small messages outside a pattern are extras; they may have 5 % of the bytes (`MOST_EXTRA`) and
    have to be smaller than those of all partners, both ways together. A pattern is only claimed if
    its partners are exactly the pairs that exchange more than the extras. If there are several
    patterns, those count whose least bytes, over all pairs of a kind, account for the most bytes,
    within 5 %. Among these, patterns that are not copies of a smaller one are preferred, then grids
    that documents can have, then row-major numbering, then few dimensions.
    """
    pairs = _Pairs.of(graph)
    found: list[tuple[Recognition, int]] = []
    most, total = 0, graph.total_bytes
    for cut in _cuts(pairs):
        found += _with_cut(graph, pairs, cut)
        # copies may be one pattern without its smallest dimension
        whole = [worth for one, worth in found if one.kind != "groups"]
        most = max((worth for _, worth in found), default=0)
        if max(whole, default=0) >= (1 - MOST_EXTRA) * total:
            break
    if not found:
        return _none_of(graph)
    alike = [each for each in found if each[1] >= (1 - MOST_EXTRA) * most]

    def rank(each: tuple[Recognition, int]) -> tuple[bool, bool, bool, int, int]:
        one, worth = each
        whole, in_order = one.kind != "groups", one.numbering == "row-major"
        return whole, one.application is not None, in_order, -len(one.shape), worth

    return max(alike, key=rank)[0]


def _none_of(graph: TaskGraph) -> Recognition:
    empty = np.zeros(0, dtype=np.int64)
    extras = np.zeros((0, 3), dtype=np.int64)
    return Recognition(
        "none", graph.num_tasks, (), (), empty, "", (), (), extras, graph.total_bytes, None
    )


@dataclass(frozen=True)
class _Pairs:
    """Pairs of tasks that exchange bytes, each once, ``low < high``, ascending."""

    num: int
    low: IntArray
    high: IntArray
    weight: IntArray

    @classmethod
    def of(cls, graph: TaskGraph) -> _Pairs:
        rows = graph.exchanged
        upper = rows.owner < rows.other
        other = rows.other[upper].astype(np.int64)
        return cls(graph.num_tasks, rows.owner[upper], other, rows.weight[upper])

    def at(self, ends: tuple[IntArray, IntArray]) -> IntArray | None:
        """Return the places of pairs, each given once; None if one is missing or given twice."""
        keys = np.minimum(*ends) * self.num + np.maximum(*ends)
        known = self.low * self.num + self.high
        if not len(known) or len(np.unique(keys)) < len(keys):
            return None
        found = np.minimum(np.searchsorted(known, keys), len(known) - 1)
        return found if (known[found] == keys).all() else None


def _cuts(pairs: _Pairs) -> list[int]:
    """Return the least bytes to keep on trial: above the widest step, all, above the next ones."""
    weights = np.unique(pairs.weight)
    if not len(weights):
        return []
    most = max(4, min(MOST_CUTS, CUT_WORK // max(1, len(pairs.weight))))
    steps = weights[1:] / weights[:-1]
    widest = np.argsort(-steps, kind="stable")[: most - 1] + 1
    above: list[int] = weights[widest].tolist()
    return [*above[:1], int(weights[0]), *above[1:]]


def _with_cut(graph: TaskGraph, pairs: _Pairs, cut: int) -> Iterator[tuple[Recognition, int]]:
    """Yield patterns of the pairs that exchange at least `cut`, and the bytes they explain."""
    kept = pairs.weight >= cut
    ends = pairs.low[kept], pairs.high[kept]
    degree = np.bincount(np.concatenate(ends), minlength=pairs.num)
    if not _may_be(degree[degree > 0]):
        return
    tasks = np.flatnonzero(degree)
    edges = Edges(len(tasks), *(np.searchsorted(tasks, end) for end in ends))
    num, label = parts_of(edges)
    sizes = np.bincount(label)
    is_tree = num == 1 and edges.count == edges.num - 1 and int(edges.degree.max()) > 2
    if (is_tree or sizes.min() < sizes.max()) and _extra_share(pairs, kept) <= MOST_EXTRA:
        if is_tree:
            yield from _tree(graph, pairs, kept, edges, tasks)
        elif _is_complete(edges, sizes):
            grouped = tasks[np.argsort(label, kind="stable")]
            yield _loose(graph, pairs, kept, "groups", grouped, sizes=sizes.tolist())
    elif sizes.min() == sizes.max() and num <= MOST_PARTS:
        for arrangement in _arrangements(edges, tasks, pairs.weight[kept], num, label):
            yield from _described(graph, pairs, arrangement)


def _may_be(degree: IntArray) -> bool:
    """Return whether some pattern can have vertices of these degrees: most graphs cannot.

    A vertex inside a line has twice the partners of one at its end, and no other dimension makes a
    larger difference. A full stencil has 2 or 3 tasks along every dimension around a task, the
    edges of a tree are fewer than its vertices, and all-to-alls of k have k - 1 partners for each.
    """
    low, high = int(degree.min()), int(degree.max())
    if high <= 2 * low or int(degree.sum()) == 2 * (len(degree) - 1):
        return True
    counts = np.bincount(degree)
    there = np.flatnonzero(counts)
    return set((there + 1).tolist()) <= BOXES or not (counts[there] % (there + 1)).any()


def _extra_share(pairs: _Pairs, kept: BoolArray) -> Fraction:
    return Fraction(int(pairs.weight[~kept].sum()), int(pairs.weight.sum()))


def _arrangements(
    edges: Edges, tasks: IntArray, weight: IntArray, num: int, label: IntArray
) -> Iterator[Arrangement]:
    """Yield the arrangements of a graph, or of its parts if these are all equal."""
    if num == 1:
        yield from _arranged(edges, tasks, weight)
        return
    parts: list[list[Arrangement]] = []
    for part, own, chosen in _split_by(edges, label, num):
        found = list(_arranged(part, tasks[own], weight[chosen]))
        if not found:
            return
        parts.append(found)
    for choice in range(min(map(len, parts))):
        one = copies_of([found[choice] for found in parts])
        if one is not None:
            yield one


def _split_by(
    edges: Edges, label: IntArray, num: int
) -> Iterator[tuple[Edges, IntArray, IntArray]]:
    """Yield every part of a graph, and the numbers of its vertices and edges."""
    members = np.split(np.argsort(label, kind="stable"), np.cumsum(np.bincount(label))[:-1])
    number = np.empty(edges.num, dtype=np.int64)
    for own in members:
        number[own] = np.arange(len(own))
    owner = label[edges.low]
    order = np.argsort(owner, kind="stable")
    bounds = np.searchsorted(owner[order], np.arange(num + 1))
    for k, own in enumerate(members):
        mine = order[bounds[k] : bounds[k + 1]]
        yield Edges(len(own), number[edges.low[mine]], number[edges.high[mine]]), own, mine


def _arranged(edges: Edges, tasks: IntArray, weight: IntArray) -> Iterator[Arrangement]:
    factors, axes = factors_of(edges), np.ones(edges.count, dtype=bool)
    if factors is None:
        axes = along_axes(edges)
        skeleton = Edges(edges.num, edges.low[axes], edges.high[axes])
        if not axes.any() or parts_of(skeleton)[0] > 1:
            return
        factors = factors_of(skeleton)
    if factors is None:
        return
    least = []
    for factor in factors:
        own = axes & (factor.position[edges.low] != factor.position[edges.high])
        least.append(int(weight[own].min()))
    yield from arrangements_of(factors, tasks, least)


# ---- The bytes that a pattern explains, and whether it is exactly what the graph has -------------


def _described(
    graph: TaskGraph, pairs: _Pairs, laid: Arrangement
) -> Iterator[tuple[Recognition, int]]:
    """Yield the pattern of an arrangement and the bytes it explains, if the graph is that."""
    places = [pairs.at(laid.pairs(d)) for d in range(laid.num_dims) if laid.links[d] != NONE]
    if any(place is None for place in places):
        return
    axes = [place for place in places if place is not None]
    diagonals = _diagonals(pairs, laid, axes) if laid.is_grid and laid.num_dims > 1 else []
    inside = np.zeros(len(pairs.weight), dtype=bool)
    for place in (*axes, *diagonals):
        if inside[place].any():
            return
        inside[place] = True
    rest = pairs.weight[~inside]
    if _extra_share(pairs, inside) > MOST_EXTRA:
        return
    if len(rest) and int(rest.max()) >= int(pairs.weight[inside].min()):
        return
    ranges = iter([_range(pairs.weight[place]) for place in axes])
    bytes_ = tuple((0, 0) if link == NONE else next(ranges) for link in laid.links)
    across = tuple(_range(pairs.weight[place]) for place in diagonals)
    worth = sum(int(pairs.weight[p].min()) * len(p) for p in (*axes, *diagonals) if len(p))
    yield (
        Recognition(
            kind=_kind(laid),
            num_tasks=graph.num_tasks,
            shape=laid.shape,
            links=laid.links,
            tasks=laid.tasks,
            form=("full" if any(most for _, most in across) else "nearest") if laid.is_grid else "",
            bytes=bytes_,
            diagonals=across,
            extras=_messages(graph, pairs, ~inside),
            total_bytes=graph.total_bytes,
            application=_application(graph, laid, bytes_, across),
        ),
        worth,
    )


def _range(weights: IntArray) -> Range:
    return (int(weights.min()), int(weights.max())) if len(weights) else (0, 0)


def _kind(laid: Arrangement) -> str:
    if laid.links[0] == NONE:
        return "groups"
    if laid.is_grid:
        return "grid"
    return "all-to-all" if set(laid.links) == {ALL} else "mixed"


def _diagonals(pairs: _Pairs, laid: Arrangement, axes: Sequence[IntArray]) -> list[IntArray]:
    """Return by moves, from 2 on, the places of diagonal pairs; empty where they are no partners.

    Those of a number of moves are partners if all exist and exchange more than all extras do.
    """
    empty = np.zeros(0, dtype=np.int64)
    found = {}
    for moves in range(2, laid.num_dims + 1):
        place = pairs.at(laid.diagonal_pairs(moves))
        if place is not None and len(place):
            found[moves] = place
    while found:
        extra = np.ones(len(pairs.weight), dtype=bool)
        for place in (*axes, *found.values()):
            extra[place] = False
        most = int(pairs.weight[extra].max(initial=0))
        weak = [k for k, place in found.items() if int(pairs.weight[place].min()) <= most]
        if not weak:
            break
        weakest = min(weak, key=lambda k: int(pairs.weight[found[k]].min()))
        del found[weakest]
    return [found.get(moves, empty) for moves in range(2, laid.num_dims + 1)]


def _messages(graph: TaskGraph, pairs: _Pairs, chosen: BoolArray) -> IntArray:
    """Return the messages between the pairs chosen: source, target, bytes."""
    rows = rows_of(graph.num_tasks, graph.sources, graph.targets, graph.bytes)
    ends = rows.owner, rows.other.astype(np.int64)
    keys = np.minimum(*ends) * pairs.num + np.maximum(*ends)
    known = pairs.low * pairs.num + pairs.high
    mine = chosen[np.searchsorted(known, keys)] if len(known) else np.zeros(0, dtype=bool)
    return np.column_stack([*(end[mine] for end in ends), rows.weight[mine]])


def _application(
    graph: TaskGraph, laid: Arrangement, ranges: Sequence[Range], diagonals: Sequence[Range]
) -> GridApplication | None:
    """Return the grid with the least bytes of all neighbours; None if documents cannot have it."""
    copies = laid.links[0] == NONE
    if not set(laid.links[copies:]) <= {LINE, RING} or laid.num_dims > MOST_GRID_DIMS:
        return None
    if max((most for _, most in (*ranges, *diagonals)), default=0) > LARGEST:
        return None
    sent = rows_of(graph.num_tasks, graph.sources, graph.targets, graph.bytes)
    both = []
    for d, (least, _) in enumerate(ranges):
        low, high = laid.pairs(d)
        ways = [_least_sent(sent, a, b) for a, b in ((low, high), (high, low))]
        both.append([least - ways[1], ways[1]])
    full = any(least for least, _ in diagonals)
    return GridApplication(
        shape=list(laid.shape),
        periodic=[link == RING for link in laid.links],
        bytes=both,
        stencil="full" if full else "nearest",
        diagonal_bytes=[least // 2 for least, _ in diagonals] if full else [],
    )


def _least_sent(sent: Rows, sources: IntArray, targets: IntArray) -> int:
    """Return the least bytes of the messages between pairs, 0 if one of them has none."""
    known = sent.owner * sent.size + sent.other
    keys = sources * sent.size + targets
    at = np.minimum(np.searchsorted(known, keys), len(known) - 1)
    return int(np.where(known[at] == keys, sent.weight[at], 0).min(initial=LARGEST)) % LARGEST


# ---- Trees, and all-to-alls of several sizes -----------------------------------------------------


def _tree(
    graph: TaskGraph, pairs: _Pairs, kept: BoolArray, edges: Edges, tasks: IntArray
) -> Iterator[tuple[Recognition, int]]:
    """Yield a tree, from the lowest of the tasks with the most partners."""
    root = int(edges.degree.argmax())
    order, above = breadth_first_order(edges.matrix, root, directed=False)
    form = "star" if int(edges.degree[root]) == edges.count else ""
    if not form and _is_binomial(order.tolist(), above.tolist()):
        form = "binomial"
    yield _loose(graph, pairs, kept, "tree", tasks[order], form=form)


def _is_binomial(order: list[int], above: list[int]) -> bool:
    """Return whether below every vertex hang binomial trees of 1, 2, 4, ... vertices."""
    ranks: dict[int, list[int]] = {}
    for vertex in reversed(order):
        below = sorted(ranks.pop(vertex, ()))
        if below != list(range(len(below))):
            return False
        ranks.setdefault(above[vertex], []).append(len(below))
    return True


def _is_complete(edges: Edges, sizes: IntArray) -> bool:
    """Return whether all pairs of vertices of one part are edges."""
    return bool(2 * edges.count == (sizes * (sizes - 1)).sum())


def _loose(
    graph: TaskGraph,
    pairs: _Pairs,
    kept: BoolArray,
    kind: str,
    tasks: IntArray,
    form: str = "",
    sizes: Sequence[int] = (),
) -> tuple[Recognition, int]:
    """Return a pattern that is not an array: all pairs kept, and the bytes it explains."""
    weights = pairs.weight[kept]
    found = Recognition(
        kind=kind,
        num_tasks=graph.num_tasks,
        shape=(),
        links=(),
        tasks=tasks,
        form=form,
        bytes=(_range(weights),),
        diagonals=(),
        extras=_messages(graph, pairs, ~kept),
        total_bytes=graph.total_bytes,
        application=None,
        sizes=tuple(sizes),
    )
    return found, int(weights.min()) * len(weights)
