"""Replays of tiny logs on trees and tori, worked out by hand."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from real_files import real_file
from topoplace.certify import check_document
from topoplace.errors import InputError
from topoplace.machine import Prism, Torus, bisection_per_node, scattered_links
from topoplace.result import Interference
from topoplace.snapshot.hierarchy_state import HierarchyState, prepare_contention
from topoplace.snapshot.machines import load_snapshot, load_torus
from topoplace.snapshot.schema import (
    Pattern,
    PatternUse,
    RunningJob,
    Snapshot,
    TorusModel,
)
from topoplace.snapshot.state import SnapshotState, prepare
from topoplace.solving import Options, solve
from topoplace.study.replay import (
    MIXES,
    LogJob,
    Replay,
    Setup,
    SnapshotWriter,
    read_log,
    with_intensive,
)
from topoplace.study.replay.log import (
    Decision,
    JobRecord,
    Moment,
    by_application,
    efficiency_of,
)
from topoplace.study.replay.torus import ShapeModel, TorusSite, box_around
from topoplace.study.replay.trees import TreeSite, individual_runs, occupied
from tree_cases import model_of, snapshot_on

RD = (PatternUse(pattern=Pattern.RECURSIVE_DOUBLING),)
HALF = (PatternUse(pattern=Pattern.RECURSIVE_DOUBLING, share=50),)
Spans = dict[str, tuple[int, int]]


def state_of(*sizes: int) -> HierarchyState:
    return prepare_contention(snapshot_on(model_of(sizes)))


def empty(spec: str = "torus:4x4") -> SnapshotState:
    return prepare(
        Snapshot(schema_version="topoplace.snapshot/1", name="empty", machine=load_torus(spec))
    )


def log_of(*jobs: tuple[int, int, int, int], talking: bool = False) -> list[LogJob]:
    """Return jobs a, b, .. of nodes, submission, run time and walltime; half their time talking."""
    return [LogJob(chr(97 + k), *job, HALF if talking else ()) for k, job in enumerate(jobs)]


def spans(replay: Replay) -> Spans:
    return {record.job.id: (record.start, record.end) for record in replay.records}


def replayed(
    state: HierarchyState | SnapshotState,
    jobs: list[LogJob],
    method: str | None = None,
    options: Options | None = None,
    **more: bool,
) -> Replay:
    method = method or ("default" if isinstance(state, HierarchyState) else "first-fit")
    replay = Replay(Setup(state, jobs, options=options or Options(), **more), method)
    replay.run()
    return replay


# b waits for a until 10; c ends by then; d would not, and b leaves no node.
GAP = [(8, 0, 10, 10), (16, 1, 5, 5), (4, 2, 8, 8), (4, 3, 8, 8)]


@pytest.mark.parametrize(
    ("jobs", "found"),
    [
        pytest.param(
            [(6, 0, 10, 10), (8, 1, 5, 5), (2, 2, 8, 8), (2, 3, 8, 8)],
            {"a": (0, 10), "c": (2, 10), "b": (10, 15), "d": (15, 23)},
            id="b waits for a until 10; c ends by then; d would not, and b leaves no node",
        ),
        pytest.param(
            [(6, 0, 10, 10), (5, 1, 5, 5), (2, 2, 99, 99), (2, 3, 5, 99)],
            {"a": (0, 10), "c": (2, 101), "b": (10, 15), "d": (15, 20)},
            id="at 10 all 8 are free but for c's 2; b takes 5, so that d's 2 are one too many",
        ),
        pytest.param(
            [(6, 0, 3, 10), (8, 1, 5, 5), (2, 2, 8, 8)],
            {"a": (0, 3), "c": (2, 10), "b": (10, 15)},
            id="a ends at 3 already, but c, thought harmless, holds b up until 10",
        ),
        pytest.param(
            [(6, 0, 20, 10), (8, 1, 5, 5), (2, 12, 1, 1), (1, 13, 1, 0)],
            {"a": (0, 20), "d": (13, 14), "b": (20, 25), "c": (25, 26)},
            id="at 12 the reservation is for 12, c would end later, d is said to end at once",
        ),
        pytest.param(
            [(8, 0, 10, 10), (8, 10, 0, 1), (8, 10, 4, 4)],
            {"a": (0, 10), "b": (10, 10), "c": (10, 14)},
            id="ends come before starts of the same second",
        ),
    ],
)
def test_easy_backfilling(jobs: list[tuple[int, int, int, int]], found: Spans) -> None:
    assert spans(replayed(state_of(4, 4), log_of(*jobs))) == found


def test_individual_runs_start_from_the_same_state() -> None:
    state = state_of(4, 4, 8)
    jobs = [LogJob(f"j{k}", 1 + k, 5 * k, 100, 100, RD) for k in range(10)]
    occupancy = occupied(state, jobs[2:], 50)
    # Half of 16 nodes: j2 and j3 (3 + 4); no later one keeps below 8.
    assert occupancy.free_per_leaf.sum() == 16 - 3 - 4
    before = occupancy.free.copy()
    default, adaptive = (
        individual_runs(TreeSite(state, method, occupancy=occupancy), jobs)
        for method in ("default", "adaptive")
    )
    assert np.array_equal(occupancy.free, before)
    assert [record.job.nodes for record in default] == list(range(1, 10))
    for one, other in zip(default, adaptive, strict=True):
        assert one.job is other.job
        assert one.start == other.start == one.job.submitted
        assert one.execution == 100
        assert one.cost == one.default_cost == other.default_cost


def test_mixes_and_drawn_jobs() -> None:
    shares = {name: sum(use.share for use in uses) for name, uses in MIXES.items()}
    assert shares == {"A": 33, "B": 50, "C": 70, "D": 50, "E": 70}
    jobs = log_of(*[(1, k, 1, 1) for k in range(21)])
    drawn, again, other = (with_intensive(jobs, 90, MIXES["D"], seed) for seed in (4, 4, 5))
    assert drawn == again != other
    assert sorted(job.patterns for job in drawn) == [()] * 3 + [MIXES["D"]] * 18
    with pytest.raises(InputError, match="percent"):
        with_intensive(jobs, 101, RD, seed=0)


@pytest.mark.parametrize("per_leaf", [16, 366])
def test_the_theta_log_in_a_moment(per_leaf: int) -> None:
    log = read_log(real_file("theta/theta_1000.swf"))
    num_nodes = 4392
    rest = num_nodes % per_leaf
    state = state_of(*[per_leaf] * (num_nodes // per_leaf), *([rest] if rest else []))
    jobs = with_intensive(log.jobs, 90, MIXES["C"], seed=1)
    begin = time.perf_counter()
    replay = Replay(Setup(state, jobs), "adaptive")
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


@pytest.mark.parametrize("whole_queue", [False, True])
@pytest.mark.parametrize("method", ["first-fit", "best-fit", "exact", "alps-2y", "random-nodes"])
def test_every_method_respects_the_reservation(method: str, whole_queue: bool) -> None:
    options = Options(time_limit=5)
    found = spans(replayed(empty(), log_of(*GAP), method, options, whole_queue=whole_queue))
    assert found == {"a": (0, 10), "c": (2, 10), "b": (10, 15), "d": (15, 23)}


def test_the_right_number_of_nodes_in_the_wrong_places() -> None:
    # When a ends, b takes 14 of 16 nodes, but there is no prism for it beside any job.
    log = log_of((8, 0, 10, 10), (14, 1, 5, 5), (2, 2, 99, 99))
    assert spans(replayed(empty(), log)) == {"a": (0, 10), "b": (10, 15), "c": (15, 114)}
    # Where jobs are scattered over nodes, c does no harm.
    found = spans(replayed(empty(), log, "alps-2y"))
    assert found == {"a": (0, 10), "c": (2, 101), "b": (10, 15)}


def test_a_long_job_starts_where_it_leaves_a_prism() -> None:
    # At 10 rows 0, 1 and 3 are free if c has row 2: three rows of the ring are a prism for b.
    log = log_of((8, 0, 10, 10), (12, 1, 5, 5), (4, 2, 99, 99), talking=True)
    replay = replayed(empty(), log)
    assert spans(replay)["c"] == (2, 101)
    assert spans(replay)["b"][0] == 10


def test_links_count_where_jobs_communicate() -> None:
    # On a ring of 6 a prism of 4 uses the whole ring: the other 2 nodes are for who sends nothing.
    four = LogJob("a", 4, 0, 10, 10, HALF)
    two = LogJob("b", 2, 1, 5, 5, HALF)
    silent = LogJob("b", 2, 1, 5, 5)
    off = Options(interference=Interference.OFF)
    ring = empty("torus:6")
    waits = spans(replayed(ring, [four, two]))
    assert waits["b"][0] == waits["a"][1] >= 10
    assert spans(replayed(ring, [four, silent]))["b"] == (1, 6)
    assert spans(replayed(ring, [four, two], options=off))["b"][0] == 1
    assert spans(replayed(ring, [four, two], "alps-2y"))["b"][0] == 1


def test_run_times_follow_the_bisection_bandwidth() -> None:
    # 1x3 on rings of 4: 4/3 links for 3 nodes; the best prism for 3 nodes is 2x2, 2 for 4.
    replay = replayed(empty(), log_of((3, 0, 800, 900), talking=True))
    (record,) = replay.records
    assert (record.cost, record.default_cost) == (Fraction(9, 4), 2)
    assert record.execution == 400 + 400 * Fraction(9, 4) / 2 == 850
    found = efficiency_of(replay.records, replay.timeline, replay.num_nodes)
    assert found.application == Fraction(16, 17)
    # 13 nodes are free, of which a job can have three rows of 4.
    assert found.fragmentation == Fraction(1, 13)
    assert found.utilisation == Fraction(3, 16)
    assert found.scheduling is None
    assert found.system is None


@pytest.mark.parametrize(
    "torus",
    [
        Torus((4, 5), bandwidth=(1, 2)),
        Torus((3, 4, 6), (True, False, True), (2, 1, 3), nodes_per_router=2),
    ],
)
def test_the_reference_is_the_best_of_all_prisms(torus: Torus) -> None:
    model = ShapeModel(torus)
    every = [tuple(e + 1 for e in idx) for idx in np.ndindex(torus.shape)]
    for nodes in range(1, torus.num_nodes + 1):
        roomy = [e for e in every if np.prod(e) * torus.nodes_per_router >= nodes]
        assert 1 / model.least_cost(nodes) == max(bisection_per_node(torus, e) for e in roomy)


def test_boxes_around_scattered_nodes() -> None:
    ring, line = Torus((6, 6)), Torus((6, 6), (False, False))
    routers = np.array([ring.router(at) for at in [(5, 1), (0, 1), (1, 3)]])
    assert box_around(ring, routers) == Prism((5, 1), (3, 3))
    assert box_around(line, routers) == Prism((0, 1), (6, 3))
    assert box_around(ring, routers[:1]) == Prism((5, 1), (1, 1))
    assert box_around(ring, np.arange(6)) == Prism((0, 0), (1, 6))


def test_e_ave_of_enos_2014() -> None:
    # Section III.A: usage 20, 50, 30 % at 93, 87, 74 %. Each job runs 100 s.
    usage, efficiency = (20, 50, 30), (93, 87, 74)
    product = 93 * 87 * 74
    records = [
        JobRecord(LogJob("j", share * product // e, 0, e, e), 0, 100, *[Fraction(1)] * 2)
        for share, e in zip(usage, efficiency, strict=True)
    ]
    moments = [Moment(0, 88, 3, 1, 1, 12, 6), Moment(100, 0, 0, 0, 0, 100, 100)]
    found = efficiency_of(records, moments, 100)
    assert found.application == Fraction(843, 1000)
    assert found.scheduling == found.utilisation == Fraction(88, 100)
    assert found.system == Fraction(843 * 88, 100_000)
    assert found.fragmentation == Fraction(1, 2)
    assert efficiency_of([], [], 100).application is None


def drawn_log(num_jobs: int, seed: int) -> list[LogJob]:
    rng = np.random.default_rng(seed)
    times = np.cumsum(rng.integers(0, 20, num_jobs))
    return [
        LogJob(f"j{k}", int(rng.choice([1, 2, 3, 6, 9, 17, 40])), int(at), int(t), int(t + 20),
               HALF if rng.random() < 0.8 else ())
        for k, (at, t) in enumerate(zip(times, rng.integers(20, 100, num_jobs), strict=True))
    ]  # fmt: skip


def links_used(torus: Torus, job: RunningJob) -> np.ndarray:
    """Return the links of all routes between a job's routers, its prism's idle ones included."""
    if job.communication != "strict" or job.prism is None:
        return np.zeros(0, dtype=np.int64)
    prism = Prism(tuple(job.prism.origin), tuple(job.prism.extents))
    return scattered_links(torus, prism.routers(torus))


@pytest.mark.parametrize("more", [{}, {"fill_interior": True}, {"whole_queue": True}])
@pytest.mark.parametrize("method", ["first-fit", "best-fit"])
def test_no_link_is_ever_shared(method: str, more: dict[str, bool], tmp_path: Path) -> None:
    jobs = drawn_log(60, seed=3)
    replay = Replay(Setup(empty("torus:4x4x4:2"), jobs, **more), method)
    writer = SnapshotWriter(tmp_path, "s", every=1)
    replay.run(before_starts=writer)
    assert len(replay.records) == len(jobs)
    assert max(m.nodes_held for m in replay.timeline) <= 128
    assert len(writer.written) > 10
    for path in writer.written:
        state = load_snapshot(path)
        used = [links_used(state.torus, job) for job in state.snapshot.running]
        links = np.concatenate([np.zeros(0, dtype=np.int64), *used])
        assert len(np.unique(links)) == len(links)
        result = solve(state, method)
        assert result.solution is not None
        assert result.solution.conforming
        assert check_document(result).holds


def test_the_largest_job_is_the_largest_that_can_be_placed() -> None:
    state = empty("torus:4x4x4:2")
    replay = Replay(Setup(state, drawn_log(30, seed=5)), "first-fit")
    for until in range(20, 200, 45):
        replay.run(until=until)
        then = replay.snapshot("then")
        largest = replay.timeline[-1].largest_job
        assert 0 < largest < 128
        for nodes, fits in ((largest, True), (largest + 1, False)):
            queue = [{"id": "probe", "nodes": nodes}]
            document = json.loads(then.model_dump_json()) | {"queue": queue}
            probe = prepare(Snapshot.model_validate_json(json.dumps(document)))
            assert bool(solve(probe, "best-fit").solution.placements) is fits


# a leaves one node of its prism idle; b has the other half of the machine.
FILLED = [LogJob("a", 7, 0, 5, 10, HALF), LogJob("b", 8, 0, 20, 20, HALF)]


def test_interior_nodes_go_to_small_jobs_that_end_in_time() -> None:
    jobs = [*FILLED, LogJob("c", 1, 1, 9, 9, HALF), LogJob("d", 1, 2, 1, 9, HALF)]
    plain = spans(replayed(empty(), jobs))
    assert plain["c"][0] == 5
    found = spans(replayed(empty(), jobs, fill_interior=True))
    assert found["c"] == (1, 10)  # and d finds nothing left inside
    assert found["d"][0] == 5
    late = [*FILLED, LogJob("c", 1, 1, 2, 10, HALF)]
    assert spans(replayed(empty(), late, fill_interior=True))["c"][0] == 5
    two = [LogJob("a", 10, 0, 5, 10, HALF), LogJob("b", 4, 0, 20, 20, HALF)]
    for patterns, start in ((HALF, 5), ((), 1)):  # on two routers, only if nothing is sent
        pair = LogJob("c", 2, 1, 3, 4, patterns)
        assert spans(replayed(empty(), [*two, pair], fill_interior=True))["c"][0] == start


def test_a_job_inside_a_prism_outlives_it() -> None:
    jobs = [*FILLED, LogJob("c", 1, 1, 9, 9), LogJob("e", 8, 6, 1, 1)]
    replay = Replay(Setup(empty(), jobs, fill_interior=True), "first-fit")
    replay.run(until=4)
    inside = prepare(replay.snapshot("inside"))
    assert [job.id for job in inside.running] == ["a", "b"]
    assert inside.snapshot.down == "7"
    assert not inside.usable.any()
    replay.run(until=6)
    outside = prepare(replay.snapshot("outside"))
    assert [job.id for job in outside.running] == ["b", "c"]
    assert outside.snapshot.down == ""
    assert outside.usable.sum() == 7
    replay.run()
    assert spans(replay)["e"] == (10, 11)


def test_a_whole_queue_is_placed_at_once() -> None:
    # In turn b takes what c needs; together a, which is first, and c fill the machine.
    log = log_of((4, 0, 10, 10), (4, 0, 10, 10), (12, 0, 10, 10))
    options = Options(time_limit=5)
    in_turn = {"a": (0, 10), "b": (0, 10), "c": (10, 20)}
    assert spans(replayed(empty(), log, "exact", options)) == in_turn
    assert spans(replayed(empty(), log, "first-fit", whole_queue=True)) == in_turn
    together = replayed(empty(), log, "exact", options, whole_queue=True)
    assert spans(together) == {"a": (0, 10), "c": (0, 10), "b": (10, 20)}
    # The first in line counts more than all others: c and d would be more nodes than a.
    log = log_of((2, 0, 10, 10), (15, 0, 10, 10))
    found = spans(replayed(empty(), log, "exact", options, whole_queue=True))
    assert found == {"a": (0, 10), "b": (10, 20)}
    with pytest.raises(InputError, match="a method of ours on a torus"):
        replayed(state_of(4, 4), log_of((1, 0, 1, 1)), whole_queue=True)


def test_jobs_of_higher_priority_wait_before_others() -> None:
    log = log_of((16, 0, 10, 10), (16, 1, 5, 5), (16, 2, 5, 5), (1, 2, 10, 10))
    log[2] = replace(log[2], priority=5)
    found = spans(replayed(empty(), log))
    assert found == {"a": (0, 10), "c": (10, 15), "b": (15, 20), "d": (20, 30)}


TWO_CLASSES = TorusModel(name="two", shape=[4, 4], classes={"xk": "8-15"})


@pytest.mark.parametrize("more", [{}, {"whole_queue": True}])
@pytest.mark.parametrize("method", ["best-fit", "alps-2y"])
def test_jobs_get_nodes_of_their_class(method: str, more: dict[str, bool]) -> None:
    state = prepare(Snapshot(schema_version="topoplace.snapshot/1", name="s", machine=TWO_CLASSES))
    log = log_of((8, 0, 10, 10), (8, 0, 20, 20), (8, 1, 5, 5), (9, 1, 5, 5), (4, 1, 9, 9))
    log = [replace(job, node_class="xk" if job.id in "be" else None) for job in log]
    replay = replayed(state, log, method, **more)
    # d is too large for its class; e waits for b alone, c for a alone.
    assert spans(replay) == {"a": (0, 10), "b": (0, 20), "c": (10, 15), "e": (20, 29)}
    assert [job.id for job in replay.left_out] == ["d"]
    assert replay.num_nodes == 16
    with pytest.raises(InputError, match="gpu"):
        replayed(state, [replace(log[0], node_class="gpu")], method)


def test_jobs_without_room_are_left_out() -> None:
    jobs = log_of((17, 0, 1, 1), (16, 0, 1, 1))
    assert [job.id for job in replayed(empty(), jobs).left_out] == ["a"]


# ---- Shared links --------------------------------------------------------------------------------


def test_two_jobs_that_share_a_link_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a line of four, a is on 0 and 2, b on 1 and 3: one of the two links of each is shared.

    Each runs 1 + 0.5 x 1 x 0.5 = 1.25 times as long while the other does: a has 60 s left when b
    comes at 40 s, and ends at 115; by then b has done 60 s of its 100, and ends at 155.
    """
    places = {"a": [0, 2], "b": [1, 3], "c": [0, 1]}

    def decide(site: TorusSite, job: LogJob) -> Decision:
        cost = Fraction(1)
        return Decision(np.array(places[job.id]), cost, cost, job.seconds)

    monkeypatch.setattr(TorusSite, "decide", decide)
    jobs = log_of((2, 0, 100, 100), (2, 40, 100, 100), talking=True)
    for sharing, ends in ((100, (115, 155)), (0, (100, 140)), (200, (130, 170))):
        replay = Replay(Setup(empty("mesh:4"), jobs, sharing=sharing), "random-nodes")
        replay.run()
        assert spans(replay) == {"a": (0, ends[0]), "b": (40, ends[1])}, sharing
    silent = [jobs[0], replace(jobs[1], patterns=())]
    replay = Replay(Setup(empty("mesh:4"), silent, sharing=100), "random-nodes")
    replay.run()
    assert spans(replay) == {"a": (0, 100), "b": (40, 140)}


def test_prisms_share_no_links_and_are_not_slowed() -> None:
    jobs = log_of((4, 0, 100, 100), (4, 0, 100, 100), (4, 10, 50, 50), talking=True)
    runs = []
    for sharing in (0, 500):
        replay = Replay(Setup(empty(), jobs, sharing=sharing), "first-fit")
        replay.run()
        runs.append(spans(replay))
    assert runs[0] == runs[1]


def test_figures_by_application() -> None:
    jobs = [LogJob(str(k), 4, 0, 100, 100, application="wrf") for k in range(3)]
    records = [
        JobRecord(job, 0, end, *[Fraction(1)] * 2)
        for job, end in zip(jobs, (100, 110, 120), strict=True)
    ]
    (found,) = by_application(records)
    assert (found.application, found.num_jobs, found.num_prisms) == ("wrf", 3, 0)
    assert found.usage == 1
    assert found.efficiency == pytest.approx((1 + 1 / 1.1 + 1 / 1.2) / 3)
    assert found.slowdown == pytest.approx(1.1)
    assert found.variation == pytest.approx(0.1 / 1.1)


# ---- Logs of ALCF --------------------------------------------------------------------------------

ALCF = """\
"JOB_NAME","COBALT_JOBID","QUEUED_TIMESTAMP","WALLTIME_SECONDS","RUNTIME_SECONDS","NODES_USED",\
"NODES_REQUESTED","QUEUE_NAME"
"7.alcf","7","2018-01-07 00:00:10","3600.0","1800.5","512.0","","prod"
"5.alcf","5","2018-01-07 00:00:00.0","1200","600","128","256","prod, debug"
"9.alcf","9","2018-01-07 00:01:00","60","30","","","prod"
"11.alcf","11","2018-01-07 00:02:00","60","","64","64","prod"
"""


def test_a_log_of_alcf(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text(ALCF)
    log = read_log(path)
    assert [(j.id, j.nodes, j.submitted, j.seconds, j.walltime) for j in log.jobs] == [
        ("5", 256, 0, 600, 1200),
        ("7", 512, 10, 1800, 3600),
    ]
    assert log.num_left_out == 2
    for old, new, told in (
        ('"1200"', '"-1"', "WALLTIME_SECONDS"),
        ("2018-01-07 00:00:10", "January", "QUEUED_TIMESTAMP"),
        ('"9"', '"7"', "each job once"),
        ('"prod"\n"5', '"prod","x"\n"5', "8 columns"),
    ):
        path.write_text(ALCF.replace(old, new))
        with pytest.raises(InputError, match=told):
            read_log(path)


def test_a_snapshot_on_the_way_says_when_jobs_end() -> None:
    replay = Replay(Setup(empty(), log_of((4, 0, 100, 120))), "first-fit")
    replay.run(until=40)
    assert [one.ends for one in replay.snapshot("now").running] == [80]
