"""Recorded decisions of Kueue and Slurm as snapshots: all that are there, and small ones."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import topoplace as tp
from bending import bent
from mistakes import lines_said
from real_files import real_file
from topoplace.formats.decisions import (
    Decided,
    Decision,
    decision_of,
    read_decisions,
    read_lines,
)
from topoplace.snapshot.hierarchy_state import HierarchyState
from topoplace.snapshot.machines import prepare_any

RACK, HOST = "example.com/rack", "kubernetes.io/hostname"


def kueue_line(**more: Any) -> dict[str, Any]:
    """Two racks of two hosts, of which b has one of three units left."""
    nodes = [
        {"name": name, "path": [rack, name], "capacity": 3, "free": free}
        for rack, name, free in (("r1", "a", 3), ("r1", "b", 1), ("r2", "c", 1), ("r2", "d", 3))
    ]
    request = {"count": 4, "mode": "required", "level": RACK, "pod_units": 1}
    line = {"id": "k-1", "kueue": "v0", "levels": [RACK, HOST], "nodes": nodes, "request": request}
    pods = [{"path": ["r1", "a"], "count": 3}, {"path": ["r1", "b"], "count": 1}]
    return line | {"assignment": pods, "truth": {"class": "optimal"}} | more


def slurm_line(**more: Any) -> dict[str, Any]:
    """Three blocks of two nodes, of which one is down and one busy."""
    blocks = [f"BlockName=b{k} Nodes=n{2 * k},n{2 * k + 1}" for k in range(3)]
    line = {
        "config": "X",
        "slurm": "24.11.5",
        "plugin": "topology/block",
        "topology": "\n".join([*blocks, "BlockSizes=2,4", ""]),
        "free": ["n0", "n1", "n2", "n5"],
        "down": ["n3"],
        "busy": ["n4"],
        "request": {"nodes": 3, "segment": None, "options": ""},
        "outcome": "running",
        "chosen": ["n0", "n1", "n2"],
    }
    return line | more


def read(name: str) -> list[tuple[dict[str, Any], Decision, HierarchyState]]:
    found = []
    for _, line, decision in read_lines(real_file(f"{name}/decisions.jsonl")):
        state = prepare_any(decision.snapshot)
        assert isinstance(state, HierarchyState)
        found.append((line, decision, state))
    return found


def domains_used(state: HierarchyState, hosts: set[str]) -> list[int]:
    """By level, how many domains hosts are in."""
    idx = [state.machine.host_names.index(name) for name in hosts]
    return [len(set(domain_of[idx].tolist())) for domain_of in state.machine.domain_of]


# ---- All recorded decisions ----------------------------------------------------------------------


def test_all_decisions_of_kueue():
    """What is free and taken, and how many domains that is, as the recording has counted."""
    decisions = read("kueue_real")
    assert len(decisions) == 137
    for line, decision, state in decisions:
        free = {n["name"]: n["free"] for n in line["nodes"]}
        assert dict(zip(state.machine.host_names, state.free[:, 0].tolist(), strict=True)) == free
        (request,) = state.requests
        podsets = line.get("requests") or [line["request"]]
        assert [part.units for part in request.parts] == [p["count"] for p in podsets]
        assert [part.takes for part in request.parts] == [(p["pod_units"],) for p in podsets]
        truth = line["truth"]
        if decision.taken is None:
            assert decision.outcome is Decided.WAITING
            assert truth["class"].startswith("rejected")
            continue
        assert list(decision.taken) == [p.get("name") for p in podsets]
        units: Counter[str] = Counter()
        for podset, hosts in zip(podsets, decision.taken.values(), strict=True):
            units.update({host: podset["pod_units"] * n for host, n in hosts.items()})
        assert all(units[host] <= free[host] for host in units)
        whole = all(
            sum(hosts.values()) == p["count"]
            for p, hosts in zip(podsets, decision.taken.values(), strict=True)
        )
        assert whole == (truth["class"] != "invalid")
        groups: dict[object, set[str]] = {}
        for part, hosts in zip(request.parts, decision.taken.values(), strict=True):
            groups.setdefault(part.group, set()).update(hosts)
        used = [domains_used(state, hosts) for hosts in groups.values()]
        assert [sum(column) for column in zip(*used, strict=True)] == truth["kueue_domains"]


def test_balanced_decisions_of_kueue():
    """The level that is balanced is the one that the recording has judged."""
    levels = Counter()
    for line, _, state in read("kueue_real"):
        told = line["truth"].get("balance", {}).get("level")
        if told is not None:
            (part,) = state.requests[0].parts
            assert state.machine.levels[part.balance] == told
        levels[told is not None] += sum(p.balance is not None for p in state.requests[0].parts)
    assert levels == {True: 26, False: 5}


def test_all_decisions_of_slurm():
    """Chosen nodes are free, in one domain of the required level, and in whole segments."""
    decisions = read("slurm_block")
    assert len(decisions) == 206
    names = [decision.snapshot.name for _, decision, _ in decisions]
    assert (names[0], names[-1], len({*names})) == ("slurm-A-1", "slurm-T-206", 206)
    for line, decision, state in decisions:
        names = state.machine.host_names
        free = {names[k] for k in state.free[:, 0].nonzero()[0]}
        excluded = line["request"]["options"].partition("--exclude=")[2].split(",")
        assert free == {*line["free"]} - {*excluded}
        assert (decision.taken is not None) == (line["outcome"] == "running")
        if decision.taken is None:
            continue
        (part,) = state.requests[0].parts
        chosen = decision.taken[None]
        assert sum(chosen.values()) == part.units == line["request"]["nodes"]
        assert free.issuperset(chosen)
        if part.required is not None:
            assert domains_used(state, {*chosen})[part.required] == 1
        for level, size in part.segments:
            domain = state.machine.domain_of[level]
            held = Counter(int(domain[names.index(name)]) for name in chosen)
            assert all(count % size == 0 for count in held.values())
        if part.at_most is not None:
            level, most = part.at_most
            assert domains_used(state, {*chosen})[level] <= most
    assert sum(bool(decision.left_out) for _, decision, _ in decisions) == 11


# ---- Small decisions, and what is said of bad ones -----------------------------------------------


def test_a_decision_of_kueue():
    decision = decision_of(kueue_line())
    snapshot = decision.snapshot
    assert [(job.id, job.nodes, job.takes) for job in snapshot.running] == [
        ("used-2", "b,c", {"gpus": 2})
    ]
    assert decision.taken == {None: {"a": 3, "b": 1}}
    assert snapshot.queue[0].required == RACK
    waiting = kueue_line(reason="no room")
    del waiting["assignment"]
    assert decision_of(waiting).outcome is Decided.WAITING


def test_slices_groups_and_balance_of_kueue():
    workers = {
        "name": "workers",
        "count": 4,
        "mode": "preferred",
        "level": RACK,
        "slice_layers": [{"level": RACK, "size": 2}, {"level": HOST, "size": 1}],
        "pod_units": 2,
        "group": "g",
        "balanced": True,
    }
    leader = {"name": "leader", "count": 1, "mode": "unconstrained", "pod_units": 1, "group": "g"}
    line = kueue_line(requests=[leader, workers], reasons={"workers": "no room"})
    del line["request"], line["assignment"]
    decision = decision_of(line)
    assert decision.taken is None
    request = decision.snapshot.queue[0]
    one, other = request.parts
    assert (request.nodes, one.group, other.group) == (5, "g", "g")
    assert (one.balance, other.balance, other.preferred) == (None, HOST, RACK)
    assert [(s.size, s.level) for s in other.segments] == [(2, RACK), (1, HOST)]
    assert other.takes == {"gpus": 2}


@pytest.mark.parametrize(
    ("request_", "fields", "left_out"),
    [
        ({"nodes": 2}, {}, ()),
        ({"nodes": 5}, {}, ()),
        ({"nodes": 4, "segment": 2}, {"segments": [(2, "block")]}, ()),
        ({"nodes": 2, "options": "--exclusive=topo"}, {"exclusive": "block"}, ()),
        (
            {"nodes": 2, "options": "--switches=1 --nodelist=n0"},
            {},
            ("--switches=1", "--nodelist=n0"),
        ),
    ],
)
def test_requests_of_slurm(request_, fields, left_out):
    line = slurm_line(request=request_, outcome="pending", chosen=None)
    decision = decision_of(line)
    asked = decision.snapshot.queue[0]
    found = {name: getattr(asked, name) for name in fields}
    if "segments" in found:
        found["segments"] = [(segment.size, segment.level) for segment in found["segments"]]
    assert (found, decision.left_out) == (fields, left_out)
    assert (decision.outcome, decision.taken) == (Decided.WAITING, None)


def test_a_segment_that_leaves_a_rest():
    line = slurm_line(request={"nodes": 3, "segment": 2}, outcome="rejected", chosen=None)
    decision = decision_of(line)
    assert decision.outcome is Decided.REFUSED
    parts = decision.snapshot.queue[0].parts
    assert [(part.nodes, part.segments[0].size) for part in parts] == [(2, 2), (1, 1)]
    [held] = decision.snapshot.left_out  # which Slurm before 25.05 refuses
    assert held.certain
    assert held.value == "2, which does not divide 3 nodes"
    assert not decision_of(line | {"slurm": "25.05.1"}).snapshot.left_out


def test_what_is_excluded_is_down_and_trees_have_levels():
    line = slurm_line(request={"nodes": 1, "options": "--exclude=n0"}, chosen=["n1"])
    assert decision_of(line).snapshot.down == "n[0,3]"
    switches = "SwitchName=a Nodes=n[0-2]\nSwitchName=b Nodes=n[3-5]\nSwitchName=t Switches=a,b\n"
    tree = slurm_line(plugin="topology/tree", topology=switches)
    tree["request"] = {"nodes": 3, "options": "--switches=1"}
    snapshot = decision_of(tree).snapshot
    assert snapshot.machine.levels == ["leaf", "node"]
    assert snapshot.queue[0].required == "leaf"
    tree["request"]["options"] = "--switches=1@00:00:03"
    assert decision_of(tree).snapshot.queue[0].preferred == "leaf"
    tree["request"]["options"] = "--switches=2"
    at_most = decision_of(tree).snapshot.queue[0].at_most
    assert at_most is not None
    assert (at_most.size, at_most.level) == (2, "leaf")
    tree["request"]["options"] = "--switches=2@00:00:03"
    assert decision_of(tree).left_out == ("--switches=2@00:00:03",)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ("del id", "id: expected a value, found nothing"),
        ("levels = 7", "levels: expected a list, found 7"),
        ('nodes[1].free = "1"', "nodes[1].free: expected an integer, found '1'"),
        ("nodes[1].free = 4", "nodes[1].free: expected at most the capacity, 3, found 4"),
        ('nodes[1].path = ["r1"]', "nodes[1].path: expected 2 values, one for each level"),
        ('nodes[1].path = ["r1", "x"]', "nodes[1].path: expected the name of the node, b, last"),
        (
            "nodes[1] = @nodes[0]",
            "nodes[1].name: expected each node once (it stands at nodes[0] too)",
        ),
        ("del request", "request: expected either request or requests, found neither"),
        ('request.mode = "some"', "request.mode: expected one of required, preferred"),
        ('request.level = "rock"', "request: expected one of example.com/rack"),
        ('request.mode = "unconstrained"', "request.level: expected no level"),
        ("del request.level", "request.level: expected a level, as it is required"),
        ("request.slice_size = 2", "request.slice_size: expected both slice_size and slice_level"),
        (
            'request.slice_size = 3 & request.slice_level = "example.com/rack"',
            "queue[0].segments[0].size: expected a divisor of the 4 units, found 3",
        ),
        ('assignment[1].path = ["r2", "b"]', "assignment[1].path: expected the path of a node"),
        ("assignment[1].path = @assignment[0].path", "assignment[1].path: expected each node once"),
        ("assignment[1].count = 0", "assignment[1].count: expected an integer of at least 1"),
        ("del kueue", "expected a decision, with the version of kueue, slurm or pod, found none"),
    ],
)
def test_bad_decisions_of_kueue(changes, said):
    assert lines_said(decision_of, bent(kueue_line(), changes))[0].startswith(said)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ('plugin = "topology/ring"', "plugin: expected one of topology/block, topology/tree"),
        ('plugin = "topology/tree"', "topology: expected the switches of topology/tree, found 'Bl"),
        ('topology = "BlockName=b Nodes=n[1"', "topology, line 1, block b: expected a host list"),
        ('topology = ""', "topology: expected at least one line SwitchName="),
        ("free[0] = 1", "free[0]: expected text, found 1"),
        ('free[0] = "n1"', "free[1]: expected each node once, found 'n1'"),
        ('free[0] = "m1"', "free[0]: expected nodes of the topology, found 'm1'"),
        ("del free[0]", "free: expected every node in free, down or busy, found 'n0'"),
        ("request.nodes = 0", "request.nodes: expected an integer of at least 1, found 0"),
        ("request.segment = 2", "request.segment: expected a segment that divides the 3 nodes"),
        ('outcome = "done"', "outcome: expected one of running, pending, rejected, found 'done'"),
        ('chosen[1] = "n0"', "chosen[1]: expected each node once, found 'n0'"),
        ('chosen[1] = "x"', "chosen[1]: expected nodes of the topology, found 'x'"),
    ],
)
def test_bad_decisions_of_slurm(changes, said):
    assert lines_said(decision_of, bent(slurm_line(), changes))[0].startswith(said)


def pod_line(**more: Any) -> dict[str, Any]:
    line = {"id": "p", "pod": "v1", "cubes": 2, "request": {"nodes": 8}, "outcome": "pending"}
    return line | more


@pytest.mark.parametrize(
    ("line", "left_out", "unknown"),
    [
        (kueue_line(note="n", usage_by="pods"), (), ()),
        (kueue_line(when="now"), (), ("when",)),
        (bent(kueue_line(), 'request.pool = "x"'), ("request.pool=x",), ()),
        (bent(kueue_line(), 'request.pool = ""'), (), ()),
        (bent(kueue_line(), "request.nodes_of = {}"), (), ()),
        (bent(kueue_line(), "nodes[1].tainted = true"), ("nodes[].tainted=True",), ()),
        (slurm_line(reason="Resources"), (), ()),
        (slurm_line(partition="acc"), (), ("partition",)),
        (bent(slurm_line(), 'request.features = ["a"]'), ("request.features=a",), ()),
        (pod_line(), (), ()),
        (bent(pod_line(), "request.rings = 2 & seen = 1"), ("request.rings=2",), ("seen",)),
    ],
)
def test_fields_that_no_table_knows_are_not_dropped(line, left_out, unknown):
    decision = decision_of(line)
    assert (decision.left_out, decision.unknown) == (left_out, unknown)


def test_an_unknown_field_of_the_request_leaves_a_decision_unjudged(tmp_path: Path):
    """A request that fits and waits is missed, unless it asks for what is not known."""
    waits = bent(kueue_line(), "del assignment")
    lines = [waits, bent(waits, 'request.pool = "x" & when = "now"')]
    path = tmp_path / "decisions.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    found = tp.audit(path)
    assert [str(row.verdict) for row in found.rows] == ["missed", "unjudged"]
    assert "not said: request.pool=x" in found.rows[1].why
    assert "fields that are not known, and not read: when" in found.notes


def test_bad_files_of_decisions(tmp_path: Path):
    path = tmp_path / "decisions.jsonl"

    def said(text: str) -> str:
        path.write_text(text)
        return lines_said(lambda: [*read_decisions(path)])[0]

    good = json.dumps(kueue_line())
    assert said(f"{good}\n\n{good[:-9]}\n").startswith(
        f"{path}: line 3: expected a JSON document ("
    )
    assert said(f"{good}\n[]\n") == f"{path}: line 2: expected a JSON object, found []"
    assert said('{"kueue": "v0"}').startswith(
        f"{path}: line 1, id: expected a value, found nothing"
    )
    assert said(good.replace('"id"', '"id": "k", "id"')).endswith("not id twice)")
