"""What tables and pictures show of placements on fat trees."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from topoplace.errors import number_of
from topoplace.placement.fattree.places import Room, shapes
from topoplace.placement.fattree.state import FatTreeState
from topoplace.report.domains import Boxes, numbered_boxes
from topoplace.report.view import View
from topoplace.result.base import Start


class FatTreeView(View):
    """Leaves in pods; a picture has a cell for every node."""

    state: FatTreeState

    @property
    def header(self) -> tuple[str, ...]:
        """The header of the table of what starts."""
        return ("request", "nodes", "hosts", "links")

    def row(self, start: Start) -> list[str]:
        """Return the row of a request that starts."""
        links = {one.request: one.links for one in self.result.solution.placements}
        return [start.request, f"{len(start.nodes):,}", start.hosts, links[start.request]]

    def reasons(self) -> Mapping[str, str]:
        """Return why requests wait, from the result alone."""
        waiting = (one for one in self.state.requests if one.id not in self.started)
        return {one.id: self._reason(one.nodes, int(self.state.free.sum())) for one in waiting}

    def _reason(self, nodes: int, free: int) -> str:
        if nodes > free:
            return f"{number_of(nodes, 'node')} wanted, {free:,} free"
        if Room(self.state.tree, self.state.left).first(shapes(self.state.tree, nodes)) is None:
            return "no place with links of its own was found in what is free"
        return self.outbid

    @property
    def tiles(self) -> Boxes:
        """A box for every pod, with one for each of its leaves."""
        tree = self.state.tree
        leaf_of = np.array(tree.leaf_of)
        return numbered_boxes(("pod", "leaf", "node"), np.array(tree.pod_of)[leaf_of], leaf_of)
