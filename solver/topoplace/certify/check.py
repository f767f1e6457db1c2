"""Check every claim of a result, from the instance inside it alone."""

from __future__ import annotations

from functools import partial

from topoplace.certify.explanations import check_explanations
from topoplace.certify.figures import check_figures, check_proven, check_top
from topoplace.certify.instance import Instance, read_instance
from topoplace.certify.pricing import Pricer, pricer_of
from topoplace.certify.report import Claims, RefusedError, Report
from topoplace.certify.solution import (
    Start,
    check_exclusive,
    count_shared_links,
    read_starts,
    worth,
)
from topoplace.certify.tree import certified_bound
from topoplace.result import PlacementLevel, PlacementResult, Solution

NAMES = ("nodes", "shape", "fragmentation")
SENSES = ("max", "max", "min")


def check_result(result: PlacementResult) -> Report:
    """Check every claim of a result (docs/proofs.md).

    Returns
    -------
    Report
        One claim per statement; a result whose instance or solution does not hold is not
        followed further.
    """
    return _Checker(result).report()


class _Checker:
    """The claims of one result."""

    def __init__(self, result: PlacementResult) -> None:
        self._result = result
        self._claims = Claims()

    def report(self) -> Report:
        result = self._result
        self._claims.add("levels", lambda: _order(result))
        instance = self._claims.add("instance", self._instance)
        if instance is not None:
            starts = self._solution(instance)
            if starts is not None and self._claims.hold:
                self._levels(instance, starts)
        return self._claims.report()

    def _instance(self) -> tuple[Instance, str]:
        instance = read_instance(self._result.instance, self._result.limits.interference)
        counts = f"{len(instance.jobs)} running, {len(instance.wishes)} waiting"
        rule = f"{instance.interference.value} interference"
        return instance, f"{instance.torus.text}, {counts}, {rule}"

    def _solution(self, instance: Instance) -> list[Start] | None:
        """Check the solution and the explanations; None if its placements are not understood."""
        solution = self._result.solution
        starts: list[Start] | None = []
        if solution is not None:
            starts = self._claims.add("placements", lambda: _placements(instance, solution))
        if starts is None:
            return None
        known = starts
        if solution is not None:
            self._claims.add("exclusive", lambda: _exclusive(instance, known))
            self._claims.add("links", lambda: _links(instance, known, solution))
        self._claims.add("explanations", lambda: _explanations(instance, known, self._result))
        return starts

    def _levels(self, instance: Instance, starts: list[Start]) -> None:
        worths: list[int | None] = [None] * len(NAMES)
        if self._result.solution is not None:
            worths = worth(instance, starts)
        scattered = any(start.prism is None for start in starts)
        pricer = pricer_of(instance)
        for idx, level in enumerate(self._result.levels):
            self._claims.add(NAMES[idx], partial(_figures, level, worths[idx], scattered))
            if level.certificate is not None:
                check = partial(_bound, instance, pricer, idx, level, worths)
                self._claims.add(f"{NAMES[idx]}.bound", check)


def _order(result: PlacementResult) -> tuple[bool, str]:
    found = [(level.name, level.sense) for level in result.levels]
    if found != list(zip(NAMES, SENSES, strict=True)):
        raise RefusedError(f"the levels are {found}")
    check_top(result)
    return True, ", ".join(NAMES)


def _placements(instance: Instance, solution: Solution) -> tuple[list[Start], str]:
    starts = read_starts(instance, solution)
    return starts, f"{len(starts)} requests start, {sum(len(s.nodes) for s in starts)} nodes"


def _exclusive(instance: Instance, starts: list[Start]) -> tuple[bool, str]:
    check_exclusive(instance, starts)
    return True, "no node and no router of a prism has two jobs"


def _links(instance: Instance, starts: list[Start], solution: Solution) -> tuple[bool, str]:
    shared = count_shared_links(instance, starts)
    if solution.num_shared_links != shared:
        raise RefusedError(f"num_shared_links is {solution.num_shared_links}, not {shared}")
    scattered = any(start.prism is None for start in starts)
    if shared and not scattered:
        raise RefusedError(f"{shared} links are shared against the rule")
    if solution.conforming == (scattered or shared > 0):
        raise RefusedError(f"conforming is {solution.conforming}")
    return True, f"{shared} links are shared against the rule"


def _explanations(
    instance: Instance, starts: list[Start], result: PlacementResult
) -> tuple[bool, str]:
    return True, check_explanations(instance, starts, result.explanations)


def _figures(level: PlacementLevel, value: int | None, scattered: bool) -> tuple[bool, str]:
    if scattered and level.bound is not None:
        raise RefusedError("a bound on prisms says nothing of scattered nodes")
    objective = None if value is None else _sign(level) * value
    return True, check_figures(level, objective, searches=False)


def _sign(level: PlacementLevel) -> int:
    """Return what turns a reported figure of a level into its maximising sense, and back."""
    return 1 if level.sense == "max" else -1


def _bound(
    instance: Instance, pricer: Pricer, idx: int, level: PlacementLevel, worths: list[int | None]
) -> tuple[bool, str]:
    if level.certificate is None:
        raise RefusedError("a bound without a certificate")
    known = [value for value in worths[:idx] if value is not None]
    if len(known) < idx:
        raise RefusedError("the earlier levels have no objective to hold")
    proven = certified_bound(instance, pricer, level.certificate, idx, known)
    if proven is None:
        raise RefusedError("the certificate leaves no placement at all")
    value = worths[idx]
    reached = None if value is None else _sign(level) * value
    return True, check_proven(level, reached, _sign(level) * proven.value, proven.where)
