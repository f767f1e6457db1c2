"""The bound of a mapping problem by distance classes, within limits of time and size."""

from __future__ import annotations

import math

from topoplace import clock
from topoplace.bounds.distance_classes.certificate import certificate_of, proven
from topoplace.bounds.distance_classes.host import host_of
from topoplace.bounds.distance_classes.relaxation import Multipliers, Relaxation
from topoplace.bounds.pairs import exchanged
from topoplace.mapping.problem import MappingProblem
from topoplace.solving import Bound

MAX_STEPS = 2000
WORK = 3e10
"""Work without a time limit, in places^3 x spaces x steps; about 40 s on one core."""

LEAST_STEPS = 200
ROUND = 25
CONVERGED = 1e-12

PATIENCE = 100
SETTLED = 1e-3
SLOW = 2e-6
"""Once its error is below `SETTLED`, a bound must gain this share in `PATIENCE` steps."""

SAFE = 0.1
"""Share of the unit that is kept for rounding multipliers to integers."""

ROUNDING_SECONDS = 3e-7
"""Upper estimate of the time the certificate takes, per square of places x spaces."""

LARGEST = 1 << 46
"""Bytes in all from which on factors would be too large for their digits."""


def distance_classes_bound(
    problem: MappingProblem, time_limit: float | None = None, target: int | None = None
) -> Bound | None:
    """Return the semidefinite bound, reduced by the distance classes of a torus.

    Parameters
    ----------
    problem
        On a machine that has a small host (see `host_of`); that every router of it gets as many
        places as the largest only adds mappings.
    time_limit
        Seconds; without it the work is bounded instead, so that the answer is the same each time.
    target
        A bound this high is enough: the hop-bytes of a mapping in hand.

    Returns
    -------
    Bound or None
        In bytes x hops; None if the machine has no small host, or there is no time.
    """
    stop = clock.deadline(time_limit)
    found = host_of(problem) if 0 < problem.graph.total_bytes < LARGEST else None
    if found is None:
        return None
    scheme, routers = found
    pairs = exchanged(problem.graph)
    matrix = pairs.matrix(scheme.num_places)
    num, spaces = scheme.num_places, len(scheme.hops)
    steps = MAX_STEPS
    if time_limit is None:
        affordable = int(WORK / (num**3 * spaces))
        if affordable < LEAST_STEPS:
            return None
        steps = min(steps, affordable)
    else:
        stop -= ROUNDING_SECONDS * (num * spaces) ** 2
        if clock.now() >= stop:
            return None
    multipliers = _solve(Relaxation(scheme, matrix), steps, stop, target, pairs.unit)
    certificate = certificate_of(scheme, routers, multipliers)
    value = -(-proven(scheme, matrix, certificate) // (2 * certificate.scale * pairs.unit))
    return Bound(pairs.unit * max(0, value), certificate)


def _solve(
    relaxation: Relaxation, steps: int, stop: float, target: int | None, unit: int
) -> Multipliers:
    """Return the best multipliers of at most so many steps, up to the time `stop`."""
    best: Multipliers | None = None
    earlier = -math.inf
    for step in range(0, steps, ROUND):
        relaxation.advance(ROUND, stop)
        current = relaxation.multipliers()
        if best is None or current.value > best.value:
            best = current
        # rounded up to the next multiple of the unit it cannot become more
        reached = target is not None and best.value > target - (1 - SAFE) * unit
        if reached or clock.now() >= stop or relaxation.error < CONVERGED:
            break
        if step % PATIENCE == 0:
            if relaxation.error < SETTLED and best.value - earlier < SLOW * abs(best.value):
                break
            earlier = best.value
    assert best is not None
    return best
