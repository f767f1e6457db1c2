"""Requests with an option that is not modelled: held by all methods, said everywhere, released."""

import json
import random

import pytest

import topoplace as tp
from topoplace.cli import run
from topoplace.errors import InputError
from topoplace.report.summary import summary
from topoplace.result import Status
from topoplace.snapshot.held import Choices, candidates_of
from topoplace.study.batch.pool import Pool
from topoplace.study.batch.run import SOLVER, run_batch
from topoplace.study.batch.task import Limits

RACKS = {
    "kind": "hierarchy",
    "name": "racks",
    "levels": ["rack", "host"],
    "hosts": [{"hosts": "a[1-4]", "domains": ["r1"]}, {"hosts": "b[1-4]", "domains": ["r2"]}],
}
TREE = {
    "kind": "tree",
    "name": "tree",
    "switches": [
        {"name": "l1", "nodes": "a[1-4]"},
        {"name": "l2", "nodes": "b[1-4]"},
        {"name": "top", "switches": "l[1-2]"},
    ],
}
TORUS = {"name": "ring", "shape": [8]}
ANCHORED = TORUS | {"anchored": [{"dims": [2]}]}
CUBES = {"kind": "cubes", "name": "pod", "cubes": 4, "side": [2, 1]}
MACHINES = {"torus": TORUS, "anchored": ANCHORED, "tree": TREE, "racks": RACKS, "cubes": CUBES}


def document(machine: dict, *, left_out: list | None = None, **more: object) -> dict:
    return {
        "schema": "topoplace.snapshot/1",
        "name": "now",
        "machine": machine,
        "queue": [{"id": name, "nodes": 2} for name in ("q1", "q2", "q3")],
        "left_out": left_out
        or [
            {"request": "q2", "option": "partition", "value": "acc", "where": "line 3"},
            {"request": "q2", "option": "features", "value": "ib"},
            {"option": "order", "value": "by priority"},
        ],
        **more,
    }


def started(result: object) -> set[str]:
    return {start.request for start in result.placements}


@pytest.mark.parametrize("kind", MACHINES)
def test_a_held_request_starts_on_no_machine_and_check_agrees(kind):
    result = tp.place(document(MACHINES[kind]))
    assert result.status is Status.OPTIMAL
    assert started(result) == {"q1", "q3"}
    report = result.check()
    assert report.verified
    assert "holds  held: 1 of 3 held" in str(report)


@pytest.mark.parametrize("kind", MACHINES)
def test_a_request_is_released_by_all_its_options_only(kind):
    half = tp.place(document(MACHINES[kind]), ignore=["partition"])
    assert started(half) == {"q1", "q3"}
    whole = tp.place(document(MACHINES[kind]), ignore=["partition", "features"])
    assert started(whole) == {"q1", "q2", "q3"}
    assert whole.instance.ignored == ["features", "partition"]
    assert "1 of 3 held" not in str(whole.check())
    assert "ignored: features, partition" in str(whole.check())
    assert whole.check().verified
    assert started(tp.place(document(MACHINES[kind]), ignore="all")) == {"q1", "q2", "q3"}


@pytest.mark.parametrize("kind", MACHINES)
def test_a_result_that_starts_a_held_request_is_refused(kind):
    released = tp.place(document(MACHINES[kind]), ignore="all")
    forged = released.instance.model_copy(update={"ignored": []})
    assert not released.model_copy(update={"instance": forged}).check().holds


@pytest.mark.parametrize("kind", MACHINES)
def test_a_result_that_holds_nobody_of_the_queue_is_refused(kind):
    result = tp.place(document(MACHINES[kind]))
    holds = [one.model_copy(update={"request": "Q2"}) for one in result.instance.left_out[:1]]
    left_out = [*result.instance.left_out, *holds]
    forged = result.instance.model_copy(update={"left_out": left_out})
    report = result.model_copy(update={"instance": forged}).check()
    assert "FAILS  held: left_out names Q2, which is no request of the queue" in str(report)
    assert not report.holds


def test_the_answer_names_who_is_held_and_by_what():
    result = tp.place(document(RACKS))
    assert "; 1 of 3 requests held" in str(result).splitlines()[0]
    text = summary(result)
    assert "1 of 3 requests held (features 1, partition 1; see --ignore)" in text
    assert "not modelled: order by priority" in text
    frame = result.to_frame().set_index("request")
    assert frame.loc["q2", "waits"] == "held: partition acc; features ib"


@pytest.mark.parametrize("kind", MACHINES)
def test_json_says_of_every_request_that_waits_why_as_the_text_does(kind, tmp_path, capsys):
    (tmp_path / "now.json").write_text(
        json.dumps(
            document(MACHINES[kind], queue=[{"id": f"q{k}", "nodes": 4} for k in (1, 2, 3, 4)])
        )
    )
    assert run(["place", str(tmp_path / "now.json"), "--json"]) == 0
    captured = capsys.readouterr()
    (tmp_path / "r.json").write_text(captured.out)
    told = json.loads(captured.out)["waits"]
    assert set(told) == {"q1", "q2", "q3", "q4"} - started(tp.load(tmp_path / "r.json"))
    assert told["q2"] == "held: partition acc; features ib"
    assert all(text in captured.err for text in told.values())
    assert tp.load(tmp_path / "r.json").check().verified


def test_requests_held_by_the_same_have_one_line():
    queue = [{"id": f"j{k}", "nodes": 1} for k in range(60)]
    held = [{"request": one["id"], "option": "partition", "value": "acc"} for one in queue[:-1]]
    text = summary(tp.place(document(RACKS, left_out=held, queue=queue)))
    assert "\n  j0, j1, j2, j3 and 55 more held: partition acc" in text
    assert text.count("held: ") == 1
    for k, one in enumerate(held):
        one["value"] = f"p{k}"
    text = summary(tp.place(document(RACKS, left_out=held, queue=queue)))
    assert text.endswith("\n  ... and 51 more wait (topoplace show --html says why)")


def test_all_placements_and_trade_offs_leave_the_held_out():
    for found in (tp.optima(document(RACKS), 4), tp.frontier(document(RACKS), ["nodes", "rack"])):
        assert found.check().verified
        assert "holds  held: 1 of 3 held" in str(found.check())
        assert "1 of 3 requests held" in str(found)
        assert all({p.request for p in x.solution.placements} <= {"q1", "q3"} for x in found.points)


def test_a_held_request_cannot_be_asked_to_start():
    with pytest.raises(InputError, match="not held"):
        tp.repack(document(TORUS), ["q2"])
    assert tp.repack(document(TORUS), ["q2"], ignore="all").check().verified


def test_room_for_a_prism_is_made_whoever_is_held():
    """The job that the room is for is called "room", too."""
    queue = [{"id": "room", "nodes": 2}, {"id": "q2", "nodes": 2}]
    running = [{"id": "r", "nodes": "2-3", "prism": {"origin": [2], "extents": [2]}}]
    held = [{"request": "room", "option": "features"}]
    whole = document(TORUS, left_out=held, queue=queue, running=running)
    found = tp.repack(whole, defragment=1, room="prism")
    assert found.check().verified
    assert [point.values[-1] for point in found.points] == [4]


def alone() -> Pool:
    """Return a single process for a batch."""
    return Pool(SOLVER, 1, Limits())


@pytest.mark.usefixtures("batches_here")
def test_compare_and_batch_say_how_many_are_held(tmp_path):
    comparison = tp.compare(document(RACKS), methods=["exact", "first-fit"])
    assert [row.facts["held"] for row in comparison.rows] == [1, 1]
    assert any("1 of 3 requests held" in note for note in comparison.notes)
    (tmp_path / "now.json").write_text(json.dumps(document(RACKS)))
    (tmp_path / "plain.json").write_text(json.dumps(document(RACKS) | {"left_out": []}))
    both = run_batch([tmp_path], tmp_path / "out", executor=alone())
    assert [(row.held, row.ignored, row.started) for row in both.rows] == [
        (1, "", 2),
        (None, "", 3),
    ]
    assert both.num_held == 1
    released = run_batch([tmp_path], tmp_path / "out", choices=Choices(["all"]), executor=alone())
    assert [(row.held, row.ignored) for row in released.rows] == [
        (None, "features partition"),
        (None, ""),
    ]


def test_options_and_requests_that_are_unknown_are_refused():
    with pytest.raises(InputError, match="one of features, partition, found 'part'"):
        tp.place(document(RACKS), ignore=["part"])
    with pytest.raises(InputError, match="no option, as none was left out"):
        tp.place(document(RACKS) | {"left_out": []}, ignore=["partition"])
    with pytest.raises(InputError, match=r"left_out\[0\].request: expected a request of the queue"):
        tp.place(document(RACKS, left_out=[{"request": "q9", "option": "features"}]))


def test_a_snapshot_without_anything_left_out_is_written_as_before():
    plain = tp.Model.of(tp.load(document(RACKS) | {"left_out": []}).snapshot).snapshot
    assert "left_out" not in plain.model_dump()
    assert "ignored" not in plain.model_dump()


@pytest.mark.parametrize("seed", range(20))
def test_holding_requests_is_as_if_they_were_not_there(seed):
    draw = random.Random(seed)
    queue = [{"id": f"q{k}", "nodes": draw.randint(1, 4)} for k in range(6)]
    held = draw.sample([request["id"] for request in queue], 3)
    left_out = [{"request": name, "option": "features"} for name in held]
    machine = MACHINES[draw.choice(["torus", "tree", "racks"])]
    result = tp.place(document(machine, left_out=left_out, queue=queue))
    assert {r.id for r in candidates_of(result.instance)}.isdisjoint(held)
    rest = [request for request in queue if request["id"] not in held]
    other = tp.place(document(machine, queue=rest) | {"left_out": []})
    assert [level.objective for level in result.levels] == [v.objective for v in other.levels]
    assert result.check().verified


# ---- Audits --------------------------------------------------------------------------------------


def pair(started: dict[str, str], waiting: list[str], left_out: list) -> list:
    """Return a state of racks before and after: who started where, and who waits."""
    before = document(RACKS, left_out=left_out)
    after = {
        **before,
        "left_out": [],
        "running": [{"id": name, "nodes": nodes} for name, nodes in started.items()],
        "queue": [request for request in before["queue"] if request["id"] in waiting],
    }
    return [tp.load(one).snapshot for one in (before, after)]


HOLD_Q2 = [{"request": "q2", "option": "features", "value": "ib"}]
ORDER = [{"option": "order", "value": "by priority"}]


def test_an_audit_judges_nothing_where_a_request_is_held():
    before, after = pair({"q1": "a[1-2]"}, ["q2", "q3"], HOLD_Q2)
    (row,) = tp.audit(before, after=after).rows
    assert row.verdict == "unjudged"
    assert row.standing.jobs == ("q2",)
    assert row.why == "q2 held: features ib"
    assert row.held == {"q2": "held: features ib"}
    (row,) = tp.audit(before, after=after, ignore=["features"]).rows
    assert row.verdict == "missed"
    assert row.standing.jobs == ("q2", "q3")


def test_a_held_request_that_was_started_is_as_if_it_had_run_before():
    before, after = pair({"q1": "a[1-2]", "q2": "b[1-2]"}, ["q3"], HOLD_Q2)
    audit = tp.audit(before, after=after)
    assert audit.rows[0].verdict == "unjudged"
    assert "now: 1 held request started: counted as running before" in audit.notes


def test_a_decision_that_breaks_a_rule_is_invalid_whoever_is_held():
    before, after = pair({"q1": "a[1-3]"}, ["q2", "q3"], HOLD_Q2)
    assert tp.audit(before, after=after).rows[0].verdict == "invalid"


def test_only_the_first_that_waits_is_missed_where_there_is_an_order():
    requests = [{"id": "q1", "nodes": 8}, {"id": "q2", "nodes": 2}]
    before, after = (
        document(
            RACKS,
            left_out=ORDER if waits else [{"option": "none"}],
            queue=requests,
            running=[{"id": "r", "nodes": "a1"}],
        )
        for waits in (True, False)
    )
    (row,) = tp.audit(tp.load(before).snapshot, after=tp.load(after).snapshot).rows
    assert row.verdict == "unjudged"
    assert row.why.endswith("q1 is the first that waits, and does not fit")
    # so it is where an option of another request is ignored
    more = {"left_out": [*ORDER, *HOLD_Q2]}
    both = [tp.load(one).snapshot for one in (before | more, after)]
    (row,) = tp.audit(both[0], after=both[1], ignore=["features"]).rows
    assert row.why.endswith("q1 is the first that waits, and does not fit")
    before["queue"] = after["queue"] = requests[::-1]
    (row,) = tp.audit(tp.load(before).snapshot, after=tp.load(after).snapshot).rows
    assert row.verdict == "missed"
    assert row.standing.jobs == ("q2",)


def test_what_is_left_out_of_a_request_that_a_contract_refuses_matters_no_more():
    """The checker confirms the optimum of those that are left: one that it refused was a crash."""
    machine = RACKS | {"block_sizes": [4]}
    wide = {"id": "q1", "nodes": 8, "segments": [{"size": 8, "level": "rack"}]}
    held = {
        "left_out": [{"request": "q1", "option": "features"}],
        "queue": [wide, {"id": "q2", "nodes": 2}],
    }
    before, after = (tp.load(document(machine, **held)).snapshot for _ in range(2))
    (row,) = tp.audit(before, after=after, contract="slurm-block", ignore=["features"]).rows
    assert (row.verdict, row.standing.jobs) == ("missed", ("q2",))
