"""What differs from problem to problem between an outcome and its result document."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from topoplace.result import Limits
from topoplace.solving.options import Options
from topoplace.solving.outcome import Number, Outcome
from topoplace.solving.registry import Method

if TYPE_CHECKING:
    from topoplace.snapshot import SnapshotState, TreeState


class Problem(Protocol):
    """What a method solves."""

    @property
    def kind(self) -> str:
        """What result documents call the problem: placement, allocation or mapping."""


def limits_of(problem: Any, options: Options, hit: bool) -> Limits:
    """Return what bounded a solve."""
    return Limits(time_limit=options.time_limit, hit=hit)


@dataclass(frozen=True)
class Frame:
    """One kind of problem.

    Attributes
    ----------
    levels
        Name and sense (``max`` or ``min``) of every level of the objective.
    run
        Runs a method on a problem; most do no more than call it.
    worth
        What a solution is worth on every level, None where a level does not apply.
    result, level
        The models of the result and of its levels.
    solution
        Makes the document of a solution.
    instance
        Makes the document of a problem.
    number
        Turns a figure into the form that the documents have.
    limits
        What bounded the solve, of a problem, options and whether the time limit was hit.
    extra
        Fields that only results of this problem have.
    decisive
        Number of the level by which methods are compared, after all before it.
    facts
        What a result counts beside the levels, for tables.
    overtime
        Seconds beyond the time limit after which a method that has reported a solution is ended.
    """

    levels: Sequence[tuple[str, str]]
    run: Callable[[Any, Method, Options], Outcome]
    worth: Callable[[Any, Any], Sequence[Number | None]]
    result: type[Any]
    level: type[Any]
    solution: Callable[[Any, Any], Any]
    instance: Callable[[Any], Any]
    number: Callable[[Number], Any] = int
    limits: Callable[[Any, Options, bool], Limits] = limits_of
    extra: Callable[[Outcome], Mapping[str, Any]] = lambda outcome: {}
    decisive: int = 0
    facts: Callable[[Any], Mapping[str, int | None]] = lambda result: {}
    overtime: float = math.inf


_MODULES = {
    "placement": "topoplace.placement.torus.outcome",
    "allocation": "topoplace.placement.switches.outcome",
    "mapping": "topoplace.mapping.outcome",
}


def frame_of(kind: str) -> Frame:
    """Return the frame of a kind of problem, `FRAME` of its module."""
    frame: Frame = importlib.import_module(_MODULES[kind]).FRAME
    return frame


def problem_of(instance: SnapshotState | TreeState | Problem, options: Options) -> Problem:
    """Return the problem of placing a snapshot's queue; any other problem is returned as it is."""
    from topoplace.snapshot import SnapshotState, TreeState  # noqa: PLC0415 - heavy

    if isinstance(instance, SnapshotState):
        from topoplace.placement.torus.problem import PlacementProblem  # noqa: PLC0415 - heavy

        return PlacementProblem(instance, options.interference)
    if isinstance(instance, TreeState):
        from topoplace.placement.switches.problem import TreeProblem  # noqa: PLC0415 - heavy

        return TreeProblem(instance)
    return instance


def called(problem: Any, method: Method, options: Options) -> Outcome:
    """Run a method by calling it."""
    return method.solver(problem, options)
