"""Where a job of a log goes on a tree, and how long it runs there."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from topoplace.placement.tree.heuristics.in_turn import registered_allocator
from topoplace.placement.tree.occupancy import Occupancy
from topoplace.placement.tree.problem import TreeProblem
from topoplace.snapshot.tree_state import TreeRequest, TreeState
from topoplace.solving import Options, found_by, method_of
from topoplace.study.replay.log import LogJob
from topoplace.study.replay.site import Decision, run_seconds

IntArray = NDArray[np.int64]

ChooseNodes = Callable[[Occupancy, LogJob], IntArray | None]
"""Returns the nodes of a job, in rank order, or None if it does not start now."""


class Placer:
    """Places one job at a time by a method.

    Parameters
    ----------
    state
        The machine.
    method
        A name of `topoplace.solving.methods`, or what chooses nodes itself.
    options
        Time limit per job, and seed.
    against
        The reference of eq. (7): the method under which jobs run as long as in the log.

    Raises
    ------
    InputError
        If there is no such method.
    """

    def __init__(
        self,
        state: TreeState,
        method: str | ChooseNodes,
        options: Options | None = None,
        against: str = "default",
    ) -> None:
        options = options or Options()
        self._choose: ChooseNodes
        self._choose = _Chooser(state, method, options) if isinstance(method, str) else method
        self._reference = None if against == method else _Chooser(state, against, options)

    def place(self, occupancy: Occupancy, job: LogJob) -> Decision | None:
        """Return what the method decides for a job now, or None if it does not fit.

        Where the reference has no place for the job (Slurm's default wants one switch above all
        nodes; a method may do with one above any two), it runs as long as in the log, and its
        `default_cost` is its cost.
        """
        nodes = self._choose(occupancy, job)
        if nodes is None:
            return None
        if not job.request.intensive:
            return Decision(nodes, Fraction(0), Fraction(0), job.seconds)
        cost = default_cost = occupancy.cost_with(nodes, job.patterns)
        if self._reference is not None:
            others = self._reference(occupancy, job)
            if others is not None:
                default_cost = occupancy.cost_with(others, job.patterns)
        return Decision(nodes, cost, default_cost, run_seconds(job, cost, default_cost))


class _Chooser:
    """A method as a function from what is free, and a job, to nodes."""

    def __init__(self, state: TreeState, method: str, options: Options) -> None:
        self._state = state
        self._options = options
        self._method = method_of("allocation", method)
        self._allocator = registered_allocator(method)
        self._rng = np.random.default_rng(options.seed)

    def __call__(self, occupancy: Occupancy, job: LogJob) -> IntArray | None:
        request = job.request
        if self._allocator is not None:
            return self._allocator(occupancy, request, self._rng)
        state = state_with(self._state, occupancy, request)
        started = found_by(self._method, TreeProblem(state), self._options).solution
        return None if started is None else started.get(0)


def state_with(state: TreeState, occupancy: Occupancy, request: TreeRequest) -> TreeState:
    """Return a machine as occupied, with a queue of one request; its document stays as it was."""
    return dataclasses.replace(
        state,
        free=occupancy.free.copy(),
        busy=occupancy.busy.copy(),
        comm=occupancy.comm.copy(),
        requests=(request,),
    )
