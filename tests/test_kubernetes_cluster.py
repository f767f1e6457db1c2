"""A Kubernetes cluster of 1,000 nodes with workloads of five kinds is read, placed and judged."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

import topoplace as tp
from kube_cluster import Cluster
from topoplace.formats.kubernetes.snapshots import read_kubernetes
from topoplace.snapshot.held import holds_of
from topoplace.snapshot.schema import Snapshot


def snapshot_of(folder: Path, seed: int, num: int) -> Snapshot:
    path = folder / "now.json"
    path.write_text(json.dumps(Cluster(seed, num).document))
    return read_kubernetes(path)[0]


@pytest.mark.parametrize("seed", [1, 7])
def test_almost_all_workloads_are_modelled(tmp_path: Path, seed: int) -> None:
    snapshot = snapshot_of(tmp_path, seed, 400)
    kinds = Counter(request.id.partition("/")[0] for request in snapshot.queue)
    assert kinds == dict.fromkeys(("default", "lws", "torch", "kai", "kueue"), 80)
    held = holds_of(snapshot)
    assert len(held) <= 8  # 2 %
    assert {one.option for own in held.values() for one in own} <= {"minCount"}
    assert sum(request.eligible is not None for request in snapshot.queue) > 50


@pytest.mark.slow
def test_what_is_placed_is_checked_and_judged(tmp_path: Path) -> None:
    result = tp.place(snapshot_of(tmp_path, 7, 60), time_limit=10)
    assert result.check().holds
    (row,) = tp.audit(result, time_limit=10).rows
    assert row.verdict != "invalid"
