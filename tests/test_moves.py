"""Which jobs of hierarchies and pods move or end: plans equal brute force, and are certified."""

from __future__ import annotations

import math
import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest

import topoplace as tp
from scripts_of_the_project import script
from soundness.results import bent_curve, hold_bent
from tiny_moves import (
    Case,
    best_plan,
    best_rooms,
    most_free,
    replayed,
    tiny_moves,
    tiny_replacement,
    tiny_spares,
)
from tiny_pods import tiny_pod, tiny_pod_of_spares
from topoplace.machine.hostlist import expand_host_list
from topoplace.options import Repack
from topoplace.placement.repack.defragment import defragmented
from topoplace.placement.repack.problem import instance_of, repack_problem
from topoplace.placement.repack.spares import with_spares
from topoplace.placement.repack.view import best_for
from topoplace.report.summary import summary
from topoplace.result.placement import RepackResult
from topoplace.result.several import Frontier
from topoplace.snapshot.schema import RepackInstance, Snapshot
from topoplace.solving import Options, solve

Document = dict[str, Any]
FIELD = Path(__file__).parents[2] / "shared" / "data" / "field"


@cache
def solved(seed: int) -> tuple[Case, RepackResult]:
    case = tiny_moves(seed)
    return case, solve(repack_problem(case.instance), "exact", Options(time_limit=60))


@pytest.mark.parametrize(
    "seeds", [range(10), pytest.param(range(10, 310), marks=pytest.mark.slow)], ids=["some", "many"]
)
def test_plans_equal_brute_force_and_are_certified(seeds: range) -> None:
    kinds: Counter[str] = Counter()
    for seed in seeds:
        case, result = solved(seed)
        best = best_plan(case)
        assert tuple(level.objective for level in result.levels) == best, seed
        for level, value in zip(result.levels, best, strict=True):
            assert level.bound is not None
            assert level.bound >= value if level.sense == "max" else level.bound <= value, seed
        kinds["proven"] += all(level.bound == level.objective for level in result.levels)
        assert result.check().verified, (seed, result.check())
        assert replayed(result.model_dump(mode="json", by_alias=True), case) == best, seed
        kinds["all" if best[0] == len(case.instance.start) else "not all"] += 1
        kinds["moves"] += best[-2] > 0
        kinds["ends"] += bool(case.instance.ends) and best[1] > 0
        kinds["gangs"] += any(job.gang for job in case.instance.snapshot.running)
    assert kinds["proven"] >= 0.99 * len(seeds), kinds
    named = ("all", "not all", "moves", "ends", "gangs")
    assert min(kinds[name] for name in named) >= len(seeds) // 10, kinds


@pytest.mark.parametrize(
    "seeds",
    [range(16), pytest.param(range(16, 1_100), marks=pytest.mark.slow)],
    ids=["some", "many"],
)
def test_replacements_equal_brute_force_and_are_certified(seeds: range) -> None:
    kinds: Counter[str] = Counter()
    for case in filter(None, map(tiny_replacement, seeds)):
        result = solve(repack_problem(case.instance), "exact", Options(time_limit=60))
        best = best_plan(case)
        assert tuple(level.objective for level in result.levels) == best
        assert result.check().verified, result.check()
        assert replayed(result.model_dump(mode="json", by_alias=True), case) == best
        assert result.bound is not None
        assert result.bound >= best[0]
        kinds["proven"] += result.bound == best[0]
        [name] = case.instance.replace
        assert result.solution is not None
        done = any(own.request == name for own in result.solution.placements)
        kinds["replaced" if done else "not"] += 1
    assert kinds["replaced"] >= 3, kinds
    assert kinds["not"] >= 3, kinds
    assert kinds["proven"] >= 0.97 * (kinds["replaced"] + kinds["not"]), kinds


def spares_on(drawn: Callable[[int], Any], seeds: range) -> Counter[str]:
    """Require that as few spares are used as brute force finds, and return what there was."""
    kinds: Counter[str] = Counter()
    for case in filter(None, map(drawn, seeds)):
        result = solve(repack_problem(case.instance), "exact", Options(time_limit=60))
        best = best_plan(case)
        assert tuple(level.objective for level in result.levels) == best
        assert [level.name for level in result.levels][:2] == ["started", "spares"]
        for level, value in zip(result.levels, best, strict=True):
            assert level.bound is not None
            assert level.bound >= value if level.sense == "max" else level.bound <= value
        assert result.check().verified, result.check()
        assert replayed(result.model_dump(mode="json", by_alias=True), case) == best
        kinds["cases"] += 1
        kinds["proven"] += all(level.bound == level.objective for level in result.levels)
        kinds["used"] += best[1] > 0
        kinds["moves"] += best[-2] > 0
        kinds["replaced"] += bool(case.instance.replace)
    assert kinds["proven"] >= 0.97 * kinds["cases"], kinds
    return kinds


@pytest.mark.parametrize(
    "seeds", [range(24), pytest.param(range(24, 750), marks=pytest.mark.slow)], ids=["some", "many"]
)
def test_spares_of_hierarchies_equal_brute_force_and_are_certified(seeds: range) -> None:
    kinds = spares_on(tiny_spares, seeds)
    assert kinds["cases"] >= 2 * len(seeds) // 5
    assert min(kinds["used"], kinds["replaced"]) >= len(seeds) // 20, kinds
    assert kinds["moves"] >= len(seeds) // 50, kinds


@pytest.mark.parametrize(
    "seeds", [range(6), pytest.param(range(6, 106), marks=pytest.mark.slow)], ids=["some", "many"]
)
def test_spares_of_pods_equal_brute_force_and_are_certified(seeds: range) -> None:
    kinds = spares_on(tiny_pod_of_spares, seeds)
    assert kinds["cases"] == len(seeds)
    assert min(kinds["used"], kinds["moves"]) >= len(seeds) // 20, kinds


def crowded(seed: int, racks: int, segments: int) -> Snapshot:
    """Return a cluster of racks of 18 at 85 %, where a gang waits for some whole racks."""
    found = script("families").cluster(seed, racks=racks, load=0.85, jobs=1)
    gang = {"id": "gang", "nodes": 18 * segments, "segments": [{"size": 18, "level": "rack"}]}
    return Snapshot.model_validate(
        found.model_dump(mode="json", by_alias=True) | {"queue": [gang], "name": "crowded"}
    )


def test_fewest_moves_for_whole_racks_are_proven() -> None:
    result = tp.repack(crowded(1, 12, 2), "gang", time_limit=60)
    assert result.check().verified
    started, moves, _ = result.levels
    assert (started.objective, moves.bound) == (1, moves.objective)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(11, 16))
def test_fewest_moves_for_eight_racks_of_56_are_proven_in_a_minute(seed: int) -> None:
    snapshot, begun = crowded(seed, 56, 8), time.process_time()
    result = tp.repack(snapshot, "gang", time_limit=60)
    assert time.process_time() - begun < 60
    assert result.check().verified
    started, moves, _ = result.levels
    assert (started.objective, moves.bound) == (1, moves.objective)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(11, 16))
def test_forty_failed_hosts_of_twelve_jobs_are_replaced_in_ten_seconds(seed: int) -> None:
    found, rng = script("families").cluster(seed, load=0.7, jobs=1), random.Random(f"failed-{seed}")
    large = sorted((j for j in found.running), key=lambda j: -len(expand_host_list(j.nodes)))
    hosts = {job.id: expand_host_list(job.nodes) for job in large[:12]}
    failed = [rng.choice(own) for own in hosts.values()]
    rest = sorted({host for own in hosts.values() for host in own} - {*failed})
    failed += rng.sample(rest, 40 - len(failed))
    down = ",".join([found.down, *failed])
    update = {"down": down, "queue": []}
    snapshot = Snapshot.model_validate(found.model_dump(mode="json", by_alias=True) | update)
    begun = time.process_time()
    result = tp.repack(snapshot, replace=[*hosts], time_limit=10)
    assert time.process_time() - begun < 10
    assert result.check().verified
    started, moves, _ = result.levels
    # of a job in a rack without a free host it is proven that no other move makes room for it
    assert (started.bound, moves.bound) == (started.objective, moves.objective)
    assert started.objective >= 9


@pytest.mark.parametrize("replaced", [False, True])
@pytest.mark.parametrize(
    "seeds", [range(6), pytest.param(range(6, 106), marks=pytest.mark.slow)], ids=["some", "many"]
)
def test_plans_of_pods_equal_brute_force_and_are_certified(seeds: range, replaced: bool) -> None:
    kinds: Counter[str] = Counter()
    for seed in seeds:
        case = tiny_pod(seed, replaced=replaced)
        result = solve(repack_problem(case.instance), "exact", Options(time_limit=60))
        best = best_plan(case)
        assert tuple(level.objective for level in result.levels) == best, seed
        for level, value in zip(result.levels, best, strict=True):
            assert level.bound is not None
            assert level.bound >= value if level.sense == "max" else level.bound <= value, seed
        assert result.check().verified, (seed, result.check())
        assert replayed(result.model_dump(mode="json", by_alias=True), case) == best, seed
        kinds["proven"] += all(level.bound == level.objective for level in result.levels)
        kinds["all" if best[0] == len(case.instance.start) + replaced else "not all"] += 1
        kinds["moves"] += best[-2] > 0
    assert kinds["proven"] >= 0.97 * len(seeds), kinds
    assert min(kinds["all"], kinds["not all"], kinds["moves"]) >= len(seeds) // 20, kinds


MOST = 4


def alone(case: Any, **update: Any) -> Any:
    """Return a case of whose jobs some may move, at their costs, and nothing else counts."""
    whole = case.instance.model_copy(update={"ends": {}, "budgets": [], "moving": True, **update})
    return replace(case, instance=whole)


@cache
def for_queue(seed: int) -> tuple[Frontier, list[int], Any]:
    """Return what moves make room for of the queue, the truth by cost, and the case."""
    case = tiny_moves(seed)
    whole = case.instance
    same = {"costs": whole.costs, "keep_shape": str(whole.keep_shape)}
    names = {job.gang or job.id for job in whole.snapshot.running}
    asked = Repack(whole.snapshot, defragment=MOST, fixed=sorted(names - {*case.present}), **same)
    frontier = defragmented(repack_problem(instance_of(whole.snapshot, asked)), Options(60))
    case = alone(case, start=[request.id for request in whole.snapshot.queue])
    return frontier, best_rooms(case, MOST), case


@pytest.mark.parametrize(
    "seeds", [range(8), pytest.param(range(8, 308), marks=pytest.mark.slow)], ids=["some", "many"]
)
def test_room_for_the_queue_by_moves_equals_brute_force(seeds: range) -> None:
    more = 0
    for seed in seeds:
        frontier, best, _ = for_queue(seed)
        held_to_most(frontier, best)
        more += best[-1] > best[0]
    assert more >= len(seeds) // 10


def held_to_most(frontier: Any, best: list[int]) -> None:
    """Require the best room for every cost, proven."""
    for cost, room in enumerate(best):
        point, bound = best_for(frontier, cost)
        assert point is not None
        assert point.values[-1] == room, cost
        assert bound is None or bound >= room
    assert frontier.check().verified, frontier.check()


@pytest.mark.parametrize(
    "seeds", [range(6), pytest.param(range(6, 306), marks=pytest.mark.slow)], ids=["some", "many"]
)
def test_free_domains_by_moves_equal_brute_force(seeds: range) -> None:
    more = 0
    for seed in seeds:
        found = for_domains(seed)
        if found is not None:
            frontier, best, _ = found
            held_to_most(frontier, best)
            more += best[-1] > best[0]
    assert more >= len(seeds) // 20


@cache
def for_domains(seed: int) -> tuple[Frontier, list[int], Any] | None:
    """Return which domains moves make free, the truth by cost, and the case; None without any."""
    case = tiny_moves(seed)
    whole, machine = case.instance, case.state.machine
    if len(machine.levels) < 2 or not (machine.capacity > 0).all(axis=0).any():
        return None
    level = machine.levels[seed % (len(machine.levels) - 1)]
    jobs = {job.gang or job.id for job in whole.snapshot.running}
    same = {"costs": whole.costs, "keep_shape": str(whole.keep_shape)}
    fixed = sorted(jobs - {*case.present})
    asked = Repack(whole.snapshot, defragment=MOST, room=level, fixed=fixed, **same)
    frontier = defragmented(repack_problem(instance_of(whole.snapshot, asked)), Options(60))
    of = machine.domain_of[machine.levels.index(level)].tolist()
    taken = {machine.numbers[h] for h in expand_host_list(whole.snapshot.down)}
    for job in whole.snapshot.running:
        if (job.gang or job.id) not in case.present:
            taken |= {machine.numbers[h] for h in expand_host_list(job.nodes)}
    domains = [{h for h, own in enumerate(of) if own == d} for d in {*of}]
    case = alone(case, start=[])
    return frontier, most_free(case, MOST, [d for d in domains if taken.isdisjoint(d)]), case


@pytest.mark.parametrize(
    "seeds", [range(6), pytest.param(range(6, 106), marks=pytest.mark.slow)], ids=["some", "many"]
)
def test_free_cubes_by_moves_equal_brute_force(seeds: range) -> None:
    more = 0
    for seed in seeds:
        case = tiny_pod(seed)
        whole, volume = case.instance, math.prod(case.side)
        fixed = sorted({job.id for job in whole.snapshot.running} - {*case.present})
        same = {"costs": whole.costs, "keep_shape": str(whole.keep_shape)}
        asked = Repack(whole.snapshot, defragment=MOST, room="cubes", fixed=fixed, **same)
        frontier = defragmented(repack_problem(instance_of(whole.snapshot, asked)), Options(60))
        cubes = [set(range(c * volume, (c + 1) * volume)) for c in range(case.num)]
        update = {"ends": {}, "budgets": [], "moving": True, "start": []}
        alone = replace(case, instance=whole.model_copy(update=update))
        best = most_free(alone, MOST, [own for own in cubes if own <= case.free])
        held_to_most(frontier, [volume * number for number in best])
        more += best[-1] > best[0]
    assert more >= len(seeds) // 20


def moved(rng: random.Random, mutant: Document) -> None:
    """Put units elsewhere, or do the steps in another order or way, or end another job."""
    solution, way = mutant["solution"], rng.randrange(4)
    running = [job["nodes"] for job in mutant["instance"]["snapshot"]["running"]]
    if way == 0:
        placement = rng.choice([*solution["moves"], *solution["placements"]])
        placement["nodes"] = None
        if "parts" in placement:
            rng.choice(rng.choice(placement["parts"])["shares"])["hosts"] = rng.choice(running)
        else:
            cube = rng.randrange(mutant["instance"]["snapshot"]["machine"]["cubes"])
            placement["cubes"][rng.randrange(len(placement["cubes"]))] = cube
    elif way == 1:
        rng.shuffle(solution["steps"])
    elif way == 2:
        actions = ("end", "suspend", "move", "resume", "start")
        rng.choice(solution["steps"])["action"] = rng.choice(actions)
    else:
        names = [job["id"] for job in mutant["instance"]["snapshot"]["running"]]
        solution["ended"] = [rng.choice(names)]


def only_ended(seed: int) -> Case:
    """Return a case in which nobody moves, and all jobs may be ended."""
    case = tiny_moves(seed)
    ends = dict.fromkeys(case.present, 1)
    return alone(case, moving=False, ends=ends, costs={})


DRAWN: dict[str, Callable[[int], Any]] = {
    "hierarchies": tiny_moves,
    "victims": only_ended,
    "replaced": tiny_replacement,
    "pods": tiny_pod,
    "replaced on pods": partial(tiny_pod, replaced=True),
    "spares": tiny_spares,
    "spares of pods": tiny_pod_of_spares,
}


@pytest.mark.parametrize("tries", [25, pytest.param(1_500, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", DRAWN)
def test_bent_plans_are_refused_or_right(kind: str, tries: int) -> None:
    cases = [case for case in map(DRAWN[kind], range(10)) if case is not None]
    known = {case.instance.model_dump_json(): case for case in cases}
    problems = [repack_problem(case.instance) for case in cases]
    results = [solve(problem, "exact", Options(time_limit=60)) for problem in problems]

    def is_right(document: Document) -> bool:
        """Return whether figures are true; of another question that is not known, no proof."""
        case = known.get(RepackInstance.model_validate(document["instance"]).model_dump_json())
        if case is None:
            return asked_again(document)
        best, values = best_plan(case), replayed(document, case)
        objectives = [level["objective"] for level in document["levels"]]
        if values != tuple(objectives):
            return False
        for k, level in enumerate(document["levels"]):  # a bound is of plans as good before it
            bound, sign = level["bound"], 1 if level["sense"] == "max" else -1
            if values[:k] == best[:k] and bound is not None and sign * bound < sign * best[k]:
                return False
        return True

    hold_bent(results, moved, is_right, tries)


@pytest.mark.parametrize("tries", [25, pytest.param(1_500, marks=pytest.mark.slow)])
@pytest.mark.parametrize("room", [for_queue, for_domains])
def test_bent_rooms_are_refused_or_right(room: Callable[[int], Any], tries: int) -> None:
    cases = [own for own in map(room, range(14)) if own is not None]
    known = {frontier.instance.model_dump_json(): own for own in cases for frontier in own[:1]}

    def is_right(document: Document) -> bool:
        """Return whether plans can be carried out, and figures are true; else it is made anew."""
        frontier = Frontier.model_validate(document)
        own = known.get(frontier.instance.model_dump_json())
        if own is None:
            best = defragmented(repack_problem(frontier.instance), Options(20))
            rooms = [best_for(best, cost) for cost in range(MOST + 1)]
            truth = [(point.values[-1] if point else 0, bound) for point, bound in rooms]
        else:
            truth = [(value, value) for value in own[1]]
            for point in document["points"]:
                if not is_plan(point, own[2], own[0]):
                    return False
        for cost, (least, most) in enumerate(truth):
            point, bound = best_for(frontier, cost)
            too_much = point is not None and most is not None and point.values[-1] > most
            if too_much or (bound is not None and bound < least):
                return False
        return True

    frontiers = [frontier for frontier, *_ in cases]
    hold_bent(frontiers, moved, is_right, tries, bent_curve)


def is_plan(point: Document, case: Any, frontier: Frontier) -> bool:
    """Return whether a plan can be carried out and is worth what it says, free domains too."""
    solution, (_, cost, room) = point["solution"], point["values"]
    if frontier.instance.level is not None:
        names = {own["request"] for own in solution["placements"]}
        steps = [step for step in solution["steps"] if step["job"] not in names]
        moves = {own["request"]: case.read(own) for own in solution["moves"]}
        used = {h for name, p in (case.present | moves).items() for h in case.used(p)}
        of = case.state.machine.domain_of[case.state.machine.levels.index(frontier.instance.level)]
        free = [
            {
                int(of[host])
                for part in own["parts"]
                for share in part["shares"]
                for host in [case.state.machine.numbers[share["hosts"]]]
            }
            for own in solution["placements"]
        ]
        domains = {d for own in free for d in own}
        if len(domains) != room or domains & {int(of[host]) for host in used}:
            return False
        solution = solution | {"placements": [], "steps": steps}
        room = 0
    figures = replayed({"solution": solution}, case)
    if figures is None:
        return False
    started = [own["request"] for own in solution["placements"]]
    return figures[-2] == cost and sum(case.requests[n].value for n in started) == room


def asked_again(document: Document) -> bool:
    """Return whether no plan of another question is better than its bounds: it is solved anew."""
    instance = RepackInstance.model_validate(document["instance"])
    found = solve(repack_problem(instance), "exact", Options(time_limit=20))
    for level, own in zip(found.levels, document["levels"], strict=True):
        better = own["bound"] is not None and (
            level.objective > own["bound"]
            if level.sense == "max"
            else level.objective < own["bound"]
        )
        if better or level.objective != own["objective"]:
            return not better
    return True


# ---- Cases of the field --------------------------------------------------------------------------


def field(name: str) -> Snapshot:
    path = FIELD / name / "s.json"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    return Snapshot.model_validate_json(path.read_text())


def figures(snapshot: Snapshot, start: str, **options: Any) -> dict[str, int | None]:
    result = tp.repack(snapshot, [start], **options)
    assert result.check().verified, result.check()
    assert all(level.objective == level.bound for level in result.levels)
    return {level.name: level.objective for level in result.levels}


def test_a_gang_that_needs_a_clique_ends_the_one_job_that_fills_another() -> None:
    cliques = field("repack_cliques")
    found = figures(cliques, "gang", evict="all")
    assert found == {"started": 1, "ended": 1, "moves": 0, "moved_nodes": 4}
    one = tp.repack(cliques, ["gang"], evict=["lo3"])
    assert one.solution is not None
    assert one.solution.ended == ["lo3"]
    # the cliques are full: nobody can move, and one of the small jobs is not enough
    assert figures(cliques, "gang")["started"] == 0
    assert figures(cliques, "gang", evict=["lo1"])["started"] == 0
    assert figures(cliques, "gang", evict=["lo1", "lo2"])["ended"] == 2
    assert figures(cliques, "gang", evict="all", costs={"lo3": 3})["ended"] == 1
    assert figures(cliques, "gang", evict={"lo1": 1, "lo2": 1, "lo3": 3})["ended"] == 2


def test_scattered_low_pods_make_no_room_where_high_ones_stay() -> None:
    hosts = field("repack_hosts")
    low = [job.id for job in hosts.running if job.id.startswith("lo")]
    high = [job.id for job in hosts.running if job.id.startswith("hi")]
    assert figures(hosts, "full", fixed=high, evict=low)["started"] == 0
    result = tp.repack(hosts, ["full"], no_moves=True, evict=low)
    assert "cannot start, however the others move or end: full" in summary(result)
    # where high pods may move, eight low ones end and six high ones of a host take their places
    found = figures(hosts, "full", evict=low)
    assert found == {"started": 1, "ended": 8, "moves": 6, "moved_nodes": 14}


def test_lower_says_who_may_end() -> None:
    hosts = field("repack_hosts")
    running = [
        job.model_copy(update={"priority": 1 if job.id.startswith("lo") else 10})
        for job in hosts.running
    ]
    snapshot = hosts.model_copy(update={"running": running})
    result = tp.repack(snapshot, ["full"], evict="lower")
    assert {*result.instance.ends} == {job.id for job in running if job.id.startswith("lo")}
    assert [level.objective for level in result.levels] == [1, 8, 6, 14]


GPUS: Document = {
    "schema": "topoplace.snapshot/1",
    "name": "gpus",
    "machine": {
        "kind": "hierarchy",
        "name": "three",
        "levels": ["host"],
        "hosts": [{"hosts": "n[0-2]", "domains": [], "capacity": {"gpus": 8}}],
    },
    "running": [
        {"id": f"n{host}.{gpus}", "nodes": f"n{host}", "takes": {"gpus": gpus}}
        for host, own in enumerate(((4, 2, 1), (4, 2), (4, 2, 1)))
        for gpus in own
    ],
    "queue": [{"id": "pod", "nodes": 1, "takes": {"gpus": 4}}],
}


@pytest.mark.parametrize(("name", "starts"), [("r", 1), ("reservation:r", 0)])
@pytest.mark.parametrize("evict", [None, "all"])
def test_reservations_neither_move_nor_end(name: str, starts: int, evict: str | None) -> None:
    hosts = [{"hosts": f"{rack}[0-1]", "domains": [rack]} for rack in "ab"]
    document = {
        "schema": "topoplace.snapshot/1",
        "name": "two_racks",
        "machine": {"kind": "hierarchy", "name": "m", "levels": ["rack", "host"], "hosts": hosts},
        "running": [{"id": name, "nodes": "a0"}, {"id": "s", "nodes": "b0"}],
        "queue": [{"id": "wide", "nodes": 2, "required": "rack"}],
        "sets": {"x": "a0"},
    }
    found = tp.repack(tp.load(document), "wide", evict=evict, fixed=["s"])
    assert found.levels[0].objective == starts
    assert found.check().verified
    assert ("not known of 1 job" in summary(found)) == (starts > 0)


def test_hosts_that_follow_each_other_do_so_after_moves() -> None:
    document = {
        "schema": "topoplace.snapshot/1",
        "name": "line",
        "machine": {
            "kind": "hierarchy",
            "name": "line",
            "levels": ["rack", "host"],
            "hosts": [{"hosts": "h[0-5]", "domains": ["r"]}],
        },
        "sets": {"line": "h[0-5]"},
        "running": [{"id": "a", "nodes": "h1"}, {"id": "b", "nodes": "h4"}],
        "queue": [{"id": "wide", "nodes": 4}, {"id": "row", "nodes": 4, "contiguous": "line"}],
    }
    snapshot = Snapshot.model_validate(document)
    assert figures(snapshot, "wide")["moves"] == 0
    assert figures(snapshot, "row")["moves"] == 1


def test_a_pod_of_four_gpus_needs_two_whole_moves() -> None:
    snapshot = Snapshot.model_validate(GPUS)
    found = figures(snapshot, "pod")
    assert (found["started"], found["moves"]) == (1, 2)
    # a budget of one move of the pods of one GPU, and of none of those of two, leaves no plan
    small = [job.id for job in snapshot.running if job.id.endswith(".1")]
    middle = [job.id for job in snapshot.running if job.id.endswith(".2")]
    budgets = [(small, 1), (middle, 0)]
    assert figures(snapshot, "pod", budgets=budgets)["started"] == 0
    assert figures(snapshot, "pod", budgets=[(small, 1), (middle, 1)])["moves"] == 2


RACKS: Document = {
    "schema": "topoplace.snapshot/1",
    "name": "racks",
    "machine": {
        "kind": "hierarchy",
        "name": "two",
        "levels": ["rack", "host"],
        "hosts": [
            {"hosts": f"{rack}[0-3]", "domains": [rack], "capacity": {"slots": 1}} for rack in "ab"
        ],
    },
    "down": "a1",
    "running": [
        {"id": "train", "nodes": "a[0-1]", "takes": {"slots": 1}},
        {"id": "small", "nodes": "a[2-3]", "takes": {"slots": 1}},
        {"id": "other", "nodes": "b0", "takes": {"slots": 1}},
    ],
}


def test_a_failed_host_is_replaced_in_the_rack_of_the_others() -> None:
    snapshot = Snapshot.model_validate(RACKS)
    result = tp.repack(snapshot, replace=["train"])
    assert result.check().verified
    assert [level.objective for level in result.levels] == [1, 1, 2]
    assert result.solution is not None
    assert result.solution.placements[0].nodes in ("a[0,2]", "a[0,3]")
    assert "replace train on a[0," in summary(result)
    # nothing else moves: no host of the rack is free, and the healthy one stays
    alone = tp.repack(snapshot, replace=["train"], fixed=["small", "other"])
    assert (alone.objective, alone.bound) == (0, 0)
    anywhere = tp.repack(snapshot, replace=["train"], keep_shape="any")
    assert [level.objective for level in anywhere.levels] == [1, 0, 0]
    with pytest.raises(tp.InputError, match="units on hosts that are down"):
        tp.repack(snapshot, replace=["other"])


def test_few_spares_are_used_once_most_jobs_are_whole() -> None:
    document = RACKS | {
        "down": "a1,b1",
        "sets": {"kept": "a1,b[2-3]"},
        "running": [
            {"id": "train", "nodes": "a[0-1]", "takes": {"slots": 1}},
            {"id": "serve", "nodes": "b[0-1]", "takes": {"slots": 1}},
            {"id": "small", "nodes": "a2", "takes": {"slots": 1}},
        ],
    }
    snapshot = Snapshot.model_validate(document)
    result = tp.repack(snapshot, replace=["train", "serve"], spares="kept")
    assert result.check().verified
    # a3 is free and no spare; in the other rack there are spares only, of which one is used
    assert {level.name: level.objective for level in result.levels} == {
        "started": 2, "spares": 1, "moves": 0, "moved_nodes": 0,
    }  # fmt: skip
    assert all(level.bound == level.objective for level in result.levels)
    assert result.instance.spares == ["spare:b2", "spare:b3"]  # a1 is down
    told = summary(result)
    assert "0 of 3 running jobs to move, 1 of 2 spares used" in told
    assert "  1. use spare b" in told
    # a spare is used before nobody starts, and after moves
    every = tp.repack(snapshot, replace=["train", "serve"], spares="a3,b[2-3]", no_moves=True)
    assert [level.objective for level in every.levels] == [2, 2, 0, 0]
    far = tp.repack(snapshot, replace=["serve"], spares="b[2-3]", keep_shape="any")
    assert "spares" in [level.name for level in far.levels]


def test_a_reservation_may_be_what_spares_are_in() -> None:
    running = [*RACKS["running"], {"id": "reservation:hot/2", "nodes": "b[1-3]"}]
    document = RACKS | {"down": "a[1-3]", "running": running[:1] + running[2:]}
    snapshot = Snapshot.model_validate(document)
    free = {"replace": ["train"], "keep_shape": "any", "fixed": ["other"]}
    assert tp.repack(snapshot, **free).bound == 0
    found = tp.repack(snapshot, spares="hot", **free)
    assert found.check().verified
    assert [level.objective for level in found.levels] == [1, 1, 0, 0]
    assert not any(job.id.startswith("reservation:") for job in found.instance.snapshot.running)


@pytest.mark.parametrize("asked", [{"start": ["wide"]}, {"defragment": 1}])
def test_a_snapshot_may_have_spares_of_its_own(asked: Document) -> None:
    prisms = {name: {"origin": [at], "extents": [1]} for name, at in (("spare:2", 2), ("b", 5))}
    document = {
        "schema": "topoplace.snapshot/1",
        "name": "row",
        "machine": "mesh:8",
        "running": [
            {"id": name, "nodes": str(prism["origin"][0]), "prism": prism}
            for name, prism in prisms.items()
        ],
        "queue": [{"id": "wide", "nodes": 4}],
    }
    result = tp.repack(tp.load(document), **asked)
    assert result.check().verified, result.check()
    if "start" in asked:  # by a move of `b`, not by the spare, which does not move
        assert [level.objective for level in result.levels] == [1, 0, 1, 1]


def test_a_domain_of_its_own_has_no_spares_for_others() -> None:
    asked = {"id": "lone", "nodes": 2, "exclusive": "rack"}
    running = [{"id": "lone", "nodes": "b[0-1]", "takes": {"slots": 1}, "asked": asked}]
    snapshot = Snapshot.model_validate(RACKS | {"running": running})
    assert [job.id for job in with_spares(snapshot, "a[0-1],b[2-3]").running] == [
        "lone",
        "spare:a0",
    ]


@pytest.mark.parametrize(
    ("document", "options", "told"),
    [
        (RACKS, {"spares": "b[1-3]", "defragment": 1}, "spares: expected no spares beside defrag"),
        (RACKS, {"spares": "a[1-2]"}, "spares: expected spares that are up and free"),
        (RACKS, {"spares": "c1"}, "spares: expected hosts of the machine"),
        ({"machine": "mesh:4"}, {"spares": "1"}, "spares: expected a hierarchy, tree or pod"),
    ],
)
def test_spares_that_are_none_are_told_in_a_line(
    document: Document, options: Document, told: str
) -> None:
    snapshot = tp.load({"schema": "topoplace.snapshot/1", "name": "s"} | document)
    with pytest.raises(tp.InputError) as error:
        tp.repack(
            snapshot, **({} if "defragment" in options else {"replace": ["train"]}), **options
        )
    assert told in str(error.value)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"keep_shape": "same"}, "keep_shape: expected as-good or any on a hierarchy"),
        ({"evict": ["x"]}, "ends[0]: expected running jobs, each once"),
        ({"evict": {"n0.1": 0}}, "evict.n0.1: expected from 1 to"),
        ({"no_moves": True}, "ends: expected jobs that may move, or some that may end"),
        ({"budgets": [(["x"], 1)]}, "budgets[0].jobs[0]: expected running jobs, each once"),
    ],
)
def test_wrong_input_is_told_in_a_line(options: Document, told: str) -> None:
    with pytest.raises(tp.InputError) as error:
        tp.repack(Snapshot.model_validate(GPUS), ["pod"], **options)
    assert told in str(error.value)
