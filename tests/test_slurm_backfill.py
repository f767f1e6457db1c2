"""Slurm's backfill: its window, its many reservations, and what slurm.conf says of both."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

import topoplace as tp
from test_slurm_options import NODE, NOW, PARTITION, TOPOLOGY, number
from test_slurm_sharing import ending, running, whole
from topoplace.formats.slurm.config import SlurmConfig, read_slurm_config

DAY = 86_400


def folder_of(folder: Path, jobs: list[dict[str, Any]], **files: str) -> Path:
    """Write a folder of eight nodes: those of partition `a`, and of `b`."""
    of = ["a"] * 4 + ["b"] * 4
    texts = {
        "topology.conf": TOPOLOGY,
        "nodes.txt": "".join(NODE.format(name=f"n{k}", of=f"all,{of[k]}") for k in range(8)),
        "partitions.txt": "\n".join(
            PARTITION.format(name=name, nodes=nodes)
            for name, nodes in (("all", "n[0-7]"), ("a", "n[0-3]"), ("b", "n[4-7]"))
        ),
        "reservations.txt": "No reservations in the system",
        "squeue.json": json.dumps({"jobs": jobs, "last_update": number(NOW)}),
    }
    folder.mkdir(exist_ok=True)
    for name, text in {**texts, **{k.replace("__", "."): v for k, v in files.items()}}.items():
        (folder / name).write_text(text)
    return folder


def run(job: dict[str, Any], nodes: str) -> dict[str, Any]:
    return job | {"job_state": ["RUNNING"], "nodes": nodes, "end_time": number(NOW + 10**6)}


def verdicts(tmp_path: Path, before: Any, after: Any, **files: str) -> dict[str, str]:
    pair = [
        folder_of(tmp_path / name, jobs, **files)
        for name, jobs in (("before", before), ("after", after))
    ]
    rows = tp.audit(pair[0], after=pair[1], order="backfill").rows
    return {row.standing.jobs[0]: str(row.verdict) for row in rows}


TEN_DAYS = {"slurm__conf": "SchedulerParameters=bf_continue,bf_window=14400 # ten days\n"}


def test_nothing_is_reserved_after_the_window(tmp_path):
    old, large, long = ending(9, "n[0-3]", 4, 5 * DAY), whole(1, 8), whole(2, 1)
    long["time_limit"] = number(10 * 1440)
    before, after = [old, large, long], [old, large, run(long, "n4")]
    assert verdicts(tmp_path, before, after) == {"1": "rightly waiting", "2": "rightly started"}
    assert verdicts(tmp_path, before, before)["2"] == "unjudged"  # who knows the plan for 1
    assert verdicts(tmp_path, before, after, **TEN_DAYS)["2"] == "out of turn"
    result = tp.place(folder_of(tmp_path / "default", before), order="backfill")
    assert [own.request for own in result.placements] == ["2"]
    assert result.check().verified
    assert "none could begin within 86,400 s: 1" in str(result)
    result = tp.place(folder_of(tmp_path / "ten", before, **TEN_DAYS), order="backfill")
    assert result.placements == []
    assert "window" not in str(result)


def test_others_have_reservations_where_partitions_have_no_node_in_common(tmp_path):
    old = [ending(8, "n[0-1]", 2, 1800), ending(9, "n[4-5]", 2, 1800)]
    first, second = whole(1, 4, partition="a"), whole(2, 4, partition="b")
    behind, apart = whole(3, 1, partition="b"), whole(4, 1, partition="a")
    short = {"time_limit": number(10)}
    jobs = [*old, first, second, behind | short, apart | short]
    found = verdicts(tmp_path, jobs, jobs)
    # 2 has no reservation here, and 3 may be in the way of the one that it has
    assert found == {"1": "rightly waiting", "2": "rightly waiting", "3": "unjudged", "4": "missed"}
    result = tp.place(folder_of(tmp_path / "now", jobs), order="backfill")
    assert "reservations of each job that waits" in str(result)
    assert "reservations of each job that waits" not in str(tp.place(tmp_path / "now"))


@pytest.mark.parametrize(
    ("text", "minutes", "has_memory"),
    [
        ("ClusterName=c\n", 1440, None),
        ("SchedulerParameters=bf_window=60\nSelectTypeParameters=CR_Core_Memory\n", 60, True),
        ("schedulerparameters = defer, bf_window=99999\n", 1440, None),
        ("include /etc/slurm/more.conf\n", None, None),
        ("#SchedulerParameters=bf_window=60\nSelectTypeParameters=CR_Core\n", 1440, False),
        ("SchedulerParameters  = bf_window=2880\nSelectTypeParameters  = CR_CPU\n", 2880, False),
    ],
)  # fmt: skip
def test_settings(text, minutes, has_memory, tmp_path):
    (tmp_path / "slurm.conf").write_text(text)
    window = None if minutes is None else 60 * minutes
    assert read_slurm_config(tmp_path / "slurm.conf") == SlurmConfig(window, has_memory)


SHARED = NODE.replace(
    "State", "CPUAlloc={cpus} AllocMem={memory} Gres=(null) ThreadsPerCore=1 State"
)


def nodes_with(cpus: int = 0, memory: int = 0) -> str:
    first, rest = (cpus, memory), (0, 0)
    return "".join(
        SHARED.format(name=f"n{k}", of="all", cpus=own[0], memory=own[1])
        for k, own in enumerate([first, *[rest] * 7])
    )


def small(job: int, **more: Any) -> dict[str, Any]:
    one = {"node_count": number(1), "max_nodes": number(1), "shared": [], "tasks": number(1)}
    one |= {"cpus": number(1), "cpus_per_task": number(1), "memory_per_cpu": number(0)}
    return whole(job, 1, **{**one, "tres_req_str": "cpu=1,node=1,billing=1", **more})


def test_no_memory_is_all_memory_where_jobs_are_given_some(tmp_path):
    jobs = [
        running(9, {"n0": (4, 20_000)}),
        small(1, memory_per_node=number(0)),
        small(2, memory_per_node=number(1)),
    ]
    nodes = nodes_with(4, 20_000)
    model = tp.load(folder_of(tmp_path / "given", jobs, nodes__txt=nodes)).snapshot
    held = [one for one in model.left_out if one.request]
    assert [(one.request, one.option, one.value) for one in held] == [
        ("1", "shared", "all memory of its nodes")
    ]
    jobs[0] = running(9, {"n0": (4, 0)})
    model = tp.load(folder_of(tmp_path / "none", jobs, nodes__txt=nodes_with(4))).snapshot
    assert not [one for one in model.left_out if one.request]


def test_whether_jobs_are_given_memory_may_not_be_seen(tmp_path, caplog):
    caplog.set_level(logging.WARNING)
    jobs = [small(k, memory_per_node=number(50_000)) for k in range(1, 4)]
    files = {"nodes__txt": nodes_with()}
    note = "not seen: whether jobs are given memory"
    tp.load(folder_of(tmp_path / "unknown", jobs, **files))
    assert note in caplog.text
    caplog.clear()
    for number_, select in enumerate(("CR_Core_Memory", "CR_Core")):
        own = files | {"slurm__conf": f"SelectTypeParameters={select}\n"}
        model = tp.load(folder_of(tmp_path / str(number_), jobs, **own)).snapshot
        assert ("memory" in (model.queue[0].takes or {})) is (select != "CR_Core")
    assert note not in caplog.text
