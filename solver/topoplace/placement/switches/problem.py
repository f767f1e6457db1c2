"""The allocation problem that methods solve: a prepared snapshot of a tree machine."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from topoplace.placement.switches.cost import CostModel
from topoplace.placement.switches.occupancy import Occupancy
from topoplace.snapshot.hierarchy_state import HierarchyRequest, HierarchyState
from topoplace.solving.registry import Options
from topoplace.types import IntArray


@dataclass(frozen=True)
class TreeProblem:
    """Which requests of a snapshot start, and on which nodes (docs/proofs/tree.md)."""

    state: HierarchyState
    kind: ClassVar[str] = "allocation"

    @property
    def requests(self) -> tuple[HierarchyRequest, ...]:
        """The queue, in its order."""
        return self.state.requests

    @cached_property
    def costs(self) -> CostModel:
        """The cost model of the machine."""
        return CostModel(self.state.machine)

    def occupancy(self, started: Iterable[tuple[int, IntArray]] = ()) -> Occupancy:
        """Return the state in which some requests, by number, run on some nodes besides."""
        state = self.state
        occupancy = Occupancy(self.costs, state.free[:, 0] > 0, state.busy, state.comm)
        for request_idx, nodes in started:
            occupancy.start(nodes, self.requests[request_idx].intensive)
        return occupancy


def problem_of(state: HierarchyState, options: Options) -> TreeProblem:
    """Return the problem of placing the queue; options do not change it."""
    return TreeProblem(state)
