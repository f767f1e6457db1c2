"""The claims of a mapping (docs/proofs/mapping.md), and its figures link by link."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from topoplace.certify.mapping.blocks import blocks_value, total_value
from topoplace.certify.mapping.few_moves import few_moves_value
from topoplace.certify.mapping.graphs import cuts_value, distance_classes_value, star_value
from topoplace.certify.mapping.instance import Instance, read_instance
from topoplace.certify.mapping.levels import levels_value
from topoplace.certify.mapping.links import add_link_load
from topoplace.certify.mapping.objects import (
    enumerated,
    shares_value,
    spread_value,
    tree_hops,
)
from topoplace.certify.mapping.pairs import pairs_value
from topoplace.certify.mapping.pencils import Window, check_layout, check_optimum
from topoplace.certify.mapping.recognised import recognised_value
from topoplace.certify.mapping.routes import routes_value
from topoplace.certify.mapping.spread import gone_through, spans_of, spread_proven
from topoplace.certify.mapping.tree import tree_value
from topoplace.certify.report import Claims, Number, Problem, RefusedError
from topoplace.errors import InputError, number_of
from topoplace.machine import LevelMachine, Torus
from topoplace.result import Fraction as FractionModel
from topoplace.result.mapping import (
    EnumerationCertificate,
    MappingFigures,
    MappingResult,
    MappingSolution,
    SpreadCertificate,
)
from topoplace.snapshot.schema import GridApplication, ParallelismApplication
from topoplace.types import IntArray

VALUES: dict[str, Callable[[Instance, Any], int]] = {
    "total": total_value,
    "blocks": blocks_value,
    "star": star_value,
    "distance-classes": distance_classes_value,
    "cuts": cuts_value,
    "recognised": recognised_value,
    "pairs": pairs_value,
    "tree": tree_value,
    "levels": levels_value,
    "routes": routes_value,
}
"""What a certificate of every kind proves of tasks: hop-bytes that no mapping is below."""

LOADED: dict[str, Callable[[Instance, Any], int]] = {
    "shares": shares_value,
    "cuts": cuts_value,
    "routes": routes_value,
}
"""The same of objects under a cap."""


class Mapping(Problem[MappingResult]):
    """A mapping, as the frame asks for it."""

    searches = "beside"
    _instance: Instance

    @property
    def levels(self) -> Sequence[tuple[str, str]]:
        """Name and sense of every level: a spread if there are groups, a load with a cap."""
        given = self.result.instance
        found = [("spread", "min")] if given.spread else []
        found.append(("hop-bytes", "min"))
        return found if given.cap is None else [*found, ("largest-load", "min")]

    @property
    def _hop_level(self) -> int:
        return 1 if self.result.instance.spread else 0

    def read(self) -> str:
        """Read the instance and return what it is."""
        given, read = self.result.instance, read_instance(self.result.instance)
        self._instance = read
        what = number_of(read.num_tasks, "object" if read.balanced else "task")
        usable, every = int(np.count_nonzero(read.usable)), read.machine.num_nodes
        on = (
            number_of(every, "node")
            if usable == every
            else f"{usable:,} of {number_of(every, 'node')}"
        )
        on = f"{read.machine.text}, {on}"
        if given.tasks_per_node is not None:
            on += f", at most {number_of(given.tasks_per_node, 'task')} on each"
        if given.moves is not None:
            on += f"; at most {number_of(given.moves.most, 'task')} moved from a mapping"
        size = number_of(sum(read.sizes.tolist()), "byte")
        sent = f"{number_of(len(read.sizes), 'message')} of {size}"
        return f"{on}; {_text_of(given.application)}{what}, {sent}"

    def follow(self, claims: Claims) -> bool:
        """Add the claims about the solution."""
        instance, solution = self._instance, self.result.solution
        if solution is None:
            return True
        nodes = claims.add(
            "solution",
            lambda: read_nodes(instance, solution),
            lambda _: "every task has a node, none is too full, who is fixed stays",
        )
        if nodes is None:
            return False
        values = claims.add(
            "figures",
            lambda: check_figures(instance, nodes, solution.figures),
            lambda found: ", ".join(
                f"{name} {value}" for (name, _), value in zip(self.levels, found, strict=True)
            ),
        )
        if values is None:
            return False
        self.values = values
        value = values[self._hop_level]
        window: Window | None = None
        confirmed = False
        layout, optimum = solution.layout, solution.optimum
        if layout is not None:
            window = claims.add(
                "layout",
                lambda: check_layout(instance, nodes, layout),
                lambda window: (
                    "the mapping is its layout, "
                    f"{number_of(len(window.usable), 'pencil')} of {window.levels} in "
                    f"depth {window.depth}"
                ),
            )
        if optimum is not None:
            # pencil placements are mappings: what holds of all of these, holds of them
            with suppress(RefusedError, InputError, OverflowError):
                confirmed = optimum.bound <= self._proven
            claims.add(
                "optimum",
                lambda: check_optimum(instance, window, value, optimum),
                lambda text: "by the certificate of any mapping" if confirmed else text,
                by_search=not confirmed,
            )
        return True

    def bound(self, level_idx: int) -> tuple[Number, str]:
        """Return what the certificate of a level proves of any mapping."""
        certificate = self.result.levels[level_idx].certificate
        if isinstance(certificate, EnumerationCertificate):
            return self._enumerated(level_idx, certificate)
        if level_idx == self._hop_level:
            return self._proven, ""
        if level_idx < self._hop_level:
            application = self.result.instance.application
            return spread_proven(self._instance, certificate, application), ""
        if not isinstance(certificate, SpreadCertificate):
            raise RefusedError("the certificate is none of this level")
        return spread_value(self._instance), ""

    def beside(self, claims: Claims) -> None:
        """Add the claim about the largest link load."""
        add_link_load(claims, self.result, self._instance, lambda: self._proven)

    @cached_property
    def _proven(self) -> int:
        if len(self.result.levels) != len(self.levels):
            raise RefusedError("there are other levels")
        certificate = self.result.levels[self._hop_level].certificate
        if isinstance(certificate, EnumerationCertificate):
            return self._enumerated(self._hop_level, certificate)[0]
        if certificate is None:
            raise RefusedError("there is no certificate")
        known = LOADED if self._instance.balanced else {}
        known = known | (VALUES if self._instance.of_tasks else {})
        known = known | ({} if self._instance.moves is None else {"few-moves": few_moves_value})
        if certificate.kind not in known:
            raise RefusedError("the certificate is none of this level")
        return known[certificate.kind](self._instance, certificate)

    def _enumerated(self, level_idx: int, certificate: EnumerationCertificate) -> tuple[int, str]:
        claimed = self.result.levels[level_idx].bound
        instance = self._instance
        if claimed is None or not (instance.balanced or instance.moves or instance.kinds):
            raise RefusedError("a certificate without a bound, or without a cap or limit of moves")
        if instance.kinds:
            most, fewer = claimed - 1, None
            if level_idx == self._hop_level:
                reached = self.values[0]
                if reached is None:
                    raise RefusedError("a bound of hop-bytes without a mapping")
                most, fewer = int(reached), claimed
            return claimed, f": {gone_through(instance, certificate, most, fewer)}"
        hops, load = claimed, None
        if level_idx != self._hop_level:
            reached = self.values[self._hop_level]
            if reached is None:
                raise RefusedError("a bound of the largest load without a mapping")
            hops, load = int(reached) + 1, claimed - 1
        return claimed, f": {enumerated(self._instance, certificate, hops, load)}"


def _text_of(application: Any) -> str:
    """Return the shape of a grid or training job as the document has it, to begin a list."""
    if isinstance(application, GridApplication):
        letters = "xyzt"[: len(application.shape)]
        around = [at for at, wraps in zip(letters, application.periodic, strict=True) if wraps]
        sizes = [dict.fromkeys(map(str, ways)) for ways in application.bytes]
        text = f"grid {'x'.join(map(str, application.shape))}, stencil {application.stencil}, "
        text += f"periodic {''.join(around) or 'nowhere'}"
        return f"{text}, bytes {','.join(map('/'.join, sizes))}, "
    if isinstance(application, ParallelismApplication):
        axes = (f"{one.name} {one.size} ({one.pattern}, {one.bytes:,})" for one in application.axes)
        return f"training job {' x '.join(axes)}, "
    return ""


def read_nodes(instance: Instance, solution: MappingSolution) -> IntArray:
    """Return the node of every task; refuse nodes that are unusable or have too many tasks."""
    if len(solution.nodes) != instance.num_tasks:
        raise RefusedError(
            f"{number_of(len(solution.nodes), 'node')} for {number_of(instance.num_tasks, 'task')}"
        )
    highest = max(solution.nodes)
    if highest >= instance.machine.num_nodes:
        raise RefusedError(f"the machine has no node {highest}")
    nodes = np.asarray(solution.nodes, dtype=np.int64)
    outside = np.flatnonzero(~instance.usable[nodes])
    if len(outside):
        task = int(outside[0])
        raise RefusedError(f"task {task} is on node {nodes[task]}, which is not in the set")
    for one, node in instance.fixed.items():
        if nodes[one] != node:
            raise RefusedError(f"object {one} is on node {nodes[one]}, fixed to node {node}")
    moved = num_moved(instance, nodes)
    if instance.moves is not None and moved is not None and moved > instance.moves[1]:
        raise RefusedError(f"{number_of(moved, 'task')} moved, at most {instance.moves[1]} may")
    for group, (taken, width) in loads_of(instance, nodes).items():
        if taken > instance.cap * width:
            what = "router" if instance.pooled else "node"
            of = "a load of " if instance.balanced else ""
            has = f"{of}{taken if of else number_of(taken, 'task')}"
            raise RefusedError(f"{what} {group} has {has}, at most {instance.cap * width} fit")
    return nodes


def num_moved(instance: Instance, nodes: IntArray) -> int | None:
    """Return how many tasks are on another node than before; None where all may be."""
    return None if instance.moves is None else sum((nodes != instance.moves[0]).tolist())


def loads_of(instance: Instance, nodes: IntArray) -> dict[int, tuple[int, int]]:
    """Return the load of every node, or router with pooled caps, in use, and its nodes."""
    groups, widths = instance.groups(nodes)
    sums = np.zeros(len(widths), dtype=np.int64)
    np.add.at(sums, groups, instance.loads)  # all loads together fit
    used = np.unique(groups)
    pairs = zip(sums[used].tolist(), widths[used].tolist(), strict=True)
    return dict(zip(used.tolist(), pairs, strict=True))


def check_figures(instance: Instance, nodes: IntArray, claimed: MappingFigures) -> list[int]:
    """Check all figures of a mapping, and return its value on every level."""
    found = figures_of(instance, nodes)
    for name, value in found:
        if getattr(claimed, name) != value:
            raise RefusedError(f"{name} is {getattr(claimed, name)}, the mapping has {value}")
    spread = None if found.spans is None else max(found.spans)
    every = spread, found.hop_bytes, found.largest_load
    return [value for value in every if value is not None]


def figures_of(instance: Instance, nodes: IntArray) -> MappingFigures:
    """Return the figures of a mapping under dimension-ordered routing."""
    machine, routers = instance.machine, nodes // instance.machine.nodes_per_router
    sent = routers[instance.sources], routers[instance.targets], instance.sizes
    parts = zip(sent, *([tree_hops(instance, nodes)] if instance.trees else []), strict=True)
    sources, targets, sizes = (np.concatenate(part) for part in parts)
    fullest, used = None, None
    if instance.balanced:
        fullest = max(-(-taken // width) for taken, width in loads_of(instance, nodes).values())
        used = len(np.unique(nodes))
    load: FractionModel | None = None
    levels: list[int] | None = None
    if machine.torus is not None:
        hops, largest = _walk(machine.torus, sources, targets, sizes)
        load = FractionModel(numerator=largest.numerator, denominator=largest.denominator)
    elif machine.levels is not None:
        hops, levels = _climb(machine.levels, sources, targets, sizes)
    else:
        hops = machine.hops(sources, targets)
    leaving = hops > 0
    return MappingFigures(
        hop_bytes=sum((hops * sizes).tolist()),
        hops=sum(hops.tolist()),
        off_router_messages=int(np.count_nonzero(leaving)),
        off_router_bytes=sum(sizes[leaving].tolist()),
        max_hops=int(hops.max(initial=0)),
        histogram=np.bincount(hops, minlength=1).tolist(),
        max_link_load=load,
        level_bytes=levels,
        largest_load=fullest,
        used_nodes=used,
        spans=spans_of(instance, routers) if instance.kinds else None,
        moved=num_moved(instance, nodes),
    )


def _climb(
    machine: LevelMachine, sources: IntArray, targets: IntArray, sizes: IntArray
) -> tuple[IntArray, list[int]]:
    """Return what a byte of every message costs, and the bytes by the level where they turn."""
    costs, sums = np.zeros(len(sizes), dtype=np.int64), []
    climbing = np.arange(len(sizes))
    for cost, domain in zip([0, *machine.costs.tolist()], machine.domain_of, strict=True):
        costs[climbing] = cost
        turns = domain[sources[climbing]] == domain[targets[climbing]]
        sums.append(sum(sizes[climbing[turns]].tolist()))
        climbing = climbing[~turns]
    return costs, sums


def _walk(
    torus: Torus, sources: IntArray, targets: IntArray, sizes: IntArray
) -> tuple[IntArray, Fraction]:
    """Return the links every message takes, and the largest load of a link in one direction.

    No load is above the bytes of all messages, which fit (`Instance`).
    """
    hops = np.zeros(len(sizes), dtype=np.int64)
    at = torus.coordinates[sources]
    goal = torus.coordinates[targets]
    strides = np.asarray(torus.strides)
    heaviest = Fraction(0)
    for d, n in enumerate(torus.shape):
        ahead = goal[:, d] - at[:, d]
        if torus.wrap[d]:
            ahead %= n
            ahead[2 * ahead > n] -= n
        for way in (1, -1):
            loads = np.zeros(torus.num_routers, dtype=np.int64)
            moving = np.flatnonzero(ahead * way > 0)
            while len(moving):
                np.add.at(loads, at[moving] @ strides, sizes[moving])
                at[moving, d] = (at[moving, d] + way) % n
                hops[moving] += 1
                ahead[moving] -= way
                moving = moving[ahead[moving] != 0]
            heaviest = max(heaviest, Fraction(int(loads.max()), torus.bandwidth[d]))
    return hops, heaviest
