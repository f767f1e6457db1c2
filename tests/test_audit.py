"""Audits: what is found of decisions, against brute force, recordings and by hand."""

from __future__ import annotations

import csv
import io
import itertools
import json
import random
import signal
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import topoplace as tp
from mistakes import lines_said
from real_files import real_file
from test_decisions import kueue_line, slurm_line
from tiny_hierarchies import places_of, prepared, random_hierarchy, random_single
from topoplace import clock
from topoplace.certify import check_file
from topoplace.cli import run
from topoplace.errors import ExitCode
from topoplace.formats.decisions import Decided, Decision, decision_of, read_lines
from topoplace.machine import parse_node_set
from topoplace.machine.hierarchy import build_hierarchy
from topoplace.placement.hierarchy.contract import held_to
from topoplace.placement.hierarchy.fragmentation import Fragmentation, slurm_fragmentation
from topoplace.placement.hierarchy.problem import HierarchyProblem
from topoplace.report.page.audits import audit_page
from topoplace.result.placement import HierarchyResult
from topoplace.snapshot.schema import CubesModel, Snapshot
from topoplace.solving import Options
from topoplace.study.audit.cases import case_of_decision, load_cases
from topoplace.study.audit.judging import Row, Standing, Verdict, counted_on, judge
from topoplace.study.audit.live import drawn_lines, drawn_pods
from topoplace.study.audit.run import Audit, Domains, audit_cases


def verdict_of(decision: Decision, contract: str | None = None) -> Row:
    (row,) = audit_cases([case_of_decision(decision)], contract=contract).rows
    return row


def segments_line(chosen: list[str]) -> dict[str, Any]:
    """Slurm 225's case: 36 nodes in segments of 12, on three blocks of 17 idle ones."""
    blocks = [f"BlockName=b{k} Nodes=n[{17 * k:02d}-{17 * k + 16:02d}]" for k in range(3)]
    nodes = [f"n{k:02d}" for k in range(51)]
    return slurm_line(
        topology="\n".join([*blocks, "BlockSizes=17", ""]),
        free=nodes,
        down=[],
        busy=[],
        request={"nodes": 36, "segment": 12, "options": ""},
        chosen=chosen,
    )


def in_blocks(*counts: int) -> list[str]:
    return [f"n{17 * block + k:02d}" for block, count in enumerate(counts) for k in range(count)]


# ---- Slurm's fragmentation -----------------------------------------------------------------------


def blocks_with(sizes: tuple[int, ...], counts: list[int]) -> Any:
    """Return blocks of so many hosts each."""
    hosts = [(f"h{b}-{k}", [f"b{b}"], [1]) for b, count in enumerate(counts) for k in range(count)]
    return build_hierarchy(["block", "host"], ["slots"], hosts, sizes)


@pytest.mark.parametrize(
    ("sizes", "busy", "figure"),
    [
        ((2, 4), [], 0),  # five blocks of two: nothing is unavailable
        ((2, 4), [0], 2 + 4 + 1),  # the first block, its pair, and the node
        ((2, 4), [0, 1, 2, 3], 2 * 2 + 4 + 4),  # both blocks of a pair are that pair once
        ((2, 4), [0, 4], 2 * 2 + 2 * 4 + 2),  # two pairs
        ((2, 4), [8], 2 + 4 + 1),  # the last block is no pair, but all of the pair before are free
        ((2, 4), [6, 8], 2 * 2 + 4 + 2),  # here they are not
        ((2, 16), [0], 2 + 1),  # no group of eight lies inside the machine
        ((2,), [0, 9], 2 * 2 + 2),
    ],
)
def test_fragmentation_by_hand(sizes: tuple[int, ...], busy: list[int], figure: int) -> None:
    """Five blocks of two nodes, with BlockSizes: `topology_p_get_fragmentation`, step by step."""
    available = np.ones(10, dtype=bool)
    available[busy] = False
    assert slurm_fragmentation(blocks_with(sizes, [2] * 5), available) == figure


def test_fragmentation_walks_as_slurm_does() -> None:
    """The loop of `topology_p_get_fragmentation`, which marks groups begun by a whole block."""
    rng = random.Random(3)
    for _ in range(300):
        base, num = rng.randint(1, 4), rng.randint(1, 12)
        counts = [base if rng.random() < 0.8 else rng.randint(1, base + 2) for _ in range(num)]
        multiples = [1, *sorted(rng.sample((2, 4, 8, 16), rng.randint(0, 3)))]
        machine = blocks_with(tuple(base * m for m in multiples), counts)
        available = np.array([rng.random() < rng.choice((0.6, 0.95)) for _ in range(sum(counts))])
        total, marks, at = 0, dict.fromkeys(multiples, False), 0
        for i, count in enumerate(counts):
            begins = {m: i % m == 0 and m <= num - i for m in multiples}
            if available[at : at + count].sum() >= base:
                marks |= {m: True for m in multiples[1:] if begins[m]}
            else:
                for m in multiples:
                    if marks[m] or begins[m]:
                        total += m * base
                        marks[m] = False
            at += count
        expected = total + int((~available).sum())
        assert slurm_fragmentation(machine, available) == expected


def test_fragmentation_before_and_after_a_decision(tmp_path: Path) -> None:
    """Three blocks of 17 free nodes: 2 are left whole by 17, but none by 12 + 12 + 12."""
    request = {"nodes": 17, "segment": None, "options": ""}
    line = segments_line(in_blocks(17)) | {"request": request}
    found = tp.audit(line, segments_line(in_blocks(12, 12, 12)), kueue_line())
    whole, spread, other = found.rows
    assert whole.fragmentation == Fragmentation(0, 17 + 17, 17 + 17)
    assert spread.fragmentation == Fragmentation(0, 3 * 17 + 36, 3 * 17 + 36)
    assert other.fragmentation is None
    assert found.total.fragmentation == Fragmentation(0, 34 + 87, 34 + 87)
    assert "fragmentation before" in str(found)
    assert list(found.to_frame()["fragmentation after"])[:2] == [34, 87]
    assert "fragmentation" not in str(tp.audit(kueue_line()))
    broken = tp.audit(segments_line(in_blocks(17, 17, 2)))
    assert broken.rows[0].fragmentation == Fragmentation(0, None, 87)
    page = tmp_path / "page.html"
    file = tmp_path / "lines.jsonl"
    file.write_text(json.dumps(line))
    assert run(["audit", str(file), "--html", str(page)]) == 0
    assert "Slurm&#39;s fragmentation, in nodes" in page.read_text()


# ---- Single decisions ----------------------------------------------------------------------------


def test_the_reported_case_of_slurm(tmp_path: Path) -> None:
    kept = tmp_path / "proofs"
    lines = [segments_line(in_blocks(12, 12, 12)), segments_line(in_blocks(17, 17, 2))]
    found = tp.audit(*lines, contract="slurm-block", results=kept)
    good, bad = found.rows
    assert (good.verdict, good.standing.used, good.standing.fewest) == (Verdict.OPTIMAL, 3, 3)
    assert bad.verdict is Verdict.INVALID
    assert bad.why == "request: a block without a multiple of 12 units"
    assert found.exit_code() == ExitCode.CHECK_FAILED
    files = sorted(path.name for path in kept.iterdir())
    assert files == [f"000{k}-slurm-X{end}.json" for k in (1, 2) for end in ("-slurm-block", "")]
    assert all(check_file(kept / name).verified for name in files)


def test_waiting_that_fits_and_that_does_not() -> None:
    waits = {"outcome": "pending", "chosen": None}
    missed = verdict_of(decision_of(slurm_line(**waits)))  # 3 of n0, n1, n2, n5
    assert (missed.verdict, missed.free.fits, missed.has_room) == (Verdict.MISSED, True, True)
    assert missed.why == "0 nodes, 3 possible"
    short = slurm_line(**waits, request={"nodes": 5, "segment": None, "options": ""})
    rightly = verdict_of(decision_of(short))
    assert (rightly.verdict, rightly.has_room) == (Verdict.RIGHTLY_WAITING, False)


def test_what_only_the_contract_forbids() -> None:
    """Three nodes have to be in one group of two blocks of two."""
    blocks = "\n".join(f"BlockName=b{k} Nodes=n{2 * k},n{2 * k + 1}" for k in range(4))
    line = slurm_line(
        topology=f"{blocks}\nBlockSizes=2,4,8\n",
        free=["n0", "n2", "n4", "n6"],
        down=[],
        busy=["n1", "n3", "n5", "n7"],
        request={"nodes": 3, "segment": None, "options": ""},
    )
    waiting = line | {"outcome": "pending", "chosen": None}
    free = verdict_of(decision_of(waiting))
    under = verdict_of(decision_of(waiting), "slurm-block")
    assert (free.verdict, under.verdict) == (Verdict.MISSED, Verdict.RIGHTLY_WAITING)
    assert under.has_room  # four free nodes: three do not fit into two blocks of one group
    chosen = verdict_of(decision_of(line | {"chosen": ["n0", "n2", "n4"]}), "slurm-block")
    assert chosen.verdict is Verdict.INVALID
    assert chosen.why == "request: several block4, one is required"


def test_what_the_contract_refuses() -> None:
    """Of 3 nodes segments of 2 are no whole number: Slurm refuses them, rightly."""
    request = {"nodes": 3, "segment": 2, "options": ""}
    refused = slurm_line(outcome="rejected", chosen=None, request=request)
    found = verdict_of(decision_of(refused), "slurm-block")
    assert (found.outcome, found.verdict) == (Decided.REFUSED, Verdict.RIGHTLY_WAITING)
    both = tp.audit(refused, kueue_line(), contract="slurm-block")
    assert [row.contract is None for row in both.rows] == [False, True]
    assert both.notes == ("1 decision on machines without block sizes: not held to slurm-block",)
    assert "contract: fewest" in str(both)
    with pytest.raises(tp.InputError, match="decisions on machines with block sizes"):
        tp.audit(kueue_line(), contract="slurm-block")


def test_what_the_snapshot_does_not_say_is_not_judged() -> None:
    request = {"nodes": 2, "segment": None, "options": "--nodelist=n0"}
    line = slurm_line(request=request, chosen=["n0", "n2"], free=["n0", "n1", "n2", "n5"])
    for more in ({}, {"outcome": "pending", "chosen": None}):
        found = tp.audit(line | more)
        (row,) = found.rows
        assert (row.verdict, found.exit_code()) == (Verdict.UNJUDGED, ExitCode.DONE)
        assert row.why.endswith("not said: --nodelist=n0")
    (row,) = tp.audit(line | {"chosen": ["n0"]}).rows
    assert (row.verdict, row.why) == (Verdict.INVALID, "request: 1 unit placed of 2")
    (row,) = tp.audit(line | {"chosen": ["n0", "n1"]}).rows
    assert row.verdict is Verdict.OPTIMAL  # whatever else it was told


def test_levels_may_be_chosen() -> None:
    """Two blocks where one would do count on the level of blocks, not on that of their groups."""
    blocks = "\n".join(f"BlockName=b{k} Nodes=n{2 * k},n{2 * k + 1}" for k in range(3))
    line = slurm_line(
        topology=f"{blocks}\nBlockSizes=2,4\n",
        free=["n0", "n1", "n2", "n3"],
        down=[],
        busy=["n4", "n5"],
        request={"nodes": 2, "segment": 1, "options": ""},
        chosen=["n0", "n2"],
    )
    (row,) = tp.audit(line).rows
    assert (row.standing.differs, row.standing.used, row.standing.fewest) == ("block", 2, 1)
    (row,) = tp.audit(line, levels=["block4"]).rows
    assert [lv.name for lv in row.standing.levels] == [
        *("nodes", "block4", "block", "node", "stranded")
    ]
    assert lines_said(lambda: tp.audit(line, levels=["rack"]))[0] == (
        "levels: expected levels of slurm-X: block4, block, node, found 'rack'"
    )


# ---- Invalid decisions of every kind -------------------------------------------------------------


@pytest.fixture(scope="module")
def placed() -> HierarchyResult:
    """Six units in pairs on two racks of two hosts with four slots each, and a job of one rack."""
    model = tp.Model(tp.hierarchy({"rack": 2, "host": 2}, capacity=4), name="small")
    model.add_request("a", 6, segments=[{"size": 2, "level": "host"}], required="rack")
    model.add_request("b", 2, exclusive="rack")
    result = tp.place(model)
    assert isinstance(result, HierarchyResult)
    return result


def hosts_of(result: HierarchyResult) -> list[str]:
    return [name for group in result.instance.machine.hosts for name in group.hosts.split(",")]


BROKEN: dict[str, tuple[list[tuple[str, dict[int, int]]], str]] = {
    "overfull": ([("a", {0: 6})], "6 slots of h0, 4 are free"),
    "segment": ([("a", {0: 3, 1: 3})], "a: a host without a multiple of 2 units"),
    "level": ([("a", {0: 4, 2: 2})], "a: several rack, one is required"),
    "too few": ([("a", {0: 4})], "a: 4 units placed of 6"),
    "too many": ([("a", {0: 4, 1: 4})], "a: 8 units placed of 6"),
    "shared": ([("a", {0: 4, 1: 2}), ("b", {1: 2})], "b shares a rack it wants alone"),
    "twice": ([("a", {0: 4, 1: 2}), ("a", {2: 4, 3: 2})], "a is no request that waits, or"),
    "unknown": ([("c", {0: 1})], "c is no request that waits, or starts twice"),
    "no host": ([("a", {0: 4, 9: 2})], "a: h9 is no host"),
}


def named_placed(placed: HierarchyResult, started: list[tuple[str, dict[int, int]]]) -> Any:
    names = [str(k) for k in range(10)]
    for idx, group in enumerate(tp.Model.of(placed.instance).prepare().machine.host_names):
        names[idx] = group
    names[9] = "h9"
    document = json.loads(placed.model_dump_json())
    document["solution"]["placements"] = [
        {
            "request": request,
            "nodes": ",".join(names[h] for h in units),
            "parts": [
                {
                    "part": None,
                    "shares": [{"hosts": names[h], "units": n} for h, n in units.items()],
                }
            ],
        }
        for request, units in started
    ]
    return document


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_rule_is_named(kind: str, placed: HierarchyResult) -> None:
    started, said = BROKEN[kind]
    (row,) = tp.audit(named_placed(placed, started)).rows
    assert row.verdict is Verdict.INVALID
    assert row.why.startswith(said), row.why


def test_a_result_is_judged_as_it_is(placed: HierarchyResult) -> None:
    (row,) = tp.audit(placed).rows
    assert row.verdict is Verdict.OPTIMAL
    (row,) = tp.audit(named_placed(placed, [("a", {0: 4, 1: 2})])).rows
    assert (row.verdict, row.why) == (Verdict.MISSED, "6 nodes, 8 possible")
    assert row.standing.regret is None


# ---- Pairs of snapshots --------------------------------------------------------------------------


def pair(**after: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    hosts = [
        {"hosts": f"r{r}h[1-2]", "domains": [f"r{r}"], "capacity": {"gpus": 4}} for r in (1, 2)
    ]
    before = {
        "schema": "topoplace.snapshot/1",
        "name": "then",
        "machine": {"kind": "hierarchy", "name": "m", "levels": ["rack", "host"], "hosts": hosts},
        "running": [{"id": "old", "nodes": "r1h1", "takes": {"gpus": 2}}],
        "queue": [
            {"id": "a", "nodes": 4, "takes": {"gpus": 1}},
            {"id": "b", "nodes": 3, "takes": {"gpus": 2}},
        ],
    }
    return before, before | {"name": "now", "queue": []} | after


def audited(tmp_path: Path, before: Any, after: Any) -> Audit:
    for name, document in (("before", before), ("after", after)):
        (tmp_path / f"{name}.json").write_text(json.dumps(document))
    return tp.audit(tmp_path / "before.json", after=tmp_path / "after.json")


OLD = {"id": "old", "nodes": "r1h1", "takes": {"gpus": 2}}


def test_several_started_at_once_are_judged_together(tmp_path: Path) -> None:
    """Each in one rack is best: a on r1h2, and b, two units and one, on r2h1 and r2h2."""
    a = {"id": "a", "nodes": "r1h2", "takes": {"gpus": 4}}
    b = [
        {"id": "b/1", "nodes": "r2h1", "takes": {"gpus": 4}},
        {"id": "b/2", "nodes": "r2h2", "takes": {"gpus": 2}},
    ]
    before, after = pair(running=[OLD, a, *b])
    found = audited(tmp_path, before, after)
    (row,) = found.rows
    assert (row.verdict, row.request, found.notes) == (Verdict.OPTIMAL, "2 requests", ())
    spread = [
        {"id": "a/1", "nodes": "r1h[1-2],r2h1", "takes": {"gpus": 1}},
        {"id": "a/2", "nodes": "r2h2", "takes": {"gpus": 1}},
        {"id": "b", "nodes": "r1h2,r2h[1-2]", "takes": {"gpus": 2}},
    ]
    models = [tp.load(document) for document in (before, after)]
    assert tp.audit(models[0], after=models[1]) == found
    (row,) = audited(tmp_path, before, after | {"running": [OLD, *spread]}).rows
    assert (row.verdict, row.why) == (Verdict.SUBOPTIMAL, "4 rack, 2 possible")


def test_what_hosts_give_says_how_many_units_of_each_part_they_have(tmp_path: Path) -> None:
    parts = [
        {"id": "leader", "nodes": 1, "takes": {"gpus": 2}},
        {"id": "workers", "nodes": 3, "takes": {"gpus": 3}},
    ]
    before, after = pair()
    before["machine"]["hosts"][0]["capacity"] = {"gpus": 5}
    before["queue"] = [{"id": "c", "nodes": 4, "parts": parts}]
    now = [
        {"id": "c", "nodes": "r1h2", "takes": {"gpus": 5}},
        {"id": "c/2", "nodes": "r2h[1-2]", "takes": {"gpus": 3}},
    ]
    after |= {"machine": before["machine"], "running": [OLD, *now]}
    assert [row.verdict for row in audited(tmp_path, before, after).rows] == [Verdict.OPTIMAL]
    now[1]["takes"] = {"gpus": 4}  # two leaders on each host
    assert [row.verdict for row in audited(tmp_path, before, after).rows] == [Verdict.INVALID]
    now[1]["takes"] = {"gpus": 1}
    with pytest.raises(tp.InputError, match="one of the parts leader, workers"):
        audited(tmp_path, before, after)
    parts[1]["takes"], now[1]["takes"] = {"gpus": 2}, {"gpus": 4}  # whose units are whose?
    now[0]["takes"] = {"gpus": 4}
    (row,) = audited(tmp_path, before, after).rows
    held = "held: parts its hosts may be of leader, workers"
    assert (row.verdict, dict(row.held)) == (Verdict.UNJUDGED, {"c": held})


def test_what_changed_besides_is_noted(tmp_path: Path) -> None:
    before, after = pair(running=[{"id": "new", "nodes": "r2h1"}], queue=[{"id": "c", "nodes": 1}])
    after["queue"] = [before["queue"][0]]
    found = audited(tmp_path, before, after)
    (row,) = found.rows
    assert row.verdict is Verdict.MISSED
    assert [note.partition(": ")[2].partition(":")[0] for note in found.notes] == [
        "1 running job ended",
        "1 running job waited in no queue",
        "1 request withdrawn",
    ]


def test_what_a_pair_does_not_say(tmp_path: Path) -> None:
    running = [OLD, {"id": "a", "nodes": "r1h2"}]
    lines = lines_said(lambda: audited(tmp_path, *pair(running=running)))
    said = "running a: expected takes, as r1h2 holds several units"
    assert lines[0].startswith(f"{tmp_path / 'after.json'}: {said}")


@pytest.mark.parametrize(
    ("gpus", "why"), [(3, "3 gpus of r1h2, no multiple"), (4, "4 units, though it asked for")]
)
def test_a_job_with_odd_amounts_is_not_judged_and_the_others_are(
    gpus: int, why: str, tmp_path: Path
) -> None:
    before, after = pair(running=[OLD, {"id": "b", "nodes": "r1h2", "takes": {"gpus": gpus}}])
    before["queue"] = [{"id": "b", "nodes": 1, "takes": {"gpus": 2}}, {"id": "w", "nodes": 1}]
    before["queue"][0]["takes"]["gpus"] = 2 if gpus == 3 else 1
    before["queue"][1]["takes"] = {"gpus": 9}
    after["queue"] = before["queue"][1:]
    found = tp.audit(tp.load(before), after=tp.load(after), order="priority")
    verdicts = {row.request.partition(":")[0]: (row.verdict, row.why) for row in found.rows}
    assert verdicts["w"][0] is Verdict.RIGHTLY_WAITING
    assert verdicts["b"][0] is Verdict.UNJUDGED
    assert why in verdicts["b"][1]


def test_a_job_whose_size_was_changed_before_it_started_is_not_judged() -> None:
    before, after = pair(running=[OLD, {"id": "b", "nodes": "r1h2", "takes": {"gpus": 2}}])
    before["queue"] = [{"id": "b", "nodes": 4, "takes": {"gpus": 1}}]
    after["queue"] = []
    (row,) = tp.audit(tp.load(before), after=tp.load(after)).rows
    assert row.verdict is Verdict.INVALID
    after["running"][1]["asked"] = {"id": "b", "nodes": 2, "takes": {"gpus": 1}}
    (row,) = tp.audit(tp.load(before), after=tp.load(after)).rows
    assert row.verdict is Verdict.UNJUDGED
    assert dict(row.held) == {"b": "held: allocation 2 units, as it asked for later; before, 4"}


@pytest.mark.parametrize(
    ("walltime", "verdict"), [(630, Verdict.STARTED), (700, Verdict.OUT_OF_TURN)]
)
def test_a_delay_of_less_than_a_step_is_none(walltime: int, verdict: Verdict) -> None:
    """All hosts are reserved for `all` in 600 s, when old ends; small has one for `walltime`."""
    old = {"id": "old", "nodes": "r1h1", "takes": {"gpus": 4}, "ends": 600}
    small = {"id": "small", "nodes": 1, "takes": {"gpus": 4}, "walltime": walltime}
    before, after = pair(running=[old, {"id": "small", "nodes": "r1h2", "takes": {"gpus": 4}}])
    before["running"] = [old]
    before["queue"] = [{"id": "all", "nodes": 4, "takes": {"gpus": 4}, "walltime": 900}, small]
    after["queue"] = before["queue"][:1]
    rows = tp.audit(tp.load(before), after=tp.load(after), order="backfill").rows
    assert [row.verdict for row in rows] == [Verdict.RIGHTLY_WAITING, verdict]


def test_what_has_no_bound_is_in_no_sum_of_domains() -> None:
    done = Standing(Verdict.SUBOPTIMAL, used=3, fewest=2)
    found = Domains.of([done, *(Standing(Verdict.UNPROVEN, used=9, fewest=n) for n in (None, 1))])
    assert (found.started, found.used, found.fewest) == (2, 12, 3)


@pytest.mark.parametrize("order", [None, "priority", "backfill"])
def test_nobody_is_blamed_for_room_of_jobs_that_ended_meanwhile(
    order: str | None, tmp_path: Path
) -> None:
    """Job b needs the hosts of all racks; it fits if old had ended in time."""
    before, after = pair(running=[])
    before["running"] = [{"id": "old", "nodes": "r1h1", "takes": {"gpus": 4}}]
    for nodes, verdict in ((3, Verdict.MISSED), (4, Verdict.UNJUDGED)):
        before["queue"] = [{"id": "b", "nodes": nodes, "takes": {"gpus": 4}}]
        after["queue"] = before["queue"]
        (row,) = tp.audit(tp.load(before), after=tp.load(after), order=order).rows
        assert row.verdict is verdict
    assert row.why == "when the jobs on r1h1 ended is not known"


def test_who_came_before_others_only_afterwards_is_not_blamed(tmp_path: Path) -> None:
    """Job w waits though it was the first; s was raised above it, and has its room."""
    by_order = [{"option": "order", "value": "of priorities"}]
    before, after = pair()
    before |= {"queue": [{"id": name, "nodes": 1} for name in "ws"], "left_out": by_order}
    before["machine"]["hosts"] = [{"hosts": "h", "domains": ["r"], "capacity": {"gpus": 1}}]
    before |= {"running": [], "queue": [one | {"takes": {"gpus": 1}} for one in before["queue"]]}
    started = {"id": "s", "nodes": "h", "takes": {"gpus": 1}}
    after |= {"machine": before["machine"], "queue": before["queue"][:1]}
    for turn, verdict in ((1, Verdict.MISSED), (0, Verdict.UNJUDGED)):
        later = tp.load(after | {"running": [started | {"turn": turn}]})
        rows = tp.audit(tp.load(before), after=later, order="priority").rows
        assert {row.request[0]: row.verdict for row in rows}["w"] is verdict
    assert rows[0].why == "s comes before it afterwards"


# ---- Against brute force -------------------------------------------------------------------------


def best_by_brute_force(problem: HierarchyProblem) -> tuple[int, ...] | None:
    request = problem.requests[0]
    found = [problem.values_of(request, placed) for placed in places_of(problem.state, request)]
    num = problem.machine.num_levels + 1
    return min((values[1:num] for values in found), default=None)


def random_decision(rng: random.Random, problem: HierarchyProblem) -> Decision:
    """Place a request anyhow, or let it wait; more often than not where there is room."""
    names = problem.machine.host_names
    room = [names[k] for k in problem.state.free.min(axis=1).nonzero()[0]] or list(names)
    taken = None
    if rng.random() < 0.8:
        units = Counter(rng.choice(room) for _ in range(problem.requests[0].nodes))
        taken = {None: dict(units)}
    outcome = Decided.WAITING if taken is None else Decided.STARTED
    return Decision(problem.state.snapshot, taken, outcome)


@pytest.mark.parametrize("seed", range(4))
def test_verdicts_are_those_of_brute_force(seed: int) -> None:
    rng, seen = random.Random(seed), Counter[str]()
    for _ in range(12):
        problem = random_single(rng)
        decision = random_decision(rng, problem)
        case = case_of_decision(decision)
        model = problem.state.snapshot.machine
        levels = tuple(model.levels)  # all of them, whatever block sizes the machine has
        found = audit_cases([case.__class__(**{**vars(case), "levels": levels})]).rows[0]
        best = best_by_brute_force(problem)
        expected = Verdict.RIGHTLY_WAITING if best is None else Verdict.MISSED
        if decision.taken is not None:
            numbers = {name: k for k, name in enumerate(problem.machine.host_names)}
            placed = ({numbers[h]: n for h, n in decision.taken[None].items()},)
            own = problem.values_of(problem.requests[0], placed)[1 : len(levels) + 1]
            expected = Verdict.OPTIMAL if own == best else Verdict.SUBOPTIMAL
            if placed not in places_of(problem.state, problem.requests[0]):
                expected = Verdict.INVALID
        assert found.verdict is expected, (decision, found)
        seen[expected] += 1
    assert len(seen) >= 2


def test_levels_left_out_leave_the_others_as_they_are() -> None:
    rng = random.Random(5)
    for _ in range(10):
        snapshot = prepared(random_hierarchy(rng)).snapshot
        kept = [name for name in snapshot.machine.levels if rng.random() < 0.5]
        fewer = counted_on(snapshot, kept)
        old = tp.Model.of(snapshot).prepare().machine
        new = tp.Model.of(fewer).prepare().machine
        assert {*kept} <= {*new.levels}
        for level, name in enumerate(new.levels):
            same = old.domain_of[old.levels.index(name)]
            assert (new.domain_of[level] == same).all()


# ---- The recordings ------------------------------------------------------------------------------

KUEUE_CLASSES = {
    Verdict.OPTIMAL: "optimal",
    Verdict.SUBOPTIMAL: "suboptimal",
    Verdict.MISSED: "rejected-feasible",
    Verdict.RIGHTLY_WAITING: "rejected-infeasible",
    Verdict.INVALID: "invalid",
}


def recorded(name: str, keep: Callable[[dict[str, Any]], bool], step: int) -> list[dict[str, Any]]:
    lines = read_lines(real_file(f"{name}/decisions.jsonl"))
    return [line for _, line, _ in lines if keep(line)][::step]


STEPS = [pytest.param(19, id="some"), pytest.param(1, id="all", marks=pytest.mark.slow)]


@pytest.mark.parametrize("step", STEPS)
def test_classes_of_kueue(step: int) -> None:
    lines = recorded("kueue_real", lambda line: True, step)
    for line, row in zip(lines, tp.audit(*lines).rows, strict=True):
        truth = line["truth"]
        assert KUEUE_CLASSES[row.verdict] == truth["class"], row
        if truth["feasible"]:
            domains = [lv.bound for lv in row.free.levels[1 : 1 + len(truth["domains"])]]
            assert domains == truth["domains"]
        if (
            row.verdict is Verdict.OPTIMAL
            and "kueue_stranded" in truth
            and "balance" not in {lv.name for lv in row.free.levels}  # which goes before it
        ):
            assert row.free.strands == truth["kueue_stranded"] - truth["stranded"]


def block_counts(line: dict[str, Any]) -> list[int]:
    snapshot = decision_of(line).snapshot
    state = tp.Model.of(snapshot).prepare()
    block = state.machine.domain_of[-2]
    return [int(state.free[block == b, 0].sum()) for b in range(block.max() + 1)]


def fewest_blocks(free: list[int], nodes: int, segment: int) -> int | None:
    """Return in how few blocks nodes fit, segments whole: the blocks with most first."""
    held = 0
    for count, own in enumerate(sorted(free, reverse=True), start=1):
        held += own // segment * segment
        if held >= nodes:
            return count
    return None


def fewest_under_contract(line: dict[str, Any], free: list[int]) -> int | None:
    """Return the same for a request without segments under rules 1 and 2, by trying all groups."""
    nodes = line["request"]["nodes"]
    sizes = [int(x) for x in line["topology"].split("BlockSizes=")[1].split()[0].split(",")]
    at = next((k for k, size in enumerate(sizes) if size >= nodes), len(sizes))
    width = sizes[at] // sizes[0] if at < len(sizes) else len(free)
    lower = sizes[at - 1] if at else sizes[0]
    most = -(-nodes // lower)
    found = []
    for first in range(0, len(free), width):
        inside = list(range(first, min(first + width, len(free))))
        groups = [list(g) for _, g in itertools.groupby(inside, lambda b: b * sizes[0] // lower)]
        for chosen in itertools.combinations(groups, min(most, len(groups))):
            found.append(fewest_blocks([free[b] for g in chosen for b in g], nodes, 1))
    return min((count for count in found if count is not None), default=None)


@pytest.mark.parametrize("step", STEPS)
def test_fewest_blocks_of_slurm(step: int) -> None:
    def is_wanted(line: dict[str, Any]) -> bool:
        has_sizes = "BlockSizes" in line["topology"]
        return line["plugin"] == "topology/block" and has_sizes and not line["request"]["options"]

    lines = recorded("slurm_block", is_wanted, step)
    for line, row in zip(lines, tp.audit(*lines, contract="slurm-block").rows, strict=True):
        free, nodes, segment = (
            block_counts(line),
            line["request"]["nodes"],
            line["request"]["segment"],
        )
        if segment is not None and (nodes % segment or row.contract.levels == ()):
            assert row.verdict is Verdict.RIGHTLY_WAITING  # refused
            continue
        least = fewest_blocks(free, nodes, segment or 1)
        under = least if segment else fewest_under_contract(line, free)
        for standing, fewest in ((row.free, least), (row.contract, under)):
            by_name = {lv.name: lv.bound for lv in standing.levels}
            assert by_name["block"] == (fewest or 0), row
            if line["outcome"] == "running":
                used = len({*_blocks(line)})
                assert (standing.used, standing.fewest) == (used, fewest)
                assert standing.verdict is (
                    Verdict.OPTIMAL if used == fewest else Verdict.SUBOPTIMAL
                )
            else:
                waits = Verdict.MISSED if fewest else Verdict.RIGHTLY_WAITING
                assert standing.verdict is waits


def _blocks(line: dict[str, Any]) -> list[int]:
    machine = tp.Model.of(decision_of(line).snapshot).prepare().machine
    return [int(machine.domain_of[-2][machine.host_names.index(n)]) for n in line["chosen"]]


# ---- The command ---------------------------------------------------------------------------------


def write_lines(folder: Path, *lines: dict[str, Any] | str) -> str:
    path = folder / "decisions.jsonl"
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("\n".join(texts) + "\n")
    return str(path)


def spread_line() -> dict[str, Any]:
    """Two nodes on two blocks, where one block would do: twice the fewest."""
    request = {"nodes": 2, "segment": 1, "options": ""}
    return slurm_line(request=request, chosen=["n0", "n2"])


def test_files_and_exit_codes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_lines(tmp_path, spread_line(), slurm_line())
    table, page, proofs = tmp_path / "t.csv", tmp_path / "p.html", tmp_path / "proofs"
    files = ["--csv", str(table), "--html", str(page), "-o", str(proofs)]
    assert run(["audit", path, *files]) == ExitCode.REGRET
    said = capsys.readouterr().out
    assert "slurm-X-1  2 units, in 1s per block  suboptimal  request  2 block, 1 possible" in said
    assert "2 decisions: 4 domains used, 3 possible: regret 33.3 %" in said
    rows = list(csv.DictReader(io.StringIO(table.read_text())))
    assert [(row["verdict"], row["block"], row["block bound"]) for row in rows] == [
        ("suboptimal", "2", "1"),
        ("optimal", "2", "2"),
    ]
    text = page.read_text()
    assert "proofs/0001-slurm-X-1.json" in text
    assert text.count("<script") == 1
    assert sorted(p.name for p in proofs.iterdir()) == [
        "0001-slurm-X-1.json",
        "0002-slurm-X-2.json",
    ]
    assert run(["audit", path, "--tolerate", "34"]) == ExitCode.DONE
    assert run(["audit", path, "--tolerate", "33"]) == ExitCode.REGRET
    capsys.readouterr()
    assert run(["audit", path, "--json"]) == ExitCode.REGRET
    document = json.loads(capsys.readouterr().out)
    assert (document["schema"], document["exit_code"]) == ("topoplace.audit/1", 6)
    assert [row["verdict"] for row in document["rows"]] == ["suboptimal", "optimal"]


def test_a_missed_request_is_beyond_any_tolerance(tmp_path: Path) -> None:
    path = write_lines(tmp_path, slurm_line(outcome="pending", chosen=None))
    assert run(["audit", path, "--tolerate", "1000"]) == ExitCode.REGRET


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (['{"kueue": 1'], "line 1: expected a JSON document"),
        ([slurm_line(), "{"], "line 2: expected a JSON document"),
        ([slurm_line(), slurm_line(outcome="done")], "line 2, outcome: expected one of running"),
        ([slurm_line(), {"pbs": 1}], "line 2: expected a decision, with the version of kueue, "),
        ([slurm_line(chosen=["n9"])], "line 1, chosen[0]: expected nodes of the topology"),
        ([""], "expected recorded decisions, found an empty file"),
    ],
)
def test_malformed_lines(
    lines: list[Any], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_lines(tmp_path, *lines)
    made = tmp_path / "t.csv"
    assert run(["audit", path, "--csv", str(made)]) == ExitCode.BAD_INPUT
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"topoplace: error: {path}: {said}")
    assert not made.exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--tolerate", "-1"], "--tolerate: expected a percentage of at least 0, found -1.0"),
        (["--contract", "slurm"], "--contract: expected one of slurm-block, found 'slurm' (did"),
        (["--after", "x.json"], "x.json: expected a file that exists, found nothing there"),
        (["--csv", "no/t.csv"], "--csv: expected a file in a folder that can be written"),
    ],
)
def test_bad_options(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = tmp_path / "before.json"
    before.write_text(json.dumps(pair()[0]))
    assert run(["audit", str(before), *words]) == ExitCode.BAD_INPUT
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"topoplace: error: {said}")


def test_switches_of_a_tree_are_domains(tmp_path: Path) -> None:
    """Of four free nodes on each of two leaves, two are taken, though one leaf has them all."""
    machine = {
        "kind": "tree",
        "name": "two",
        "switches": [
            {"name": "s0", "nodes": "n[0-4]"},
            {"name": "s1", "nodes": "n[5-9]"},
            {"name": "top", "switches": "s[0-1]"},
        ],
    }
    queue = [{"id": "j", "nodes": 4, "patterns": [{"pattern": "ring"}]}]
    old = {"id": "old", "nodes": "n4"}
    before = {"schema": "topoplace.snapshot/1", "name": "now", "machine": machine, "down": "n9"}
    after = before | {"queue": [], "running": [old, {"id": "j", "nodes": "n[0-1,5-6]"}]}
    found = audited(tmp_path, before | {"queue": queue, "running": [old]}, after)
    (row,) = found.rows
    assert (row.verdict, row.why) == (Verdict.SUBOPTIMAL, "2 leaf, 1 possible")


def test_only_hierarchies_are_audited(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["audit", "blue_waters_60"]) == ExitCode.BAD_INPUT
    expected = "expected recorded decisions, a result or, with --after beside it, a snapshot"
    assert expected in capsys.readouterr().err
    assert run(["audit", "blue_waters_60", "--after", "blue_waters_60"]) == ExitCode.BAD_INPUT
    assert "expected a hierarchy or a tree, as audits are of those only" in capsys.readouterr().err


def test_a_signal_leaves_what_is_judged() -> None:
    cases, _ = load_cases([decision_of(slurm_line()) for _ in range(4)])

    def progress(done: int, total: int) -> None:
        if done == 2:
            signal.raise_signal(signal.SIGINT)

    found = audit_cases(cases, progress=progress)
    assert (len(found.rows), found.num_left) == (2, 2)
    assert found.notes == ("interrupted: 2 of 4 decisions not judged",)
    assert found.exit_code() == ExitCode.REGRET


def test_a_signal_before_anything_is_judged_leaves_an_audit_of_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cases, _ = load_cases([decision_of(slurm_line()) for _ in range(3)])

    def stopped(*given: Any) -> Row:
        signal.raise_signal(signal.SIGINT)
        return judge(*given)

    monkeypatch.setattr("topoplace.study.audit.run.judge", stopped)
    found = audit_cases(cases)
    assert (found.rows, found.num_left) == ((), 3)
    assert "interrupted: 3 of 3 decisions not judged" in str(found)
    assert found.exit_code() == ExitCode.REGRET
    assert found.document()["left_out"] == 3
    assert audit_page(found, {}, Path())


def test_a_time_limit_is_for_the_whole_audit(monkeypatch: pytest.MonkeyPatch) -> None:
    cases, _ = load_cases([decision_of(slurm_line()) for _ in range(4)])
    shares, began = [], clock.ticks()

    def timed(case: Any, contract: Any, options: Options, keep: Any) -> Row:
        shares.append(options.time_limit)
        monkeypatch.setattr(clock, "ticks", lambda: began + 30.0 * len(shares))
        return judge(case, contract, Options(), keep)

    monkeypatch.setattr("topoplace.study.audit.run.judge", timed)
    monkeypatch.setattr(clock, "ticks", lambda: began)
    found = audit_cases(cases, options=Options(time_limit=90.0))
    assert shares == [90 / 4, 60 / 3, 30 / 2]
    assert [row.verdict for row in found.rows] == [Verdict.OPTIMAL] * 3
    assert "time limit: 1 of 4 decisions not judged" in found.notes
    assert (found.num_left, found.exit_code()) == (1, ExitCode.REGRET)


# ---- Contracts in `place` ------------------------------------------------------------------------


def test_place_under_a_contract(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of free nodes 1, 1 and 2, two fit two blocks; the contract wants one block for them."""
    line = slurm_line(
        free=["n0", "n2", "n5"],
        busy=["n1", "n3", "n4"],
        down=[],
        request={"nodes": 2, "segment": None, "options": ""},
        outcome="pending",
        chosen=None,
    )
    snapshot = decision_of(line).snapshot
    request = snapshot.queue[0].model_copy(update={"required": None})
    free: Snapshot = snapshot.model_copy(update={"queue": [request]})
    assert tp.place(free).objective == 2
    for method in ("exact", "first-fit"):
        assert tp.place(free, method, contract="slurm-block").objective == 0
    assert held_to(free, "slurm-block").queue[0].required == "block"
    file = tmp_path / "s.json"
    tp.Model.of(free).save(file)
    made = tmp_path / "r.json"
    assert run(["place", str(file), "--contract", "slurm-block", "-o", str(made)]) == 0
    assert check_file(made).verified
    capsys.readouterr()
    assert run(["place", "blue_waters_60", "--contract", "slurm-block"]) == ExitCode.BAD_INPUT
    assert "--contract: expected no contract but on hierarchies" in capsys.readouterr().err


# ---- Live allocators -----------------------------------------------------------------------------

PROGRAM = """
import json, sys

def decided(line):
    request = line["request"]
    pods, places = request["count"], []
    for node in line["nodes"]:
        held = min(pods, node["free"] // request["pod_units"])
        if held:
            places.append({"path": node["path"], "count": held})
            pods -= held
    return {"reason": "no room"} if pods else {"assignment": places}

for number, text in enumerate(sys.stdin):
    line = json.loads(text)
    assert "assignment" not in line and "reason" not in line
    answer = {"id": line["id"]} | decided(line)
    MISBEHAVE
    print(json.dumps(answer))
"""


def program(folder: Path, misbehave: str = "") -> str:
    path = folder / "allocator.py"
    path.write_text(PROGRAM.replace("MISBEHAVE", misbehave or "pass"))
    return f"greedy={sys.executable} {path}"


def test_a_live_allocator_is_put_through_recorded_and_drawn_states(tmp_path: Path) -> None:
    wanted = {"count": 4, "mode": "unconstrained", "pod_units": 1}
    path = write_lines(
        tmp_path, kueue_line(request=wanted), kueue_line(request=wanted | {"count": 9})
    )
    command = program(tmp_path)
    found = tp.audit(path, command=command)
    assert [row.verdict for row in found.rows] == [Verdict.OPTIMAL, Verdict.RIGHTLY_WAITING]
    drawn = tp.audit(command=command, states=4, seed=3)
    again = tp.audit(command=command, states=4, seed=3)
    assert drawn == again
    assert [row.instance for row in drawn.rows] == [f"drawn-3-{k}" for k in range(4)]


def test_drawn_states_are_as_busy_as_said() -> None:
    for line in drawn_lines(30, seed=1):
        whole = sum(node["capacity"] for node in line["nodes"])
        busy = 1 - sum(node["free"] for node in line["nodes"]) / whole
        assert 0.49 <= busy <= 0.91
        assert {len([n for n in line["nodes"] if n["path"][1] == r]) for r in _racks(line)} == {18}
        assert decision_of(line).outcome is Decided.STARTED or "assignment" not in line


def _racks(line: dict[str, Any]) -> set[str]:
    return {node["path"][1] for node in line["nodes"]}


@pytest.mark.parametrize(
    ("misbehave", "said"),
    [
        ("answer = {'id': line['id']}", "answer: expected one of assignment, reason"),
        ("answer['id'] = 'other'", "answer: id: expected the answer to k-1, found 'other'"),
        (
            "answer['assignment'] = [{'path': ['r9', 'h'], 'count': 4}]",
            "answer: assignment[0].path",
        ),
        ("if number: print('hello'); sys.exit()", "answer: answer: expected a JSON document"),
        ("answer['assignment'] = [{'path': ['r1', 'b'], 'count': 4}]", "4 gpus of b, 1 are free"),
        ("if number: sys.exit('no more')", "no answer: exit code 1; it said 'no more'"),
    ],
)
def test_a_live_allocator_that_answers_badly(misbehave: str, said: str, tmp_path: Path) -> None:
    lines = write_lines(tmp_path, *[kueue_line() for _ in range(2)])
    found = tp.audit(lines, command=program(tmp_path, misbehave))
    assert found.rows[-1].verdict is Verdict.INVALID
    assert any(row.why.startswith(said) for row in found.rows), [row.why for row in found.rows]
    assert found.exit_code() == ExitCode.CHECK_FAILED


# ---- Pods of cubes -------------------------------------------------------------------------------

POD_PROGRAM = """
import json, sys

for text in sys.stdin:
    line = json.loads(text)
    assert "outcome" not in line and "chosen" not in line
    busy = {int(chip) for chip in line["busy"].split(",") if chip}
    start = next(k for k in range(0, 16, line["request"]["nodes"]) if k not in busy)
    chosen = f"{start}-{start + line['request']['nodes'] - 1}"
    answer = {"id": line["id"], "outcome": "running", "chosen": chosen}
    MISBEHAVE
    print(json.dumps(answer))
"""


def pod_line(nodes: int, busy: str = "", **more: Any) -> dict[str, Any]:
    """Return a state of two cubes of 2x2x2 chips, with a request that waits unless told."""
    line = {"id": f"p-{nodes}", "pod": "hand", "cubes": 2, "side": [2, 2, 2], "busy": busy}
    return line | {"request": {"nodes": nodes}, "outcome": "pending", "chosen": None} | more


@pytest.mark.parametrize(
    ("nodes", "busy", "chosen", "verdict", "why"),
    [
        (4, "8", "12-15", Verdict.OPTIMAL, ""),
        (4, "8", "0-3", Verdict.SUBOPTIMAL, "0 free_cubes, 1 possible"),
        (4, "8", None, Verdict.MISSED, "0 nodes, 4 possible"),
        (4, "0,3,5,6,8,11,13,14", None, Verdict.RIGHTLY_WAITING, ""),  # no 2x2 is free
        (8, "8", "0-7", Verdict.OPTIMAL, ""),
        (16, "8", None, Verdict.RIGHTLY_WAITING, ""),
        (8, "8", "4-7,12-15", Verdict.INVALID, "request: 8 chips of 2 cubes, 1 whole ones are due"),
        (4, "8", "8,10,12,14", Verdict.INVALID, "request may not use chip 8"),
        (4, "8", "9,10,12,15", Verdict.INVALID, "request: the chips are no part of a shape that"),
        (4, "8", "6-9", Verdict.INVALID, "request: a part of one cube is due, the chips are of 2"),
    ],
)
def test_decisions_on_a_pod(
    nodes: int, busy: str, chosen: str | None, verdict: Verdict, why: str
) -> None:
    """Two cubes of 2x2x2: chips 0 to 7, and 8 to 15 of which 8 is held."""
    outcome = {"outcome": "running", "chosen": chosen} if chosen else {}
    row = verdict_of(decision_of(pod_line(nodes, busy, **outcome)))
    assert row.verdict is verdict
    assert row.why.startswith(why)
    if verdict is Verdict.SUBOPTIMAL:
        assert (row.standing.used, row.standing.fewest, row.standing.regret) == (1, 0, 1)


def test_a_live_allocator_on_pods(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "program.py"
    lines = tmp_path / "lines.jsonl"
    lines.write_text("".join(f"{json.dumps(pod_line(n, '0'))}\n" for n in (8, 4, 2)))
    for misbehave, verdicts in {
        "pass": ["optimal", "optimal", "optimal"],
        "answer['chosen'] = '0-99'": ["invalid"] * 3,
        "answer['chosen'] = None": ["invalid"] * 3,
        "answer = {'outcome': 'pending'}": ["missed"] * 3,
    }.items():
        path.write_text(POD_PROGRAM.replace("MISBEHAVE", misbehave))
        found = tp.audit(lines, command=f"mine={sys.executable} {path}", results=tmp_path / "out")
        assert [row.verdict for row in found.rows] == verdicts, misbehave
    proofs = sorted((tmp_path / "out").iterdir())
    assert len(proofs) == 3
    assert all(check_file(proof).verified for proof in proofs)
    assert found.exit_code() == ExitCode.REGRET
    waiting = tmp_path / "waiting.py"
    waiting.write_text('import sys\nfor _ in sys.stdin: print(\'{"outcome": "pending"}\')\n')
    words = ["audit", "--states", "6", "--seed", "2", "--command", f"{sys.executable} {waiting}"]
    assert run([*words, "--on", "cubes:4"]) in (ExitCode.DONE, ExitCode.REGRET)
    assert "drawn, parts" in capsys.readouterr().out
    assert run([*words, "--on", "torus:4x4"]) == ExitCode.BAD_INPUT
    assert "--on: expected a pod of cubes, such as cubes:64" in capsys.readouterr().err
    assert run(["audit", str(lines), "--command", "cat", "--on", "cubes:4"]) == ExitCode.BAD_INPUT
    assert "--on: expected a number of states to draw" in capsys.readouterr().err
    assert run(["audit", str(lines), "--levels", "rack"]) == ExitCode.BAD_INPUT
    assert "--levels: expected no levels on a pod of cubes" in capsys.readouterr().err


def test_drawn_pods_are_as_they_should_be() -> None:
    pod = CubesModel(kind="cubes", name="pod", cubes=8)
    lines = list(drawn_pods(pod, 40, seed=1))
    assert lines == list(drawn_pods(pod, 40, seed=1))
    assert len({line["request"]["nodes"] >= 64 for line in lines}) == 2
    for line in lines:
        state = decision_of(line | {"outcome": "pending"}).snapshot
        busy = parse_node_set(state.running[0].nodes, 512)
        assert 0.15 <= len(busy) / 512 <= 0.95


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--states", "2"], 2, "--states: expected a command for the states, found 2"),
        (["--command", "false"], 2, "--states: expected recorded decisions or a number of states"),
        (["--command", "false", "--states", "1"], 5, "command: no answer: exit code 1; it said ''"),
        (["--command", "seq 3", "--states", "1"], 5, "command: 3 answers to 1 state"),
        (["--command", "no-such", "--states", "1"], 2, "--command: expected a program that can be"),
        ([], 2, "SOURCE: expected decisions to audit, found none"),
    ],
)
def test_bad_live_allocators(
    words: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["audit", *words]) == code
    assert capsys.readouterr().err.startswith(f"topoplace: error: {said}")
