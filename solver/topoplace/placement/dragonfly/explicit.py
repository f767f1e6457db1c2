"""The model of a placement on a dragonfly: that of a hierarchy, and the links between groups."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from topoplace.explicit.levels import LevelsModel
from topoplace.explicit.levels import model_of as on_levels
from topoplace.machine import parse_node_set
from topoplace.placement.dragonfly.problem import DragonflyProblem
from topoplace.placement.hierarchy.problem import Placed, Started
from topoplace.result.placement import NodesPlacement
from topoplace.types import IntArray

if TYPE_CHECKING:
    from topoplace.explicit.chosen import Chosen


@dataclass(eq=False)
class LinkedModel(LevelsModel):
    """A placement on a dragonfly and its model.

    Attributes
    ----------
    both
        By request and two groups, the variable for nodes in both.
    """

    problem: DragonflyProblem
    both: dict[tuple[int, int, int], int] = field(default_factory=dict)

    def build(self) -> None:
        """Add variables and rows; no links between two groups are of two requests."""
        super().build()
        model, taken = self.model, self.problem.dragonfly.taken_pairs
        by_pair: dict[tuple[int, int], list[int]] = defaultdict(list)
        for q, request in enumerate(self.problem.requests):
            own = sorted(d for one, _, level, d in self.used if (one, level) == (q, 0))
            name = model.variables[self.start[q]]
            for g, h in itertools.combinations(own, 2) if self.problem.uses_links(request) else ():
                v = self.both[q, g, h] = model.variable(f"{name}_g{g}_g{h}")
                ends = dict.fromkeys((self.used[q, 0, 0, d] for d in (g, h)), -1)
                model.add(f"both_{model.variables[v]}", ends | {v: 1}, ">=", -1)
                by_pair[g, h].append(v)
        for (g, h), variables in by_pair.items():
            limit = int(not taken[g, h])
            model.add(f"links_g{g}_g{h}", dict.fromkeys(variables, 1), "<=", limit)

    def values_at(self, started: Started) -> IntArray:
        """Return the values of the variables in a placement."""
        values = super().values_at(started)
        for (q, g, h), v in self.both.items():
            values[v] = min(values[self.used[q, 0, 0, d]] for d in (g, h))
        return values

    def placed(self, placement: NodesPlacement) -> Placed:
        """Return where a request of a solution is."""
        host_of = self.problem.dragonfly.host_of
        nodes = parse_node_set(placement.nodes, len(host_of), "nodes")
        return (Counter(host_of[nodes].tolist()),)


def model_of(own: Chosen) -> LevelsModel:
    """Return the model of a level of a placement, with the solution if a result has one."""
    return on_levels(own, LinkedModel)
