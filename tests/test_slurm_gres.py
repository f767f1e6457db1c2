"""Slurm: GRES of nodes, tasks and jobs, what each of them needs, and tasks in any numbers.

The fields of the jobs are as slurmctld 24.11 listed them for the options in the comments.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

import topoplace as tp
from test_slurm_options import BY_TASKS, holds, number, snapshot_of
from test_slurm_sharing import by_node, nodes_of, running, started, whole
from topoplace.formats.slurm.nodes import gres_of
from topoplace.machine.hostlist import expand_host_list

GPU = {"tres_per_task": "gres/gpu=1"}


def job(nodes: int, tasks: int, cpus: int = 0, *, most: int = -1, **more: Any) -> dict[str, Any]:
    """Return a job of a number of nodes and tasks, which may share nodes."""
    cpus = cpus or tasks
    sizes = {"max_nodes": number(nodes if most < 0 else most), "tasks": tasks, "cpus": cpus}
    return by_node(1, nodes, **sizes, **{"tres_req_str": f"cpu={cpus},node={nodes}", **more})


def of_tasks(tasks: int, cpus: int = 0, **more: Any) -> dict[str, Any]:
    """Return a job of tasks alone."""
    return job(1, tasks, cpus, most=0, flags=[BY_TASKS], **more)


def hosts_of(model: tp.Model) -> set[str]:
    text = started(model)["1"]
    return {*expand_host_list(re.sub(r"\*[0-9]+", "", text).replace(" ", ","))}


def takes(cpus: int, gpus: int = 0, memory: int = 0) -> dict[str, int]:
    memory = memory or 1000 * cpus
    return {"cpus": cpus, "memory": memory, "node": cpus} | ({"gpu": gpus} if gpus else {})


MODELLED: list[tuple[dict[str, Any], tuple[int, dict[str, int]]]] = [
    # -n6 --gpus-per-task=1; -n4 -c2 --gpus-per-task=1; -n4 -c2
    (of_tasks(6, **GPU), (6, takes(1, 1))),
    (
        of_tasks(4, 8, cpus_per_task=number(2), minimum_cpus_per_node=number(2),
                 tres_per_task="cpu=2,gres/gpu:1"),
        (4, takes(2, 1)),
    ),
    (
        of_tasks(4, 8, cpus_per_task=number(2), minimum_cpus_per_node=number(2),
                 tres_per_task="cpu=2"),
        (4, takes(2)),
    ),
    # -n5 -c2 --gpus-per-task=1 --mem-per-gpu=10G
    (
        of_tasks(5, 10, cpus_per_task=number(2), minimum_cpus_per_node=number(2),
                 tres_per_task="cpu=2,gres/gpu=1", memory_per_node=number(10240),
                 memory_per_tres="gres/gpu:10240"),
        (5, takes(2, 1, 10240)),
    ),
    # -N2 --ntasks-per-node=2 --gpus-per-task=2; -N1 -n4 --gpus-per-task=1
    (
        job(2, 4, tasks_per_node=number(2), minimum_cpus_per_node=number(2),
            tres_per_task="gres/gpu=2"),
        (2, takes(2, 4)),
    ),
    (job(1, 4, **GPU), (1, takes(4, 4))),
    # -N2 -n8 --gpus-per-task=1: no node has more than four
    (job(2, 8, **GPU), (2, takes(4, 4))),
    # -N2 -n4 --gpus-per-task=1, and --gpus=4
    (job(2, 4, **GPU), (4, takes(1, 1))),
    # -N1 --gpus=2; -N2 --gpus=2; -N2 --gpus=4 --gpus-per-node=2
    (job(1, 1, tres_per_job="gres/gpu:2"), (1, takes(1, 2))),
    (job(2, 2, tres_per_job="gres/gpu:2"), (2, takes(1, 1))),
    (job(2, 2, tres_per_job="gres/gpu:4", tres_per_node="gres/gpu:2"), (2, takes(1, 2))),
    # -N1 -n4 --ntasks-per-gpu=2; -N1 --gpus=2 --ntasks-per-gpu=2
    (job(1, 4, tasks_per_tres=2), (1, takes(4, 2))),
    (job(1, 4, tasks_per_tres=2, tres_per_job="gres/gpu:2"), (1, takes(4, 2))),
    # -N2 --gpus-per-node=2 --cpus-per-gpu=4; with --ntasks-per-node=3 --cpus-per-gpu=1
    (
        job(2, 2, 16, tres_per_node="gres/gpu:2", cpus_per_tres="gres/gpu:4"),
        (2, takes(8, 2)),
    ),
    (
        job(2, 6, tres_per_node="gres/gpu:2", cpus_per_tres="gres/gpu:1",
            tasks_per_node=number(3), minimum_cpus_per_node=number(3)),
        (2, takes(3, 2)),
    ),
    # -N1 --gpus-per-node=2 --mem-per-gpu=4G
    (
        job(1, 1, tres_per_node="gres/gpu:2", memory_per_node=number(4096),
            memory_per_tres="gres/gpu:4096"),
        (1, takes(1, 2, 8192)),
    ),
    # -N2 -n32: no node has more than 16 CPUs
    (job(2, 32), (2, takes(16))),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "expected"), MODELLED)
def test_what_jobs_take_of_shared_nodes(fields, expected, tmp_path):
    if "memory_per_tres" in fields:
        fields = fields | {"memory_per_cpu": number(0)}
    model = snapshot_of(tmp_path, [fields], nodes=nodes_of({}))
    assert holds(model) == {}
    (request,) = model.snapshot.queue
    assert (request.nodes, request.takes) == expected
    hosts = hosts_of(model)
    asked, limited = fields["node_count"]["number"], fields["max_nodes"]["number"]
    assert len(hosts) >= asked
    assert not limited or len(hosts) == asked
    if "gpu" in expected[1]:
        assert hosts <= {"n4", "n5", "n6", "n7"}


HELD: list[tuple[dict[str, Any], str]] = [
    (job(2, 1, most=0, tres_per_job="gres/gpu:6", tres_req_str="cpu=1,node=1"), "gres"),
    (job(1, 1, most=0, tres_per_job="gres/gpu:2"), "gres"),
    (of_tasks(4, tres_per_job="gres/gpu:4"), "gres"),
    (job(2, 2, tres_per_job="gres/gpu:3"), "gres"),
    (job(2, 4, tasks_per_tres=2), "gres"),
    (of_tasks(4, tasks_per_tres=2), "gres"),
    (job(1, 1, tres_per_socket="gres/gpu:1"), "gres"),
    (job(3, 8, **GPU), "shared"),
    (of_tasks(4, tres_per_task="license/a=1"), "gres"),
    (job(1, 2, tres_per_node="gres/gpu:1", **GPU), "gres"),
    (job(1, 1, tres_per_node="gres/gpu:1", memory_per_tres="gres/gpu:1G"), "gres"),
    # DefCpuPerGPU: CPUs that no field explains
    (job(2, 2, 16, tres_per_node="gres/gpu:2"), "shared"),
    (whole(1, 2, tasks=2, tres_per_node="gres/gpu:2", cpus_per_tres="gres/gpu:4"), "gres"),
]


@pytest.mark.parametrize(("fields", "option"), HELD)
def test_gres_and_tasks_in_any_numbers_hold_the_job(fields, option, tmp_path):
    shares = by_node(2, 1)
    model = snapshot_of(tmp_path, [fields, shares], nodes=nodes_of({}))
    own = holds(model)
    assert own.keys() == {"1"}
    assert option in own["1"]
    assert started(model).keys() == {"2"}
    assert started(model, ignore=own["1"]).keys() == {"1", "2"}


@pytest.mark.parametrize("others", [False, True])
def test_gres_of_a_job_of_whole_nodes_are_a_set_if_all_have_their_share(others, tmp_path):
    nodes = nodes_of({})
    if others:  # a node with one GPU: with it a job of five may have too few
        nodes = nodes.replace("gpu:a100:4", "gpu:a100:1", 1)
    jobs = [whole(1, 2, tasks=2, tres_per_job="gres/gpu:5"), whole(2, 1, tasks=1)]
    model = snapshot_of(tmp_path, jobs, nodes=nodes)
    assert holds(model) == ({"1": ["gres"]} if others else {})
    assert model.snapshot.queue[0].eligible == (None if others else "with:gpu>=1")
    found = started(model)
    assert others == ("1" not in found)


def test_gpus_without_files_are_held_by_their_number(tmp_path):
    assert gres_of("gpu:a100(CNT:3)") == {"gpu": 3, "gpu:a100": 3}
    one = running(1, {"n4": (4, 4000)}, gres_detail=["gpu(CNT:3)"])
    jobs = [one, by_node(2, 1, tres_per_node="gres/gpu:2", required_nodes="n4")]
    model = snapshot_of(tmp_path, jobs, nodes=nodes_of({"n4": (4, 4000)}))
    assert model.snapshot.running[0].takes["gpu"] == 3
    assert not started(model)


def test_tasks_in_any_numbers_on_two_nodes_leave_none_of_them_free(tmp_path):
    used = {f"n{k}": (14, 14000) for k in range(1, 8)}
    jobs = [running(9, used), job(2, 5)]
    model = snapshot_of(tmp_path, jobs, nodes=nodes_of(used))
    hosts = hosts_of(model)
    assert len(hosts) == 2  # though one node has room for all of them
    full = {f"n{k}": (16, 16000) for k in range(1, 8)}
    model = snapshot_of(tmp_path, [running(9, full), job(2, 5)], nodes=nodes_of(full))
    assert not started(model)


def test_a_range_of_nodes_is_held_on_shared_nodes_too(tmp_path):
    asks = job(4, 2, 1, tres_req_str="cpu=1,node=2")
    model = snapshot_of(tmp_path, [asks], nodes=nodes_of({}))
    assert holds(model) == {"1": ["shared", "node_count"]}
    values = [one.value for one in model.snapshot.left_out if one.request]
    assert values == [
        "2 to 4 nodes, and Slurm takes as many as it can",
        "2 to 4, and Slurm takes as many as it can",
    ]
    assert isinstance(model, tp.Model)


def test_cpus_and_memory_of_the_system_are_no_jobs(tmp_path):
    nodes = nodes_of({}).replace("CPUTot=16", "CPUEfctv=14 CPUTot=16 MemSpecLimit=4000")
    model = snapshot_of(tmp_path, [by_node(1, 1)], nodes=nodes)
    (hosts,) = {tuple(sorted(own.capacity.items())) for own in model.snapshot.machine.hosts[:1]}
    assert dict(hosts) == {"cpus": 14, "memory": 60000, "node": 14}


def test_types_count_apart_where_a_node_has_several(tmp_path):
    """Node n4 has two GPUs of each type; who names no type takes what is left of either."""
    nodes = nodes_of({}).replace("gpu:a100:4", "gpu:a100:2,gpu:v100:2", 1)
    asks = {2: "gres/gpu:a100:2", 3: "gres/gpu:2", 4: "gres/gpu:v100:1", 5: "gres/gpu:v100:3"}
    jobs = [by_node(k, 1, tres_per_node=gpus, excluded_nodes="n[5-7]") for k, gpus in asks.items()]
    held = running(9, {"n4": (1, 1000)}, gres_detail=["gpu:v100:1(IDX:2)"])
    model = snapshot_of(tmp_path, jobs, nodes=nodes)
    assert holds(model) == {}
    assert started(model, order="priority").keys() == {"2", "3"}
    model = snapshot_of(tmp_path, [held, *jobs[::2]], nodes=nodes)
    assert started(model).keys() == {"2", "4"}
    model = snapshot_of(tmp_path, [held, *jobs[:2]], nodes=nodes)
    assert started(model, order="priority").keys() == {"2"}
    held["gres_detail"] = ["gpu:1(IDX:2)"]
    assert holds(snapshot_of(tmp_path, [held, *jobs[:2]], nodes=nodes)).keys() == {"2", "3"}


def test_whole_sockets_hold_the_jobs_that_share_nodes(tmp_path):
    one = running(9, {"n4": (8, 8000)})
    one["job_resources"]["select_type"] = ["SOCKET", "MEMORY"]
    model = snapshot_of(tmp_path, [one, by_node(1, 1)], nodes=nodes_of({"n4": (8, 8000)}))
    assert holds(model) == {"1": ["shared"]}
