"""The value of a placement, and its form in a result document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from topoplace.machine import Prism, format_node_set, prism_links, scattered_links
from topoplace.placement.torus.anchored import fragmentation
from topoplace.placement.torus.problem import Candidate, MappedJob, PlacementProblem
from topoplace.result import (
    Placement,
    PlacementLevel,
    PlacementResult,
    Solution,
)
from topoplace.result.placement import TaskMapping
from topoplace.snapshot.held import facts_of
from topoplace.snapshot.schema import PrismModel
from topoplace.solving.solve import Frame
from topoplace.types import IntArray


@dataclass(frozen=True)
class Scattered:
    """A request started on nodes that form no prism."""

    request_idx: int
    nodes: IntArray


Started = Sequence[Candidate | Scattered]


def worth(problem: PlacementProblem, started: Started) -> list[int | None]:
    """Return the figures of the levels as reported; None where scattered starts have none."""
    prisms = [item for item in started if isinstance(item, Candidate)]
    value = sum(problem.requests[item.request_idx].value for item in started)
    if problem.maps:
        return [value, sum(item.hop_bytes for item in started if isinstance(item, MappedJob))]
    if len(prisms) < len(started):
        return [value, *(None for _ in problem.levels[1:])]
    if problem.is_anchored:
        return [value, fragmentation(problem, prisms)]
    nodes, shape, boundary = (sum(level) for level in problem.values_of(prisms).T.tolist())
    return [nodes, shape, -boundary]


def _solution(problem: PlacementProblem, started: Started) -> Solution:
    placements = []
    for item in sorted(started, key=lambda item: item.request_idx):
        request, others = problem.requests[item.request_idx], None
        if isinstance(item, Candidate):
            prism = prism_model(item.prism)
            others = [prism_model(other) for other in item.others] or None
            nodes = item.nodes if isinstance(item, MappedJob) else problem.choose_nodes(item)
        else:
            prism, nodes = None, item.nodes
        placements.append(
            Placement(
                request=request.id,
                prism=prism,
                other_prisms=others,
                nodes=format_node_set(nodes.tolist()),
                mapping=_mapping(item),
            )
        )
    num_shared = num_shared_links(problem, started)
    return Solution(
        placements=placements,
        num_shared_links=num_shared,
        conforming=num_shared == 0 and all(p.prism is not None for p in placements),
    )


def _mapping(item: Candidate | Scattered) -> TaskMapping | None:
    if not isinstance(item, MappedJob):
        return None
    return TaskMapping(nodes=item.tasks.tolist(), hop_bytes=item.hop_bytes)


def prism_model(prism: Prism) -> PrismModel:
    """Return a prism as it is written in documents."""
    return PrismModel(origin=list(prism.origin), extents=list(prism.extents))


def num_shared_links(problem: PlacementProblem, started: Started) -> int:
    """Count the links that a started job shares, against the rule, with any other job.

    Links that only running jobs share belong to the snapshot and do not count.
    """
    torus = problem.torus
    users = np.zeros(torus.num_links, dtype=np.int64)
    strict, new = np.zeros((2, torus.num_links), dtype=bool)
    for job, links in zip(problem.state.running, problem.running_links, strict=True):
        users[links] += 1
        strict[links] |= not problem.is_tolerant(job.communication)
    for item in started:
        request = problem.requests[item.request_idx]
        if not problem.uses_links(request.communication):
            continue
        if isinstance(item, Candidate):
            links = prism_links(torus, item.prism)
        else:
            links = scattered_links(torus, np.unique(item.nodes // torus.nodes_per_router))
        users[links] += 1
        strict[links] |= not problem.is_tolerant(request.communication)
        new[links] = True
    return int(((users > 1) & strict & new).sum())


def _facts(result: PlacementResult) -> dict[str, int | None]:
    shared = None if result.solution is None else result.solution.num_shared_links
    return {**facts_of(result), "shared": shared}


FRAME = Frame(
    worth,
    PlacementResult,
    PlacementLevel,
    _solution,
    rule=lambda problem: {"interference": problem.interference},
    extra=lambda problem, outcome: {"explanations": list(outcome.explanations)},
    facts=_facts,
)
