"""Other tools' files and folders at every door: commands and functions read them as they are."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import threading
from pathlib import Path

import pytest
import yaml

import topoplace as tp
from mistakes import lines_said
from topoplace.cli import run
from topoplace.snapshot.schema import Snapshot

ZONE, RACK, HOST = "topology.kubernetes.io/zone", "example.com/rack", "kubernetes.io/hostname"

TOPOLOGY = """\
SwitchName=s0 Nodes=n[0-3]
SwitchName=s1 Nodes=n[4-7]
SwitchName=top Switches=s[0-1]
"""
NODES = "".join(f"NodeName=n{k} State=IDLE Partitions=all\n" for k in range(8))
PARTITIONS = "PartitionName=all Nodes=n[0-7] State=UP MaxNodes=UNLIMITED MaxTime=UNLIMITED\n"
RESERVATIONS = "No reservations in the system\n"
HEADER = "JOBID|STATE|NODES|NODELIST|COMMENT|PRIORITY|TIME_LIMIT|START_TIME|SUBMIT_TIME"


def jobs_text(*, started: bool) -> str:
    """Return squeue's listing: job 1 runs, job 2 waits, or runs as well."""
    own = "RUNNING|3|n[4-6]" if started else "PENDING|3|"
    rest = "(null)|10|1:00:00|N/A|2026-03-01T10:00:00"
    return f"{HEADER}\n1|RUNNING|2|n[0-1]|{rest}\n2|{own}|{rest}\n"


def slurm_folder(folder: Path, *, started: bool = False) -> Path:
    """Write what Slurm's tools print into a folder."""
    folder.mkdir()
    (folder / "topology.conf").write_text(TOPOLOGY)
    (folder / "nodes.txt").write_text(NODES.replace("n0 State=IDLE", "n0 State=ALLOCATED"))
    (folder / "squeue.txt").write_text(jobs_text(started=started))
    (folder / "partitions.txt").write_text(PARTITIONS)
    (folder / "reservations.txt").write_text(RESERVATIONS)
    return folder


def kube_objects(*, started: bool = False, topology: bool = True) -> dict[str, object]:
    """Return what kubectl prints of four hosts in three racks, and of a job of two pods."""
    at = {"a1": ("z1", "r1"), "a2": ("z1", "r1"), "b1": ("z1", "r2"), "c1": ("z2", "r3")}
    items: list[dict[str, object]] = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {ZONE: zone, RACK: rack, HOST: name, "os": "x"}},
            "status": {"allocatable": {"pods": 10, "example.com/gpu": 1}},
        }
        for name, (zone, rack) in at.items()
    ]
    if topology:
        levels = [{"nodeLabel": label} for label in (ZONE, RACK, HOST)]
        meta = {"name": "default"}
        kind = {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "Topology"}
        items.append({**kind, "metadata": meta, "spec": {"levels": levels}})
    spec: dict[str, object] = {
        "containers": [{"name": "main", "resources": {"requests": {"example.com/gpu": 1}}}]
    }
    rules = {"kueue.x-k8s.io/podset-required-topology": RACK}
    labels = {"kueue.x-k8s.io/queue-name": "main"}
    template = {"metadata": {"annotations": rules}, "spec": spec}
    own = {"parallelism": 2, "completions": 2, "suspend": not started, "template": template}
    meta = {"name": "train", "namespace": "ns", "labels": labels}
    items.append({"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": own})
    owner = {"kind": "Job", "name": "train", "controller": True}
    for k, host in enumerate(("a1", "a2") if started else ()):
        meta = {"name": f"train-{k}", "namespace": "ns", "ownerReferences": [owner]}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "status": {"phase": "Running"}}
        items.append(pod | {"spec": spec | {"nodeName": host}})
    return {"apiVersion": "v1", "kind": "List", "items": items}


def kube_file(path: Path, *, started: bool = False, topology: bool = True) -> Path:
    """Write them as YAML, or as JSON."""
    objects = kube_objects(started=started, topology=topology)
    text = json.dumps(objects) if path.suffix == ".json" else yaml.safe_dump(objects)
    path.write_text(text)
    return path


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change into a folder with a state of each form, before and after a decision."""
    slurm_folder(tmp_path / "slurm")
    slurm_folder(tmp_path / "slurm-after", started=True)
    kube_file(tmp_path / "kube.yaml")
    kube_file(tmp_path / "kube-after.yaml", started=True)
    kube_file(tmp_path / "kube.json")
    kube_file(tmp_path / "kube-after.json", started=True)
    kube_file(tmp_path / "bare.yaml", topology=False)
    kube_file(tmp_path / "bare-after.yaml", started=True, topology=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


FORMS = [
    ("slurm", "slurm-after", ""),
    ("kube.yaml", "kube-after.yaml", ""),
    ("kube.json", "kube-after.json", ""),
    ("bare.yaml", "bare-after.yaml", ":zone,rack,host"),
]


@pytest.mark.parametrize(("before", "after", "part"), FORMS)
def test_every_command_reads_it(before: str, after: str, part: str, here: Path) -> None:
    """One reading for all: no door refuses what another one takes."""
    state = f"{before}{part}"
    assert run(["place", state, "-o", "r.json"]) == 0
    assert run(["check", "r.json", "--instance", state]) == 0
    assert run(["check", "r.json", "--instance", f"{after}{part}"]) == 5
    assert run(["compare", state, "r.json", "--methods", "first-fit"]) == 0
    assert run(["whatif", state, "--add-down", "n7" if before == "slurm" else "c1"]) == 0
    assert run(["batch", state, "-o", "out", "--jobs", "1"]) == 0
    assert run(["audit", state, "--after", f"{after}{part}"]) == 0
    assert run(["map", "--grid", "3" if before == "slurm" else "2", "--on", state]) == 0
    job = "2" if before == "slurm" else "ns/train"
    assert run(["repack", state, "--start", job, "-o", "plan.json"]) == 0
    assert run(["check", "plan.json"]) == 0


@pytest.mark.parametrize(("before", "after", "part"), FORMS)
def test_python_reads_it(before: str, after: str, part: str, here: Path) -> None:
    state = f"{before}{part}"
    model = tp.load(state)
    assert isinstance(model, tp.Model)
    found = tp.place(Path(state))
    assert found.levels[0].objective == tp.place(state).levels[0].objective
    assert found.levels[0].objective == tp.place(model).levels[0].objective > 0
    assert tp.compare(state, methods=["first-fit"]).rows[0].instance == model.snapshot.name
    verdicts = {row.verdict for row in tp.audit(state, after=f"{after}{part}").rows}
    assert verdicts == {"optimal"}
    assert tp.topology(state).num_ranks > 1
    assert len(tp.whatif(state, [{"without_job": found.instance.queue[0].id}]).scenarios) == 2
    assert tp.repack(state, start=[found.instance.queue[0].id]).check().holds


def test_a_folder_of_them(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder has documents of ours, YAML of Kubernetes and folders of Slurm side by side."""
    for name in ("bare.yaml", "bare-after.yaml", "kube.json", "kube-after.json"):
        (here / name).unlink()
    (here / "values.yaml").write_text("replicas: 3\n")  # of no known tool
    (here / "own.json").write_text(tp.load("slurm").snapshot.model_dump_json())
    assert run(["batch", ".", "-o", "out", "--jobs", "1"]) == 0
    table = (here / "out" / "table.csv").read_text().splitlines()
    files = [line.partition(",")[0] for line in table[1:]]
    assert files == ["kube-after.yaml", "kube.yaml", "own.json", "slurm", "slurm-after"]
    shutil.rmtree("out")
    assert run(["compare", ".", "--methods", "first-fit"]) == 0
    said = capsys.readouterr().out
    assert all(name in said for name in ("kube-after", "slurm-after"))


def test_labels_in_place_of_a_topology(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected = (
        "bare.yaml: expected a Topology of Kueue or KAI, HyperNodes of Volcano, or "
        "labels of nodes, "
        f"as FILE:{ZONE},{RACK}, found none of these"
    )
    assert lines_said(tp.load, "bare.yaml") == [expected]
    machine = tp.load(f"bare.yaml:{ZONE},rack").snapshot.machine
    assert machine == tp.load("bare.yaml:zone,rack,host").snapshot.machine
    assert machine.levels == [ZONE, RACK, HOST]
    assert run(["place", "bare.yaml", "--levels", "zone,rack,host", "-o", "r.json"]) == 0
    assert run(["convert", "bare.yaml", "--from", "kubernetes", "--levels", "rack", "-o", "n"]) == 0
    assert json.loads(Path("n").read_text())["machine"]["levels"] == [RACK, HOST]
    capsys.readouterr()
    for part, said in {
        "rack,shelf": "--levels: expected a label of nodes, found 'shelf'",
        "rack,rack": "--levels: expected each label once, found 'rack'",
        "host,rack": "--levels: expected the hosts as the last level, found 'host,rack'",
    }.items():
        assert run(["place", f"bare.yaml:{part}"]) == 2
        assert capsys.readouterr().err == f"topoplace: error: bare.yaml: {said}\n"
    assert run(["place", "kube.yaml:other"]) == 2
    assert "expected one of default, found 'other'" in capsys.readouterr().err


def test_a_pipe_is_read_once(here: Path) -> None:
    os.mkfifo("pipe")
    text = (here / "kube.yaml").read_text()
    writer = threading.Thread(target=Path("pipe").write_text, args=(text,))
    writer.start()
    assert isinstance(tp.load("pipe"), tp.Model)
    writer.join()


def test_names(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A snapshot is called as told, or else as what it is written to."""
    convert = ["convert", "slurm", "--from", "slurm"]
    assert run([*convert, "-o", "monday.json"]) == 0
    assert Snapshot.model_validate_json(Path("monday.json").read_text()).name == "monday"
    assert run([*convert, "-o", "monday.json", "--name", "week-1"]) == 0
    assert Snapshot.model_validate_json(Path("monday.json").read_text()).name == "week-1"
    assert run(["convert", "slurm/topology.conf", "--from", "slurm-topology", "--name", "t"]) == 0
    capsys.readouterr()
    assert run([*convert, "--name", "a b"]) == 2
    assert capsys.readouterr().err.startswith("topoplace: error: --name: expected a name of up to")
    assert tp.load("slurm").snapshot.name == "slurm"


# ---- The tools of a scheduler, called ------------------------------------------------------------

STAND_IN = """#!/bin/sh
case "$*" in
{cases}
*) echo "what is $*?" >&2; exit 9;;
esac
"""


def stand_in(path: Path, answers: dict[str, str]) -> str:
    """Write a program that prints a file for each of some arguments."""
    cases = "\n".join(f"'{asked}') {answer};;" for asked, answer in answers.items())
    path.write_text(STAND_IN.format(cases=cases))
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def tools(here: Path) -> list[str]:
    """Write stand-ins of scontrol, squeue and kubectl; return the options that name them."""
    slurm = {
        "show topology": "cat slurm/topology.conf",
        "show node -o": "cat slurm/nodes.txt",
        "show partition -o": "cat slurm/partitions.txt",
        "show reservation -o": "cat slurm/reservations.txt",
        "show job -o": "cat jobs.txt",
    }
    entries = [
        "pods po v1 true Pod",
        "nodes no v1 false Node",
        "secrets v1 true Secret",
        "jobs batch/v1 true Job",
        "topologies kueue.x-k8s.io/v1beta1 false Topology",
    ]
    kinds = "pods,nodes,jobs.batch,topologies.kueue.x-k8s.io"
    kube = {
        "api-resources --verbs=list --no-headers": f"printf '%s\\n' {' '.join(map(repr, entries))}",
        f"get {kinds} -A -o json": "cat kube.json",
    }
    (here / "jobs.txt").write_text(
        "JobId=2 JobState=PENDING Priority=10 NumNodes=3 NodeList= TimeLimit=01:00:00 "
        "SubmitTime=2026-03-01T10:00:00 StartTime=Unknown Partition=all Reason=None\n"
    )
    no_json = {"--all --json": "echo 'squeue: unrecognized option --json' >&2; exit 1"}
    scontrol = stand_in(here / "my-scontrol", slurm)
    squeue = stand_in(here / "my-squeue", no_json)
    kubectl = stand_in(here / "my-kubectl", kube)
    return ["--scontrol", scontrol, "--squeue", squeue, "--kubectl", kubectl]


def test_snapshot_of_slurm(tools: list[str], here: Path) -> None:
    assert run(["snapshot", "--slurm", *tools, "-o", "now.json", "--keep", "kept"]) == 0
    taken = Snapshot.model_validate_json((here / "now.json").read_text())
    assert (taken.name, [request.id for request in taken.queue]) == ("now", ["2"])
    assert tp.load("kept").snapshot.queue == taken.queue
    model = tp.live_snapshot(slurm=True, scontrol=tools[1], squeue=tools[3], name="here")
    assert (model.snapshot.name, model.snapshot.queue) == ("here", taken.queue)


def test_snapshot_of_a_slurm_without_topology(tools: list[str], here: Path) -> None:
    said = "echo 'scontrol: error: No topology information available' >&2; exit 1"
    answers = {"show node -o": "cat slurm/nodes.txt", "show topology": said}
    answers["show partition -o"] = "cat slurm/partitions.txt"
    answers["show reservation -o"] = "cat slurm/reservations.txt"
    answers["show job -o"] = "echo 'No jobs in the system'"
    tools[1] = stand_in(here / "flat-scontrol", answers)
    assert run(["snapshot", "--slurm", *tools, "-o", "now.json"]) == 0
    taken = Snapshot.model_validate_json((here / "now.json").read_text())
    assert taken.written.domain_levels == ["node"]


def test_snapshot_of_kubernetes(tools: list[str], here: Path) -> None:
    assert run(["snapshot", "--kube", *tools, "-o", "now.json"]) == 0
    taken = Snapshot.model_validate_json((here / "now.json").read_text())
    assert taken.name == "now"
    assert taken.queue == tp.load("kube.json").snapshot.queue
    assert tp.live_snapshot(kube=True, kubectl=tools[5]).snapshot.queue == taken.queue


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("", "expected --slurm or --kube, found neither"),
        ("--slurm --kube", "expected --slurm or --kube, found both"),
        (
            "--slurm --scontrol ./none",
            "--scontrol: expected a program that can be run (No such file or directory), "
            "found './none'",
        ),
        (
            "--kube --kubectl './my-kubectl --context prod'",
            "--kubectl: expected an answer to ./my-kubectl --context prod api-resources "
            "--verbs=list --no-headers, found exit code 9: 'what is --context prod api-resources "
            "--verbs=list --no-headers?'",
        ),
    ],
)
def test_tools_that_do_not_answer(
    options: str, said: str, tools: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["snapshot", *shlex.split(options)]) == 2
    assert capsys.readouterr().err == f"topoplace: error: {said}\n"
