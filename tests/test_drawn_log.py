"""Job logs drawn from the workload of Enos 2014."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts_of_the_project import script
from topoplace.errors import InputError
from topoplace.snapshot.generate import load_workload, workload_jobs
from topoplace.study.replay import read_log

draw_log, swf_text = script("draw_log").draw_log, script("draw_log").swf_text
XE_NODES = 22_640


def test_a_log_is_read_as_it_was_drawn(tmp_path: Path) -> None:
    jobs = draw_log(load_workload(), "xe", 200, XE_NODES, 70, seed=1)
    path = tmp_path / "log.swf"
    path.write_text(swf_text(jobs, "drawn"))
    log = read_log(path)
    assert log.jobs == jobs
    assert log.num_left_out == 0


def test_jobs_are_those_of_the_table_at_the_load_asked_for() -> None:
    jobs = draw_log(load_workload(), "xe", 20_000, XE_NODES, 70, seed=1)
    sizes = {job.nodes for job in workload_jobs(load_workload()) if job.node_class == "xe"}
    assert {job.nodes for job in jobs} == sizes
    assert {job.walltime // 60 for job in jobs} == {10, *range(30, 46), 60}
    assert all(job.walltime / 2 <= job.seconds <= job.walltime for job in jobs)
    span = jobs[-1].submitted - jobs[0].submitted
    load = sum(job.nodes * job.seconds for job in jobs) / (span * XE_NODES)
    assert load == pytest.approx(0.7, rel=0.03)


def test_jobs_too_large_are_not_drawn_and_seeds_differ() -> None:
    first, second = (draw_log(load_workload(), "xe", 300, 1000, 50, seed=s) for s in (1, 2))
    assert max(job.nodes for job in first) == 1000
    assert first != second
    assert first == draw_log(load_workload(), "xe", 300, 1000, 50, seed=1)


@pytest.mark.parametrize(
    ("node_class", "num_jobs", "load", "named"),
    [
        ("gpu", 5, 70, "class"),
        ("xe", 0, 70, "jobs"),
        ("xe", 5, 0, "load"),
        ("xe", 5, float("nan"), "load"),
    ],
)
def test_what_cannot_be_drawn(node_class: str, num_jobs: int, load: float, named: str) -> None:
    with pytest.raises(InputError) as caught:
        draw_log(load_workload(), node_class, num_jobs, XE_NODES, load, seed=1)
    assert caught.value.field == named


def test_the_script(tmp_path: Path) -> None:
    path = tmp_path / "log.swf"
    script("draw_log").main(["--jobs", "30", "--load", "50", "--seed", "3", "-o", str(path)])
    assert read_log(path).jobs == draw_log(load_workload(), "xe", 30, XE_NODES, 50, seed=3)
