"""The study of the Blue Waters workload, on a tiny machine."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from scripts_of_the_project import SCRIPTS, script
from topoplace.snapshot.files import write_document
from topoplace.snapshot.generate import Workload
from topoplace.snapshot.machines import load_torus
from topoplace.snapshot.schema import PrismModel, Request, RunningJob, Snapshot

MACHINE = "torus:4x4x4:2"
WORKLOAD = Workload.model_validate(
    {
        "schema": "topoplace.workload/1",
        "name": "tiny",
        "rows": [
            {"application": "a", "nodes": [3, 9, 30], "classes": ["compute"], "minutes": [2, 5]}
        ],
    }
)


def rows_in(path: Path) -> list[dict[str, str]]:
    with path.open() as stream:
        return list(csv.DictReader(stream))


def write_snapshot(folder: Path) -> None:
    """Write a snapshot of a quarter of the machine busy."""
    running = RunningJob(
        id="busy", nodes="0-31", prism=PrismModel(origin=[0, 0, 0], extents=[1, 4, 4])
    )
    snapshot = Snapshot(
        schema_version="topoplace.snapshot/1",
        name="tiny",
        machine=load_torus(MACHINE),
        running=[running],
        queue=[Request(id=f"q{k}", nodes=n) for k, n in enumerate((20, 60, 17, 9, 30))],
    )
    write_document(folder / f"{MACHINE}_80.json", snapshot)


def test_tables_and_plots(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(SCRIPTS)
    study, page = script("study_blue_waters"), script("blue_waters_page")
    monkeypatch.setattr(study, "MACHINE", MACHINE)
    monkeypatch.setattr(study, "SNAPSHOTS", tmp_path)
    monkeypatch.setattr(study, "load_workload", lambda: WORKLOAD)
    write_snapshot(tmp_path)
    out = tmp_path / "out"
    arguments = ["--snapshots", "80", "--time-limit", "5", "--num-jobs", "40", "--jobs", "1"]
    study.main([*arguments, "-o", str(out)])
    snapshots = {row["method"]: row for row in rows_in(out / "blue_waters_snapshots.csv")}
    assert tuple(snapshots) == page.METHODS
    exact = int(snapshots["exact"]["nodes"])
    for method, row in snapshots.items():
        if method in page.PRISM_METHODS:
            assert int(row["nodes"]) <= exact <= int(row["bound"]) <= int(row["idle"]) == 96
            assert row["shared_links"] == "0"
        else:
            assert row["bound"] == row["gap"] == ""
            assert int(row["shared_links"]) > 0
    replays = {row["method"]: row for row in rows_in(out / "blue_waters_replay.csv")}
    assert tuple(replays) == page.METHODS
    for method, row in replays.items():
        assert row["jobs"] == "40"
        assert 0 < float(row["utilisation"]) <= 1
        assert 0 < float(row["system"]) <= float(row["application"]) <= 1
        shares = float(row["shared_links"]) > 0
        assert shares == (float(row["disturbed"]) > 0) == (method not in page.PRISM_METHODS)
    assert int(replays["exact"]["proven"]) > 0
    text = (out / "blue_waters.md").read_text()
    assert f"| 80 % | 96 | {snapshots['exact']['bound']} |" in text
    assert str(tmp_path) not in text
    sizes = {path.name: path.stat().st_size for path in out.glob("*.png")}
    assert set(sizes) == {"blue_waters_snapshots.png", "blue_waters_replay.png"}
    assert max(sizes.values()) < 150_000
