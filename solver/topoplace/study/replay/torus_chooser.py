"""Who says where a job goes on a torus: a method of ours, or an allocator that is not."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from topoplace.errors import unknown_name
from topoplace.machine import Prism, parse_node_set
from topoplace.placement.outcome import worth
from topoplace.placement.problem import Candidate, PlacementProblem
from topoplace.snapshot.schema import Communication
from topoplace.solving import Method, Options, found_by, methods
from topoplace.study.external.allocator import Allocator
from topoplace.study.external.trial import try_on_torus
from topoplace.study.replay.decisions import Decisions
from topoplace.study.replay.log import LogJob
from topoplace.study.replay.refused import require_answer
from topoplace.study.replay.site import communication_of
from topoplace.study.replay.torus_room import TorusRoom


@dataclass(frozen=True)
class Place:
    """The nodes of a job, and its prism unless they are scattered."""

    nodes: NDArray[np.int64]
    prism: Prism | None


class Chooser(Protocol):
    """Finds a place for a job.

    Attributes
    ----------
    in_prisms
        Whether a job fits where a prism has room for it; else where there are enough nodes.
    decisions
        What it did so far.
    """

    in_prisms: bool
    decisions: Decisions

    def choose(self, job: LogJob, room: TorusRoom) -> Place | None:
        """Return the place of a job in a room, or None if it does not start now."""


def placement_method(name: str) -> Method:
    """Return a registered placement method.

    Raises
    ------
    InputError
        If there is no such method.
    """
    known = methods("placement")
    if name not in known:
        raise unknown_name(name, known, field="method")
    return known[name]


def chooser_of(method: str | Allocator, options: Options) -> Chooser:
    """Return who chooses.

    Raises
    ------
    InputError
        If there is no such method.
    """
    if isinstance(method, Allocator):
        return _OutsideChooser(method, options)
    return _MethodChooser(placement_method(method), options)


@dataclass(frozen=True)
class _ProblemNow(PlacementProblem):
    """A problem told the links in use, which would take most of a decision to find again.

    Its one request is never tolerant, so that all of them are closed to it.
    """

    used_links: NDArray[np.bool_] = dataclasses.field(default_factory=lambda: np.zeros(0, bool))

    def closed_links(self, communication: Communication) -> NDArray[np.bool_]:
        """Return the links running jobs close to such a request, shape ``(num_links,)``."""
        return self.used_links & self.uses_links(communication)


class _MethodChooser:
    """Asks a method of ours, once for jobs that look alike to it while nothing changes."""

    def __init__(self, method: Method, options: Options) -> None:
        self.in_prisms = method.uses_prisms
        self.decisions = Decisions()
        self._method = method
        self._options = options
        self._known: dict[tuple[int, Communication], Place | None] = {}
        self._known_at = -1

    def choose(self, job: LogJob, room: TorusRoom) -> Place | None:
        if room.version != self._known_at:
            self._known, self._known_at = {}, room.version
        key = (job.nodes, communication_of(job))
        if key not in self._known:
            self._known[key] = self._asked(job, room)
        return self._known[key]

    def _asked(self, job: LogJob, room: TorusRoom) -> Place | None:
        state, rule = room.state_for(job), self._options.interference
        problem = PlacementProblem(state, rule)
        if self.in_prisms:
            problem = _ProblemNow(state, rule, used_links=room.used_links)
        outcome = found_by(self._method, problem, self._options)
        started = outcome.solution or ()
        item = next(iter(started), None)
        proven = isinstance(item, Candidate) and worth(problem, started) == [
            None if bound is None else bound.value for bound in outcome.bounds
        ]
        self.decisions.count(
            found=item is not None, timed_out=outcome.time_limit_hit, proven=proven
        )
        if isinstance(item, Candidate):
            return Place(problem.choose_nodes(item), item.prism)
        return None if item is None else Place(item.nodes, None)


class _OutsideChooser:
    """Runs an allocator on the machine as it is, with the job as its queue."""

    def __init__(self, allocator: Allocator, options: Options) -> None:
        self.in_prisms = allocator.in_prisms
        self.decisions = Decisions()
        self._allocator = allocator
        self._options = options

    def choose(self, job: LogJob, room: TorusRoom) -> Place | None:
        document = room.document(f"job-{job.id}", [job])
        state = dataclasses.replace(room.state_for(job), snapshot=document)
        trial = try_on_torus(state, self._allocator, self._options)
        require_answer(trial, document)
        solution = trial.result.solution
        placement = next(iter(solution.placements), None) if solution is not None else None
        self.decisions.count(found=placement is not None, timed_out=trial.result.limits.hit)
        if placement is None:
            return None
        prism = None
        if placement.prism is not None:
            prism = Prism(tuple(placement.prism.origin), tuple(placement.prism.extents))
        nodes = parse_node_set(placement.nodes, room.torus.num_nodes)
        return Place(np.asarray(nodes, dtype=np.int64), prism)
