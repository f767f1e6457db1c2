"""Replays of tiny logs, worked out by hand."""

from __future__ import annotations

import time
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import topoplace.solving.registry as known
from real_files import real_file
from topoplace.errors import InputError, TopoplaceError
from topoplace.placement.tree.problem import TreeProblem
from topoplace.snapshot.schema import Communication, Pattern, PatternUse, SwitchModel, TreeModel
from topoplace.snapshot.tree_state import TreeState, prepare_tree
from topoplace.solving import Options, Outcome, methods, register
from topoplace.study.replay import MIXES, LogJob, Replay, read_log, with_intensive
from topoplace.study.replay.figures import JobRecord, improvements, mean_execution_gain, metrics_of
from topoplace.study.replay.trees import TreeSite, individual_runs, occupied
from tree_cases import model_of, snapshot_on

RD = (PatternUse(pattern=Pattern.RECURSIVE_DOUBLING),)


def state_of(*sizes: int) -> TreeState:
    return prepare_tree(snapshot_on(model_of(sizes)))


def log_of(*jobs: tuple[int, int, int, int]) -> list[LogJob]:
    """Return compute-intensive jobs a, b, .. of nodes, submission, run time and walltime."""
    return [LogJob(chr(97 + k), *job) for k, job in enumerate(jobs)]


def spans(replay: Replay) -> dict[str, tuple[int, int]]:
    return {record.job.id: (record.start, record.end) for record in replay.records}


def replayed(state: TreeState, jobs: list[LogJob], method: str = "default") -> Replay:
    replay = Replay(state, jobs, method)
    replay.run()
    return replay


def test_a_short_job_fills_the_gap_before_the_reservation() -> None:
    log = log_of((6, 0, 10, 10), (8, 1, 5, 5), (2, 2, 8, 8), (2, 3, 8, 8))
    # b waits for a until 10; c ends by then; d would not, and b leaves no node.
    found = spans(replayed(state_of(4, 4), log))
    assert found == {"a": (0, 10), "c": (2, 10), "b": (10, 15), "d": (15, 23)}


def test_a_long_job_starts_on_nodes_the_reservation_leaves() -> None:
    log = log_of((6, 0, 10, 10), (5, 1, 5, 5), (2, 2, 99, 99), (2, 3, 5, 99))
    # At 10 all 8 are free but for c's 2; b takes 5, so that d's 2 would be one too many.
    found = spans(replayed(state_of(4, 4), log))
    assert found == {"a": (0, 10), "c": (2, 101), "b": (10, 15), "d": (15, 20)}


def test_reservations_reckon_with_walltimes_not_run_times() -> None:
    log = log_of((6, 0, 3, 10), (8, 1, 5, 5), (2, 2, 8, 8))
    # a ends at 3 already, but c, thought harmless, holds b up until 10.
    assert spans(replayed(state_of(4, 4), log)) == {"a": (0, 3), "c": (2, 10), "b": (10, 15)}


def test_a_job_that_outruns_its_walltime_is_due_at_any_moment() -> None:
    log = log_of((6, 0, 20, 10), (8, 1, 5, 5), (2, 12, 1, 1), (1, 13, 1, 0))
    # At 12 the reservation is for 12, and c would end later; d is said to end at once.
    found = spans(replayed(state_of(4, 4), log))
    assert found == {"a": (0, 20), "d": (13, 14), "b": (20, 25), "c": (25, 26)}


def test_ends_come_before_starts_of_the_same_second() -> None:
    log = log_of((8, 0, 10, 10), (8, 10, 0, 1), (8, 10, 4, 4))
    assert spans(replayed(state_of(4, 4), log)) == {"a": (0, 10), "b": (10, 10), "c": (10, 14)}


def two_roots() -> TreeState:
    leaves = [SwitchModel(name=f"s{k}", nodes=f"n[{4 * k}-{4 * k + 3}]") for k in range(2)]
    return prepare_tree(snapshot_on(TreeModel(kind="tree", name="two", switches=leaves)))


def test_with_two_roots_backfilling_keeps_the_right_one_free() -> None:
    log = log_of((3, 0, 10, 10), (3, 0, 20, 20), (4, 1, 5, 5), (1, 2, 50, 50))
    # c can start on the first leaf at 10. Of the 5 nodes free then d may not have that leaf's.
    replay = replayed(two_roots(), log)
    assert spans(replay) == {"a": (0, 10), "b": (0, 20), "c": (10, 15), "d": (10, 60)}
    assert [job.id for job in Replay(two_roots(), log_of((5, 0, 1, 1)), "default").left_out] == [
        "a"
    ]


def test_run_times_follow_the_cost() -> None:
    state = state_of(4, 4, 8)
    running = LogJob("r", 3, 0, 1000, 1000, RD)
    job = LogJob("q", 11, 0, 1000, 1000, (PatternUse(pattern=Pattern.VECTOR_DOUBLING, share=40),))
    cost = {}
    for method in ("default", "balanced", "greedy"):
        replay = replayed(state, [running, job], method)
        record = next(r for r in replay.records if r.job.id == "q")
        cost[method] = record.cost
        assert record.default_cost == cost["default"]
        exact = 600 + 400 * record.cost / record.default_cost
        assert abs(record.execution - exact) <= Fraction(1, 2)
    assert cost["balanced"] != cost["default"]


def test_compute_intensive_jobs_run_as_long_as_in_the_log() -> None:
    replay = replayed(state_of(3, 3), log_of((5, 0, 77, 80)), "random")
    (record,) = replay.records
    assert (record.execution, record.cost, record.default_cost) == (77, 0, 0)


def test_individual_runs_start_from_the_same_state() -> None:
    state = state_of(4, 4, 8)
    jobs = [LogJob(f"j{k}", 1 + k, 5 * k, 100, 100, RD) for k in range(10)]
    occupancy = occupied(state, jobs[2:], 50)
    # Half of 16 nodes: j2 and j3 (3 + 4); no later one keeps below 8.
    assert occupancy.free_per_leaf.sum() == 16 - 3 - 4
    before = occupancy.free.copy()
    done: list[int] = []
    by_method = {
        method: individual_runs(TreeSite(state, method, occupancy=occupancy), jobs, done.append)
        for method in ("default", "adaptive")
    }
    assert done == 2 * list(range(1, 11))
    assert np.array_equal(occupancy.free, before)
    for default, adaptive in zip(by_method["default"], by_method["adaptive"], strict=True):
        assert default.job is adaptive.job
        assert default.start == adaptive.start == default.job.submitted
        assert default.execution == 100
        assert default.cost == default.default_cost == adaptive.default_cost
    assert [record.job.nodes for record in by_method["default"]] == list(range(1, 10))


def test_metrics() -> None:
    job_a, job_b = LogJob("a", 4, 10, 50, 60), LogJob("b", 2, 0, 30, 60)
    base = [
        JobRecord(job_a, 15, 65, Fraction(7, 2), Fraction(4)),
        JobRecord(job_b, 0, 30, *[Fraction(0)] * 2),
    ]
    better = [JobRecord(job_a, 10, 50, Fraction(7, 4), Fraction(4)), base[1]]
    found = metrics_of(base)
    assert (found.execution, found.wait, found.turnaround) == (80, 5, 85)
    assert found.node_seconds == 4 * 50 + 2 * 30
    assert found.cost == Fraction(7, 2)
    assert improvements(metrics_of(better), found) == {
        "execution": 100 * 10 / 80,
        "wait": 100,
        "turnaround": pytest.approx(100 * 15 / 85),
        "node_seconds": pytest.approx(100 * 40 / 260),
        "cost": 50,
    }
    assert improvements(metrics_of(base), metrics_of([]))["wait"] is None
    assert mean_execution_gain(better, base) == (20 + 0) / 2
    assert mean_execution_gain(better, []) is None


def test_mixes_and_drawn_jobs() -> None:
    shares = {name: sum(use.share for use in uses) for name, uses in MIXES.items()}
    assert shares == {"A": 33, "B": 50, "C": 70, "D": 50, "E": 70}
    jobs = log_of(*[(1, k, 1, 1) for k in range(21)])
    drawn = with_intensive(jobs, 90, MIXES["D"], seed=4)
    assert sum(bool(job.patterns) for job in drawn) == 18
    assert {job.patterns for job in drawn} == {(), MIXES["D"]}
    assert drawn == with_intensive(jobs, 90, MIXES["D"], seed=4)
    assert drawn != with_intensive(jobs, 90, MIXES["D"], seed=5)
    with pytest.raises(InputError, match="percent"):
        with_intensive(jobs, 101, RD, seed=0)
    with pytest.raises(InputError, match="percent"):
        occupied(state_of(1), jobs, -1)


def test_snapshots_on_the_way() -> None:
    state = prepare_tree(snapshot_on(model_of([4, 4]), [("n7", Communication.STRICT)], down="n6"))
    jobs = [LogJob("a", 3, 0, 10, 10, RD), LogJob("b", 6, 2, 5, 7), LogJob("c", 6, 30, 5, 5, RD)]
    replay = Replay(state, jobs, "default")
    told: list[tuple[int, int]] = []
    replay.run(until=5, progress=lambda *counts: told.append(counts))
    assert replay.now == 5
    assert told == [(1, 3)]
    then = prepare_tree(replay.snapshot("at-5"))
    assert [job.id for job in then.running] == ["j0", "a"]
    assert [request.id for request in then.requests] == ["b"]
    assert then.snapshot.queue[0].walltime == 7
    assert then.free.sum() == 8 - 2 - 3
    assert then.comm.sum() == then.busy.sum() == 4
    replay.run()
    assert spans(replay) == {"a": (0, 10), "b": (10, 15), "c": (30, 35)}
    assert prepare_tree(replay.snapshot("end")).free.sum() == 6


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget what a test registers."""
    methods("allocation")
    methods("placement")
    monkeypatch.setattr(known, "_METHODS", dict(known._METHODS))


@pytest.mark.usefixtures("registry")
def test_any_registered_method_can_be_replayed() -> None:
    @register("allocation", "last", "the last free nodes")
    def last(problem: TreeProblem, options: Options) -> Outcome:
        (request,) = problem.requests
        free = np.flatnonzero(problem.state.free)[::-1]
        return Outcome({0: free[: request.nodes]} if request.nodes <= 4 else {})

    jobs = [LogJob("a", 4, 0, 10, 10, RD), LogJob("b", 4, 1, 10, 10, RD)]
    replay = Replay(state_of(4, 4), jobs, "last")
    replay.run(until=1)
    assert prepare_tree(replay.snapshot("s")).snapshot.running[0].nodes == "n[7,6,5,4]"
    stuck = Replay(state_of(4, 4), log_of((5, 0, 1, 1)), "last")
    with pytest.raises(TopoplaceError, match="no nodes for job a"):
        stuck.run()


def test_reading_a_log(tmp_path: Path) -> None:
    tail = "-1 -1 -1 -1 -1 -1 0"
    lines = [
        "; a comment",
        f"01 500 0 60 4 -1 -1 8 100 -1 1 {tail}",
        f"2 400 0 30 4 -1 -1 -1 -1 -1 1 {tail}",
        f"2 410 0 7 4 -1 -1 -1 -1 -1 2 {tail}",
        f"3 450 0 -1 4 -1 -1 4 100 -1 0 {tail}",
        f"4 450 0 9 -1 -1 -1 -1 100 -1 0 {tail}",
    ]
    path = tmp_path / "log.swf"
    path.write_text("\n".join(lines))
    log = read_log(path, procs_per_node=2)
    assert log.jobs == (LogJob("2", 2, 0, 30, 30), LogJob("1", 4, 100, 60, 100))
    assert log.num_left_out == 2


@pytest.mark.parametrize("per_leaf", [16, 366])
def test_the_theta_log_in_a_moment(per_leaf: int) -> None:
    log = read_log(real_file("theta/theta_1000.swf"))
    num_nodes = 4392
    rest = num_nodes % per_leaf
    state = state_of(*[per_leaf] * (num_nodes // per_leaf), *([rest] if rest else []))
    jobs = with_intensive(log.jobs, 90, MIXES["C"], seed=1)
    begin = time.perf_counter()
    replay = Replay(state, jobs, "adaptive")
    replay.run()
    assert time.perf_counter() - begin < 60
    assert len(replay.records) == len(jobs) == 1000
    assert not replay.left_out
    changes = sorted(
        [(r.start, r.job.nodes) for r in replay.records if r.end > r.start]
        + [(r.end, -r.job.nodes) for r in replay.records if r.end > r.start]
    )
    busy = np.cumsum([nodes for _, nodes in changes])
    assert busy.max() <= num_nodes
    assert busy[-1] == 0
    assert all(r.start >= r.job.submitted for r in replay.records)
