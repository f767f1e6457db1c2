"""Options of Slurm's jobs that are not modelled: each holds its job, in every form of a listing."""

from __future__ import annotations

import json
import re
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

import topoplace as tp
from real_files import real_file
from topoplace.errors import InputError
from topoplace.options import ConvertOptions
from topoplace.report.summary import summary
from topoplace.snapshot.convert import converted
from topoplace.snapshot.held import holds_of, in_order, left_out_text
from topoplace.snapshot.machines import load_any

TOPOLOGY = """\
SwitchName=s0 Nodes=n[0-3]
SwitchName=s1 Nodes=n[4-7]
SwitchName=top Switches=s[0-1]
"""
NODE = "NodeName={name} CPUTot=16 State=IDLE RealMemory=64000 TmpDisk=0 Owner=N/A Partitions={of}\n"
PARTITION = (
    "PartitionName={name} MaxNodes=UNLIMITED MaxTime=UNLIMITED MinNodes=0 Nodes={nodes} "
    "OverSubscribe=NO State=UP MaxCPUsPerNode=UNLIMITED ReqResv=NO ExclusiveUser=NO"
)
NOW = 1_000_000
BY_TASKS = "EXACT_TASK_COUNT_REQUESTED"


def number(value: int) -> dict[str, Any]:
    return {"set": True, "infinite": False, "number": value}


def entry(job: int = 1, **more: Any) -> dict[str, Any]:
    """Return a job that waits for two whole nodes, and no more than that."""
    usual = {
        "job_id": job,
        "job_state": ["PENDING"],
        "nodes": "",
        "node_count": number(2),
        "max_nodes": number(2),
        "priority": number(100 - job),
        "time_limit": number(60),
        "submit_time": number(NOW),
        "state_reason": "None",
        "partition": "all",
        "shared": ["none"],
        "memory_per_cpu": number(1000),
        "minimum_cpus_per_node": number(1),
        "cpus": number(2),
        "tres_req_str": "cpu=2,node=2,billing=2",
        "flags": ["USING_DEFAULT_QOS"],
    }
    return {**usual, **more}


def snapshot_of(folder: Path, jobs: str | list[dict[str, Any]], **files: str) -> tp.Model:
    """Convert a cluster of eight nodes and return its snapshot."""
    nodes = "".join(NODE.format(name=f"n{k}", of="all,low") for k in range(8))
    text = jobs if isinstance(jobs, str) else json.dumps({"jobs": jobs, "last_update": number(NOW)})
    texts = {"topology": TOPOLOGY, "nodes": nodes, "jobs": text, **files}
    for name, content in texts.items():
        (folder / name).write_text(content)
    made = converted(None, "slurm", None, ConvertOptions(**{n: folder / n for n in texts}))
    (folder / "now.json").write_text(made.text)
    snapshot = load_any(folder / "now.json").snapshot
    assert made.notes[0].endswith("queued")
    return tp.Model.of(snapshot)


def holds(model: tp.Model) -> dict[str, list[str]]:
    return {name: [one.option for one in own] for name, own in holds_of(model.snapshot).items()}


def test_a_job_that_asks_for_no_more_than_nodes_starts(tmp_path):
    model = snapshot_of(tmp_path, [entry()])
    assert holds(model) == {}
    assert tp.place(model).objective == 2


RESTRICTING = [
    ("dependency", {"dependency": "afterok:7(unfulfilled)"}),
    ("dependency", {"state_reason": "DependencyNeverSatisfied"}),
    ("begin_time", {"eligible_time": number(NOW + 3600)}),
    ("begin_time", {"state_reason": "BeginTime"}),
    ("hold", {"hold": True}),
    ("hold", {"priority": number(0)}),
    ("hold", {"state_reason": "JobHeldUser"}),
    ("hold", {"job_state": ["PENDING", "REQUEUE_HOLD"]}),
    ("hold", {"job_state": ["PENDING", "SPECIAL_EXIT"]}),
    ("hold", {"job_state": ["PENDING", "RESV_DEL_HOLD"]}),
    ("licenses", {"licenses": "matlab:2"}),
    ("licenses", {"state_reason": "Licenses"}),
    ("limits", {"state_reason": "QOSMaxJobsPerUserLimit"}),
    ("limits", {"state_reason": "AssocGrpNodeLimit"}),
    ("reservation", {"resv_name": "day"}),
    ("reservation", {"state_reason": "Reservation"}),
    ("reason", {"state_reason": "ReqNodeNotAvail"}),
    ("partition", {"state_reason": "PartitionDown"}),
    ("partition", {"partition": "gpu"}),
    ("required_nodes", {"required_nodes": "n3", "required_switches": 1}),
    ("features", {"features": "ib&avx"}),
    ("switches", {"required_switches": 1, "maximum_switch_wait_time": 30,
                  "eligible_time": number(NOW - 60)}),
    ("gres", {"tres_per_node": "gres/gpu:4"}),
    ("gres", {"tres_per_job": "gres/gpu:4"}),
    ("gres", {"tres_per_task": "gres/gpu=1"}),
    ("gres", {"tres_per_socket": "gres/gpu:1"}),
    ("shared", {"shared": []}),
    ("shared", {"shared": ["oversubscribe"]}),
    ("shared", {"shared": ["user"]}),
    ("exclusive", {"shared": ["topo"]}),
    ("segment", {"segment_size": number(2)}),
    ("het_job", {"het_job_id": number(1), "het_job_offset": number(0)}),
    ("node_count", {"max_nodes": number(30)}),
    ("node_count", {"max_nodes": number(0), "tres_req_str": "cpu=1,node=1"}),
    ("node_count", {"max_nodes": number(0), "tasks": number(12), "flags": [BY_TASKS]}),
    ("node_count", {"max_nodes": number(0), "job_size_str": ["2,4,8"]}),
    ("reason", {"state_reason": "Cleaning"}),
    ("cpus", {"core_spec": 4, "thread_spec": 4, "minimum_cpus_per_node": number(16)}),
    ("cpus", {"cpus": number(40)}),
    ("memory", {"memory_per_cpu": number(8000)}),
    ("node_layout", {"threads_per_core": number(2)}),
    ("burst_buffer", {"burst_buffer": "#BB"}),
    ("spread", {"flags": ["SPREAD_JOB"]}),
    ("deadline", {"deadline": number(NOW + 600)}),
]  # fmt: skip


@pytest.mark.parametrize(("option", "fields"), RESTRICTING)
def test_an_option_of_squeue_json_holds_its_job_alone(tmp_path, option, fields):
    model = snapshot_of(tmp_path, [entry(1, **fields), entry(2)])
    (name, own), *others = holds(model).items()
    assert (own, others) == ([option], [])
    result = tp.place(model)
    assert {start.request for start in result.placements} == {"2"}
    assert result.check().verified
    (held,) = holds_of(model.snapshot)[name]
    assert held.where.startswith("jobs[0]")
    released = tp.place(model, ignore=[option])
    assert {start.request for start in released.placements} == {name, "2"}


@pytest.mark.parametrize(
    "fields",
    [
        {"state_reason": "Resources"},
        {"state_reason": "Priority"},
        {"prefer": "ib"},
        {"eligible_time": number(NOW)},
        {"partition": "gpu,low"},
        {"max_nodes": number(0)},
        {"memory_per_cpu": number(4000)},
        {"required_switches": 0},
        {"licenses": "(null)"},
        {"tres_per_node": ""},
    ],
)
def test_what_keeps_a_job_from_nothing_does_not_hold_it(tmp_path, fields):
    assert holds(snapshot_of(tmp_path, [entry(1, **fields)])) == {}


def test_fields_that_are_not_known_are_named_once(tmp_path, capsys):
    jobs = [entry(k, new_rule="x", empty_rule="", old_rule=number(0)) for k in range(1, 4)]
    snapshot_of(tmp_path, jobs)
    made = converted(None, "slurm", None, ConvertOptions(topology=tmp_path / "topology",
                     jobs=tmp_path / "jobs"))  # fmt: skip
    assert [note for note in made.notes if "not known" in note] == [
        "fields not known here, and not read: new_rule"
    ]


def test_without_node_states_partitions_are_not_known(tmp_path):
    snapshot_of(tmp_path, [entry(1, memory_per_cpu=None)])
    made = converted(None, "slurm", None, ConvertOptions(topology=tmp_path / "topology",
                     jobs=tmp_path / "jobs"))  # fmt: skip
    (held,) = [one for one in made.document.left_out if one.request]
    assert held.value == "all, whose nodes are not known (--nodes or --partitions)"


def test_tasks_of_an_array_beyond_its_throttle_are_held(tmp_path):
    array = {"array_job_id": number(7), "array_task_string": "3-6%2", "array_max_tasks": number(2)}
    task = {"array_job_id": number(7), "array_task_id": number(1), "job_state": ["RUNNING"]}
    jobs = [entry(9, **array), entry(8, **task, nodes="n[0-1]")]
    assert holds(snapshot_of(tmp_path, jobs)) == {
        "7_4": ["array_throttle"],
        "7_5": ["array_throttle"],
        "7_6": ["array_throttle"],
    }


def test_the_order_of_priorities_is_said_not_to_be_modelled(tmp_path):
    model = snapshot_of(tmp_path, [entry(1), entry(2)])
    own = [(one.request, one.option) for one in model.snapshot.left_out]
    assert own == [(None, "order"), (None, "reservations"), (None, "window")]


# ---- squeue -o, and scontrol show job ------------------------------------------------------------

COLUMNS = (
    "JOBID|STATE|NODES|NODELIST|COMMENT|PRIORITY|TIME_LIMIT|START_TIME|SUBMIT_TIME|"
    "PARTITION|REASON|FEATURES|DEPENDENCY|TRES_PER_NODE|OVER_SUBSCRIBE|EXC_NODES"
)
VALUES = "1|PENDING|2||(null)|9|1:00:00|N/A|2026-03-01T10:00:00|all|None|(null)|(null)|N/A|NO|"
USUAL_LINE = dict(zip(COLUMNS.split("|"), VALUES.split("|"), strict=True))


def line(columns: str = COLUMNS, **fields: str) -> str:
    return "|".join((USUAL_LINE | fields)[name] for name in columns.split("|"))


@pytest.mark.parametrize(
    ("option", "fields"),
    [
        ("partition", {"PARTITION": "gpu"}),
        ("hold", {"REASON": "JobHeldAdmin"}),
        ("features", {"FEATURES": "ib"}),
        ("dependency", {"DEPENDENCY": "afterok:3(unfulfilled)"}),
        ("gres", {"TRES_PER_NODE": "gres/gpu:4"}),
        ("shared", {"OVER_SUBSCRIBE": "OK"}),
    ],
)
def test_columns_go_by_their_header(tmp_path, option, fields):
    names = COLUMNS.split("|")
    for columns in (COLUMNS, "|".join(reversed(names))):
        text = "\n".join([columns, line(columns, **fields), line(columns, JOBID="2")])
        assert holds(snapshot_of(tmp_path, text)) == {"1": [option]}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"FEATURES": "ib|eth"}, ["features"]),
        ({"COMMENT": "a|b", "FEATURES": "ib"}, ["features"]),
        ({"COMMENT": "a|b", "FEATURES": "ib|eth|avx", "DEPENDENCY": "afterok:3"},
         ["dependency", "features"]),
    ],
)  # fmt: skip
def test_values_may_hold_the_mark_between_columns(tmp_path, fields, expected):
    columns = "JOBID|STATE|NODES|COMMENT|PRIORITY|PARTITION|REASON|FEATURES|DEPENDENCY"
    (found,) = holds(snapshot_of(tmp_path, f"{columns}\n{line(columns, **fields)}")).values()
    assert sorted(found) == expected


def test_a_line_whose_columns_are_open_is_refused(tmp_path):
    columns = "JOBID|NODES|PRIORITY|STATE|COMMENT|FEATURES|DEPENDENCY"
    fields = {"COMMENT": "a|(null)", "DEPENDENCY": "afterok:3"}
    expected = r"line 2: expected 7 fields, one a column .*, found 8"
    with pytest.raises(InputError, match=expected):
        snapshot_of(tmp_path, f"{columns}\n{line(columns, **fields)}")


def test_what_scontrol_prints_without_o_says_the_same(tmp_path):
    jobs = "".join(
        SHOWN.format(**USUAL_SHOWN | more)
        for more in ({"id": "1", "dependency": "afterok:9"}, {"id": "2"})
    )
    nodes = "".join(NODE.format(name=f"n{k}", of="all,low") for k in range(8))
    files = {
        "nodes": nodes.replace("State=IDLE", "State=DOWN", 1),
        "partitions": PARTITION.format(name="all", nodes="n[0-6]") + "\n",
        "reservations": "ReservationName=r StartTime=a Nodes=n1 EndTime=b State=ACTIVE\n",
    }
    spread = {name: text.replace("\n", "\n\n") for name, text in (files | {"jobs": jobs}).items()}
    spread = {name: re.sub(r" +(?=\w+=)", "\n   ", text) for name, text in spread.items()}
    one = snapshot_of(tmp_path, jobs, **files).snapshot
    other = snapshot_of(tmp_path, spread.pop("jobs"), **spread).snapshot
    assert one.down == other.down == "n[0-1]"
    assert [(x.request, x.option, x.value) for x in one.left_out] == [
        (x.request, x.option, x.value) for x in other.left_out
    ]
    assert "dependency" in {x.option for x in one.left_out}
    assert one.queue == other.queue


def test_short_states_and_reasons_beside_nodes(tmp_path):
    text = "JOBID|ST|NODES|NODELIST(REASON)|PRIORITY|PARTITION\n"
    text += "1|R|2|n[0-1]|9|all\n2|PD|2|(Dependency)|8|all\n3|PD|2|(Resources)|7|all\n"
    model = snapshot_of(tmp_path, text)
    assert [job.nodes for job in model.running] == ["n[0-1]"]
    assert holds(model) == {"2": ["dependency"]}


SHOWN = (
    "JobId={id} JobName=x Priority=9 JobState=PENDING Reason={reason} Dependency={dependency} "
    "TimeLimit=01:00:00 SubmitTime=2026-03-01T10:00:00 Partition={partition} NodeList= "
    "NumNodes={nodes} NumCPUs=2 MinCPUsNode=1 MinMemoryNode=0 Features={features} "
    "OverSubscribe={shared} Contiguous={contiguous} Licenses=(null) Network=(null) "
    "Switches={switches} TresPerNode={gres} Comment=pattern=rd\n"
)
USUAL_SHOWN = {
    **{"id": "1", "reason": "None", "dependency": "(null)", "partition": "all", "nodes": "2"},
    **{"features": "(null)", "shared": "NO", "contiguous": "0", "switches": "0@00:00:00"},
    "gres": "",
}


@pytest.mark.parametrize(
    ("option", "fields"),
    [
        ("partition", {"partition": "gpu"}),
        ("hold", {"reason": "JobHeldUser"}),
        ("features", {"features": "ib"}),
        ("dependency", {"dependency": "afterok:3(unfulfilled)"}),
        ("gres", {"gres": "gres/gpu:4"}),
        ("shared", {"shared": "OK"}),
        ("switches", {"switches": "1@00:05:00"}),
        ("node_count", {"nodes": "2-30"}),
    ],
)
def test_scontrol_show_job_is_a_listing_too(tmp_path, option, fields):
    text = SHOWN.format(**USUAL_SHOWN | fields) + SHOWN.format(**USUAL_SHOWN | {"id": "2"})
    model = snapshot_of(tmp_path, text)
    assert holds(model) == {"1": [option]}
    assert model.queue[1].patterns is not None


# ---- Partitions and reservations -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"State=UP": "State=DOWN"}, "all is DOWN"),
        ({"MaxNodes=UNLIMITED": "MaxNodes=1"}, "all has jobs of at most 1 node"),
        ({"MaxTime=UNLIMITED": "MaxTime=00:30:00"}, "all has jobs of at most 1800 s"),
        ({"State=UP": "State=INACTIVE"}, "all is INACTIVE"),
        ({"ReqResv=NO": "ReqResv=YES"}, "all with ReqResv=YES"),
        ({"MaxCPUsPerNode=UNLIMITED": "MaxCPUsPerNode=8"}, "all with MaxCPUsPerNode=8"),
        ({"n[0-7]": "n[0-9]"}, "all, with 2 nodes on no switch"),
    ],
)
def test_limits_of_a_partition_hold_its_jobs(tmp_path, changes, text):
    partitions = PARTITION.format(name="all", nodes="n[0-7]")
    assert holds(snapshot_of(tmp_path, [entry()], partitions=partitions)) == {}
    for old, new in changes.items():
        partitions = partitions.replace(old, new)
    model = snapshot_of(tmp_path, [entry()], partitions=partitions)
    ((held,),) = holds_of(model.snapshot).values()
    assert (held.option, held.value) == ("partition", text)


def test_tasks_in_steps_and_arrays_that_squeue_cuts(tmp_path):
    jobs = [
        entry(9, array_job_id=number(k), array_task_string=text)
        for k, text in ((1, "0-20:5%2"), (2, "1,4,..."))
    ]
    snapshot = snapshot_of(tmp_path, jobs).snapshot
    names = {one.id for one in snapshot.queue}
    assert names == {*(f"1_{k}" for k in (0, 5, 10, 15, 20)), "2_1", "2_4"}
    (unseen,) = (one.value for one in snapshot.left_out if one.option == "not-seen")
    assert unseen.startswith("tasks of long arrays")


def test_partitions_that_drain_and_those_of_some_accounts(tmp_path):
    every = PARTITION.format(name="all", nodes="n[0-7]")
    drains = every.replace("State=UP", "State=DRAIN")
    assert holds(snapshot_of(tmp_path, [entry()], partitions=drains)) == {}
    some = PARTITION.format(name="low", nodes="n[0-3]") + " AllowAccounts=physics"
    jobs = [entry(), entry(2, partition="all,low", priority_by_partition=[{"priority": 1}])]
    model = snapshot_of(tmp_path, jobs, partitions=f"{every}\n{some} PreemptMode=REQUEUE\n")
    (held,) = (one for one in model.snapshot.left_out if one.request == "2")
    assert (held.option, held.value) == (
        "partition",
        "low with AllowAccounts=physics, one of all, low",
    )
    ahead = [(one.option, one.value) for one in model.snapshot.left_out if one.request is None]
    assert ("preemption", "of jobs of partition low (REQUEUE)") in ahead


def test_a_priority_of_each_partition_leaves_the_order_open(tmp_path):
    texts = [PARTITION.format(name=n, nodes=f"n[{n}-{n + 3}]") for n in (0, 4)]
    job = entry(2, partition="0,4", priority_by_partition=[{"partition": "0", "priority": 9}])
    model = snapshot_of(tmp_path, [entry(partition="0"), job], partitions="\n".join(texts))
    assert "tier" in {one.option for one in model.snapshot.left_out}


def test_jobs_of_a_partition_of_whole_nodes_do_not_share(tmp_path):
    partitions = PARTITION.format(name="all", nodes="n[0-7]").replace(
        "Subscribe=NO", "Subscribe=EXCLUSIVE"
    )
    assert holds(snapshot_of(tmp_path, [entry(shared=[])], partitions=partitions)) == {}


def test_reservations_close_their_nodes_now_and_hold_all_later(tmp_path):
    text = "ReservationName=r Nodes=n[0-1] StartTime=a EndTime=b State={}\n"
    model = snapshot_of(tmp_path, [entry()], reservations=text.format("ACTIVE"))
    assert (model.snapshot.down, holds(model)) == ("n[0-1]", {})
    ahead = [one.option for one in model.snapshot.left_out if one.request is None]
    assert ahead == ["reservation-end"]
    model = snapshot_of(tmp_path, [entry()], reservations=text.format("INACTIVE"))
    assert (model.snapshot.down, holds(model)) == ("", {"1": ["reservation"]})
    none = "No reservations in the system\n"
    assert holds(snapshot_of(tmp_path, [entry()], reservations=none)) == {}


def test_nodes_of_an_owner_are_closed(tmp_path):
    nodes = "".join(NODE.format(name=f"n{k}", of="all") for k in range(8))
    model = snapshot_of(tmp_path, [entry()], nodes=nodes.replace("Owner=N/A", "Owner=ann", 1))
    assert model.snapshot.down == "n0"


# ---- Audits --------------------------------------------------------------------------------------


def busy_cluster(folder: Path, option: str, value: object, *, after: bool) -> tp.Model:
    """Return 40 nodes in two partitions and 60 jobs, some with an option, before or after."""
    leaves = "".join(f"SwitchName=l{k} Nodes=m[{10 * k}-{10 * k + 9}]\n" for k in range(4))
    nodes = "".join(NODE.format(name=f"m{k}", of="a" if k < 20 else "b") for k in range(40))
    jobs = [entry(k, partition="ab"[k % 2], node_count=number(1 + k % 5), max_nodes=number(0),
                  tres_req_str="") for k in range(1, 61)]  # fmt: skip
    for job in jobs[::7]:
        job[option] = value
    at = {"a": 0, "b": 20}
    for job in jobs if after else ():
        size, first = job["node_count"]["number"], at[job["partition"]]
        if option not in job and first % 20 + size <= 20 and first < 20 * (1 + (first >= 20)):
            last = first + size - 1
            job |= {"job_state": ["RUNNING"], "nodes": f"m[{first}-{last}]"}
            at[job["partition"]] = last + 1 if (last + 1) % 20 else 40
    texts = {"nodes": nodes, "topology": leaves + "SwitchName=top Switches=l[0-3]\n"}
    return snapshot_of(folder, jobs, **texts)


@pytest.mark.parametrize(
    ("option", "value", "verdict"),
    [
        ("network", "sn_all", "unjudged"),
        ("dependency", "afterok:99(unfulfilled)", "suboptimal"),
    ],
)
def test_a_held_job_leaves_an_audit_open_unless_it_cannot_start_now(
    option, value, verdict, tmp_path
):
    before = busy_cluster(tmp_path, option, value, after=False)
    after = busy_cluster(tmp_path, option, value, after=True)
    assert len(after.running) > 5
    (row,) = tp.audit(before, after=after).rows
    assert row.verdict == verdict
    assert (row.why == "9 held (network 9)") == (verdict == "unjudged")
    by_job = {
        row.standing.jobs[0]: row for row in tp.audit(before, after=after, order="priority").rows
    }
    held = [by_job[str(k)] for k in range(1, 61, 7)]
    assert {row.verdict for row in held} == {
        "unjudged" if verdict == "unjudged" else "rightly waiting"
    }
    assert all(option in row.why for row in held)
    started = {job.id for job in after.running}
    assert {by_job[name].verdict for name in started} == {"rightly started"}


def test_an_order_says_who_is_held_before_others(tmp_path):
    """Job 1 is asked for first, and may take nodes that 3 gets: nobody knows which."""
    jobs = [entry(1, network="sn_all"), entry(2, dependency="afterok:9(unfulfilled)"), entry(3)]
    jobs += [entry(k, licenses="a:1") for k in range(4, 6)]
    snapshot = snapshot_of(tmp_path, jobs).snapshot
    said = "others start as if 1, held before them in the order, took no nodes"
    assert said not in (left_out_text(snapshot) or "")
    for order in ("priority", "backfill"):
        result = tp.place(snapshot, order=order)
        assert said in (left_out_text(result.instance) or "")
    first = snapshot_of(tmp_path, jobs[2:]).snapshot
    assert "others start" not in (left_out_text(in_order(first, "priority")) or "")


# ---- A real Slurm --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "scenario", ["01_empty_mixed", "10_dependency_running", "16_array", "30_shared_cores"]
)
def test_nothing_of_a_real_cluster_is_dropped_in_silence(scenario, tmp_path):
    folder = real_file(f"slurm_clusters/{scenario}/before/squeue.json").parent
    options = ConvertOptions(
        topology=folder / "topology.txt", nodes=folder / "nodes.txt", jobs=folder / "squeue.json"
    )
    made = converted(None, "slurm", None, options)
    assert not [note for note in made.notes if "not known here" in note]
    held = holds_of(made.document)
    eligible = {request.id: request.eligible for request in made.document.queue}
    raw = json.loads((folder / "squeue.json").read_text())["jobs"]
    waiting = {str(job["job_id"]): job for job in raw if job["job_state"] == ["PENDING"]}
    for name, job in waiting.items():
        own = {one.option for one in held.get(name, [])}
        if name in eligible and "feature:" in (eligible[name] or ""):
            own.add("features")
        for field, option in (("dependency", "dependency"), ("features", "features")):
            assert bool(job[field]) <= (option in own) or job["array_task_string"]


# ---- Several topologies --------------------------------------------------------------------------

TOPOLOGIES = """\
- topology: tree
  cluster_default: true
  tree: {switches: [{switch: s0, nodes: "n[0-3]"}, {switch: s1, nodes: "n[4-5]"},
                    {switch: top, children: "s[0-1]"}]}
- topology: blocks
  block: {block_sizes: [2], blocks: [{block: b0, nodes: "n[6-7]"}]}
"""


@pytest.mark.parametrize(
    ("topology", "running", "held"),
    [
        (None, "n[0-1]", {"3": "low on topology blocks, not tree"}),
        ("blocks", "n[6-7]", {"2": "all on the default topology, not blocks"}),
    ],
)
def test_jobs_of_partitions_on_other_topologies_are_held(topology, running, held, tmp_path):
    jobs = [
        entry(1, job_state=["RUNNING"], nodes="n[0-1]"),
        entry(4, job_state=["RUNNING"], nodes="n[6-7]"),
        *(entry(2), entry(3, partition="low")),
    ]
    partitions = PARTITION.format(name="all", nodes="n[0-5]") + "\n"
    partitions += PARTITION.format(name="low", nodes="n[6-7]") + " Topology=blocks\n"
    texts = {
        "topology": TOPOLOGIES,
        "nodes": "".join(NODE.format(name=f"n{k}", of="all") for k in range(8)),
        "jobs": json.dumps({"jobs": jobs, "last_update": number(NOW)}),
        "partitions": partitions,
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    files = {name: tmp_path / name for name in texts if name != "topology"}
    options = ConvertOptions(topology=topology, **files)
    made = converted(tmp_path / "topology", "slurm", None, options)
    assert "jobs left out, running on no switch: 1" in made.notes
    (tmp_path / "now.json").write_text(made.text)
    snapshot = load_any(tmp_path / "now.json").snapshot
    assert [job.nodes for job in snapshot.running] == [running]
    found = {one.request: one.value for one in snapshot.left_out if one.request}
    assert found == held


TREES = """\
- topology: tree
  cluster_default: true
  tree: {switches: [{switch: s0, nodes: "n[0-1]"}, {switch: s1, nodes: "n[2-3]"},
                    {switch: top, children: "s[0-1]"}]}
- topology: other
  tree: {switches: [{switch: e0, nodes: "n[4-5]"}]}
- topology: plain
  flat: true
- topology: blocks
  block: {block_sizes: [2], blocks: [{block: b0, nodes: "n[0-1]"}]}
"""


def on_topologies(folder: Path, jobs: list[dict[str, Any]], text: str = TREES) -> tp.Model:
    """Return a cluster of eight nodes with four topologies: two of the partitions have no tree."""
    of = {"all": "n[0-3]", "other": "n[4-5]", "plain": "n[6-7]", "blocks": "n[0-1]"}
    partitions = "".join(
        PARTITION.format(name=name, nodes=nodes)
        + (f" Topology={name}\n" if name != "all" else "\n")
        for name, nodes in of.items()
    )
    nodes = "".join(NODE.format(name=f"n{k}", of="all") for k in range(8))
    return snapshot_of(folder, jobs, topology=text, nodes=nodes, partitions=partitions)


def test_trees_and_flat_topologies_without_a_common_node_are_one_machine(tmp_path):
    def of(job: int, partition: str, num: int, **more: Any) -> dict[str, Any]:
        sizes = {"node_count": number(num), "max_nodes": number(num)}
        return entry(job, partition=partition, **sizes, tres_req_str=f"node={num}", **more)

    jobs = [
        *(of(1, "all", 3), of(2, "other,plain", 2), of(3, "plain,other", 2), of(4, "blocks", 1)),
        *(of(5, "all,other", 5), of(6, "plain", 1, required_switches=1)),
    ]
    model = on_topologies(tmp_path, jobs)
    assert holds(model) == {"4": ["partition"], "6": ["switches"]}
    (why,) = holds_of(model.snapshot)["4"]
    assert why.value == "blocks on topology blocks, not tree or other or plain"
    result = tp.place(model)
    assert result.check().verified
    hosts = {start.request: start.hosts for start in result.placements}
    assert {*hosts} == {"1", "2", "3"}
    assert {hosts["2"], hosts["3"]} == {"n[4-5]", "n[6-7]"}
    assert "5" in result.waits
    rows = tp.audit(model, after=model, order="priority").rows
    verdicts = {row.standing.jobs[0]: row.verdict for row in rows}
    assert [verdicts[name] for name in "1235"] == ["missed"] * 3 + ["rightly waiting"]


def test_topologies_that_have_nodes_in_common_are_not_one(tmp_path):
    meets = TREES.replace('e0, nodes: "n[4-5]"', 'e0, nodes: "n[3-5]"')
    model = on_topologies(tmp_path, [entry(1), entry(2, partition="other")], meets)
    assert holds(model) == {"2": ["partition"]}
    assert tp.place(model).check().verified


@pytest.mark.parametrize(
    ("of_1", "starts"),
    [
        ({}, 1),
        ({"partition": "left"}, 0),
        ({"excluded_nodes": "n[4-7]"}, 0),
        ({"resv_name": "r"}, 0),
    ],
)
def test_jobs_that_run_keep_their_options_where_they_move(tmp_path, of_1, starts):
    """A job of a node on each leaf; that of the second stays, and a third needs a whole leaf."""

    def sized(num: int) -> dict[str, Any]:
        own = {"node_count": number(num), "max_nodes": number(num)}
        return own | {"tres_req_str": f"node={num}", "cpus": number(num)}

    runs = {"job_state": ["RUNNING"]} | sized(1)
    jobs = [
        entry(1, nodes="n0", **(runs | of_1)),
        entry(2, nodes="n4", **runs),
        entry(3, required_switches=number(1), **sized(4)),
    ]
    nodes = "".join(NODE.format(name=f"n{k}", of="all,left" if k < 4 else "all") for k in range(8))
    model = snapshot_of(tmp_path, jobs, nodes=nodes)
    found = tp.repack(model, "3", fixed=["2"])
    assert found.check().verified
    assert (found.objective, found.bound) == (starts, starts)
    assert ("restricts them" in summary(found)) == ("resv_name" in of_1)


def test_what_slurm_prefers_to_few_switches_is_said_for_audits(tmp_path):
    def said(prefer: str = "", **files: str) -> dict[str, str]:
        model = snapshot_of(tmp_path, [entry(prefer=prefer)], **files)
        return {one.option: one.value for one in model.snapshot.left_out if one.request is None}

    weights = [f" Weight={1 + k // 4}" for k in range(8)]
    nodes = [NODE.format(name=f"n{k}", of="all").strip() + weights[k] for k in range(8)]
    partition = PARTITION.format(name="all", nodes="n[0-7]")
    assert "preference" not in said(partitions=partition)
    assert said(nodes="\n".join(nodes))["preference"] == "of nodes by 2 weights"
    least = said(partitions=f"{partition} LLN=YES")["preference"]
    assert least == "of the least loaded nodes of partition all"
    assert said(prefer="ib")["preference"] == "of job 1 of ib"


def test_idle_nodes_of_a_suspended_job_are_others_to_have(tmp_path):
    stopped = entry(7, job_state=["SUSPENDED"], nodes="n[0-5]", node_count=number(6))
    for memory, running in (("", 0), (" AllocMem=1", 1)):
        nodes = [NODE.format(name=f"n{k}", of="all").strip() + memory for k in range(8)]
        model = snapshot_of(tmp_path, [stopped, entry()], nodes="\n".join(nodes))
        assert len(model.snapshot.running) == running


def test_nodes_may_be_json(tmp_path):
    one = {"partitions": ["all", "low"], "cpus": 16, "real_memory": 64000, "owner": "",
           "features": ["ib"], "active_features": ["ib"], "gres": "gpu:a100:4"}  # fmt: skip
    listed = [{"name": f"n{k}", "state": ["IDLE"] + ["DRAIN"] * (k == 3), **one} for k in range(8)]
    jobs = [entry(), entry(2, features="ib", tres_per_node="gres/gpu:4")]
    model = snapshot_of(tmp_path, jobs, nodes=json.dumps({"nodes": listed}))
    assert (model.snapshot.down, holds(model)) == ("n3", {})
    with pytest.raises(InputError, match=r"nodes\[0\]: expected NodeName="):
        snapshot_of(tmp_path, jobs, nodes=json.dumps({"nodes": [{"state": ["IDLE"]}]}))


def test_a_folder_with_partitions_in_json_says_what_is_read(tmp_path):
    texts = {"topology.conf": TOPOLOGY, "squeue.json": json.dumps({"jobs": [entry()]})}
    for name, text in {**texts, "partitions.json": "{}"}.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=r"expected partitions\.txt, found 'partitions\.json'"):
        tp.load(tmp_path)


@pytest.mark.parametrize(("hours", "held"), [(1, {"1": ["reservation"]}), (48, {})])
def test_a_reservation_long_over_in_any_zone_holds_nobody(tmp_path, hours, held):
    begins, ends = (datetime.fromtimestamp(NOW - 3600 * h).isoformat() for h in (96, hours))
    text = f"ReservationName=r StartTime={begins} EndTime={ends} Nodes=n[0-7] State=INACTIVE\n"
    assert holds(snapshot_of(tmp_path, [entry()], reservations=text)) == held


def test_audits_in_an_order_hold_requests_to_the_contract(tmp_path):
    """Of two blocks of four, three and three nodes are free: four are not in one block."""
    blocks = "BlockName=a Nodes=n[0-3]\nBlockName=b Nodes=n[4-7]\nBlockSizes=4,8\n"
    sizes = {2: 4, 3: 6, 4: 1}
    jobs = [
        entry(k, node_count=number(n), max_nodes=number(n), tres_req_str=f"node={n}")
        for k, n in sizes.items()
    ]
    runs = entry(1, job_state=["RUNNING"], nodes="n0,n4", end_time=number(NOW + 600))
    before = snapshot_of(tmp_path, [runs, *jobs], topology=blocks)

    def verdicts(**more: Any) -> list[tuple[str, str]]:
        found = tp.audit(before, after=before, order="priority", **more)
        return [(row.request[0], str(row.verdict)) for row in found.rows]

    assert verdicts() == [("2", "unjudged"), ("3", "unjudged"), ("4", "unjudged")]
    rightly = [("2", "rightly waiting"), ("3", "missed"), ("4", "missed")]
    assert verdicts(contract="slurm-block") == rightly
    (row,) = tp.audit(before, after=before).rows
    assert (row.verdict, row.why[:23]) == ("unjudged", "not modelled: contract ")


def test_a_contract_holds_the_request_that_it_does_not_go_with(tmp_path):
    blocks = "BlockName=a Nodes=n[0-3]\nBlockName=b Nodes=n[4-7]\nBlockSizes=4,8\n"
    jobs = [entry(1, required_nodes="n0"), entry(2)]
    model = snapshot_of(tmp_path, jobs, topology=blocks)
    result = tp.place(model, contract="slurm-block")
    assert [start.request for start in result.placements] == ["2"]
    assert [one.option for one in holds_of(result.instance)["1"]] == ["contract"]
    assert result.check().verified


@pytest.mark.parametrize(
    ("option", "fields"),
    [
        ("node_layout", "ReqB:S:C:T=0:0:*:2"),
        ("node_layout", "Socks/Node=2"),
        ("node_layout", "NtasksPerN:B:S:C=0:0:1:*"),
        ("disk", "MinTmpDiskNode=90G"),
        ("extra", "Extra=rack=3"),
        ("", "ReqB:S:C:T=0:0:*:* Socks/Node=* NtasksPerN:B:S:C=2:0:*:* MinTmpDiskNode=0 SLUID=x"),
    ],
)
def test_scontrol_show_job_says_what_a_node_needs_inside(tmp_path, option, fields):
    text = SHOWN.format(**USUAL_SHOWN).rstrip("\n") + f" {fields}\n"
    model = snapshot_of(tmp_path, text)
    assert holds(model).get("1", []) == ([option] if option else [])
