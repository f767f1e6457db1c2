"""Domains that a running job has for itself: nobody else starts there, and it takes this along."""

from __future__ import annotations

import json
from typing import Any

import pytest

import topoplace as tp
from topoplace.certify import check_document
from topoplace.errors import InputError
from topoplace.result.placement import HierarchyResult
from topoplace.snapshot.schema import SNAPSHOT_SCHEMA, Snapshot

HOSTS = [{"hosts": f"h{k}", "domains": [f"r{k // 2}"], "capacity": {"slots": 1}} for k in range(6)]
MACHINE = {"kind": "hierarchy", "name": "racks", "levels": ["rack", "host"], "hosts": HOSTS}


def snapshot(running: list[dict[str, Any]], queue: list[dict[str, Any]]) -> Snapshot:
    own = {"schema": SNAPSHOT_SCHEMA, "name": "racks", "machine": MACHINE}
    return Snapshot.model_validate(own | {"running": running, "queue": queue})


def test_nobody_starts_beside_it() -> None:
    alone = {"id": "r", "nodes": "h0", "exclusive": "rack"}
    now = snapshot([alone], [{"id": "a", "nodes": 5}, {"id": "b", "nodes": 4}])
    result = tp.place(now)
    assert [one.request for one in result.placements] == ["b"]
    assert result.bound == 4
    assert result.check().verified
    document = json.loads(result.model_dump_json(by_alias=True))
    text = json.dumps(document).replace("h[2-5]", "h[1-4]")
    assert text != json.dumps(document)
    report = check_document(HierarchyResult.model_validate_json(text))
    assert not report.holds


def test_it_takes_this_along_where_it_moves() -> None:
    alone = {"id": "r", "nodes": "h0", "exclusive": "rack"}
    plain = {"id": "s", "nodes": "h2"}
    now = snapshot([alone, plain], [{"id": "a", "nodes": 3}])
    fixed = tp.repack(now, ["a"], fixed=["s"])
    assert fixed.bound == 1
    assert fixed.check().verified  # h3 to h5
    now = snapshot([alone, plain], [{"id": "a", "nodes": 4}])
    result = tp.repack(now, ["a"])
    assert result.bound == 0  # r and s need two racks, and a three
    assert result.check().verified


def test_levels_are_known() -> None:
    with pytest.raises(InputError, match=r"running\[0\].exclusive"):
        tp.place(snapshot([{"id": "r", "nodes": "h0", "exclusive": "row"}], []))
