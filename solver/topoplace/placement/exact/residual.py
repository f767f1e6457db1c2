"""What is left of a placement problem once some jobs have their places."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from topoplace.placement.problem import Candidate, PlacementProblem
from topoplace.snapshot import RunningState


@dataclass(frozen=True)
class Residual:
    """A problem in which some jobs run already, and those requests of its queue that are left.

    Attributes
    ----------
    whole, problem
        The problem, and the smaller one.
    fixed
        The jobs that have their places, candidates of the whole problem.
    kept
        Positions in the whole queue of the requests that the smaller one has.
    """

    whole: PlacementProblem
    problem: PlacementProblem
    fixed: tuple[Candidate, ...]
    kept: tuple[int, ...]

    @classmethod
    def of(
        cls,
        whole: PlacementProblem,
        fixed: Iterable[Candidate],
        excluded: frozenset[int] = frozenset(),
    ) -> Residual:
        """Fix some jobs, and leave out the requests excluded."""
        fixed = tuple(fixed)
        state, torus = whole.state, whole.torus
        occupied, running = state.occupied.copy(), list(state.running)
        for candidate in fixed:
            request = whole.requests[candidate.request_idx]
            routers = np.sort(candidate.prism.routers(torus))
            occupied[routers] = True
            nodes = whole.choose_nodes(candidate)
            running.append(
                RunningState(request.id, nodes, routers, candidate.prism, request.communication)
            )
        gone = excluded | {c.request_idx for c in fixed}
        kept = tuple(i for i in range(len(whole.requests)) if i not in gone)
        smaller = replace(
            state,
            usable=state.usable & ~np.repeat(occupied, torus.nodes_per_router),
            occupied=occupied,
            running=tuple(running),
            queue=tuple(state.queue[i] for i in kept),
        )
        return cls(whole, PlacementProblem(smaller, whole.interference), fixed, kept)

    @property
    def fixed_value(self) -> int:
        """What the fixed jobs are worth on the first level."""
        return sum(self.whole.requests[c.request_idx].value for c in self.fixed)

    @cached_property
    def _position(self) -> dict[int, int]:
        return {whole: here for here, whole in enumerate(self.kept)}

    def here(self, candidates: Iterable[Candidate]) -> list[Candidate]:
        """Return candidates of the whole problem as those of the smaller one."""
        return [replace(c, request_idx=self._position[c.request_idx]) for c in candidates]

    def together(self, found: Sequence[Candidate]) -> list[Candidate]:
        """Return the fixed jobs with a placement of the smaller problem."""
        mine = (replace(c, request_idx=self.kept[c.request_idx]) for c in found)
        return sorted([*self.fixed, *mine])
