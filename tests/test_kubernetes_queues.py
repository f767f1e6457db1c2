"""Policies and quotas of Kueue's ClusterQueues: who may end for whom, and who has no quota."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import topoplace as tp
from test_kubernetes import HOST, KUEUE, RACK, pod, template, thing, written
from test_kubernetes_held import cluster_wide, condition, options, snapshot_of, whole, workload
from topoplace.cli import run
from topoplace.formats.kubernetes.snapshots import read_kubernetes

LOWER = {"withinClusterQueue": "LowerPriority"}
GPU = "nvidia.com/gpu"
FLAVOR = cluster_wide("ResourceFlavor", "f", spec={"topologyName": "default"})


def queue(name: str = "q", quota: dict[str, Any] | None = None, **more: Any) -> list[Any]:
    """A LocalQueue and the ClusterQueue of its name; with quotas of GPUs if they are given."""
    spec = {"namespaceSelector": {}, **more}
    if quota is not None:
        own = {"name": "f", "resources": [{"name": GPU, **quota}]}
        covered = {"coveredResources": [GPU, "cpu"], "flavors": [own]}
        own["resources"].append({"name": "cpu", "nominalQuota": 100})
        spec["resourceGroups"] = [covered]
    return [
        cluster_wide("ClusterQueue", name, spec=spec),
        thing("LocalQueue", name, f"{KUEUE}/v1beta2", spec={"clusterQueue": name}),
    ]


def admitted(name: str, host: str, of: str = "q", gpus: int = 2, priority: int = 1) -> Any:
    """A Workload of one pod that is on a host."""
    domains = [{"values": [host], "count": 1}]
    own = {"name": "main", "topologyAssignment": {"levels": [HOST], "domains": domains}}
    status = {"admission": {"clusterQueue": of, "podSetAssignments": [own]}}
    sets = {"count": 1, "template": template(gpus)}
    return workload(name, podset=sets, status=status, queueName=of, priority=priority)


def waiting(name: str = "w", of: str = "q", priority: int = 9, **podset: Any) -> Any:
    sets = {"count": 1, "template": template(2), **podset}
    return workload(name, podset=sets, queueName=of, priority=priority)


def full(*queues_of_jobs: str) -> list[Any]:
    """A job on each host, of a queue each."""
    hosts, gpus = ("a1", "a2", "b1", "b2"), (4, 4, 4, 8)
    each = zip(queues_of_jobs, hosts, gpus, strict=True)
    return [admitted(f"j{k}", host, of, n) for k, (of, host, n) in enumerate(each)]


def ends(path: Path) -> list[str]:
    plan = tp.repack(path, start=["ns/w"], evict="lower", no_moves=True)
    assert plan.check().holds
    return [] if plan.solution is None or not plan.solution.placements else plan.solution.ended


@pytest.mark.parametrize(
    ("policies", "ended"),
    [
        (LOWER, ["ns/j1"]),
        ({"withinClusterQueue": "Never"}, []),
        ({}, []),
    ],
)
def test_only_jobs_that_a_policy_allows_end(tmp_path, policies, ended):
    """Three jobs are of another queue, without a cohort."""
    own = [*queue(preemption=policies), *queue("r"), *full("r", "q", "r", "r"), waiting()]
    assert ends(written(tmp_path, *own)) == ended


def test_a_line_says_where_it_is_not_known_who_may_end(tmp_path):
    policies = {"reclaimWithinCohort": "LowerPriority"}
    own = [*queue(preemption=policies, cohort="c"), *queue("r", cohort="c")]
    snapshot = snapshot_of(tmp_path, *own, *full("r", "q", "r", "r"), waiting())
    text = "of ns/w: of cohort c only jobs of queues that borrow may end"
    assert whole(snapshot)["preemption-rules"] == text
    assert ends(written(tmp_path, *own, *full("r", "q", "r", "r"), waiting())) != ["ns/j1"]
    equal = {"withinClusterQueue": "LowerOrNewerEqualPriority"}
    jobs = [*queue(preemption=equal), admitted("j", "a1", priority=9), waiting()]
    assert "no lower priority" in whole(snapshot_of(tmp_path, *jobs))["preemption-rules"]


def test_nobody_is_blamed_for_ends_where_there_are_quotas(tmp_path, capsys):
    """One ends although there is room: its quota is what the other needs."""
    both = [FLAVOR, *queue(preemption=LOWER, quota={"nominalQuota": 2})]
    before = written(tmp_path, *both, admitted("j", "a1"), waiting())
    before.rename(tmp_path / "before.json")
    over = [*both, waiting("j", priority=1), admitted("w", "a1", priority=9)]
    after = written(tmp_path, *over)
    (row,) = tp.audit(tmp_path / "before.json", after=after, victims="lower").rows
    assert (row.verdict, row.why) == ("unjudged", "not modelled: quotas of ClusterQueue q, " + Q)
    command = ["repack", str(tmp_path / "before.json"), "--start", "ns/w", "--evict", "lower"]
    assert run(command) == 0
    assert f"not modelled: quotas of ClusterQueue q, {Q}\n" in capsys.readouterr().out
    assert run(["whatif", str(tmp_path / "before.json"), "--add-down", "b1"]) == 0
    assert f"quotas of ClusterQueue q, {Q}\n" in capsys.readouterr().out


Q = "LocalQueue ns/q"


@pytest.mark.parametrize(
    ("quota", "more", "others", "held"),
    [
        ({"nominalQuota": 1}, {}, [], True),
        ({"nominalQuota": 1}, {"cohort": "c"}, queue("r", {"nominalQuota": 1}, cohort="c"), False),
        (
            {"nominalQuota": 1, "borrowingLimit": 0},
            {"cohort": "c"},
            queue("r", {"nominalQuota": 9}, cohort="c"),
            True,
        ),
        ({"nominalQuota": 1}, {"cohort": "c"}, queue("r", {"nominalQuota": 9}, cohort="d"), True),
        (
            {"nominalQuota": 1},
            {"cohort": "c"},
            queue("r", {"nominalQuota": 9, "lendingLimit": 0}, cohort="c"),
            True,
        ),
        (
            {"nominalQuota": 1},
            {"cohort": "c"},
            [cluster_wide("Cohort", "c", spec={"parentName": "above"})],
            False,
        ),
        ({"nominalQuota": 3}, {}, [admitted("j", "a1")], True),
        ({"nominalQuota": 4}, {}, [admitted("j", "a1")], False),
        ({"nominalQuota": 3}, {"preemption": LOWER}, [admitted("j", "a1")], False),
        ({"nominalQuota": 3}, {}, [admitted("j", "a1", "r"), *queue("r")], False),
    ],
)
def test_who_has_no_quota_is_held(tmp_path, quota, more, others, held):
    own = [FLAVOR, *queue(quota=quota, **more), *others, waiting()]
    assert options(snapshot_of(tmp_path, *own)) == ({"ns/w": {"quota"}} if held else {})


def test_a_strict_queue_is_named(tmp_path):
    strict = queue(queueingStrategy="StrictFIFO")
    two = snapshot_of(tmp_path, *strict, waiting(), waiting("v"))
    assert whole(two)["StrictFIFO"] == "of ClusterQueue q"
    assert "StrictFIFO" not in whole(snapshot_of(tmp_path, *strict, waiting()))


LAYERS = "podsetSliceRequiredTopologyConstraints"


@pytest.mark.parametrize(
    ("layers", "option"),
    [
        ([{"topology": RACK, "size": 2}, {"topology": HOST, "size": 2}], "podset-slice-size"),
        ([{"topology": RACK, "sizes": [2]}], "topology"),
    ],
)
def test_an_odd_workload_is_held_and_the_others_are_read(tmp_path, layers, option):
    odd = waiting("odd", count=2, topologyRequest={"required": RACK, LAYERS: layers})
    found = options(snapshot_of(tmp_path, odd, waiting()))
    assert found.keys() == {"ns/odd"}
    assert option in found["ns/odd"]


def test_a_workload_that_was_just_preempted_may_start(tmp_path):
    status = condition(message="Preempted to accommodate a workload (UID: 1, JobUID: 2) due to")
    assert options(snapshot_of(tmp_path, workload(status=status))) == {}


def test_a_path_names_a_domain_that_others_are_called_too(tmp_path, capsys):
    levels = [{"nodeLabel": "block"}, {"nodeLabel": RACK}, {"nodeLabel": HOST}]
    topology = cluster_wide("Topology", "t", spec={"levels": levels})
    nodes = [
        thing(
            "Node",
            f"n{k}",
            metadata={"labels": {"block": f"b{k}", RACK: "r"}},
            status={"allocatable": {"cpu": 8, GPU: 2, "pods": 9}},
        )
        for k in range(2)
    ]
    path = tmp_path / "now.json"
    items = [topology, *nodes, pod("w", None, 1, "Pending")]
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    assert run(["whatif", str(path), "--add-down", "b0/r,n1"]) == 0
    assert "no longer starts ns/w" in capsys.readouterr().out
    assert len(read_kubernetes(path)[0].queue) == 1


def test_swapped_files_are_noticed(tmp_path):
    after = written(tmp_path, pod("w", "a1"))
    after.rename(tmp_path / "after.json")
    before = written(tmp_path, pod("w", None, 1, "Pending"))
    notes = tp.audit(tmp_path / "after.json", after=before).notes
    assert any("are the files swapped?" in note for note in notes)
    assert not tp.audit(before, after=tmp_path / "after.json").notes


@pytest.mark.parametrize(
    ("memory", "running", "held"),
    [("1G", 0, True), ("953Mi", 0, False), ("1", 0, False), ("1G", 1, True), ("3G", 0, False)],
)
def test_memory_is_not_short_for_its_rounding(tmp_path, memory, running, held):
    """A node of 8000M has room for 8 pods of 1G, not for 8 of 954 MiB."""
    own = template(1 if memory != "3G" else 4)
    own["spec"]["containers"][0]["resources"]["requests"] |= {"memory": memory, "cpu": "1m"}
    there = thing(
        "Node",
        "c",
        metadata={"labels": {RACK: "r", HOST: "c"}},
        status={"allocatable": {"cpu": "9", GPU: "8", "pods": "99", "memory": "8000M"}},
    )
    topology = cluster_wide("Topology", "t", spec={"levels": [{"nodeLabel": RACK}]})
    pods = [pod(f"r{k}", "c", 1) for k in range(running)]
    for one in pods:
        one["spec"] = {**own["spec"], "nodeName": "c"}
    waits = workload(podset={"count": 8 - running if memory != "3G" else 2, "template": own})
    path = tmp_path / "now.json"
    items = [topology, there, *pods, waits]
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    assert options(read_kubernetes(path)[0]) == ({"ns/w": {"rounding"}} if held else {})
