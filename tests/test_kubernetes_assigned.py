"""What Kueue has assigned to a Workload is taken, whether or not its pods are there yet."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import topoplace as tp
from test_kubernetes import HOST, KUEUE, RACK, job_set, pod, template, thing, written
from topoplace.cli import run
from topoplace.formats.kubernetes.snapshots import read_kubernetes
from topoplace.machine.hostlist import expand_host_list
from topoplace.snapshot.held import holds_of
from topoplace.snapshot.schema import Snapshot

GPU = "nvidia.com/gpu"
RACK_OF = {"a1": "r1", "a2": "r1", "b1": "r2", "b2": "r2"}
FREE = {"a1": 4, "a2": 4, "b1": 4, "b2": 8}


def workload(name: str, count: int, gpus: int = 1, **more: Any) -> dict[str, Any]:
    own: dict[str, Any] = {"name": "main", "count": count, "template": template(gpus)}
    del own["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"]
    own |= {"topologyRequest": {"preferred": RACK}}
    meta = {"ownerReferences": [{"kind": "Job", "name": name, "controller": True}]}
    spec = {"podSets": [own]}
    return thing("Workload", f"job-{name}", f"{KUEUE}/v1beta2", metadata=meta, spec=spec, **more)


def domains(counts: dict[str, int], levels: tuple[str, ...] = (HOST,)) -> dict[str, Any]:
    """The form of v1beta1."""
    values = {name: {HOST: name, RACK: RACK_OF.get(name, name)} for name in counts}
    own = [{"values": [values[k][lv] for lv in levels], "count": n} for k, n in counts.items()]
    return {"levels": list(levels), "domains": own}


def slices(counts: dict[str, int]) -> dict[str, Any]:
    """The form of v1beta2: of hosts of one rack each, with what is alike said once."""
    own = []
    for rack in sorted({RACK_OF[name] for name in counts}):
        here = {name: n for name, n in counts.items() if RACK_OF[name] == rack}
        alike = len({*here.values()}) == 1
        hosts = {"individual": {"prefix": rack[:0], "roots": [*here]}}
        if len(here) == 2:
            hosts = {"individual": {"prefix": min(here)[0], "roots": [n[1:] for n in here]}}
        numbers = {"universal": max(here.values())} if alike else {"individual": [*here.values()]}
        levels = [{"universal": rack}, hosts]
        own.append({"domainCount": len(here), "valuesPerLevel": levels, "podCounts": numbers})
    return {"levels": [RACK, HOST], "slices": own}


def admitted(assignment: dict[str, Any]) -> dict[str, Any]:
    own = [{"name": "main", "topologyAssignment": assignment}]
    return {"admission": {"clusterQueue": "q", "podSetAssignments": own}}


def of_job(name: str, idx: int, on: str | None, gpus: int = 1, phase: str = "Running") -> Any:
    meta = {
        "labels": {"batch.kubernetes.io/job-name": name, f"{KUEUE}/podset": "main"},
        "annotations": {f"{KUEUE}/workload": f"job-{name}"},
    }
    own = pod(f"{name}-{idx}", on, gpus, phase, **meta)
    del own["spec"]["containers"][0]["resources"]["requests"]["cpu"]
    if on is None:
        own["spec"]["schedulingGates"] = [{"name": f"{KUEUE}/topology"}]
    return own


def snapshot_of(folder: Path, *items: dict[str, Any]) -> Snapshot:
    return read_kubernetes(written(folder, *items))[0]


def gpus_of(snapshot: Snapshot) -> dict[str, dict[str, int]]:
    """By job the GPUs that it takes of each host."""
    found: dict[str, dict[str, int]] = {}
    for one in snapshot.running:
        job = "/".join(one.id.split("/")[:2])
        for host in expand_host_list(one.nodes):
            found.setdefault(job, {})[host] = (one.takes or {})[GPU]
    return {job: dict(sorted(own.items())) for job, own in sorted(found.items())}


@pytest.mark.parametrize("form", [domains, slices])
@pytest.mark.parametrize("gated", [True, False])
def test_pods_that_are_assigned_and_do_not_run_are_counted(tmp_path, form, gated):
    own = workload("run", 7, status=admitted(form({"a1": 4, "b1": 1, "b2": 2})))
    pods = [of_job("run", k, on) for k, on in enumerate(["a1", "a1", "b2"])]
    pods += [of_job("run", k, None, 1, "Pending") for k in range(3, 7)] if gated else []
    snapshot = snapshot_of(tmp_path, own, *pods, workload("w", 14))
    assert gpus_of(snapshot) == {"ns/run": {"a1": 4, "b1": 1, "b2": 2}}
    assert [one.id for one in snapshot.queue] == ["ns/w"]
    assert snapshot.left_out == []
    for size, starts in ((14, 0), (13, 1)):  # as many as are free
        now = snapshot_of(tmp_path, own, *pods, workload("w", size))
        solution = tp.place(now).solution
        assert solution is not None
        assert len(solution.placements) == starts


@pytest.mark.parametrize("seed", range(20))
def test_usage_is_what_kueue_counts(tmp_path, seed):
    """On each host, what is assigned, whichever of its pods run, are gated or have ended."""
    rng = random.Random(seed)
    hosts, items, expected = Counter(FREE), [], {}
    for name in ("x", "y", "z"):
        gpus = rng.choice([1, 1, 2])
        room = {host: n // gpus for host, n in hosts.items()}
        counts = {h: rng.randint(1, n) for h, n in room.items() if n and rng.random() < 0.6}
        if not counts:
            continue
        hosts -= Counter({host: n * gpus for host, n in counts.items()})
        form = rng.choice([domains, slices])
        levels = form(counts)
        items.append(workload(name, sum(counts.values()), gpus, status=admitted(levels)))
        expected[f"ns/{name}"] = {host: n * gpus for host, n in sorted(counts.items())}
        places = [host for host, n in counts.items() for _ in range(n)]
        for idx, host in enumerate(places):
            state = rng.choice(["run", "gated", "ended", "none"])
            if state == "run":
                items.append(of_job(name, idx, host, gpus))
            elif state == "gated":
                items.append(of_job(name, idx, None, gpus, "Pending"))
            elif state == "ended":
                items.append(of_job(name, idx, host, gpus, "Succeeded"))
    rng.shuffle(items)
    snapshot = snapshot_of(tmp_path, *items)
    assert gpus_of(snapshot) == expected
    assert snapshot.queue == []
    assert snapshot.left_out == []


@pytest.mark.parametrize(
    ("reclaimable", "seen", "taken"),
    [
        (0, ["a1"], {"a1": 3, "a2": 2}),  # it is made again
        (1, ["a1"], {"a1": 2, "a2": 2}),
        (2, ["a1", "a2"], {"a1": 2, "a2": 1}),
        (1, ["a1", "a2"], {"a1": 3, "a2": 2}),  # one is made again: which?
        (1, [], {"a1": 3, "a2": 2}),  # where was it?
        (5, [], {"a1": 1}),  # all but one that runs on
        (4, [], {"a1": 1}),
    ],
)
def test_pods_that_have_ended_free_what_they_were_assigned(tmp_path, reclaimable, seen, taken):
    status = admitted(domains({"a1": 3, "a2": 2}))
    status["reclaimablePods"] = [{"name": "main", "count": reclaimable}]
    pods = [of_job("run", 0, "a1")]
    pods += [of_job("run", k, host, 1, "Succeeded") for k, host in enumerate(seen, 1)]
    snapshot = snapshot_of(tmp_path, workload("run", 5, status=status), *pods)
    assert gpus_of(snapshot) == {"ns/run": taken}


@pytest.mark.parametrize("pods", [[], [None], ["a1"]])
def test_an_assignment_made_after_some_pods_had_ended_is_of_the_others(tmp_path, pods):
    """The Workload was admitted again: the pod that has ended was elsewhere."""
    status = admitted(domains({"a1": 1})) | {"reclaimablePods": [{"name": "main", "count": 1}]}
    own = [of_job("run", 0, "a1", 1, "Succeeded"), *(of_job("run", 1, on) for on in pods)]
    snapshot = snapshot_of(tmp_path, workload("run", 2, status=status), *own)
    assert gpus_of(snapshot) == {"ns/run": {"a1": 1}}


def test_pods_on_other_nodes_than_assigned(tmp_path):
    """All have a node: nothing is to come. As long as one has none, the assignment counts too."""
    own = workload("run", 2, status=admitted(domains({"a1": 2})))
    pods = [of_job("run", 0, "a1"), of_job("run", 1, "b1")]
    assert gpus_of(snapshot_of(tmp_path, own, *pods)) == {"ns/run": {"a1": 1, "b1": 1}}
    assert gpus_of(snapshot_of(tmp_path, own, pods[1])) == {"ns/run": {"a1": 2, "b1": 1}}


def named(own: dict[str, Any], name: str, *owners: tuple[str, str]) -> dict[str, Any]:
    refs = [{"kind": kind, "name": owner, "controller": True} for kind, owner in owners]
    own["metadata"] |= {"name": name, "ownerReferences": refs}
    return own


def test_pods_are_those_of_their_workload_whatever_its_job_is_called(tmp_path):
    """A group of pods, pods of a Deployment, and groups of a LeaderWorkerSet."""
    status = admitted(domains({"b2": 2}))
    group = {"labels": {f"{KUEUE}/pod-group-name": "g"}}
    items = [named(workload("g", 2, status=status), "g", ("Pod", "g-0"), ("Pod", "g-1"))]
    items += [pod("g-0", "b2", **group), pod("g-1", None, 1, "Pending", **group)]
    rs = {"ownerReferences": [{"kind": "ReplicaSet", "name": "rs", "controller": True}]}
    for name, on in (("d1", "a1"), ("d2", None)):
        own = workload(name, 1, status=admitted(domains({"a1": 1})))
        items += [named(own, f"pod-{name}", ("Pod", name)), pod(name, on, **rs)]
    lws = "leaderworkerset.sigs.k8s.io"
    for idx, host in enumerate(("b2", "a2")):
        own = workload("l", 2, status=admitted(domains({host: 2})))
        items.append(named(own, f"lws-{idx}-x", ("LeaderWorkerSet", "lws")))
        notes = {f"{KUEUE}/workload": f"lws-{idx}-x"}
        labels = {f"{lws}/name": "lws", f"{lws}/group-index": str(idx)}
        items.append(pod(f"lws-{idx}-0", host, labels=labels, annotations=notes))
        items.append(pod(f"lws-{idx}-1", None, labels=labels, annotations=notes))
    snapshot = snapshot_of(tmp_path, *items)
    total: Counter[str] = Counter()
    for own in gpus_of(snapshot).values():
        total.update(own)
    assert total == {"b2": 4, "a1": 2, "a2": 2}
    assert snapshot.queue == []


def test_a_job_set_that_is_assigned_keeps_others_from_its_domain(tmp_path):
    running = named(
        workload("js", 1, status=admitted(domains({"a1": 1}))), "jobset-js", ("JobSet", "js")
    )
    waits = job_set()
    waits["metadata"] |= {"name": "other"}
    waits["spec"]["replicatedJobs"] = waits["spec"]["replicatedJobs"][1:]
    for own in waits["spec"]["replicatedJobs"]:
        meta = own["template"]["spec"]["template"]["metadata"]
        meta["annotations"] = {"alpha.jobset.sigs.k8s.io/exclusive-topology": RACK}
    snapshot = snapshot_of(tmp_path, running, waits)
    (one,) = snapshot.running
    assert one.apart is not None
    assert [(own.level, own.name) for own in one.apart] == [(RACK, "jobsets")]


def test_pods_without_a_domain_wait_beside_those_that_have_one(tmp_path):
    own = workload("z", 2, status=admitted(domains({"b2": 2})))
    own["spec"]["podSets"].append({"name": "aux", "count": 1, "template": template()})
    aux = of_job("z", 9, None, 1, "Pending")
    aux["metadata"]["labels"][f"{KUEUE}/podset"] = "aux"
    snapshot = snapshot_of(tmp_path, own, aux)
    assert gpus_of(snapshot) == {"ns/z": {"b2": 2}}
    assert [(one.id, one.nodes) for one in snapshot.queue] == [("ns/z#waits", 1)]


def test_a_domain_of_several_hosts_holds_who_may_be_there(tmp_path):
    rack = {"levels": [RACK], "domains": [{"values": ["r1"], "count": 3}]}
    own = workload("run", 3, status=admitted(rack))
    pods = [of_job("run", k, on) for k, on in enumerate(["a1", "a1", "a2"])]
    far = workload("far", 1)
    far["spec"]["podSets"][0]["template"]["spec"]["nodeSelector"] = {RACK: "r2"}
    others = [workload("w", 2), far]
    snapshot = snapshot_of(tmp_path, own, *pods[:2], *others)
    assert {name: [one.option for one in own] for name, own in holds_of(snapshot).items()} == {
        "ns/w": ["assignment"]
    }
    text = "1 pod of ns/run in r1, on no node yet"
    assert {(one.request, one.value) for one in snapshot.left_out if one.option != "order"} == {
        ("ns/w", text),
        (None, text),
    }
    assert holds_of(snapshot_of(tmp_path, own, *pods, *others)) == {}


@pytest.mark.parametrize(
    ("assignment", "said"),
    [
        ({"levels": [HOST]}, "expected domains or slices, found neither"),
        ({"levels": [RACK, HOST], "domains": [{"values": ["a1"], "count": 1}]}, "2 values"),
        (
            slices({"a1": 1, "a2": 2}) | {"levels": [HOST]},
            "expected 1 value, found 'r1, a1'",
        ),
    ],
)
def test_an_assignment_that_cannot_be_read_is_named(tmp_path, capsys, assignment, said):
    path = written(tmp_path, workload("run", 2, status=admitted(assignment)))
    assert run(["place", str(path)]) == 2
    error = " ".join(capsys.readouterr().err.split())
    assert said in error
    assert "status.admission.podSetAssignments[0].topologyAssignment" in error


# ---- Audits --------------------------------------------------------------------------------------


def audited(folder: Path, before: list[Any], after: list[Any], order: str | None = None) -> Any:
    one = written(folder, *before, name="before.json")
    return tp.audit(one, after=written(folder, *after, name="after.json"), order=order)


@pytest.mark.parametrize("there", range(5))
def test_audits_judge_the_assignment(tmp_path, there):
    """However many of the pods are there, the verdict is that of all of them."""
    others = [of_job("old", k, host, 2) for k, host in enumerate(["a1", "a2"])]
    waits = [workload("w", 4), workload("x", 17)]
    good = workload("w", 4, status=admitted(domains({"b2": 4}, (RACK, HOST))))
    bad = workload("w", 4, status=admitted(slices({"a1": 2, "a2": 2})))
    for started, verdict in ((good, "optimal"), (bad, "suboptimal")):
        places = ["b2"] * 4 if started is good else ["a1", "a1", "a2", "a2"]
        pods = [of_job("w", k, host) for k, host in enumerate(places[:there])]
        pods += [of_job("w", k, None, 1, "Pending") for k in range(there, 3)]
        found = audited(tmp_path, [*others, *waits], [*others, started, *pods, waits[1]])
        (row,) = found.rows
        assert row.verdict == verdict
        assert not any("withdrawn" in note for note in found.notes)


def of_podsets(name: str, counts: dict[str, int], group: str | None = None) -> dict[str, Any]:
    """Return a Workload of podsets that ask for one rack, together if they are a group."""
    own = workload(name, 1)
    asked = {"required": RACK} | ({} if group is None else {"podSetGroupName": group})
    one = own["spec"]["podSets"][0]
    own["spec"]["podSets"] = [
        one | {"name": podset, "count": count, "topologyRequest": asked}
        for podset, count in counts.items()
    ]
    return own


def given(own: dict[str, Any], **hosts: dict[str, int]) -> dict[str, Any]:
    each = [{"name": k, "topologyAssignment": domains(v)} for k, v in hosts.items()]
    return own | {"status": {"admission": {"clusterQueue": "q", "podSetAssignments": each}}}


@pytest.mark.parametrize("group", [None, "g"])
@pytest.mark.parametrize("there", range(4))
def test_audits_judge_each_podset_of_an_admission(tmp_path, group, there):
    """A leader and its workers are alike, and which pods are whose is known all the same."""
    own = of_podsets("w", {"leader": 1, "worker": 2}, group)
    for lead, work, verdict in (
        ("b1", {"b1": 2}, "optimal"),
        ("b1", {"b1": 1, "b2": 1}, "suboptimal"),
        ("a1", {"b1": 1, "b2": 1}, "suboptimal" if group is None else "invalid"),
        ("b1", {"a1": 1, "b2": 1}, "invalid"),
    ):
        pods = [of_job("w", 0, lead)]
        pods += [of_job("w", k, host) for k, host in enumerate(Counter(work).elements(), 1)]
        for k, one in enumerate(pods):
            one["metadata"]["labels"][f"{KUEUE}/podset"] = "worker" if k else "leader"
        started = given(own, leader={lead: 1}, worker=work)
        (row,) = audited(tmp_path, [own], [started, *pods[:there]]).rows
        assert row.verdict == verdict


def test_podsets_whose_pods_do_not_say_their_own_are_counted_together(tmp_path):
    own = given(of_podsets("w", {"a": 1, "b": 2}), a={"a1": 1}, b={"a1": 1, "a2": 1})
    unnamed = of_job("w", 0, "a1")
    del unnamed["metadata"]["labels"][f"{KUEUE}/podset"]
    assert gpus_of(snapshot_of(tmp_path, own, unnamed)) == {"ns/w": {"a1": 2, "a2": 1}}


@pytest.mark.parametrize("order", [None, "priority"])
@pytest.mark.parametrize("form", ["admitted", "running"])
def test_audits_say_that_a_node_is_not_in_the_file(tmp_path, form, order):
    after = [workload("w", 2, status=admitted(domains({"a1": 1, "z9": 1})))]
    if form == "running":
        after = [of_job("w", 0, "z9"), of_job("w", 1, "a1")]
    both = [workload("w", 2), workload("x", 1)], [*after, workload("x", 1)]
    found = audited(tmp_path, *both, order=order)
    row = found.rows[-1]
    assert row.verdict == "unjudged"
    assert "on z9, not in the file" in row.why
    assert not any("withdrawn" in note for note in found.notes)


@pytest.mark.parametrize("order", [None, "priority"])
def test_an_assignment_of_more_than_a_node_has_is_invalid(tmp_path, order):
    after = [workload("w", 6, status=admitted(domains({"a1": 6})))]
    both = [workload("w", 6), workload("x", 2)], [*after, workload("x", 2)]
    row, *others = audited(tmp_path, *both, order=order).rows
    assert (row.verdict, row.outcome) == ("invalid", "started")
    assert row.why.endswith("6 of nvidia.com/gpu on a1, which has 4")
    assert [one.verdict for one in others] == (["unjudged"] if order else [])


def test_who_may_have_come_later_is_no_fault_of_who_started(tmp_path):
    """Two jobs have too much of a node together: one that waited, and one that no file had."""
    old, own = of_job("old", 0, "a1", 3), workload("w", 2, status=admitted(domains({"a1": 2})))
    (row,) = audited(tmp_path, [old, workload("w", 2)], [old, own]).rows
    assert row.verdict == "invalid"
    assert row.why == "ns/w: 5 of nvidia.com/gpu on a1 with ns/old, which has 4"
    (row,) = audited(tmp_path, [workload("w", 2)], [old, own]).rows
    assert (row.verdict, list(row.held)) == ("unjudged", ["ns/w"])


def test_audits_of_what_has_no_host_yet_are_refused(tmp_path, capsys):
    rack = {"levels": [RACK], "domains": [{"values": ["r1"], "count": 3}]}
    before = written(tmp_path, workload("w", 3), name="before.json")
    after = written(tmp_path, workload("w", 3, status=admitted(rack)), name="after.json")
    assert run(["audit", str(before), "--after", str(after)]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "3 pods of ns/w in r1, on no node yet" in said


def test_requests_that_are_held_by_an_assignment_can_be_released(tmp_path):
    rack = {"levels": [RACK], "domains": [{"values": ["r1"], "count": 3}]}
    path = written(tmp_path, workload("run", 3, status=admitted(rack)), workload("w", 2))
    for ignored, starts in (((), 0), (("assignment",), 1)):
        result = tp.place(path, ignore=ignored)
        assert result.solution is not None
        assert len(result.solution.placements) == starts
        assert result.check().holds
