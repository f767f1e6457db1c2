"""Check all claims of a result of any problem: one frame, and a plug-in for every problem."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from topoplace.certify.figures import (
    AnyLevel,
    Number,
    Searches,
    check_figures,
    check_proven,
    check_top,
)
from topoplace.certify.mapping.check import Mapping
from topoplace.certify.report import Claim, Claims, RefusedError, Report
from topoplace.certify.switches.check import TreeAllocation
from topoplace.certify.torus.check import TorusPlacement
from topoplace.errors import InputError
from topoplace.result import RESULT_SCHEMA, PlacementResult, Proof, Result
from topoplace.result.mapping import MappingResult
from topoplace.result.tree import AllocationResult
from topoplace.snapshot.files import parse_document, parse_object, read_bytes
from topoplace.snapshot.normal import sha256_of
from topoplace.snapshot.schema import MAPPING_SCHEMA, SNAPSHOT_SCHEMA, MappingInstance, Snapshot

AnyResult = Result[Any, Any, Any]


class Problem(Protocol):
    """What the frame asks of a problem, made of a result of it."""

    @property
    def levels(self) -> Sequence[tuple[str, str]]:
        """Name and sense of every level."""

    @property
    def together(self) -> bool:
        """Whether the figures of all levels are one claim, `levels`, and not one each."""

    @property
    def searches(self) -> Searches:
        """Which bounds may rest on a search of the solver."""

    @property
    def values(self) -> Sequence[Number | None]:
        """What the solution is worth by the checker's own computation, per level.

        None without a solution, or where a level does not apply. Known after `follow`.
        """

    def read(self) -> str:
        """Read the instance and return what it is; raise if it contradicts itself."""

    def follow(self, claims: Claims) -> bool:
        """Add the claims about the solution; tell whether it is understood."""

    def bound(self, level_idx: int) -> tuple[Number, str]:
        """Return what the certificate of a level proves, and which part of it decides."""


_PROBLEMS: dict[type, Callable[[Any], Problem]] = {
    PlacementResult: TorusPlacement,
    MappingResult: Mapping,
    AllocationResult: TreeAllocation,
}
_MODELS: dict[str, type[AnyResult]] = {"mapping": MappingResult, "allocation": AllocationResult}


def check_file(path: str | Path, instance: str | Path | None = None) -> Report:
    """Read the result file of a placement, a mapping or an allocation and check all it claims.

    Which it is says its field `problem`.

    Parameters
    ----------
    instance
        The file of the instance that the result should be of: a snapshot, a mapping instance, or a
        result with its instance inside.

    Raises
    ------
    InputError
        If a file is no such document: an unreadable file claims nothing.
    """
    wanted = None if instance is None else sha256_of(_instance_of(instance))
    report = check_document(_read(path))
    if wanted is None:
        return report
    same = report.sha256 == wanted
    detail = f"sha256 {report.sha256}, {'as' if same else 'not'} {wanted} of {instance}"
    if same:
        detail = f"the instance is that of {instance}"
    return replace(report, claims=(*report.claims, Claim("whose", same, detail)))


def check_document(result: AnyResult) -> Report:
    """Check all claims of a result of any problem.

    Returns
    -------
    Report
        One claim per statement; a result whose instance or solution does not hold is not
        followed further.
    """
    claims = Claims()
    problem = next(of for model, of in _PROBLEMS.items() if isinstance(result, model))
    _follow(problem(result), result, claims)
    try:
        return Report(claims.all, sha256_of(result.instance))
    except InputError:
        return Report(claims.all)


def _follow(problem: Problem, result: AnyResult, claims: Claims) -> None:
    """Add the claims of a result, as far as they can be followed."""
    if not problem.together:
        claims.add("levels", lambda: _names(problem, result))
    if claims.add("instance", problem.read) is None:
        return
    understood = problem.follow(claims)
    if problem.together and understood:
        claims.add("levels", lambda: _names(problem, result, figures=True))
    if not understood or not claims.hold:
        return
    levels: Sequence[AnyLevel] = result.levels
    for idx, level in enumerate(levels):
        if not problem.together:
            claims.add(level.name, partial(_figures, problem, level, idx))
        if level.bound is not None:
            searched = level.proof is Proof.SEARCH
            claims.add(
                f"{level.name}.bound", partial(_bound, problem, level, idx), by_search=searched
            )


def _names(problem: Problem, result: AnyResult, *, figures: bool = False) -> str:
    """Check which levels there are, the top figures, and all others if these are one claim."""
    levels: Sequence[AnyLevel] = result.levels
    found = [(level.name, level.sense) for level in levels]
    if found != list(problem.levels):
        raise RefusedError(f"the levels are {found}, not {list(problem.levels)}")
    check_top(result)
    if not figures:
        return ", ".join(name for name, _ in found)
    details = []
    for idx, level in enumerate(levels):
        try:
            details.append(f"{level.name} {_figures(problem, level, idx)}")
        except RefusedError as error:
            raise RefusedError(f"{level.name}: {error}") from None
    return "; ".join(details)


def _figures(problem: Problem, level: AnyLevel, idx: int) -> str:
    return check_figures(level, problem.values[idx], problem.searches)


def _bound(problem: Problem, level: AnyLevel, idx: int) -> str:
    """Check what supports a bound: a search is not repeated, and may not hide a certificate."""
    if any(earlier is None for earlier in problem.values[:idx]):
        raise RefusedError("the earlier levels have no objective to hold")
    searched = level.proof is Proof.SEARCH
    if level.certificate is None:
        if not searched:
            raise RefusedError("a bound without a certificate")
        return "found by search, not repeated"
    proven, where = problem.bound(idx)
    summary = check_proven(level, problem.values[idx], proven, where)
    return f"found by search, not repeated; {summary}" if searched else summary


def _read(path: str | Path) -> AnyResult:
    text, file = read_bytes(path), str(path)
    model = _MODELS.get(str(parse_object(text, file).get("problem")), PlacementResult)
    return parse_document(text, model, RESULT_SCHEMA, file)


def _instance_of(path: str | Path) -> Snapshot | MappingInstance:
    """Return the instance that a file is, or has inside.

    Raises
    ------
    InputError
        If it is neither a snapshot, a mapping instance nor a result.
    """
    text, file = read_bytes(path), str(path)
    schema = parse_object(text, file).get("schema")
    if schema == RESULT_SCHEMA:
        found: Snapshot | MappingInstance = _read(path).instance
        return found
    if schema == MAPPING_SCHEMA:
        return parse_document(text, MappingInstance, MAPPING_SCHEMA, file)
    return parse_document(text, Snapshot, SNAPSHOT_SCHEMA, file)
