"""What differs from problem to problem between an outcome and its result document."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from topoplace.result import Result
from topoplace.result.mapping import MappingResult
from topoplace.result.tree import TreeResult
from topoplace.solving.options import Options
from topoplace.solving.outcome import Number, Outcome
from topoplace.solving.registry import Method

AnyResult = Result | MappingResult | TreeResult


class Problem(Protocol):
    """What a method solves."""

    @property
    def kind(self) -> str:
        """What result documents call the problem: placement, allocation or mapping."""


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
    document
        Makes the result of a problem, an outcome, options and the fields that all results share.
    number
        Turns a figure into the form that the documents have.
    heeds_clock
        Whether methods look at `topoplace.clock`, so that stopping it ends them.
    """

    levels: Sequence[tuple[str, str]]
    run: Callable[[Any, Method, Options], Outcome]
    worth: Callable[[Any, Any], Sequence[Number | None]]
    document: Callable[[Any, Outcome, Options, dict[str, Any]], AnyResult]
    number: Callable[[Number], Any] = int
    heeds_clock: bool = True


_MODULES = {
    "placement": "topoplace.placement.outcome",
    "allocation": "topoplace.placement.tree.outcome",
    "mapping": "topoplace.mapping.outcome",
}


def frame_of(kind: str) -> Frame:
    """Return the frame of a kind of problem, `FRAME` of its module."""
    frame: Frame = importlib.import_module(_MODULES[kind]).FRAME
    return frame


def called(problem: Any, method: Method, options: Options) -> Outcome:
    """Run a method by calling it."""
    return method.solver(problem, options)
