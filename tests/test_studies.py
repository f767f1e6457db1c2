"""The scripts of the studies, on tiny settings."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from real_files import real_file
from scripts_of_the_project import script
from topoplace.errors import InputError, TopoplaceError
from topoplace.machine import Torus
from topoplace.snapshot.machines import load_torus
from topoplace.study.batch.solving import solve_task
from topoplace.study.batch.task import Ending, Task
from topoplace.study.replay import read_log

MACHINE = "torus:4x4x4:2"
GENERATE = script("generate_snapshots")
TABLE_II = GENERATE.load_workload()
WORKLOAD = GENERATE.Workload.model_validate(
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


def pictures_in(folder: Path) -> set[str]:
    pictures = list(folder.glob("*.png"))
    assert max(path.stat().st_size for path in pictures) < 150_000
    return {path.name for path in pictures}


def test_pencils_no_step_is_worse_than_the_one_before(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pencils = script("study_pencils")
    monkeypatch.setattr(pencils, "GRIDS", (pencils.Grid((8, 8, 8), 4, (5, 5, 7)),))
    arguments = ["--snapshots", "--percents", "0", "5", "60", "--seeds", "1", "--jobs", "1"]
    pencils.main([*arguments, "--time-limit", "5", "--search", "0.1", "-o", str(tmp_path)])
    rows = rows_in(tmp_path / "pencils.csv")
    assert [int(row["percent"]) for row in rows] == [0, 5, 5, 60, 60]
    fit = [row for row in rows if row["topaware"]]
    assert {row["percent"] for row in fit} == {"0", "5"}
    for row in fit:
        steps = [int(row[name]) for name in ("topaware", "window", "pencils", "searched", "bound")]
        assert steps == sorted(steps, reverse=True)
        assert (row["window_proven"], row["pencils_complete"]) == ("True", "True")
    whole = fit[0]
    assert whole["topaware"] == whole["layout_ideal"]
    assert whole["pencils"] == whole["needed"]
    assert any(int(row["pencils"]) < int(row["topaware"]) for row in fit)
    page = (tmp_path / "pencils.md").read_text()
    assert "| prisms | 60 % | 0 of 1 | - |" in page
    assert str(tmp_path) not in page
    assert pictures_in(tmp_path) == {"pencils_excess.png", "pencils_removed.png"}


@pytest.mark.parametrize("setting", ["scattered", "prisms"])
def test_unusable_routers_are_as_many_as_asked_and_in_the_region(setting: str) -> None:
    cases = script("study_pencils")
    drawn, again, other = (
        cases.unusable(
            Torus((6, 6, 6)), np.arange(100, 200), cases.Case(setting, cases.GRIDS[0], 8, seed)
        ).tolist()
        for seed in (0, 0, 1)
    )
    assert len(set(drawn)) == len(drawn) == 8
    assert set(drawn) <= set(range(100, 200))
    assert drawn == again
    assert set(drawn) != set(other)


class InProcess:
    """An executor of batches that starts no process."""

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def outcomes(self, tasks: Iterable[Task]) -> Iterator[tuple[Task, Ending]]:
        for task in tasks:
            yield task, solve_task(task)

    def close(self) -> None:
        pass


def test_fill_holds_every_prism_method_against_the_bound_and_goes_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fill = script("study_fill")
    work, out = tmp_path / "work", tmp_path / "out"
    arguments = ["--machines", "bluegene_8x8x8", "--fills", "70", "--seeds", "1", "1"]
    arguments += ["--time-limits", "1", "1.5", "--jobs", "1", "--work", str(work), "-o", str(out)]
    monkeypatch.setattr(fill, "Pool", InProcess)
    fill.main(arguments)
    rows = rows_in(out / "fill.csv")
    assert [(row["fill"], row["method"]) for row in rows] == [("70", m) for m in fill.METHODS]
    for row in rows:
        started, incumbent, bound = (int(row[k]) for k in ("started", "incumbent", "bound"))
        assert incumbent <= bound <= int(row["idle"])
        if row["method"] in fill.NODE_ORDERS:
            assert row["gap"] == ""
        else:
            assert started <= incumbent
            assert float(row["gap"]) >= 0
            assert row["shared_links"] == "0"
        if row["method"] == "exact":
            assert started == incumbent
            assert (row["status"] == "optimal") == (started == bound)
    assert pictures_in(out) == {"fill_bluegene_8x8x8.png"}
    before = (out / "fill.csv").read_bytes()
    monkeypatch.setitem(globals(), "solve_task", None)  # nothing is solved again
    fill.main(arguments)
    assert (out / "fill.csv").read_bytes() == before


def test_fill_stops_at_a_result_that_the_checker_refuses(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fill = script("study_fill")
    monkeypatch.setattr(fill, "Pool", InProcess)
    machine = load_torus("bluegene_8x8x8")
    drawn = fill.draw(machine, [80], 1, tmp_path / "snapshots")
    done = fill.solve("first-fit", drawn, tmp_path / "first-fit", 1, 1)
    result = tmp_path / "first-fit" / done.rows[0].result
    assert fill.verified(result)
    document = json.loads(result.read_text())
    document["objective"] += 1
    result.write_text(json.dumps(document))
    with pytest.raises(TopoplaceError, match="does not verify"):
        fill.require_verified([result], 1)


def test_the_small_machine_s_workload_is_scaled_to_it() -> None:
    fill = script("study_fill")
    workload = TABLE_II
    assert fill.workload_for(load_torus("blue_waters")) == workload
    scaled = fill.workload_for(load_torus("bluegene_8x8x8"))
    assert {name for row in scaled.rows for name in row.classes} == {"compute"}
    largest = max(size for row in scaled.rows for size in row.nodes)
    assert largest == round(max(s for row in workload.rows for s in row.nodes) * 512 / 22_640)
    assert min(size for row in scaled.rows for size in row.nodes) == 1


def test_blue_waters_tables_and_plots(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    study = script("study_blue_waters")
    monkeypatch.setattr(study, "MACHINE", MACHINE)
    monkeypatch.setattr(study, "SNAPSHOTS", tmp_path)
    monkeypatch.setattr(study, "load_workload", lambda: WORKLOAD)
    quarter = {"id": "busy", "nodes": "0-31", "prism": {"origin": [0, 0, 0], "extents": [1, 4, 4]}}
    queue = [{"id": f"q{k}", "nodes": n} for k, n in enumerate((20, 60, 17, 9, 30))]
    head = {"schema": "topoplace.snapshot/1", "name": "tiny", "machine": MACHINE}
    snapshot = tmp_path / f"{MACHINE}_80.json"
    snapshot.write_text(json.dumps(head | {"running": [quarter], "queue": queue}))
    out = tmp_path / "out"
    arguments = ["--snapshots", "80", "--time-limit", "5", "--num-jobs", "40", "--jobs", "1"]
    study.main([*arguments, "-o", str(out)])
    snapshots = {row["method"]: row for row in rows_in(out / "blue_waters_snapshots.csv")}
    assert tuple(snapshots) == study.METHODS
    exact = int(snapshots["exact"]["nodes"])
    for method, row in snapshots.items():
        if method in study.PRISM_METHODS:
            assert int(row["nodes"]) <= exact <= int(row["bound"]) <= int(row["idle"]) == 96
            assert row["shared_links"] == "0"
        else:
            assert row["bound"] == row["gap"] == ""
            assert int(row["shared_links"]) > 0
    replays = {row["method"]: row for row in rows_in(out / "blue_waters_replay.csv")}
    assert tuple(replays) == study.METHODS
    for method, row in replays.items():
        assert row["jobs"] == "40"
        assert 0 < float(row["utilisation"]) <= 1
        assert 0 < float(row["system"]) <= float(row["application"]) <= 1
        shares = float(row["shared_links"]) > 0
        assert shares == (float(row["disturbed"]) > 0) == (method not in study.PRISM_METHODS)
    assert int(replays["exact"]["proven"]) > 0
    text = (out / "blue_waters.md").read_text()
    assert f"| 80 % | 96 | {snapshots['exact']['bound']} |" in text
    assert str(tmp_path) not in text
    assert pictures_in(out) == {"blue_waters_snapshots.png", "blue_waters_replay.png"}


def test_the_study_of_mishra_2020(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = str(real_file("theta/theta_1000.swf"))
    document = tmp_path / "mishra2020.md"
    study = script("study_mishra2020")
    monkeypatch.setattr(study, "SETS", {"RHVD": study.SETS["RHVD"]})
    begin, end = "<!-- tables: written by scripts/study_mishra2020.py -->", script("study").END
    document.write_text(f"# By hand\n\n{begin}\nold\n{end}\n\nThe reading.\n")
    args = ["--methods", "default", "greedy", "--seeds", "2", "--limit", "40", "-o", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["study", log, *args])
    study.main()
    text = document.read_text()
    assert text.startswith("# By hand\n")
    assert text.endswith("\n\nThe reading.\n")
    assert "old" not in text
    assert "| 16 | continuous | RHVD | 20.5 / 22.3 / 24.0 |" in text
    rows = rows_in(tmp_path / "mishra2020.csv")
    assert len(rows) == 2 * 3 * 2 * 2  # machines, protocols, seeds, methods
    assert all(float(r["execution_percent_saved"]) == 0 for r in rows if r["method"] == "default")
    assert any(float(r["mean_job_gain"]) for r in rows if r["method"] == "greedy")
    assert {study.leaves_of(4392, n).machine.num_leaves for n in (16, 366)} == {275, 12}


def test_the_three_machines_of_mishra_2020(tmp_path: Path) -> None:
    script("study_mishra_logs").main(["--limit", "12", "--seeds", "1", "-o", str(tmp_path)])
    rows = rows_in(tmp_path / "mishra_logs.csv")
    assert len(rows) == 3 * 8 * 4  # machines, cases, methods
    assert {row["given"] for row in rows} == {"False"}
    assert all(float(r["execution_saved"]) == 0 for r in rows if r["method"] == "default")
    text = (tmp_path / "mishra2020.md").read_text()
    for part in ("### Tables 3 and 4", "| Mira | RHVD |", "### Figure 7", "### Figure 9"):
        assert part in text


XE_NODES = 22_640


def test_drawn_logs_are_of_the_table_at_the_load_asked_for(tmp_path: Path) -> None:
    path, draw = tmp_path / "log.swf", script("draw_log")
    draw.main(["--jobs", "20000", "--load", "70", "--seed", "3", "-o", str(path)])
    jobs = draw.draw_log(TABLE_II, {None: XE_NODES}, 20_000, 70, seed=3)
    read = read_log(path).jobs
    assert [replace(job, application=None) for job in read] == [
        replace(job, application=None) for job in jobs
    ]
    same = {(one.application, other.application) for one, other in zip(read, jobs, strict=True)}
    assert len(same) == len({job.application for job in jobs}) == 9
    sizes = {job.nodes for job in GENERATE.workload_jobs(TABLE_II) if job.node_class == "xe"}
    assert {job.nodes for job in jobs} == sizes
    assert {job.walltime // 60 for job in jobs} == {10, *range(30, 46), 60}
    assert all(job.walltime / 2 <= job.seconds <= job.walltime for job in jobs)
    span = jobs[-1].submitted - jobs[0].submitted
    load = sum(job.nodes * job.seconds for job in jobs) / (span * XE_NODES)
    assert load == pytest.approx(0.7, rel=0.03)
    first, second = (draw.draw_log(TABLE_II, {None: 1000}, 300, 50, seed=s) for s in (1, 2))
    assert max(job.nodes for job in first) == 1000  # larger ones are not drawn
    assert first != second


def test_drawn_logs_of_several_classes_with_shares_and_waves(tmp_path: Path) -> None:
    path, draw = tmp_path / "log.swf", script("draw_log")
    shares = {"NAMD": 1.0, "Chroma": 1.0, "WRF": 2.0}
    nodes = {None: XE_NODES, "xk": 4224}
    jobs = draw.draw_log(TABLE_II, nodes, 20_000, 70, seed=4, shares=shares, wave=1200)
    work = {
        name: sum(j.nodes * j.seconds for j in jobs if j.application == name) for name in shares
    }
    assert work["WRF"] / sum(work.values()) == pytest.approx(0.5, abs=0.02)
    assert work["NAMD"] / work["Chroma"] == pytest.approx(1, rel=0.05)
    assert {job.node_class for job in jobs if job.application == "NAMD"} == {None, "xk"}
    assert {job.node_class for job in jobs if job.application == "Chroma"} == {"xk"}
    assert {job.submitted % 1200 for job in jobs} == {0}
    draw.main(["--jobs", "50", "--classes", "xe", "xk", "--seed", "4", "-o", str(path)])
    read = read_log(path, partitions={"1": "xe", "2": "xk"}).jobs
    assert {job.node_class for job in read} == {"xe", "xk"}


@pytest.mark.parametrize(
    ("node_class", "num_jobs", "load", "named"),
    [("gpu", 5, 70, "class"), (None, 0, 70, "jobs"), (None, 5, float("nan"), "load")],
)
def test_what_cannot_be_drawn(
    node_class: str | None, num_jobs: int, load: float, named: str
) -> None:
    with pytest.raises(InputError) as caught:
        script("draw_log").draw_log(TABLE_II, {node_class: XE_NODES}, num_jobs, load, seed=1)
    assert caught.value.field == named


def test_the_study_of_schedulers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = script("study_schedulers")
    monkeypatch.setattr(study, "LOADS", (80,))
    pages, own = tmp_path / "guide" / "schedulers", tmp_path / "studies"
    pages.mkdir(parents=True)
    own.mkdir()
    (pages / "slurm-torus3d.md").write_text("# By hand\n")
    sizes = ["--seeds", "900", "--jobs", "2", "-o", str(own)]
    for part in ("alone", "queue"):
        study.main([part, "--racks", "9", "--time-limit", "5", *sizes])
    study.main(["torus", *sizes])
    rows = {part: rows_in(own / f"schedulers_{part}.csv") for part in ("alone", "queue", "torus")}
    assert len(rows["alone"]) == 2 * 9  # kinds of requests, methods
    for row in (*rows["alone"], *rows["torus"]):
        assert int(row["fewest"]) <= int(row["used"])
        assert int(row["optimal"]) <= int(row["placed"]) <= int(row["fit"]) <= 2
        assert row["method"] != "exact" or row["placed"] == row["fit"]
    bounds = {row["load"]: int(row["bound"]) for row in rows["queue"] if row["method"] == "exact"}
    assert all(int(row["hosts"]) <= bounds[row["load"]] for row in rows["queue"])
    text = (own / "schedulers.md").read_text()
    assert text.count("<!-- end of tables -->") == 3
    assert str(tmp_path) not in text
    assert "| slurm-torus3d |" in (pages / "slurm-torus3d.md").read_text()
    assert pictures_in(own) == {"schedulers_alone.png", "schedulers_queue.png"}


def test_the_study_of_recorded_decisions(tmp_path: Path) -> None:
    data, own = tmp_path / "data", tmp_path / "studies"
    own.mkdir()
    for name, few in (("slurm_block", (0, 1, -1)), ("kueue_real", (0, 1))):
        lines = real_file(f"{name}/decisions.jsonl").read_text().splitlines()
        (data / name).mkdir(parents=True)
        (data / name / "decisions.jsonl").write_text("\n".join(lines[k] for k in few))
    (data / "slurm_real").mkdir()
    decisions = json.loads(real_file("slurm_real/decisions.json").read_text())
    (data / "slurm_real" / "decisions.json").write_text(json.dumps(decisions[:2]))
    topology = real_file("slurm_real/topology.conf").read_text()
    (data / "slurm_real" / "topology.conf").write_text(topology)
    script("study_schedulers").main(["recorded", "--data", str(data), "-o", str(own)])
    rows = rows_in(own / "schedulers_recorded.csv")
    assert [row["scheduler"] for row in rows] == [
        *["slurm-block"] * 2,
        *["slurm-tree"] * 3,
        *["kueue"] * 2,
    ]
    text = (own / "schedulers.md").read_text()
    assert "| tree, select/linear | 2 | 2 | 100.0 % |" in text
    assert str(tmp_path) not in text


def test_the_folds_of_bhatele_2008_table_4_are_not_reversed() -> None:
    papers = script("study_papers")
    for torus, *columns in papers.TABLE_4:
        for shape, (_, aware) in zip(((64, 1024), (32, 512)), columns, strict=True):
            assert papers.unreversed(torus, shape) == aware


def test_figures_of_a_paper_that_are_only_read() -> None:
    papers = script("study_papers")
    rows = [*papers.bhatele_2009(), *papers.fiedler()]
    assert all(len(row) == 4 and all(row) for row in rows)
    exact = {row[0]: row[1:3] for row in rows}
    assert exact["geometry request"][0] == exact["geometry request"][1]
