"""What a dragonfly offers to the tasks of a mapping: nodes, and distances by minimal routes."""

from __future__ import annotations

from topoplace.machine import MatrixMachine
from topoplace.mapping.machines import OfNodes
from topoplace.result.dragonfly import DragonflyModel, matrix_of


class OfDragonfly(OfNodes):
    """A dragonfly offers the nodes that are there, with the distances between them."""

    def machine(self, model: DragonflyModel) -> MatrixMachine:
        """Return the distances of nodes."""
        return matrix_of(model)
