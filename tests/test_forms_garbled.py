"""Other tools' files with random damage are read or refused, and never anything else."""

from __future__ import annotations

import contextlib
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
import test_slices
import test_slurm_blocks
import test_slurm_yaml
from topoplace.errors import InputError
from topoplace.snapshot import load_any, load_machine
from topoplace.snapshot.readers import read_decisions, read_rfold, read_topology_yaml

JUNK = [None, 0, -1, 1 << 70, 1.5, "", "a b", [], {}, [1], {"a": 1}, True, "n[1", "9" * 30]


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
    waiting = test_kubernetes.job("j", 2, test_kubernetes.template(1, required_topology="r"))
    return test_kubernetes.listed(test_kubernetes.pod("p", "a1"), waiting, *items)


VOLCANO = {
    "apiVersion": "v1",
    "kind": "List",
    "items": test_kubernetes.HYPERS + test_kubernetes.NODES,
}
DOCUMENTS: dict[str, Any] = {
    "kueue": kube(test_kubernetes.job_set()),
    "volcano": VOLCANO,
    "slurm": yaml.safe_load(test_slurm_yaml.SEVERAL),
    "torus": yaml.safe_load(test_slurm_yaml.REGIONS),
    "topograph": yaml.safe_load(test_slices.MODEL),
    "scenario": test_slices.scenario(),
    "decision of kueue": test_decisions.kueue_line(),
    "decision of slurm": test_decisions.slurm_line(),
}
TEXTS = {
    "slurm": test_slurm_yaml.SEVERAL,
    "topograph": test_slices.MODEL,
    "blocks": test_slurm_blocks.CONF,
    "shown": test_slurm_blocks.SHOWN,
    "kueue": yaml.safe_dump(DOCUMENTS["kueue"]),
    "trace": test_slices.TRACE,
}


def read_all(path: Path) -> None:
    """Read a file in every way that may suit it; anything but an `InputError` fails."""
    torus = load_machine("torus:4x4x4")
    calls: list[Callable[[], Any]] = [
        lambda: load_machine(str(path)),
        lambda: load_any(path),
        lambda: read_topology_yaml(path, "pod"),
        lambda: [*read_decisions(path)],
        lambda: read_rfold(path, torus),
    ]
    for call in calls:
        with contextlib.suppress(InputError):
            call()


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
