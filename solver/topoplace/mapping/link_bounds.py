"""Lower bounds on the largest link load of any mapping (docs/proofs/mapping.md, "Link loads").

A load is the bytes over a link in one direction, divided by its bandwidth. The bounds are for tasks
and objects: tasks have loads of 1, and routers hold as many as they have places.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np

from topoplace import clock
from topoplace.machine import Torus
from topoplace.machine.links import scattered_links
from topoplace.mapping.bounds.bisection import bisection, height
from topoplace.mapping.bounds.levels import inside_of_product, lines_of, orders_of
from topoplace.mapping.bounds.losses import directions_of, inside_units
from topoplace.mapping.graph import Rows, rows_of
from topoplace.mapping.problem import MappingProblem
from topoplace.result import Fraction as FractionModel
from topoplace.result.mapping import (
    CUT_LAYERS,
    Bisection,
    CutLoad,
    CutsCertificate,
    InsideCrossing,
    LinkLoad,
    MeanLoad,
    SpectralCrossing,
    TaskLoad,
)
from topoplace.solving import Bound, Outcome, stronger
from topoplace.types import IntArray

BISECTED = 1 << 10
"""Most tasks of a graph for which a bound on the bytes over any cut is sought."""

MOST_INSIDE = 1 << 14
"""Most tasks on one side of a cut for which the bytes inside them are bounded."""

SMALL_RING = 32
"""In rings up to this size any consecutive layers are a cut, in larger ones only half the ring."""

LARGEST = 1 << 50
"""Bytes times loads stay below it, so that floats distinguish the bytes per load of partners."""


class Cut(NamedTuple):
    """Some consecutive layers of a dimension, from `first` on, and all the others.

    `near` and `far` are the largest loads of the two sides, `width` the bandwidth of the links
    between, both ways together.
    """

    dimension: int
    first: int
    layers: int
    near: int
    far: int
    width: int


@dataclass(frozen=True)
class Loaded:
    """Tasks or objects that send messages on a torus or mesh, and the capacities of routers.

    Attributes
    ----------
    plain
        The problem.
    unit
        The number that the bytes over any link are a multiple of.
    """

    plain: MappingProblem
    unit: int

    @property
    def torus(self) -> Torus:
        """The machine."""
        return self.plain.torus

    @cached_property
    def links(self) -> tuple[IntArray, IntArray, IntArray]:
        """Dimension, lower end and bandwidth, both ways, of the links that messages may take.

        In a ring of two, no message goes the negative way.
        """
        torus = self.torus
        used = scattered_links(torus, np.flatnonzero(self.plain.capacity).tolist())
        pairs = zip(torus.shape, torus.wrap, torus.bandwidth, strict=True)
        widths = np.array([b if n == 2 and wraps else 2 * b for n, wraps, b in pairs])
        dims, lower = np.divmod(used, torus.num_routers)
        return dims, lower, widths[dims]

    def cuts(self) -> Iterator[Cut]:
        """Yield the layers before each plane of a line, and some layers of every ring."""
        torus, (dims, lower, widths) = self.torus, self.links
        for d, size in enumerate(torus.shape):
            of = dims == d
            along = np.bincount(torus.coordinates[lower[of], d], widths[of], size).astype(np.int64)
            room = self.plain.room.reshape(torus.shape)
            room = np.moveaxis(room, d, 0).reshape(size, -1).sum(axis=1)
            windows = [(0, layers) for layers in range(1, size)]
            if torus.wrap[d]:
                shortest = 1 if size <= SMALL_RING else size // 2
                lengths = range(shortest, size // 2 + 1)
                windows = [(first, layers) for first in range(size) for layers in lengths]
            for first, layers in windows:
                inside = (np.arange(size) - first) % size < layers
                near, far = (
                    min(self.plain.total_load, int(room[side].sum())) for side in (inside, ~inside)
                )
                width = int(along[first - 1] + along[(first + layers - 1) % size])
                if width:
                    yield Cut(d, first, layers, near, far, width)

    def out_of(self) -> IntArray:
        """Return the bandwidth of the links that messages may take out of every router."""
        torus, (dims, lower, widths) = self.torus, self.links
        bandwidth = np.array(torus.bandwidth)[dims]
        out = np.zeros(torus.num_routers, dtype=np.int64)
        np.add.at(out, lower, bandwidth)
        both = widths > bandwidth
        stride, size = np.array(torus.strides)[dims], np.array(torus.shape)[dims]
        at = lower // stride % size
        np.add.at(out, (lower + ((at + 1) % size - at) * stride)[both], bandwidth[both])
        return out


def loaded(problem: MappingProblem) -> Loaded | None:
    """Return a problem in the form of the bounds; None if there is nothing to bound.

    That is the case without links or messages, or with a dimension that is too large.
    """
    machine = problem.machine.torus
    if machine is None or max(machine.shape) > CUT_LAYERS:
        return None
    unit = int(np.gcd.reduce(problem.graph.bytes))
    found = Loaded(problem, int(np.gcd.reduce(problem.trees.bytes, initial=unit)))
    sent = problem.graph.num_messages or problem.listed_trees
    return found if sent and len(found.links[0]) else None


# ---- Quick bounds: the mean, single tasks, and cuts of grids -------------------------------------


def quick_bound(problem: MappingProblem) -> Bound | None:
    """Return the best bound by single tasks, and by cuts of grids."""
    view = loaded(problem) if problem.graph.num_messages else None
    return None if view is None else stronger(task_bound(view), inside_bound(view))


def link_load_of(problem: MappingProblem, outcome: Outcome) -> LinkLoad | None:
    """Return the best known bound, or the mean, as results have it; None if there is none.

    If the method was ended early, the quick bound counts as well, if there was time for it.
    """
    view = loaded(problem)
    if view is None:
        return None
    known = outcome.link_load or vars(problem).get("link_floor")
    if known is None and not outcome.time_limit_hit:
        known = problem.link_floor
    best = stronger(mean_bound(view, next(iter(outcome.bounds), None)), known)
    if best is None or best.certificate is None or best.value <= 0:
        return None
    value = reachable(view, Fraction(best.value))
    return LinkLoad(bound=FractionModel.of(value), certificate=best.certificate)


def reachable(view: Loaded, value: Fraction) -> Fraction:
    """Return the least possible link load that is no less: bytes come in multiples of a unit."""
    unit = view.unit
    used = {view.torus.bandwidth[d] for d in np.unique(view.links[0]).tolist()}
    return min(Fraction(unit * -(-value * width // unit), width) for width in used)


def mean_bound(view: Loaded, hop_bytes: Bound | None) -> Bound | None:
    """Return the hop-bytes per bandwidth of all links: each hop of a byte takes one of these."""
    if hop_bytes is None or hop_bytes.certificate is None:
        return None
    return Bound(Fraction(int(hop_bytes.value), int(view.links[2].sum())), MeanLoad())


def task_bound(view: Loaded) -> Bound | None:
    """Return the bytes that some task must send, or get, over the links of its router."""
    graph, num = view.plain.graph, view.plain.num_tasks
    usable = view.plain.capacity > 0
    rooms, which = np.unique(view.plain.room[usable], return_inverse=True)
    widths = np.zeros(len(rooms), dtype=np.int64)
    np.maximum.at(widths, which, view.out_of()[usable])
    best: Bound | None = None
    for ends in ((graph.sources, graph.targets), (graph.targets, graph.sources)):
        rows = rows_of(num, *ends, graph.bytes)
        if not len(rows.weight):
            return None
        if int(rows.weight.max()) * max(1, int(view.plain.loads.max())) >= LARGEST:
            continue
        left = [leaving(rows, view.plain.loads, room) for room in rooms.tolist()]
        least = np.min([x / width for x, width in zip(left, widths.tolist(), strict=True)], axis=0)
        task = int(least.argmax())
        value = min(
            Fraction(int(x[task]), width) for x, width in zip(left, widths.tolist(), strict=True)
        )
        best = stronger(best, Bound(value, TaskLoad(task=task)))
    return best


def leaving(rows: Rows, loads: IntArray, room: int) -> IntArray:
    """Return the bytes of every task with partners that do not fit on its router with it.

    Those with the most bytes per load stay, including a fraction of the last one that fits.
    """
    weight, load = rows.weight, loads[rows.other]
    density = np.where(load > 0, weight / np.maximum(load, 1), np.inf)
    order = np.lexsort((-density, rows.owner))
    weight, load = weight[order], load[order]
    ends = np.cumsum(load)
    begins = np.concatenate([[0], ends])[rows.first[:-1]]
    before = ends - load - np.repeat(begins, rows.degree)
    fits = np.clip(room - np.repeat(loads, rows.degree) - before, 0, load)
    stays = np.where(load > 0, weight * fits // np.maximum(load, 1), weight)
    sums = np.concatenate([[0], np.cumsum(weight - stays)])
    return np.asarray(np.diff(sums[rows.first]), dtype=np.int64)


def inside_bound(view: Loaded) -> Bound | None:
    """Return the least bytes over a cut, by the bytes inside the sets of tasks on its sides."""
    best: Bound | None = None
    cuts = [cut for cut in view.cuts() if max(cut.near, cut.far) <= MOST_INSIDE]
    if not cuts:
        return None
    limit = max(max(cut.near, cut.far) for cut in cuts)
    total = view.plain.graph.total_bytes
    for order, psi in _insides(view.plain, limit):
        for cut in cuts:
            near = np.arange(view.plain.total_load - cut.far, cut.near + 1)
            crossing = total - int((psi[near] + psi[view.plain.total_load - near]).max())
            if best is None or Fraction(crossing, cut.width) > best.value:
                proof = InsideCrossing(order=list(order))
                best = Bound(Fraction(crossing, cut.width), _document(cut, proof))
    return best


def _insides(problem: MappingProblem, limit: int) -> Iterator[tuple[tuple[int, ...], IntArray]]:
    """Yield limits of the bytes inside sets of tasks, and how lines were put together."""
    if problem.grid is not None:
        found = directions_of(problem.grid)
        yield (), found.unit * inside_units(found, limit)
        return
    lines = lines_of(problem)
    for order in [] if lines is None else orders_of(lines):
        assert lines is not None
        psi = inside_of_product([lines[k] for k in order], limit)
        if psi is not None:
            yield order, psi


def _document(cut: Cut, crossing: InsideCrossing | SpectralCrossing) -> CutLoad:
    return CutLoad(dimension=cut.dimension, first=cut.first, layers=cut.layers, crossing=crossing)


# ---- Cuts of any graph ---------------------------------------------------------------------------


def bisected(
    problem: MappingProblem,
    seed: int = 0,
    time_limit: float | None = None,
    cuts: Bound | None = None,
) -> Bound | None:
    """Return the least bytes over some cut, per bandwidth; None if too large, or without cuts.

    With `cuts`, a bound of the hop-bytes of objects, by its multipliers. Grids do not use it, as
    the bound by sets of their tasks is stronger.
    """
    view, rows = loaded(problem), problem.graph.exchanged
    if view is None or not len(rows.weight):
        return None
    found = [*view.cuts()]
    most = min((uneven(view, cut) for cut in found), default=0)
    # with messages once per node, those of the bound are of other rows
    known = None if cuts is None or problem.trees.by_node.any() else cuts.certificate
    solved: Bisection | None = known if isinstance(known, CutsCertificate) else None
    if solved is None:
        if view.plain.grid is not None or not found or not view.plain.total_load:
            return None
        if len(view.plain.loads) > BISECTED:
            return None
        solved = bisection(rows, view.plain.loads, most, seed=seed, stop=clock.deadline(time_limit))
    if solved is None:
        return None
    parts = {name: getattr(solved, name) for name in Bisection.model_fields}
    proof, best = SpectralCrossing(**parts), None
    whole = 4 * solved.scale * rows.unit
    for cut in found:
        over = height(solved, len(view.plain.loads), uneven(view, cut))
        crossing = rows.unit * max(0, -(-over // whole))
        best = stronger(best, Bound(Fraction(crossing, cut.width), _document(cut, proof)))
    return best


def uneven(view: Loaded, cut: Cut) -> int:
    """Return the most by which the loads on the sides of a cut can differ."""
    return 2 * max(cut.near, cut.far) - view.plain.total_load
