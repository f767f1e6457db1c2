"""Named sets of hosts: expressions, what requests may have by them, and partitions of Slurm."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import topoplace as tp
from anchored_cases import AnchoredTiny, random_anchored
from brute_force import best_placement
from few import few_of
from test_slurm_options import NODE, PARTITION, entry, holds, number, snapshot_of
from tiny_instances import tiny_placement, with_sets
from topoplace.certify.report import RefusedError
from topoplace.certify.sets import hosts_of
from topoplace.errors import InputError
from topoplace.machine.hostlist import expand_host_list
from topoplace.placement.hierarchy.view import HierarchyView
from topoplace.report.view import hostlist_text
from topoplace.result import Interference
from topoplace.snapshot.schema import Snapshot
from topoplace.snapshot.sets import nodes_in

NAMES = ("a", "b:1", "c/d=e")


def random_expression(rng: random.Random, depth: int) -> str:
    if depth == 0 or rng.random() < 0.2:
        return rng.choice(NAMES)
    kind = rng.choice(("!", "()", "&", "|", "&", "|"))
    one, other = (random_expression(rng, depth - 1) for _ in range(2))
    if kind == "!":
        return f"!{one}" if one[0] not in "!" else f"! {one}"
    return f"({one})" if kind == "()" else f"{one}{rng.choice((kind, f' {kind} '))}{other}"


def by_python(expression: str, sets: dict[str, set[int]], host: int) -> bool:
    """Return whether a host is in what an expression stands for, by Python's own operators."""
    words = {"&": " and ", "|": " or ", "!": " not "}
    text = re.sub(
        r"[&|!]|[^\s&|!()]+", lambda m: words.get(m[0]) or str(host in sets[m[0]]), expression
    )
    return bool(eval(text))


def test_solver_and_checker_read_expressions_as_python_does() -> None:
    for k in range(500):
        rng = random.Random(f"expression-{k}")
        expression = random_expression(rng, 4)
        sets = {name: {h for h in range(6) if rng.random() < 0.5} for name in NAMES}
        masks = {name: np.isin(np.arange(6), list(own)) for name, own in sets.items()}
        frozen = {name: frozenset(own) for name, own in sets.items()}
        truth = [host for host in range(6) if by_python(expression, sets, host)]
        assert np.flatnonzero(nodes_in(expression, masks, "x")).tolist() == truth, expression
        assert sorted(hosts_of(expression, frozen, frozenset(range(6)))) == truth, expression


@pytest.mark.parametrize("text", ["", " ", "&", "a &", "a b:1", "(a", "a)", "!", "a | | a", "()"])
def test_what_is_no_expression_is_refused_by_both(text: str) -> None:
    masks = {"a": np.ones(2, dtype=bool), "b:1": np.zeros(2, dtype=bool)}
    with pytest.raises(InputError, match=r"x: expected (& or \||\)|the name of a set), found"):
        nodes_in(text, masks, "x")
    with pytest.raises(RefusedError):
        hosts_of(text, {"a": frozenset([0]), "b:1": frozenset()}, frozenset([0, 1]))


def document(**request: Any) -> dict[str, Any]:
    """Return two racks of four hosts, of which four are fast and one runs a job, and a request."""
    hosts = [{"hosts": f"{r}[1-4]", "domains": [r], "capacity": {"slots": 1}} for r in "ab"]
    machine = {"kind": "hierarchy", "name": "m", "levels": ["rack", "host"], "hosts": hosts}
    return {
        "schema": "topoplace.snapshot/1",
        "name": "sets",
        "machine": machine,
        "sets": {"fast": "a[3-4],b[1-2]", "old": "b[2-4]"},
        "running": [{"id": "r", "nodes": "a3"}],
        "queue": [{"id": "q", "nodes": 2, **request}],
    }


# ---- Tori ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("chunk", few_of(range(5), 2))
@pytest.mark.parametrize("rule", Interference)
def test_requests_of_tori_have_their_sets(rule: Interference, chunk: int) -> None:
    named = 0
    for k in range(20):
        rng = random.Random(f"torus-sets-{chunk}-{k}")
        snapshot = with_sets(rng, tiny_placement(f"sets-{chunk}-{k}"))
        best, _ = best_placement(snapshot, rule)
        found = tp.place(snapshot, interference=rule)
        signs = [1 if level.sense == "max" else -1 for level in found.levels]
        values = [s * (level.objective or 0) for s, level in zip(signs, found.levels, strict=True)]
        assert values == [*best], k
        assert all(level.status == "optimal" for level in found.levels), k
        assert found.check().verified, found.check()
        for method in ("first-fit", "best-fit", "alps-o2", "random-nodes"):
            own = tp.place(snapshot, method=method, interference=rule, time_limit=1)
            assert own.check().holds, own.check()
        named += any(r.eligible or r.excluded for r in snapshot.queue)
    assert named > 10


@pytest.mark.parametrize("chunk", few_of(range(15), 1))
def test_requests_of_anchored_prisms_have_their_sets(chunk: int) -> None:
    named = 0
    for k in range(20 * chunk, 20 * chunk + 20):
        rng = random.Random(f"anchored-sets-{k}")
        snapshot = random_anchored(f"sets-{k}", 10, segmented=rng.random() < 0.3)
        snapshot, rule = with_sets(rng, snapshot), [*Interference][k % 3]
        value, kept = AnchoredTiny(snapshot, rule).best()
        found = tp.place(snapshot, interference=rule)
        assert [level.objective for level in found.levels] == [value, kept], k
        assert all(level.status == "optimal" for level in found.levels), k
        assert found.check().verified, found.check()
        own = tp.place(snapshot, method="slurm-torus3d", interference=rule)
        assert own.check().holds, own.check()
        named += any(r.eligible or r.excluded for r in snapshot.queue)
    assert named > 10


@pytest.mark.parametrize("k", few_of(range(40), 3))
def test_scanned_prisms_have_all_nodes_in_one_of_several_sets(
    k: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("topoplace.placement.torus.packing.MAX_PRISMS", 0)
    snapshot = with_sets(random.Random(f"scanned-sets-{k}"), tiny_placement(f"scanned-sets-{k}"))
    found = tp.place(snapshot)
    signs = [1 if level.sense == "max" else -1 for level in found.levels]
    values = [s * (level.objective or 0) for s, level in zip(signs, found.levels, strict=True)]
    assert values == [*best_placement(snapshot, Interference.STRICT)[0]]
    assert found.check().verified, found.check()


def rows_of(*queue: dict[str, Any], **machine: Any) -> Snapshot:
    """Return a ring of eight nodes, of which the sets `low` and `high` have halves."""
    document = {
        "schema": "topoplace.snapshot/1",
        "name": "ways",
        "machine": {"kind": "torus", "name": "ring", "shape": [8], **machine},
        "sets": {"low": "0-3", "high": "4-7", "odd": "1,3,5,7"},
        "queue": [{"id": f"q{k}", "communication": "none", **one} for k, one in enumerate(queue)],
    }
    return Snapshot.model_validate(document)


def test_a_prism_holds_enough_nodes_of_one_of_the_sets() -> None:
    both = ["low", "high"]
    found = tp.place(rows_of({"nodes": 3, "one_of": both}, {"nodes": 3, "one_of": both}))
    assert found.objective == 6
    assert [p.nodes for p in found.solution.placements] == ["0-2", "4-6"]
    found = tp.place(rows_of({"nodes": 5, "one_of": both}))
    (reason,) = found.explanations
    assert reason.text.startswith(
        "no prism of this machine holds 5 compute nodes, all of one of low, high,"
    )
    # four nodes of `odd` need seven routers; four of `low` leave nothing idle
    found = tp.place(rows_of({"nodes": 4, "one_of": ["odd", "low"]}))
    assert found.solution.placements[0].nodes == "0-3"
    assert found.check().verified


@pytest.mark.parametrize("machine", [{}, {"anchored": [{"dims": [2]}]}])
def test_nodes_of_two_of_the_sets_are_refused_on_tori(machine: dict[str, Any]) -> None:
    segment = {"segment": 2} if machine else {}
    snapshot = rows_of({"nodes": 4, "one_of": ["low", "high"], **segment}, **machine)
    result = tp.place(snapshot).model_dump(mode="json")
    assert tp.check(result).verified
    (placed,) = result["solution"]["placements"]
    placed["nodes"] = "2-5"
    placed["prism"]["origin"] = [2]
    if machine:
        placed["other_prisms"][0]["origin"] = [4]
    said = next(claim.detail for claim in tp.check(result).claims if not claim.holds)
    assert said == "q0 may not use node 4"


def test_cubes_of_two_of_the_sets_are_refused() -> None:
    document = {
        "schema": "topoplace.snapshot/1",
        "name": "ways",
        "machine": {"kind": "cubes", "name": "pod", "cubes": 4, "side": [2]},
        "sets": {"low": "0-3", "high": "4-7"},
        "queue": [{"id": "q", "nodes": 4, "one_of": ["low", "high"]}],
    }
    result = tp.place(tp.load(document)).model_dump(mode="json")
    assert tp.check(result).verified
    (placed,) = result["solution"]["placements"]
    assert placed["nodes"] == "0-3"
    placed.update(cubes=[1, 2], nodes="2-5")
    assert not tp.check(result).holds


def test_the_model_of_tori_has_sets() -> None:
    for k in range(6):
        rng = random.Random(f"torus-sets-model-{k}")
        snapshot = with_sets(rng, tiny_placement(f"sets-model-{k}"))
        if not snapshot.queue or any(r.nodes > 64 for r in snapshot.queue):
            continue
        one, other = (tp.place(snapshot, method=method) for method in ("exact", "minizinc"))
        assert [lv.objective for lv in one.levels] == [lv.objective for lv in other.levels], k


def test_a_place_outside_of_its_set_is_refused() -> None:
    model = tp.Model(tp.torus(4, 4))
    model.add_request("q", 4, shapes="2x2")
    snapshot = model.snapshot.model_copy(update={"sets": {"left": "0-7"}})
    found = tp.place(snapshot)
    moved = found.model_dump(mode="json")
    moved["instance"]["queue"][0]["eligible"] = "!left"
    inside = {int(n) for n in found.placements[0].nodes}
    assert tp.check(moved).holds is inside.isdisjoint(range(8))
    moved["instance"]["queue"][0]["eligible"] = "left"
    assert tp.check(moved).failures or inside <= {*range(8)}
    wrong = snapshot.queue[0].model_copy(update={"eligible": "lef"})
    with pytest.raises(InputError, match=r"queue\[0\].eligible: expected one of left"):
        tp.place(snapshot.model_copy(update={"queue": [wrong]}))


@pytest.mark.parametrize(
    ("request_", "allowed"),
    [
        ({"eligible": "fast"}, {"a4", "b1", "b2"}),
        ({"eligible": "fast & !old"}, {"a4", "b1"}),
        ({"eligible": "old", "excluded": "b[2-3]", "nodes": 1}, {"b4"}),
        ({"excluded": "a[1-4],b1", "nodes": 3}, {"b2", "b3", "b4"}),
    ],
)
def test_requests_get_hosts_that_they_may_have(request_: dict[str, Any], allowed: set[str]) -> None:
    for method in ("exact", "first-fit", "tree-best-fit", "random", "kueue", "default"):
        result = tp.place(document(**request_), method=method)
        assert result.check().holds
        (own,) = result.solution.placements
        found = [expand_host_list(share.hosts) for part in own.parts for share in part.shares]
        hosts = {host for names in found for host in names}
        assert hosts <= allowed, method
        assert len(hosts) == request_.get("nodes", 2), method


def test_a_wrong_host_is_refused() -> None:
    result = tp.place(document(eligible="fast"))
    changed = result.model_dump(mode="json", by_alias=True)
    changed["instance"]["sets"]["fast"] = "a[3-4],b2"
    assert not tp.check(changed).holds
    changed["instance"]["sets"]["fast"] = "a[3-4],b[1-2,2]"
    assert not tp.check(changed).holds


def test_who_waits_says_which_hosts_are_meant() -> None:
    result = tp.place(document(eligible="fast & !old", nodes=3))
    (text,) = HierarchyView(result).reasons().values()
    assert text == "3 units wanted, 2 free in the 3 hosts of fast & !old, where r runs"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            {"eligible": "slow"},
            r"queue\[0\].eligible: expected one of a, b, fast, old, found 'slow'",
        ),
        ({"eligible": "fast &"}, r"queue\[0\].eligible: expected the name of a set"),
        ({"excluded": "z"}, r"queue\[0\].excluded: expected hosts of the machine, found 'z'"),
    ],
)
def test_wrong_requests(changes: dict[str, Any], expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        tp.place(document(**changes))


# ---- Slurm ---------------------------------------------------------------------------------------

FEATURES = ("ib", "ib,avx", "eth", "eth,avx")


def slurm(folder: Path, *jobs: dict[str, Any], **files: str) -> tp.Model:
    """Return eight nodes of two partitions and features of every kind twice."""
    lines = [NODE.format(name=f"n{k}", of="all,low" if k < 6 else "all") for k in range(8)]
    has = [f" ActiveFeatures={own} AvailableFeatures={own}\n" for own in FEATURES * 2]
    nodes = "".join(line.rstrip() + own for line, own in zip(lines, has, strict=True))
    return snapshot_of(folder, list(jobs), **{"nodes": nodes, **files})


def test_partitions_features_and_excluded_nodes_are_sets(tmp_path: Path) -> None:
    jobs = [
        entry(1, partition="low", features="ib&avx"),
        entry(2, partition="low", features="avx|eth", excluded_nodes="n[2-3]"),
        entry(3, partition="low,all"),
        entry(4),
    ]
    model = slurm(tmp_path, *jobs)
    assert holds(model) == {}
    assert model.snapshot.sets == {
        "feature:avx": "n[1,3,5,7]",
        "feature:eth": "n[2-3,6-7]",
        "feature:ib": "n[0-1,4-5]",
        "partition:low": "n[0-5]",
    }
    assert [(one.eligible, one.excluded) for one in model.queue] == [
        ("partition:low & feature:ib & feature:avx", None),
        ("partition:low & (feature:avx | feature:eth)", "n[2-3]"),
        (None, None),
        (None, None),
    ]
    result = tp.place(model)
    assert result.check().verified
    hosts = {start.request: start.hosts for start in result.placements}
    assert hosts["1"] == "n[1,5]"


@pytest.mark.parametrize(
    ("fields", "eligible", "nodes"),
    [
        ({"minimum_cpus_per_node": number(32)}, "with:cpus>=32", "n[0-1]"),
        ({"memory_per_node": number(128_000)}, "with:memory>=128000", ""),
        ({"minimum_tmp_disk_per_node": number(10)}, "with:disk>=10", ""),
        ({"tres_per_node": "gres/gpu:4"}, "with:gpu>=4", "n[0-1]"),
        ({"tres_per_node": "gres:gpu:a100:4"}, "with:gpu>=4 & with:gpu:a100>=4", "n0"),
        ({"tres_per_node": "gres/gpu"}, "with:gpu>=1", "n[0-2]"),
    ],
)
def test_what_a_node_has_to_have_is_a_set(
    fields: dict[str, Any], eligible: str, nodes: str, tmp_path: Path
) -> None:
    lines = [NODE.format(name=f"n{k}", of="all").rstrip() for k in range(8)]
    gres = ["gpu:a100:4(S:0-1)", "gpu:v100:4", "gpu:2", *["(null)"] * 5]
    text = "\n".join(f"{line} Gres={own}" for line, own in zip(lines, gres, strict=True))
    text = text.replace("CPUTot=16", "CPUTot=32", 2)
    one = {"node_count": number(1), "max_nodes": number(1), "tres_req_str": "cpu=1,node=1"}
    model = snapshot_of(tmp_path, [entry(1, **one, **fields)], nodes=text)
    assert holds(model) == {}
    (request,) = model.queue
    assert request.eligible == eligible
    assert model.snapshot.sets[eligible.rsplit(maxsplit=1)[-1]] == nodes
    result = tp.place(model)
    assert bool(result.placements) == bool(nodes)
    assert result.check().verified


@pytest.mark.parametrize(
    ("option", "fields"),
    [
        ("gres", {"tres_per_node": "gres/gpu:4"}),
        ("gres", {"tres_per_job": "gres/gpu:4"}),
        ("cpus", {"minimum_cpus_per_node": number(32), "comment": "pattern=rd"}),
        ("features", {"features": "ib*2&eth*1"}),
        ("partition", {"partition": "gpu"}),
        ("features", {"features": "ib", "comment": "pattern=rd"}),
        ("excluded_nodes", {"excluded_nodes": "n1", "comment": "pattern=rd"}),
    ],
)
def test_what_is_not_modelled_holds_its_job(
    option: str, fields: dict[str, Any], tmp_path: Path
) -> None:
    """By contention no set is modelled: some job has a pattern there."""
    assert holds(slurm(tmp_path, entry(1, **fields))) == {"1": [option]}


# ---- One of several sets -------------------------------------------------------------------------


def test_all_nodes_of_a_job_are_in_one_of_its_partitions(tmp_path: Path) -> None:
    nodes = "".join(NODE.format(name=f"n{k}", of="low" if k < 5 else "high") for k in range(8))
    size = {"node_count": number(4), "max_nodes": number(4), "tres_req_str": "cpu=4,node=4"}
    jobs = [entry(k, partition="high,low", **size) for k in (1, 2)]
    model = snapshot_of(tmp_path, jobs, nodes=nodes)
    assert holds(model) == {}
    assert [one.one_of for one in model.queue] == [["partition:high", "partition:low"]] * 2
    result = tp.place(model)
    assert result.objective == 4
    assert result.check().verified
    (start,) = result.placements
    assert start.hosts == "n[0-3]"
    (reason,) = HierarchyView(result).reasons().values()
    assert reason == "4 nodes wanted, 3 free in the 3 nodes of the roomiest of its sets"


def test_a_partition_that_never_takes_a_job_is_none_of_its_sets(tmp_path: Path) -> None:
    parts = {"low": "n[0-4]", "high": "n[5-7]", "down": "n[0-7]"}
    lines = [PARTITION.format(name=name, nodes=own) for name, own in parts.items()]
    text = "\n".join(lines).replace("State=UP", "State=DOWN", 3).replace("DOWN", "UP", 2)
    model = snapshot_of(tmp_path, [entry(1, partition="down,low,high")], partitions=text)
    assert holds(model) == {}
    assert model.queue[0].one_of == ["partition:low", "partition:high"]


def test_audits_in_order_do_not_judge_a_job_of_several_tiers(tmp_path: Path) -> None:
    lines = [PARTITION.format(name=n, nodes=own) for n, own in (("a", "n[0-3]"), ("b", "n[2-7]"))]
    text = f"{lines[0]} PriorityTier=1\n{lines[1]} PriorityTier=9\n"
    jobs = [entry(1, partition="a,b"), entry(2, partition="a")]
    before = snapshot_of(tmp_path, jobs, partitions=text)
    assert ("tier", "1 job for partitions of several") in [
        (one.option, one.value) for one in before.snapshot.left_out
    ]
    runs = entry(1, job_state=["RUNNING"], nodes="n[0-1]")
    after = snapshot_of(tmp_path, [runs, jobs[1]], partitions=text)
    rows = tp.audit(before, after=after, order="priority").rows
    assert [str(row.verdict) for row in rows] == ["rightly started", "unjudged"]
    why = "not modelled: tier 1 job for partitions of several"
    assert rows[1].standing.reason == why


def test_one_of_several_features_for_all_nodes(tmp_path: Path) -> None:
    model = slurm(tmp_path, entry(1, partition="low", features="[ib|eth]"))
    assert holds(model) == {}
    low = "partition:low & feature"
    assert model.queue[0].eligible is None
    assert model.queue[0].one_of == [f"{low}:ib", f"{low}:eth"]
    assert tp.place(model).check().verified


def test_the_checker_refuses_a_request_that_is_in_two_of_its_sets() -> None:
    both = ["fast", "old & !fast"]
    found = tp.place(document(one_of=both))
    assert found.check().verified
    answer = json.loads(found.model_dump_json(by_alias=True))
    (placed,) = answer["solution"]["placements"]
    for hosts, kept in (("b[2-3]", False), ("b[1-2]", True), ("b[3-4]", True), ("a1,b3", False)):
        placed["nodes"] = hosts
        placed["parts"][0]["shares"] = [{"hosts": hosts, "units": 1}]
        wrong = "it may have, nor are all in another of its sets" in str(tp.check(answer))
        assert wrong is not kept, hosts


# ---- What is short ------------------------------------------------------------------------------


def why(queue: list[dict[str, Any]], *running: dict[str, Any]) -> dict[str, str]:
    """Return why requests wait on two leaves of two nodes with four CPUs and 64 of memory."""
    amounts = {"cpus": 4, "memory": 64}
    hosts = [{"hosts": f"{s}[1-2]", "domains": [s], "capacity": amounts} for s in "ab"]
    document = {
        "schema": "topoplace.snapshot/1",
        "name": "short",
        "machine": {"kind": "hierarchy", "name": "m", "levels": ["leaf", "node"], "hosts": hosts},
        "running": [{"id": str(k), **one} for k, one in enumerate(running, start=1)],
        "queue": queue,
    }
    result = tp.place(document)
    assert result.check().verified
    return dict(HierarchyView(result).reasons())


def test_a_reason_names_the_resource_that_is_short() -> None:
    takes = {"cpus": 1, "memory": 1}
    busy = {"nodes": "a[1-2],b[1-2]", "takes": {"cpus": 4, "memory": 1}}
    assert why([{"id": "q", "nodes": 1, "takes": takes}], busy) == {
        "q": "1 unit wanted, 0 free in the machine, where job 1 runs: too little of cpus"
    }
    apart = [{"nodes": "a[1-2],b1", "takes": {"cpus": 4}}, {"nodes": "b2", "takes": {"memory": 64}}]
    assert why([{"id": "q", "nodes": 1, "takes": takes}], *apart) == {
        "q": "1 unit wanted, 0 free in the machine, where jobs 1, 2 run: "
        "not all that a unit takes is free on the same host"
    }


def test_a_reason_says_that_no_node_is_large_enough_or_no_leaf_has_room() -> None:
    assert why(
        [
            {"id": "huge", "nodes": 1, "takes": {"cpus": 1, "memory": 1_000_000}},
            {
                "id": "close",
                "nodes": 3,
                "takes": {"cpus": 4},
                "at_most": {"level": "leaf", "size": 1},
            },
        ]
    ) == {
        "huge": "no node has 1,000,000 of memory",
        "close": "no leaf has 3 units free, at most 2 in leaf a",
    }


def test_who_is_outbid_fits_alone() -> None:
    queue = [{"id": str(n), "nodes": n, "takes": {"cpus": 4}} for n in (4, 1)]
    assert why(queue) == {
        "1": "outbid: it fits alone, but the started jobs have the same value or more"
    }


def test_host_lists_have_no_units() -> None:
    given = document(nodes=2, takes={"slots": 2}) | {"running": []}
    for hosts in given["machine"]["hosts"]:
        hosts["capacity"] = {"slots": 4}
    result = tp.place(given)
    (start,) = HierarchyView(result).starts
    assert start.hosts == "a1*2"
    assert hostlist_text(result) == "q a1\n"


def test_a_request_is_held_to_domains_by_their_names() -> None:
    hosts = [
        {"hosts": f"{block}{rack}h[0-1]", "domains": [block, rack], "capacity": {"slots": 1}}
        for block in ("b1", "b2")
        for rack in ("r1", "r2")
    ]
    machine = {"kind": "hierarchy", "name": "m", "levels": ["block", "rack", "host"]}
    document = {"schema": "topoplace.snapshot/1", "name": "held", "machine": machine}
    machine["hosts"] = hosts

    def started(request: dict[str, Any], **more: Any) -> list[str | None]:
        queue = [{"id": "q", **request}]
        result = tp.place(Snapshot.model_validate(document | {"queue": queue} | more))
        assert result.check().verified
        return [placement.nodes for placement in result.solution.placements]

    assert started({"nodes": 2, "eligible": "b1/r2"}) == ["b1r2h[0-1]"]
    assert started({"nodes": 3, "eligible": "b1/r2"}) == []
    assert started({"nodes": 2, "eligible": "b2 & !b2/r1"}) == ["b2r2h[0-1]"]
    assert started({"nodes": 3, "one_of": ["b1/r1", "b2"]})[0].startswith("b2")
    assert started({"nodes": 2, "eligible": "b2"}, sets={"b2": "b1r1h[0-1]"}) == ["b1r1h[0-1]"]
    with pytest.raises(tp.InputError, match="b3"):
        started({"nodes": 2, "eligible": "b3"})
