"""Mappings of which only some tasks may move: against all mappings, the checker, and forgeries."""

from __future__ import annotations

import itertools
import json
import random
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import topoplace as tp
from few import few_of
from field_samples import refigured
from tiny_objects import all_mappings, brute_force, tiny_moves
from topoplace.certify.check import check_document
from topoplace.certify.mapping.few_moves import few_moves_value
from topoplace.certify.mapping.instance import read_instance
from topoplace.certify.report import RefusedError
from topoplace.cli import run
from topoplace.errors import InputError
from topoplace.mapping.evaluate import evaluate, hop_bytes, worth_of
from topoplace.mapping.objects.few_moves import few_moves_bound, searched
from topoplace.mapping.onto import load_places, problem_on
from topoplace.mapping.problem import MappingProblem, prepare_mapping
from topoplace.result.mapping import FewMovesCertificate, MappingResult
from topoplace.snapshot.schema import GraphApplication, Moves
from topoplace.solving import Options, solve

Document = dict[str, Any]


@pytest.mark.parametrize(
    "seeds", few_of([range(4), *(range(k, k + 20) for k in range(4, 344, 20))], 1)
)
def test_exact_is_the_least_of_all_mappings_with_few_moves(seeds: range) -> None:
    for seed in seeds:
        problem = tiny_moves(seed)
        best = brute_force(problem)
        assert best is not None
        result = solve(problem, "exact", Options(seed=seed))
        assert check_document(result).verified, seed
        assert tuple(level.objective for level in result.levels) == best, seed
        assert all(level.status == "optimal" for level in result.levels), (seed, result)
        found = solve(problem, "search", Options(seed=seed))
        assert check_document(found).holds, seed
        assert found.levels[0].objective == best[0], seed


@pytest.mark.parametrize(
    "seeds", few_of([range(400, 410), *(range(k, k + 40) for k in range(410, 810, 40))], 1)
)
def test_what_few_moves_gain_is_never_below_what_they_can(seeds: range) -> None:
    for seed in seeds:
        problem = tiny_moves(seed)
        best, bound = brute_force(problem), few_moves_bound(problem)
        assert best is not None
        assert bound is not None
        instance = read_instance(problem.instance)
        assert bound.value == few_moves_value(instance, FewMovesCertificate()) <= best[0], seed


@pytest.mark.parametrize(
    ("machine", "num", "per_node"),
    [
        ("hierarchy:4x4", 26, 2),
        ("hierarchy:4x4", 32, 2),
        ("torus:4x4x2", 26, 1),
        ("mesh:5x5", 25, 1),
    ],
)
@pytest.mark.parametrize("most", [1, 2])
@pytest.mark.parametrize("seeds", few_of([range(900, 909, 4), range(901, 920)], 1))
def test_search_finds_the_best_one_or_two_moves(
    machine: str, num: int, per_node: int, most: int, seeds: range
) -> None:
    for seed in seeds:
        problem = random_moves(seed, machine, num, per_node, most)
        found = searched(problem, Options(seed=seed)).solution.nodes
        assert (found != problem.before).sum() <= most
        assert hop_bytes(problem, found) == least_of_few(problem), seed


def random_moves(seed: int, machine: str, num: int, per_node: int, most: int) -> MappingProblem:
    """Return an instance of random messages, mapped at random before."""
    rng = random.Random(seed)
    ends = [ends for ends in itertools.permutations(range(num), 2) if rng.random() < 0.1]
    graph = GraphApplication(
        num_tasks=num,
        sources=[a for a, _ in ends],
        targets=[b for _, b in ends],
        bytes=[rng.randint(1, 9) for _ in ends],
    )
    problem = problem_on(load_places(machine), graph, per_node)
    places = problem.nodes.tolist() * per_node
    moves = Moves(nodes=rng.sample(places, num), most=most)
    return prepare_mapping(problem.instance.model_copy(update={"moves": moves}))


def least_of_few(problem: MappingProblem) -> int:
    """Return the least hop-bytes of all mappings that move one task, or two of them."""
    assert problem.before is not None
    num, nodes, graph = problem.num_tasks, problem.nodes.tolist(), problem.graph
    hops = problem.machine.hops(*np.ix_(*(2 * [problem.routers_of(problem.nodes)])))
    bytes_ = np.zeros((num, num), dtype=np.int64)
    np.add.at(bytes_, (graph.sources, graph.targets), graph.bytes)
    bytes_ += bytes_.T
    at = np.array([nodes.index(node) for node in problem.before.tolist()])
    cost = bytes_ @ hops[at]
    gain = cost[np.arange(num), at][:, None] - cost  # of a task that moves to a node, alone
    taken = np.bincount(at, minlength=len(nodes))
    most, full = 0, problem.instance.tasks_per_node
    if (taken < full).any():
        most = max(most, int(gain[:, taken < full].max()))
    for a, b in itertools.combinations(range(num), 2) if problem.instance.moves.most > 1 else ():
        apart = hops[at[b]][:, None] + hops[at[a]][None, :] - hops - hops[at[a], at[b]]
        both = gain[a][:, None] + gain[b][None, :] + bytes_[a, b] * apart
        there = taken - np.bincount(at[[a, b]], minlength=len(nodes))
        fits = (there < full)[:, None] & (there < full)[None, :]
        np.fill_diagonal(fits, there + 1 < full)
        most = max(most, int(both[fits].max(initial=0)))
    return hop_bytes(problem, problem.before) - most


def test_the_example_of_the_page() -> None:
    ring = tp.grid(4, periodic=True)
    result = tp.map(ring, "torus:4:2", mapping=[0, 4, 2, 6], most_moves=1)
    level = result.levels[0]
    assert (level.objective, level.bound) == (8, 8)
    assert level.certificate.kind == "few-moves"
    assert tp.check(result).verified


# ---- Forgeries -----------------------------------------------------------------------------------


def forged(problem: MappingProblem, seed: int) -> Iterator[tuple[str, Document]]:
    """Yield results that claim what is not so, with figures that fit together."""
    rng, result = random.Random(seed), solve(problem, "exact", Options(seed=seed))
    document = result.model_dump(mode="json")
    moved = document["solution"]["figures"]["moved"]

    def changed(change: Callable[[Document], object]) -> Document:
        copy: Document = json.loads(json.dumps(document))
        change(copy)
        return refigured(copy)

    def beyond(copy: Document, k: int = 0, kind: str | None = None) -> None:
        level = copy["levels"][k]
        level["bound"] += 1
        level["objective"] = max(level["objective"], level["bound"])
        if kind is not None:
            level["certificate"] = {"kind": kind}

    for k in range(len(document["levels"])):
        yield f"bound of level {k}", changed(partial(beyond, k=k))
    yield "few moves", changed(partial(beyond, kind="few-moves"))
    for more in (-1, 1):
        yield (
            "moved",
            changed(lambda copy, to=moved + more: copy["solution"]["figures"].update(moved=to)),
        )
    if moved:
        fewer = changed(lambda copy: copy["instance"]["moves"].update(most=moved - 1))
        yield "fewer allowed", fewer
    free = prepare_mapping(problem.instance.model_copy(update={"moves": None}))
    every, most, before = list(all_mappings(free)), problem.instance.moves.most, problem.before
    too_many = [nodes for nodes in every if (before != nodes).sum() > most]
    for nodes in rng.sample(too_many, min(3, len(too_many))):
        figures = evaluate(problem, np.array(nodes)).model_dump(mode="json")
        copy = changed(lambda copy: None)
        copy["solution"] |= {"nodes": list(nodes), "figures": figures}
        for level, value in zip(copy["levels"], worth_of(problem, np.array(nodes)), strict=True):
            level["objective"], level["bound"] = value, min(value, level["bound"])
        yield "more moved", refigured(copy)


def refused(seeds: range) -> int:
    count = 0
    for seed in seeds:
        for what, document in forged(tiny_moves(seed), seed):
            bent = MappingResult.model_validate_json(json.dumps(document))
            assert not check_document(bent).holds, (seed, what)
            count += 1
    return count


def test_forged_moves_are_refused() -> None:
    assert refused(range(1000, 1004)) >= 20


@pytest.mark.slow
def test_a_thousand_forged_moves_are_refused() -> None:
    assert refused(range(1010, 1180)) >= 1000


def test_moves_of_no_certificate_without_a_limit() -> None:
    problem = tiny_moves(1)
    free = read_instance(problem.instance.model_copy(update={"moves": None}))
    with pytest.raises(RefusedError, match="where all may move"):
        few_moves_value(free, FewMovesCertificate())


# ---- The command and Python ----------------------------------------------------------------------


def test_few_moves_from_python() -> None:
    first = tp.map(tp.grid(8, 8), "torus:4x4x4", method="round-robin")
    worse = first.objective
    nodes = np.array(first.solution.nodes)
    nodes[[0, 9]] = nodes[[9, 0]]
    nodes = nodes.tolist()
    same = tp.map(tp.grid(8, 8), "torus:4x4x4", mapping=nodes, most_moves=0)
    assert same.solution.nodes == nodes
    assert same.status == "optimal"
    back = tp.map(tp.grid(8, 8), "torus:4x4x4", mapping=nodes, most_moves=2)
    assert back.solution.figures.moved == 2
    assert back.objective <= worse
    assert "2 tasks moved, at most 2" in str(back)
    assert tp.check(back).holds
    again = tp.map(tp.grid(8, 8), "torus:4x4x4", mapping=first, most_moves=64)
    assert again.objective < worse


def test_few_moves_are_refused_where_they_mean_nothing() -> None:
    for given, text in (
        ({"most_moves": 3}, "a mapping (--mapping) with it"),
        ({"most_moves": -1, "mapping": [0, 1]}, "at least 0, found -1"),
        ({"most_moves": 1, "mapping": [0, 0]}, "at most 1 task on a node"),
        (
            {"most_moves": 1, "mapping": [0, 1], "method": "default"},
            "one of auto, exact, given, search",
        ),
    ):
        with pytest.raises(InputError, match=re.escape(text)):
            tp.map(tp.grid(2), "torus:4", **given)


def test_the_command_moves_objects(tmp_path: Path) -> None:
    before, after = tmp_path / "m.csv", tmp_path / "r.json"
    on = ("--grid", "6x4", "--balance", "1.5", "--on", "torus:2x3")
    assert run(["map", *on, "--method", "oblivious", "--csv", str(before)]) == 0
    moves = ("--mapping", str(before), "--most-moves", "3")
    assert run(["map", *on, *moves, "-o", str(after)]) == 0
    document = json.loads(after.read_text())
    assert document["solution"]["figures"]["moved"] == 3
    assert document["levels"][0]["objective"] < hop_bytes_of(document)
    assert run(["check", str(after)]) == 0


def hop_bytes_of(document: Document) -> int:
    """Return what the mapping before costs."""
    problem = prepare_mapping(MappingResult.model_validate(document).instance)
    return hop_bytes(problem, problem.before)
