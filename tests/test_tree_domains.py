"""Switch trees read as hierarchies: fewest switches, fabrics, and which objective counts."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

import topoplace as tp
from tiny_trees import random_tree
from topoplace.certify.hierarchy.switches import machine_of_switches
from topoplace.cli import run
from topoplace.errors import ExitCode
from topoplace.snapshot.hierarchy_state import hierarchy_of
from topoplace.snapshot.schema import TreeModel, TreeObjective

DOMAINS = TreeObjective.DOMAINS
CHUNKS, PER_CHUNK = 4, 75


def test_both_sides_read_the_same_levels() -> None:
    several = 0
    for k in range(400):
        model = TreeModel.model_validate(random_tree(random.Random(f"levels-{k}")))
        ours, theirs = hierarchy_of(model), machine_of_switches(model)
        assert (ours.levels, ours.fabrics) == (theirs.levels, theirs.fabrics), k
        assert ours.domain_names == theirs.domain_names, k
        assert (ours.domain_of == theirs.domain_of).all(), k
        several += ours.fabrics
    assert 100 < several < 300


# ---- Questions from the field ----------------------------------------------------------------

TEN_LEAVES = "".join(f"SwitchName=l{k} Nodes=c[{20 * k + 1}-{20 * k + 20}]\n" for k in range(10))
TWO_FABRICS = """SwitchName=a Switches=a[1-2]
SwitchName=a1 Nodes=x[1-4]
SwitchName=a2 Nodes=x[5-8]
SwitchName=b Switches=b[1-2]
SwitchName=b1 Nodes=y[1-4]
SwitchName=b2 Nodes=y[5-8]
SwitchName=lone Nodes=z[1-2]
"""
HEADER = "JOBID|STATE|NODES|NODELIST|COMMENT|PRIORITY|TIME_LIMIT|START_TIME|SUBMIT_TIME\n"
HALF_BUSY = "c[1-10,21-30,41-50,61-70,81-90,101-110,121-130]"


def line(job: int, state: str, nodes: int, where: str = "", comment: str = "") -> str:
    start = "2026-11-01T10:00:00" if state == "RUNNING" else "N/A"
    return f"{job}|{state}|{nodes}|{where}|{comment}|9|1:00:00|{start}|2026-11-01T09:00:00\n"


def of_slurm(folder: Path, topology: str, jobs: str, name: str = "now") -> Path:
    """Return the snapshot that `convert` makes of a topology and what squeue prints."""
    (folder / "topology.conf").write_text(topology)
    (folder / "squeue.txt").write_text(HEADER + jobs)
    out = folder / f"{name}.json"
    given = ["--from", "slurm", "--jobs", str(folder / "squeue.txt"), "-o", str(out)]
    assert run(["convert", str(folder / "topology.conf"), *given]) == ExitCode.DONE
    made = json.loads(out.read_text())  # these jobs have nothing that such a listing does not show
    made["left_out"] = [x for x in made.get("left_out", ()) if x["option"] != "not-seen"]
    out.write_text(json.dumps(made))
    return out


def test_a_job_without_a_pattern_takes_three_leaves(tmp_path: Path) -> None:
    jobs = line(1, "RUNNING", 70, HALF_BUSY) + line(2, "PENDING", 60)
    path = of_slurm(tmp_path, TEN_LEAVES + "SwitchName=top Switches=l[0-9]\n", jobs)
    result = tp.place(path)
    assert result.problem == "hierarchy"
    assert [(v.name, v.objective, v.bound) for v in result.levels[:2]] == [
        ("nodes", 60, 60),
        ("leaf", 3, 3),
    ]
    assert [start.hosts for start in result.placements] == ["c[141-200]"]
    assert result.instance.machine.kind == "tree"
    assert result.check().verified
    assert tp.place(path, objective="contention").problem == "allocation"
    by_method = {row.method: row.levels[1].objective for row in tp.compare(
        path, methods=["default", "slurm-tree", "exact"], time_limit=20
    ).rows}  # fmt: skip
    assert by_method == {"default": 6, "slurm-tree": 3, "exact": 3}


def test_patterns_ask_for_contention(tmp_path: Path) -> None:
    jobs = line(1, "RUNNING", 2, "x[7-8]", "pattern=rd") + line(2, "PENDING", 4, "", "pattern=rd")
    path = of_slurm(tmp_path, TWO_FABRICS, jobs)
    assert tp.place(path, "default").problem == "allocation"
    found = tp.place(path, "default", objective="domains")
    assert (found.problem, found.levels[1].name) == ("hierarchy", "leaf")
    with pytest.raises(tp.InputError, match="objective: expected one of"):
        tp.place(path, objective="leaves")
    with pytest.raises(tp.InputError, match="expected a switch tree for domains, found a torus"):
        tp.place("tiny_features", objective="domains")


@pytest.mark.parametrize("objective", list(TreeObjective))
def test_no_job_spans_fabrics(
    objective: TreeObjective, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    jobs = line(1, "RUNNING", 4, "x[7-8],y[7-8]") + line(2, "PENDING", 7) + line(3, "PENDING", 6)
    path = of_slurm(tmp_path, TWO_FABRICS, jobs)
    out = tmp_path / "r.json"
    words = ["place", str(path), "--objective", objective, "--time-limit", "20", "-o", str(out)]
    assert run(words) == ExitCode.DONE
    assert "  2 waits: no fabric has 7 " in capsys.readouterr().out
    assert run(["check", str(out)]) == ExitCode.DONE
    result = tp.load(out)
    assert (result.objective, result.bound, result.proof) == (6, 6, "certificate")
    document = json.loads(out.read_text())
    [own] = next(iter(document["solution"].values()))
    nodes = ["x1", "x2", "x3", "x4", "y5", "y6"]
    if objective is DOMAINS:
        own["parts"][0]["shares"] = [{"hosts": ",".join(nodes), "units": 1}]
        own["nodes"] = ",".join(nodes)
    else:
        own["nodes"] = nodes
    report = tp.check(document)
    assert not report.holds
    said = "several fabric, one is required" if objective is DOMAINS else "without a common switch"
    assert any(said in claim.detail for claim in report.failures)


def test_waiting_for_a_fabric_is_right(tmp_path: Path) -> None:
    busy = line(1, "RUNNING", 4, "x[7-8],y[7-8]")
    before = of_slurm(tmp_path, TWO_FABRICS, busy + line(2, "PENDING", 10), "before")
    after = of_slurm(tmp_path, TWO_FABRICS, busy + line(2, "PENDING", 10), "after")
    [row] = tp.audit(before, after=after).rows
    assert row.verdict == "rightly waiting"
    spans = line(2, "RUNNING", 10, "x[1-6],y[1-4]")
    [row] = tp.audit(before, after=of_slurm(tmp_path, TWO_FABRICS, busy + spans, "spans")).rows
    assert row.verdict == "invalid"
    missed = of_slurm(tmp_path, TWO_FABRICS, busy + line(2, "PENDING", 6), "before")
    [row] = tp.audit(missed, after=missed).rows
    assert row.verdict == "missed"


def test_a_recorded_decision_to_wait_for_a_fabric() -> None:
    nodes = [f"{side}{k}" for side in "xy" for k in range(1, 9)] + ["z1", "z2"]
    busy = ["x7", "x8", "y7", "y8"]
    decision = {
        **{"config": "t", "slurm": "24.11.5", "plugin": "topology/tree", "topology": TWO_FABRICS},
        **{"free": [n for n in nodes if n not in busy], "busy": busy, "down": []},
        **{"request": {"nodes": 7, "segment": None, "options": ""}, "outcome": "pending"},
        "chosen": None,
    }
    [row] = tp.audit(decision).rows
    assert row.verdict == "rightly waiting"


def test_rules_of_hierarchies_on_switches(tmp_path: Path) -> None:
    """Of leaves with 1, 2, 2 and 2 free nodes a job of 5 may not have three, one of 2 takes one."""
    jobs = line(1, "RUNNING", 9, "n[1-3,5-6,9-10,13-14]")
    jobs += line(2, "PENDING", 5) + line(3, "PENDING", 2)
    leaves = "".join(f"SwitchName=l{k} Nodes=n[{4 * k + 1}-{4 * k + 4}]\n" for k in range(4))
    snapshot = tp.load(of_slurm(tmp_path, leaves + "SwitchName=t Switches=l[0-3]\n", jobs)).snapshot
    few = {"at_most": {"size": 2, "level": "leaf"}}
    queue = [{**one.model_dump(mode="json", exclude_none=True), **few} for one in snapshot.queue]
    document = snapshot.model_dump(mode="json") | {"queue": queue}
    result = tp.place(document)
    assert [(start.request, len(start.nodes)) for start in result.placements] == [("3", 2)]
    assert [level.objective for level in result.levels] == [2, 1, 2, 0]
    assert result.check().verified
    with pytest.raises(tp.InputError, match="no at_most on a tree by objective contention"):
        tp.place(document, objective="contention")


def test_switches_that_overlap_are_refused() -> None:
    switches = [{"name": name, "nodes": f"{name}[1-2]"} for name in "abc"]
    switches += [{"name": "u", "switches": "a,b"}, {"name": "v", "switches": "b,c"}]
    machine = {"kind": "tree", "name": "overlap", "switches": switches}
    queue = [{"id": "q", "nodes": 4}, {"id": "p", "nodes": 5}]
    document = {"schema": "topoplace.snapshot/1", "name": "o", "machine": machine, "queue": queue}
    for objective in TreeObjective:
        with pytest.raises(tp.InputError, match="all nodes of one of them or none, found u and v"):
            tp.place(document, objective=objective)


@pytest.mark.usefixtures("batches_here")
def test_other_commands_on_switches(tmp_path: Path) -> None:
    jobs = line(1, "RUNNING", 4, "x[7-8],y[7-8]") + line(2, "PENDING", 5) + line(3, "PENDING", 3)
    path = of_slurm(tmp_path, TWO_FABRICS, jobs)
    curve = tp.frontier(path, ["nodes", "leaf"])
    assert [tuple(point.values[:2]) for point in curve.points] == [(8, 3), (5, 2), (3, 1), (0, 0)]
    assert curve.check().verified
    every = tp.optima(path, 5)
    assert every.complete
    assert every.check().verified
    found = tp.whatif(path, [{"without_job": "1"}])
    assert [one.result.problem for one in found.scenarios] == ["hierarchy"] * 2
    assert [one.result.objective for one in found.scenarios] == [8, 8]
    out = tmp_path / "solved"
    for objective in TreeObjective:
        words = ["batch", str(path), "-o", str(out), "--objective", objective, "--jobs", "1"]
        assert run(words) == ExitCode.DONE
    kinds = {tp.load(file).problem for file in (out / "results").iterdir()}
    assert kinds == {"allocation", "hierarchy"}
    together = tp.compare(out, methods=["default"], time_limit=5)
    assert sorted({(row.problem, row.levels[1].name) for row in together.rows}) == [
        ("allocation", "cost"),
        ("hierarchy", "leaf"),
    ]


def test_replays_count_switches_where_nobody_communicates(tmp_path: Path) -> None:
    log = tmp_path / "log.swf"
    rows = [(1, 0, 100, 3), (2, 1, 100, 4), (3, 2, 100, 3)]
    log.write_text(
        "".join(f"{k} {at} 0 {s} {n} -1 -1 {n} {s}" + " -1" * 9 + "\n" for k, at, s, n in rows)
    )
    out = tmp_path / "o.json"
    common = ["replay", str(log), "--on", "tree:3x4", "--method", "exact", "-o", str(out)]
    assert run([*common, "--intensive", "0"]) == ExitCode.DONE
    assert json.loads(out.read_text())["objective"] == "domains"
    assert run([*common, "--against", "slurm-tree", "--time-limit", "2"]) == ExitCode.DONE
    assert json.loads(out.read_text())["objective"] == "contention"
