"""Placing with the mapping in mind: brute force, changes that `check` refuses, and its use."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import topoplace as tp
from tiny_joint import MODES, Joint, random_joint
from topoplace.certify import check_document
from topoplace.cli.app import app
from topoplace.errors import InputError
from topoplace.machine import Prism
from topoplace.placement.torus.joint.applications import Applications
from topoplace.placement.torus.joint.costs import achieved_costs, lower_costs, merged
from topoplace.placement.torus.problem import Candidate, MappedJob, PlacementProblem
from topoplace.result import PlacementResult, Status
from topoplace.snapshot.schema import Snapshot
from topoplace.snapshot.state import prepare
from topoplace.solving import Options, solve


def solved(snapshot: Snapshot, seed: int) -> PlacementResult:
    options = Options(20.0, interference=MODES[seed % 3], maps=True)
    return solve(prepare(snapshot), "exact", options)


def compare_with_brute_force(seed: int, *, holes: bool) -> bool:
    """Hold a result against the optimum; tell whether the bound meets it."""
    snapshot = random_joint(seed, holes=holes)
    result = solved(snapshot, seed)
    best = Joint(snapshot, MODES[seed % 3]).optimum()
    nodes, hop_bytes = result.levels
    assert check_document(result).verified, str(check_document(result))
    assert (nodes.objective, nodes.bound) == (best[0], best[0])
    assert nodes.status is Status.OPTIMAL
    assert hop_bytes.objective == best[1]
    assert hop_bytes.bound is not None
    assert hop_bytes.bound <= best[1]
    return hop_bytes.bound == hop_bytes.objective


@pytest.mark.parametrize("seed", range(24))
def test_optimum_without_holes_is_that_of_brute_force(seed: int) -> None:
    assert compare_with_brute_force(seed, holes=False)


@pytest.mark.parametrize("seed", range(100, 106))
def test_prisms_with_holes_are_mapped_as_by_brute_force(seed: int) -> None:
    compare_with_brute_force(seed, holes=True)


@pytest.mark.slow
@pytest.mark.parametrize("begin", range(200, 500, 50))
def test_many_machines_are_solved_as_by_brute_force(begin: int) -> None:
    seeds = range(begin, begin + 50)
    closed = [compare_with_brute_force(seed, holes=seed % 2 == 1) for seed in seeds]
    assert sum(closed) >= 45


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
    model.add_request("a", 2, application=tp.grid(3))
    with pytest.raises(InputError, match=r"queue\[0\].tasks: expected at most 2 tasks"):
        tp.place(model, objective="nodes,hop-bytes")
    with pytest.raises(InputError, match="objective"):
        tp.place(model, objective="nodes,hops")
    with pytest.raises(InputError, match="objective"):
        tp.place(tp.Model(tp.cubes(2)), objective="nodes,hop-bytes")


def test_changes_are_refused() -> None:
    """No figure, mapping or bound may be better than it is."""
    document = json.loads(solved(random_joint(3), 0).model_dump_json(by_alias=True))
    for seed in range(3, 40):
        if any("mapping" in p for p in document["solution"]["placements"]):
            break
        document = json.loads(solved(random_joint(seed), 0).model_dump_json(by_alias=True))
    assert check_document(PlacementResult.model_validate_json(json.dumps(document))).verified
    changed = 0
    for change in (_cheaper, _moved, _stolen, _without, _wider, _higher):
        wrong = copy.deepcopy(document)
        if change(wrong, random.Random(0)):
            changed += 1
            report = check_document(PlacementResult.model_validate_json(json.dumps(wrong)))
            assert not report.holds, change.__name__
    assert changed >= 5


def _mapped(document: dict) -> dict:
    return next(p for p in document["solution"]["placements"] if "mapping" in p)


def _cheaper(document: dict, rng: random.Random) -> bool:
    _mapped(document)["mapping"]["hop_bytes"] += 1
    return True


def _moved(document: dict, rng: random.Random) -> bool:
    own = _mapped(document)
    outside = [n for n in range(4) if str(n) not in own["nodes"]]
    own["mapping"]["nodes"][0] = (outside or [99])[0]
    return True


def _stolen(document: dict, rng: random.Random) -> bool:
    _mapped(document)["mapping"]["nodes"].pop()
    return True


def _without(document: dict, rng: random.Random) -> bool:
    del _mapped(document)["mapping"]
    return True


def _wider(document: dict, rng: random.Random) -> bool:
    bounds = document["levels"][1]["certificate"]["mappings"]
    for bound in bounds:
        bound["extents"] = [e + 100 for e in bound["extents"]]
    return bool(bounds)


def _higher(document: dict, rng: random.Random) -> bool:
    document["levels"][1]["certificate"]["mappings"] = []
    return document["levels"][1]["bound"] > 0


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
