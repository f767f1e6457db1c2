"""What if: changed snapshots side by side, and what the base's certificate proves of them."""

from __future__ import annotations

import json
import random
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import tiny_cubes
import tiny_hierarchies
import topoplace as tp
from brute_force import brute_force
from exact_cases import MODES, solve
from few import few_of
from random_instances import random_snapshot
from small_snapshot import snapshot_of
from topoplace.certify import check_file
from topoplace.certify.check import bound_on
from topoplace.cli.app import app
from topoplace.machine import format_node_set
from topoplace.machine.hostlist import expand_host_list
from topoplace.report.view import view_of
from topoplace.result.certificate import Leaf
from topoplace.snapshot.changes import Change, changed
from topoplace.snapshot.cubes_state import prepare_cubes
from topoplace.snapshot.machines import load_any
from topoplace.snapshot.schema import SNAPSHOT_SCHEMA, Snapshot, TorusModel
from topoplace.snapshot.state import prepare
from topoplace.solving import Options
from topoplace.study.what_if import at_most, what_if

SEEDS = range(24)


def changes_of(snapshot: Snapshot, rng: random.Random) -> Iterator[list[Change]]:
    """Yield changes of every kind that can be made, at random."""
    machine = snapshot.machine
    assert isinstance(machine, TorusModel)
    num = len(prepare(snapshot).node_class)
    yield from ([("without_job", job.id)] for job in snapshot.running)
    yield [("add_down", format_node_set(rng.choices(range(num), k=2)))]
    yield [("with_request", {"id": "new", "nodes": 1, "communication": "none"})]
    yield from ([("free", text)] for text in (snapshot.down, machine.service) if text)
    yield [("weights", {"idle": 7}), ("without_job", snapshot.queue[0].id)]


def test_no_change_gains_more_than_the_certificate_of_the_base_allows() -> None:
    known = exact = unknown = 0
    for seed in SEEDS:
        rng = random.Random(f"what-if-{seed}")
        snapshot, mode = random_snapshot(rng, 8), MODES[seed % 3]
        if not snapshot.queue:
            continue
        base = solve(snapshot, mode)
        assert at_most(base, snapshot, mode) == 0
        for changes in changes_of(snapshot, rng):
            other = changed(snapshot, changes)
            most = at_most(base, other, mode)
            if most is None:
                unknown += 1
                continue
            gain = brute_force(other, mode)[0] - (base.objective or 0)
            assert gain <= most, (seed, changes)
            known, exact = known + 1, exact + (gain == most)
    assert known > 60
    assert exact > known // 2
    assert unknown < known


def test_routers_are_worth_what_is_said_of_them() -> None:
    told: Counter[str] = Counter()
    for seed in range(40):
        rng = random.Random(f"what-if-{seed}")
        snapshot, mode = random_snapshot(rng, 8), MODES[seed % 3]
        if not snapshot.down and seed > 4:
            continue
        found = what_if(prepare(snapshot), [], options=Options(interference=mode), worth=True)
        per = prepare(snapshot).torus.nodes_per_router
        for one in found.routers:
            assert one.at_most is not None
            nodes = range(one.router * per, (one.router + 1) * per)
            usable, held = prepare(snapshot).usable, prepare(snapshot).occupied[one.router]
            assert not held
            free = [node for node in nodes if bool(usable[node]) == (one.change == "down")]
            kind = {"down": "add_down", "free": "free"}[one.change]
            other = changed(snapshot, [(kind, format_node_set(free))])
            best = brute_force(other, mode)[0]
            assert one.at_least <= best <= one.at_most, (seed, one)
            told[one.change] += 1
            told["exact"] += one.at_least == one.at_most
    assert min(told["down"], told["free"], told["exact"]) > 4, told


def test_a_whole_router_may_count_without_a_node_of_the_job() -> None:
    requests = [{"nodes": 1, "shapes": "1x2:maxz=2"}] * 2
    snapshot = snapshot_of([1, 2], requests, wrap=False)
    found = what_if(prepare(snapshot), [], worth=True)
    assert {(one.router, one.at_least) for one in found.routers} == {(0, 0), (1, 0)}


def test_scenarios_are_what_placing_the_changed_snapshot_by_hand_is() -> None:
    snapshot = random_snapshot(random.Random("what-if-hand-8"), 12)
    state = prepare(snapshot)
    gone, more = snapshot.running[0].id, {"id": "more", "nodes": 2}
    scenarios = [{"without_job": gone}, {"with_request": more}, {"interference": "off"}]
    found = what_if(state, [*scenarios, [("without_job", gone), ("with_request", more)]])
    document = snapshot.model_dump(mode="json")
    without = document | {"running": document["running"][1:]}
    longer = {"queue": [*document["queue"], more]}
    hands = [document, without, document | longer, document, without | longer]
    modes = [MODES[0]] * 3 + [MODES[2], MODES[0]]
    for one, hand, mode in zip(found.scenarios, hands, modes, strict=True):
        own = solve(Snapshot.model_validate_json(json.dumps(hand)), mode)
        assert one.result.levels == own.levels, one.name
        assert one.result.solution == own.solution, one.name
        assert one.result.check().verified
        started = {start.request for start in own.placements}
        base = {start.request for start in found.scenarios[0].result.placements}
        assert set(one.starts) == started - base
        assert set(one.waits) == base - started
        if one is not found.scenarios[0]:
            assert one.gain == (own.objective or 0) - (found.scenarios[0].result.objective or 0)


def test_the_example_of_the_proofs() -> None:
    job = {"id": "a", "nodes": "1", "prism": {"origin": [1], "extents": [1]}}
    snapshot = snapshot_of([4], [{"nodes": 2}, {"nodes": 4}], wrap=False, running=[job])
    base = solve(snapshot, MODES[0])
    leaf = Leaf(scale=1, prices={"routers": "0*2 1*2"})
    level = base.levels[0].model_copy(update={"certificate": leaf})
    base = base.model_copy(update={"levels": [level, *base.levels[1:]]})
    other = changed(snapshot, [("without_job", "a")])
    assert [bound_on(base, one, MODES[0]) for one in (snapshot, other)] == [2, 6]
    assert at_most(base, other, MODES[0]) == 2
    assert bound_on(base, other, MODES[2]) == 6
    bad = Leaf(scale=1, prices={"links": "1*4"})
    level = level.model_copy(update={"certificate": bad})
    base = base.model_copy(update={"levels": [level, *base.levels[1:]]})
    assert at_most(base, other, MODES[2]) is None


def test_service_nodes_and_nodes_down_can_be_freed_and_taken() -> None:
    snapshot = random_snapshot(random.Random("what-if-1"), 8)
    machine = snapshot.machine
    assert isinstance(machine, TorusModel)
    machine = machine.model_copy(update={"service": "0", "classes": {}})
    bare = snapshot.model_copy(update={"down": "1", "running": [], "machine": machine})
    freed = changed(bare, [("free", "0,1")])
    assert isinstance(freed.machine, TorusModel)
    assert (freed.down, freed.machine.service) == ("", "")
    assert prepare(freed).usable.all()
    assert changed(bare, [("add_down", "1-2")]).down == "1-2"


ROW = {
    "schema": "topoplace.snapshot/1",
    "name": "row",
    "machine": "mesh:8",
    "down": "7",
    "running": [
        {"id": "a", "nodes": "2", "prism": {"origin": [2], "extents": [1]}},
        {"id": "b", "nodes": "5", "prism": {"origin": [5], "extents": [1]}},
    ],
    "queue": [{"id": "wide", "nodes": 4}, {"id": "huge", "nodes": 7}],
}


def row(folder: Path) -> str:
    file = folder / "row.json"
    file.write_text(json.dumps(ROW))
    return str(file)


def test_the_command_shows_scenarios_and_keeps_their_results(tmp_path: Path) -> None:
    request = tmp_path / "new.json"
    request.write_text('{"id": "new", "nodes": 2}')
    words = ["--without-job", "a", "--without-job", "b", "--with-request", str(request)]
    words += ["--weights", "idle=0,hops=3", "--free", "7", "--worth", "1", "--add-down", "0-1"]
    folder = tmp_path / "out"
    done = CliRunner().invoke(app, ["whatif", row(tmp_path), *words, "-o", str(folder)])
    assert done.exit_code == 0, done.output
    assert "without-job a: also starts wide" in done.stdout
    assert done.stdout.split("running job  at most")[1].split()[2:4] == ["a", "+4"]
    assert {file.name.removesuffix(".result.json") for file in folder.iterdir()} == {
        *("base", "add-down-0-1", "free-7", "without-job-a", "without-job-b"),
        *("with-request-new", "weights-idle-0-hops-3"),
    }
    assert all(check_file(file).verified for file in folder.iterdir())
    together = ["--without-job", "a", "--without-job", "b", "--together", "--json"]
    done = CliRunner().invoke(app, ["whatif", row(tmp_path), *together])
    base, both = json.loads(done.stdout)["scenarios"]
    assert (both["name"], both["gain"], both["starts"]) == (
        "without-job a + without-job b",
        7,
        ["huge"],
    )
    assert (base["name"], base["at_most"], both["at_most"] >= 7) == ("base", None, True)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--add-down", "99"], "add-down 99: expected node numbers from 0 to 7, found '99'"),
        (["--add-down", "0-"], "add-down 0-: expected ranges such as \"0-47,60\", found '0-'"),
        (["--free", "3"], "free 3: expected nodes that are down or service nodes, found node 3"),
        (["--without-job", "c"], "without-job c: expected a job that runs or waits, found 'c'"),
        (
            ["--with-request", '{"id": "wide", "nodes": 1}'],
            "with-request wide: queue[2].id: expected each job once, found 'wide'",
        ),
        (
            ["--with-request", '{"id": "x", "nodes": 9}'],
            "with-request x: queue[2].nodes: expected no more nodes than the machine's 8 of class "
            "compute, found 9",
        ),
        (
            ["--with-request", '{"id": "x"}'],
            "--with-request: nodes: expected a value, found nothing",
        ),
        (["--with-request", "no.json"], "no.json: expected a file that exists"),
        (
            ["--weights", "idle"],
            "--weights: expected NAME=N[,NAME=N..] with N from 0, found 'idle'",
        ),
        (["--weights", "idel=3"], "weights idel=3: idel: expected "),
        (["--interference", "of"], "interference of: interference: expected one of strict, tol"),
        (["--worth", "0"], "--worth: expected a number from 1, found 0"),
        ([], "expected changes, or --worth, found neither"),
    ],
)
def test_wrong_changes_are_told_in_a_line(tmp_path: Path, words: list[str], told: str) -> None:
    done = CliRunner().invoke(app, ["whatif", row(tmp_path), *words])
    assert isinstance(done.exception, tp.InputError)
    assert str(done.exception).startswith(told)
    assert "\n" not in str(done.exception)


TREE: dict[str, Any] = {
    "schema": "topoplace.snapshot/1",
    "name": "tree",
    "machine": "tree:2x4",
    "down": "n0",
    "running": [{"id": "a", "nodes": "n[1-5]"}],
    "queue": [{"id": "q", "nodes": 4}],
}


def test_on_other_machines_only_what_makes_sense_there() -> None:
    found = tp.whatif(TREE, [{"without_job": "a"}, {"free": "n0"}, {"add_down": "n7"}])
    assert [one.gain for one in found.scenarios] == [None, 4, 0, 0]
    assert [one.at_most for one in found.scenarios] == [None, 4, 0, 0]
    found = tp.whatif(TREE, [{"add_down": "n[0,6]"}, {"add_down": "n[5-6]"}])
    assert [one.hit for one in found.scenarios] == [(), (), ("a",)]
    line = "add-down n[5-6]: 1 running job on what goes down (a): it counts as running on"
    assert line in str(found).splitlines()
    found = tp.whatif(TREE, [{"add_down": "n7"}], objective="contention")
    assert {one.result.problem for one in found.scenarios} == {"allocation"}
    states: list[Any] = [
        tiny_hierarchies.prepared(tiny_hierarchies.lively_hierarchy("what-if", 200)),
        prepare_cubes(tiny_cubes.random_pod(random.Random("what-if"))),
    ]
    for state in states:
        jobs = [{"without_job": job.id} for job in state.snapshot.running]
        found = what_if(state, [*jobs, {"without_job": state.snapshot.queue[0].id}], worth=True)
        assert all(one.result.check().verified for one in found.scenarios)
        known = [one for one in found.scenarios if one.at_most is not None]
        assert known
        assert all(one.gain is not None and one.gain <= (one.at_most or 0) for one in known)
    for change in ({"weights": {"idle": 3}}, {"interference": "off"}):
        with pytest.raises(tp.InputError, match="but on tori and meshes"):
            tp.whatif(TREE, [change])
    bad_ones: list[Any] = [{}, "a", {"without_jobs": "a"}, {"add_down": [1]}, {"with_request": 3}]
    for bad in bad_ones:
        with pytest.raises(tp.InputError, match="expected"):
            tp.whatif(TREE, [bad])


@pytest.mark.parametrize("seed", few_of(range(30), 2))
def test_hosts_and_domains_are_worth_what_is_said_of_them(seed: int) -> None:
    document = tiny_hierarchies.lively_hierarchy(f"worth-{seed}", 300)
    state = tiny_hierarchies.prepared(document)
    machine, down = state.machine, {*expand_host_list(document["down"])}
    found = what_if(state, [], options=Options(time_limit=30), worth=True)
    assert {job.job for job in found.worth} == {job["id"] for job in document["running"]}
    for one in found.domains:
        [inside] = (
            {machine.host_names[h] for h in np.flatnonzero(of == names.index(one.domain))}
            for of, names in zip(
                machine.domain_of, [*machine.domain_names[:-1], machine.host_names], strict=True
            )
            if one.domain in names
        )
        jobs = (j["id"] for j in document["running"] if inside & {*expand_host_list(j["nodes"])})
        changes: list[Change] = {
            "down": [("add_down", ",".join(sorted(inside - down)))],
            "free": [("free", ",".join(sorted(inside & down)))],
            "emptied": [("without_job", job) for job in jobs],
        }[one.change]
        after = what_if(state, [changes], options=Options(time_limit=30)).scenarios[1].result
        assert one.at_most is not None
        assert one.at_least <= (after.objective or 0) <= one.at_most, (one, after.objective)


def test_racks_worth_draining_are_named() -> None:
    """Four of a rack's hosts make room for a job of four, two free and two of a running job."""
    machine = "hierarchy:2x4"
    running = [{"id": "a", "nodes": "h[0-1]"}, {"id": "b", "nodes": "h[4-6]"}]
    job = {"id": "q", "nodes": 4, "required": "rack"}
    document = TREE | {"machine": machine, "down": "h7", "running": running, "queue": [job]}
    text = str(tp.whatif(document, [], worth=True))
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "rack0 emptied 0 4" in lines
    assert "rack1 emptied 0 0" in lines
    assert "h7 free 0 0" in lines


def test_a_signal_leaves_what_is_solved(tmp_path: Path) -> None:
    state = load_any(row(tmp_path))
    changes = [{"without_job": "a"}, {"without_job": "b"}]
    told: list[str] = []

    def keep(one: Any) -> None:
        told.append(one.name)
        if one.name == "without-job a":
            signal.raise_signal(signal.SIGINT)

    found = what_if(state, changes, worth=True, keep=keep)
    assert told == ["base", "without-job a"] == [one.name for one in found.scenarios]
    assert found.interrupted
    assert not found.worth
    assert str(found).endswith("interrupted: what is missing was not solved")


def test_a_gang_is_one_job_of_its_name(tmp_path: Path) -> None:
    """A job that takes different amounts of its hosts has several entries in the snapshot."""
    names = ["a", "b"]
    machine = {
        "kind": "hierarchy",
        "name": "m",
        "levels": ["rack", "host"],
        "hosts": [{"hosts": name, "domains": ["r"], "capacity": {"gpu": 4}} for name in names],
    }
    running = [
        {"id": f"run/{k + 1}", "gang": "run", "nodes": name, "takes": {"gpu": 2 + k}}
        for k, name in enumerate(names)
    ]
    queue = [{"id": "w", "nodes": 2, "takes": {"gpu": 3}}]
    document = {
        "schema": SNAPSHOT_SCHEMA,
        "name": "now",
        "machine": machine,
        "running": running,
        "queue": queue,
    }
    path = tmp_path / "now.json"
    path.write_text(json.dumps(document))
    found = tp.whatif(path, [{"without_job": "run"}, {"add_down": "b"}], worth=True)
    assert found.scenarios[1].starts == ("w",)
    assert found.scenarios[2].hit == ("run",)
    assert [(one.job, one.at_most) for one in found.worth] == [("run", 2)]
    with pytest.raises(tp.InputError, match="a job that runs or waits"):
        tp.whatif(path, [{"without_job": "run/2"}])
    (listing,) = view_of(found.scenarios[0].result).listings
    assert [row[1:4] for row in listing.table.cells] == [
        ["w", "waits", "2"],
        ["run", "running", "2"],
    ]
