"""All placements at the optimum of some levels: that there are no others, and how they differ."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import dragonfly_cases
import tiny_cubes
import tiny_fattrees
import tiny_hierarchies
import topoplace as tp
from brute_force import Choice, Tiny, in_each_set
from exact_cases import MODES, mid_size_snapshot
from random_instances import random_snapshot
from topoplace.cli.app import app
from topoplace.errors import InputError
from topoplace.placement.several import optima_of, traded_off
from topoplace.result import Interference
from topoplace.result.several import Optima
from topoplace.snapshot.cubes_state import prepare_cubes
from topoplace.snapshot.files import write_document
from topoplace.snapshot.hierarchy_state import prepare_hierarchy
from topoplace.snapshot.machines import prepare_any
from topoplace.snapshot.schema import SNAPSHOT_SCHEMA, Request, Snapshot
from topoplace.snapshot.state import prepare
from topoplace.solving import Options
from topoplace.study.case import load_checkable
from values import value_of

Document = dict[str, Any]
Told = frozenset[tuple[Hashable, int]]
Outcomes = Callable[[Snapshot], set[tuple[int, ...]]]

MOST_PLACEMENTS, MOST_OPTIMA = 20_000, 25
LEVELS = ("nodes", "shape", "fragmentation")
APART = ("started", "prisms", "nodes")


def told_apart(tiny: Tiny, chosen: list[tuple[Request, Choice]], how: str) -> Told:
    """Return what tells a placement apart: requests that ask for the same are no different."""
    told: Counter[Hashable] = Counter()
    for request, choice in chosen:
        wanted = request.node_class or tiny.default_class
        kind: Hashable = request.model_copy(
            update={"node_class": wanted, "id": "?"}
        ).model_dump_json()
        if tiny.kind(request.communication.value) == "tolerant":
            kind = request.id  # these have link rows of their own
        open_to = in_each_set(request)
        usable = frozenset(r for r in choice.routers if any(tiny.count(one, r) for one in open_to))
        told[kind, {"started": None, "prisms": choice.box, "nodes": usable}[how]] += 1
    return frozenset(told.items())


def best_by_trying(snapshot: Snapshot, mode: Interference, num: int, how: str) -> set[Told] | None:
    """Return what tells the best placements apart; None if there are too many to try."""
    tiny = Tiny(snapshot, mode)
    found: list[tuple[tuple[int, ...], list[tuple[Request, Choice]]]] = [((0, 0, 0), [])]
    for request in snapshot.queue:
        for total, chosen in list(found):
            found += [
                (
                    tuple(map(sum, zip(total, choice.values, strict=True))),
                    [*chosen, (request, choice)],
                )
                for choice in tiny.choices(request)
                if not any(choice.meets(other) for _, other in chosen)
            ]
            if len(found) > MOST_PLACEMENTS:
                return None
    best = max(total[:num] for total, _ in found)
    return {told_apart(tiny, chosen, how) for total, chosen in found if total[:num] == best}


def case(seed: int) -> tuple[Snapshot, Interference, int, str]:
    """Return a small machine, how many levels count, and what tells placements apart."""
    snapshot = random_snapshot(random.Random(f"optima-{seed}"), 10)
    return snapshot, MODES[seed % 3], seed // 9 % 3 + 1, APART[seed // 3 % 3]


KindOf = Callable[[Request], Hashable]


def words_of(request: Request) -> Hashable:
    """Return what a request asks for, but for its name."""
    return request.model_dump_json(exclude={"id"})


def sets_that_start(
    snapshot: Snapshot,
    num: int,
    outcomes: Callable[[Snapshot], set[tuple[int, ...]]],
    kind_of: KindOf = words_of,
) -> set[Told]:
    """Return the best sets of requests to start, by trying each alone; equal requests are one."""
    found: dict[Told, tuple[int, ...]] = {}
    for size in range(len(snapshot.queue) + 1):
        for queue in itertools.combinations(snapshot.queue, size):
            every = outcomes(snapshot.model_copy(update={"queue": list(queue)}))
            value = sum(value_of(snapshot, request) for request in queue)
            all_start = [total[:num] for total in every if total[0] == value]
            if all_start:
                found[frozenset(Counter(map(kind_of, queue)).items())] = max(all_start)
    best = max(found.values())
    return {told for told, values in found.items() if values == best}


def is_proven(optima: Optima, best: set[Told], kind_of: KindOf = words_of) -> bool:
    """Tell whether a document has each of the best sets once, and the proof."""
    kinds = {request.id: kind_of(request) for request in optima.instance.queue}
    counts = [Counter(kinds[p.request] for p in x.solution.placements) for x in optima.points]
    starting = {frozenset(count.items()) for count in counts}
    right = optima.complete and len(counts) == len(starting) and starting == best
    return right and optima.check().verified


@pytest.mark.parametrize(
    "seeds", [range(6), pytest.param(range(6, 60), marks=pytest.mark.slow)], ids=str
)
def test_who_starts_on_pods_equals_brute_force(seeds: range) -> None:
    for seed in seeds:
        snapshot = tiny_cubes.random_pod(random.Random(f"optima-{seed}"))
        num = 1 + seed % 2

        def spots(request: Request, snapshot: Snapshot = snapshot) -> Hashable:
            every = tiny_cubes.places(snapshot, request)
            return request.nodes, request.priority, frozenset(str(sorted(p.items())) for p in every)

        best = sets_that_start(snapshot, num, tiny_cubes.outcomes, spots)
        optima = optima_of(prepare_cubes(snapshot), MOST_OPTIMA, ("nodes", "free_cubes")[:num])
        assert is_proven(optima, best, spots), seed


@pytest.mark.parametrize(
    "seeds", [range(12), pytest.param(range(12, 120), marks=pytest.mark.slow)], ids=str
)
def test_who_starts_on_hierarchies_equals_brute_force(seeds: range) -> None:
    tried = 0
    for seed in seeds:
        document = tiny_hierarchies.random_hierarchy(random.Random(f"optima-{seed}"))
        state = tiny_hierarchies.prepared(document)
        if tiny_hierarchies.num_placements(state) > 1_000:
            continue
        if not all(value_of(state.snapshot, request) for request in state.snapshot.queue):
            with pytest.raises(InputError, match="value: expected nodes or jobs for all optima"):
                optima_of(state, MOST_OPTIMA)
            document.pop("value")
            found = optima_of(tiny_hierarchies.prepared(document), MOST_OPTIMA)
            forged = found.model_dump(mode="json", by_alias=True)
            forged["instance"]["value"] = "gpus"
            forged["levels"].insert(1, {"name": "without_gpus", "sense": "max"})
            assert "without value" in str(tp.check(forged))
            continue
        num = 1 + seed % 2
        names = ["nodes", document["machine"]["levels"][0]][:num]

        def outcomes(snapshot: Snapshot) -> set[tuple[int, ...]]:
            return tiny_hierarchies.outcomes(prepare_hierarchy(snapshot))

        best = sets_that_start(state.snapshot, num, outcomes)
        assert is_proven(optima_of(state, MOST_OPTIMA, names), best), seed
        tried += 1
    assert tried > len(seeds) / 3


def dragonfly_and_outcomes(seed: int) -> tuple[Snapshot, Outcomes]:
    """Return a tiny dragonfly, and what finds the values of all placements of its queue."""
    document = dragonfly_cases.drawn(f"several-{seed}", rules=False, most=8)

    def outcomes(snapshot: Snapshot) -> set[tuple[int, ...]]:
        queue = [one for one in document["queue"] if one["id"] in {r.id for r in snapshot.queue}]
        return dragonfly_cases.Tiny(document | {"queue": queue}, strict=True).outcomes()

    return Snapshot.model_validate(document), outcomes


def fat_tree_and_outcomes(seed: int) -> tuple[Snapshot, Outcomes]:
    """Return a tiny fat tree, and what finds the values of all placements of its queue."""
    snapshot = tiny_fattrees.random_tree(random.Random(f"several-{seed}"))
    return snapshot, lambda own: {*tiny_fattrees.outcomes(own)}


@pytest.mark.parametrize(
    "seeds", [range(3), pytest.param(range(3, 60), marks=pytest.mark.slow)], ids=str
)
@pytest.mark.parametrize("drawn", [dragonfly_and_outcomes, fat_tree_and_outcomes])
def test_optima_and_trade_offs_of_links_equal_brute_force(
    drawn: Callable[[int], tuple[Snapshot, Outcomes]], seeds: range
) -> None:
    for seed in seeds:
        snapshot, outcomes = drawn(seed)
        levels = ["nodes", "group" if drawn is dragonfly_and_outcomes else "links"]
        state, num = prepare_any(snapshot), 1 + seed % 2
        best = sets_that_start(snapshot, num, outcomes)
        assert is_proven(optima_of(state, MOST_OPTIMA, levels[:num]), best), seed
        found = traded_off(state, levels)
        values = {own[:2] for own in outcomes(snapshot)}
        undominated = {
            one
            for one in values
            if not any(one != other and dominates(other, one) for other in values)
        }
        assert found.complete, seed
        assert {(point.values[0], -point.values[1]) for point in found.points} == undominated, seed
        assert found.check().verified, seed


def dominates(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Tell whether values are at least as large as others."""
    return all(a >= b for a, b in zip(one, other, strict=True))


def test_requests_without_a_place_are_equal_only_if_they_ask_for_the_same() -> None:
    shapes = [{"dims": [1]}, {"dims": [2]}]
    machine = {"kind": "torus", "name": "ring", "shape": [4], "anchored": shapes}
    wide = {"nodes": 2, "communication": "tolerant"}
    queue = [
        {"id": "none", "nodes": 2, "communication": "none"},
        {"id": "strict", "nodes": 2},
        {"id": "again", "nodes": 2},
        {"id": "tolerant", **wide},
        {"id": "too", **wide},
    ]
    document = {"schema": SNAPSHOT_SCHEMA, "name": "ring", "machine": machine, "queue": queue}
    state = prepare(Snapshot.model_validate(document | {"down": "0,2"}))
    optima = optima_of(state, 3, options=Options(interference=Interference.TOLERANT))
    assert optima.equal == [["strict", "again"]]
    assert optima.check().verified, optima.check()


def test_cubes_that_stay_free_count_on_levels_that_do_not() -> None:
    machine = {"kind": "cubes", "name": "pod", "cubes": 4, "side": [3]}
    sizes = enumerate((9, 12, 3, 2))
    queue = [{"id": f"q{k}", "nodes": n, "priority": 3 if n == 3 else 1} for k, n in sizes]
    document = {"schema": SNAPSHOT_SCHEMA, "name": "pod", "machine": machine, "queue": queue}
    for down in ("0", "0,3", "0,3,6"):
        snapshot = Snapshot.model_validate(document | {"down": down})
        optima = optima_of(prepare_cubes(snapshot), 50, ["nodes"])
        assert optima.complete
        assert optima.check().verified, optima.check()


def test_who_starts_on_larger_machines_is_proven_and_prisms_are_found() -> None:
    state = prepare(mid_size_snapshot(1))
    started = optima_of(state, 5, ["nodes"], "started")
    assert started.complete
    assert started.check().verified
    prisms = optima_of(state, 3, ["nodes"], options=Options(20.0))
    assert len(prisms.points) == 3
    assert not prisms.complete
    assert prisms.check().verified
    for number in range(3):
        assert prisms.result(number).check().verified


# ---- Commands ------------------------------------------------------------------------------------


def test_commands_find_all_and_show(tmp_path: Path) -> None:
    snapshot, file = tmp_path / "small.json", tmp_path / "optima.json"
    write_document(snapshot, case(13)[0])
    run = CliRunner().invoke
    given = [
        "--all",
        "9",
        "--levels",
        "nodes,shape",
        "-o",
        str(file),
        "--png",
        str(tmp_path / "a.png"),
    ]
    made = run(app, ["place", str(snapshot), *given])
    assert made.exit_code == 0, made.output
    assert "these are all" in made.output
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert run(app, ["check", str(file)]).exit_code == 0
    assert run(app, ["show", str(file), "--png", str(tmp_path / "b.png")]).exit_code == 0
    optima = load_checkable(file)
    assert isinstance(optima, Optima)
    assert all(optima.result(k).check().verified for k in range(len(optima.points)))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["--all", "0"], "expected at least 1"),
        (["--all", "3", "--levels", "shape"], "expected the first of nodes, shape, fragmentation"),
        (["--all", "3", "--levels", "nodes,shapes"], "did you mean 'shape'?"),
        (["--all", "3", "--distinct", "prism"], "did you mean 'prisms'?"),
        (["--all", "3", "--pareto", "nodes,shape"], "expected no other than"),
        (["--all", "3", "--method", "best-fit"], "expected no other than"),
        (["--distinct", "prisms"], "expected --all with it"),
    ],
)
def test_what_cannot_be_asked_is_told(tmp_path: Path, given: list[str], told: str) -> None:
    snapshot = tmp_path / "small.json"
    write_document(snapshot, case(13)[0])
    done = CliRunner().invoke(app, ["place", str(snapshot), *given])
    assert told in str(done.exception)
