"""Check all claims of a result of any problem: one frame, and a plug-in for every problem."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

from topoplace.certify.candidates import told
from topoplace.certify.order import bound_in_order, is_ordered
from topoplace.certify.packing import Packings
from topoplace.certify.report import (
    AnyLevel,
    Claims,
    Problem,
    RefusedError,
    check_figures,
    check_proven,
    check_top,
    is_settled,
)
from topoplace.errors import InputError
from topoplace.kinds import Ref, kind_named, loaded
from topoplace.result import Interference, Proof, Result
from topoplace.result.base import FRONTIER_SCHEMA, OPTIMA_SCHEMA, Claim, Kept, Report
from topoplace.result.reading import CHECKABLE, AnyResult, parse_checkable, parse_instance
from topoplace.snapshot.files import parse_object, read_bytes
from topoplace.snapshot.normal import differences, sha256_of
from topoplace.snapshot.schema import MappingInstance, Snapshot


def check_file(path: str | Path, instance: str | Path | Snapshot | None = None) -> Report:
    """Read the result file of a placement, a mapping or an allocation and check all it claims.

    Which it is says its field `problem`.

    Parameters
    ----------
    instance
        The instance that the result should be of: a snapshot, or the file of one, of a mapping
        instance, or of a result with its instance inside.

    Raises
    ------
    InputError
        If a file is no such document: an unreadable file claims nothing.
    """
    wanted = None if instance is None else _instance_in(instance)
    result = parse_checkable(read_bytes(path), str(path))
    told = instance.name if isinstance(instance, Snapshot) else instance
    return check_document(result) if wanted is None else check_of(result, wanted, str(told))


def check_of(result: Kept, instance: Snapshot | MappingInstance, told: str) -> Report:
    """Check all claims of a result, and whether its instance is this one, which is named `told`."""
    wanted, own = _instance_in(instance), cast(Any, result)
    report, sha256 = check_document(result), sha256_of(wanted)
    same = report.sha256 == sha256
    detail = f"the instance is that of {told}"
    if not same:
        others = "; ".join(differences(own.instance, wanted))
        detail = f"sha256 {report.sha256}, not {sha256} of {told}" + (others and f": {others}")
    return replace(report, claims=(*report.claims, Claim("whose", same, detail)))


def _instance_in(source: str | Path | Snapshot | MappingInstance) -> Any:
    """Return an instance, or the one that a file is, or has inside."""
    instance: Any = source
    if isinstance(source, str | Path):
        text, file = read_bytes(source), str(source)
        holds_instance = parse_object(text, file).get("schema") in CHECKABLE
        parse = parse_checkable if holds_instance else parse_instance
        found = parse(text, file)
        instance = getattr(found, "instance", found)
    if isinstance(instance, Snapshot) and isinstance(instance.machine, str):
        from topoplace.snapshot.machines import resolve_machine  # noqa: PLC0415 - reads many files

        instance = resolve_machine(instance)
    return instance


_FOLLOWED: dict[str, Ref] = {
    FRONTIER_SCHEMA: "topoplace.certify.frontier:follow_frontier",
    OPTIMA_SCHEMA: "topoplace.certify.optima:follow_optima",
}
"""What follows the claims of documents of several placements, by their schemas."""


def check_document(result: Kept) -> Report:
    """Check all claims of a result of any problem, of a frontier, or of all optima.

    Returns
    -------
    Report
        One claim per statement; a result whose instance or solution does not hold is not
        followed further.
    """
    claims = Claims()
    document: Any = result
    if isinstance(result, Result):
        _follow(_problem_of(result), result, claims)
    else:
        loaded(_FOLLOWED[document.schema_version])(document, claims)
    try:
        return Report(tuple(claims), sha256_of(document.instance))
    except InputError:
        return Report(tuple(claims))


def bound_on(
    result: AnyResult, instance: Snapshot, interference: Interference | None = None
) -> int | None:
    """Return what the certificate of a first level proves of another instance, without a search.

    Prices that are not negative bound every packing of the same rows, whoever found them (weak
    duality); all the rest is recomputed. None where the certificate does not fit the instance, or
    there is none.

    Parameters
    ----------
    instance
        A valid snapshot of a machine of the same kind.
    interference
        The rule on tori; None on other machines.
    """
    certificate = result.levels[0].certificate
    limits = result.limits
    if interference is not None:
        limits = limits.model_copy(update={"interference": interference})
    if certificate is None or is_ordered(instance) or is_ordered(result.instance):
        return None  # who starts in an order says nothing of another instance
    problem = _problem_of(result.model_copy(update={"instance": instance, "limits": limits}))
    if not isinstance(problem, Packings):
        return None
    try:
        problem.read()
        return problem.proven(0, certificate, [])[0]
    except RefusedError:
        return None


def _problem_of(result: AnyResult) -> Problem[Any]:
    problem: Problem[Any] = kind_named(result.problem).get("checker")(result)
    return problem


def _follow(problem: Problem[Any], result: AnyResult, claims: Claims) -> None:
    """Add the claims of a result, as far as they can be followed."""
    levels: Sequence[AnyLevel] = result.levels
    claims.add("levels", lambda: _names(problem, result))
    if claims.add("instance", problem.read) is None:
        return
    snapshot = getattr(result.instance, "snapshot", result.instance)
    if isinstance(snapshot, Snapshot) and snapshot.left_out:
        claims.add("held", partial(told, snapshot))
    if not problem.follow(claims) or not problem.follow_witness(claims) or not claims.hold:
        return
    settled = True
    for idx, level in enumerate(levels):
        figures = partial(
            check_figures, level, problem.values[idx], problem.searches, settled=settled
        )
        claims.add(level.name, figures)
        settled &= is_settled(level, problem.held[idx])
        if level.bound is not None:
            searched = level.proof is Proof.SEARCH
            claims.add(
                f"{level.name}.bound", partial(_bound, problem, level, idx), by_search=searched
            )
    problem.beside(claims)


def _names(problem: Problem[Any], result: AnyResult) -> str:
    """Check which levels there are, and that the first one's figures are the result's."""
    found = [(level.name, level.sense) for level in result.levels]
    if found != list(problem.levels):
        raise RefusedError(f"the levels are {found}, not {list(problem.levels)}")
    check_top(result)
    return ", ".join(name for name, _ in found)


def _bound(problem: Problem[Any], level: AnyLevel, idx: int) -> str:
    """Check what supports a bound: a search is not repeated, and may not hide a certificate."""
    if any(earlier is None for earlier in problem.held[:idx]):
        raise RefusedError("the earlier levels have no objective to hold")
    searched = level.proof is Proof.SEARCH
    if level.certificate is None:
        if not searched:
            raise RefusedError("a bound without a certificate")
        return "found by search, not repeated"
    if isinstance(problem, Packings) and is_ordered(problem.result.instance):
        proven, where = bound_in_order(problem, idx)
    else:
        proven, where = problem.bound(idx)
    summary = check_proven(level, problem.values[idx], proven, where)
    return f"found by search, not repeated; {summary}" if searched else summary
