"""Generated families of snapshots, and the profile of the exact method over them."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import pytest

from scripts_of_the_project import script
from topoplace.snapshot.machines import prepare_any, resolve_machine
from topoplace.snapshot.schema import TorusModel

FAMILIES, PROFILES = script("families"), script("study_profiles")
SMALL = TorusModel(name="small", shape=[8, 6, 4, 2], wrap=[True, False, True, False])


@pytest.mark.parametrize("name", ["scattered", "bluegene_q", "constrained", "tolerant"])
def test_the_snapshots_of_a_family_can_be_solved_and_are_the_same_again(name: str) -> None:
    family = {family.name: family for family in FAMILIES.FAMILIES}[name]
    found = family.generate(7)
    assert found == family.generate(7)
    state = prepare_any(resolve_machine(found))
    assert sum(len(job.nodes) for job in state.running) > 0.55 * state.torus.num_nodes
    prisms = [job for job in state.running if job.prism is not None]
    assert bool(prisms) == (name != "scattered")


def test_a_profile_goes_on_and_compares(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny = FAMILIES.Family("tiny", "a tiny machine", partial(FAMILIES._filled, SMALL))
    monkeypatch.setattr(PROFILES, "FAMILIES", (tiny,))
    arguments = ["study_profiles.py", "1", "--from-seed", "3", "--time-limit", "60"]
    arguments += ["--work", str(tmp_path / "work"), "-o", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", arguments)
    PROFILES.main()
    arguments += ["--before", str(PROFILES.ROOT)]
    monkeypatch.setattr(sys, "argv", arguments)
    PROFILES.main()
    runs = list(PROFILES.read_runs(tmp_path / "work" / PROFILES.LINES))
    assert [run.version for run in runs] == ["now", "before"]
    assert all(run.checked and run.proven is not None and run.gap(60) == 0 for run in runs)
    page = (tmp_path / "profiles.md").read_text()
    assert "| a tiny machine | 1 | 1 | 1 |" in page
    assert (tmp_path / "profiles.png").exists()


def test_gaps_over_time_and_what_failed() -> None:
    trace = [(0.5, None, None), (2.0, 8, None), (3.0, 8, 12), (7.0, 10, 10)]
    run = PROFILES.Run("f", 1, "now", 9, 10, 10, 8, 9, 100.0, 10, 1.0, True, trace)
    assert [run.gap(t) for t in (0.1, 2.5, 3.0, 6.9, 7.0)] == [None, None, 0.5, 0.5, 0]
    assert run.proven == 7.0
    failed = PROFILES.Run("f", 1, "now", 9, None, None, 1, 1, 100.0, 0, 0.0, False, [])
    assert failed.proven is None
    assert failed.gap(9) is None
