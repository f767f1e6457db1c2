"""What counts: the value of requests in nodes, GPUs or jobs, from every door, and forged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import topoplace as tp
from kube_cluster import Cluster
from minizinc_cases import needs_minizinc
from topoplace.cli.app import app
from topoplace.errors import InputError
from topoplace.report.view import view_of

Document = dict[str, Any]


def racks(**more: Any) -> Document:
    """Return hosts with GPUs and without, on which the value decides who starts.

    In nodes `wide` starts, in GPUs `deep`, in jobs two small ones; `plain` has no GPUs.
    """
    hosts = [
        {"hosts": "g[1-2]", "domains": ["a"], "capacity": {"vendor.com/gpu": 4, "cpus": 8}},
        {"hosts": "c1", "domains": ["b"], "capacity": {"cpus": 8}},
    ]
    machine = {"kind": "hierarchy", "name": "m", "levels": ["rack", "host"], "hosts": hosts}
    one = {"vendor.com/gpu": 1}
    queue = [
        {"id": "wide", "nodes": 4, "takes": {**one, "cpus": 3}},
        {"id": "deep", "nodes": 2, "takes": {"vendor.com/gpu": 4, "cpus": 1}},
        {"id": "small1", "nodes": 1, "takes": {**one, "cpus": 8}},
        {"id": "small2", "nodes": 1, "takes": {**one, "cpus": 8}},
        {"id": "plain", "nodes": 3, "takes": {"cpus": 2}},
    ]
    named = {"schema": "topoplace.snapshot/1", "name": "counted", "machine": machine}
    return named | {"queue": queue} | more


STARTED = {
    "nodes": {"wide", "plain"},
    "gpus": {"deep", "plain"},
    "jobs": {"small1", "small2", "plain"},
}


@needs_minizinc
def test_the_reference_model_counts_requests_without_gpus_second() -> None:
    best, model = (tp.place(racks(value="gpus"), method) for method in ("exact", "minizinc"))
    assert [v.name for v in model.levels][:2] == ["nodes", "without_gpus"]
    assert [v.objective for v in model.levels] == [v.objective for v in best.levels]


@pytest.mark.parametrize("value", STARTED)
def test_the_value_decides_who_starts(value: str) -> None:
    for result in (tp.place(racks(), value=value), tp.place(racks(value=value))):
        assert view_of(result).started == STARTED[value]
        assert result.check().verified
        label = {"gpus": "GPUs"}.get(value, value)
        assert f"{label} (max)" in str(result)
        for other in STARTED.keys() - {value}:
            forged = result.model_dump(mode="json", by_alias=True)
            forged["instance"]["value"] = other
            assert not tp.check(forged).holds


def test_pods_are_nodes() -> None:
    assert tp.place(racks(), value="pods").instance.value == "nodes"


def test_requests_without_gpus_have_a_level_of_their_own() -> None:
    result = tp.place(racks(value="gpus"))
    assert [(lv.name, lv.objective) for lv in result.levels[:2]] == [
        ("nodes", 8),
        ("without_gpus", 3),
    ]
    said = str(result)
    assert "GPUs started 8 of 14" in said
    assert "units without GPUs (max)" in said
    assert "GPUs started 8 of 14" in " ".join(view_of(result).title())
    fewer = result.model_dump(mode="json", by_alias=True)
    fewer["levels"][1]["bound"] = fewer["levels"][1]["objective"] = 2
    assert not tp.check(fewer).holds
    gone = result.model_dump(mode="json", by_alias=True)
    del gone["levels"][1]
    assert not tp.check(gone).holds


def torus(**more: Any) -> Document:
    """Return a ring on which one large request has more nodes, and two small ones are more jobs."""
    machine = {"kind": "torus", "name": "ring", "shape": [4]}
    sizes = {"large": 4, "one": 1, "two": 2}
    queue = [{"id": name, "nodes": nodes} for name, nodes in sizes.items()]
    return {"schema": "topoplace.snapshot/1", "name": "ring", "machine": machine} | {
        "queue": queue, **more
    }  # fmt: skip


def test_jobs_count_on_every_machine() -> None:
    for machine in (torus()["machine"], "torus:4", "tree:2x2", "cubes:4:1"):
        nodes, jobs = (tp.place(torus(machine=machine), value=v) for v in ("nodes", "jobs"))
        assert (nodes.objective, jobs.objective) == (4, 2), machine
        assert "jobs started 2 of 3" in str(jobs)
        assert jobs.check().verified
    priority = torus()
    priority["queue"][0]["priority"] = 3
    assert view_of(tp.place(priority, value="jobs")).started == {"large"}
    assert "weighted jobs (max)" in str(tp.place(priority, value="jobs"))


def written(folder: Path, document: Document, name: str = "now") -> Path:
    path = folder / f"{name}.json"
    path.write_text(json.dumps(document))
    return path


def test_every_door_takes_it(tmp_path: Path) -> None:
    path, run = written(tmp_path, racks()), CliRunner()
    out = tmp_path / "out.json"
    said = run.invoke(app, ["place", str(path), "--value", "gpus", "-o", str(out)])
    assert said.exit_code == 0, said.output
    assert "GPUs started 8 of 14" in said.output
    assert tp.load(out).instance.value == "gpus"
    table = tp.compare(path, value="jobs", methods=["exact", "first-fit"])
    assert [row.value for row in table.rows] == ["jobs", "jobs"]
    assert "  method     jobs  rack  bound  " in str(table)
    both = tp.compare(path, written(tmp_path, torus(value="jobs"), "ring"), methods=["exact"])
    assert {row.value for row in both.rows} == {"nodes", "jobs"}
    said = run.invoke(app, ["batch", str(path), "-o", str(tmp_path / "b"), "--value", "gpus"])
    assert said.exit_code == 0, said.output
    (own,) = (tmp_path / "b").rglob("*now*.json")
    assert tp.load(own).instance.value == "gpus"
    change = {"with_request": {"id": "x", "nodes": 1, "takes": {"vendor.com/gpu": 4}}}
    scenarios = tp.whatif(path, [change], value="gpus").scenarios
    assert [one.result.objective for one in scenarios] == [8, 8]
    assert tp.frontier(path, levels=("nodes", "host"), value="gpus").check().verified
    plan = tp.repack(torus(running=[{"id": "r", "nodes": "0"}]), defragment=0, value="jobs")
    assert plan.instance.snapshot.value == "jobs"
    assert plan.check().verified


def test_an_audit_asks_for_what_counts(tmp_path: Path) -> None:
    running = [{"id": "deep", "nodes": "g[1-2]", "takes": {"vendor.com/gpu": 4, "cpus": 1}}]
    running += [{"id": "plain", "nodes": "g[1]", "takes": {"cpus": 6}}]
    before = written(tmp_path, racks(), "before")
    left = [one for one in racks()["queue"] if one["id"] not in ("deep", "plain")]
    after = written(tmp_path, racks(running=running, queue=left), "after")
    verdicts = {
        value: tp.audit(before, after=after, value=value).rows[0].verdict for value in STARTED
    }
    assert verdicts["nodes"] == verdicts["jobs"] == "missed"
    assert verdicts["gpus"] in ("optimal", "suboptimal")
    nothing = written(tmp_path, racks(running=running[:1], queue=[*left, racks()["queue"][-1]]))
    (row,) = tp.audit(before, after=nothing, value="gpus").rows
    assert row.verdict == "missed" or row.standing.differs == "without_gpus"


@pytest.mark.parametrize(
    ("document", "options", "said"),
    [
        (torus(), {"value": "gpus"}, "value: expected nodes or jobs, as no host has GPUs"),
        (torus(), {"value": "job"}, "value: expected one of .*did you mean 'jobs'"),
        (torus(), {"value": "jobs", "order": "priority"}, "expected none in the order priority"),
        (torus(value="jobs", order="priority"), {}, "value: expected nodes in the order priority"),
    ],
)
def test_what_means_nothing_is_one_line(document: Document, options: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        tp.place(document, **options)


def test_no_value_is_forged_into_an_order() -> None:
    result = tp.place(torus(), order="priority")
    forged = result.model_dump(mode="json", by_alias=True)
    forged["instance"]["value"] = "jobs"
    assert "where an order decides" in str(tp.check(forged))
    forged = tp.place(torus()).model_dump(mode="json", by_alias=True)
    forged["instance"]["value"] = "gpus"
    assert "without any" in str(tp.check(forged))


def test_gpus_count_on_kubernetes_where_there_are_any(tmp_path: Path) -> None:
    cluster = Cluster(3, 20)
    found = tp.place(written(tmp_path, cluster.document), time_limit=2)
    assert found.instance.value == "gpus"
    assert "GPUs started" in str(found)
    assert found.check().holds
    assert tp.place(tmp_path / "now.json", value="pods", time_limit=1).instance.value == "nodes"
    assert tp.place(tmp_path / "now.json", order="priority", time_limit=1).instance.value == "nodes"
    for one in cluster.objects:
        one.get("status", {}).get("allocatable", {}).pop("nvidia.com/gpu", None)
    assert tp.load(written(tmp_path, cluster.document)).snapshot.value == "nodes"
