"""What restricts a job of Kubernetes is modelled, or holds the job and names the option."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import topoplace as tp
from real_files import real_file
from test_kubernetes import (
    HOST,
    KUEUE,
    QUEUED,
    RACK,
    TOPOLOGY,
    exact,
    hyper,
    job,
    job_set,
    listed,
    node,
    pod,
    template,
    thing,
    volcano,
    written,
)
from topoplace.cli import run
from topoplace.errors import InputError
from topoplace.formats.declared import UNKNOWN, Use
from topoplace.formats.kubernetes.fields import NOTES, POD
from topoplace.formats.kubernetes.snapshots import read_kubernetes
from topoplace.placement.hierarchy.view import HierarchyView
from topoplace.report.figure import draw
from topoplace.result import Status
from topoplace.snapshot.held import Choices, candidates_of, left_out_text
from topoplace.snapshot.machines import load_any
from topoplace.snapshot.schema import Apart, HierarchyModel, Snapshot

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def told(spec: dict[str, Any] | None = None, notes: dict[str, str] | None = None) -> dict[str, Any]:
    """A template with more in its specification, and more annotations."""
    own = copy.deepcopy(template())
    own["spec"] |= spec or {}
    own["metadata"]["annotations"] |= notes or {}
    return own


def snapshot_of(folder: Path, *items: dict[str, Any]) -> Snapshot:
    return read_kubernetes(written(folder, *items))[0]


def options(snapshot: Snapshot) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for one in snapshot.left_out:
        if one.request is not None:
            found.setdefault(one.request, set()).add(one.option)
    return found


def whole(snapshot: Snapshot) -> dict[str, str]:
    return {one.option: one.value for one in snapshot.left_out if one.request is None}


def require_held(path: Path, request: str, option: str) -> None:
    """The request may not start, a line names the option, and `--ignore` releases it."""
    held = load_any(path).snapshot
    assert request not in {one.id for one in candidates_of(held)}
    assert f"1 of {len(held.queue)} request" in str(left_out_text(held))
    assert f"({option} 1; see --ignore)" in str(left_out_text(held))
    released = load_any(path, choices=Choices([option])).snapshot
    assert released.ignored == [option]
    assert request in {one.id for one in candidates_of(released)}


def placed(path: Path, **more: Any) -> Any:
    result = tp.place(load_any(path).snapshot, **more)
    assert result.status is Status.OPTIMAL
    assert result.check().verified
    return result


def started(result: Any) -> set[str]:
    return {one.request for one in result.solution.placements}


# ---- The specification of pods -------------------------------------------------------------------


def affinity(kind: str, when: str, terms: Any) -> dict[str, Any]:
    return {"affinity": {kind: {when: terms}}}


def terms(*expressions: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"nodeSelectorTerms": [{"matchExpressions": list(expressions), **more}]}


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


NEAR = [{"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": HOST}]
SPREAD = {"maxSkew": 1, "topologyKey": RACK, "labelSelector": {}}

RESTRICTS = {
    "podAffinity": (affinity("podAffinity", REQUIRED, NEAR), "podAffinity"),
    "podAntiAffinity": (affinity("podAntiAffinity", REQUIRED, NEAR), "podAntiAffinity"),
    "spread": (
        {"topologySpreadConstraints": [SPREAD | {"whenUnsatisfiable": "DoNotSchedule"}]},
        "topologySpreadConstraints",
    ),
    "gates": ({"schedulingGates": [{"name": "example.com/wait"}]}, "schedulingGates"),
    "scheduler": ({"schedulerName": "my-scheduler"}, "schedulerName"),
    "class": ({"runtimeClassName": "kata"}, "runtimeClassName"),
    "gang": ({"workloadRef": {"name": "w", "podGroup": "g"}}, "workloadRef"),
    "group": ({"schedulingGroup": {"podGroupName": "g"}}, "schedulingGroup"),
    "devices": ({"resourceClaims": [{"name": "gpu"}]}, "resourceClaims"),
    "claim": (
        {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]},
        "persistentVolumeClaim",
    ),
    "ephemeral": ({"volumes": [{"name": "v", "ephemeral": {"spec": {}}}]}, "ephemeral"),
    "port": (
        {
            "containers": [
                {
                    "ports": [{"containerPort": 80, "hostPort": 80}],
                    "resources": {"requests": {"cpu": "1"}},
                }
            ]
        },
        "hostPort",
    ),
    "device of a container": (
        {"containers": [{"resources": {"claims": [{"name": "gpu"}], "requests": {"cpu": "1"}}}]},
        "resourceClaims",
    ),
}

NEUTRAL = {
    "selector of all": {"nodeSelector": {"kind": "gpu"}},
    "affinity of all": affinity(
        "nodeAffinity", REQUIRED, terms(expression(RACK, "In", "r1", "r2"))
    ),
    "either term": affinity(
        "nodeAffinity",
        REQUIRED,
        {
            "nodeSelectorTerms": [
                {"matchExpressions": [expression(RACK, "In", rack)]} for rack in ("r1", "r2")
            ]
        },
    ),
    "a wish": affinity("nodeAffinity", PREFERRED, [{"weight": 1, "preference": {}}]),
    "a wish to be near": affinity("podAffinity", PREFERRED, [{"weight": 1}]),
    "spread anyway": {
        "topologySpreadConstraints": [SPREAD | {"whenUnsatisfiable": "ScheduleAnyway"}]
    },
    "Kueue's gates": {"schedulingGates": [{"name": f"{KUEUE}/topology"}]},
    "known scheduler": {"schedulerName": "default-scheduler"},
    "other volumes": {"volumes": [{"name": "v", "emptyDir": {}}]},
    "no claims": {"resourceClaims": [], "tolerations": [], "nodeSelector": {}, "affinity": {}},
    "a port": {
        "containers": [{"ports": [{"containerPort": 80}], "resources": {"requests": {"cpu": "1"}}}]
    },
}


def labelled(**labels: str) -> list[dict[str, Any]]:
    """Nodes of two racks with GPUs, which all have a label, and a size on some."""
    nodes = [node(name, rack) for rack, name in (("r1", "a1"), ("r1", "a2"), ("r2", "b1"))]
    for k, own in enumerate(nodes):
        own["metadata"]["labels"] |= {"kind": "gpu", "size": str(3 + k)} | labels
    nodes[0]["metadata"]["labels"]["memory"] = "large"
    return nodes


def file_of(folder: Path, *items: dict[str, Any]) -> Path:
    path = folder / "now.json"
    objects = {"apiVersion": "v1", "kind": "List", "items": [TOPOLOGY, *labelled(), *items]}
    path.write_text(json.dumps(objects))
    return path


PLAIN = job("plain", 1, template())


@pytest.mark.parametrize("name", RESTRICTS)
def test_what_restricts_a_template_holds_the_job(tmp_path, name):
    spec, option = RESTRICTS[name]
    path = file_of(tmp_path, PLAIN, job("j", 1, told(spec)))
    snapshot, _ = read_kubernetes(path)
    assert options(snapshot) == {"ns/j": {option}}
    require_held(path, "ns/j", option)


@pytest.mark.parametrize("name", RESTRICTS)
def test_what_restricts_a_pod_or_a_workload_holds_it_too(tmp_path, name):
    spec, option = RESTRICTS[name]
    waits = pod("p", None, 1, "Pending")
    waits["spec"] |= spec
    sets = [{"name": "main", "count": 1, "template": told(spec)}]
    work = thing("Workload", "w", f"{KUEUE}/v1beta2", spec={"podSets": sets})
    found = options(read_kubernetes(file_of(tmp_path, PLAIN, waits, work))[0])
    of_pod = {"class": {}, "gang": {"ns/w.g": {"pod-group"}}, "group": {"ns/g": {"pod-group"}}}
    own = of_pod.get(name, {"ns/p": {option}})  # a pod has its class applied
    assert found == own | {"ns/w": {option}}


@pytest.mark.parametrize("name", NEUTRAL)
def test_what_cannot_restrict_holds_nobody(tmp_path, name):
    path = file_of(tmp_path, PLAIN, job("j", 1, told(NEUTRAL[name])))
    snapshot, _ = read_kubernetes(path)
    assert options(snapshot) == {}
    assert UNKNOWN not in whole(snapshot)


def test_every_restricting_field_of_pods_is_tried() -> None:
    tried = {option for _, option in RESTRICTS.values()}
    assert {field.held_by for field in POD.fields if field.use is Use.RESTRICTS} <= tried


def of_names(*names: str) -> dict[str, Any]:
    return {"matchFields": [expression("metadata.name", "In", *names)]}


def hosts_of(path: Path, request: str) -> set[str]:
    """Return the hosts that a request may have."""
    state = load_any(path)
    (own,) = (one for one in state.requests if one.id == request)
    mask = own.parts[0].eligible
    names = state.machine.host_names
    return {
        n
        for n, may in zip(names, [True] * len(names) if mask is None else mask.mask, strict=True)
        if may
    }


ELIGIBLE = {
    "nodeSelector": ({"nodeSelector": {RACK: "r1"}}, {"a1", "a2"}, f"{RACK}=r1"),
    "nowhere": ({"nodeSelector": {RACK: "r9"}}, set(), f"{RACK}=r9"),
    "two labels": (
        {"nodeSelector": {RACK: "r1", "memory": "large"}},
        {"a1"},
        f"{RACK}=r1 & memory=large",
    ),
    "in": (terms(expression(RACK, "In", "r1", "r9")), {"a1", "a2"}, f"({RACK}=r1 | {RACK}=r9)"),
    "not in": (terms(expression(RACK, "NotIn", "r2")), {"a1", "a2"}, f"!{RACK}=r2"),
    "exists": (terms(expression("memory", "Exists")), {"a1"}, "memory"),
    "does not": (terms(expression("memory", "DoesNotExist")), {"a2", "b1"}, "!memory"),
    "greater": (terms(expression("size", "Gt", "3")), {"a2", "b1"}, "size>3"),
    "less": (terms(expression("size", "Lt", "5")), {"a1", "a2"}, "size<5"),
    "names": (
        terms(**of_names("a1", "b1")),
        {"a1", "b1"},
        "(metadata.name:=a1 | metadata.name:=b1)",
    ),
    "both": (
        terms(expression(RACK, "In", "r1"), **of_names("a1", "b1")),
        {"a1"},
        f"({RACK}=r1 & (metadata.name:=a1 | metadata.name:=b1))",
    ),
    "either": (
        {
            "nodeSelectorTerms": [
                {"matchExpressions": [expression("memory", "Exists")]},
                of_names("b1"),
            ]
        },
        {"a1", "b1"},
        "(memory | metadata.name:=b1)",
    ),
    "no expression": ({"nodeSelectorTerms": [{}]}, set(), "none"),
    "no value": (terms(expression(RACK, "In")), set(), "none"),
}


@pytest.mark.parametrize("name", ELIGIBLE)
def test_nodes_that_a_pod_may_come_to_are_eligible(tmp_path, name):
    spec, hosts, text = ELIGIBLE[name]
    spec = affinity("nodeAffinity", REQUIRED, spec) if "nodeSelectorTerms" in spec else spec
    path = file_of(tmp_path, PLAIN, job("j", 1, told(spec)))
    snapshot, _ = read_kubernetes(path)
    plain, own = snapshot.queue
    assert (options(snapshot), plain.eligible, own.eligible) == ({}, None, text)
    assert hosts_of(path, "ns/j") == hosts


def test_terms_of_many_names_are_one_set(tmp_path):
    names = [f"a{k}" for k in range(1, 100)]
    spec = affinity("nodeAffinity", REQUIRED, terms(**of_names(*names)))
    path = file_of(tmp_path, job("j", 1, told(spec)))
    assert hosts_of(path, "ns/j") == {"a1", "a2"}
    assert len(read_kubernetes(path)[0].sets) == 1


def test_what_selects_no_node_with_room_waits_for_itself(tmp_path):
    path = file_of(tmp_path, PLAIN, job("j", 5, told({"nodeSelector": {"memory": "large"}})))
    result = placed(path)
    assert started(result) == {"ns/plain"}
    frame = result.to_frame().set_index("request")
    why = "5 units wanted, 3 free in the 1 host of memory=large: too little of cpu"
    assert frame.loc["ns/j", "waits"] == why


def test_sets_have_names_that_expressions_can_have(tmp_path):
    spec = {"nodeSelector": {"a b": "c|d", "a_b": "c_d"}}
    snapshot, _ = read_kubernetes(file_of(tmp_path, job("j", 1, told(spec))))
    assert snapshot.queue[0].eligible == "a_b=c_d~e022fe45 & a_b=c_d"


def test_taints_keep_those_away_that_do_not_tolerate_them(tmp_path):
    def taint(effect: str) -> dict[str, Any]:
        return {"taints": [{"key": "team", "value": "x", "effect": effect}]}

    may = {"tolerations": [{"key": "team", "operator": "Exists"}]}
    both = [PLAIN, job("j", 1, told(may))]
    for effect in ("NoSchedule", "NoExecute"):
        path = file_of(tmp_path, node("c1", "r3", spec=taint(effect)), *both)
        plain, own = read_kubernetes(path)[0].queue
        assert (plain.eligible, own.eligible) == (f"!team=x:{effect}", None)
        assert hosts_of(path, "ns/plain") == {"a1", "a2", "b1"}
        assert len(hosts_of(path, "ns/j")) == 4
    soft = node("c1", "r3", spec=taint("PreferNoSchedule"))
    assert len(hosts_of(file_of(tmp_path, soft, *both), "ns/plain")) == 4


def test_the_value_and_the_place_are_kept(tmp_path):
    path = tmp_path / "now.yaml"
    items = [TOPOLOGY, *labelled(), PLAIN, job("j", 1, told({"schedulerName": "mine"}))]
    path.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": items}))
    one = read_kubernetes(path)[0].left_out[0]
    assert (one.option, one.value) == ("schedulerName", "mine")
    assert str(one.where).startswith("line ")
    assert str(one.where).endswith("Job ns/j: spec.template.spec.schedulerName")


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (affinity("nodeAffinity", REQUIRED, {}), ""),
        (affinity("nodeAffinity", REQUIRED, {"nodeSelectorTerms": 1}), "nodeSelectorTerms: expect"),
        (
            affinity("nodeAffinity", REQUIRED, terms(expression("a", "Like"))),
            "nodeSelectorTerms[0].matchExpressions[0].operator: expected one of In",
        ),
    ],
)
def test_malformed_terms_are_named(tmp_path, spec, said):
    snapshot = snapshot_of(tmp_path, PLAIN, job("j", 1, told(spec)))
    assert options(snapshot) == ({"ns/j": {"nodeAffinity"}} if said else {})
    assert said in (snapshot.left_out[0].value if said else "")


def pod_set(name: str, **request: Any) -> dict[str, Any]:
    return {"name": name, "count": 1, "template": template(), "topologyRequest": request}


def of_two_levels() -> dict[str, Any]:
    levels = (("a", RACK), ("b", HOST))
    sets = [pod_set(name, required=level, podSetGroupName="g") for name, level in levels]
    return workload() | {"spec": {"podSets": sets}}


@pytest.mark.parametrize(
    ("own", "option", "said"),
    [
        (template(required_topology="row"), "topology", f"expected one of {RACK}, {HOST}"),
        (template(slice_size=2), "topology", "found one of them"),
        (template(slice_required_topology=RACK, slice_size="x"), "topology", "found 'x'"),
        (template(slice_required_topology_constraints="["), "topology", "a list such as"),
        (template(slice_required_topology="row", slice_size=1), "topology", "found 'row'"),
        (template(required_topology=RACK, group_name="a b"), "topology", "a name without spaces"),
    ],
)
def test_a_job_that_asks_for_what_is_not_there_is_held_alone(tmp_path, own, option, said):
    path = written(tmp_path, PLAIN, job("j", 1, own))
    snapshot = read_kubernetes(path)[0]
    assert options(snapshot) == {"ns/j": {option}}
    assert said in snapshot.left_out[0].value
    assert started(placed(path)) == {"ns/plain"}


def test_podsets_of_a_group_that_name_different_levels_are_held(tmp_path):
    snapshot = snapshot_of(tmp_path, PLAIN, of_two_levels())
    assert options(snapshot) == {"ns/w": {"podset-group-name"}}


def everything() -> dict[str, Any]:
    """A file with all kinds of objects that are read, for readers that must not fail."""
    spec: dict[str, Any] = {}
    for more, _ in RESTRICTS.values():
        spec = {**spec, **more, "affinity": spec.get("affinity", {}) | more.get("affinity", {})}
    owned = {"ownerReferences": [{"kind": "Job", "name": "far", "controller": True}]}
    meta = owned | {"annotations": {"scheduling.k8s.io/group-name": "g"} | HELD_NOTES}
    waits = pod("p", None, 1, "Pending", **meta)
    waits["spec"] |= spec
    work = workload(status=condition(message="no quota"))
    work["metadata"]["ownerReferences"] = [{"kind": "JobSet", "name": "js"}]
    high = thing("PriorityClass", "high", "scheduling.k8s.io/v1", value=7)
    kata = thing("RuntimeClass", "kata", "node.k8s.io/v1", scheduling={"nodeSelector": {"a": "b"}})
    for own in (high, kata):
        del own["metadata"]["namespace"]
    anti = running("r", labelSelector={"matchLabels": {"app": "x"}}, namespaceSelector={})
    items = [
        *(
            TOPOLOGY,
            *labelled(),
            flavor("f", kind="gpu"),
            PLAIN,
            job("j", 2, told(spec, HELD_NOTES)),
        ),
        *(waits, work, high, kata, anti, one_kind(), pod_group(minMember=2, minTaskMember={})),
        *volume(nodeAffinity={"required": terms(expression(RACK, "In", "r1"))}),
        *(group_pod(0, 0), volcano_job({"mode": "soft"}, partitions(2, 4), minAvailable=3)),
    ]
    return {"apiVersion": "v1", "kind": "List", "items": items}


def test_a_file_with_everything_is_read(tmp_path):
    path = tmp_path / "now.json"
    path.write_text(json.dumps(everything()))
    found = options(read_kubernetes(path)[0])
    assert {*found} == {"ns/g", "ns/j", "ns/js", "ns/lws-0", "ns/v"}
    assert len(found["ns/j"]) > 15


# ---- What else is in the file --------------------------------------------------------------------


def volume(**spec: Any) -> list[dict[str, Any]]:
    claim = thing("PersistentVolumeClaim", "data", spec={"volumeName": "pv", **spec.pop("of", {})})
    own = thing("PersistentVolume", "pv", spec=spec)
    del own["metadata"]["namespace"]
    return [claim, own]


@pytest.mark.parametrize(
    ("objects", "held"),
    [
        ([], True),
        (volume(), False),
        (volume(nodeAffinity={"required": terms(expression(RACK, "In", "r1"))}), False),
        (volume(nodeAffinity={"required": terms(expression(RACK, "Exists"))}), False),
        (volume(of={"accessModes": ["ReadWriteOncePod"]}), True),
        (volume()[:1], True),
    ],
)
def test_claims_restrict_by_the_nodes_of_their_volume(tmp_path, objects, held):
    spec = RESTRICTS["claim"][0]
    path = file_of(tmp_path, *objects, PLAIN, job("j", 1, told(spec)))
    found = options(read_kubernetes(path)[0])
    assert found == ({"ns/j": {"persistentVolumeClaim"}} if held else {})
    near = '"In"' in json.dumps(objects)
    path = file_of(tmp_path, *objects, PLAIN, job("j", 1, told({} if held else spec)))
    assert hosts_of(path, "ns/j") == ({"a1", "a2"} if near else {"a1", "a2", "b1"})


def test_runtime_classes_are_read(tmp_path):
    bare = thing("RuntimeClass", "kata", "node.k8s.io/v1", overhead={"podFixed": {"cpu": "1"}})
    del bare["metadata"]["namespace"]
    own = job("j", 1, told({"runtimeClassName": "kata"}))
    snapshot = read_kubernetes(file_of(tmp_path, bare, PLAIN, own))[0]
    assert options(snapshot) == {}
    assert {one.id: one.takes["cpu"] for one in snapshot.queue} == {"ns/plain": 1000, "ns/j": 2000}
    strict = bare | {"scheduling": {"nodeSelector": {RACK: "r1"}}}
    assert hosts_of(file_of(tmp_path, strict, PLAIN, own), "ns/j") == {"a1", "a2"}


def test_priority_classes_are_read(tmp_path):
    high = thing("PriorityClass", "high", "scheduling.k8s.io/v1", value=7)
    del high["metadata"]["namespace"]
    snapshot = snapshot_of(tmp_path, high, PLAIN, job("j", 1, told({"priorityClassName": "high"})))
    assert [request.id for request in snapshot.queue] == ["ns/j", "ns/plain"]
    assert whole(snapshot) == {"order": "by priority, then age"}


def priority(name: str, value: int) -> dict[str, Any]:
    found = thing("PriorityClass", name, "scheduling.k8s.io/v1", value=value)
    del found["metadata"]["namespace"]
    return found


def test_requests_start_in_the_order_of_their_priority_classes(tmp_path, capsys):
    def ranked(name: str, count: int, gpus: int, rank: str) -> dict[str, Any]:
        own = template(gpus)
        own["spec"]["priorityClassName"] = rank
        return job(name, count, own)

    path = file_of(
        tmp_path,
        priority("low", 1),
        priority("middle", 5),
        priority("high", 7),
        pod("p", "a1", 4),
        ranked("tiny", 1, 1, "low"),
        ranked("many", 3, 2, "low"),
        ranked("host", 1, 4, "middle"),
        ranked("all", 3, 4, "high"),
    )
    assert started(tp.place(path)) == {"ns/many", "ns/tiny"}  # 7 GPUs
    for order in ("priority", "backfill"):
        result = tp.place(path, order=order)
        assert started(result) == {"ns/host", "ns/tiny"}
        assert result.check().verified
        assert result.levels[0].status is Status.OPTIMAL
        assert "order" not in whole(result.instance)
        waits = result.to_frame().set_index("request")["waits"]
        assert waits["ns/all"].startswith("3 units wanted, 2 free")
        assert run(["place", str(path), "--order", order]) == 0
        line = "backfill: no job has a time limit, so none that waits has a reservation"
        assert (line in capsys.readouterr().out.splitlines()) is (order == "backfill")
    before = path.rename(tmp_path / "before.json")
    own = {"labels": {"batch.kubernetes.io/job-name": "many"}}
    pods = [pod(f"many-{k}", on, 2, **own) for k, on in enumerate(("a2", "a2", "b1"))]
    queue = [ranked("host", 1, 4, "middle"), ranked("all", 3, 4, "high")]
    ranks = priority("middle", 5), priority("high", 7)
    after = file_of(tmp_path, *ranks, pod("p", "a1", 4), *pods, *queue, ranked("many", 3, 2, "low"))
    rows = tp.audit(before, after=after, order="priority").rows
    verdicts = {name: str(row.verdict) for row in rows for name in row.free.jobs}
    waits = {"ns/all": "rightly waiting", "ns/host": "missed"}  # many has what host would have
    assert verdicts == waits | {"ns/many": "rightly started"}


def running(name: str, **anti: Any) -> dict[str, Any]:
    own = pod(name, "a1", 1)
    own["spec"] |= affinity("podAntiAffinity", REQUIRED, [{"topologyKey": HOST, **anti}])
    return own


@pytest.mark.parametrize(
    ("anti", "held"),
    [
        ({"labelSelector": {"matchLabels": {"app": "mine"}}}, True),
        ({"labelSelector": {"matchLabels": {"app": "other"}}}, False),
        ({"labelSelector": {"matchExpressions": [expression("job-name", "Exists")]}}, True),
        ({"labelSelector": {"matchLabels": {"app": "mine"}}, "namespaces": ["far"]}, False),
        ({"labelSelector": {}, "namespaceSelector": {}}, True),
        ({}, False),
    ],
)  # fmt: skip
def test_running_pods_keep_others_away(tmp_path, anti, held):
    own = told()
    own["metadata"]["labels"] = {"app": "mine"}
    found = options(snapshot_of(tmp_path, running("p", **anti), job("j", 1, own)))
    assert found == ({"ns/j": {"podAntiAffinity"}} if held else {})


def test_suspended_jobs_wait_for_kueue_or_for_their_user(tmp_path):
    path = written(tmp_path, job("j", 1, template(), metadata={}), PLAIN)
    assert options(read_kubernetes(path)[0]) == {"ns/j": {"suspend"}}
    require_held(path, "ns/j", "suspend")
    alone = job_set()
    del alone["metadata"]["labels"]
    assert options(snapshot_of(tmp_path, alone)) == {"ns/js": {"suspend"}}


def test_pods_of_finished_owners_are_held_and_those_deleted_left_out(tmp_path):
    owned = {"ownerReferences": [{"kind": "Job", "name": "j", "controller": True}]}
    done = job("j", 1, template(), suspend=False)
    done["status"] = {"conditions": [{"type": "Failed", "status": "True"}]}
    going = pod("g", None, 1, "Pending", deletionTimestamp="2026-01-01T00:00:00Z")
    snapshot = snapshot_of(tmp_path, done, going, pod("j-x", None, 1, "Pending", **owned))
    assert [request.id for request in snapshot.queue] == ["ns/j"]
    assert options(snapshot) == {"ns/j": {"owner"}}


def workload(name: str = "w", **more: Any) -> dict[str, Any]:
    status = more.pop("status", {})
    sets = [{"name": "main", "count": 2, "template": template()} | more.pop("podset", {})]
    spec = {"podSets": sets} | more
    return thing("Workload", name, f"{KUEUE}/v1beta2", spec=spec, status=status)


def condition(**more: str) -> dict[str, Any]:
    return {
        "conditions": [{"type": "QuotaReserved", "status": "False", "reason": "Pending"} | more]
    }


@pytest.mark.parametrize(
    ("own", "held"),
    [
        (workload(), None),
        (workload(active=False), "active"),
        (workload(active=True), None),
        (workload(podset={"minCount": 1}), "minCount"),
        (workload(status=condition(message="insufficient unused quota for cpu")), "quota"),
        (workload(status=condition(reason="Inadmissible", message="queue q is stopped")), "queue"),
        (workload(status=condition(message="topology t allows to fit 1 of 2")), None),
        (workload(status=condition(message="Previously: Preempted to make room")), None),
        (workload(status=condition(message="ClusterQueue q is inactive")), "queue"),
        (workload(status=condition(reason="TopologyPlacementFailed", message="no")), None),
        (workload(status=condition(reason="PendingEvaluation", message="not yet")), None),
        (workload(status=condition(reason="ExceedsMaxQuota")), "quota"),
        (workload(status=condition(reason="Misconfigured", message="no LocalQueue")), "queue"),
        (workload(status=condition(reason="NoMatchingFlavor", message="taint")), "queue"),
        (workload(status=condition(type="Requeued", reason="Backoff")), "requeued"),
        (workload(preemptionGates=[{"name": "g"}]), "preemptionGates"),
    ],
)
def test_workloads_that_wait_for_more_than_nodes(tmp_path, own, held):
    assert options(snapshot_of(tmp_path, own)) == ({"ns/w": {held}} if held else {})


def test_what_is_of_no_job_is_named(tmp_path):
    admitted = workload(status={"admission": {"clusterQueue": "q"}})
    queue = thing("ClusterQueue", "q", f"{KUEUE}/v1beta2")
    odd = thing("Frob", "f", "example.com/v1")
    own = job("j", 1, told({}, {"example.com/mine": "2"}))
    machine = node("c1", "r3", spec={"newOne": 1, "taints": [{"key": "k", "effect": "Odd"}]})
    levels = hyper("h", 1) | {"spec": {"tier": 1, "newTier": 2}}
    snapshot = snapshot_of(tmp_path, admitted, queue, odd, own, machine, levels)
    assert whole(snapshot) == {
        "admission": "of ns/w, of which no pod runs",
        "quotas": "of ClusterQueue ns/q",
        UNKNOWN: "HyperNode.spec.newTier, Node.spec.newOne, Node.spec.taints effect Odd, kind Frob",
    }
    assert options(snapshot) == {}


def test_kinds_of_one_name_are_those_of_their_groups(tmp_path):
    """A Workload and a PodGroup of Kubernetes, not of Kueue and Volcano; a Workload of tomorrow."""
    gangs = "scheduling.k8s.io/v1alpha1"
    sets = [{"name": "main", "count": 1, "template": template(1)}]
    core = thing("Workload", "core", gangs, spec={"podSets": sets})
    groups = thing("PodGroup", "g", gangs, spec={"schedulingPolicy": {"gang": {"minCount": 1}}})
    new = workload("new") | {"apiVersion": f"{KUEUE}/v9"}
    waits = pod("p", None, 1, "Pending", annotations={"scheduling.k8s.io/group-name": "g"})
    snapshot = snapshot_of(tmp_path, core, groups, new, waits, pod_group(minMember=1))
    assert {one.id for one in snapshot.queue} == {"ns/new", "ns/g"}
    assert options(snapshot) == {}
    assert whole(snapshot)[UNKNOWN] == f"kind Workload of {KUEUE}/v9"


def test_a_list_says_the_group_of_its_items(tmp_path):
    own = job("j", 2, template(1))
    path = tmp_path / "now.json"
    items = [{key: own[key] for key in ("metadata", "spec")}]
    jobs = {"apiVersion": "batch/v1", "kind": "JobList", "items": items}
    path.write_text(json.dumps(listed()) + json.dumps(jobs))
    assert "ns/j" in {one.id for one in read_kubernetes(path)[0].queue}


def owned_by(kind: str, owner: str, name: str, pods: int, **request: str) -> dict[str, Any]:
    sets = [
        {"name": "main", "count": pods, "template": template(), "topologyRequest": request or None}
    ]
    own = thing("Workload", name, f"{KUEUE}/v1beta2", spec={"podSets": sets})
    own["metadata"]["ownerReferences"] = [{"kind": kind, "name": owner, "controller": True}]
    return own


def gated(name: str, work: str, on: str | None = None, key: str = "label", **notes: str) -> Any:
    """A pod that Kueue starts with others, by a Workload that it names."""
    which = "pod-group-name" if key == "group" else "prebuilt-workload-name"
    named = {f"{KUEUE}/{which}": work}
    meta = {"labels": {f"{KUEUE}/managed": "true", **({} if key == "note" else named)}}
    meta |= {"annotations": notes | (named if key == "note" else {})}
    meta |= {"ownerReferences": [{"kind": "StatefulSet", "name": "far", "controller": True}]}
    own = pod(name, on, 1, "Running" if on else "Pending", **meta)
    if on is None:
        own["spec"]["schedulingGates"] = [{"name": f"{KUEUE}/admission"}]
    return own


@pytest.mark.parametrize("key", ["label", "note", "group"])
def test_pods_of_a_workload_are_not_counted_beside_it(tmp_path, key):
    """Two groups of a LeaderWorkerSet, of which one waits and one runs, and a StatefulSet."""
    runs = owned_by("LeaderWorkerSet", "lws", "lws-1-x", 2)
    runs |= {"status": {"admission": {"clusterQueue": "q"}}}
    works = [
        owned_by("LeaderWorkerSet", "lws", "lws-0-x", 3, required=RACK),
        owned_by("StatefulSet", "web", "set-web-x", 2),
        runs,
        *(owned_by("LeaderWorkerSet", "lws", "lws-2-x", 1),),
    ]
    pods = [gated(f"l0-{k}", "lws-0-x", key=key) for k in range(3)]
    pods += [gated(f"l1-{k}", "lws-1-x", "a1", key=key) for k in range(2)]
    pods += [gated(f"web-{k}", "set-web-x", key=key) for k in range(2)]
    snapshot = snapshot_of(tmp_path, *works, *pods, gated("l2", "lws-2-x", key=key))
    counts = {one.id: one.nodes for one in snapshot.queue}
    assert counts == {"ns/lws-0-x": 3, "ns/web": 2, "ns/lws-2-x": 1}
    assert [one.id for one in snapshot.running] == ["ns/lws-1-x"]
    assert {*whole(snapshot)} == {"order"}
    assert options(snapshot) == {}


def test_a_job_of_a_workload_that_nobody_owns_yet_is_not_counted_beside_it(tmp_path):
    own = job("j", 2, template(), metadata={"labels": {f"{KUEUE}/prebuilt-workload-name": "w"}})
    assert [one.id for one in snapshot_of(tmp_path, workload(), own).queue] == ["ns/w"]


def test_domains_that_a_group_has_alone_are_those_of_its_workload(tmp_path):
    """Known by the LeaderWorkerSet they are `apart`; known by pods alone they hold the Workload."""
    exclusive = {f"{LWS}/exclusive-topology": RACK}
    work = owned_by("LeaderWorkerSet", "lws", "lws-0-x", 1)
    owner = thing("LeaderWorkerSet", "lws", "leaderworkerset.x-k8s.io/v1", spec={})
    owner["metadata"]["annotations"] = exclusive
    waits = gated("l0", "lws-0-x", **exclusive)
    held = snapshot_of(tmp_path, work, waits)
    assert options(held) == {"ns/lws-0-x": {"exclusive-topology"}}
    known = snapshot_of(tmp_path, work, owner, waits)
    assert options(known) == {}
    assert known.queue[0].apart == [Apart(level=RACK, name="leaderworkersets:ns")]


ODD = {"newField": 1}


def odd_set(**more: Any) -> dict[str, Any]:
    return workload() | {"spec": {"podSets": [{"count": 1, "template": told()} | more]}}


def odd_job_set(of_set: Any = None, of_job: Any = None) -> dict[str, Any]:
    own = {"name": "m", "template": {"spec": {"template": told()} | (of_job or {})}} | (
        of_set or {}
    )
    return thing(
        "JobSet",
        "w",
        "jobset.x-k8s.io/v1alpha2",
        metadata=QUEUED,
        spec={"suspend": True, "replicatedJobs": [own]},
    )


def odd_group(**spec: Any) -> list[dict[str, Any]]:
    group = thing("PodGroup", "w", "scheduling.run.ai/v2alpha2", spec=spec)
    meta = {"annotations": {"pod-group-name": "w"}, "labels": {"kai.scheduler/subgroup-name": "s"}}
    return [group, pod("p", None, 1, "Pending", **meta)]


_TERM = {"nodeSelectorTerms": [{"matchExpressions": [expression(RACK, "Exists")]} | ODD]}
_ODD_LEVEL = {"requiredTopologyLevel": RACK} | ODD

UNKNOWN_OF = {
    "pod": ([job("w", 1, told(ODD))], "Pod.spec.newField"),
    "affinity": ([job("w", 1, told({"affinity": {"diskAffinity": {}}}))], "affinity.diskAffinity"),
    "term": ([job("w", 1, told(affinity("nodeAffinity", REQUIRED, _TERM)))], "Terms[].newField"),
    "toleration": (
        [job("w", 1, told({"tolerations": [{"key": "k", "operator": "Gt", "value": "1"}]}))],
        "Pod.spec.tolerations.operator Gt",
    ),
    "annotation": ([job("w", 1, told({}, {f"{KUEUE}/new": "1"}))], f"metadata.{KUEUE}/new"),
    "job": ([job("w", 1, told(), **ODD)], "Job.spec.newField"),
    "pod set": ([odd_set(**ODD)], "spec.podSets[].newField"),
    "request": ([odd_set(topologyRequest={"required": RACK} | ODD)], "topologyRequest.newField"),
    "replicated job": ([odd_job_set(ODD)], "JobSet.spec.replicatedJobs[].newField"),
    "job of a set": ([odd_job_set(None, ODD)], "Job.spec.newField"),
    "group": (odd_group(**ODD), "PodGroup.spec.newField"),
    "constraint": (odd_group(topologyConstraint=_ODD_LEVEL), "topologyConstraint.newField"),
    "sub-group": (odd_group(subGroups=[{"name": "s"} | ODD]), "subGroups[].newField"),
    "leader": (
        [
            thing(
                "LeaderWorkerSet",
                "w",
                "leaderworkerset.x-k8s.io/v1",
                spec={"leaderWorkerTemplate": {"workerTemplate": template()} | ODD},
            ),
            thing(
                "Pod",
                "w",
                metadata={"labels": {"leaderworkerset.sigs.k8s.io/name": "w"}},
                **{key: pod("w", None, 1, "Pending")[key] for key in ("spec", "status")},
            ),
        ],
        "leaderWorkerTemplate.newField",
    ),
    "network": (odd_group(networkTopology={"mode": "soft"} | ODD), "networkTopology.newField"),
}


@pytest.mark.parametrize("name", UNKNOWN_OF)
def test_a_field_that_no_table_knows_holds_its_job(tmp_path, name):
    items, field = UNKNOWN_OF[name]
    snapshot = snapshot_of(tmp_path, PLAIN, *items)
    assert options(snapshot) == {"ns/w": {UNKNOWN}}
    (own,) = (one.value for one in snapshot.left_out if one.request == "ns/w")
    assert own.endswith(field)


def flavor(name: str, **labels: str) -> dict[str, Any]:
    spec = {"topologyName": "default", "nodeLabels": labels}
    return thing("ResourceFlavor", name, f"{KUEUE}/v1beta2", spec=spec)


def test_kueue_gives_a_podset_the_nodes_of_one_flavor(tmp_path):
    two = [flavor("f1", **{RACK: "r1"}), flavor("f2", **{RACK: "r2"})]
    assert options(snapshot_of(tmp_path, *two, PLAIN)) == {"ns/plain": {"flavor"}}
    assert options(snapshot_of(tmp_path, flavor("f1"), two[1], PLAIN)) == {}
    assert options(snapshot_of(tmp_path, *two, pod("p", None, 1, "Pending"))) == {}


def cluster_wide(kind: str, name: str, **more: Any) -> dict[str, Any]:
    own = thing(kind, name, f"{KUEUE}/v1beta2", **more)
    del own["metadata"]["namespace"]
    return own


def queues(*flavors: str, local: Any = None, **more: Any) -> list[dict[str, Any]]:
    """The queue of `PLAIN`, and what it offers."""
    names = [{"name": name} for name in flavors]
    groups = [{"coveredResources": ["cpu", "nvidia.com/gpu"], "flavors": names}]
    spec = {"namespaceSelector": {}, "resourceGroups": groups, **more}
    own = {"clusterQueue": "all"} | (local or {})
    return [
        cluster_wide("ClusterQueue", "all", spec=spec),
        thing("LocalQueue", "q", f"{KUEUE}/v1beta2", spec=own),
    ]


def test_a_job_has_the_flavors_of_its_queue(tmp_path):
    f1, f2 = flavor("f1", **{RACK: "r1"}), flavor("f2", **{RACK: "r2"})
    cpu = thing("ResourceFlavor", "cpu", f"{KUEUE}/v1beta2", spec={"nodeLabels": {RACK: "r1"}})
    near = job("plain", 1, template(required_topology=RACK))
    path = written(tmp_path, f1, f2, *queues("f2"), PLAIN)
    assert (options(read_kubernetes(path)[0]), hosts_of(path, "ns/plain")) == ({}, {"b1", "b2"})
    held = {"ns/plain": {"flavor"}}
    assert options(snapshot_of(tmp_path, f1, f2, *queues("f1", "f2"), PLAIN)) == held
    assert options(snapshot_of(tmp_path, f1, f2, cpu, *queues("cpu"), near)) == held
    assert options(snapshot_of(tmp_path, f1, f2, cpu, *queues("cpu", "f1"), PLAIN)) == held
    path = written(tmp_path, f1, f2, cpu, *queues("cpu", "f1"), near)
    assert (options(read_kubernetes(path)[0]), hosts_of(path, "ns/plain")) == ({}, {"a1", "a2"})
    elsewhere = job("plain", 1, told({"nodeSelector": {RACK: "r1"}}))
    path = written(tmp_path, f1, f2, *queues("f2"), elsewhere)
    assert hosts_of(path, "ns/plain") == set()


ODD = {"matchLabels": {"team": "a"}}
INACTIVE = {"conditions": [{"type": "Active", "status": "False", "reason": "Stopped"}]}
CPU = {"coveredResources": ["cpu"], "flavors": [{"name": "f"}]}
CHECKS = {"admissionChecks": [{"name": "provision"}]}


@pytest.mark.parametrize(
    ("more", "others", "held"),
    [
        ({}, [], None),
        ({"namespaceSelector": None}, [], "queue"),
        ({"namespaceSelector": ODD}, [], "queue"),
        ({"namespaceSelector": ODD}, [{"labels": {"team": "a"}}], None),
        ({"namespaceSelector": ODD}, [{"labels": {"team": "b"}}], "queue"),
        (
            {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "ns"}}},
            [],
            None,
        ),
        ({"local": {"clusterQueue": "gone"}}, [], "queue"),
        ({"resourceGroups": [CPU]}, [], "coveredResources"),
        (
            {
                "resourceGroups": [
                    CPU,
                    {"coveredResources": ["nvidia.com/gpu"], "flavors": [{"name": "g"}]},
                ]
            },
            [],
            "flavor",
        ),
        ({"admissionChecks": ["provision"]}, [], "admissionChecks"),
        ({"admissionChecksStrategy": CHECKS}, [], "admissionChecks"),
    ],
)
def test_a_queue_of_kueue_may_hold_its_jobs(tmp_path, more, others, held):
    spaces = [cluster_wide("Namespace", "ns", metadata={"name": "ns", **own}) for own in others]
    for one in spaces:
        one["metadata"]["namespace"] = ""
    both = [flavor("f"), flavor("g"), *queues("f", **more), *spaces]
    found = options(snapshot_of(tmp_path, *both, PLAIN))
    assert found == ({"ns/plain": {held}} if held else {})


@pytest.mark.parametrize(
    ("quota", "more", "held"),
    [
        (({"nvidia.com/gpu": 3},), {}, True),
        (({"nvidia.com/gpu": 4},), {}, False),
        (({"nvidia.com/gpu": 3},), {"cohortName": "c"}, True),
        (({"nvidia.com/gpu": 3}, {"nvidia.com/gpu": 1}), {}, False),
        (({"cpu": "1999m", "nvidia.com/gpu": 8},), {}, True),
        (({"memory": "2000M"},), {}, False),
        (({"memory": "1900M"},), {}, True),
    ],
)
def test_a_job_that_takes_more_than_its_queue_has_is_held(tmp_path, quota, more, held):
    """It takes 4 GPUs, 2 CPUs and 2000M of memory, which is no whole number of MiB."""
    own = template(2)
    own["spec"]["containers"][0]["resources"]["requests"]["memory"] = "1000M"
    flavors = [
        {"name": f"f{k}", "resources": [{"name": n, "nominalQuota": q} for n, q in one.items()]}
        for k, one in enumerate(quota)
    ]
    covered = ["cpu", "memory", "nvidia.com/gpu"]
    groups = [{"coveredResources": covered, "flavors": flavors}]
    both = [flavor("f0"), *(flavor("f1", pool="none") for _ in quota[1:])]
    snapshot = snapshot_of(
        tmp_path, *both, *queues(resourceGroups=groups, **more), job("plain", 2, own)
    )
    assert options(snapshot) == ({"ns/plain": {"quota"}} if held else {})


def test_a_queue_that_is_not_there_or_not_active_holds_its_jobs(tmp_path):
    held = {"ns/plain": {"queue"}}
    for idx in (0, 1):
        own = queues("f")
        own[idx]["status"] = INACTIVE
        assert options(snapshot_of(tmp_path, flavor("f"), *own, PLAIN)) == held
    own = queues("f")
    own[1]["metadata"]["name"] = "other"
    assert options(snapshot_of(tmp_path, flavor("f"), *own, PLAIN)) == held
    missing = options(snapshot_of(tmp_path, flavor("g"), *queues("f", "g"), PLAIN))
    assert missing == {"ns/plain": {"queue", "flavor"}}
    assert options(snapshot_of(tmp_path, flavor("f"), *queues("f"), pod("p", "a1"))) == {}


def test_podsets_of_a_group_have_one_flavor(tmp_path):
    """Each could have but one of the two; without queues, all flavors of the file count."""
    two = [flavor("f1", **{RACK: "r1"}), flavor("f2", **{RACK: "r2"})]
    apart = [
        {"name": f"p{k}", "count": 1, "template": told({"nodeSelector": {RACK: f"r{k}"}})}
        for k in (1, 2)
    ]
    work = workload(podSets=apart)
    assert options(snapshot_of(tmp_path, *two, work)) == {}
    for own in apart:
        own["topologyRequest"] = {"required": RACK, "podSetGroupName": "g"}
    assert options(snapshot_of(tmp_path, *two, work)) == {"ns/w": {"flavor"}}
    plain = thing("ResourceFlavor", "plain", f"{KUEUE}/v1beta2", spec={})
    assert options(snapshot_of(tmp_path, flavor("f"), plain, PLAIN)) == {"ns/plain": {"flavor"}}
    near = job("near", 1, template(required_topology=RACK))
    assert options(snapshot_of(tmp_path, flavor("f"), plain, near)) == {}


def test_a_slice_above_what_is_asked_for_and_defaults_of_a_namespace_hold(tmp_path):
    asked = {
        "required": HOST,
        "podSetSliceRequiredTopology": RACK,
        "podSetSliceSize": 1,
    }
    work = workload(podset={"topologyRequest": asked})
    assert options(snapshot_of(tmp_path, work)) == {"ns/w": {"topology"}}
    limits = [{"type": "Container", "default": {"memory": "1Gi", "cpu": "1"}}]
    ranged = thing("LimitRange", "l", "v1", spec={"limits": limits})
    assert options(snapshot_of(tmp_path, ranged, workload())) == {"ns/w": {"LimitRange"}}
    del limits[0]["default"]["memory"]
    assert options(snapshot_of(tmp_path, ranged, workload())) == {}


@pytest.mark.parametrize(
    ("kind", "bounds", "held"),
    [
        ("Container", {"max": {"cpu": "2"}}, False),
        ("Container", {"max": {"cpu": "1500m"}}, True),
        ("Container", {"min": {"cpu": "1"}}, False),
        ("Container", {"min": {"cpu": "1001m"}}, True),
        ("Container", {"min": {"memory": "1Gi"}}, True),
        ("Pod", {"max": {"cpu": "4"}}, False),
        ("Pod", {"max": {"cpu": "3"}}, True),
        ("Pod", {"min": {"cpu": "3"}}, True),
        ("PersistentVolumeClaim", {"max": {"storage": "1"}}, False),
    ],
)
def test_pods_that_a_limit_range_refuses_are_held(tmp_path, kind, bounds, held):
    """Two containers ask for a CPU each and may have two; pods that are there passed already."""
    container = {"resources": {"requests": {"cpu": "1"}, "limits": {"cpu": 2}}}
    own = job("j", 1, {"spec": {"containers": [container, container]}})
    ranged = thing("LimitRange", "l", "v1", spec={"limits": [{"type": kind, **bounds}]})
    snapshot = snapshot_of(tmp_path, ranged, own, pod("p", None, 1, "Pending"))
    assert options(snapshot) == ({"ns/j": {"LimitRange"}} if held else {})


def test_resources_that_are_devices_hold(tmp_path):
    spec = {"extendedResourceName": "example.com/tpu"}
    devices = thing("DeviceClass", "tpu", "resource.k8s.io/v1", spec=spec)
    for name in ("example.com/tpu", "deviceclass.resource.kubernetes.io/tpu"):
        own = job("j", 1, {"spec": {"containers": [{"resources": {"requests": {name: 1}}}]}})
        assert options(snapshot_of(tmp_path, devices, own)) == {"ns/j": {"resourceClaims"}}
    assert options(snapshot_of(tmp_path, devices, PLAIN)) == {}


def test_a_workload_that_was_evicted_waits_for_its_time_and_at_the_end(tmp_path):
    at = {"requeueState": {"count": 1, "requeueAt": "2026-01-02T00:00:00Z"}}
    assert options(snapshot_of(tmp_path, workload(status=at))) == {"ns/w": {"requeued"}}
    told = [{"type": "Requeued", "status": "True"}]
    told.append({"type": "Evicted", "status": "True", "reason": "PodsReadyTimeout"})
    told[1]["lastTransitionTime"] = "2026-01-02T00:00:00Z"
    old, new = workload(status=at | {"conditions": told}), workload("new")
    for one, day in ((old, "1"), (new, "2")):
        one["metadata"]["creationTimestamp"] = f"2026-01-01T00:00:0{day}Z"
    snapshot = snapshot_of(tmp_path, old, new)
    assert (options(snapshot), [one.id for one in snapshot.queue]) == ({}, ["ns/new", "ns/w"])


@pytest.mark.parametrize("policy", ["Hold", "HoldAndDrain"])
def test_a_queue_that_is_stopped_holds_its_jobs(tmp_path, policy):
    stop = {"stopPolicy": policy}
    for own in (queues("f", **stop), queues("f", local=stop)):
        found = options(snapshot_of(tmp_path, flavor("f"), *own, PLAIN))
        assert found == {"ns/plain": {"stopPolicy"}}
    goes_on = queues("f", stopPolicy="None")
    assert options(snapshot_of(tmp_path, flavor("f"), *goes_on, PLAIN)) == {}


def test_the_taints_of_a_flavor_keep_jobs_of_kueue_away(tmp_path):
    f1, f2 = flavor("f1", **{RACK: "r1"}), flavor("f2", **{RACK: "r2"})
    f1["spec"]["nodeTaints"] = [{"key": "team", "value": "x", "effect": "NoSchedule"}]
    may = told({"tolerations": [{"key": "team", "operator": "Exists"}]})
    own = [PLAIN, job("j", 1, may), pod("p", None, 1, "Pending")]
    path = written(tmp_path, f1, *own)
    assert hosts_of(path, "ns/plain") == set()
    assert hosts_of(path, "ns/j") == hosts_of(path, "ns/p") == {"a1", "a2"}
    path = written(tmp_path, f1, f2, *own)
    assert options(read_kubernetes(path)[0]) == {"ns/j": {"flavor"}}
    assert hosts_of(path, "ns/plain") == {"b1", "b2"}


def test_the_tolerations_of_a_flavor_are_those_of_its_jobs(tmp_path):
    own = flavor("f")
    own["spec"]["tolerations"] = [{"key": "team", "operator": "Exists"}]
    taint = {"taints": [{"key": "team", "effect": "NoSchedule"}]}
    items = [own, node("c1", "r3", spec=taint), PLAIN, pod("p", None, 1, "Pending")]
    snapshot = snapshot_of(tmp_path, *items)
    assert options(snapshot) == {}
    found = {one.id: one.eligible for one in snapshot.queue}
    assert found == {"ns/plain": None, "ns/p": "!team:NoSchedule"}


# ---- Jobs of too many parts ----------------------------------------------------------------------


def test_jobs_that_a_snapshot_cannot_say_are_held(tmp_path):
    many = job_set()
    own = [{"name": f"r{k}", "template": {"spec": {"template": template(k)}}} for k in range(1, 6)]
    many["spec"]["replicatedJobs"] = own
    uneven = job("u", 3, template(1, slice_required_topology=RACK, slice_size=2))
    snapshot = snapshot_of(tmp_path, many, uneven)
    assert options(snapshot) == {"ns/js": {"podsets"}, "ns/u": {"podset-slice-size"}}
    takes = {
        request.id: (request.nodes, request.takes["nvidia.com/gpu"]) for request in snapshot.queue
    }
    assert takes == {"ns/js": (5, 5), "ns/u": (3, 1)}


# ---- Annotations of other schedulers -------------------------------------------------------------

HELD_NOTES = {
    f"{KUEUE}/job-min-parallelism": "1",
    "kai.scheduler/topology-required-placement": "example.com/zone",
    "gpu-fraction": "0.5",
    "gpu-memory": "2000",
    "alpha.jobset.sigs.k8s.io/exclusive-topology": RACK,
    "alpha.jobset.sigs.k8s.io/node-selector": "true",
    "leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology": RACK,
    "volcano.sh/numa-topology-policy": "single-numa-node",
    "volcano.sh/revocable-zone": "*",
}


@pytest.mark.parametrize("key", HELD_NOTES)
@pytest.mark.parametrize("on", ["template", "owner"])
def test_annotations_that_are_not_modelled_hold_the_job(tmp_path, key, on):
    notes = {key: HELD_NOTES[key]}
    meta = QUEUED | ({"annotations": notes} if on == "owner" else {})
    own = job("j", 1, told(notes=notes if on == "template" else None), metadata=meta)
    (option,) = {field.held_by for field in NOTES.fields if field.name == key}
    path = written(tmp_path, own)
    assert options(read_kubernetes(path)[0]) == {"ns/j": {option}}
    require_held(path, "ns/j", option)


def test_annotations_of_a_workload_are_those_of_its_owner_too(tmp_path):
    owner = job("j", 1, template(), metadata={"annotations": {"gpu-memory": "1"}})
    own = workload()
    own["metadata"]["ownerReferences"] = [{"kind": "Job", "name": "j"}]
    assert options(snapshot_of(tmp_path, owner, own)) == {"ns/j": {"gpu-memory"}}


def kai(level: str, topology: str = "default", kind: str = "required") -> dict[str, str]:
    return {
        "kai.scheduler/topology": topology,
        f"kai.scheduler/topology-{kind}-placement": level,
    }


def test_jobs_of_kai_without_a_pool_get_nodes_without_one(tmp_path):
    pooled = [node(name, "r1") for name in ("a1", "a2")]
    for one in pooled:
        one["metadata"]["labels"]["kai.scheduler/node-pool"] = "h100"
    small = node("b1", "r2", gpus=1)
    own, other = template(2), template(2)
    own["spec"]["schedulerName"] = "kai-scheduler"
    path = tmp_path / "now.json"
    jobs = [job("kai", 1, own), job("plain", 1, other)]
    path.write_text(json.dumps(thing("List", "l", items=[TOPOLOGY, *pooled, small, *jobs])))
    assert started(placed(path)) == {"ns/plain"}


@pytest.mark.parametrize(
    ("queues", "held"),
    [
        ([], False),
        ([{"name": "q"}], False),
        ([{"name": "q", "status": {"state": "Open"}}], False),
        ([{"name": "default"}], True),
        ([{"name": "q", "status": {"state": "Closed"}}], True),
        ([{"name": "q", "spec": {"affinity": {"nodeGroupAffinity": {"x": 1}}}}], True),
        ([{"name": "q", "spec": {"capability": {"cpu": "1", "nvidia.com/gpu": 1}}}], False),
        ([{"name": "q", "spec": {"capability": {"cpu": "900m"}}}], "quota"),
        ([{"name": "q", "spec": {"resources": {"gpu": {"limit": -1, "quota": 0}}}}], False),
        ([{"name": "q", "spec": {"resources": {"gpu": {"limit": 0.5}}}}], "quota"),
    ],
)
def test_queues_of_volcano_may_hold_their_jobs(tmp_path, queues, held):
    api = "scheduling.volcano.sh/v1beta1"
    own = [thing("Queue", metadata={"namespace": ""}, version=api, **one) for one in queues]
    pods = [pod("p0", None, 1, "Pending", annotations={"scheduling.k8s.io/group-name": "g"})]
    snapshot = snapshot_of(tmp_path, *own, pod_group(minMember=1, queue="q"), *pods)
    option = "queue" if held is True else held
    assert options(snapshot) == ({"ns/g": {option}} if held else {})
    spec = {"tasks": [{"replicas": 1, "template": template()}], "queue": "q", "minAvailable": 1}
    work = thing("Job", "j", "batch.volcano.sh/v1alpha1", spec=spec)
    assert options(snapshot_of(tmp_path, *own, work)) == ({"ns/j": {option}} if held else {})


def test_a_level_that_kai_requires_is_required(tmp_path):
    """Hosts have room for three pods, racks for six: seven wait, six start in one rack."""
    for count, starts in ((7, set()), (6, {"ns/j"})):
        result = placed(written(tmp_path, job("j", count, told(notes=kai(RACK)))))
        assert result.instance.left_out == []
        assert started(result) == starts
    wish = snapshot_of(tmp_path, job("j", 2, told(notes=kai(RACK, kind="preferred"))))
    assert (wish.queue[0].preferred, wish.left_out) == (RACK, [])
    for notes in (kai(RACK, "other"), kai("zone")):
        found = options(snapshot_of(tmp_path, job("j", 2, told(notes=notes))))
        assert found == {"ns/j": {"topology-required-placement"}}
    both = told(notes=kai(RACK) | {f"{KUEUE}/podset-required-topology": HOST})
    found = options(snapshot_of(tmp_path, job("j", 2, both)))
    assert found == {"ns/j": {"topology-required-placement"}}


LWS = "leaderworkerset.sigs.k8s.io"


def group_pod(group: int, idx: int, on: str | None = None, size: int = 3, **more: str) -> Any:
    meta = {
        "labels": {f"{LWS}/name": "lws", f"{LWS}/group-index": str(group)},
        "annotations": {f"{LWS}/exclusive-topology": RACK, f"{LWS}/size": str(size)} | more,
        "ownerReferences": [{"kind": "StatefulSet", "name": "lws", "controller": True}],
    }
    return pod(f"lws-{group}-{idx}", on, 2, "Running" if on else "Pending", **meta)


def alone(**more: str) -> dict[str, Any]:
    own: dict[str, Any] = group_pod(0, 0, size=1, **more)
    return own


def zoned(on: str) -> dict[str, Any]:
    """A pod that runs, of a group that is alone on another level."""
    own: dict[str, Any] = group_pod(1, 0, on)
    own["metadata"]["annotations"][f"{LWS}/exclusive-topology"] = HOST
    return own


def bare(idx: int, group: int = 0, on: str | None = None) -> dict[str, Any]:
    """A pod of the group without the annotation that the others have."""
    own: dict[str, Any] = group_pod(group, idx, on, size=4)
    del own["metadata"]["annotations"][f"{LWS}/exclusive-topology"]
    return own


def groups(num: int, size: int = 3) -> list[Any]:
    return [group_pod(group, idx, size=size) for group in range(num) for idx in range(size)]


def test_groups_of_a_leader_worker_set_have_a_rack_each(tmp_path):
    result = placed(written(tmp_path, *groups(3)))
    assert options(result.instance) == {}
    racks = [
        {share.hosts[0] for part in one.parts for share in part.shares}
        for one in result.solution.placements
    ]
    assert sorted(map(sorted, racks)) == [["a"], ["b"]]  # the third waits
    near = written(tmp_path, *groups(3), PLAIN, pod("p", "a1"), bare(0, group=9, on="a2"))
    result = placed(near)  # other pods do not matter, those of other groups do
    assert options(result.instance) == {}
    assert started(result) == {"ns/lws-0", "ns/plain"}


def test_groups_wait_for_racks_without_another_group(tmp_path):
    """Each rack has room for a group of four, and a group; a wide one fits no rack anyway."""
    runs = [group_pod(7, 0, "a1", size=1), group_pod(8, 0, "b1", size=1)]
    for size, reason in (
        (3, f"each {RACK} with 3 units free has a job that it is apart from"),
        (20, "20 units wanted, 0 free in"),
    ):
        result = placed(written(tmp_path, *runs, *groups(1, size)))
        (text,) = HierarchyView(result).reasons().values()
        assert text.startswith(reason)
    snapshot = snapshot_of(tmp_path, *runs, *groups(1, 3))
    wide = snapshot.queue[0].model_copy(update={"required": None})
    anywhere = tp.place(snapshot.model_copy(update={"queue": [wide]}))
    (text,) = HierarchyView(anywhere).reasons().values()
    assert text == "3 units wanted, free only beside jobs that it is apart from"


def test_injected_affinities_and_missing_workers_of_a_group(tmp_path):
    """A leader that waits has them, and no workers yet: these are those of the LeaderWorkerSet."""
    spec = {"leaderWorkerTemplate": {"size": 3, "workerTemplate": template(2)}}
    on = {"annotations": {f"{LWS}/exclusive-topology": RACK}}
    lws = thing("LeaderWorkerSet", "lws", "leaderworkerset.x-k8s.io/v1", metadata=on, spec=spec)
    leader = group_pod(0, 0)
    leader["spec"]["affinity"] = {
        kind: {REQUIRED: [{"topologyKey": RACK, "labelSelector": {"matchExpressions": [own]}}]}
        for kind, own in (
            ("podAffinity", expression(f"{LWS}/group-key", "In", "abc")),
            ("podAntiAffinity", expression(f"{LWS}/group-key", "NotIn", "abc")),
        )
    }
    snapshot = snapshot_of(tmp_path, lws, leader)
    (own,) = snapshot.queue
    assert (options(snapshot), own.nodes, own.required) == ({}, 3, RACK)
    assert own.apart == [Apart(level=RACK, name="leaderworkersets:ns")]
    assert options(snapshot_of(tmp_path, leader)) == {"ns/lws-0": {"size"}}
    runs = copy.deepcopy(leader) | {"status": {"phase": "Running"}}
    runs["metadata"] |= {
        "name": "old",
        "labels": leader["metadata"]["labels"] | {f"{LWS}/group-index": "7"},
    }
    runs["spec"]["nodeName"] = "a1"
    snapshot = snapshot_of(tmp_path, lws, leader, runs, PLAIN)
    assert (options(snapshot), snapshot.running[0].apart) == ({}, own.apart)


@pytest.mark.parametrize(
    ("items", "held"),
    [
        (groups(1)[:2], {"size"}),
        ([group_pod(0, 0, "a1"), *groups(1)[1:]], {"running-pods"}),
        ([group_pod(0, 0, "a1"), *groups(1)], {"running-pods", "size"}),
        ([*groups(1), bare(3)], {"exclusive-topology"}),
        ([*groups(1), bare(0, group=1, on="a1")], set()),
        ([*groups(1), zoned("a1")], {"exclusive-topology"}),
        ([alone(**{f"{LWS}/exclusive-topology": "zone"})], {"exclusive-topology"}),
        ([alone(**{f"{LWS}/subgroup-exclusive-topology": RACK})], {"subgroup-exclusive-topology"}),
    ],
)
def test_groups_that_are_not_modelled_are_held(tmp_path, items, held):
    found = options(snapshot_of(tmp_path, *items))
    found = {name.removesuffix("#waits"): own for name, own in found.items()}
    assert found == ({"ns/lws-0": held} if held else {})


EXCLUSIVE = {"annotations": {"alpha.jobset.sigs.k8s.io/exclusive-topology": RACK}}


def one_kind() -> dict[str, Any]:
    own = job_set(metadata=EXCLUSIVE)
    own["spec"]["replicatedJobs"] = own["spec"]["replicatedJobs"][1:]
    return own


def test_jobs_of_a_job_set_with_domains_of_their_own(tmp_path):
    snapshot = snapshot_of(tmp_path, one_kind())
    (request,) = snapshot.queue
    assert (request.spread.size, request.segments[0].size) == (2, 2)
    assert request.apart == [Apart(level=RACK, name="jobsets")]
    assert options(snapshot) == {}
    assert options(snapshot_of(tmp_path, one_kind(), pod("p", "a1"))) == {}
    several = snapshot_of(tmp_path, job_set(metadata=EXCLUSIVE))
    assert options(several) == {"ns/js": {"exclusive-topology"}}
    running = pod("p", "a1", labels={"jobset.sigs.k8s.io/jobset-name": "other"})
    result = placed(written(tmp_path, one_kind(), running))
    assert started(result) == set()  # it needs two racks, and one has pods of another JobSet
    elsewhere = job_set(metadata={"annotations": dict.fromkeys(EXCLUSIVE["annotations"], "zone")})
    assert options(snapshot_of(tmp_path, elsewhere)) == {"ns/js": {"exclusive-topology"}}


def test_pods_of_a_replica_set_start_one_by_one(tmp_path):
    """Six pods of a host each, on four hosts; those of a Job are one request, as a note says."""
    owned = {"ownerReferences": [{"kind": "ReplicaSet", "name": "r", "controller": True}]}
    pods = [pod(f"r-{k}", None, 4, "Pending", **owned) for k in range(6)]
    result = placed(written(tmp_path, *pods))
    assert len(started(result)) == 5  # one host has room for two
    of_job = [pod(f"j-{k}", None, 4, "Pending", labels={"job-name": "j"}) for k in range(6)]
    snapshot, notes = read_kubernetes(written(tmp_path, *of_job))
    assert [(one.id, one.nodes) for one in snapshot.queue] == [("ns/j", 6)]
    assert "jobs of several pods without a gang, taken to start as a whole: 1" in notes


def test_classes_of_groups_and_of_kueue_make_the_order(tmp_path):
    classes = [
        cluster_wide(f"{of}PriorityClass", f"{of}{name}", value=value)
        for of in ("", "Workload")
        for name, value in (("high", 9), ("low", 1))
    ]
    group = [
        thing("PodGroup", name, "scheduling.run.ai/v2alpha2", spec={"priorityClassName": name})
        for name in ("low", "high")
    ]
    pods = [
        pod(own, None, 1, "Pending", annotations={"pod-group-name": own}) for own in ("low", "high")
    ]
    snapshot = snapshot_of(tmp_path, *classes, *group, *pods)
    assert [request.id for request in snapshot.queue] == ["ns/high", "ns/low"]
    jobs = []
    for name in ("low", "high", "none"):
        labels = QUEUED["labels"] | {f"{KUEUE}/priority-class": f"Workload{name}"}
        jobs.append(job(name, 1, template(), metadata={"labels": labels}))
    assert [one.id for one in snapshot_of(tmp_path, *classes, *jobs).queue] == [
        *("ns/high", "ns/low", "ns/none"),
    ]


# ---- PodGroups and Volcano -----------------------------------------------------------------------


def pod_group(**spec: Any) -> dict[str, Any]:
    return thing("PodGroup", "g", "scheduling.volcano.sh/v1beta1", spec=spec)


@pytest.mark.parametrize(
    ("objects", "held"),
    [
        ([], {"pod-group"}),
        ([pod_group(minMember=2, queue="q")], set()),
        ([pod_group(minMember=3)], {"minMember"}),
        ([pod_group(minMember=1)], {"minMember"}),
        ([pod_group(networkTopology={"mode": "hard"})], {"networkTopology"}),
        ([pod_group(networkTopology={"mode": "soft"})], set()),
        ([pod_group(subGroupPolicy=[{"name": "s", "minSubGroups": 2}])], {"subGroupPolicy"}),
        ([pod_group(subGroupPolicy=[{"name": "s", "subGroupSize": 1}])], {"subGroupPolicy"}),
        ([pod_group(subGroups=[{"name": "s"}])], {"subGroups"}),
        ([pod_group(minTaskMember={"a": 1})], {"minTaskMember"}),
        ([pod_group(minTaskMember={"a": 2})], set()),
        ([pod_group(subGroups=[{"name": "s"}], minSubGroup=2)], {"minSubGroup"}),
        ([pod_group(topologyConstraint={"requiredTopologyLevel": RACK})], set()),
        (
            [pod_group(topologyConstraint={"requiredTopologyLevel": RACK, "topology": "x"})],
            {"topology-required-placement"},
        ),
    ],
)  # fmt: skip
def test_pods_of_a_group_wait_together_and_by_its_rules(tmp_path, objects, held):
    meta = {"annotations": {"scheduling.k8s.io/group-name": "g"}}
    pods = [pod(f"p{k}", None, 1, "Pending", **meta) for k in range(2)]
    snapshot = snapshot_of(tmp_path, *objects, *pods)
    assert [(request.id, request.nodes) for request in snapshot.queue] == [("ns/g", 2)]
    assert options(snapshot) == ({"ns/g": held} if held else {})
    is_required = "topologyConstraint" in json.dumps(objects) and not held
    assert snapshot.queue[0].required == (RACK if is_required else None)


def sub_group(name: str, least: int, level: str | None = None, **more: Any) -> dict[str, Any]:
    own = {} if level is None else {"topologyConstraint": {"requiredTopologyLevel": level}}
    return {"name": name, "minMember": least, **own, **more}


def in_sub_group(name: str, count: int, gpus: int = 1) -> list[Any]:
    meta = {
        "annotations": {"pod-group-name": "g"},
        "labels": {"kai.scheduler/subgroup-name": name},
    }
    return [pod(f"{name}-{k}", None, gpus, "Pending", **meta) for k in range(count)]


def kai_group(*sub_groups: dict[str, Any], **more: Any) -> dict[str, Any]:
    spec = {"subGroups": [*sub_groups], **more}
    return thing("PodGroup", "g", "scheduling.run.ai/v2alpha2", spec=spec)


def test_sub_groups_that_are_alike_are_segments(tmp_path):
    """Two of three pods with two GPUs each are in a host, or in a rack each."""
    pods = [*in_sub_group("a", 3, 2), *in_sub_group("b", 3, 2)]
    for level, starts in ((HOST, False), (RACK, True)):
        group = kai_group(sub_group("a", 3, level), sub_group("b", 3, level))
        result = placed(written(tmp_path, group, *pods))
        (own,) = result.instance.queue
        assert (own.nodes, own.segments[0].size, own.segments[0].level) == (6, 3, level)
        assert (bool(started(result)), options(result.instance)) == (starts, {})


def test_sub_groups_in_the_domain_of_all_or_of_a_parent(tmp_path):
    whole = {"topologyConstraint": {"requiredTopologyLevel": RACK}}
    pods = [*in_sub_group("a", 2, 2), *in_sub_group("b", 1, 1)]
    two = [sub_group("a", 2, HOST), sub_group("b", 1)]
    (own,) = snapshot_of(tmp_path, kai_group(*two, **whole), *pods).queue
    first = own.parts[0]
    assert [(part.group, part.required) for part in own.parts] == [("job", RACK)] * 2
    assert [(one.size, one.level) for one in first.segments] == [(2, HOST)]
    parent = {"name": "p", **whole}
    of = [one | {"parent": "p"} for one in two]
    (own,) = snapshot_of(tmp_path, kai_group(parent, *of, minSubGroup=1), *pods).queue
    assert [(part.group, part.required) for part in own.parts] == [("p", RACK)] * 2
    result = placed(written(tmp_path, kai_group(parent, *of), *pods))
    assert started(result) == {"ns/g"}
    both = kai_group(parent, *of, sub_group("c", 1), **whole)
    found = options(snapshot_of(tmp_path, both, *pods, *in_sub_group("c", 1)))
    assert found == {"ns/g": {"subGroups"}}
    partly = kai_group(sub_group("a", 1), sub_group("b", 1))
    assert options(snapshot_of(tmp_path, partly, *pods)) == {"ns/g": {"subGroups"}}


def test_sub_groups_of_volcano_are_by_the_values_of_labels(tmp_path):
    hard = {"mode": "hard", "highestTierAllowed": 1}

    def of_ring(ring: int) -> list[Any]:
        meta = {
            "annotations": {"scheduling.k8s.io/group-name": "g"},
            "labels": {"task": "trainer", "ring": str(ring)},
        }
        return [pod(f"r{ring}-{k}", None, 1, "Pending", **meta) for k in range(3)]

    policy = {
        "labelSelector": {"matchLabels": {"task": "trainer"}},
        "matchLabelKeys": ["ring"],
        "subGroupSize": 3,
        "minSubGroups": 2,
        "networkTopology": hard,
    }
    group = pod_group(minMember=6, subGroupPolicy=[policy])
    result = placed(volcano(tmp_path, group, *of_ring(0), *of_ring(1), hypers=FLAT))
    (own,) = result.instance.queue
    assert [(one.size, one.level) for one in own.segments] == [(3, "tier1")]
    assert started(result) == {"ns/g"}
    alone = pod_group(minMember=6, networkTopology=hard)
    result = placed(volcano(tmp_path, alone, *of_ring(0), *of_ring(1), hypers=FLAT))
    assert (result.instance.queue[0].required, options(result.instance)) == ("tier1", {})
    few = volcano(tmp_path, group, *of_ring(0), hypers=FLAT)
    assert options(read_kubernetes(few)[0]) == {"ns/g": {"minMember", "subGroupPolicy"}}


FLAT = [
    hyper("top", 2, exact("HyperNode", "s0"), exact("HyperNode", "s1")),
    hyper("s0", 1, exact("Node", "a1")),
    hyper("s1", 1, exact("Node", "b2")),
]


def volcano_job(topology: Any = None, partitions: Any = None, **more: Any) -> dict[str, Any]:
    task = {"name": "t", "replicas": 8, "template": template()} | more.pop("task", {})
    task |= {} if partitions is None else {"partitionPolicy": partitions}
    spec = {"tasks": [task], **({} if topology is None else {"networkTopology": topology}), **more}
    return thing("Job", "v", "batch.volcano.sh/v1alpha1", spec=spec)


def partitions(total: int, size: int, tier: int = 1, **more: Any) -> dict[str, Any]:
    topology = {"mode": "hard", "highestTierAllowed": tier}
    return {"totalPartitions": total, "partitionSize": size, "networkTopology": topology} | more


def test_partitions_are_segments_of_their_tier(tmp_path):
    """HyperNodes of tier 1 have room for three pods: not for three partitions of two."""
    wide = {"mode": "hard", "highestTierAllowed": 2}
    six = {"replicas": 6}
    for own, starts in (
        (volcano_job(wide, partitions(2, 3), task=six), True),
        (volcano_job(wide, partitions(3, 2), task=six), False),
        (volcano_job(wide, partitions(3, 2, 2), task=six), True),
        (volcano_job(wide, partitions(1, 6), task=six), False),
    ):
        result = placed(volcano(tmp_path, own, hypers=FLAT))
        assert result.instance.left_out == []
        assert bool(started(result)) is starts


@pytest.mark.parametrize(
    ("own", "held"),
    [
        (volcano_job(minAvailable=8), None),
        (volcano_job(minAvailable=7), "minAvailable"),
        (volcano_job(task={"minAvailable": 7}), "minAvailable"),
        (volcano_job(partitions=partitions(2, 4, minPartitions=1)), "partitionPolicy"),
        (volcano_job(partitions=partitions(2, 3)), "partitionPolicy"),
        (volcano_job(partitions=partitions(2, 4) | {"networkTopology": {"mode": "soft"}}), None),
        (volcano_job({"mode": "hard", "highestTierName": "rack"}), "networkTopology"),
        (volcano_job(task={"dependsOn": {"name": ["x"]}}), "dependsOn"),
        (volcano_job(task={"subGroupPolicy": [{"name": "x"}]}), "subGroupPolicy"),
        (volcano_job(subGroupPolicy=[{"name": "x"}]), "subGroupPolicy"),
        (volcano_job(task={"topologyPolicy": "restricted"}), "topologyPolicy"),
        (volcano_job(task={"topologyPolicy": "best-effort"}), None),
        (volcano_job(schedulerName="volcano"), None),
        (volcano_job(schedulerName="mine"), "schedulerName"),
        (volcano_job(volumes=[{"volumeClaimName": "c"}]), "persistentVolumeClaim"),
    ],
)
def test_jobs_of_volcano_that_are_not_modelled_are_held(tmp_path, own, held):
    path = volcano(tmp_path, own, hypers=FLAT)
    assert options(read_kubernetes(path)[0]) == ({"ns/v": {held}} if held else {})
    if held:
        require_held(path, "ns/v", held)


def test_tiers_of_a_job_hold_it_where_the_machine_has_none(tmp_path):
    hard = {"mode": "hard", "highestTierAllowed": 1}
    found = options(snapshot_of(tmp_path, volcano_job(hard)))
    assert found == {"ns/v": {"networkTopology"}}
    assert options(snapshot_of(tmp_path, volcano_job(hard | {"mode": "soft"}))) == {}


@pytest.mark.parametrize(
    ("of_group", "of_job", "held"),
    [
        ({"mode": "hard", "highestTierAllowed": 1}, None, {"running-pods"}),
        ({"mode": "soft", "highestTierAllowed": 1}, None, set()),
        (None, {"mode": "hard", "highestTierAllowed": 1}, {"running-pods"}),
        (None, {"mode": "soft", "highestTierAllowed": 1}, set()),
        ({"mode": "hard"}, {"mode": "hard", "highestTierAllowed": 1}, {"networkTopology"}),
    ],
)
def test_the_tier_of_pods_that_run_holds_those_that_wait(tmp_path, of_group, of_job, held):
    """Two of six pods run: the others may not go to any tier."""
    meta = {"annotations": {"scheduling.k8s.io/group-name": "v"}, "labels": {"job-name": "v"}}
    pods = [pod(f"p{k}", "a1" if k < 2 else None, 1, "Pending", **meta) for k in range(6)]
    group = pod_group(minMember=6, networkTopology=of_group) | {"metadata": {"name": "v"}}
    group["metadata"]["namespace"] = "ns"
    own = volcano_job(of_job) | {"status": {"state": {"phase": "Running"}}}
    for running in (True, False):
        path = volcano(tmp_path, group, own, *pods[0 if running else 2 :], hypers=FLAT)
        snapshot, _ = read_kubernetes(path)
        name = "ns/v#waits" if running else "ns/v"
        assert snapshot.queue[0].id == name
        few = set() if running else {"minMember"}
        both = {"networkTopology"} & held
        kept = (held | {"running-pods"} if both else held) if running else both
        assert options(snapshot) == ({name: kept | few} if kept | few else {})
        if not running and of_group != {"mode": "hard"}:
            asked = snapshot.queue[0].required or snapshot.queue[0].preferred
            assert asked == "tier1"


def test_partitions_of_a_started_job_hold_the_pods_that_wait(tmp_path):
    meta = {"labels": {"job-name": "v"}}
    own = volcano_job(None, partitions(2, 4)) | {"status": {"state": {"phase": "Running"}}}
    pods = [pod(f"p{k}", "a1" if k < 4 else None, 1, "Pending", **meta) for k in range(8)]
    require_held(volcano(tmp_path, own, *pods, hypers=FLAT), "ns/v#waits", "partitionPolicy")


def both_of(name: str, tier: int) -> dict[str, Any]:
    return hyper(name, tier, exact("Node", "a1"), exact("Node", "a2"))


TIER_2_IS_NARROW = [both_of("h", 1), hyper("i", 2, exact("Node", "a1"))]


@pytest.mark.parametrize(
    ("hypers", "levels", "why"),
    [
        ([both_of("h", 1), both_of("i", 1)], [], "tier 1, as a1 is in h and i"),
        (TIER_2_IS_NARROW, ["tier1"], "tier 2, as h is not within one of its HyperNodes"),
        (
            [both_of("h", 1), hyper("i", 1, exact("Node", "a1")), both_of("j", 2)],
            ["tier2"],
            "tier 1, as a1 is in h and i",
        ),
        (
            [both_of("h", 1), both_of("i", 1), hyper("j", 2, exact("Node", "b1"))],
            [],
            "tier 2, as h is not within one of its HyperNodes",
        ),
    ],
)
def test_hyper_nodes_that_share_nodes_hold_the_jobs_of_their_tier(tmp_path, hypers, levels, why):
    """Volcano takes them; a level has no such domains."""
    hard = {"mode": "hard", "highestTierAllowed": 1 + (levels != ["tier2"])}
    held, soft = volcano_job(hard), named(volcano_job(hard | {"mode": "soft"}), "w")
    free = named(
        volcano_job({"mode": "hard", "highestTierAllowed": 3 - hard["highestTierAllowed"]}), "u"
    )
    snapshot, _ = read_kubernetes(volcano(tmp_path, held, soft, free, hypers=hypers))
    assert isinstance(snapshot.machine, HierarchyModel)
    assert snapshot.machine.levels[:-1] == levels
    asked = {one.id: one.required for one in snapshot.queue}
    assert options(snapshot) == {
        "ns/v": {"networkTopology"},
        **({} if levels else {"ns/u": {"networkTopology"}}),
    }
    assert asked == {"ns/v": None, "ns/w": None, "ns/u": (levels or [None])[0]}
    assert f"HyperNodes of {why}" in str(left_out_text(snapshot))


def named(job: dict[str, Any], name: str) -> dict[str, Any]:
    return {**job, "metadata": {**job["metadata"], "name": name}}


def test_a_job_that_needs_a_tier_is_on_nodes_of_hyper_nodes(tmp_path):
    """Nodes that are in none are nothing for it, though each has a domain of its own."""
    hypers = [hyper("h", 1, exact("Node", "a1"))]
    three, hard = {"replicas": 3}, {"mode": "hard", "highestTierAllowed": 1}
    jobs = [named(volcano_job(hard, task=three), f"v{k}") for k in range(2)]
    path = volcano(tmp_path, *jobs, named(volcano_job(task=three), "any"), hypers=hypers)
    assert hosts_of(path, "ns/v0") == {"a1"}
    assert started(placed(path)) in ({"ns/v0", "ns/any"}, {"ns/v1", "ns/any"})


def test_a_tier_may_be_named(tmp_path):
    hypers = [{**FLAT[0]}, *FLAT[1:]]
    hypers[0] = {**FLAT[0], "spec": FLAT[0]["spec"] | {"tierName": "spine"}}
    own = volcano_job({"mode": "hard", "highestTierName": "spine"})
    snapshot, _ = read_kubernetes(volcano(tmp_path, own, hypers=hypers))
    assert (snapshot.queue[0].required, options(snapshot)) == ("tier2", {})


def test_a_reason_names_the_rule_that_nobody_keeps(tmp_path):
    """Not an amount: a taint, a label, and segments are what keeps these waiting."""
    taint = {"key": "gpu", "value": "x", "effect": "NoSchedule"}
    nodes = [node(name, "r1") | {"spec": {"taints": [taint]}} for name in ("a1", "a2")]
    slices = {"podSetSliceRequiredTopology": HOST, "podSetSliceSize": 4}
    tolerant, elsewhere = template(), template()
    tolerant["spec"]["tolerations"] = [{"operator": "Exists"}]
    elsewhere["spec"]["nodeSelector"] = {"pool": "b"}
    items = [
        job("tainted", 1, template()),
        job("elsewhere", 1, elsewhere),
        workload("sliced", podset={"count": 4, "topologyRequest": slices, "template": tolerant}),
    ]
    path = tmp_path / "now.json"
    path.write_text(json.dumps(thing("List", "l", items=[TOPOLOGY, *nodes, *items])))
    waits = HierarchyView(placed(path)).waits
    assert waits["ns/tainted"] == "no host is in !gpu=x:NoSchedule"
    assert waits["ns/elsewhere"].startswith("no host is in pool=b")
    assert "each 4 in one kubernetes.io/hostname" in waits["ns/sliced"]


def test_pods_name_the_part_of_their_job(tmp_path):
    """Both parts of the JobSet ask for the same, and one is called as the JobSet is."""
    jobs = [
        {
            "name": name,
            "replicas": 1,
            "template": {"spec": {"parallelism": n, "template": template()}},
        }
        for name, n in (("j", 3), ("driver", 1))
    ]
    spec = {"suspend": True, "replicatedJobs": jobs}
    own = thing("JobSet", "j", "jobset.x-k8s.io/v1alpha2", metadata=QUEUED, spec=spec)
    before = written(tmp_path, own, name="before.json")
    pods = [
        pod(f"p{k}", host, labels={"jobset.sigs.k8s.io/jobset-name": "j"} | {label: part})
        for label in ("jobset.sigs.k8s.io/replicatedjob-name",)
        for k, (host, part) in enumerate((("b2", "j"), ("b2", "j"), ("a1", "j"), ("a1", "driver")))
    ]
    after = written(tmp_path, own | {"spec": spec | {"suspend": False}}, *pods, name="after.json")
    assert [(one.id, one.nodes) for one in read_kubernetes(after)[0].running] == [
        ("ns/j/j", "b2"),
        ("ns/j/j/2", "a1"),
        ("ns/j/driver", "a1"),
    ]
    (row,) = tp.audit(before, after=after).rows
    assert (row.verdict, row.held) == ("suboptimal", {})


def test_hosts_that_came_between_two_snapshots_are_in_both(tmp_path):
    """What started on them is not judged; what differs otherwise is named."""
    waits, other = pod("p", None, 2, "Pending"), job("big", 9, template())
    old = [TOPOLOGY, node("a1", "r1", gpus=1)]
    new = [*old, node("b1", "r2")]
    names = {}
    for name, items in (
        ("before", [*old, waits, other]),
        ("after", [*new, pod("p", "b1", 2), other]),
        ("there", [TOPOLOGY, node("a1", "r1", gpus=3), waits, other]),
    ):
        names[name] = tmp_path / f"{name}.json"
        names[name].write_text(json.dumps(thing("List", "l", items=items)))
    (row,) = tp.audit(names["before"], after=names["after"]).rows
    assert (row.verdict, dict(row.held)) == ("unjudged", {"ns/p": "held: new-nodes b1"})
    (row,) = tp.audit(names["before"], after=names["before"]).rows
    assert row.verdict == "rightly waiting"
    with pytest.raises(InputError, match="found other amounts or domains of a1"):
        tp.audit(names["before"], after=names["there"])


# ---- Gangs of Kubernetes -------------------------------------------------------------------------

SCHEDULING = "scheduling.k8s.io"


def gang(count: int | None, name: str = "g", **more: Any) -> dict[str, Any]:
    """A PodGroup of Kubernetes 1.36; without a count each of its pods starts for itself."""
    policy = {"basic": {}} if count is None else {"gang": {"minCount": count}}
    spec = {"schedulingPolicy": policy, **more}
    return thing("PodGroup", name, f"{SCHEDULING}/v1alpha2", spec=spec)


def in_gang(number: int, name: str = "g", on: str | None = None, **more: Any) -> list[Any]:
    pods = [pod(f"{name}-{k}{on or ''}", on, 2, "Pending", **more) for k in range(number)]
    for one in pods:
        one["spec"]["schedulingGroup"] = {"podGroupName": name}
    return pods


def near(key: str) -> dict[str, Any]:
    return {"schedulingConstraints": {"topology": [{"key": key}]}}


def test_a_gang_starts_as_a_whole_in_one_domain(tmp_path):
    """Racks have room for four and five pods of two GPUs; labels of a Job say nothing more."""
    of_job = {"labels": {"batch.kubernetes.io/job-name": "j"}}
    for count, key, starts in (
        (5, RACK, True),
        (6, RACK, False),
        (9, None, True),
        (10, None, False),
    ):
        more = {} if key is None else near(key)
        path = written(tmp_path, gang(count, **more), *in_gang(count, **of_job))
        result = placed(path)
        assert (result.instance.queue[0].id, result.instance.queue[0].nodes) == ("ns/g", count)
        assert options(result.instance) == {}
        assert started(result) == ({"ns/g"} if starts else set())


def test_pods_of_a_gang_that_differ_share_its_domain(tmp_path):
    pods = in_gang(4)
    pods[0]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "2"
    old = {"schedulingConstraints": {"topologyConstraints": [{"topologyKey": RACK}]}}
    result = placed(written(tmp_path, gang(4, **old), *pods))
    (own,) = result.instance.queue
    assert {(part.nodes, part.required, part.group) for part in own.parts} == {
        (1, RACK, "job"),
        (3, RACK, "job"),
    }
    assert started(result) == {"ns/g"}


def test_pods_without_a_gang_start_one_by_one(tmp_path):
    result = placed(written(tmp_path, gang(None), *in_gang(12)))
    assert len(result.instance.queue) == 12
    assert len(started(result)) == 9
    assert started(result) <= {f"ns/g-{k}" for k in range(12)}


def test_groups_of_a_workload_are_gangs(tmp_path):
    """Those of Kubernetes 1.35: each replica of a group starts for itself."""
    groups = [{"name": "workers", "policy": {"gang": {"minCount": 3}}}]
    work = thing("Workload", "w", f"{SCHEDULING}/v1alpha1", spec={"podGroups": groups})
    pods = [pod(f"p{k}", None, 2, "Pending") for k in range(6)]
    for k, one in enumerate(pods):
        ref = {"name": "w", "podGroup": "workers", "podGroupReplicaKey": str(k // 3)}
        one["spec"]["workloadRef"] = ref
    result = placed(written(tmp_path, work, *pods))
    assert {one.id: one.nodes for one in result.instance.queue} == {
        "ns/w.workers.0": 3,
        "ns/w.workers.1": 3,
    }
    assert options(result.instance) == {}


@pytest.mark.parametrize(
    ("items", "held"),
    [
        ([gang(4), *in_gang(3)], {"ns/g": {"minCount"}}),
        ([gang(3), *in_gang(4)], {"ns/g": {"minCount"}}),
        ([gang(4), *in_gang(3), *in_gang(1, on="a1")], {}),
        (
            [gang(4, **near(RACK)), *in_gang(3), *in_gang(1, on="a1")],
            {"ns/g#waits": {"running-pods"}},
        ),
        ([*in_gang(4)], {"ns/g": {"pod-group"}}),
        ([gang(4, **near("example.com/row")), *in_gang(4)], {"ns/g": {"schedulingConstraints"}}),
        ([gang(None, **near(RACK)), *in_gang(1)], {"ns/g-0": {"schedulingConstraints"}}),
        (
            [gang(1, parentCompositePodGroupName="c"), *in_gang(1)],
            {"ns/c": {"CompositePodGroup"}},
        ),
        ([gang(1, resourceClaims=[{"name": "gpus"}]), *in_gang(1)], {"ns/g": {"resourceClaims"}}),
        ([gang(1, newField=1), *in_gang(1)], {"ns/g": {UNKNOWN}}),
    ],
)
def test_gangs_that_are_not_modelled_are_held(tmp_path, items, held):
    path = written(tmp_path, *items)
    assert options(read_kubernetes(path)[0]) == held
    for request, (option,) in held.items():
        require_held(path, request, option)


def composite(name: str, least: int | None, **more: Any) -> dict[str, Any]:
    """A CompositePodGroup of Kubernetes 1.37; without a count its groups start each for itself."""
    policy = {"basic": {}} if least is None else {"gang": {"minGroupCount": least}}
    spec = {"schedulingPolicy": policy, "workloadRef": {"workloadName": "w"}, **more}
    return thing("CompositePodGroup", name, f"{SCHEDULING}/v1alpha3", spec=spec)


def below(name: str) -> dict[str, str]:
    return {"parentCompositePodGroupName": name}


def test_groups_of_groups_start_as_a_whole_each_in_its_domain(tmp_path):
    """Racks have room for four and five pods of two GPUs; zones are above them."""
    for first, second, starts in ((4, 5, True), (4, 4, True), (5, 5, False), (3, 6, False)):
        groups = [
            gang(first, "a", **below("c"), **near(RACK)),
            gang(second, "b", **below("c"), **near(RACK)),
        ]
        pods = [*in_gang(first, "a"), *in_gang(second, "b")]
        result = placed(written(tmp_path, composite("c", 2), *groups, *pods))
        (own,) = result.instance.queue
        assert (own.id, own.nodes, options(result.instance)) == ("ns/c", first + second, {})
        assert started(result) == ({"ns/c"} if starts else set())


def test_groups_in_the_domain_of_their_group(tmp_path):
    pods = [*in_gang(2, "a"), *in_gang(3, "b")]
    groups = [gang(2, "a", **below("c"), **near(HOST)), gang(3, "b", **below("c"))]
    result = placed(written(tmp_path, composite("c", 2, **near(RACK)), *groups, *pods))
    (own,) = result.instance.queue
    assert [(part.nodes, part.required, part.group) for part in own.parts] == [
        (2, RACK, "c"),
        (3, RACK, "c"),
    ]
    assert [(one.size, one.level) for one in own.parts[0].segments] == [(2, HOST)]
    assert (options(result.instance), started(result)) == ({}, {"ns/c"})


def test_groups_whose_group_is_basic_start_each_for_itself(tmp_path):
    groups = [composite("c", None), gang(2, "a", **below("c")), gang(12, "b", **below("c"))]
    result = placed(written(tmp_path, *groups, *in_gang(2, "a"), *in_gang(12, "b")))
    assert {own.id for own in result.instance.queue} == {"ns/a", "ns/b"}
    assert (options(result.instance), started(result)) == ({}, {"ns/a"})


@pytest.mark.parametrize(
    ("items", "option"),
    [
        (
            [composite("c", 1), gang(1, "a", **below("c")), gang(1, "b", **below("c"))],
            "minGroupCount",
        ),
        (
            [
                composite("c", 3),
                *(gang(1, name, **below("c")) for name in ("a", "b", "without-pods")),
            ],
            "minGroupCount",
        ),
        (
            [composite("c", 2), gang(1, "a", **below("c")), gang(None, "b", **below("c"))],
            "minCount",
        ),
        ([gang(1, "a", **below("c")), gang(1, "b", **below("c"))], "CompositePodGroup"),
        (
            [composite("c", 2, **near("row")), *(gang(1, n, **below("c")) for n in "ab")],
            "schedulingConstraints",
        ),
        (
            [composite("c", 2, **below("c")), *(gang(1, n, **below("c")) for n in "ab")],
            "CompositePodGroup",
        ),
        (
            [
                composite("c", 1),
                composite("d", None, **below("c")),
                *(gang(1, n, **below("d")) for n in "ab"),
            ],
            "minGroupCount",
        ),
    ],
)
def test_groups_of_groups_that_are_not_modelled_are_held(tmp_path, items, option):
    path = written(tmp_path, *items, *in_gang(1, "a"), *in_gang(1, "b"))
    assert options(read_kubernetes(path)[0]) == {"ns/c": {option}}
    require_held(path, "ns/c", option)


def test_the_priority_of_a_gang_is_that_of_its_group(tmp_path):
    classes = [
        thing("PriorityClass", name, f"{SCHEDULING}/v1", value=value, metadata={"namespace": ""})
        for name, value in (("low", 1), ("high", 9))
    ]
    groups = [gang(1, "a", priorityClassName="low"), gang(1, "b", priorityClassName="high")]
    snapshot = snapshot_of(tmp_path, *classes, *groups, *in_gang(1, "a"), *in_gang(1, "b"))
    assert [one.id for one in snapshot.queue] == ["ns/b", "ns/a"]


def test_a_gang_that_starts_is_judged(tmp_path):
    """It runs on both hosts of a rack, and one host has room for it."""
    group, waits = gang(2, **near(RACK)), in_gang(2)
    before = read_kubernetes(written(tmp_path, group, *waits, name="before.json"))[0]
    runs = [copy.deepcopy(one) for one in waits]
    for one, host in zip(runs, ("b1", "b2"), strict=True):
        one["spec"]["nodeName"] = host
    after = read_kubernetes(written(tmp_path, group, *runs, name="after.json"))[0]
    (row,) = tp.audit(before, after=after).rows
    assert (row.verdict, row.request) == ("suboptimal", "2 units, required rack")
    runs[1]["spec"]["nodeName"] = "a1"
    after = read_kubernetes(written(tmp_path, group, *runs, name="after.json"))[0]
    (row,) = tp.audit(before, after=after).rows
    assert row.verdict == "invalid"


def test_bad_groups_are_named(tmp_path):
    path = written(tmp_path, gang(4) | {"spec": {"schedulingPolicy": {"gang": {}}}}, *in_gang(1))
    with pytest.raises(InputError, match=r"PodGroup ns/g: spec.schedulingPolicy.gang.minCount: "):
        read_kubernetes(path)


# ---- Preemption, which is not modelled, and pods that have ended ---------------------------------


def of_queue(policies: dict[str, Any], name: str = "q", **more: Any) -> list[dict[str, Any]]:
    """A LocalQueue and its ClusterQueue, which may preempt so."""
    spec = {"preemption": policies, **more}
    return [
        cluster_wide("ClusterQueue", f"all-{name}", spec=spec),
        thing("LocalQueue", name, f"{KUEUE}/v1beta2", spec={"clusterQueue": f"all-{name}"}),
    ]


def queued(name: str, priority: int, queue: str = "q", **more: Any) -> dict[str, Any]:
    return workload(name, priority=priority, queueName=queue, **more)


RUNS = {"admission": {"clusterQueue": "all", "podSetAssignments": []}}


def may_preempt(folder: Path, *items: dict[str, Any]) -> str | None:
    return whole(snapshot_of(folder, *items)).get("preemption")


@pytest.mark.parametrize(
    ("policies", "priority", "may"),
    [
        ({}, 9, False),
        ({"withinClusterQueue": "Never"}, 9, False),
        ({"withinClusterQueue": "LowerPriority"}, 9, True),
        ({"withinClusterQueue": "LowerPriority"}, 5, False),
        ({"withinClusterQueue": "LowerOrNewerEqualPriority"}, 5, True),
        ({"withinClusterQueue": "LowerOrNewerEqualPriority"}, 4, False),
        ({"reclaimWithinCohort": "Any"}, 9, False),
    ],
)
def test_a_line_names_the_jobs_that_kueue_may_preempt_for(tmp_path, policies, priority, may):
    mine = pod("run-0", "a1", 1, annotations={f"{KUEUE}/workload": "run"})
    own = [*of_queue(policies), queued("run", 5, status=RUNS), mine, queued("w", priority)]
    expected = "of running jobs, by which ns/w may start" if may else None
    assert may_preempt(tmp_path, *own) == expected


@pytest.mark.parametrize(
    ("policies", "priority", "may"),
    [
        ({"reclaimWithinCohort": "Any"}, 1, True),
        ({"reclaimWithinCohort": "LowerPriority"}, 1, False),
        ({"reclaimWithinCohort": "LowerPriority"}, 9, True),
        ({"borrowWithinCohort": {"policy": "LowerPriority"}}, 9, True),
        ({"withinClusterQueue": "LowerPriority"}, 9, False),
    ],
)
def test_jobs_of_another_queue_of_the_cohort(tmp_path, policies, priority, may):
    mine = pod("run-0", "a1", 1, annotations={f"{KUEUE}/workload": "run"})
    run = queued("run", 5, "other", status=RUNS)
    for cohort, other in (("cohort", "cohortName"), ("cohortName", "cohortName")):
        queues = of_queue(policies, **{cohort: "c"}) + of_queue({}, "other", **{other: "c"})
        found = may_preempt(tmp_path, *queues, run, mine, queued("w", priority))
        assert (found is not None) is may
    apart = of_queue(policies, cohort="c") + of_queue({}, "other", cohort="d")
    assert may_preempt(tmp_path, *apart, run, mine, queued("w", priority)) is None


def test_a_line_names_the_pods_that_kubernetes_may_preempt_for(tmp_path):
    low, high = pod("low", "a1", 1), pod("high", None, 1, "Pending")
    high["spec"]["priority"] = 9
    assert may_preempt(tmp_path, low, high) == "of running jobs, by which ns/high may start"
    never = copy.deepcopy(high)
    never["spec"]["preemptionPolicy"] = "Never"
    assert may_preempt(tmp_path, low, never) is None
    never["spec"] |= {"preemptionPolicy": None, "priorityClassName": "patient"}
    patient = cluster_wide("PriorityClass", "patient", value=9, preemptionPolicy="Never")
    assert may_preempt(tmp_path, low, never, patient) is None
    assert may_preempt(tmp_path, pod("low", None, 1, "Pending"), high) is None
    suspended = thing("Job", "j", "batch/v1", spec={"suspend": True, "template": template()})
    suspended["spec"]["template"]["spec"]["priority"] = 9
    assert may_preempt(tmp_path, low, suspended) is None


def test_place_and_audit_say_that_preemption_is_not_modelled(tmp_path, capsys):
    """The pod of high priority waits rightly, but a scheduler might end others for it."""
    low = [pod(f"low-{k}", name, 4) for k, name in enumerate(("a1", "a2", "b1"))]
    high = pod("high", None, 8, "Pending")
    high["spec"]["priority"] = 9
    last = pod("last", "b2", 1)
    before, after = (
        str(written(tmp_path, *low, last, high, name=f"{name}.json"))
        for name in ("before", "after")
    )
    said = "not modelled: preemption of running jobs, by which ns/high may start"
    assert run(["place", before]) == 0
    assert said in capsys.readouterr().out
    assert run(["audit", before, "--after", after]) == 0
    assert f"before: {said}" in " ".join(capsys.readouterr().out.split())


def test_pods_that_have_ended_ask_for_nothing(tmp_path):
    """An evicted Workload, of whose five pods three are done."""
    for ended, left in ((3, 2), (5, None), (7, None)):
        status = {"reclaimablePods": [{"name": "main", "count": ended}]}
        snapshot = snapshot_of(tmp_path, workload(podset={"count": 5}, status=status))
        assert [one.nodes for one in snapshot.queue] == ([] if left is None else [left])


def test_pods_of_a_job_that_have_succeeded_are_not_made_again(tmp_path):
    own = job("j", 3, template(), completions=5) | {"status": {"succeeded": 3}}
    assert snapshot_of(tmp_path, own).queue[0].nodes == 2


def test_slices_of_elastic_jobs_are_held(tmp_path):
    """The larger slice waits, and so do the pods that it will have; the others run."""
    owner = {"ownerReferences": [{"kind": "Job", "name": "j", "controller": True}]}
    old, new = workload("old", status=RUNS), workload("new", podset={"count": 4})
    for own in (old, new):
        own["metadata"] |= copy.deepcopy(owner)
    new["metadata"]["annotations"] = {f"{KUEUE}/workload-slice-replacement-for": "ns/old"}
    meta = owner | {"annotations": {f"{KUEUE}/workload": "old"}}
    pods = [pod(f"j-{k}", "a1" if k < 2 else None, 1, "Pending", **meta) for k in range(4)]
    for one in pods[2:]:
        one["spec"]["schedulingGates"] = [{"name": f"{KUEUE}/elastic-job"}]
    assert options(snapshot_of(tmp_path, old, new, *pods)) == {
        "ns/new": {"workload-slice-replacement-for"},
        "ns/j#waits": {"schedulingGates"},
    }


def judged(folder: Path, before: list[dict[str, Any]], after: list[dict[str, Any]]) -> Any:
    """The only row of an audit of two listings."""
    files = [
        written(folder, *own, name=f"{name}.json")
        for name, own in (("before", before), ("after", after))
    ]
    (row,) = tp.audit(files[0], after=files[1]).rows
    return row


def test_nobody_is_blamed_for_what_is_not_modelled(tmp_path):
    """A quota, what the scheduler says afterwards, and a node that closed in between."""
    work, cpu = workload(), pod("p", None, 1, "Pending")
    del cpu["spec"]["containers"][0]["resources"]["requests"]["nvidia.com/gpu"]
    assert judged(tmp_path, [work], [work]).verdict == "missed"
    assert judged(tmp_path, [cpu], [cpu]).verdict == "missed"  # though it is no GPU
    quota = cluster_wide("ClusterQueue", "q")
    row = judged(tmp_path, [work, quota], [work, quota])
    assert (row.verdict, row.why) == ("unjudged", "not modelled: quotas of ClusterQueue q")
    for status in (condition(message="insufficient quota"), condition(reason="Inadmissible")):
        assert judged(tmp_path, [work], [workload(status=status)]).verdict == "unjudged"
    big = pod("p", None, 8, "Pending")  # for the largest node alone
    closed = node("b2", "r2", 8, ready="False")
    own = [closed if one["metadata"]["name"] == "b2" else one for one in listed(big)["items"]]
    (tmp_path / "after.json").write_text(json.dumps(listed() | {"items": own}))
    (row,) = tp.audit(written(tmp_path, big), after=tmp_path / "after.json").rows
    assert row.verdict == "rightly waiting"
    own[-1] = pod("p", "b2", 8)
    (tmp_path / "after.json").write_text(json.dumps(listed() | {"items": own}))
    (tmp_path / "before.json").write_text(json.dumps(listed() | {"items": [*own[:-1], big]}))
    (row,) = tp.audit(tmp_path / "before.json", after=tmp_path / "after.json").rows
    assert row.verdict == "invalid"  # closed in both
    (row,) = tp.audit(tmp_path / "before.json", after=written(tmp_path, own[-1])).rows
    assert row.verdict == "optimal"


def test_audits_and_pictures_of_a_cluster_with_gpus(tmp_path):
    """What could have started is said in GPUs; hosts are filled by what is used of them."""
    waits, runs = pod("p", None, 2, "Pending"), pod("r", "b2", 2)
    result = placed(written(tmp_path, waits, runs, name="before.json"))
    (row,) = tp.audit(tmp_path / "before.json", after=tmp_path / "before.json").rows
    assert (row.verdict, row.why) == ("missed", "0 GPUs, 2 possible")
    view = HierarchyView(result)
    names = view.state.machine.host_names
    (on,) = (
        names.index(host) for host in ("a1", "a2", "b1") if names.index(host) in view.cells.used
    )
    assert view.cells.used == {on: 0.5, names.index("b2"): pytest.approx(1 / 4)}
    axes = draw(result)
    tops = {round(float(np.ptp(own[:4, 1])), 3) for own in squares_of(axes)}
    assert {0.5, 0.25, 1.0} <= tops
    assert "filled: the share in use" in axes.get_xlabel()


def squares_of(axes: Any) -> list[Any]:
    """The corners of all shapes of a picture."""
    return [path.vertices for own in axes.collections for path in own.get_paths()]


def test_a_held_job_does_not_start_until_its_option_is_ignored(tmp_path):
    spec, option = RESTRICTS["gates"]
    path = file_of(tmp_path, PLAIN, job("j", 1, told(spec)))
    held = placed(path)
    assert started(held) == {"ns/plain"}
    frame = held.to_frame().set_index("request")
    assert frame.loc["ns/j", "waits"] == "held: schedulingGates example.com/wait"
    assert started(placed(path, ignore=[option])) == {"ns/plain", "ns/j"}


# ---- Commands ------------------------------------------------------------------------------------


def test_convert_and_place_say_how_many_are_held(tmp_path, capsys):
    held = job("j", 1, told({"schedulerName": "mine", "resourceClaims": [{"name": "g"}]}))
    path = str(file_of(tmp_path, PLAIN, held, job("k", 1, told({"newField": 1}))))
    line = (
        "2 of 3 requests held (resourceClaims 1, schedulerName 1, unknown-fields 1; see {}); "
        "not modelled: order by priority, then age"
    )
    out = str(tmp_path / "out.json")
    assert run(["convert", path, "--from", "kubernetes", "-o", out]) == 0
    assert line.format("place --ignore") in " ".join(capsys.readouterr().out.split())
    for file in (path, out):
        assert run(["place", file]) == 0
        assert line.format("--ignore") in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("name", "num"), [("volcano_partitions", 0), ("kai_annotations", 0), ("lws_exclusive", 2)]
)
def test_cases_from_the_field(name, num):
    result = placed(real_file(f"field/{name}/now.yaml"))
    assert options(result.instance) == {}
    assert len(started(result)) == num
