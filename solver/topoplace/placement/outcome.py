"""What a placement method hands back, and its form as a result document."""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from topoplace import __version__
from topoplace.machine import Prism, format_node_set, prism_links, scattered_links
from topoplace.placement.problem import Candidate, Options, PlacementProblem, job_links
from topoplace.result import (
    RESULT_SCHEMA,
    Explanation,
    Level,
    Limits,
    Placement,
    Proof,
    Result,
    SharedLink,
    Solution,
    Status,
)
from topoplace.result.schema import Certificate
from topoplace.snapshot import Communication
from topoplace.snapshot.schema import PrismModel

LEVEL_NAMES = ("nodes", "shape", "fragmentation")
LEVEL_SENSES = ("max", "max", "min")


@dataclass(frozen=True)
class Scattered:
    """A request started on nodes that form no prism."""

    request_idx: int
    nodes: NDArray[np.int64]


@dataclass(frozen=True)
class LevelBound:
    """The certified bound of a level, in maximising sense."""

    bound: int
    certificate: Certificate


@dataclass(frozen=True)
class Outcome:
    """What a method found: who starts where, and the bounds it can prove, level by level."""

    started: Sequence[Candidate | Scattered]
    bounds: Sequence[LevelBound | None] = (None, None, None)
    time_limit_hit: bool = False
    versions: dict[str, str] = field(default_factory=dict)
    explanations: list[Explanation] = field(default_factory=list)


def result_of(
    problem: PlacementProblem, outcome: Outcome, method: str, options: Options, seconds: float
) -> Result:
    """Return the result document of an outcome."""
    started = sorted(outcome.started, key=lambda s: s.request_idx)
    levels = _levels(problem, started, outcome.bounds)
    return Result(
        schema_version=RESULT_SCHEMA,
        problem="placement",
        method=method,
        status=levels[0].status,
        objective=levels[0].objective,
        bound=levels[0].bound,
        gap=levels[0].gap,
        proof=levels[0].proof,
        seconds=round(seconds, 3),
        limits=Limits(
            time_limit=options.time_limit,
            interference=options.interference,
            hit=outcome.time_limit_hit,
        ),
        seed=options.seed,
        versions=_versions() | outcome.versions,
        levels=levels,
        solution=_solution(problem, started),
        explanations=outcome.explanations,
        instance=problem.state.snapshot,
    )


def _levels(
    problem: PlacementProblem,
    started: Sequence[Candidate | Scattered],
    bounds: Sequence[LevelBound | None],
) -> list[Level]:
    prisms = [c for c in started if isinstance(c, Candidate)]
    if len(prisms) == len(started):
        totals: list[int | None] = [sum(level) for level in problem.values_of(prisms).T.tolist()]
    else:
        totals = [sum(problem.requests[s.request_idx].value for s in started), None, None]
    levels = []
    for name, sense, total, proven in zip(LEVEL_NAMES, LEVEL_SENSES, totals, bounds, strict=True):
        sign = 1 if sense == "max" else -1
        bound = None if proven is None else sign * proven.bound
        objective = None if total is None else sign * total
        gap = None
        if bound is not None and objective is not None:
            gap = abs(objective - bound) / max(1, abs(objective))
        status = Status.UNKNOWN if objective is None else Status.FEASIBLE
        if bound is not None and bound == objective:
            status = Status.OPTIMAL
        levels.append(
            Level(
                name=name,
                sense="max" if sense == "max" else "min",
                status=status,
                objective=objective,
                bound=bound,
                gap=gap,
                proof=Proof.NONE if proven is None else Proof.CERTIFICATE,
                certificate=None if proven is None else proven.certificate,
            )
        )
    return levels


def _solution(problem: PlacementProblem, started: Sequence[Candidate | Scattered]) -> Solution:
    placements = []
    for item in started:
        request = problem.requests[item.request_idx]
        if isinstance(item, Candidate):
            prism = prism_model(item.prism)
            nodes = problem.choose_nodes(item)
        else:
            prism, nodes = None, item.nodes
        placements.append(
            Placement(request=request.id, prism=prism, nodes=format_node_set(nodes.tolist()))
        )
    num_shared = len(shared_links(problem, started))
    return Solution(
        placements=placements,
        num_shared_links=num_shared,
        conforming=num_shared == 0 and all(p.prism is not None for p in placements),
    )


def prism_model(prism: Prism) -> PrismModel:
    """Return a prism as it is written in documents."""
    return PrismModel(origin=list(prism.origin), extents=list(prism.extents))


def shared_links(
    problem: PlacementProblem, started: Sequence[Candidate | Scattered]
) -> list[SharedLink]:
    """Return the links that a started job shares, against the rule, with any other job.

    Links that only running jobs share are the snapshot's own affair and not listed.
    """
    torus = problem.torus
    users: list[tuple[str, Communication, NDArray[np.int64], bool]] = []
    for job in problem.state.running:
        if problem.uses_links(job.communication):
            users.append((job.id, job.communication, job_links(torus, job), False))
    for item in started:
        request = problem.requests[item.request_idx]
        if not problem.uses_links(request.communication):
            continue
        if isinstance(item, Candidate):
            links = prism_links(torus, item.prism)
        else:
            links = scattered_links(torus, np.unique(item.nodes // torus.nodes_per_router))
        users.append((request.id, request.communication, links, True))
    count = np.zeros(torus.num_links, dtype=np.int64)
    strict = np.zeros(torus.num_links, dtype=bool)
    new = np.zeros(torus.num_links, dtype=bool)
    for _, communication, links, is_new in users:
        count[links] += 1
        strict[links] |= not problem.is_tolerant(communication)
        new[links] |= is_new
    shared = (count > 1) & strict & new
    jobs: dict[int, list[str]] = {int(link): [] for link in np.flatnonzero(shared)}
    for name, _, links, _ in users:
        for link in links[shared[links]].tolist():
            jobs[link].append(name)
    return [SharedLink(link=link, jobs=names) for link, names in jobs.items()]


def _versions() -> dict[str, str]:
    versions = {"topoplace": __version__, "python": platform.python_version()}
    for package in ("numpy", "ortools"):
        versions[package] = importlib.metadata.version(package)
    return versions
