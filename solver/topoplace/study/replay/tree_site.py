"""A tree machine under a replay (Mishra 2020, section 5.4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from topoplace.machine.hostlist import format_host_list
from topoplace.placement.tree.occupancy import Occupancy
from topoplace.placement.tree.problem import TreeOptions, TreeProblem
from topoplace.snapshot.schema import RunningJob, Snapshot
from topoplace.snapshot.tree_state import TreeState
from topoplace.study.replay.log import LogJob
from topoplace.study.replay.placing import Placer
from topoplace.study.replay.site import Decision, communication_of, waiting_request


class TreeRoom:
    """The free nodes of a tree; a job fits if one switch has enough of them below it."""

    def __init__(self, occupancy: Occupancy) -> None:
        self.occupancy = occupancy

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
        return type(self)(self.occupancy.copy())

    def start(self, job: LogJob, decision: Decision) -> None:
        """Let a job hold what was decided."""
        self.occupancy.start(decision.nodes, job.request.intensive)

    def end(self, job: LogJob, decision: Decision) -> None:
        """Take back what `start` gave."""
        self.occupancy.end(decision.nodes, job.request.intensive)

    def holds(self, job: LogJob) -> bool:
        """Tell whether a job would fit."""
        return self.occupancy.leaves_that_fit(job.nodes) is not None


class TreeSite:
    """A tree with its allocation method; for the parameters see `Placer`."""

    def __init__(
        self, state: TreeState, method: str, options: TreeOptions, against: str = "default"
    ) -> None:
        self.room = TreeRoom(TreeProblem(state).occupancy())
        self._state = state
        self._placer = Placer(state, method, options, against)

    def may_start(self, job: LogJob) -> bool:
        """Tell whether there are enough free nodes, wherever they are."""
        return job.nodes <= self.room.num_free

    def decide(self, job: LogJob) -> Decision | None:
        """Return what the method decides for a job now, or None if it finds no place."""
        return self._placer.place(self.room.occupancy, job)

    def interior(self, job: LogJob, seconds_left: dict[str, int]) -> None:
        """Return None: jobs on a tree have no prisms."""

    def snapshot(
        self, name: str, running: Sequence[tuple[LogJob, Decision]], queue: Sequence[LogJob]
    ) -> Snapshot:
        """Return the machine with these jobs as a document."""
        base = self._state.snapshot
        names = self._state.tree.node_names
        jobs = [
            RunningJob(
                id=job.id,
                nodes=format_host_list([names[node] for node in decision.nodes]),
                communication=communication_of(job),
                patterns=list(job.patterns) or None,
            )
            for job, decision in running
        ]
        waiting = [waiting_request(job, with_patterns=True) for job in queue]
        return base.model_copy(
            update={"name": name, "running": [*base.running, *jobs], "queue": waiting}
        )
