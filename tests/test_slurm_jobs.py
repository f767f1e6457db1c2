"""Slurm's two listings of jobs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from slurm_files import HEADER, job_entry, job_line, written
from topoplace.errors import InputError
from topoplace.snapshot.readers.slurm_jobs import SlurmJobs, read_slurm_jobs


def jobs_of_text(folder: Path, *lines: str) -> SlurmJobs:
    return read_slurm_jobs(written(folder, "\n".join([HEADER, *lines]) + "\n"))


def jobs_of_json(folder: Path, *entries: object) -> SlurmJobs:
    return read_slurm_jobs(written(folder, json.dumps({"jobs": entries})))


def test_jobs_of_both_forms_are_the_same(tmp_path):
    times = {"start": "N/A", "submitted": "2026-03-01T10:01:00"}
    lines = [
        job_line(id=9, priority=5, limit="1-02:03:04", **times),
        job_line(id=10, priority=5, comment="pattern=rhvd:60:1024,rd:30"),
        job_line(id=8, priority=7, comment="a|b pattern=none"),
        job_line(id=3, state="RUNNING", hosts="n[0-1]", comment="x pattern=RING y", limit="30:00"),
        job_line(id=4, state="CANCELLED"),
        job_line(id=5, priority=0),
        job_line(id="7_[1-2,4%1]", limit="2:00:00"),
        job_line(id="6+1", state="RUNNING", nodes=1, hosts="n4"),
    ]
    seconds = ((26 * 60) + 3) * 60 + 4
    entries = [
        job_entry(job_id=9, priority=5, time_limit=seconds // 60, submit_time=1_000_060),
        job_entry(job_id=10, priority=5, comment="pattern=rhvd:60:1024,rd:30"),
        job_entry(job_id=8, priority=7, comment="pattern=none"),
        job_entry(
            job_id=3,
            job_state=["RUNNING"],
            nodes="n[0-1]",
            comment="pattern=ring",
            time_limit={"set": True, "infinite": False, "number": 30},
        ),
        job_entry(job_id=4, job_state=["CANCELLED"]),
        job_entry(job_id=5, priority={"set": True, "infinite": False, "number": 0}),
        job_entry(job_id=7, array_job_id=7, array_task_string="1-2,4%1", time_limit=120),
        job_entry(job_id=61, het_job_id=6, het_job_offset=1, job_state="RUNNING", node_count=1)
        | {"nodes": "n4", "time_limit": {"set": False, "infinite": True, "number": 0}},
    ]
    text, listed = jobs_of_text(tmp_path, *lines), jobs_of_json(tmp_path, *entries)
    assert text.running == listed.running
    assert text.num_held == listed.num_held == 1
    # squeue --json rounds limits to minutes
    assert [job.walltime for job in text.queue] == [7200, 7200, 7200, None, seconds, None]
    rounded = [job.model_copy(update={"walltime": (job.walltime or 0) // 60}) for job in text.queue]
    assert rounded == [
        job.model_copy(update={"walltime": (job.walltime or 0) // 60}) for job in listed.queue
    ]
    assert [job.id for job in text.queue] == ["7_1", "7_2", "7_4", "8", "9", "10"]
    assert [job.submitted for job in text.queue] == [0, 0, 0, 0, 60, 0]
    assert [job.id for job in text.running] == ["3", "6+1"]


def test_patterns_of_comments(tmp_path):
    jobs = jobs_of_text(
        tmp_path,
        job_line(id=1, comment="pattern=rhvd"),
        job_line(id=2, comment="pattern=rhvd:60:1024,rd:30"),
        job_line(id=3, comment="pattern=none"),
        job_line(id=4, comment="about patterns=rd"),
    )
    uses = [
        [(use.pattern, use.share, use.message_bytes) for use in job.patterns or ()]
        for job in jobs.queue
    ]
    assert uses == [[("rhvd", 100, 1)], [("rhvd", 60, 1024), ("rd", 30, 1)], [], []]
    assert [job.communication for job in jobs.queue] == ["strict", "strict", "none", "strict"]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"state": "R"}, "line 3, STATE: expected a job state"),
        ({"nodes": "x"}, "line 3, NODES: expected an integer from 1"),
        ({"nodes": 0}, "line 3, NODES: expected an integer from 1"),
        ({"nodes": 10**12}, "line 3: expected at most"),
        ({"priority": -1}, "line 3, PRIORITY: expected an integer"),
        ({"limit": "soon"}, "line 3, TIME_LIMIT: expected a time"),
        ({"submitted": "now"}, "line 3, SUBMIT_TIME: expected a time"),
        ({"comment": "pattern=butterfly"}, "line 3, COMMENT: expected PATTERN[:SHARE[:BYTES]]"),
        ({"comment": "pattern="}, "line 3, COMMENT: expected PATTERN"),
        ({"comment": "pattern=rd:0"}, "line 3, COMMENT: expected an integer from 1"),
        ({"comment": "pattern=rd:101"}, "line 3, COMMENT: expected at most 100"),
        ({"comment": "pattern=rd:1:1:1"}, "line 3, COMMENT: expected PATTERN"),
        (
            {"comment": "pattern=rd:60,ring:50"},
            "line 3, COMMENT: expected shares that add up to 100",
        ),
        ({"id": 1}, "line 3: expected each job once (it stands at line 2 too)"),
        ({"id": ""}, "line 3: expected a job id"),
        ({"id": "4_[1-9:2]"}, "line 3: expected ranges such as"),
        ({"state": "RUNNING", "hosts": "n[0-1"}, "line 3, nodes of job 2: expected a host list"),
        ({"state": "RUNNING", "hosts": "n[0-2]"}, "line 3: expected the 2 nodes of job 2"),
        ({"state": "RUNNING"}, "line 3: expected the 2 nodes of job 2"),
    ],
)
def test_bad_job_lines_are_named(tmp_path, fields, expected):
    path = written(tmp_path, "\n".join([HEADER, job_line(), job_line(**({"id": 2} | fields))]))
    with pytest.raises(InputError) as caught:
        read_slurm_jobs(path)
    assert str(caught.value).startswith(f"{path}: {expected}")


def test_a_line_of_another_format(tmp_path):
    with pytest.raises(InputError, match="line 2: expected a line of squeue -o"):
        jobs_of_text(tmp_path, "61 p wrap user PD 0:00 40 (Resources)")


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"job_id": None}, "jobs[0].job_id: expected a job number"),
        ({"job_state": "PD"}, "jobs[0].job_state: expected a job state"),
        ({"job_state": []}, "jobs[0].job_state: expected a job state"),
        ({"node_count": None}, "jobs[0].node_count: expected an integer from 1"),
        ({"node_count": "2"}, "jobs[0].node_count: expected an integer"),
        ({"priority": -1}, "jobs[0].priority: expected an integer"),
        ({"priority": True}, "jobs[0].priority: expected an integer"),
        ({"comment": 5}, "jobs[0].comment: expected text"),
        ({"comment": "pattern=x"}, "jobs[0].comment: expected PATTERN"),
        ({"time_limit": 10**17}, "jobs[0]: expected times of at most"),
    ],
)
def test_bad_job_entries_are_named(tmp_path, fields, expected):
    path = written(tmp_path, json.dumps({"jobs": [job_entry(**fields)]}))
    with pytest.raises(InputError) as caught:
        read_slurm_jobs(path)
    assert str(caught.value).startswith(f"{path}: {expected}")


@pytest.mark.parametrize("text", ["{", "{}", '{"jobs": 1}', '{"jobs": [1]}'])
def test_json_that_is_no_job_list(tmp_path, text):
    path = written(tmp_path, text)
    with pytest.raises(InputError) as caught:
        read_slurm_jobs(path)
    assert caught.value.file == str(path)
