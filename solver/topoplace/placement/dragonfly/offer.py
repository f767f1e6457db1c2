"""What a dragonfly offers to the tasks of a mapping: nodes, and distances by minimal routes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from topoplace.errors import unknown_name
from topoplace.machine import MatrixMachine, parse_node_set
from topoplace.mapping.machines import Offer, refuse_costs
from topoplace.placement.dragonfly.problem import prepare
from topoplace.result.dragonfly import DragonflyModel, matrix_of, node_names
from topoplace.snapshot.schema import Snapshot
from topoplace.types import IntArray


class OfDragonfly(Offer):
    """A dragonfly offers the nodes that are there."""

    def machine(self, model: DragonflyModel) -> MatrixMachine:
        """Return the distances of nodes."""
        return matrix_of(model)

    def network(self, model: DragonflyModel, level_costs: Sequence[int] | None) -> MatrixMachine:
        """Return the distances of nodes; levels have no costs."""
        refuse_costs(level_costs)
        return matrix_of(model)

    def whole(self, model: DragonflyModel, node_class: str | None) -> tuple[IntArray, str]:
        """Return all nodes that are there."""
        missing = parse_node_set(model.missing, model.num_nodes, "machine.missing")
        return np.setdiff1d(np.arange(model.num_nodes), missing), ""

    def nodes(
        self, snapshot: Snapshot, job: str | None, node_class: str | None
    ) -> tuple[IntArray, str]:
        """Return the free nodes of a snapshot or those of a running job, and the words for them."""
        state = prepare(snapshot)
        if job is None:
            return np.flatnonzero(state.free), ""
        held = dict(zip((one.id for one in snapshot.running), state.held, strict=True))
        if job not in held:
            raise unknown_name(job, held, field="job")
        return np.sort(held[job]), f", job {job}"

    def names(self, model: DragonflyModel) -> Sequence[str]:
        """Return the names of the nodes, if they are known."""
        return node_names(model)
