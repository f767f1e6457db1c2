"""The claims of a mapping (docs/proofs/mapping.md), and its figures link by link."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

import numpy as np

from topoplace.certify.mapping.blocks import blocks_value, total_value
from topoplace.certify.mapping.graphs import cuts_value, distance_classes_value, star_value
from topoplace.certify.mapping.instance import Instance, read_instance
from topoplace.certify.mapping.levels import levels_value
from topoplace.certify.mapping.links import add_link_load, guests_of
from topoplace.certify.mapping.pairs import pairs_value
from topoplace.certify.mapping.pencils import Window, check_layout, check_optimum
from topoplace.certify.mapping.recognised import recognised_value
from topoplace.certify.mapping.tree import tree_value
from topoplace.certify.report import Claims, Problem, RefusedError
from topoplace.errors import InputError, number_of
from topoplace.machine import LevelMachine, Network, Torus
from topoplace.result import Fraction as FractionModel
from topoplace.result.mapping import MappingFigures, MappingResult, MappingSolution
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
}
"""What a certificate of every kind proves: hop-bytes that no mapping of the instance is below."""


class Mapping(Problem[MappingResult]):
    """A mapping, as the frame asks for it."""

    levels = (("hop-bytes", "min"),)
    searches = "beside"
    _instance: Instance

    def read(self) -> str:
        """Read the instance and return what it is."""
        self._instance = read_instance(self.result.instance)
        return f"{self._instance.machine.text}, {number_of(self._instance.num_tasks, 'task')}"

    def follow(self, claims: Claims) -> bool:
        """Add the claims about the solution."""
        instance, solution = self._instance, self.result.solution
        if solution is None:
            return True
        nodes = claims.add(
            "solution",
            lambda: read_nodes(instance, solution),
            lambda _: "every task has a node, none is too full",
        )
        if nodes is None:
            return False
        value = claims.add(
            "figures",
            lambda: check_figures(instance, nodes, solution.figures),
            lambda value: f"hop-bytes {value}, {number_of(solution.figures.hops, 'hop')}",
        )
        if value is None:
            return False
        self.values = [value]
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

    def bound(self, level_idx: int) -> tuple[int, str]:
        """Return the hop-bytes that the certificate proves of any mapping."""
        return self._proven, ""

    def beside(self, claims: Claims) -> None:
        """Add the claim about the largest link load."""
        guests = partial(guests_of, self._instance)
        add_link_load(claims, self.result, guests, lambda: self._proven)

    @cached_property
    def _proven(self) -> int:
        certificates = [level.certificate for level in self.result.levels]
        if len(certificates) != 1 or certificates[0] is None:
            raise RefusedError("there is no certificate")
        return VALUES[certificates[0].kind](self._instance, certificates[0])


def read_nodes(instance: Instance, solution: MappingSolution) -> IntArray:
    """Return the node of every task; refuse nodes that may not be used, or not by so many."""
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
    taken = np.bincount(nodes)
    fullest = int(taken.argmax())
    if taken[fullest] > instance.tasks_per_node:
        raise RefusedError(
            f"node {fullest} has {number_of(taken[fullest], 'task')}, at most "
            f"{instance.tasks_per_node} fit"
        )
    return nodes


def check_figures(instance: Instance, nodes: IntArray, claimed: MappingFigures) -> int:
    """Check all figures of a mapping, and return its hop-bytes."""
    found = figures_of(instance, nodes)
    for name, value in found:
        if getattr(claimed, name) != value:
            raise RefusedError(f"{name} is {getattr(claimed, name)}, the mapping has {value}")
    return found.hop_bytes


def figures_of(instance: Instance, nodes: IntArray) -> MappingFigures:
    """Return the figures of a mapping under dimension-ordered routing."""
    routers = nodes // instance.machine.nodes_per_router
    ends = routers[instance.sources], routers[instance.targets]
    return figures_between(instance.machine, *ends, instance.sizes)


def figures_between(
    machine: Network, sources: IntArray, targets: IntArray, sizes: IntArray
) -> MappingFigures:
    """Return the figures of messages between routers."""
    ends = sources, targets
    load: FractionModel | None = None
    levels: list[int] | None = None
    if machine.torus is not None:
        hops, largest = _walk(machine.torus, *ends, sizes)
        load = FractionModel(numerator=largest.numerator, denominator=largest.denominator)
    elif machine.levels is not None:
        hops, levels = _climb(machine.levels, *ends, sizes)
    else:
        hops = machine.hops(*ends)
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
