"""The problem that is left when some started jobs stay where they are."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from topoplace.placement.problem import Candidate, PlacementProblem
from topoplace.snapshot import RunningState


def with_fixed_jobs(
    problem: PlacementProblem, fixed: Sequence[Candidate]
) -> tuple[PlacementProblem, list[int]]:
    """Return the problem of the other requests, and their queue positions in the full problem.

    Fixed jobs become running jobs on their prisms, so that every placement of the smaller problem
    together with the fixed jobs is a placement of the full one.
    """
    state = problem.state
    occupied = state.occupied.copy()
    running = list(state.running)
    for candidate in fixed:
        request = problem.requests[candidate.request_idx]
        routers = candidate.prism.routers(problem.torus)
        occupied[routers] = True
        running.append(
            RunningState(
                request.id,
                np.zeros(0, dtype=np.int64),
                routers,
                candidate.prism,
                request.communication,
            )
        )
    there = {c.request_idx for c in fixed}
    others = [i for i in range(len(problem.requests)) if i not in there]
    smaller = replace(
        state,
        occupied=occupied,
        usable=state.usable & ~np.repeat(occupied, problem.torus.nodes_per_router),
        running=tuple(running),
        queue=tuple(problem.requests[i] for i in others),
    )
    return PlacementProblem(smaller, problem.interference), others


def drop_near(
    problem: PlacementProblem, started: Sequence[Candidate], num: int, rng: random.Random
) -> list[Candidate]:
    """Return the started jobs without `num` of them that lie near a random router."""
    shape = np.array(problem.torus.shape)
    centre = np.array([rng.randrange(n) for n in problem.torus.shape])
    wraps = np.array(problem.torus.wrap)

    def away(candidate: Candidate) -> float:
        gap = (np.array(candidate.prism.origin) - centre) % shape
        inside = (-gap) % shape < np.array(candidate.prism.extents)
        step = np.where(wraps, np.minimum(gap, shape - gap), np.abs(gap))
        return float(np.where(inside, 0, step).sum()) + rng.random()

    far = sorted(started, key=away)[num:]
    return sorted(far)
