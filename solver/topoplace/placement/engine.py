"""The engine as a method: what it finds and proves of a packing, as it is reported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from topoplace.packing.budget import Budget
from topoplace.packing.problem import PackingProblem
from topoplace.packing.search import Found, Search
from topoplace.solving import Bound, Options, Outcome

_ALL_BUT = 0.9
"""Share of a time limit after which a search without a proof was ended by it."""


def solved(
    packing: PackingProblem,
    options: Options,
    budget: Budget,
    solution_of: Callable[[list[Any]], Any],
) -> Outcome:
    """Solve a packing; `solution_of` turns its placements into solutions of the problem."""

    def bounds_of(found: Found) -> list[Bound | None]:
        return [
            None if b is None else Bound(packing.reported(level, b.value), b.certificate)
            for level, b in enumerate(found.bounds)
        ]

    def report(found: Found) -> None:
        values = [packing.reported(level, value) for level, value in enumerate(found.values)]
        options.report(solution_of(found.placement), values, bounds_of(found))

    def say(phase: str, level: int, bound: int | None) -> None:
        options.say(phase, level, None if bound is None else packing.reported(level, bound))

    found = Search(
        packing, budget, seed=options.seed, thorough=options.thorough, report=report, say=say
    ).run()
    proven = all(b and b.value == v for b, v in zip(found.bounds, found.values, strict=True))
    hit = not proven and budget.now() - budget.start >= _ALL_BUT * budget.length
    return Outcome(solution_of(found.placement), bounds_of(found), hit)
