"""Replays of tiny logs on tori, worked out by hand."""

from __future__ import annotations

import csv
import io
import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from test_replay import log_of, registry, spans  # noqa: F401 - a fixture
from test_replay_cli import write_log
from topoplace.certify import check_document
from topoplace.cli import run
from topoplace.errors import InputError, TopoplaceError
from topoplace.machine import Prism, Torus, bisection_per_node, scattered_links
from topoplace.placement.torus.problem import PlacementProblem
from topoplace.result import Interference
from topoplace.snapshot import SnapshotState, load_snapshot, load_torus, prepare
from topoplace.snapshot.schema import Pattern, PatternUse, RunningJob, Snapshot
from topoplace.solving import Options, Outcome, register, solve
from topoplace.study.replay import LogJob, Protocol, Replay, Setup, SnapshotWriter, run_method
from topoplace.study.replay.figures import JobRecord, Moment, efficiency_of
from topoplace.study.replay.torus import ShapeModel, box_around

HALF = (PatternUse(pattern=Pattern.RECURSIVE_DOUBLING, share=50),)


def empty(spec: str = "torus:4x4") -> SnapshotState:
    return prepare(
        Snapshot(schema_version="topoplace.snapshot/1", name="empty", machine=load_torus(spec))
    )


def talking(jobs: list[LogJob]) -> list[LogJob]:
    """Return the jobs with half of their time spent in communication."""
    return [LogJob(j.id, j.nodes, j.submitted, j.seconds, j.walltime, HALF) for j in jobs]


def replayed(
    jobs: list[LogJob],
    method: str = "first-fit",
    spec: str = "torus:4x4",
    options: Options | None = None,
    *,
    fill_interior: bool = False,
) -> Replay:
    replay = Replay(empty(spec), jobs, method, options, fill_interior=fill_interior)
    replay.run()
    return replay


# b waits for a until 10; c ends by then; d would not, and b leaves no node.
GAP = [(8, 0, 10, 10), (16, 1, 5, 5), (4, 2, 8, 8), (4, 3, 8, 8)]


@pytest.mark.parametrize("method", ["first-fit", "best-fit", "exact", "alps-2y", "random-nodes"])
def test_every_method_respects_the_reservation(method: str) -> None:
    found = spans(replayed(log_of(*GAP), method, options=Options(time_limit=5)))
    assert found == {"a": (0, 10), "c": (2, 10), "b": (10, 15), "d": (15, 23)}


def test_the_right_number_of_nodes_in_the_wrong_places() -> None:
    # When a ends, b takes 14 of 16 nodes, but there is no prism for it beside any job.
    log = log_of((8, 0, 10, 10), (14, 1, 5, 5), (2, 2, 99, 99))
    assert spans(replayed(log)) == {"a": (0, 10), "b": (10, 15), "c": (15, 114)}
    # Where jobs are scattered over nodes, c does no harm.
    found = spans(replayed(log, "alps-2y"))
    assert found == {"a": (0, 10), "c": (2, 101), "b": (10, 15)}


def test_a_long_job_starts_where_it_leaves_a_prism() -> None:
    # At 10 rows 0, 1 and 3 are free if c has row 2: three rows of the ring are a prism for b.
    log = talking(log_of((8, 0, 10, 10), (12, 1, 5, 5), (4, 2, 99, 99)))
    replay = replayed(log)
    assert spans(replay)["c"] == (2, 101)
    assert spans(replay)["b"][0] == 10


def test_links_count_where_jobs_communicate() -> None:
    # On a ring of 6 a prism of 4 uses the whole ring: the other 2 nodes are for who sends nothing.
    four = LogJob("a", 4, 0, 10, 10, HALF)
    two = LogJob("b", 2, 1, 5, 5, HALF)
    silent = LogJob("b", 2, 1, 5, 5)
    off = Options(interference=Interference.OFF)
    waits = spans(replayed([four, two], spec="torus:6"))
    assert waits["b"][0] == waits["a"][1] >= 10
    assert spans(replayed([four, silent], spec="torus:6"))["b"] == (1, 6)
    assert spans(replayed([four, two], spec="torus:6", options=off))["b"][0] == 1
    assert spans(replayed([four, two], "alps-2y", spec="torus:6"))["b"][0] == 1


def test_run_times_follow_the_bisection_bandwidth() -> None:
    # 1x3 on rings of 4: 4/3 links for 3 nodes; the best prism for 3 nodes is 2x2, 2 for 4.
    replay = replayed(talking(log_of((3, 0, 800, 900))))
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


def test_utilisation_over_time() -> None:
    replay = replayed(talking(log_of(*GAP)))
    rows = [(m.at, m.nodes_held, m.jobs_running, m.jobs_waiting) for m in replay.timeline]
    assert rows == [
        (0, 8, 1, 0), (1, 8, 1, 1), (2, 12, 2, 1), (3, 12, 2, 2),
        (10, 16, 1, 1), (15, 4, 1, 0), (23, 0, 0, 0),
    ]  # fmt: skip
    found = efficiency_of(replay.records, replay.timeline, replay.num_nodes)
    assert found.utilisation == Fraction(8 * 2 + 12 * 8 + 16 * 5 + 4 * 8, 16 * 23)
    assert found.scheduling == Fraction(8 * 1 + 12 * 8 + 16 * 5, 16 * 14)
    assert found.application == 1
    assert found.fragmentation == 0


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


@pytest.mark.parametrize("fill_interior", [False, True])
@pytest.mark.parametrize("method", ["first-fit", "best-fit"])
def test_no_link_is_ever_shared(method: str, fill_interior: bool, tmp_path: Path) -> None:
    jobs = drawn_log(60, seed=3)
    replay = Replay(empty("torus:4x4x4:2"), jobs, method, fill_interior=fill_interior)
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
    replay = Replay(state, drawn_log(30, seed=5), "first-fit")
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
    plain = spans(replayed(jobs))
    assert plain["c"][0] == 5
    found = spans(replayed(jobs, fill_interior=True))
    assert found["c"] == (1, 10)  # and d finds nothing left inside
    assert found["d"][0] == 5
    late = [*FILLED, LogJob("c", 1, 1, 2, 10, HALF)]
    assert spans(replayed(late, fill_interior=True))["c"][0] == 5
    two = [LogJob("a", 10, 0, 5, 10, HALF), LogJob("b", 4, 0, 20, 20, HALF)]
    for patterns, start in ((HALF, 5), ((), 1)):  # on two routers, only if nothing is sent
        pair = LogJob("c", 2, 1, 3, 4, patterns)
        assert spans(replayed([*two, pair], fill_interior=True))["c"][0] == start


def test_a_job_inside_a_prism_outlives_it() -> None:
    jobs = [*FILLED, LogJob("c", 1, 1, 9, 9), LogJob("e", 8, 6, 1, 1)]
    replay = Replay(empty(), jobs, "first-fit", fill_interior=True)
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


@pytest.mark.usefixtures("registry")
def test_a_method_that_finds_nothing_ends_the_replay() -> None:
    @register("placement", "idle", "starts nobody")
    def idle(problem: PlacementProblem, options: Options) -> Outcome:
        return Outcome([])

    with pytest.raises(TopoplaceError, match="no nodes for job a"):
        replayed(log_of((5, 0, 1, 1)), "idle")


def test_jobs_without_room_and_runs_that_tori_do_not_have() -> None:
    jobs = log_of((17, 0, 1, 1), (16, 0, 1, 1))
    assert [job.id for job in replayed(jobs).left_out] == ["a"]
    with pytest.raises(InputError, match="continuous"):
        run_method(Setup(empty(), jobs, Protocol.INDIVIDUAL), "first-fit")
    with pytest.raises(InputError, match="method"):
        replayed(jobs, "greedy")


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, line = tmp_path / "snapshots", tmp_path / "line.csv"
    log = write_log(tmp_path, [(1, 0, 10, 8), (2, 1, 5, 16), (3, 2, 8, 4), (4, 3, 8, 4)])
    args = ["replay", log, "--on", "torus:4x4", "--method", "best-fit", "--against", "first-fit"]
    args += ["--intensive", "100", "--snapshots", str(folder), "--every", "1"]
    args += ["--timeline", str(line), "--csv", str(tmp_path / "jobs.csv")]
    assert run([*args, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    first, best = document["runs"]
    assert (first["method"], best["method"]) == ("first-fit", "best-fit")
    assert document["against"] is None
    assert document["interference"] == "strict"
    assert best["efficiency"]["utilisation"] == pytest.approx(224 / 368)
    assert best["efficiency"]["application"] == 1
    rows = list(csv.DictReader(io.StringIO(line.read_text())))
    assert [r["at"] for r in rows if r["method"] == "first-fit"] == [*"0123", "10", "15", "23"]
    assert {r["nodes"] for r in rows} == {"16"}
    assert len(document["snapshots"]) == 3
    for path in document["snapshots"]:
        assert check_document(solve(load_snapshot(path), "first-fit")).holds
    assert run([*args[:6], "--fill-interior"]) == 0
    assert "application efficiency (E_AVE) 100.00 %" in " ".join(capsys.readouterr().out.split())
