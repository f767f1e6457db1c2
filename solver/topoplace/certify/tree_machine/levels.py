"""Whether objectives, bounds, gaps and statuses fit each other and the solution."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from topoplace.certify.report import RefusedError
from topoplace.result import Proof, Status
from topoplace.result.mapping import Fraction as FractionModel
from topoplace.result.tree import TreeLevel, TreeResult

if TYPE_CHECKING:
    from topoplace.certify.tree_machine.solution import Starts

_LEVELS = (("nodes", "max"), ("cost", "min"))


def fraction_of(number: FractionModel | None) -> Fraction:
    """Return a number of a document, in lowest terms.

    Raises
    ------
    RefusedError
        If it is absent.
    """
    if number is None:
        raise RefusedError("a number is missing")
    return Fraction(number.numerator, number.denominator)


def check_levels(result: TreeResult, starts: Starts | None) -> str:
    """Raise `RefusedError` unless levels and top figures fit; return what was found."""
    if [(level.name, level.sense) for level in result.levels] != list(_LEVELS):
        raise RefusedError("the levels are nodes (max) and cost (min)")
    values = (None, None) if starts is None else (Fraction(starts.value), starts.cost)
    for level, value in zip(result.levels, values, strict=True):
        _check(level, value)
    first = result.levels[0]
    top = (result.status, result.objective, result.bound, result.gap, result.proof)
    own = (first.status, _whole(first.objective), _whole(first.bound), first.gap, first.proof)
    if top != own:
        raise RefusedError("the top figures are not those of the first level")
    return ", ".join(f"{level.name} {level.status.value}" for level in result.levels)


def _whole(number: FractionModel | None) -> int | None:
    if number is None:
        return None
    value = fraction_of(number)
    if value.denominator != 1:
        raise RefusedError(f"nodes are whole numbers, not {value}")
    return value.numerator


def _check(level: TreeLevel, value: Fraction | None) -> None:
    name = level.name
    if value is None:
        if level.objective is not None or level.status is not Status.UNKNOWN:
            raise RefusedError(f"{name} has an objective or a status without a solution")
    elif level.objective is None or fraction_of(level.objective) != value:
        raise RefusedError(f"{name} of the solution is {value}")
    if level.bound is None:
        if level.gap is not None or level.proof is not Proof.NONE or level.certificate is not None:
            raise RefusedError(f"{name} has a gap, a proof or a certificate without a bound")
        if level.status is Status.OPTIMAL:
            raise RefusedError(f"{name} is optimal without a bound")
        return
    if level.proof is Proof.NONE:
        raise RefusedError(f"{name} has a bound that nothing supports")
    if value is None:
        return
    bound = fraction_of(level.bound)
    if (bound < value) if level.sense == "max" else (bound > value):
        raise RefusedError(f"{name} of the solution surpasses its bound {bound}")
    if (level.status is Status.OPTIMAL) != (bound == value) or level.status not in (
        Status.OPTIMAL,
        Status.FEASIBLE,
    ):
        raise RefusedError(f"{name} has status {level.status.value} at bound {bound}")
    gap = float(abs(value - bound) / max(Fraction(1), abs(value)))
    if level.gap is None or not math.isclose(level.gap, gap, rel_tol=1e-9, abs_tol=1e-12):
        raise RefusedError(f"the gap of {name} is {gap}, not {level.gap}")
