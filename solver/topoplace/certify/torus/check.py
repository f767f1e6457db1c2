"""The claims of a placement on a torus or mesh (docs/proofs.md)."""

from __future__ import annotations

from topoplace.certify.figures import Number, Searches
from topoplace.certify.packing import certified_bound
from topoplace.certify.report import Claims, RefusedError
from topoplace.certify.torus.explanations import check_explanations
from topoplace.certify.torus.instance import Instance, read_instance
from topoplace.certify.torus.oracle import TorusOracle
from topoplace.certify.torus.solution import (
    Start,
    check_exclusive,
    count_shared_links,
    read_starts,
    worth,
)
from topoplace.result import PlacementResult, Solution


class TorusPlacement:
    """A placement, as the frame asks for it (`certify.check.Problem`)."""

    levels = (("nodes", "max"), ("shape", "max"), ("fragmentation", "min"))
    together = False
    searches: Searches = "none"

    def __init__(self, result: PlacementResult) -> None:
        self._result = result
        self._instance: Instance
        self._scattered = False
        self._worth: list[int | None] = [None] * len(self.levels)

    @property
    def values(self) -> list[Number | None]:
        """What the solution is worth, per level."""
        return [_turned(sense, w) for w, (_, sense) in zip(self._worth, self.levels, strict=True)]

    def read(self) -> str:
        """Read the instance and return what it is."""
        self._instance = read_instance(self._result.instance, self._result.limits.interference)
        counts = f"{len(self._instance.jobs)} running, {len(self._instance.requests)} waiting"
        rule = f"{self._instance.interference.value} interference"
        return f"{self._instance.torus.text}, {counts}, {rule}"

    def follow(self, claims: Claims) -> bool:
        """Add the claims about the solution and the explanations."""
        instance, solution = self._instance, self._result.solution
        starts: list[Start] | None = []
        if solution is not None:
            starts = claims.add("placements", lambda: read_starts(instance, solution), _counts)
        if starts is None:
            return False
        known = starts
        if solution is not None:
            claims.add("exclusive", lambda: check_exclusive(instance, known))
            claims.add("links", lambda: _links(instance, known, solution))
            self._scattered = any(start.prism is None for start in known)
        explanations = self._result.explanations
        claims.add("explanations", lambda: check_explanations(instance, known, explanations))
        if claims.hold and solution is not None:
            self._worth = worth(instance, known)
        return True

    def bound(self, level_idx: int) -> tuple[Number, str]:
        """Return what the certificate of a level proves, and where."""
        level = self._result.levels[level_idx]
        assert level.certificate is not None
        if self._scattered:
            raise RefusedError("a bound on prisms says nothing of scattered nodes")
        known = [value for value in self._worth[:level_idx] if value is not None]
        proven = certified_bound(TorusOracle(self._instance), level.certificate, known)
        if proven is None:
            raise RefusedError("the certificate leaves no placement at all")
        value = _turned(level.sense, proven.value)
        assert value is not None
        return value, proven.where


def _turned(sense: str, value: int | None) -> int | None:
    """Return a figure as it is reported, from its maximising sense."""
    return -value if value is not None and sense == "min" else value


def _counts(starts: list[Start]) -> str:
    return f"{len(starts)} requests start, {sum(len(start.nodes) for start in starts)} nodes"


def _links(instance: Instance, starts: list[Start], solution: Solution) -> str:
    shared = count_shared_links(instance, starts)
    if solution.num_shared_links != shared:
        raise RefusedError(f"num_shared_links is {solution.num_shared_links}, not {shared}")
    scattered = any(start.prism is None for start in starts)
    if shared and not scattered:
        raise RefusedError(f"{shared} links are shared against the rule")
    if solution.conforming == (scattered or shared > 0):
        raise RefusedError(f"conforming is {solution.conforming}")
    return f"{shared} links are shared against the rule"
