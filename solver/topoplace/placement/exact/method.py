"""The method `exact`."""

from __future__ import annotations

from dataclasses import replace

from topoplace.placement.exact.search import ExactSearch
from topoplace.placement.explain import explain
from topoplace.placement.problem import Candidate, PlacementProblem
from topoplace.solving import Options, Outcome, register


@register("placement", "exact", "column generation, integer phase and branching; certified bounds")
def exact(problem: PlacementProblem, options: Options) -> Outcome:
    """Place to proven optimality, or as near as the time limit allows."""
    outcome = ExactSearch(problem, options).run()
    started = [c for c in outcome.solution or () if isinstance(c, Candidate)]
    return replace(outcome, explanations=explain(problem, started))
