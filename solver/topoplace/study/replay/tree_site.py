"""A tree machine under a replay (Mishra 2020, section 5.4)."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray

from topoplace.machine.hostlist import format_host_list
from topoplace.placement.tree.occupancy import Occupancy
from topoplace.placement.tree.problem import TreeProblem
from topoplace.snapshot.schema import RunningJob, Snapshot
from topoplace.snapshot.tree_state import TreeState
from topoplace.solving import Options
from topoplace.study.external.allocator import Allocator
from topoplace.study.external.trial import try_on_tree
from topoplace.study.replay.decisions import Decisions
from topoplace.study.replay.log import LogJob
from topoplace.study.replay.placing import ChooseNodes, Placer, state_with
from topoplace.study.replay.refused import require_answer
from topoplace.study.replay.site import Decision, communication_of, waiting_request

IntArray = NDArray[np.int64]


class TreeRoom:
    """The free nodes of a tree; a job fits if one switch has enough of them below it."""

    def __init__(self, occupancy: Occupancy) -> None:
        self.occupancy = occupancy
        self.running: dict[str, tuple[LogJob, Decision]] = {}

    @property
    def num_free(self) -> int:
        """Nodes that nobody holds."""
        return int(self.occupancy.free_per_leaf.sum())

    @property
    def largest(self) -> int:
        """Most free nodes below one switch."""
        return int(self.occupancy.free_per_leaf[self.occupancy.widest_leaves()].sum())

    def copy(self) -> Self:
        """Return an independent copy."""
        other = type(self)(self.occupancy.copy())
        other.running = self.running.copy()
        return other

    def start(self, job: LogJob, decision: Decision) -> None:
        """Let a job hold what was decided."""
        self.occupancy.start(decision.nodes, job.request.intensive)
        self.running[job.id] = job, decision

    def end(self, job: LogJob, decision: Decision) -> None:
        """Take back what `start` gave."""
        self.occupancy.end(decision.nodes, job.request.intensive)
        del self.running[job.id]

    def holds(self, job: LogJob) -> bool:
        """Tell whether a job would fit."""
        return self.occupancy.leaves_that_fit(job.nodes) is not None


class TreeSite:
    """A tree with its allocation method; for the parameters see `Placer`."""

    def __init__(
        self,
        state: TreeState,
        method: str | Allocator,
        options: Options,
        against: str = "default",
    ) -> None:
        self.room = TreeRoom(TreeProblem(state).occupancy())
        self.decisions: Decisions | None = None
        self._state = state
        self._options = options
        choose: str | ChooseNodes
        if isinstance(method, Allocator):
            self.decisions = Decisions()
            self._allocator, choose = method, self._ask
        else:
            choose = method
        self._placer = Placer(state, choose, options, against)

    def may_start(self, job: LogJob) -> bool:
        """Tell whether there are enough free nodes, wherever they are."""
        return job.nodes <= self.room.num_free

    def decide(self, job: LogJob) -> Decision | None:
        """Return what the method decides for a job now, or None if it finds no place."""
        return self._placer.place(self.room.occupancy, job)

    def interior(self, job: LogJob, seconds_left: dict[str, int]) -> None:
        """Return None: jobs on a tree have no prisms."""

    def snapshot(self, name: str, queue: Sequence[LogJob]) -> Snapshot:
        """Return the machine as it is, with these jobs waiting, as a document."""
        base = self._state.snapshot
        names = self._state.tree.node_names
        jobs = [
            RunningJob(
                id=job.id,
                nodes=format_host_list([names[node] for node in decision.nodes]),
                communication=communication_of(job),
                patterns=list(job.patterns) or None,
            )
            for job, decision in self.room.running.values()
        ]
        waiting = [waiting_request(job, with_patterns=True) for job in queue]
        return base.model_copy(
            update={"name": name, "running": [*base.running, *jobs], "queue": waiting}
        )

    def _ask(self, occupancy: Occupancy, job: LogJob) -> IntArray | None:
        """Return the nodes that an allocator that is not ours gives a job."""
        document = self.snapshot(f"job-{job.id}", [job])
        state = state_with(self._state, occupancy, job.request)
        state = dataclasses.replace(state, snapshot=document)
        trial = try_on_tree(state, self._allocator, self._options)
        require_answer(trial, document)
        solution = trial.result.solution
        found = next(iter(solution.allocations), None) if solution is not None else None
        assert self.decisions is not None
        self.decisions.count(found=found is not None, timed_out=trial.result.limits.hit)
        if found is None:
            return None
        place = {name: node for node, name in enumerate(self._state.tree.node_names)}
        return np.array([place[name] for name in found.nodes], dtype=np.int64)
