"""Whether objective, bound, gap, status and proof of every level fit together."""

from __future__ import annotations

import math

from topoplace.certify.report import RefusedError
from topoplace.result import Level, Proof, Result, Status

NAMES = ("nodes", "shape", "fragmentation")
SENSES = ("max", "max", "min")


def sign(level_idx: int) -> int:
    """Return what turns a reported figure of a level into its maximising sense, and back."""
    return 1 if SENSES[level_idx] == "max" else -1


def check_levels(result: Result) -> None:
    """Raise unless the levels are the three of the problem and the first is the result's."""
    found = [(level.name, level.sense) for level in result.levels]
    if found != list(zip(NAMES, SENSES, strict=True)):
        raise RefusedError(f"the levels are {found}")
    first = result.levels[0]
    for field in ("status", "objective", "bound", "gap", "proof"):
        if getattr(result, field) != getattr(first, field):
            raise RefusedError(f"{field} of the result is not that of its first level")


def check_figures(level_idx: int, level: Level, value: int | None) -> str:
    """Check the figures of a level against the solution's value (maximising; None: no value).

    Returns
    -------
    str
        A summary for the report.
    """
    objective = None if value is None else sign(level_idx) * value
    if level.objective != objective:
        raise RefusedError(f"objective is {level.objective}, the solution's is {objective}")
    if (level.bound is None) != (level.certificate is None):
        raise RefusedError("a bound and a certificate come together or not at all")
    proof = Proof.NONE if level.certificate is None else Proof.CERTIFICATE
    if level.proof is not proof:
        raise RefusedError(f"proof is {level.proof.value}, the evidence is {proof.value}")
    if level.status is not (status := _status(level)):
        raise RefusedError(f"status is {level.status.value}, the figures say {status.value}")
    _check_gap(level)
    if _bound_is_worse(level_idx, level):
        raise RefusedError(f"bound {level.bound} is worse than objective {level.objective}")
    return f"{level.status.value}, objective {level.objective}, bound {level.bound}"


def _bound_is_worse(level_idx: int, level: Level) -> bool:
    """Tell whether the bound is on the wrong side of the objective."""
    if level.objective is None or level.bound is None:
        return False
    return sign(level_idx) * (level.bound - level.objective) < 0


def _status(level: Level) -> Status:
    """Return the one status the figures allow (starting nothing is always a placement)."""
    if level.objective is None:
        return Status.UNKNOWN
    return Status.OPTIMAL if level.objective == level.bound else Status.FEASIBLE


def _check_gap(level: Level) -> None:
    if level.objective is None or level.bound is None:
        if level.gap is not None:
            raise RefusedError(f"gap is {level.gap} without objective and bound")
        return
    gap = abs(level.objective - level.bound) / max(1, abs(level.objective))
    if level.gap is None or not math.isclose(level.gap, gap, rel_tol=1e-9, abs_tol=1e-12):
        raise RefusedError(f"gap is {level.gap}, the figures say {gap}")
