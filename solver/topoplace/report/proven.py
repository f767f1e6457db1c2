"""What a result proves, in words: a level after the other, and why the search stopped."""

from __future__ import annotations

from topoplace.report.text import gap_text
from topoplace.result import PlacementLevel, PlacementResult, Proof, Status
from topoplace.result.tree import AllocationResult, TreeLevel

_NEARLY = 0.9
"""Share of a time limit after which it may be what ended a search."""


def headline(result: PlacementResult | AllocationResult) -> str:
    """Return one line: what is proven of every level, why it stopped, and who solved it."""
    found = [level for level in result.levels if level.objective is not None]
    if not found:
        text = _nothing(result)
    elif all(level.bound is None for level in found):
        text = "nothing proven"
    elif all(_is_certain(level) for level in found):
        *names, last = [level_name(result, level.name) for level in found]
        text = f"{', '.join(names)} and {last} optimal" if names else f"{last} optimal"
    else:
        text = "; ".join(_proven(result, level) for level in found)
    return f"{result.instance.name}: {text}{_stopped(result)} ({_solver(result)})"


def level_name(result: PlacementResult | AllocationResult, name: str) -> str:
    """Return the name of a level, which says so if priorities weigh the nodes."""
    weighted = any(request.priority > 1 for request in result.instance.queue)
    return "weighted nodes" if name == "nodes" and weighted else name


def _is_certain(level: PlacementLevel | TreeLevel) -> bool:
    """Tell whether a level is optimal, and `check` can confirm it."""
    return level.status is Status.OPTIMAL and level.proof is Proof.CERTIFICATE


def _proven(result: PlacementResult | AllocationResult, level: PlacementLevel | TreeLevel) -> str:
    name = level_name(result, level.name)
    if level.bound is None:
        return f"{name} without a bound"
    by_search = " by search" if level.proof is Proof.SEARCH else ""
    if level.status is Status.OPTIMAL:
        return f"{name} optimal{by_search}"
    return f"{name} within {gap_text(level.gap)}{by_search}"


def _nothing(result: PlacementResult | AllocationResult) -> str:
    first = result.levels[0]
    if first.bound is None:
        return "nothing found"
    bound = first.bound if isinstance(first.bound, int) else first.bound.numerator
    return f"nothing found, at most {bound:,} {level_name(result, first.name)}"


def _stopped(result: PlacementResult | AllocationResult) -> str:
    """Return why the search ended, where that was before it was done."""
    if not result.limits.hit:
        return ""
    limit = result.limits.time_limit
    at = f"; stopped at {result.seconds:.3g} s"
    if limit is None:
        return f"{at}, before all was proven"
    if result.seconds < _NEARLY * limit:  # by a signal
        return f"{at}, before the time limit of {limit:g} s"
    return f"{at} because of the time limit of {limit:g} s"


def _solver(result: PlacementResult | AllocationResult) -> str:
    rule = (
        ""
        if isinstance(result, AllocationResult)
        else f"{result.limits.interference} interference, "
    )
    return f"{result.method}, {rule}{result.seconds:.2f} s"
