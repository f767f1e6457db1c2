"""The method `exact`."""

from __future__ import annotations

from dataclasses import replace

from topoplace.placement.exact.search import ExactSearch
from topoplace.placement.explain import explain
from topoplace.placement.outcome import Outcome
from topoplace.placement.problem import Candidate, Options, PlacementProblem
from topoplace.placement.solve import register


@register("exact", "column generation, integer phase and branching; certified bounds")
def exact(problem: PlacementProblem, options: Options) -> Outcome:
    """Place to proven optimality, or as near as the time limit allows (DESIGN 4)."""
    outcome = ExactSearch(problem, options).run()
    started = [c for c in outcome.started if isinstance(c, Candidate)]
    return replace(outcome, explanations=explain(problem, started))
