"""Slurm: shared nodes, leaf switches, required nodes, and audits in the order of the queue."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import topoplace as tp
from few import few_of
from real_files import real_file
from test_slurm_options import NOW, PARTITION, entry, holds, number, snapshot_of
from topoplace.errors import InputError
from topoplace.machine.hostlist import expand_host_list
from topoplace.options import ConvertOptions
from topoplace.snapshot.convert import converted
from topoplace.snapshot.held import holds_of

NODE = (
    "NodeName={name} CPUTot=16 CPUAlloc={cpus} State={state} RealMemory=64000 AllocMem={memory} "
    "Gres={gres} ThreadsPerCore={threads} TmpDisk=0 Owner=N/A Partitions=all,low "
    "ActiveFeatures=(null) AvailableFeatures=(null)\n"
)


def nodes_of(used: dict[str, tuple[int, int]], *, threads: int = 1) -> str:
    """Return eight nodes, of which some give CPUs and memory; the last four have GPUs."""
    lines = []
    for k in range(8):
        cpus, memory = used.get(f"n{k}", (0, 0))
        gres = "gpu:a100:4" if k > 3 else "(null)"
        state = "MIXED" if cpus else "IDLE"
        lines.append(
            NODE.format(
                name=f"n{k}", cpus=cpus, state=state, memory=memory, gres=gres, threads=threads
            )
        )
    return "".join(lines)


def running(job: int, nodes: dict[str, tuple[int, int]], **more: Any) -> dict[str, Any]:
    """Return a job that runs with CPUs and memory of some nodes."""
    allocation = [
        {"name": name, "cpus": {"count": cpus}, "memory": {"allocated": memory}}
        for name, (cpus, memory) in nodes.items()
    ]
    return entry(
        job,
        job_state=["RUNNING"],
        nodes=",".join(nodes),
        node_count=number(len(nodes)),
        shared=[],
        end_time=number(NOW + 600),
        job_resources={"nodes": {"allocation": allocation}},
        **more,
    )


def by_node(job: int, nodes: int, **more: Any) -> dict[str, Any]:
    """Return a job of a number of nodes that may share them."""
    usual = {"node_count": number(nodes), "max_nodes": number(nodes), "shared": [], "tasks": nodes}
    usual |= {"cpus": nodes, "tres_req_str": f"cpu={nodes},node={nodes}"}
    return entry(job, **{**usual, "cpus_per_task": number(1), **more})


def whole(job: int, nodes: int, **more: Any) -> dict[str, Any]:
    """Return a job of a number of whole nodes."""
    sizes = {"node_count": number(nodes), "max_nodes": number(nodes)}
    return entry(job, **{**sizes, "tres_req_str": f"cpu={nodes},node={nodes}", **more})


def started(model: tp.Model, **more: Any) -> dict[str, str]:
    result = tp.place(model, **more)
    assert result.check().verified
    return {start.request: start.hosts for start in result.placements}


USED = {"n0": (12, 12000), "n1": (12, 12000)}


def test_jobs_share_nodes_by_cpus_memory_and_gpus(tmp_path):
    jobs = [
        running(1, USED),
        by_node(2, 8, tasks_per_node=number(4), tasks=32, memory_per_cpu=number(1000)),
        by_node(3, 2, memory_per_node=number(61000), memory_per_cpu=number(0)),
        by_node(4, 4, tres_per_node="gres/gpu:a100:3"),
        by_node(5, 1, tres_per_node="gres/gpu:2"),
    ]
    model = snapshot_of(tmp_path, jobs, nodes=nodes_of(USED))
    assert holds(model) == {}
    job = model.snapshot.running[0]
    assert (job.takes, job.ends) == ({"cpus": 12, "memory": 12000, "node": 12}, 600)
    # 2 has 4 CPUs of all nodes; then no node has 61,000 MB; 4 has three GPUs of each node with some
    assert started(model, order="priority") == {"2": "n[0-7]", "4": "n[4-7]"}
    assert started(snapshot_of(tmp_path, jobs[:1] + jobs[2:3], nodes=nodes_of(USED))).keys() == {
        "3"
    }
    two = started(snapshot_of(tmp_path, [jobs[4], jobs[3]], nodes=nodes_of({})), order="priority")
    assert two.keys() == {"4"}  # which stands before 5


def test_a_job_of_tasks_alone_goes_anywhere_and_whole_nodes_are_alone(tmp_path):
    tasks = entry(2, node_count=number(1), max_nodes=number(0), shared=[], tasks=number(70),
                  cpus=70, cpus_per_task=number(1), tres_req_str="cpu=70,node=1")  # fmt: skip
    three = whole(3, 3)
    model = snapshot_of(tmp_path, [running(1, USED), tasks, three], nodes=nodes_of(USED))
    assert holds(model) == {}
    own = model.snapshot.queue[0]
    assert (own.nodes, own.takes) == (70, {"cpus": 1, "memory": 1000, "node": 1})
    found = started(model, order="priority")
    assert found.keys() == {"2"}  # it leaves two nodes at most without anybody
    alone = started(snapshot_of(tmp_path, [running(1, USED), three], nodes=nodes_of(USED)))
    assert alone.keys() == {"3"}
    assert "n0" not in alone["3"]
    assert "n1" not in alone["3"]


@pytest.mark.parametrize(
    ("more", "nodes"),
    [
        ({"tasks": 9, "required_switches": 1}, {}),  # on two nodes in any numbers
        ({"tasks": 9, "cpus": 20}, {}),
        ({"cpus": 9}, {}),
        ({"tasks": 0}, {}),
        ({"tasks": 8}, {}),  # of two CPUs (--overcommit)
        ({"tres_req_str": "cpu=2,node=1"}, {}),  # one or two nodes
        (dict.fromkeys(("node_count", "max_nodes"), number(3)) | {"tasks": 9}, {}),
        ({"shared": ["user"]}, {}),
        ({"max_nodes": number(4)}, {}),
        ({"shared": ["oversubscribe"]}, {}),
        ({"memory_per_cpu": number(0), "tres_req_str": "cpu=2,mem=125G,node=2"}, {}),
        ({"max_nodes": number(0), "tasks": 40}, {}),  # on two nodes or more
        (
            {
                "max_nodes": number(0),
                "tasks": 40,
                "tres_req_str": "cpu=40,node=1",
                "minimum_cpus_per_node": number(4),
            },
            {},
        ),
        ({}, {"threads": 2}),
    ],
)
def test_what_is_not_known_of_shared_nodes_holds_the_job(more, nodes, tmp_path):
    jobs = [entry(1), by_node(2, 2, **more)]
    model = snapshot_of(tmp_path, jobs, nodes=nodes_of({}, **nodes))
    assert set(holds(model)) == {"2"}
    assert set(holds(model)["2"]) <= {"shared", "node_count"}
    assert started(model).keys() == {"1"}


@pytest.mark.parametrize(
    ("more", "whole"),
    [
        ({"exclusive": "NODE", "oversubscribe": "NO"}, True),
        ({"exclusive": ["true"]}, True),
        ({"exclusive": "NO", "oversubscribe": "NO"}, False),
        ({"exclusive": "NO", "oversubscribe": "YES"}, None),
        ({"exclusive": "USER"}, None),
        ({"shared": []}, None),  # a placeholder, which says nothing
        ({}, None),
    ],
)
def test_slurm_26_05_does_not_list_how_jobs_share(more, whole, tmp_path):
    """The field `shared` of data parser v0.0.45 is a placeholder: no job is taken for whole."""
    job = by_node(1, 2)
    del job["shared"]
    meta = {"plugin": {"data_parser": "data_parser/v0.0.45"}}
    text = json.dumps({"jobs": [job | more], "last_update": number(NOW), "meta": meta})
    model = snapshot_of(tmp_path, text, nodes=nodes_of({}))
    if whole is None:
        ((own,),) = holds_of(model.snapshot).values()
        assert own.option == "shared"
        assert ("26.05" in own.value) == ("exclusive" not in more)
        return
    assert holds(model) == {}
    takes = model.snapshot.queue[0].takes
    assert (takes is None or takes == {"node": 16}) == whole


@pytest.mark.parametrize(("exclusive", "shares"), [("NODE", False), ("NO", True)])
def test_scontrol_of_slurm_26_05_says_no_where_older_ones_said_ok(exclusive, shares, tmp_path):
    text = (
        "JobId=1 Priority=9 JobState=PENDING Reason=None TimeLimit=01:00:00 NumNodes=2 NodeList= "
        "SubmitTime=2026-03-01T10:00:00 NumTasks=2 NumCPUs=2 CPUs/Task=1 MinCPUsNode=1 "
        f"ReqTRES=cpu=2,node=2 OverSubscribe=NO Exclusive={exclusive} Partition=all\n"
    )
    model = snapshot_of(tmp_path, text, nodes=nodes_of({}, threads=2))
    assert ("shared" in holds(model).get("1", [])) == shares


def test_why_nodes_are_not_shared_says_which_count_is_of_cores(tmp_path):
    model = snapshot_of(tmp_path, [by_node(1, 2)], nodes=nodes_of({}, threads=2))
    ((own,),) = holds_of(model.snapshot).values()
    assert own.value == (
        "may take a part of a node: n0 has 16 CPUs on 8 cores of 2 threads: jobs count CPUs, and "
        "Slurm gives whole cores"
    )


def test_gpus_that_a_running_job_does_not_detail_leave_sharing_unknown(tmp_path):
    one = running(1, {"n4": (4, 4000)}, tres_alloc_str="cpu=4,node=1,gres/gpu=2")
    model = snapshot_of(tmp_path, [one, by_node(2, 1)], nodes=nodes_of({"n4": (4, 4000)}))
    assert "shared" in holds(model)["2"]


def test_higher_tiers_of_partitions_come_first_and_cpus_of_several_jobs_are_not_modelled(tmp_path):
    text = (
        "PartitionName={} Nodes=n[0-7] OverSubscribe={} State=UP MaxNodes=UNLIMITED "
        "MinNodes=0 MaxTime=UNLIMITED PriorityTier={}\n"
    )
    jobs = [by_node(1, 1, partition="all"), by_node(2, 1, partition="low")]
    partitions = text.format("all", "NO", 1) + text.format("low", "NO", 5)
    model = snapshot_of(tmp_path, jobs, nodes=nodes_of({}), partitions=partitions)
    assert [request.id for request in model.snapshot.queue] == ["2", "1"]
    assert holds(model) == {}
    partitions = text.format("all", "FORCE:4", 1) + text.format("low", "NO", 1)
    model = snapshot_of(tmp_path, jobs, nodes=nodes_of({}), partitions=partitions)
    assert all("shared" in own for own in holds(model).values())
    assert len(holds(model)) == 2


def test_nodes_that_give_more_than_is_listed_are_closed(tmp_path):
    used = USED | {"n5": (4, 0)}
    model = snapshot_of(tmp_path, [running(1, USED), by_node(2, 1)], nodes=nodes_of(used))
    assert model.snapshot.down == "n5"


def test_leaf_switches_and_required_nodes_are_rules_of_the_request(tmp_path):
    jobs = [
        whole(1, 3, required_switches=1),
        entry(2, required_nodes="n[1,5]"),
        entry(3, required_nodes="n2"),
    ]
    model = snapshot_of(tmp_path, jobs)
    assert holds(model) == {}
    one, two, three = model.snapshot.queue
    assert (one.at_most.size, one.at_most.level) == (1, "leaf")
    assert two.eligible == "nodes:n[1,5]"
    assert [part.nodes for part in three.parts] == [1, 1]
    found = started(model)
    assert found["2"] == "n[1,5]"
    assert "n2" in expand_host_list(found["3"].replace(" ", ","))


# ---- What if ----------------------------------------------------------------------------


def test_what_if_takes_whole_nodes_and_names_of_switches_and_says_why_a_request_waits(tmp_path):
    jobs = [running(1, USED), by_node(2, 2)]
    model = snapshot_of(tmp_path, jobs, nodes=nodes_of(USED))
    new = [{"with_request": {"id": f"new{n}", "nodes": n}} for n in (6, 7)]
    found = tp.whatif(model, [*new, {"add_down": "s1"}, {"add_down": "n0,s1,n4"}])
    six, _, down, again = found.scenarios[1:]
    assert six.result.instance.queue[-1].takes == {"node": 16}
    assert "new6" in {one.request for one in six.result.placements}
    assert down.result.instance.down == "n[4-7]"
    assert again.result.instance.down == "n[0,4-7]"
    lines = str(found).splitlines()
    assert any(line.startswith("with-request new7: new7 waits: ") for line in lines)
    closed = tp.Model.of(down.result.instance)
    assert tp.whatif(closed, [{"free": "s1"}]).scenarios[1].result.instance.down == ""
    with pytest.raises(InputError, match="nodes, switches or domains of the machine, found 's9'"):
        tp.whatif(model, [{"add_down": "s9"}])


# ---- Slurm's own rules where jobs share nodes ----------------------------------------------------


@pytest.mark.parametrize("scenario", ["31_shared_gpu", "38_shared_array_dependency",
                                      "40_suspended_draining"])  # fmt: skip
def test_slurm_tree_chooses_shared_nodes_as_a_real_slurm_did(scenario):
    """Scenarios in which no plan for a job that waits keeps others off free nodes."""
    folder = real_file(f"slurm_clusters/{scenario}/before/squeue.json").parent
    files: dict[str, Any] = {
        what: folder / f"{what}.txt" for what in ("topology", "nodes", "partitions")
    }
    made = converted(None, "slurm", None, ConvertOptions(jobs=folder / "squeue.json", **files))
    found = {
        start.request: start.hosts for start in tp.place(made.document, "slurm-tree").placements
    }
    after = json.loads((folder.parent / "after" / "squeue.json").read_text())["jobs"]
    chosen = {str(job["job_id"]): job["nodes"] for job in after if job["nodes"]}
    waited = {request.id for request in made.document.queue} - holds_of(made.document).keys()
    alone = {name for name in waited if "_" not in name}
    assert {name: nodes for name, nodes in found.items() if name in alone} == {
        name: nodes for name, nodes in chosen.items() if name in alone
    }


def test_slurm_tree_packs_tasks_and_the_others_say_what_they_do_not_know(tmp_path):
    tasks = entry(2, node_count=number(1), max_nodes=number(0), shared=[], tasks=number(41),
                  cpus=41, cpus_per_task=number(1), tres_req_str="cpu=41,node=1")  # fmt: skip
    on_two = by_node(3, 2, tasks=number(9), cpus=number(9))
    jobs = [running(1, USED), tasks, on_two]
    model = snapshot_of(tmp_path, jobs, nodes=nodes_of(USED))
    found = {one.request: one.hosts for one in tp.place(model, "slurm-tree").placements}
    # of the second leaf, which alone holds 41, and then has fewer nodes with room than the first
    assert found["2"] == "n6*9 n[4-5]*16"
    assert found["3"] == "n7*2 n6*7"
    compared = tp.compare(model, methods=["slurm-tree", "default", "slurm-block"])
    status = {row.method: row.status for row in compared.rows}
    assert (status["default"], status["slurm-block"]) == ("unsuited", "unsuited")
    said = "\n".join(compared.notes)
    assert "default: expected jobs of whole nodes, as select/linear gives them, found 2" in said
    assert "slurm-block: expected jobs with a number of nodes" in said
    only = snapshot_of(tmp_path, [running(1, USED), by_node(2, 3)], nodes=nodes_of(USED))
    for method in ("slurm-tree", "slurm-block"):
        assert tp.place(only, method).levels[0].objective == 3


@pytest.mark.parametrize(
    ("job", "partition", "why"),
    [
        ({"tres_per_node": "gres/shard:2"}, "", "gres gres/shard:2 where GPUs are given in parts"),
        ({"tres_per_node": "gres/gpu:1"}, "JobDefaults=DefCpuPerGPU=8", "gres gres/gpu:1 with Job"),
        ({}, "SelectTypeParameters=CR_SOCKET", "shared whole sockets (SelectTypeParameters=CR_SO"),
        ({"tres_per_node": "gres/fs:1"}, "", ""),
    ],
)
def test_what_jobs_get_of_nodes_beyond_what_they_ask_for(job, partition, why, tmp_path):
    nodes = nodes_of({}).replace("gpu:a100:4", "gpu:a100:4,shard:8,fs:no_consume:1")
    partitions = PARTITION.format(name="all", nodes="n[0-7]") + f" {partition}\n"
    jobs = [by_node(k, 1, **job) for k in range(1, 7)]
    model = snapshot_of(tmp_path, jobs, nodes=nodes, partitions=partitions)
    found = [f"{one.option} {one.value}" for one in model.snapshot.left_out if one.request == "1"]
    assert [text[: len(why)] for text in found] == ([why] if why else [])
    assert why or len(started(model)) == 6  # on four nodes: they do not use it up


# ---- Audits in the order of the queue ------------------------------------------------------------


def audited(folder: Path, before: list[Any], after: list[Any], order: str) -> dict[str, Any]:
    for name in ("before", "after"):
        (folder / name).mkdir(exist_ok=True)
    pair = [
        snapshot_of(folder / name, jobs) for name, jobs in (("before", before), ("after", after))
    ]
    rows = tp.audit(pair[0], after=pair[1], order=order, results=folder / "proofs").rows
    for file in (folder / "proofs").glob("*.json"):
        assert tp.check(file).verified
    return {row.standing.jobs[0]: row for row in rows}


def ending(job: int, nodes: str, count: int, seconds: int) -> dict[str, Any]:
    return entry(job, job_state=["RUNNING"], nodes=nodes, node_count=number(count),
                 end_time=number(NOW + seconds))  # fmt: skip


def test_each_job_is_judged_in_the_order_of_the_queue(tmp_path):
    old = ending(9, "n[0-3]", 4, 600)
    large = whole(1, 6)
    short = whole(2, 2, time_limit=number(10))
    long = whole(3, 3, time_limit=number(60))
    before = [old, large, short, long]

    def run(job: dict[str, Any], nodes: str) -> dict[str, Any]:
        return job | {"job_state": ["RUNNING"], "nodes": nodes}

    rows = audited(tmp_path, before, [old, large, run(short, "n[4-5]"), long], "backfill")
    assert {name: row.verdict for name, row in rows.items()} == {
        "1": "rightly waiting",
        "2": "rightly started",
        "3": "rightly waiting",
    }
    assert rows["1"].why == "reserved: it can start in 600 s"
    rows = audited(tmp_path, before, [old, large, short, run(long, "n[4-6]")], "backfill")
    assert (rows["3"].verdict, rows["3"].why) == ("out of turn", "it delays 1")
    assert rows["2"].verdict == "missed"
    assert rows["2"].why.startswith("those after it that started have its room")
    rows = audited(tmp_path, before, before, "backfill")
    assert (rows["2"].verdict, rows["3"].verdict) == ("missed", "rightly waiting")
    rows = audited(tmp_path, before, before, "priority")
    assert (rows["2"].verdict, rows["3"].verdict) == ("missed", "missed")
    tight = long | {"time_limit": number(10)}  # minutes: it ends as 1 begins
    rows = audited(tmp_path, [old, large, tight], [old, large, tight], "backfill")
    assert rows["3"].verdict == "rightly waiting"
    rows = audited(tmp_path, [old, large, tight], [old, large, run(tight, "n[4-6]")], "backfill")
    assert rows["3"].verdict == "rightly started"


def test_a_plan_of_the_scheduler_keeps_others_from_its_nodes(tmp_path):
    old = ending(9, "n[0-5]", 6, 600)
    plan = {"scheduled_nodes": "n[4-7]", "start_time": number(NOW + 600)}
    first = whole(1, 4)
    long = whole(2, 2, time_limit=number(60))
    rows = audited(tmp_path, [old, first, long], [old, first | plan, long], "backfill")
    assert rows["2"].verdict == "rightly waiting"
    assert rows["2"].why.endswith("other places for them would leave room for it")
    rows = audited(tmp_path, [old, first, long], [old, first, long], "backfill")
    assert rows["2"].verdict == "missed"


@pytest.mark.parametrize(
    ("later", "verdict", "why"),
    [
        ({"state_reason": "Licenses"}, "unjudged", "afterwards held: licenses Licenses"),
        ({"hold": True}, "rightly waiting", "held: hold"),
        ({"features": "none"}, "unjudged", "afterwards held: features none"),
        ({"time_limit": number(600)}, "unjudged", "it asks for something else afterwards"),
        ({}, "missed", "it fits, with all that started where they are"),
    ],
)
def test_what_is_known_afterwards_of_a_job_that_waits_is_not_blamed(later, verdict, why, tmp_path):
    first, second = whole(1, 2), whole(2, 2)
    begun = second | {"job_state": ["RUNNING"], "nodes": "n[0-1]"}
    rows = audited(tmp_path, [first, second], [first | later, begun], "backfill")
    assert (rows["1"].verdict, rows["1"].why) == (verdict, why)
    assert rows["2"].verdict == "rightly started"


def test_a_job_is_not_held_to_switches_for_which_it_no_longer_waits(tmp_path):
    job = whole(1, 6, required_switches=1, maximum_switch_wait_time=600, eligible_time=number(NOW))
    begun = job | {"job_state": ["RUNNING"], "nodes": "n[0-5]"}
    row = audited(tmp_path, [job], [begun], "backfill")["1"]
    assert (row.verdict, row.why) == (
        "unjudged",
        "held: at-most which it may have waited for in vain",
    )
    job["maximum_switch_wait_time"] = begun["maximum_switch_wait_time"] = 0
    assert audited(tmp_path, [job], [begun], "backfill")["1"].verdict == "invalid"


def test_a_node_that_opened_or_closed_between_two_listings(tmp_path):
    job, other = whole(1, 6), whole(2, 8)
    begun = job | {"job_state": ["RUNNING"], "nodes": "n[0-5]"}
    pair = [
        snapshot_of(tmp_path, jobs, nodes=nodes_of({}).replace("IDLE", state, 1))
        for jobs, state in (([job, other], "DRAIN"), ([begun, other], "IDLE"))
    ]
    rows = tp.audit(pair[0], after=pair[1], order="backfill").rows
    assert [row.verdict for row in rows] == ["rightly started", "rightly waiting"]
    pair = [
        snapshot_of(tmp_path, [job], nodes=nodes_of({}).replace("IDLE", state, 3))
        for state in ("IDLE", "DRAIN")
    ]
    (row,) = tp.audit(pair[0], after=pair[1], order="backfill").rows
    assert row.verdict == "rightly waiting"


RECORDED = [
    *("05_exclude", "06_switches_fragmented", "15_backfill_old_queue", "20_drain_down"),
    *("30_shared_cores", "31_shared_gpu", "34_shared_exclusive_mix", "36_shared_memory"),
    *("01_empty_mixed", "02_features", "08_switches_long_wait", "10_dependency_running"),
    *("12_begin_hold_nice", "13_priority_order", "16_array", "17_reservation_now"),
    *("21_partition_limits", "23_multi_partition", "24_gpu_whole", "26_span_spines"),
    *("28_weights_prefer", "38_shared_array_dependency", "40_suspended_draining"),
    "43_switches_wait_over",
]


@pytest.mark.parametrize("num", few_of((8, 24), 1))
def test_what_a_real_slurm_decided_is_right_in_its_own_order(num, tmp_path):
    judged = every = 0
    for scenario in RECORDED[:num]:
        pair = []
        for moment in ("before", "after"):
            folder = real_file(f"slurm_clusters/{scenario}/{moment}/squeue.json").parent
            names = {"topology": "topology", "nodes": "nodes", "partitions": "partitions"}
            names["reservations"] = "reservations"
            files: dict[str, Any] = {key: folder / f"{name}.txt" for key, name in names.items()}
            made = converted(
                None, "slurm", None, ConvertOptions(jobs=folder / "squeue.json", **files)
            )
            pair.append(tp.Model.of(tp.load(json.loads(made.text)).snapshot))
        rows = tp.audit(pair[0], after=pair[1], order="backfill", time_limit=20).rows
        verdicts = [row.verdict for row in rows]
        assert not {"missed", "invalid", "out of turn"} & {*verdicts}, (scenario, rows)
        judged += sum(verdict not in ("unjudged", "unproven") for verdict in verdicts)
        every += len(verdicts)
    assert judged >= 0.85 * every, (judged, every)


@pytest.mark.parametrize("order", [None, "backfill"])
@pytest.mark.parametrize(
    "name", ["05_exclude", "17_reservation_now", "34_shared_exclusive_mix", "43_switches_wait_over"]
)
def test_no_decision_is_blamed_for_what_a_text_listing_cannot_show(name, order, tmp_path):
    pair = []
    for moment in ("before", "after"):
        folder = real_file(f"slurm_clusters/{name}/{moment}/squeue.json").parent
        jobs = json.loads((folder / "squeue.json").read_text())["jobs"]
        lines = ["JOBID|STATE|NODES|NODELIST|PRIORITY|TIME_LIMIT|PARTITION|REASON|COMMENT"]
        for job in jobs:
            size, priority = (job[key]["number"] for key in ("node_count", "priority"))
            told = (job["job_id"], job["job_state"][0], size, job["nodes"], priority, "UNLIMITED")
            lines.append("|".join(map(str, (*told, job["partition"], job["state_reason"], ""))))
        text = tmp_path / f"{moment}.txt"
        text.write_text("\n".join(lines))
        named = ("topology", "nodes", "partitions", "reservations")
        files: dict[str, Any] = {what: folder / f"{what}.txt" for what in named}
        made = converted(None, "slurm", None, ConvertOptions(jobs=text, **files))
        assert "not seen in this listing: switches" in "".join(made.notes)
        pair.append(tp.Model.of(tp.load(json.loads(made.text)).snapshot))
    found = {str(row.verdict) for row in tp.audit(pair[0], after=pair[1], order=order).rows}
    assert "unjudged" in found
    assert not found & {"missed", "out of turn", "invalid", "suboptimal"}


def test_an_audit_joins_a_listing_of_whole_nodes_and_one_of_shared_ones(tmp_path):
    """Amounts are left out where no job shares nodes, before or afterwards."""
    eight, used = whole(1, 8), {"n0": (4, 4000)}
    own = eight | {"job_state": ["RUNNING"], "nodes": "n[0-7]"}
    before = snapshot_of(tmp_path, [running(5, used), eight], nodes=nodes_of(used))
    after = snapshot_of(tmp_path, [own], nodes=nodes_of({}))
    assert (before.machine.kind, after.machine.kind) == ("hierarchy", "tree")
    for order in ("priority", "backfill"):
        (row,) = tp.audit(before, after=after, order=order).rows
        assert row.verdict == "rightly started"
    three = whole(1, 3) | {"job_state": ["RUNNING"], "nodes": "n[1-3]"}
    alone = snapshot_of(tmp_path, [whole(1, 3), whole(2, 2)], nodes=nodes_of({}))
    later = snapshot_of(tmp_path, [running(5, used), three, whole(2, 2)], nodes=nodes_of(used))
    rows = tp.audit(alone, after=later, order="priority").rows
    assert {row.standing.jobs[0]: row.verdict for row in rows} == {
        "1": "rightly started",
        "2": "missed",
    }
