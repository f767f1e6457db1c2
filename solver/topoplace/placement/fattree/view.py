"""What tables and pictures show of placements on fat trees."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from topoplace.errors import number_of
from topoplace.placement.fattree.heuristics import place_of
from topoplace.placement.fattree.state import FatTreeState
from topoplace.report.domains import Boxes, numbered_boxes
from topoplace.report.view import View
from topoplace.result.base import Start
from topoplace.snapshot.state import Queued


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
        tree, free = self.state.tree, self.state.left[self.state.tree.families["hosts"]]

        def text(request: Queued) -> str:
            if free.sum() < request.nodes:
                return f"{number_of(request.nodes, 'node')} wanted, {int(free.sum()):,} free"
            if place_of(tree, self.state.left, request.nodes) is None:
                return "no place with links of its own was found in what is free"
            return self.outbid

        every = self.state.requests
        return {one.id: text(one) for one in every if one.id not in self.started}

    @property
    def tiles(self) -> Boxes:
        """A box for every pod, with one for each of its leaves."""
        tree = self.state.tree
        leaf_of = tree.leaf_of(np.arange(tree.num_nodes))
        return numbered_boxes(("pod", "leaf", "node"), np.array(tree.pod_of)[leaf_of], leaf_of)
