"""Solving from Python: a prepared snapshot or mapping, a method, and options."""

from __future__ import annotations

from typing import overload

from topoplace.mapping.problem import MappingProblem
from topoplace.placement.problem import PlacementProblem
from topoplace.placement.tree.problem import TreeProblem
from topoplace.result import PlacementResult
from topoplace.result.mapping import MappingResult
from topoplace.result.tree import AllocationResult
from topoplace.snapshot import SnapshotState
from topoplace.snapshot.tree_state import TreeState
from topoplace.solving import Options, solve


@overload
def place(
    state: SnapshotState, method: str = "exact", options: Options | None = None
) -> PlacementResult: ...
@overload
def place(
    state: TreeState, method: str = "exact", options: Options | None = None
) -> AllocationResult: ...
def place(
    state: SnapshotState | TreeState, method: str = "exact", options: Options | None = None
) -> PlacementResult | AllocationResult:
    """Place the queue of a snapshot on its machine.

    Parameters
    ----------
    state
        A snapshot as `topoplace.snapshot.load_any` returns it, of a torus, a mesh or a tree.
    method
        A name from `topoplace.solving.methods("placement")`, on trees ``"allocation"``.
    options
        Time limit in seconds, interference rule (on tori) and seed.

    Raises
    ------
    InputError
        If there is no such method.
    """
    options = options or Options()
    if isinstance(state, TreeState):
        return solve(TreeProblem(state), method, options)
    return solve(PlacementProblem(state, options.interference), method, options)


def map_tasks(
    problem: MappingProblem, method: str = "pencils", options: Options | None = None
) -> MappingResult:
    """Map an application and bound the hop-bytes of any mapping.

    Raises
    ------
    InputError
        If there is no such method, or it needs a grid and the application is none.
    """
    return solve(problem, method, options)
