"""Slurm's reservations: held until they end, and who has to keep off those to come."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

import topoplace as tp
from test_door import stand_in
from test_slurm_options import NODE, NOW, entry, holds, number, snapshot_of
from test_slurm_sharing import NODE as SHARED
from test_slurm_sharing import by_node, ending, running, whole

HOUR = 3600


@pytest.fixture
def zone(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[None]:
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def as_json(**more: Any) -> str:
    """Return what scontrol prints of a reservation that holds two nodes for an hour."""
    usual = {"name": "r", "node_list": "n[0-1]", "flags": ["SPEC_NODES"], "core_count": 0}
    usual |= {"start_time": number(NOW - 60), "end_time": number(NOW + HOUR)}
    return json.dumps({"reservations": [usual | more], "last_update": number(NOW)})


def as_line(begins: int, ends: int, nodes: str = "n[0-1]", state: str = "ACTIVE") -> str:
    times = [datetime.fromtimestamp(NOW + at, UTC).strftime("%Y-%m-%dT%H:%M:%S")
             for at in (begins, ends)]  # fmt: skip
    return (f"ReservationName=r StartTime={times[0]} EndTime={times[1]} Nodes={nodes} "
            f"Flags=SPEC_NODES State={state}\n")  # fmt: skip


def eight(state: str = "IDLE", busy: int | None = None) -> str:
    """Return eight nodes; the first two have a state, and are said to have been busy last."""
    lines = [NODE.format(name=f"n{k}", of="all") for k in range(8)]
    seen = "" if busy is None else datetime.fromtimestamp(NOW - busy, UTC).strftime("%FT%T")
    lines[:2] = [line.replace("State=IDLE", f"State={state} LastBusyTime={seen}")
                 for line in lines[:2]]  # fmt: skip
    return "".join(lines)


def ahead(model: tp.Model) -> set[str]:
    own = model.snapshot.left_out
    return {one.option for one in own if one.request is None} - {
        "order",
        "plans",
        "reservations",
        "window",
    }


@pytest.mark.parametrize("state", ["IDLE", "IDLE+RESERVED", "IDLE+MAINTENANCE+RESERVED"])
def test_an_active_reservation_holds_its_nodes_until_it_ends(state, tmp_path):
    model = snapshot_of(tmp_path, [whole(1, 7)], nodes=eight(state), reservations=as_json())
    (own,) = model.snapshot.running
    assert (own.id, own.nodes, own.ends) == ("reservation:r", "n[0-1]", HOUR)
    assert (model.snapshot.down, holds(model), ahead(model)) == ("", {}, set())
    result = tp.place(model, order="backfill")
    assert result.check().verified
    assert result.levels[0].certificate.reserved.at == HOUR


def test_audits_in_an_order_judge_beside_a_reservation_that_ends(tmp_path):
    large, short, long = whole(1, 8), whole(2, 2, time_limit=number(30)), whole(3, 2)
    long["time_limit"] = number(120)

    def audited(*jobs: dict[str, Any]) -> dict[str, str]:
        pair = []
        for name, own in (("before", [large, short, long]), ("after", list(jobs))):
            (tmp_path / name).mkdir(exist_ok=True)
            files = {"nodes": eight(), "reservations": as_json()}
            pair.append(snapshot_of(tmp_path / name, own, **files))
        rows = tp.audit(pair[0], after=pair[1], order="backfill").rows
        return {row.standing.jobs[0]: str(row.verdict) for row in rows}

    run = {"job_state": ["RUNNING"], "nodes": "n[4-5]"}
    assert audited(large, short, long)["2"] == "missed"  # it ends before the reservation does
    assert audited(large, short, long)["3"] == "rightly waiting"
    assert audited(large, short | run, long)["2"] == "rightly started"
    assert audited(large, short, long | run)["3"] == "out of turn"


def test_jobs_inside_hold_their_nodes_as_long(tmp_path):
    inside = ending(9, "n[0-3]", 4, 600)
    model = snapshot_of(tmp_path, [inside, whole(1, 2)], nodes=eight(), reservations=as_json())
    assert [(job.id, job.nodes, job.ends) for job in model.snapshot.running] == [
        ("9/1", "n[0-1]", HOUR),
        ("9/2", "n[2-3]", 600),
    ]


def test_what_jobs_leave_of_shared_nodes_is_reserved(tmp_path):
    used = {"n0": (12, 12000)}
    state = ["MIXED+RESERVED", "IDLE+RESERVED", *["IDLE"] * 6]
    lines = [SHARED.format(name=f"n{k}", cpus=12 * (k == 0), state=state[k], memory=0,
                           gres="(null)", threads=1) for k in range(8)]  # fmt: skip
    jobs = [running(9, used), by_node(1, 1), by_node(2, 1)]
    model = snapshot_of(tmp_path, jobs, nodes="".join(lines), reservations=as_json())
    assert [(job.id, job.nodes, job.takes["cpus"], job.ends) for job in model.snapshot.running] == [
        ("9", "n0", 12, HOUR),
        ("reservation:r", "n0", 4, HOUR),
        ("reservation:r/2", "n1", 16, HOUR),
    ]


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"], indirect=True)
@pytest.mark.parametrize(("busy", "blames"), [(5, True), (None, False), (5000, False)])
def test_local_times_count_if_the_nodes_confirm_the_zone(zone, busy, blames, tmp_path, request):
    text = as_line(-60, HOUR)
    model = snapshot_of(tmp_path, [whole(1, 7)], nodes=eight(busy=busy), reservations=text)
    here = request.node.callspec.params["zone"] == "UTC"
    assert [job.ends for job in model.snapshot.running] == ([HOUR] if here else [])
    assert model.snapshot.down == ("" if here else "n[0-1]")  # there it began in the future
    assert ahead(model) == (set() if here and blames else {"reservation-end"})


@pytest.mark.parametrize(
    ("more", "state", "why"),
    [
        ({"flags": ["DAILY"]}, "IDLE", "comes again"),
        ({"flags": ["MAGNETIC"]}, "IDLE", "do not name it"),
        ({"core_count": 16}, "IDLE", "16 of 32 cores"),
        ({"node_list": "n[2-3]"}, "IDLE+RESERVED", "no reservation names"),
    ],
)
def test_what_is_not_known_of_an_end_is_said(more, state, why, tmp_path):
    nodes = eight(state).replace("TmpDisk", "ThreadsPerCore=1 TmpDisk")
    model = snapshot_of(tmp_path, [entry(1)], nodes=nodes, reservations=as_json(**more))
    (own,) = (one for one in model.snapshot.left_out if one.request is None)
    assert own.option == "reservation-end"
    assert why in own.value


def test_a_reservation_to_come_keeps_off_those_that_would_reach_it(tmp_path):
    later = as_json(start_time=number(NOW + HOUR), end_time=number(NOW + 2 * HOUR))
    jobs = [
        entry(1, time_limit=number(50)),  # ends before it
        entry(2, time_limit=number(61)),
        entry(3, time_limit=number(59)),  # just before it begins
        entry(4, time_limit={"set": False, "infinite": True, "number": 0}),
        entry(5, partition="low", time_limit=number(120)),  # on other nodes
        entry(6, time_limit=number(120), time_minimum=number(30)),  # backfill shortens it
    ]
    partitions = "".join(
        f"PartitionName={name} Nodes={nodes} MaxNodes=UNLIMITED MaxTime=UNLIMITED MinNodes=0 "
        "OverSubscribe=NO State=UP\n"
        for name, nodes in (("all", "n[0-7]"), ("low", "n[6-7]"))
    )
    model = snapshot_of(tmp_path, jobs, partitions=partitions, reservations=later)
    assert holds(model) == {"3": ["reservation"], "4": ["reservation"]}
    eligible = {request.id: request.eligible for request in model.snapshot.queue}
    assert eligible["1"] is None
    assert eligible["2"] == "!reservation:r"
    assert eligible["5"] == "partition:low"
    assert eligible["6"] is None
    assert model.snapshot.sets["reservation:r"] == "n[0-1]"
    assert ahead(model) == {"reservation-later"}
    assert model.snapshot.running == []


def test_a_plan_on_shared_nodes_has_whole_ones(tmp_path):
    lines = "".join(SHARED.format(name=f"n{k}", cpus=16 * (k < 7), state="IDLE", memory=0,
                    gres="(null)", threads=1) for k in range(8))  # fmt: skip
    busy = running(9, {f"n{k}": (16, 0) for k in range(7)})
    first = by_node(1, 2, memory_per_cpu=number(0), tasks_per_node=number(1))
    second = by_node(2, 1, memory_per_cpu=number(0))
    plan = {"scheduled_nodes": "n[6-7]", "start_time": number(NOW + 600)}

    def audited(**more: Any) -> Any:
        pair = [snapshot_of(tmp_path, [busy, own, second], nodes=lines) for own in
                (first, first | more)]  # fmt: skip
        rows = tp.audit(pair[0], after=pair[1], order="backfill").rows
        return {row.standing.jobs[0]: row for row in rows}["2"]

    row = audited(**plan)  # one CPU of n7 is planned, and all of it is Slurm's to keep
    assert row.verdict == "rightly waiting"
    assert row.why.startswith("no room alongside those that started and the plans")
    row = audited()
    assert row.verdict == "unjudged"
    assert row.why == (
        "the scheduler's plan for 1 is not known, which may have its nodes as whole ones"
    )
    second["time_limit"] = number(5)  # it ends before the plan begins
    assert audited(**plan).verdict == "missed"


def test_who_may_be_in_the_way_of_an_unknown_reservation_is_not_missed(tmp_path):
    """Job 4 is held: whether 1 or 4 has the reservation is open, and 3 would delay that of 1."""
    old, large, long = ending(9, "n[0-3]", 4, 600), whole(1, 6), whole(3, 3)
    held = whole(4, 1, network="sn_all")
    model = snapshot_of(tmp_path, [old, large, long, held])
    rows = tp.audit(model, after=model, order="backfill").rows
    row = {row.standing.jobs[0]: row for row in rows}["3"]
    assert row.verdict == "unjudged"
    assert row.why == "the scheduler's plan for 1 is not known, which may have its nodes"


def test_who_ends_before_the_schedulers_own_plan_is_not_out_of_turn(tmp_path):
    old, large = ending(9, "n[0-3]", 4, 600), whole(1, 6)
    small = whole(2, 3, time_limit=number(20))
    run = small | {"job_state": ["RUNNING"], "nodes": "n[4-6]"}

    def verdict(**plan: Any) -> str:
        pair = [snapshot_of(tmp_path, jobs) for jobs in
                ([old, large, small], [old, large | plan, run])]  # fmt: skip
        rows = tp.audit(pair[0], after=pair[1], order="backfill").rows
        return {row.standing.jobs[0]: str(row.verdict) for row in rows}["2"]

    assert verdict() == "out of turn"  # 1 could start in 600 s, and this ends in 1200
    plan = {"scheduled_nodes": "n[0-5]", "start_time": number(NOW + 1200)}
    assert verdict(**plan) == "unjudged"


def test_a_live_snapshot_asks_for_reservations_as_json(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    snapshot_of(tmp_path, [entry(1)], nodes=eight(), reservations=as_json())
    answers = {
        "show topology": "cat topology",
        "show node -o": "cat nodes",
        "show partition -o": "echo 'PartitionName=all Nodes=n[0-7] State=UP'",
        "show reservation --json": "cat reservations",
    }
    scontrol = stand_in(tmp_path / "scontrol", answers)
    squeue = stand_in(tmp_path / "squeue", {"--all --json": "cat jobs"})
    model = tp.live_snapshot(slurm=True, scontrol=scontrol, squeue=squeue)
    assert [(job.id, job.ends) for job in model.snapshot.running] == [("reservation:r", HOUR)]
