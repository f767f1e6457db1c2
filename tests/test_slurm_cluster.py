"""A drawn Slurm cluster of 600 nodes and 300 waiting jobs: read, placed, audited, checked."""

from __future__ import annotations

from pathlib import Path

import pytest

import topoplace as tp
from few import few_of
from real_files import real_file
from slurm_cluster import NUM_NODES, Cluster
from topoplace.cli import run
from topoplace.snapshot.held import holds_of


@pytest.mark.parametrize("seed", few_of((11, 12, 13), 0))
def test_a_whole_cluster_is_placed_and_audited_with_proofs(seed: int, tmp_path: Path) -> None:
    cluster = Cluster(seed)
    before = tp.Model.of(tp.load(cluster.write(tmp_path / "before")).snapshot)
    num_started = cluster.decide()
    after = tp.Model.of(tp.load(cluster.write(tmp_path / "after")).snapshot)
    held = holds_of(before.snapshot)
    assert all(one.certain for own in held.values() for one in own)
    result = tp.place(before, order="backfill", time_limit=60)
    assert result.check().verified
    proof = result.levels[0].certificate
    decided = len(proof.waits) + len(result.placements) + (proof.reserved is not None)
    assert decided >= 0.98 * (len(before.queue) - len(held))
    rows = tp.audit(before, after=after, order="backfill", results=tmp_path / "proofs").rows
    verdicts = [row.verdict for row in rows]
    assert {*verdicts} <= {"rightly started", "rightly waiting", "out of turn", "missed"}
    assert len(verdicts) == len(before.queue)
    assert sum(v in ("rightly started", "out of turn") for v in verdicts) == num_started
    assert all(tp.check(file).verified for file in (tmp_path / "proofs").glob("*.json"))


def test_a_cluster_drawn_is_full_and_of_every_kind_of_job(tmp_path: Path) -> None:
    cluster = Cluster(1, num_jobs=60, load=0.3)
    model = tp.Model.of(tp.load(cluster.write(tmp_path)).snapshot)
    assert model.prepare().machine.num_hosts == NUM_NODES
    queue = model.snapshot.queue
    assert any(request.at_most for request in queue)
    assert any(request.spread for request in queue)
    assert any("gpu" in (request.takes or {}) for request in queue)
    assert any("feature:" in (request.eligible or "") for request in queue)


def test_place_says_of_a_folder_what_convert_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = real_file("slurm_clusters/20_drain_down/before/squeue.json").parent
    out = str(tmp_path / "s.json")
    assert run(["convert", str(folder), "--from", "slurm", "-o", out]) == 0
    notes = capsys.readouterr().out
    assert run(["place", str(folder), "--method", "first-fit"]) == 0
    said = capsys.readouterr().err
    for note in ("1 job running, 7 queued", "nodes closed: 5"):
        assert note in notes
        assert f"before: {note}\n" in said
    assert run(["--quiet", "place", str(folder), "--method", "first-fit"]) == 0
    assert capsys.readouterr().err == ""
