"""Whether objective, bound, gap, status and proof of a mapping result fit together."""

from __future__ import annotations

import math

from topoplace.certify.report import RefusedError
from topoplace.result import Proof, Status
from topoplace.result.mapping import MappingLevel, MappingResult


def check_levels(result: MappingResult) -> MappingLevel:
    """Return the only level; raise unless there is one and the top figures are its own."""
    if len(result.levels) != 1:
        raise RefusedError(f"{len(result.levels)} levels, a mapping has one")
    level = result.levels[0]
    for field in ("status", "objective", "bound", "gap", "proof"):
        if getattr(result, field) != getattr(level, field):
            raise RefusedError(f"{field} of the result is not that of its level")
    return level


def check_level(level: MappingLevel, value: int | None) -> str:
    """Check the level against the hop-bytes of the solution (None: no solution).

    Returns
    -------
    str
        A summary for the report.
    """
    objective, bound = level.objective, level.bound
    if objective != value:
        raise RefusedError(f"objective is {objective}, the mapping's hop-bytes are {value}")
    if bound is None and level.certificate is not None:
        raise RefusedError("a certificate without a bound")
    proofs = [Proof.NONE] if bound is None else [Proof.SEARCH]
    if level.certificate is not None:
        proofs = [Proof.CERTIFICATE, Proof.SEARCH]
    if level.proof not in proofs:
        raise RefusedError(f"proof is {level.proof.value}, the evidence is {proofs[0].value}")
    status = Status.OPTIMAL if objective == bound else Status.FEASIBLE
    if objective is None:
        status = Status.UNKNOWN
    if level.status is not status:
        raise RefusedError(f"status is {level.status.value}, the figures say {status.value}")
    if objective is None or bound is None:
        if level.gap is not None:
            raise RefusedError(f"gap is {level.gap} without objective and bound")
        return f"{status.value}, objective {objective}, bound {bound}"
    if bound > objective:
        raise RefusedError(f"bound {bound} is above the objective {objective}")
    gap = (objective - bound) / max(1, objective)
    if level.gap is None or not math.isclose(level.gap, gap, rel_tol=1e-9, abs_tol=1e-12):
        raise RefusedError(f"gap is {level.gap}, the figures say {gap}")
    return f"{status.value}, objective {objective}, bound {bound}"
