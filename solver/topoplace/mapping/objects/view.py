"""What tables and pictures show of mappings of objects."""

from __future__ import annotations

from typing import Any

from topoplace.errors import number_of
from topoplace.mapping.problem import MappingProblem
from topoplace.mapping.view import MappingView


class ObjectsView(MappingView):
    """Objects with loads on routers."""

    @property
    def problem(self) -> MappingProblem:
        """The same as tasks, without loads."""
        problem: MappingProblem = self.state.plain
        return problem

    def names(self, num: int) -> dict[str, list[Any]]:
        """Return the columns of a data frame that identify its rows."""
        return {"object": list(range(num)), "load": self.result.instance.loads[:num]}

    def about(self) -> list[str]:
        """Return a line on the objects, the machine and the cap."""
        instance = self.result.instance
        total, shared = sum(instance.loads), ", pooled by router" if instance.pooled else ""
        fixed = f", {len(instance.fixed):,} fixed" if instance.fixed else ""
        trees = f"; multicasts and reductions: {len(instance.trees):,}" if instance.trees else ""
        arrays = ", ".join(f"{a.name} {'x'.join(map(str, a.shape))}" for a in instance.arrays)
        what = f"{number_of(len(instance.loads), 'object')}{fixed}" + (
            f" ({arrays})" if arrays else ""
        )
        return [
            f"{what} of load {total:,} on {instance.machine.name}, "
            f"at most {instance.cap:,} per node{shared}{trees}"
        ]

    def _further(self) -> list[str]:
        return [f"objects on {number_of(self.result.solution.figures.used_nodes, 'node')}"]
