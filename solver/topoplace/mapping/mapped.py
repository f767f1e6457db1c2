"""What a mapping method hands back."""

from __future__ import annotations

from dataclasses import dataclass

from topoplace.mapping.graph import IntArray
from topoplace.mapping.problem import MappingProblem
from topoplace.result.mapping import ClassOptimum, LayoutModel
from topoplace.solving import Bound, Options, Outcome, Solver


@dataclass(frozen=True)
class Mapped:
    """The node of every task, shape ``(num_tasks,)``, and how the mapping came about.

    Attributes
    ----------
    layout
        The layout that it is, if any.
    optimum
        What is known of all layouts of its kind.
    """

    nodes: IntArray
    layout: LayoutModel | None = None
    optimum: ClassOptimum | None = None


def outcome_of(
    nodes: IntArray | None,
    layout: LayoutModel | None = None,
    optimum: ClassOptimum | None = None,
    *,
    hit: bool = False,
    bound: Bound | None = None,
) -> Outcome:
    """Return the outcome of a method: the node of every task, None if it found no mapping.

    Parameters
    ----------
    hit
        Whether the time limit ended the method.
    bound
        What the method itself proved.
    """
    mapped = None if nodes is None else Mapped(nodes, layout, optimum)
    return Outcome(mapped, (bound,), time_limit_hit=hit)


def mapped_by(solver: Solver, problem: MappingProblem, options: Options) -> IntArray:
    """Return the node of every task by a method that always finds a mapping."""
    mapped = solver(problem, options).solution
    assert isinstance(mapped, Mapped), "the method always finds a mapping"
    return mapped.nodes
