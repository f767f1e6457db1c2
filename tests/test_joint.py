"""Placing with the mapping in mind: brute force, changes that `check` refuses, and its use."""

from __future__ import annotations

import random
import time
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import topoplace as tp
from topoplace import clock
from topoplace.cli.app import app
from topoplace.errors import InputError
from topoplace.machine import Prism
from topoplace.placement.torus.joint.applications import Applications
from topoplace.placement.torus.joint.method import achieved_costs, lower_costs, merged
from topoplace.placement.torus.problem import Candidate, MappedJob, PlacementProblem
from topoplace.result import PlacementResult, Status
from topoplace.snapshot.state import prepare


def two_jobs() -> tp.Model:
    """Return a ring and a grid that wait for a machine on which both start."""
    model = tp.Model(tp.torus(4, 4))
    model.add_running("r", origin=(0, 0), extents=(1, 4))
    model.add_request("ring", 4, application=tp.grid(4, periodic=True, bytes=3))
    model.add_request("grid", 4, application=tp.grid(2, 2))
    return model


def test_front_door_maps_jobs_and_proves_it() -> None:
    result = tp.place(two_jobs(), objective="nodes,hop-bytes", time_limit=20)
    assert isinstance(result, PlacementResult)
    assert [(level.name, level.objective) for level in result.levels] == [
        ("nodes", 8),
        ("hop-bytes", 3 * 8 + 8),
    ]
    assert result.levels[1].status is Status.OPTIMAL
    assert result.check().verified


def test_a_limit_that_is_over_before_there_are_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "now", lambda: time.perf_counter() * 1e5)
    result = tp.place(two_jobs(), objective="nodes,hop-bytes")
    assert result.check().holds


def test_command_writes_rank_files(tmp_path: Path) -> None:
    two_jobs().save(tmp_path / "s.json")
    files = ["-o", str(tmp_path / "r.json"), "--rank-files", str(tmp_path / "ranks")]
    arguments = ["place", str(tmp_path / "s.json"), "--objective", "nodes,hop-bytes", *files]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    assert {path.name for path in (tmp_path / "ranks").iterdir()} == {"ring.csv", "grid.csv"}
    assert CliRunner().invoke(app, ["check", str(tmp_path / "r.json")]).exit_code == 0


def test_what_cannot_be_mapped_is_told() -> None:
    model = tp.Model(tp.torus(4, 4))
    with pytest.raises(InputError, match="application: expected at most 2 tasks"):
        model.add_request("a", 2, application=tp.grid(3))
    model.add_request("a", 3, application=tp.grid(3))
    less = [model.queue[0].model_copy(update={"nodes": 2})]
    model.snapshot = model.snapshot.model_copy(update={"queue": less})
    with pytest.raises(InputError, match=r"queue\[0\].tasks: expected at most 2 tasks"):
        tp.place(model, objective="nodes,hop-bytes")
    with pytest.raises(InputError, match="objective"):
        tp.place(model, objective="nodes,hops")
    with pytest.raises(InputError, match="objective"):
        tp.place(tp.Model(tp.cubes(2)), objective="nodes,hop-bytes")


def test_achieved_costs_are_above_lower_ones() -> None:
    model = tp.Model(tp.torus(4, 6))
    model.add_request("a", 8, application=tp.grid(4, 4, bytes=2), tasks_per_node=2)
    problem = PlacementProblem(prepare(model.snapshot), maps=True)
    applications = Applications(problem)
    achieved = achieved_costs(applications, 0)
    [lower] = lower_costs(problem, applications, float("inf")).costs
    assert (achieved >= lower).all()
    assert all((np.diff(achieved, axis=d) <= 0).all() for d in range(2))
    job = applications.mapped(Candidate(0, Prism((0, 0), (2, 4))), 0)
    assert isinstance(job, MappedJob)
    assert job.hop_bytes >= lower[1, 3]


def test_few_extents_hold_all() -> None:
    rng = random.Random(5)
    every = [tuple(rng.randint(1, 12) for _ in range(3)) for _ in range(200)]
    found = merged(every)
    assert len(found) <= 16
    assert all(any(all(a <= b for a, b in zip(e, f, strict=True)) for f in found) for e in every)
