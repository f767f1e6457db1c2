"""The claims of a placement on a dragonfly (docs/proofs/dragonfly.md)."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from typing import Any

from topoplace.certify.dragonfly.instance import DragonflyInstance, pairs_of, read_dragonfly
from topoplace.certify.dragonfly.oracle import DragonflyOracle
from topoplace.certify.hierarchy.check import HierarchyPlacements
from topoplace.certify.hierarchy.instance import Asked, Place
from topoplace.certify.hierarchy.oracle import HierarchyOracle
from topoplace.certify.hierarchy.rows import Rows
from topoplace.certify.report import Claims, RefusedError
from topoplace.errors import number_of
from topoplace.machine.hostlist import NodeLists
from topoplace.result import Interference
from topoplace.result.placement import NodesPlacement


class DragonflyPlacements(HierarchyPlacements):
    """A placement on a dragonfly: one on the hierarchy that it is read as, and its links."""

    result: Any

    @cached_property
    def _instance(self) -> DragonflyInstance:
        return read_dragonfly(self.result.instance)

    def read(self) -> str:
        """Read the instance and return what it is."""
        if self.result.limits.interference is Interference.TOLERANT:
            raise RefusedError("interference is tolerant, which means nothing on a dragonfly")
        own, about = self._instance, super().read()
        nodes = number_of(own.per_group * own.num_groups, "node")
        return f"{nodes} in {number_of(own.num_groups, 'group')}; {about}"

    def follow(self, claims: Claims) -> bool:
        """Add the claims about the solution."""
        holds = super().follow(claims)
        if holds and self.result.solution is not None:
            claims.add("links", self._require_links)
        return holds

    def _started(self) -> list[tuple[Asked, Place]]:
        """Return who starts where; nodes are free, and no two jobs have the same."""
        self._left = {*self._instance.open}
        return super()._started()

    def _place(self, asked: Asked, own: NodesPlacement, lists: NodeLists) -> Place:
        total = self._instance.per_group * self._instance.num_groups
        nodes = {*lists.numbers(own.nodes, total).tolist()}
        if not nodes <= self._left:
            raise RefusedError(f"node {min(nodes - self._left)} is not free")
        self._left -= nodes
        return [Counter(node // self._instance.per_host for node in nodes)]

    def _require_links(self) -> str:
        """Raise if two jobs use the links between two groups against the rule."""
        if self.result.limits.interference is Interference.OFF:
            return "interference off: jobs may share links"
        taken = {*self._instance.taken}
        for asked, [hosts] in self._started():
            if asked.silent:
                continue
            nodes = (host * self._instance.per_host for host in hosts)
            own = pairs_of(nodes, self._instance.per_group)
            if own & taken:
                pair = " and ".join(map(str, min(own & taken)))
                raise RefusedError(f"{asked.id} shares the links between groups {pair}")
            taken |= own
        pairs = number_of(len(taken), "pair")
        return f"no link between groups has two jobs; {pairs} of groups in use"

    @cached_property
    def oracle(self) -> HierarchyOracle:
        """The oracle of groups and routers, and of links between groups under the strict rule."""
        is_strict = self.result.limits.interference is Interference.STRICT
        kind = DragonflyOracle if is_strict else HierarchyOracle
        return kind(Rows(self._instance), self._instance.queue)
