"""The applications of requests as mapping problems: in idle prisms, and in that of a job."""

from __future__ import annotations

import math
from functools import cached_property, partial

import numpy as np

from topoplace import clock
from topoplace.errors import InputError, blamed_on, number_of
from topoplace.machine import Prism, format_node_set
from topoplace.mapping.coordinates import bisect_coordinates
from topoplace.mapping.evaluate import hop_bytes
from topoplace.mapping.mapped import cheapest
from topoplace.mapping.methods.best import STRUCTURED, map_exact
from topoplace.mapping.problem import MappingProblem, prepare_mapping, spread_over_nodes
from topoplace.placement.torus.joint.layouts import (
    FEW_TASKS,
    Extents,
    Ideal,
    fitting,
    ideals,
    laid_out,
)
from topoplace.placement.torus.problem import Candidate, MappedJob, PlacementProblem
from topoplace.snapshot.schema import MAPPING_SCHEMA, MappingInstance, TasksModel, TorusModel
from topoplace.solving import Options
from topoplace.types import IntArray

_LAYOUTS = 3  # that are laid onto the nodes of a job, the best by extents
_SECONDS = 2.0  # most for a method of mapping a job


class Applications:
    """The applications of the requests of a problem (`SnapshotState.tasks`).

    After the `deadline` there is no more search for layouts, and jobs get the quickest mapping.
    """

    def __init__(self, problem: PlacementProblem, deadline: float = math.inf) -> None:
        self.problem, self.deadline = problem, deadline
        self._ideals: dict[int, list[Ideal]] = {}
        self._known: dict[tuple[int, Prism, int], MappedJob] = {}
        for idx, request in enumerate(problem.requests):
            if request.tasks is not None:
                self._require_room(idx, request.tasks)

    def _require_room(self, idx: int, tasks: int) -> None:
        """Raise `InputError` unless the tasks of a request fit its nodes and are well-formed."""
        own, field_name = self.problem.state.tasks[tasks], f"queue[{idx}].tasks"
        with blamed_on(inside=field_name):
            whole = self.in_idle(tasks, self.problem.torus.shape)
        room = self.problem.requests[idx].nodes * own.per_node
        if whole.num_tasks > room:
            expected = (
                f"at most {number_of(room, 'task')}, {own.per_node} on each node of the request"
            )
            raise InputError(expected, field=field_name, value=whole.num_tasks)

    def nodes_of(self, tasks: int) -> int:
        """Return the fewest nodes that a request with an application has."""
        return min(r.nodes for r in self.problem.requests if r.tasks == tasks)

    def ideals(self, tasks: int) -> list[Ideal]:
        """Return the layouts of an application, the best first; made once."""
        if tasks not in self._ideals:
            idle = partial(self.in_idle, tasks)
            torus = self.problem.torus
            self._ideals[tasks] = ideals(torus, self.nodes_of(tasks), idle, self.deadline)
        return self._ideals[tasks]

    @cached_property
    def _bare(self) -> TorusModel:
        """The machine without classes and service nodes."""
        machine = self.problem.state.snapshot.on(TorusModel, "a torus or mesh")
        return machine.model_copy(update={"classes": {}, "service": "", "anchored": None})

    def in_idle(self, tasks: int, extents: Extents) -> MappingProblem:
        """Return the problem of mapping an application to all nodes of a prism from 0 on."""
        torus = self.problem.torus
        inside = Prism((0,) * len(extents), extents).routers(torus)
        return self._on(self.problem.state.tasks[tasks], np.sort(torus.nodes_of(inside)))

    def _on(self, tasks: TasksModel, nodes: IntArray) -> MappingProblem:
        return prepare_mapping(
            MappingInstance(
                schema_version=MAPPING_SCHEMA,
                name="job",
                machine=self._bare,
                nodes=format_node_set(nodes.tolist()),
                tasks_per_node=tasks.per_node,
                application=tasks.application,
            )
        )

    def mapped(self, candidate: Candidate, seed: int) -> Candidate:
        """Return a candidate with its application mapped, if it has one."""
        request = self.problem.requests[candidate.request_idx]
        if request.tasks is None:
            return candidate
        key = candidate.request_idx, candidate.prism, seed
        if key not in self._known:
            self._known[key] = self._mapped(candidate, request.tasks, seed)
        return self._known[key]

    def _mapped(self, candidate: Candidate, tasks: int, seed: int) -> MappedJob:
        """Map to the default nodes of the job, and to any nodes of its prism; return the better."""
        problem = self.problem
        request = problem.requests[candidate.request_idx]
        lowest = problem.choose_nodes(candidate)
        found = [self._best_on(tasks, lowest, candidate.prism, seed)]
        if not request.geometries:  # which may need nodes in certain places
            inside = problem.torus.nodes_of(candidate.prism.routers(problem.torus))
            fits = problem.state.usable & (problem.state.node_class == request.class_idx)
            every = np.sort(inside[fits[inside]])
            if len(every) > len(lowest):
                found.append(self._best_on(tasks, every, candidate.prism, seed))
        valid = [one for one in found if len(np.unique(one[1])) <= request.nodes]
        value, at = min(valid, key=lambda one: one[0])
        used = np.unique(at)
        if np.isin(used, lowest).all():
            nodes = lowest
        else:
            rest = np.setdiff1d(every, used)[: request.nodes - len(used)]
            nodes = np.sort(np.concatenate([used, rest]))
        return MappedJob(candidate.request_idx, candidate.prism, nodes, at, value)

    def _best_on(
        self, tasks: int, nodes: IntArray, prism: Prism, seed: int
    ) -> tuple[int, IntArray]:
        """Return hop-bytes and the node of every task of the best of the quick methods."""
        problem = self._on(self.problem.state.tasks[tasks], nodes)
        at = spread_over_nodes(problem, bisect_coordinates(problem, prism.origin))
        found = [(hop_bytes(problem, at), at)]
        if clock.now() >= self.deadline:
            return found[0]
        for ideal in fitting(self.ideals(tasks), prism.extents, _LAYOUTS):
            laid = laid_out(problem, ideal, prism.origin, prism.extents)
            if laid is not None:
                found.append((hop_bytes(problem, laid), laid))
        options = Options(time_limit=_SECONDS, seed=seed)
        outcome = None
        if problem.num_tasks <= FEW_TASKS:
            outcome = map_exact(problem, options)
        elif problem.grid is not None:
            outcome = cheapest(problem, options, STRUCTURED)
            found += _by_turned_pencils(problem, options)
        if outcome is not None and outcome.solution is not None:
            at = outcome.solution.nodes
            found.append((hop_bytes(problem, at), at))
        return min(found, key=lambda one: one[0])


def _by_turned_pencils(problem: MappingProblem, options: Options) -> list[tuple[int, IntArray]]:
    """Return the pencil placements along all dimensions except the last, which `pencils` has."""
    torus, found = problem.torus, []
    machine = problem.instance.machine.only(TorusModel, "a torus or mesh")
    every = np.arange(torus.num_nodes).reshape(*torus.shape, torus.nodes_per_router)
    for d in range(torus.num_dims - 1):
        axes = [*(k for k in range(torus.num_dims) if k != d), d]
        here = every.transpose(*axes, torus.num_dims).ravel()  # our node of every turned one
        turned = {
            name: None if own is None else [own[k] for k in axes]
            for name, own in (("wrap", machine.wrap), ("bandwidth", machine.bandwidth))
        }
        nodes = np.flatnonzero(np.isin(here, problem.nodes))
        instance = problem.instance.model_copy(
            update={
                "machine": machine.model_copy(
                    update={"shape": [machine.shape[k] for k in axes], **turned}
                ),
                "nodes": format_node_set(nodes.tolist()),
            }
        )
        outcome = cheapest(prepare_mapping(instance), options, ["pencils"])
        if outcome is not None and outcome.solution is not None:
            at = here[outcome.solution.nodes]
            found.append((hop_bytes(problem, at), at))
    return found
