"""Kubernetes as kubectl prints it: nodes in domains, what runs, what waits, and what is wrong."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import yaml

import topoplace as tp
from bending import bent
from mistakes import MISTAKES, lines_said
from topoplace.cli import run
from topoplace.errors import InputError
from topoplace.formats.kubernetes.objects import base_units, quantity
from topoplace.formats.kubernetes.snapshots import read_kubernetes, read_kubernetes_machine
from topoplace.report.summary import summary
from topoplace.snapshot.hierarchy_state import HierarchyState, hierarchy_of
from topoplace.snapshot.machines import load_any, load_machine

RACK, HOST = "example.com/rack", "kubernetes.io/hostname"
KUEUE = "kueue.x-k8s.io"


def thing(kind: str, name: str, api: str = "v1", **more: Any) -> dict[str, Any]:
    meta = {"name": name, "namespace": "ns"} | more.pop("metadata", {})
    return {"apiVersion": api, "kind": kind, "metadata": meta, **more}


def node(name: str, rack: str | None, gpus: int = 4, **more: Any) -> dict[str, Any]:
    labels = {HOST: name} | ({} if rack is None else {RACK: rack})
    spec = more.pop("spec", {})
    ready = more.pop("ready", "True")
    allocatable = {
        "cpu": "3920m",
        "memory": "16777215Ki",
        "pods": "110",
        "nvidia.com/gpu": str(gpus),
    }
    status = {"allocatable": allocatable, "conditions": [{"type": "Ready", "status": ready}]}
    return thing("Node", name, metadata={"labels": labels}, spec=spec, status=status)


def template(gpus: int = 1, **annotations: Any) -> dict[str, Any]:
    told = {f"{KUEUE}/podset-{k.replace('_', '-')}": str(v) for k, v in annotations.items()}
    asked = {"requests": {"nvidia.com/gpu": str(gpus), "cpu": "1"}}
    return {"metadata": {"annotations": told}, "spec": {"containers": [{"resources": asked}]}}


def pod(name: str, on: str | None, gpus: int = 1, phase: str = "Running", **meta: Any) -> Any:
    own = template(gpus)["spec"] | ({} if on is None else {"nodeName": on})
    return thing("Pod", name, metadata=meta, spec=own, status={"phase": phase})


QUEUED = {"labels": {f"{KUEUE}/queue-name": "q"}}
"""A suspended job with a queue name waits for Kueue."""


def job(name: str, count: int, own: dict[str, Any], **more: Any) -> dict[str, Any]:
    meta = more.pop("metadata", QUEUED)
    spec = {"suspend": True, "parallelism": count, "template": own} | more
    return thing("Job", name, "batch/v1", metadata=meta, spec=spec)


TOPOLOGY = thing(
    "Topology",
    "default",
    f"{KUEUE}/v1beta2",
    spec={"levels": [{"nodeLabel": RACK}, {"nodeLabel": HOST}]},
)
NODES = [node("a1", "r1"), node("a2", "r1"), node("b1", "r2"), node("b2", "r2", gpus=8)]


def listed(*items: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "List", "items": [TOPOLOGY, *NODES, *items]}


def written(folder: Path, *items: dict[str, Any], name: str = "now.json") -> Path:
    path = folder / name
    path.write_text(json.dumps(listed(*items)))
    return path


def state_of(folder: Path, *items: dict[str, Any]) -> HierarchyState:
    state = load_any(written(folder, *items))
    assert isinstance(state, HierarchyState)
    return state


def test_nodes_in_domains(tmp_path):
    machine = load_machine(str(written(tmp_path)))
    hierarchy = hierarchy_of(machine)
    assert hierarchy.levels == (RACK, HOST)
    assert hierarchy.resources == ("cpu", "memory", "nvidia.com/gpu", "pods")
    assert hierarchy.capacity[:, :2].tolist() == [[3920, 16383]] * 4
    assert hierarchy.capacity[:, 2].tolist() == [4, 4, 4, 8]
    assert hierarchy.domain_names == (("r1", "r2"), ("r1/a1", "r1/a2", "r2/b1", "r2/b2"))


def test_json_yaml_lists_and_documents_are_the_same(tmp_path):
    objects = listed(pod("p", "a1"), job("j", 2, template(required_topology=RACK)))
    apart = objects["items"]
    forms = {
        "list.json": json.dumps(objects),
        "list.yaml": yaml.safe_dump(objects),
        "apart.yaml": "# as kubectl leaves it\n" + yaml.safe_dump_all(apart, explicit_start=True),
        "apart.json": "\n".join(map(json.dumps, apart)),
        "lists.json": json.dumps({"apiVersion": "v1", "kind": "NodeList", "items": NODES})
        + json.dumps({"apiVersion": "v1", "kind": "List", "items": [TOPOLOGY, *apart[5:]]}),
    }
    found = []
    for name, text in forms.items():
        path = tmp_path / name
        path.write_text(text)
        found.append(load_any(path).snapshot.model_copy(update={"name": "x"}))
    assert all(one == found[0] for one in found)
    assert found[0].queue[0].required == RACK


def test_python_takes_the_name_of_a_file_as_the_command_does(tmp_path):
    path = tmp_path / "now.yaml"
    path.write_text(yaml.safe_dump(listed(job("j", 2, template(required_topology=RACK)))))
    assert tp.load(str(path)).snapshot == load_any(path).snapshot
    assert tp.place(str(path)).instance == load_any(path).snapshot


@pytest.mark.parametrize("command", [["place"], ["convert", "--from", "kubernetes"]])
def test_a_table_of_kubectl_is_named_with_what_to_do(tmp_path, capsys, command):
    path = tmp_path / "nodes.txt"
    path.write_text("NAME   STATUS   ROLES    AGE\na1     Ready    <none>   9d\n")
    assert run([*command, str(path)]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "found a table of kubectl get, which has to be asked for -o yaml or -o json" in said


def test_what_runs_holds_what_its_pods_ask_for(tmp_path):
    """Two pods of a job on one node, one on another, a pod that has ended, and one elsewhere."""
    label = {"labels": {"job-name": "j"}}
    state = state_of(
        tmp_path,
        pod("j-1", "a1", 1, **label),
        pod("j-2", "a1", 2, **label),
        pod("j-3", "a2", 1, **label),
        pod("old", "a2", 4, phase="Succeeded"),
        pod("far", "login", 1),
    )
    gpus = state.machine.resources.index("nvidia.com/gpu")
    assert state.free[:, gpus].tolist() == [1, 3, 4, 8]
    assert state.free[:, state.machine.resources.index("pods")].tolist() == [108, 109, 110, 110]
    assert [(one.id, one.nodes) for one in state.snapshot.running] == [
        ("ns/j/1", "a1"),
        ("ns/j/2", "a2"),
    ]


def test_a_job_whose_hosts_give_different_amounts_is_one_job_of_an_audit(tmp_path):
    hosts = {"a1": 3, "a2": 2, "b1": 1, "b2": 1}
    nodes = [node(name, f"r{name[0]}", gpus) for name, gpus in hosts.items()]

    def audited(*on: str) -> str:
        waits = job("j", len(on), template(1))
        runs = job("j", len(on), template(1), suspend=False)
        labels = {"job-name": "j"}
        pods = [pod(f"j-{k}", name, labels=labels) for k, name in enumerate(on)]
        for name, items in (("before", [waits]), ("after", [runs, *pods])):
            objects = {"apiVersion": "v1", "kind": "List", "items": [TOPOLOGY, *nodes, *items]}
            (tmp_path / f"{name}.json").write_text(json.dumps(objects))
        states = [read_kubernetes(tmp_path / f"{name}.json")[0] for name in ("before", "after")]
        (row,) = tp.audit(states[0], after=states[1]).rows
        return str(row.verdict)

    assert audited("a1", "a1", "b1") == "suboptimal"
    assert audited("a1", "a1", "a1") == "optimal"
    del nodes[0]
    assert audited("a2", "a2", "b1", "b2") == "optimal"


def test_more_than_a_node_has_is_cut(tmp_path):
    snapshot, notes = read_kubernetes(written(tmp_path, pod("p", "a1", 5)))
    assert snapshot.running[0].takes["nvidia.com/gpu"] == 4
    assert "amounts cut to what nodes have: 1" in notes


@pytest.mark.parametrize(
    ("own", "fields"),
    [
        ({"required_topology": RACK}, {"required": RACK}),
        ({"preferred_topology": HOST}, {"preferred": HOST}),
        ({"required_topology": RACK, "preferred_topology": HOST}, {"preferred": None}),
        ({"unconstrained_topology": "true"}, {"required": None, "segments": None}),
        ({"slice_required_topology": RACK, "slice_size": 2}, {"segments": [(2, RACK)]}),
        (
            {
                "slice_required_topology_constraints": json.dumps(
                    [{"topology": RACK, "size": 4}, {"topology": HOST, "size": 2}]
                )
            },
            {"segments": [(4, RACK), (2, HOST)]},
        ),
    ],
)
def test_annotations_of_kueue(tmp_path, own, fields):
    state = state_of(tmp_path, job("j", 4, template(2, **own)))
    (request,) = state.snapshot.queue
    assert (request.id, request.nodes) == ("ns/j", 4)
    assert request.takes == {"nvidia.com/gpu": 2, "cpu": 1000, "pods": 1}
    for name, value in fields.items():
        found = getattr(request, name)
        assert (
            [(s.size, s.level) for s in found] if name == "segments" and found else found
        ) == value


def job_set(**more: Any) -> dict[str, Any]:
    annotated = template(1, required_topology=RACK, group_name="g")
    jobs = [
        {"name": "leader", "template": {"spec": {"template": annotated}}},
        {
            "name": "workers",
            "replicas": 2,
            "template": {"spec": {"parallelism": 3, "completions": 2, "template": annotated}},
        },
    ]
    spec = {"suspend": True, "replicatedJobs": jobs}
    meta = QUEUED | more.pop("metadata", {})
    return thing("JobSet", "js", "jobset.x-k8s.io/v1alpha2", metadata=meta, spec=spec, **more)


def test_job_sets_have_parts(tmp_path):
    child = job("js-leader-0", 1, template())
    child["metadata"]["ownerReferences"] = [{"kind": "JobSet", "name": "js", "controller": True}]
    (request,) = state_of(tmp_path, child, job_set()).snapshot.queue
    assert (request.id, request.nodes) == ("ns/js", 5)
    parts = [(part.id, part.nodes, part.group, part.required) for part in request.parts]
    assert parts == [("leader", 1, "g", RACK), ("workers", 4, "g", RACK)]


def test_workloads_tell_instead_of_jobs(tmp_path):
    request = {"preferred": RACK, "podSetSliceRequiredTopology": HOST, "podSetSliceSize": 2}
    pod_sets = [{"name": "main", "count": 4, "template": template(), "topologyRequest": request}]
    meta = {"ownerReferences": [{"kind": "Job", "name": "j"}]}
    api = f"{KUEUE}/v1beta2"
    waits = thing("Workload", "job-j-1", api, metadata=meta, spec={"podSets": pod_sets})
    runs = thing(
        "Workload",
        "job-k-1",
        api,
        metadata={"ownerReferences": [{"kind": "Job", "name": "k"}]},
        spec={"podSets": pod_sets},
        status={"admission": {"clusterQueue": "q"}},
    )
    first = thing("Workload", "urgent", api, spec={"podSets": pod_sets, "priority": 5})
    items = [job("j", 4, template()), job("k", 4, template()), waits, runs, first]
    queue = state_of(tmp_path, *items).snapshot.queue
    assert [(one.id, one.preferred, one.segments[0].size) for one in queue] == [
        ("ns/urgent", RACK, 2),
        ("ns/j", RACK, 2),
    ]


def test_pods_that_wait_are_grouped(tmp_path):
    group = {"labels": {f"{KUEUE}/pod-group-name": "g"}}
    owned = {"ownerReferences": [{"kind": "RayCluster", "name": "rs", "controller": True}]}
    items = [pod(f"g-{k}", None, 1 + (k == 2), "Pending", **group) for k in range(3)]
    items += [pod("rs-1", "a1", 1, **owned), pod("rs-2", None, 1, "Pending", **owned)]
    snapshot, notes = read_kubernetes(written(tmp_path, *items))
    one, other = snapshot.queue
    assert [(part.id, part.nodes) for part in one.parts] == [("pods", 2), ("pods1", 1)]
    assert (other.id, other.nodes) == ("ns/rs#waits", 1)
    assert "jobs that run in part and wait in part: 1" in notes


def test_what_ended_and_what_runs_does_not_wait(tmp_path):
    done = job("done", 1, template())
    done["status"] = {"conditions": [{"type": "Complete", "status": "True"}]}
    items = [done, job("runs", 1, template(), suspend=False)]
    snapshot, notes = read_kubernetes(written(tmp_path, *items))
    assert (snapshot.queue, notes) == ([], ("0 jobs running, 0 queued",))


def test_closed_nodes(tmp_path):
    """Those not ready and cordoned are; tainted ones are a set; those without labels are out."""
    taint = {"taints": [{"key": "gpu", "value": "x", "effect": "NoSchedule"}]}
    items = [
        node("c1", "r3", ready="Unknown"),
        node("c2", "r3", spec={"unschedulable": True}),
        node("c3", "r3", spec=taint),
        node("login", None),
    ]
    own = template()
    snapshot, notes = read_kubernetes(written(tmp_path, *items, job("j", 1, own)))
    assert (snapshot.down, snapshot.queue[0].eligible) == ("c[1-2]", "!gpu=x:NoSchedule")
    assert snapshot.sets == {"gpu=x:NoSchedule": "c3"}
    assert notes[1:] == (
        "nodes left out, without the labels of all levels: 1",
        "nodes closed, not ready or unschedulable: 2",
    )
    for toleration, may in (
        ({"key": "gpu", "operator": "Exists"}, True),
        ({"key": "gpu", "value": "x", "effect": "NoSchedule"}, True),
        ({"operator": "Exists"}, True),
        ({"key": "gpu", "value": "y"}, False),
        ({"key": "gpu", "effect": "NoExecute"}, False),
    ):
        own["spec"]["tolerations"] = [toleration]
        snapshot, _ = read_kubernetes(written(tmp_path, *items, job("j", 1, own)))
        assert snapshot.sets == ({} if may else {"gpu=x:NoSchedule": "c3"})


def test_jobs_without_pods_are_counted(tmp_path):
    _, notes = read_kubernetes(written(tmp_path, job("none", 0, template())))
    assert notes == ("0 jobs running, 0 queued", "jobs left out, without pods: 1")


def test_a_resource_that_no_node_has(tmp_path):
    own = template()
    own["spec"]["containers"][0]["resources"]["requests"]["example.com/fpga"] = "1"
    state = state_of(tmp_path, job("j", 1, own))
    assert state.machine.capacity[:, state.machine.resources.index("example.com/fpga")].sum() == 0


def test_what_a_pod_takes(tmp_path):
    """Limits stand in for requests; initial containers and sidecars count at their peak."""
    containers = [{"resources": {"limits": {"cpu": "250m"}}}, {"resources": {}}, {}]
    initial = [
        {"restartPolicy": "Always", "resources": {"requests": {"cpu": "100m"}}},
        {"resources": {"requests": {"cpu": "1500m", "memory": "1"}}},
    ]
    spec = {"containers": containers, "initContainers": initial, "overhead": {"cpu": "1m"}}
    (request,) = state_of(tmp_path, job("j", 1, {"spec": spec})).snapshot.queue
    assert request.takes == {"cpu": 1601, "memory": 1, "pods": 1}


@pytest.mark.parametrize(
    ("asked", "reason", "held"),
    [(1, "Deferred", 2), (3, "Deferred", 3), (3, "Infeasible", 2)],
)
def test_a_pod_that_is_resized_holds_the_most_that_counts(tmp_path, asked, reason, held):
    """A container of 1 CPU that has 2 set aside, and now asks for less or more."""
    own = pod("p", "a1", 0)
    own["spec"]["containers"] = [{"name": "c", "resources": {"requests": {"cpu": str(asked)}}}]
    given = {"resources": {"requests": {"cpu": "1"}}, "allocatedResources": {"cpu": "2"}}
    own["status"]["containerStatuses"] = [{"name": "c", **given}]
    pending = {"type": "PodResizePending", "status": "True", "reason": reason}
    own["status"]["conditions"] = [pending]
    (running,) = state_of(tmp_path, own).snapshot.running
    assert running.takes == {"cpu": 1000 * held, "pods": 1}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(("1", 1), ("1.5", Fraction(3, 2)), ("250m", Fraction(1, 4)), (".5k", 500), ("0", 0)),
        *(("2Ki", 2048), ("3e3", 3000), ("1E2", 100), ("1E", 10**18), (7, 7)),
    ],
)  # fmt: skip
def test_quantities(text, value):
    assert quantity(text, "cpu") == value


@pytest.mark.parametrize("text", ["", "x", "1x", "-1", "1 Gi", "1e", "1e999", "nan", "0x1"])
def test_no_quantities(text):
    with pytest.raises(InputError, match="a quantity such as"):
        quantity(text, "cpu")


def test_units_are_rounded_down_for_what_there_is_and_up_for_what_is_asked_for():
    odd = Fraction(5 * 2**20 + 1)
    assert [base_units("memory", odd, "", up=up) for up in (False, True)] == [5, 6]
    assert base_units("cpu", Fraction("0.0001"), "", up=True) == 1
    with pytest.raises(InputError, match="at most 1073741824 units"):
        base_units("nvidia.com/gpu", Fraction(2**31), "gpu", up=False)


def flavor_of(topology: str, name: str, **labels: str) -> dict[str, Any]:
    spec = {"topologyName": topology, "nodeLabels": labels}
    return thing("ResourceFlavor", name, f"{KUEUE}/v1beta1", spec=spec)


OTHER = bent(TOPOLOGY, 'metadata.name = "other" & del spec.levels[0]')


def test_several_topologies_and_flavors(tmp_path):
    path = written(
        tmp_path, OTHER, flavor_of("other", "f", **{RACK: "r2"}), flavor_of("default", "d")
    )
    (line,) = lines_said(load_machine, str(path))
    assert line.endswith(
        "--topology: expected the name of one topology of default, other, found nothing"
    )
    machine = load_machine(f"{path}:other")
    assert (machine.levels, [group.hosts for group in machine.hosts]) == ([HOST], ["b1", "b2"])
    out = tmp_path / "out.json"
    args = ["convert", str(path), "--from", "kubernetes", "--topology", "default", "-o", str(out)]
    assert run(args) == 0
    assert len(hierarchy_of(load_any(out).snapshot.machine).host_names) == 4


def queue_of(name: str, *flavors: str) -> list[dict[str, Any]]:
    offered = [{"name": flavor} for flavor in flavors]
    groups = [{"coveredResources": ["cpu", "nvidia.com/gpu"], "flavors": offered}]
    spec = {"namespaceSelector": {}, "resourceGroups": groups}
    nowhere = {"namespace": ""}
    return [
        thing("ClusterQueue", f"c-{name}", f"{KUEUE}/v1beta1", spec=spec, metadata=nowhere),
        thing("LocalQueue", name, f"{KUEUE}/v1beta1", spec={"clusterQueue": f"c-{name}"}),
    ]


def in_queue(name: str, queue: str, admission: Any = None) -> dict[str, Any]:
    own = {"name": "main", "count": 1, "template": template()}
    status = {} if admission is None else {"admission": admission}
    spec = {"podSets": [own], "queueName": queue}
    return thing("Workload", name, f"{KUEUE}/v1beta1", spec=spec, status=status)


def test_the_topology_is_that_of_what_waits(tmp_path):
    r1, r2 = {RACK: "r1"}, {RACK: "r2"}
    base = [OTHER, flavor_of("default", "d", **r1), flavor_of("other", "o", **r2)]
    base += [*queue_of("qd", "d"), *queue_of("qo", "o"), *queue_of("both", "d", "o")]
    first, second = in_queue("w", "qd"), in_queue("v", "qo")
    for items, topology, left in (
        ([first], "default", "other"),
        ([second], "other", "default"),
        ([second, in_queue("r", "qd", {"podSetAssignments": []})], "other", "default"),
        ([in_queue("r", "qd", {"podSetAssignments": []})], "default", "other"),
    ):
        snapshot, notes = read_kubernetes(written(tmp_path, *base, *items))
        assert snapshot.machine.name == topology
        assert f"topology {topology}; left out: {left}" in notes
        assert not [one for one in snapshot.left_out if one.option == "flavor"]
    for items, default, other in (
        ([first, second], "queue ns/qd", "queue ns/qo"),
        ([in_queue("w", "both")], "queue ns/both", "queue ns/both"),
    ):
        path = written(tmp_path, *base, *items)
        (line,) = lines_said(load_any, path)
        needs = f"default (needed by {default}), other (needed by {other})"
        assert f"--topology: expected the name of one topology of {needs}, found nothing" in line
    snapshot, _ = read_kubernetes(written(tmp_path, *base, first, second), "default")
    assert [(one.request, one.option) for one in snapshot.left_out if one.request] == [
        ("ns/v", "flavor")
    ]


def test_topologies_of_the_same_levels_are_one_machine(tmp_path):
    same = bent(TOPOLOGY, 'metadata.name = "same"')
    base = [same, flavor_of("default", "d", **{RACK: "r1"}), flavor_of("same", "s", **{RACK: "r2"})]
    base += [*queue_of("qd", "d"), *queue_of("qs", "s"), in_queue("w", "qd"), in_queue("v", "qs")]
    result = tp.place(written(tmp_path, *base))
    assert result.check().verified
    hosts = {one.request: one.parts[0].shares[0].hosts for one in result.solution.placements}
    assert {request: host[0] for request, host in hosts.items()} == {"ns/w": "a", "ns/v": "b"}


def test_jobs_of_kai_name_their_topology(tmp_path):
    notes = {"kai.scheduler/topology": "other", "kai.scheduler/topology-required-placement": HOST}
    snapshot, _ = read_kubernetes(written(tmp_path, OTHER, pod("p", None, 1, annotations=notes)))
    assert (snapshot.machine.name, snapshot.queue[0].required) == ("other", HOST)


def test_convert_makes_machines_too(tmp_path, capsys):
    path, out = written(tmp_path), tmp_path / "out.json"
    args = ["convert", str(path), "--from", "kubernetes", "--to", "machine", "-o", str(out)]
    assert run(args) == 0
    assert f"domains by level: 2 {RACK}, 4 {HOST}" in capsys.readouterr().out
    assert load_machine(str(out)) == load_machine(str(path))


# ---- Volcano -------------------------------------------------------------------------------------


def hyper(name: str, tier: int, *members: dict[str, Any]) -> dict[str, Any]:
    spec = {"tier": tier, "members": list(members)}
    return thing("HyperNode", name, "topology.volcano.sh/v1alpha1", spec=spec)


def member(kind: str, **selector: Any) -> dict[str, Any]:
    return {"type": kind, "selector": selector}


def exact(kind: str, name: str) -> dict[str, Any]:
    return member(kind, exactMatch={"name": name})


HYPERS = [
    hyper("top", 3, member("HyperNode", regexMatch={"pattern": "^s"})),
    hyper("s0", 1, exact("Node", "a1"), exact("Node", "a2"), exact("Node", "gone")),
    hyper("s1", 1, member("Node", labelMatch={"matchLabels": {RACK: "r2"}})),
]


def volcano(folder: Path, *items: dict[str, Any], hypers: list[dict[str, Any]] = HYPERS) -> Path:
    path = folder / "volcano.json"
    objects = [*hypers, *NODES, node("c1", "r3"), *items]
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    return path


def test_tiers_are_levels(tmp_path):
    machine = read_kubernetes_machine(volcano(tmp_path))
    assert machine.levels == ["tier3", "tier1", HOST]
    domains = {group.hosts: group.domains for group in machine.hosts}
    assert domains == {
        "a[1-2]": ["top", "s0"],
        "b1": ["top", "s1"],
        "b2": ["top", "s1"],
        "c1": ["c1", "c1"],
    }


@pytest.mark.parametrize(
    ("expression", "hosts"),
    [
        ({"operator": "In", "values": ["r1"]}, "a[1-2]"),
        ({"operator": "NotIn", "values": ["r1", "r3"]}, "b1,b2"),
        ({"operator": "Exists"}, "a[1-2],b1,b2,c1"),
        ({"operator": "DoesNotExist"}, ""),
    ],
)
def test_expressions_select_nodes(tmp_path, expression, hosts):
    labels = {"matchExpressions": [{"key": RACK, **expression}]}
    path = volcano(tmp_path, hypers=[hyper("h", 1, member("Node", labelMatch=labels))])
    machine = read_kubernetes_machine(path)
    assert ",".join(g.hosts for g in machine.hosts if g.domains == ["h"]) == hosts


@pytest.mark.parametrize(
    ("topology", "fields"),
    [
        ({"mode": "hard", "highestTierAllowed": 1}, ("tier1", None)),
        ({"mode": "hard"}, ("tier3", None)),
        ({"mode": "soft"}, (None, "tier1")),
        (None, (None, None)),
    ],
)
def test_jobs_of_volcano(tmp_path, topology, fields):
    tasks = [{"name": "ps", "replicas": 1, "template": template()}]
    tasks.append({"name": "worker", "replicas": 3, "template": template(2)})
    spec = {"tasks": tasks, **({} if topology is None else {"networkTopology": topology})}
    own = thing("Job", "v", "batch.volcano.sh/v1alpha1", spec=spec)
    mine = pod("v-ps-0", None, 1, "Pending", labels={"volcano.sh/job-name": "v"})
    (request,) = read_kubernetes(volcano(tmp_path, own, mine))[0].queue
    assert [(part.id, part.nodes) for part in request.parts] == [("ps", 1), ("worker", 3)]
    assert {(part.required, part.preferred) for part in request.parts} == {fields}
    assert {part.group for part in request.parts} == {None if topology is None else "job"}


both = (exact("Node", "a1"), exact("Node", "a2"))


@pytest.mark.parametrize(
    ("hypers", "said"),
    [
        (
            [hyper("h", 1, exact("Node", "a1")), hyper("h", 2)],
            "HyperNode ns/h: metadata.name: expected each",
        ),
        (
            [hyper("h", 2, exact("HyperNode", "i"))],
            "HyperNode ns/h: spec.members[0].selector: expected a",
        ),
        (
            [hyper("h", 1, exact("HyperNode", "i")), hyper("i", 1)],
            "HyperNode ns/h: spec.members[0].selector: expected HyperNodes of tiers below 1",
        ),
        ([hyper("h", 0)], "HyperNode ns/h: spec.tier: expected an integer of at least 1"),
        (
            [hyper("h", 1, member("Node"))],
            "HyperNode ns/h: spec.members[0].selector: expected one of",
        ),
        (
            [hyper("h", 1, member("Node", regexMatch={"pattern": "("}))],
            "HyperNode ns/h: spec.members[0].selector: expected a regular expression (missing )",
        ),
        (
            [hyper("h", 1, member("Pod"))],
            "HyperNode ns/h: spec.members[0].type: expected one of Node",
        ),
    ],
)
def test_bad_hyper_nodes(tmp_path, hypers, said):
    path = volcano(tmp_path, hypers=hypers)
    assert lines_said(read_kubernetes_machine, path)[0].startswith(f"{path}: {said}")


# ---- What is said of bad files -------------------------------------------------------------------


@pytest.mark.parametrize(("changes", "lines"), MISTAKES["Kubernetes"])
def test_bad_objects(tmp_path, changes, lines):
    own = template(1, slice_required_topology=RACK, slice_size=2, required_topology=RACK)
    path = tmp_path / "now.json"
    path.write_text(json.dumps(bent(listed(pod("p", "a1"), job("j", 2, own)), changes)))
    assert lines_said(load_any, path) == [f"{path}: {line}" for line in lines]


def test_faults_in_yaml_have_lines(tmp_path):
    path = tmp_path / "now.yaml"
    text = yaml.safe_dump(listed(job("j", "two", template())), sort_keys=False)
    path.write_text(text)
    line = next(k for k, line in enumerate(text.splitlines(), 1) if line.endswith(": two"))
    said = f"{path}: line {line}, Job ns/j: spec.parallelism: expected an integer, found 'two'"
    assert lines_said(load_any, path) == [said]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("apiVersion: v1\nkind: List\nitems: [", "line 4, column 1: expected YAML (did not find"),
        ("apiVersion: v1\nkind: List\n", "items: expected a list, found nothing"),
        ("apiVersion: v1\nkind: List\nitems: 3\n", "line 3, items: expected a list, found 3"),
        ("apiVersion: v1\nkind: List\nitems: []\n", "expected a Topology of Kueue or KAI"),
        ("kind: Node\n", "apiVersion: expected text, found nothing"),
        ("kind: Node\n---\n- 3\n", "apiVersion: expected text, found nothing"),
        ('{"kind": "Node", "apiVersion": ', "expected a JSON document (Expecting value"),
    ],
)  # fmt: skip
def test_bad_texts(tmp_path, text, said):
    path = tmp_path / "now"
    path.write_text(text)
    assert lines_said(load_any, path)[0].startswith(f"{path}: {said}")
    assert lines_said(load_machine, str(path))[0].startswith(f"{path}: {said}")


def test_what_runs_keeps_its_rules_where_it_moves(tmp_path):
    """A pod of a rack and one of any fill halves of two nodes; a third needs a whole one."""
    selector = template(2)["spec"] | {"nodeSelector": {RACK: "ra"}}
    bound = pod("bound", "a1", 2) | {"spec": selector | {"nodeName": "a1"}}
    daemon = pod("agent-x", "a2", 1)
    daemon["metadata"]["ownerReferences"] = [{"kind": "DaemonSet", "name": "agent"}]
    items = [bound, pod("loose", "b1", 2), daemon, job("whole", 1, template(4))]
    nodes = [node(name, f"r{name[0]}") for name in ("a1", "a2", "b1")]
    path = tmp_path / "now.json"
    objects = {"apiVersion": "v1", "kind": "List", "items": [TOPOLOGY, *nodes, *items]}
    path.write_text(json.dumps(objects))
    snapshot, _ = read_kubernetes(path)
    asked = {one.id: one.asked and one.asked.eligible for one in snapshot.running}
    assert asked["ns/bound"] == f"{RACK}=ra"
    assert asked["ns/loose"] is None
    moved = {}
    for fixed in ("ns/bound", "ns/loose"):
        found = tp.repack(path, "ns/whole", fixed=[fixed])
        assert found.check().verified
        assert found.solution is not None
        moved[fixed] = [one.request for one in found.solution.moves]
    assert moved == {"ns/bound": ["ns/loose"], "ns/loose": ["ns/bound"]}
    ended = tp.repack(path, "ns/whole", evict="all", no_moves=True)
    assert "ns/agent-x" not in ended.instance.ends


def test_a_job_of_several_amounts_moves_as_one_and_what_is_not_modelled_stays(tmp_path):
    label = {"labels": {"batch.kubernetes.io/job-name": "two"}}
    spread = pod("spread", "b2", 1)
    spread["spec"]["affinity"] = {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": HOST, "labelSelector": {"matchLabels": {"a": "b"}}}
            ]
        }
    }
    items = [pod("two-0", "a1", 1, **label), pod("two-1", "a1", 1, **label)]
    items += [pod("two-2", "a2", 1, **label), spread, job("w", 1, template(1))]
    snapshot, _ = read_kubernetes(written(tmp_path, *items))
    jobs = {one.id: one for one in snapshot.running}
    assert {jobs[name].gang for name in ("ns/two/1", "ns/two/2")} == {"ns/two"}
    asked = jobs["ns/two/1"].asked
    assert asked is not None
    assert asked.nodes == 3
    assert [one.option for one in jobs["ns/spread"].left_out or ()] == ["podAntiAffinity"]
    line = "1 of 2 running jobs may not move, as what restricts them is not modelled"
    assert line in summary(tp.repack(snapshot, "ns/w"))
