"""Most room for few moves: curves equal brute force, are certified, and can be carried out."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import topoplace as tp
from brute_force import numbers
from few import few_of
from test_repack import ROW
from tiny_repacks import TinyRepack, replayed, tiny_repack
from topoplace.cli.app import app
from topoplace.options import Repack
from topoplace.placement.repack.defragment import defragmented
from topoplace.placement.repack.problem import instance_of, repack_problem
from topoplace.placement.repack.view import best_for
from topoplace.result import Interference
from topoplace.result.several import Frontier
from topoplace.snapshot.schema import DefragmentInstance, RepackInstance, Request, Room, Snapshot
from topoplace.solving import Options

Document = dict[str, Any]

MOST = 4
CASES = [(seed, room) for seed in range(320) for room in (Room.QUEUE, Room.PRISM)]


def asked(seed: int, room: Room) -> tuple[DefragmentInstance, Interference]:
    """Return a tiny machine on which moves of some cost make room."""
    instance, rule = tiny_repack(seed)
    snapshot = instance.snapshot
    queue = [r.model_copy(update={"priority": 1 + k % 2}) for k, r in enumerate(snapshot.queue)]
    snapshot = snapshot.model_copy(update={"queue": queue})
    same = {"fixed": instance.fixed, "costs": instance.costs, "keep_shape": instance.keep_shape}
    moving = instance_of(snapshot, Repack(snapshot, defragment=MOST, room=room, **same))
    assert isinstance(moving, DefragmentInstance)
    return moving, rule


@cache
def solved(seed: int, room: Room) -> Frontier:
    instance, rule = asked(seed, room)
    return defragmented(repack_problem(instance, rule), Options(600, rule))


def best_rooms(instance: DefragmentInstance, rule: Interference) -> list[int]:
    """Return the most room for moves of every cost, by trying all."""
    snapshot = instance.snapshot
    start = [request.id for request in snapshot.queue]
    same = {"fixed": instance.fixed, "costs": instance.costs, "keep_shape": instance.keep_shape}
    plain = instance_of(snapshot, Repack(snapshot, start, **same))
    assert isinstance(plain, RepackInstance)
    case = TinyRepack(plain, rule)
    worth = {request.id: request.nodes * request.priority for request in snapshot.queue}
    wanted = [s for n in range(len(start) + 1) for s in itertools.combinations(start, n)]
    if instance.room is Room.PRISM:
        wanted = [()]
        for nodes in itertools.count(1):
            name = f"of {nodes}"
            case.choices[name] = case.left.choices(Request.model_construct(**_room(nodes)))
            if not case.choices[name]:
                break
            worth[name] = nodes
            wanted.append((name,))
    names = [job.id for job, _ in case.movers]
    best = [0] * (instance.most + 1)
    for size in range(len(names) + 1):
        for moved in itertools.combinations(names, size):
            cost = sum(instance.costs.get(name, 1) for name in moved)
            stay = [case.now[name] for name in names if name not in moved]
            for started in wanted if cost <= instance.most else ():
                room = sum(worth[name] for name in started)
                if room > best[cost] and case.fits([*moved, *started], stay):
                    best[cost] = room
    return list(itertools.accumulate(best, max))


def _room(nodes: int) -> Document:
    return Request(id="room", nodes=nodes).__dict__


@pytest.mark.parametrize("case", few_of(CASES, 16), ids=str)
def test_curves_equal_brute_force_and_are_certified(case: tuple[int, Room]) -> None:
    instance, rule = asked(*case)
    frontier, best = solved(*case), best_rooms(instance, rule)
    for cost, room in enumerate(best):
        point, bound = best_for(frontier, cost)
        assert point is not None
        assert (point.values[-1], bound) == (room, room), cost
    assert frontier.complete
    assert frontier.check().verified, frontier.check()
    for plan in plans_of(frontier):
        assert replayed(plan) is not None


def plans_of(frontier: Frontier) -> Iterator[Document]:
    """Yield the plans as those of repacking, for requests of the size that they have."""
    whole = frontier.instance
    assert isinstance(whole, DefragmentInstance)
    same = {"fixed": whole.fixed, "costs": whole.costs, "keep_shape": whole.keep_shape}
    for point in frontier.model_dump(mode="json")["points"]:
        started, snapshot = point["solution"]["placements"], whole.snapshot
        if whole.room is Room.PRISM:
            queue = [Request(id=p["request"], nodes=len(numbers(p["nodes"]))) for p in started]
            snapshot = snapshot.model_copy(update={"queue": queue})
        start = [request.id for request in snapshot.queue]
        if not start:
            continue
        instance = instance_of(snapshot, Repack(snapshot, start, **same))
        limits = {"interference": frontier.model_dump(mode="json")["limits"]["interference"]}
        yield {"instance": instance.model_dump(mode="json"), "limits": limits, **point}


# ---- Front door and command ----------------------------------------------------------------------


def row() -> Snapshot:
    return Snapshot.model_validate(ROW)


def curve(**options: Any) -> list[list[int]]:
    found = tp.repack(row(), defragment=2, **options)
    assert found.complete
    assert found.check().verified
    return [point.values[1:] for point in found.points]


def test_room_is_for_the_queue_or_a_prism() -> None:
    assert curve() == curve(room="queue") == [[0, 0], [1, 4]]
    assert curve(room="prism") == [[0, 2], [1, 5], [2, 6]]
    assert curve(room="prism", fixed=["a"]) == [[0, 2], [1, 5]]
    assert curve(room="prism", costs={"b": 2}) == [[0, 2], [1, 5]]
    assert curve(room="prism", fixed=["a", "b"]) == [[0, 2]]
    alone = Snapshot.model_validate(ROW | {"queue": []})
    assert [point.values[2] for point in tp.repack(alone, defragment=1).points] == [2, 5]


@pytest.mark.parametrize("options", [{"start": ["b2"]}, {"defragment": 2}])
def test_two_jobs_of_one_id_are_refused(options: Any) -> None:
    """Which of them is meant is not said: a plan for the last would pass for one of both."""
    waiting = ROW["queue"][0] | {"id": "b2"}
    found = tp.repack(ROW | {"queue": [waiting]}, **options)
    snapshot = found.instance.snapshot
    for name in ("b2", snapshot.running[0].id):
        first = Request(id=name, nodes=1)
        twice = snapshot.model_copy(update={"queue": [first, *snapshot.queue]})
        forged = found.instance.model_copy(update={"snapshot": twice})
        report = found.model_copy(update={"instance": forged}).check()
        assert "FAILS  instance: two jobs of the instance have one id" in str(report)


def test_prisms_are_of_a_class_and_of_no_running_jobs_name() -> None:
    machine = {"kind": "torus", "name": "row", "shape": [8], "wrap": [False]}
    document = ROW | {
        "machine": machine | {"classes": {"gpu": "3-4,6-7"}},
        "queue": [],
        "running": [{**ROW["running"][0], "id": "room"}, {**ROW["running"][1], "id": "room1"}],
    }
    found = tp.repack(
        Snapshot.model_validate(document), defragment=2, room="prism", node_class="gpu"
    )
    assert [point.values[1:] for point in found.points] == [[0, 2], [1, 4]]
    assert found.check().verified
    last = found.model_dump(mode="json")["points"][-1]["solution"]
    assert last["placements"][0]["request"] == "room2"


def test_a_time_limit_leaves_boxes_open() -> None:
    found = tp.repack(row(), defragment=2, room="prism", time_limit=0)
    assert not found.complete
    assert found.check().verified
    assert "open" in str(found)
    assert best_for(found, 2)[1] == 8


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"room": "hole"}, "room: expected one of"),
        ({"room": "prism", "node_class": "gpu"}, "node_class: expected"),
        ({"node_class": "gpu"}, "node_class: expected room for a prism"),
        ({"defragment": -1}, "defragment: expected from 0 to"),
        ({"fixed": ["c"]}, "fixed[0]: expected running jobs, each once"),
        ({"costs": {"a": 0}}, "costs.a: expected from 1 to"),
        ({"keep_shape": "best"}, "keep_shape: expected"),
        ({"start": ["wide"]}, "start: expected no requests beside defragment"),
        ({"defragment": None}, "start: expected requests to start"),
        ({"defragment": None, "start": ["wide"], "room": "prism"}, "room: expected defragment"),
    ],
)
def test_wrong_input_is_told_in_a_line(options: Document, told: str) -> None:
    with pytest.raises(tp.InputError) as error:
        tp.repack(row(), **({"defragment": 2} | options))
    assert told in str(error.value)
    with pytest.raises(tp.InputError, match="requests that wait, or room for a prism"):
        tp.repack(Snapshot.model_validate(ROW | {"queue": []}), defragment=1, room="queue")


def test_the_command_prints_the_curve_and_draws_it(tmp_path: Path) -> None:
    snapshot, file, png = (tmp_path / name for name in ("row.json", "curve.json", "curve.png"))
    snapshot.write_text(json.dumps(ROW))
    run = CliRunner().invoke
    given = ["repack", str(snapshot), "--defragment", "2", "--room", "prism"]
    made = run(app, [*given, "-o", str(file), "--png", str(png)])
    assert made.exit_code == 0, made.output
    assert "    1           5      5  b\n" in made.output
    assert "start room on 6@0" in made.output
    longer = run(app, ["repack", str(snapshot), "--defragment", "9"])
    assert "     0           0      0  -\n1 to 9           4      4  b\n" in longer.output
    assert png.read_bytes().startswith(b"\x89PNG")
    assert run(app, ["check", str(file)]).exit_code == 0
    assert isinstance(tp.load(file), Frontier)
    for wrong in (
        ["repack", str(snapshot)],
        ["repack", str(snapshot), "--start", "wide", "--defragment", "1"],
    ):
        assert "expected --" in str(run(app, wrong).exception)
