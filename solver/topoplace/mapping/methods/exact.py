"""Proven optima where they can be had: embeddings, and branch and bound for a few tasks."""

from __future__ import annotations

from dataclasses import replace

from topoplace import clock
from topoplace.mapping.exact import embedded, solved_by_search
from topoplace.mapping.problem import MappingProblem
from topoplace.solving import Options, Outcome, method_of, register

HEURISTIC = "search"
"""The method for what is too large."""

EMBEDDING_SHARE = 0.25
"""Share of a time limit that is spent to look for an embedding."""


@register("mapping", "exact", "embedding with one hop per message, else branch and bound if small")
def map_exact(problem: MappingProblem, options: Options) -> Outcome:
    """Return an embedding, else the outcome of branch and bound, else that of a search.

    Without a time limit, branch and bound runs until the optimum is proven.
    """
    return exact_or_search(problem, options, None)


def exact_or_search(
    problem: MappingProblem, options: Options, branch_seconds: float | None
) -> Outcome:
    """Do as `map_exact`, with a limit for branch and bound where the options have none."""
    stop = clock.deadline(options.time_limit)

    def limited(share: float) -> Options:
        if options.time_limit is None:
            return options
        return replace(options, time_limit=max(1e-3, share * (stop - clock.now())))

    options.say("embedding")
    found = embedded(problem, limited(EMBEDDING_SHARE))
    if found is not None:
        return found
    within = limited(1.0)
    if within.time_limit is None:
        within = replace(within, time_limit=branch_seconds)
    found = solved_by_search(problem, within)
    if found is not None:
        return found
    return method_of("mapping", HEURISTIC).solver(problem, limited(1.0))
