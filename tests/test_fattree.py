"""Fat trees whose jobs own their links: brute force, routing, the checker, and large trees."""

from __future__ import annotations

import itertools
import json
import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import topoplace as tp
from bending import bent
from scripts_of_the_project import script
from soundness.results import hold_bent
from tiny_fattrees import (
    Job,
    Pair,
    best,
    cannot_be_routed,
    families,
    permutations,
    random_tree,
    router,
)
from topoplace.certify.fattree.check import fault_of, joined, read_instance, require_routed
from topoplace.certify.fattree.oracle import FatTreeOracle, oracle_of
from topoplace.certify.packing import ANYWHERE, Prices
from topoplace.certify.report import RefusedError
from topoplace.cli import run
from topoplace.errors import InputError
from topoplace.machine import parse_node_set
from topoplace.packing.problem import NO_VALUE, Query
from topoplace.placement.fattree.packing import FatTreePacking
from topoplace.placement.fattree.routing import routed as routed_by
from topoplace.placement.fattree.routing import routes_of
from topoplace.placement.fattree.state import prepare
from topoplace.snapshot.schema import Snapshot
from topoplace.solving import solve


def tiny(seed: int) -> Snapshot:
    return random_tree(random.Random(f"fat-tree-{seed}"))


# ---- The solver ---------------------------------------------------------------------------------


def hold_as_brute_force(seed: int) -> None:
    snapshot = tiny(seed)
    result = solve(prepare(snapshot), "exact")
    assert tuple(level.objective for level in result.levels) == best(snapshot), seed
    assert [level.status for level in result.levels] == ["optimal", "optimal"], seed
    assert tp.check(result).holds, seed


@pytest.mark.parametrize("seed", range(12))
def test_exact_is_brute_force(seed: int) -> None:
    hold_as_brute_force(seed)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_exact_is_brute_force_on_300(part: int) -> None:
    for seed in range(1000 + 30 * part, 1030 + 30 * part):
        hold_as_brute_force(seed)


# ---- Whether a place is accepted, and whether all permutations can be routed in it --------------
#
# A job fills a tree, since what else a tree has does not matter. Its leaves have at most as many
# links as nodes, and its pods as leaves at a switch: more are refused, whatever can be routed.


def leaves_of(nodes: int, most: int | None = None) -> Iterator[tuple[int, ...]]:
    """Yield how so many nodes can be on leaves."""
    if not nodes:
        yield ()
    for first in range(min(nodes, most or nodes), 0, -1):
        yield from ((first, *rest) for rest in leaves_of(nodes - first, first))


def switches_of(job: Job) -> list[int]:
    return sorted({i for own in job.switches for i in own})


@pytest.mark.parametrize("nodes", [2, 3, 4, pytest.param(5, marks=pytest.mark.slow)])
def test_a_job_is_accepted_exactly_if_all_its_permutations_can_be_routed(nodes: int) -> None:
    """Of the choices of links, only those that differ by names of switches or spines are alike."""
    seen = Counter[bool]()
    for sizes in {own for some in leaves_of(nodes) for own in itertools.permutations(some)}:
        num = range(len(sizes))
        for switches, _ in families(num, [0 for _ in num], sizes):
            for later in itertools.product((0, 1), repeat=len(num) - 1):
                pods = (0, *itertools.accumulate(later))
                job = Job(pods, sizes, switches, {})
                below = [job.pods_at(i) if pods[0] < pods[-1] else {} for i in switches_of(job)]
                planes = (families([*own], [0 for _ in own], [*own.values()]) for own in below)
                for every in itertools.product(*planes):
                    spines = {
                        (p, i): some
                        for i, own, (sets, _) in zip(switches_of(job), below, every, strict=True)
                        for p, some in zip(own, sets, strict=True)
                    }
                    one = job._replace(spines=spines)
                    can = all(map(router(one), permutations(one)))
                    assert one.accepted == can, one
                    seen[can] += 1
    assert seen[True] > nodes
    assert seen[False] > 2**nodes


ALIKE = [
    # pods, nodes, what is not free, and where leaves may go as senders, or as receivers
    ((0, 0, 1, 1), (2, 2, 2, 1), "leaf", ["1023"]),
    ((0, 0, 1), (2, 2, 2), "leaf", ["102"]),
    ((0, 1, 2), (2, 2, 2), "pod", ["102", "021"]),
    ((0, 0, 1, 1), (1, 1, 1, 1), "pod", ["1023", "2301"]),
    ((0, 0, 1, 1), (2, 2, 2, 2), "pod", ["1023", "2301"]),
]


@pytest.mark.parametrize(("pods", "sizes", "within", "names"), ALIKE)
def test_of_permutations_that_are_alike_one_is_there(
    pods: tuple[int, ...], sizes: tuple[int, ...], within: str, names: Sequence[str]
) -> None:
    job = Job(pods, sizes, tuple(frozenset(range(size)) for size in sizes), {})
    left = {tuple(sorted(messages)) for messages in permutations(job)}
    waiting = [tuple(messages) for messages in permutations(job, within)]
    while waiting:
        messages = waiting.pop()
        if messages in left:
            left.remove(messages)
            for name in names:
                to = [int(leaf) for leaf in name]
                waiting.append(tuple(sorted((to[a], b) for a, b in messages)))
                waiting.append(tuple(sorted((a, to[b]) for a, b in messages)))
    assert not left


@pytest.mark.parametrize("sizes", [(1, 1, 1), (2, 2), (2, 2, 1), (3, 2), (2, 1, 1)])
def test_of_families_that_are_alike_one_is_there(sizes: tuple[int, ...]) -> None:
    def form(sets: Sequence[frozenset[int]]) -> list[list[tuple[bool, ...]]]:
        """Return by thing which sets have it, for all orders of sets of one size."""
        orders = itertools.permutations(range(len(sizes)))
        kept = (o for o in orders if [sizes[k] for k in o] == [*sizes])
        every = frozenset().union(*sets)
        return sorted(sorted(tuple(x in sets[k] for k in o) for x in every) for o in kept)

    listed = [form(sets) for sets, _ in families(sizes, [0] * 9, sizes)]
    things = range(sum(sizes))
    choices = [
        [frozenset(own) for num in range(size + 1) for own in itertools.combinations(things, num)]
        for size in sizes
    ]
    assert all(form(sets) in listed for sets in itertools.product(*choices))


def test_more_links_than_nodes_are_refused_although_all_permutations_can_be_routed() -> None:
    job = Job((0, 0, 0), (1, 1, 1), tuple(map(frozenset, ({0, 1}, {0, 2}, {1, 2}))), {})
    assert all(map(router(job), permutations(job)))
    assert not job.accepted


def all_are_routed(job: Job) -> bool:
    """Return whether all permutations can be routed; more than that, if a job has many parts."""
    pods = len({*job.pods})
    within = "" if len(job.sizes) < 3 else "leaf" if pods < 3 else "pod"
    return all(map(router(job, within), permutations(job, within)))


@lru_cache(1 << 14)
def is_refuted(
    pods: tuple[int, ...],
    sizes: tuple[int, ...],
    switches: tuple[frozenset[int], ...],
    *spines: tuple[Pair, frozenset[int]],
) -> bool:
    return cannot_be_routed(Job(pods, sizes, switches, dict(spines)))


def hold_on_two_levels(nodes: int, *, any_links: bool = True, dead_too: bool = True) -> int:
    """Compare jobs of so many nodes on two levels, and return how many there are.

    Leaves have any links, or as many as messages may leave them. If a permutation of the first
    leaves cannot be routed, this is so with the others, too, which may send to themselves: at most
    the checker is asked about these dead ones.
    """
    seen = 0
    for sizes in leaves_of(nodes):
        pods = (0,) * len(sizes)
        least = [0 if any_links else min(size, nodes - size) for size in sizes]

        def alive(switches: tuple[frozenset[int], ...], sizes: tuple[int, ...] = sizes) -> bool:
            num = len(switches)
            return not is_refuted((0,) * num, sizes[:num], switches)

        for switches, live in families(sizes, least, sizes, alive, dead_too=dead_too):
            seen += 1
            if not live:
                assert not joined([*zip(sizes, switches, strict=True)]), (sizes, switches)
                continue
            job = Job(pods, sizes, switches, {})
            assert all_are_routed(job) if job.accepted else is_refuted(*job[:3]), job
    return seen


@pytest.mark.parametrize("nodes", range(2, 9))
def test_all_trees_of_two_levels(nodes: int) -> None:
    assert hold_on_two_levels(nodes) > 2**nodes - 2


@pytest.mark.slow
@pytest.mark.parametrize("nodes", range(9, 17))
def test_all_trees_of_two_levels_up_to_16_nodes(nodes: int) -> None:
    assert hold_on_two_levels(nodes, dead_too=nodes < 15) > 1_000


@pytest.mark.slow
@pytest.mark.parametrize("nodes", [15, 16])
def test_the_checker_refuses_jobs_that_begin_with_a_refused_one(nodes: int) -> None:
    """Where no leaf has fewer links than messages may leave it."""
    assert hold_on_two_levels(nodes, any_links=False) > 1_000_000


def joined_jobs(nodes: int) -> Iterator[Job]:
    """Yield the jobs whose leaves are joined, in all pods; without links to spines."""
    for size in range(1, nodes + 1):
        full, rest = divmod(nodes, size)
        for pods in leaves_of(full):
            ends = [len(pods), *(pods.index(num) for num in {*pods})] if rest else [-1]
            for end in ends:  # the pod of the remainder leaf
                counts = [*pods, 0] if end == len(pods) else pods
                own = [
                    (p, n)
                    for p, num in enumerate(counts)
                    for n in [size] * num + [rest] * (p == end)
                ]
                if len(own) > 2:
                    links = [frozenset(range(n)) for _, n in own]
                    yield Job(*zip(*own, strict=True), tuple(links), {})
                elif len(own) == 2:
                    least, most = sorted(n for _, n in own)
                    for num in range(least, most + 1):
                        links = [frozenset(range(num if n == most else least)) for _, n in own]
                        yield Job(*zip(*own, strict=True), tuple(links), {})


def least_spines(job: Job, switch: int) -> dict[Pair, frozenset[int]]:
    """Return the fewest links to spines with which pods may be joined at a switch."""
    below = job.pods_at(switch)
    most = min(below.values()) if len(below) < 3 else max(below.values())
    return {
        (p, switch): frozenset(range(min(most, num) if len(below) > 1 else 0))
        for p, num in below.items()
    }


def hold_on_three_levels(nodes: int) -> int:
    """Compare jobs of so many nodes on three levels, and return how many there are.

    If leaves are not joined, jobs are refused with any spines, as on two levels. If the pods are
    not joined at one switch, they are refused with as many spines as one likes at the others. If
    they are joined at all, these have the fewest links with which they are, or more. Of pods at a
    switch the checker is asked what it is asked of leaves on two levels: not again if the first
    pods are refused.
    """
    seen = 0
    for job in joined_jobs(nodes):
        one_of_alike = {tuple(i in own for own in job.switches): i for i in switches_of(job)}
        for i in one_of_alike.values() if job.pods[-1] else ():
            below, least = job.pods_at(i), least_spines(job, i)

            def alive(sets: tuple[frozenset[int], ...], job: Job = job, i: int = i) -> bool:
                own = dict(zip(job.pods_at(i), sets, strict=False))
                spines = (((p, i), some) for p, some in own.items())
                return not is_refuted(*job.part(own)[:3], *spines)

            kinds = [job.part([p])[1:3] for p in below]
            most = [*below.values()]
            for sets, _ in families(kinds, [0 for _ in below], most, alive, dead_too=False):
                seen += 1
                if joined([*zip(most, sets, strict=True)]):
                    assert all(map(frozenset.issubset, least.values(), sets)), job
                else:
                    assert not alive(sets), (job, i, sets)
        every = {at: own for i in switches_of(job) for at, own in least_spines(job, i).items()}
        best = job._replace(spines=every if job.pods[-1] else {})
        if best.accepted:
            assert all_are_routed(best), best
            seen += 1
    return seen


@pytest.mark.parametrize("nodes", range(2, 8))
def test_all_trees_of_three_levels(nodes: int) -> None:
    assert hold_on_three_levels(nodes) > nodes


@pytest.mark.slow
@pytest.mark.parametrize("nodes", range(8, 17))
def test_all_trees_of_three_levels_up_to_16_nodes(nodes: int) -> None:
    assert hold_on_three_levels(nodes) > 10 * nodes


# ---- Routing ------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
def test_a_job_is_routed_on_its_own_links(seed: int) -> None:
    rng = random.Random(seed)
    spec = ("fattree:4", "fattree:6", "fattree:3x4:4", "fattree:5x2x3:3x2")[seed % 4]
    model = tp.Model(spec)
    for k in range(6):
        model.add_request(f"job{k}", rng.randint(2, 12))
    result = tp.place(model, "first-fit")
    tree = result.instance.machine.tree
    for one in result.solution.placements:
        nodes, links = numbers(one.nodes), tree.rows(one.links, "links")
        for _ in range(20):
            permutation = dict(zip(nodes, rng.sample(nodes, len(nodes)), strict=True))
            rows = routed_by(tree, links, [*permutation.items()])
            routes = [(*pair, own) for pair, own in zip(permutation.items(), rows, strict=True)]
            require_routed(tree, links, routes)
        for used in [own for own in routes if own[2]][:1]:
            with pytest.raises(RefusedError):
                require_routed(tree, links[1:], [(*used[:2], [links[0], *used[2][1:]])])
            with pytest.raises(RefusedError):
                require_routed(tree, links, [used, used])


def test_routes_by_their_names() -> None:
    model = tp.Model("fattree:2x2:2")
    model.add_request("a", 3)
    result = tp.place(model)
    assert [(p.nodes, p.links) for p in result.solution.placements] == [("0-2", "leaf[0-1]-0")]
    assert routes_of(result, "a", {0: 2, 1: 0, 2: 1}) == {
        0: ["leaf0-0", "leaf1-0"],
        1: [],
        2: ["leaf1-0", "leaf0-0"],
    }
    with pytest.raises(InputError, match="a permutation of the nodes 0-2"):
        routes_of(result, "a", {0: 2, 1: 0})


def numbers(text: str) -> list[int]:
    found: list[int] = parse_node_set(text, 1 << 16).tolist()
    return found


# ---- Large trees --------------------------------------------------------------------------------


def oracles(seed: int) -> tuple[FatTreePacking, FatTreeOracle, FatTreeOracle]:
    """Return the packing of a tiny tree as if it were large, and both oracles of the checker."""
    snapshot = tiny(seed)
    state, own = prepare(snapshot), read_instance(snapshot)
    every = oracle_of(own.tree, own.left, own.queue)
    assert every.places is not None
    relaxed = FatTreeOracle(own.tree, own.left, own.queue)
    return FatTreePacking(state.tree, state.requests, state.left), relaxed, every


def test_the_oracles_of_large_trees_agree_and_no_place_costs_less() -> None:
    compared = tight = 0
    for seed in range(60):
        packing, relaxed, every = oracles(seed)
        rng = np.random.default_rng(seed)
        for weights in ((1,), (7,), (3, 2), (0, 5)):
            prices = rng.integers(0, int(rng.choice((2, 30, 2000))), size=packing.num_rows)
            prices[rng.random(packing.num_rows) < rng.choice((0.0, 0.5, 0.95))] = 0
            own = {name: prices[rows] for name, rows in packing.families.items()}
            wanted = dict.fromkeys(range(len(packing.names)), ANYWHERE)
            found = packing.price(prices, Query(weights, 3))
            at = Prices(own, 0, weights)
            best, true = relaxed.best(at, wanted), every.best(at, wanted)
            for q in wanted:
                mine = int(found.best[q])
                assert (None if mine == NO_VALUE else mine) == best[q], (seed, q)
                assert true[q] is None or (best[q] is not None and best[q] >= true[q]), (seed, q)
                compared += true[q] is not None
                tight += true[q] is not None and best[q] == true[q]
                for gain, column in found.columns[q]:
                    values = packing.values_of([column])[0, : len(weights)]
                    paid = int(prices[packing.rows_of(column)].sum())
                    assert gain == int(values @ np.array(weights)) - paid
    assert compared > 300
    assert tight > 0.5 * compared


def test_a_large_tree_is_solved_and_checked() -> None:
    model = tp.Model("fattree:5x3x5:5x3")
    for k, nodes in enumerate((12, 9, 1, 7, 16, 3, 6, 4)):
        model.add_request(f"job{k}", nodes)
    result = tp.place(model, time_limit=4)
    first = result.levels[0]
    assert result.check().holds
    assert first.objective == first.bound == 58
    for method in ("first-fit", "jigsaw", "laas"):
        other = tp.place(model, method)
        assert other.check().holds
        assert other.levels[0].objective <= first.objective


# ---- The checker --------------------------------------------------------------------------------


def is_right(document: Any) -> bool:
    """Return whether a result keeps the rules, and its figures are true, by brute force."""
    snapshot = Snapshot.model_validate(document["instance"])
    own = read_instance(snapshot)
    wanted = {request.id: request for request in own.queue}
    nodes, links = set(own.nodes), {*np.flatnonzero(own.left).tolist()}
    value = used = 0
    for placed in document["solution"]["placements"]:
        mine, rows = {*numbers(placed["nodes"])}, {*own.tree.rows(placed["links"], "links")}
        request = wanted.pop(placed["request"], None)
        if request is None or len(mine) != request.nodes or not (mine <= nodes and rows <= links):
            return False
        if fault_of(own.tree, mine, rows) is not None:
            return False
        nodes, links, value, used = (
            nodes - mine,
            links - rows,
            value + request.value,
            used + len(rows),
        )
    most, fewest = best(snapshot)
    first, second = document["levels"]
    true = (value, used) == (first["objective"], second["objective"])
    if not true or (first["bound"] is not None and first["bound"] < most):
        return False
    return second["bound"] is None or value < most or second["bound"] <= fewest


def moved(rng: random.Random, mutant: Any) -> None:
    """Give a request other nodes, or other links."""
    placed = rng.choice(mutant["solution"]["placements"])
    tree = Snapshot.model_validate(mutant["instance"]).machine.tree
    nodes, links = numbers(placed["nodes"]), tree.rows(placed["links"], "links")
    if rng.random() < 0.5:
        nodes[rng.randrange(len(nodes))] = rng.randrange(tree.num_nodes)
    elif links:
        links[rng.randrange(len(links))] = rng.randrange(len(tree.sizes), tree.num_rows)
    placed["nodes"] = ",".join(map(str, sorted({*nodes})))
    placed["links"] = tree.text({*links})


@pytest.mark.parametrize("tries", [150, pytest.param(1_500, marks=pytest.mark.slow)])
def test_bent_results_are_refused_or_right(tries: int) -> None:
    results = [solve(prepare(tiny(seed)), "exact") for seed in range(8)]
    hold_bent(results, moved, is_right, tries)


BASE: dict[str, Any] = {
    "schema": "topoplace.snapshot/1",
    "name": "base",
    "machine": {
        **{"kind": "fattree", "name": "t", "pods": [[2, 2], [2, 2]], "switches": 2, "spines": 2},
        **{"missing": "leaf0-1", "owned": {"r": "leaf[1-2]-0,pod[0-1]-0-1"}},
    },
    "down": "7",
    "running": [{"id": "r", "nodes": "2,4"}, {"id": "s", "nodes": "5"}],
    "queue": [{"id": "a", "nodes": 2}, {"id": "b", "nodes": 1}],
}

CONTRADICTIONS = {
    'machine = "cubes:4"': "machine",
    'machine.missing = "leaf9-0"': "machine.missing",
    'machine.missing = "pod0-0"': "machine.missing",
    'machine.missing = "leaf0-1,leaf0-1"': "machine.missing",
    'machine.owned.r = "leaf0-2"': "machine.owned.r",
    'machine.owned.s = "leaf1-0"': "machine.owned.s",
    'machine.owned.x = ""': "machine.owned",
    "del machine.owned.r": "machine.owned",
    'running[0].nodes = ""': "running[0].nodes",
    'running[1].nodes = "4"': "running[1].nodes",
    'running[1].nodes = "8"': "running[1].nodes",
    'running[1].takes = {"slots": 1}': "running[1].takes",
    'down = "8"': "down",
    'queue[0].id = "b"': "queue[1].id",
    "queue[0].nodes = 9": "queue[0].nodes",
    'queue[0].shapes = "1x2"': "queue[0].shapes",
    'queue[0].eligible = "a"': "queue[0].eligible",
    'regions = {"r": [{"origin": [0], "extents": [1]}]}': "regions",
}
"""Faults, and the field that is named."""


@pytest.mark.parametrize("change", CONTRADICTIONS)
def test_instances_that_contradict_themselves_are_refused(change: str) -> None:
    read_instance(Snapshot.model_validate(BASE))
    wrong = bent(BASE, change)
    if change != 'machine = "cubes:4"':
        with pytest.raises((RefusedError, InputError)):
            read_instance(Snapshot.model_validate(wrong))
        with pytest.raises(InputError) as told:
            prepare(Snapshot.model_validate(wrong))
        assert CONTRADICTIONS[change] in str(told.value)


@pytest.mark.parametrize(
    "spec", ["fattree:3", "fattree:0", "fattree:2x2", "fattree:2x2x2:2", "fattree:2x2:0"]
)
def test_wrong_shorthands_are_refused(spec: str) -> None:
    with pytest.raises(InputError, match="a shorthand such as fattree:16"):
        tp.Model(spec)


# ---- The page, commands and the study -----------------------------------------------------------

PAGE = Path(__file__).parent.parent / "docs" / "proofs" / "fattree.md"


def test_the_page_shows_what_its_programs_print(capsys: pytest.CaptureFixture[str]) -> None:
    """Each program goes on where the one before it ended."""
    blocks = re.findall(r"```(python|text)\n(.*?)```", PAGE.read_text(), re.DOTALL)
    names: dict[str, Any] = {}
    for kind, text in blocks:
        if kind == "python":
            exec(text, names)
        else:
            printed = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
            assert printed == [line.rstrip() for line in text.splitlines()]
    assert len(blocks) == 6


def test_commands_take_fat_trees(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tp.Model("fattree:4x2:2", "few")
    for name, nodes, priority in (("a", 3, 1), ("b", 5, 2), ("c", 2, 3), ("d", 1, 1)):
        model.add_request(name, nodes, priority=priority)
    file, result = tmp_path / "t.json", str(tmp_path / "r.json")
    file.write_text(model.snapshot.model_dump_json(by_alias=True))
    assert run(["place", str(file), "-o", result]) == 0
    assert "started 3 of 4 requests, 8 nodes" in capsys.readouterr().out
    assert run(["check", result]) == 0
    assert run(["show", result, "--html", str(tmp_path / "p.html")]) == 0
    assert run(["compare", str(file), "--methods", "exact,jigsaw,laas"]) == 0
    capsys.readouterr()
    assert run(["place", str(file), "--order", "priority", "--json"]) == 0
    ordered = json.loads(capsys.readouterr().out)
    started = [one["request"] for one in ordered["solution"]["placements"]]
    assert started == ["b", "c", "d"]
    assert run(["place", str(file), "--order", "backfill"]) == 2


def test_the_study_measures_all_methods() -> None:
    study = script("study_fattrees")
    snapshot = study.draw(8, 900, "spanning", 6)
    assert len(snapshot.queue) == 6
    own = [*study.runs_of(4, 900, "small", 5.0)]
    assert all(run.checked for run in own)
    value = {run.method: run.value for run in own}
    assert value["laas"] <= value["exact"] <= own[0].shared
    assert study.row_of(own).exact == value["exact"]
