"""Other tools' files with random damage are read or refused, and never anything else."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

import test_decisions
import test_kubernetes
import test_kubernetes_held
import test_slices
import test_slurm_blocks
import test_slurm_yaml
from bending import bent
from mistakes import lines_said
from topoplace.errors import MAX_FAULTS, InputError
from topoplace.formats.decisions import read_decisions
from topoplace.formats.kubernetes.snapshots import read_kubernetes, read_kubernetes_machine
from topoplace.formats.slices import read_rfold, read_slice_scenario
from topoplace.formats.slurm.jobs import read_slurm_jobs
from topoplace.formats.slurm.nodes import read_slurm_nodes
from topoplace.formats.slurm.topology import read_slurm_topology
from topoplace.formats.topograph import read_topograph
from topoplace.snapshot.machines import load_any, load_machine

JUNK = [None, 0, -1, 1 << 70, 1.5, "", "a b", [], {}, [1], {"a": 1}, True, "n[1", "9" * 30]
JUNK += ["\t", "a\nb", "\x00"]
SQUEUE = Path(__file__).resolve().parent / "slurm" / "squeue.json"
Call = Callable[[Path], Any]


def spots(value: Any) -> list[tuple[Any, Any]]:
    """All places of a document: what holds them, and their keys."""
    keys = (
        value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    )
    return [pair for key in keys for pair in ((value, key), *spots(value[key]))]


def changed(document: Any, rng: random.Random) -> Any:
    document = copy.deepcopy(document)
    holder, key = rng.choice(spots(document))
    if rng.random() < 0.3:
        del holder[key]
    else:
        other = rng.choice(spots(document))
        holder[key] = copy.deepcopy(rng.choice([*JUNK, other[0][other[1]]]))
    return document


def garbled(text: str, rng: random.Random) -> str:
    at = rng.randrange(len(text))
    kind = rng.randrange(3)
    if kind == 0:
        return text[:at]
    put = rng.choice("\n\t :-[]{}=,#&*'\"\\%x0") if kind == 1 else ""
    return text[:at] + put + text[at + rng.randint(1, 8) :]


def kube(*items: Any) -> dict[str, Any]:
    own = test_kubernetes.template(1, required_topology=test_kubernetes.RACK, group_name="g")
    waiting = test_kubernetes.job("j", 2, own)
    told = {"labels": {"batch.kubernetes.io/job-name": "k"}}
    pods = test_kubernetes.pod("p", "a1"), test_kubernetes.pod("q", None, phase="Pending", **told)
    return test_kubernetes.listed(*pods, waiting, *items)


VOLCANO = {
    "apiVersion": "v1",
    "kind": "List",
    "items": test_kubernetes.HYPERS + test_kubernetes.NODES,
}
DOCUMENTS: dict[str, Any] = {
    "kueue": kube(test_kubernetes.job_set()),
    "volcano": VOLCANO,
    "kubernetes": test_kubernetes_held.everything(),
    "slurm": yaml.safe_load(test_slurm_yaml.SEVERAL),
    "torus": yaml.safe_load(test_slurm_yaml.REGIONS),
    "topograph": yaml.safe_load(test_slices.MODEL),
    "scenario": test_slices.scenario(),
    "decision of kueue": test_decisions.kueue_line(),
    "decision of slurm": test_decisions.slurm_line(),
    "squeue": json.loads(SQUEUE.read_text()),
}
TEXTS = {
    "slurm": test_slurm_yaml.SEVERAL,
    "topograph": test_slices.MODEL,
    "blocks": test_slurm_blocks.CONF,
    "shown": test_slurm_blocks.SHOWN,
    "kueue": yaml.safe_dump(DOCUMENTS["kueue"]),
    "trace": test_slices.TRACE,
    "squeue": SQUEUE.with_suffix(".txt").read_text(),
    "shown nodes": "NodeName=n1 State=IDLE Reason=a\n\nNodeName=n2 State=DOWN*+DRAIN\n",
    "switches": "SwitchName=s0 Nodes=n[0-3]\n# a line\nSwitchName=top Switches=s0\n",
}


def read_trace(path: Path) -> Any:
    return read_rfold(path, load_machine("torus:4x4x4"))


def read_lines(path: Path) -> Any:
    return [*read_decisions(path)]


YAML_CALLS: list[Call] = [
    lambda path, topology=topology: read_slurm_topology(path, topology)
    for topology in ("switches", "blocks", "rings/r0", "pod")
]
CALLS: dict[str, list[Call]] = {
    "kueue": [read_kubernetes, read_kubernetes_machine],
    "volcano": [read_kubernetes_machine],
    "kubernetes": [read_kubernetes],
    "slurm": YAML_CALLS,
    "torus": [read_slurm_topology],
    "topograph": [read_topograph],
    "scenario": [read_slice_scenario],
    "decision of kueue": [read_lines],
    "decision of slurm": [read_lines],
    "squeue": [read_slurm_jobs],
    "blocks": [read_slurm_topology],
    "shown": [read_slurm_topology],
    "trace": [read_trace],
    "shown nodes": [read_slurm_nodes],
    "switches": [read_slurm_topology],
}
"""What reads a file of a kind."""


def is_refused(call: Call, path: Path) -> bool:
    """Tell whether a file is refused, with a line for each fault that begins with its name."""
    try:
        call(path)
    except InputError as error:
        refusal = error
    else:
        return False
    lines = str(refusal).split("\n")
    assert len(lines) == min(len(refusal.faults), MAX_FAULTS), lines
    assert all(line.startswith(f"{path}: ") and line.isprintable() for line in lines), lines
    return True


def read_all(path: Path) -> None:
    """Read a file in every way that may suit it, and in some that do not."""
    for call in (load_machine, load_any, YAML_CALLS[-1], read_lines, read_trace):
        is_refused(lambda own, call=call: call(str(own)), path)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_changed_documents(tmp_path, name):
    rng = random.Random(name)
    for k in range(12):
        path = tmp_path / f"file{k}"
        document = changed(DOCUMENTS[name], rng)
        path.write_text(yaml.safe_dump(document) if k % 3 == 0 else json.dumps(document))
        read_all(path)


@pytest.mark.parametrize("name", TEXTS)
def test_garbled_texts(tmp_path, name):
    rng = random.Random(name)
    for k in range(12):
        path = tmp_path / f"file{k}"
        path.write_text(garbled(TEXTS[name], rng))
        read_all(path)


# ---- Every place of a document ------------------------------------------------------------------


def written(folder: Path, name: str, document: Any) -> Path:
    """Write a document in its usual form: YAML where Slurm and topograph have YAML."""
    path = folder / "file"
    is_yaml = name in ("slurm", "torus", "topograph")
    path.write_text(yaml.safe_dump(document) if is_yaml else json.dumps(document))
    return path


@pytest.mark.parametrize("junk", [1, pytest.param(len(JUNK), marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_place_left_out_or_wrong(tmp_path, name, junk):
    rng, refused = random.Random(name), 0
    assert not any(is_refused(c, written(tmp_path, name, DOCUMENTS[name])) for c in CALLS[name])
    places = list(range(len(spots(DOCUMENTS[name]))))
    for place in places if junk > 1 else rng.sample(places, min(len(places), 150)):
        for value in [None, *rng.sample(JUNK, junk)]:
            document = copy.deepcopy(DOCUMENTS[name])
            holder, key = spots(document)[place]
            if value is None:
                del holder[key]
            else:
                holder[key] = copy.deepcopy(value)
            path = written(tmp_path, name, document)
            refused += sum(is_refused(call, path) for call in CALLS[name]) > 0
    assert refused > 0.2 * (1 + junk) * min(len(places), 150)


@pytest.mark.parametrize("name", TEXTS)
def test_texts_cut_short_or_with_a_line_too_few_or_many(tmp_path, name):
    text, path = TEXTS[name], tmp_path / "file"
    lines = text.splitlines(keepends=True)
    steps = range(0, len(lines), max(1, len(lines) // 12))
    damaged = [text[:at] for at in range(0, len(text), max(1, len(text) // 40))]
    damaged += ["".join(lines[:k] + lines[k + 1 :]) for k in steps]
    damaged += ["".join(lines[: k + 1] + lines[k:]) for k in steps]
    damaged += ["".join([*lines[:k], "\t", *lines[k:]]) for k in steps]
    damaged += ["", "\n\n", "\t\n", text.replace("\n", "\r\n"), "\ufeff" + text]
    for one in damaged:
        path.write_text(one, newline="")
        sum(is_refused(call, path) for call in CALLS[name])
    for binary in (bytes(range(256)), text.encode() + b"\xff\n", b"PK\x03\x04" + bytes(9)):
        path.write_bytes(binary)
        assert all(is_refused(call, path) for call in CALLS[name])


NONSENSE = {
    ("squeue", "jobs[3].time_limit = {}"): "jobs[3].time_limit.set: expected true or false",
    ("squeue", 'jobs[3].time_limit.set = "yes"'): "jobs[3].time_limit.set: expected true or false",
    ("squeue", "jobs[3].time_limit.infinite = 0"): "time_limit.infinite: expected true or false",
    ("squeue", "del jobs[3].time_limit.number"): "jobs[3].time_limit: expected an integer from 0",
    ("squeue", "jobs[0].comment = []"): "jobs[0].comment: expected text, found []",
    ("kueue", 'items[6].metadata.labels.x = "a b"'): "metadata.labels.x: expected",
    ("kueue", 'items[6].metadata.namespace = "a b"'): "metadata.namespace: expected",
    ("topograph", 'blocks[0].nodes[1] = ""'): "blocks[0].nodes[1]: expected at least one node",
    ("decision of slurm", "del chosen"): "chosen: expected nodes if the outcome is running",
    ("decision of slurm", "chosen = []"): "found 0 of a job that is running",
    ("decision of slurm", 'outcome = "pending"'): "found 3 of a job that is pending",
}
"""By kind and change, what is said of it."""


@pytest.mark.parametrize(("name", "change"), NONSENSE)
def test_nonsense_is_refused(tmp_path, name, change):
    path = written(tmp_path, name, bent(DOCUMENTS[name], change))
    (line,) = lines_said(CALLS[name][0], path)
    assert NONSENSE[name, change] in line
