"""From a mapping problem to a blocks certificate (docs/proofs-mapping.md, "Blocks")."""

from __future__ import annotations

import math
from fractions import Fraction

from topoplace.bounds.blocks.averages import BoxSums, Family
from topoplace.bounds.blocks.directions import Directions, directions_of
from topoplace.bounds.blocks.families import candidate_extents
from topoplace.bounds.blocks.inside import inside_units
from topoplace.bounds.blocks.multipliers import best_multipliers
from topoplace.bounds.blocks.slope import best_slope, emitted
from topoplace.mapping.grids import VirtualGrid
from topoplace.mapping.problem import MappingProblem
from topoplace.result import Fraction as FractionModel
from topoplace.result import mapping as schema
from topoplace.solving import Bound

MAX_WORK = 40_000_000
LARGEST = 1 << 61


def blocks_bound(problem: MappingProblem, grid: VirtualGrid) -> Bound | None:
    """Return the best bound of the candidate families; None if bytes are too large to add up."""
    directions = directions_of(grid)
    n = grid.num_tasks
    if directions.weight * directions.unit * n >= LARGEST:
        return None
    families = _families(problem, directions)
    if not families:
        return Bound(0, schema.BlocksCertificate(families=[]))
    psi = inside_units(directions, max(int(f.capacities[-1]) for f in families))
    slopes = [best_slope(psi, n, family) for family in families]
    values = [
        emitted(psi, directions.total, n, family, slope)
        for family, slope in zip(families, slopes, strict=True)
    ]
    multipliers = best_multipliers(values, [family.rates for family in families])
    proven = sum((m * s for m, s in zip(multipliers, values, strict=True)), Fraction(0))
    used = [
        schema.BlockFamily(
            extents=list(family.extents),
            slope=_written(slope * directions.unit),
            multiplier=_written(m),
        )
        for family, slope, m in zip(families, slopes, multipliers, strict=True)
        if m
    ]
    value = directions.unit * max(0, math.ceil(proven))
    return Bound(value, schema.BlocksCertificate(families=used))


def _families(problem: MappingProblem, directions: Directions) -> list[Family]:
    """Return the candidate families whose boxes are small enough for the inside bound."""
    n = directions.grid.num_tasks
    largest = _largest_set(directions)
    sums = BoxSums(problem.torus, problem.capacity)
    found = []
    for extents in candidate_extents(problem.torus):
        family = sums.family(extents, n)
        if family is not None and int(family.capacities[-1]) <= largest:
            found.append(family)
    return found


def _largest_set(directions: Directions) -> int:
    """Return how large a set the inside bound can treat in a moment (sets x widest layer)."""
    grid = directions.grid
    open_sizes = [m for m, wraps in zip(grid.shape, grid.periodic, strict=True) if not wraps]
    widest = max((grid.num_tasks // m for m in open_sizes), default=128)
    return min(grid.num_tasks, max(1 << 10, MAX_WORK // widest))


def _written(number: Fraction) -> FractionModel:
    return FractionModel(numerator=number.numerator, denominator=number.denominator)
