"""Patterns are recognised however they are numbered; none is claimed that is not there."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest

import topoplace as tp
from baseline_instances import grid, optimum_of, problem_on, random_graph, regular_graph
from graph_patterns import (
    Messages,
    both_ways,
    graph_from,
    messages_of,
    permuted,
    product,
    require_exact,
    with_noise,
)
from real_files import real_file
from topoplace.certify.mapping.check import VALUES
from topoplace.certify.mapping.instance import read_instance
from topoplace.certify.report import RefusedError
from topoplace.cli import run
from topoplace.mapping.evaluate import hop_bytes
from topoplace.mapping.graph import TaskGraph, grid_of
from topoplace.mapping.graphfiles import read_graph
from topoplace.mapping.problem import MappingProblem, graph_of
from topoplace.mapping.recognition import Recognition, recognise
from topoplace.mapping.recognition.recognise import MOST_EXTRA
from topoplace.result.mapping import MappingResult, RecognisedCertificate
from topoplace.snapshot.schema import GraphApplication, GridApplication
from topoplace.solving import Options, solve


def recognised(messages: Messages, num_tasks: int) -> Recognition:
    """Return what is recognised, after a slow check of it."""
    graph = graph_from(messages, num_tasks)
    found = recognise(graph)
    if found.kind != "none":
        require_exact(found, graph)
    return found


def random_shape(rng: np.random.Generator, most: int = 400) -> list[int]:
    while True:
        shape: list[int] = rng.integers(2, 9, size=rng.integers(1, 5)).tolist()
        if 6 <= math.prod(shape) <= most:
            return shape


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=[pytest.mark.slow] * (seed > 1)) for seed in range(10)]
)
def test_permuted_grids_are_recognised_beside_noise(seed: int) -> None:
    """Twenty grids each, of 1 to 4 dimensions; some with diagonals, some with uneven ways."""
    rng = np.random.default_rng(seed)
    for number in range(20):
        shape = random_shape(rng)
        dims = len(shape)
        periodic = [bool(n > 2 and rng.random() < 0.5) for n in shape]
        sizes = rng.integers(50, 1000, size=(dims, 2)).tolist()
        full = dims > 1 and number % 4 == 0
        application = GridApplication(
            shape=shape,
            periodic=periodic,
            bytes=sizes,
            stencil="full" if full else "nearest",
            diagonal_bytes=rng.integers(25, 50, size=dims - 1).tolist() if full else [],
        )
        graph = grid_of(application).graph()
        num = graph.num_tasks
        sent = permuted(messages_of(graph), num, rng)
        found = recognised(with_noise(sent, num, rng), num)
        assert found.kind == "grid", (shape, periodic, found)
        of_four = [4 if ring and n == 4 else 0 for n, ring in zip(shape, periodic, strict=True)]
        if not any(of_four) and shape.count(2) < 2:
            assert sorted(found.shape) == sorted(shape)
            rings = {n for n, link in zip(found.shape, found.links, strict=True) if link == "ring"}
            assert rings == {n for n, ring in zip(shape, periodic, strict=True) if ring}
        else:
            assert math.prod(found.shape) == num
        assert found.form == ("full" if full else "nearest")
        assert found.application is not None
        assert 20 * found.extra_bytes <= found.total_bytes


@pytest.mark.parametrize("seed", range(2))
def test_numbering_of_grids(seed: int) -> None:
    """Row-major grids keep their shape, whatever a ring of four could be taken for."""
    rng = np.random.default_rng(50 + seed)
    for _ in range(25):
        shape = random_shape(rng)
        periodic = [bool(n > 2 and rng.random() < 0.5) for n in shape]
        size = [[7, 7]] * len(shape)
        grid = GridApplication(shape=shape, periodic=periodic, bytes=size)
        graph = grid_of(grid).graph()
        found = recognised(messages_of(graph), graph.num_tasks)
        assert found.numbering == "row-major"
        assert found.application == grid, found
        assert not len(found.extras)
        assert found.is_even
        backwards = messages_of(graph)
        order = np.arange(graph.num_tasks).reshape(shape[::-1]).T.ravel().tolist()  # column-major
        again = recognised(
            {(order[a], order[b]): n for (a, b), n in backwards.items()}, graph.num_tasks
        )
        assert again.numbering == "row-major"
        assert list(again.shape) == shape[::-1]


def lacking(messages: Messages, rng: np.random.Generator, number: int) -> Messages:
    """Return the messages without those of some pairs."""
    pairs = sorted({tuple(sorted(ends)) for ends in messages})
    gone = {pairs[k] for k in rng.permutation(len(pairs))[:number].tolist()}
    return {ends: size for ends, size in messages.items() if tuple(sorted(ends)) not in gone}


@pytest.mark.parametrize("seed", range(30))
def test_no_grid_is_claimed_where_some_pairs_are_missing(seed: int) -> None:
    """A few lines left of a grid may be another one: then that is there exactly."""
    rng = np.random.default_rng(100 + seed)
    shape = random_shape(rng, 150)
    links = [rng.choice(["line", "ring"]) if n > 2 else "line" for n in shape]
    sent = lacking(product(shape, links), rng, int(rng.integers(1, 4)))
    num = math.prod(shape)
    found = recognised(permuted(sent, num, rng), num)
    if len(shape) > 1 and min(shape) > 2:
        assert found.kind == "none", (shape, links, found)


@pytest.mark.parametrize("seed", range(30))
def test_no_grid_is_claimed_of_random_graphs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    if seed % 3 == 0:
        graph = graph_of(random_graph(rng, 40, int(rng.integers(40, 400))))
    elif seed % 3 == 1:
        graph = graph_of(regular_graph(rng, int(rng.integers(12, 80)), int(rng.integers(2, 5))))
    else:  # two ends of a torus exchanged
        shape, links = (5, 6), ("ring", "ring")
        sent = both_ways(product(shape, links))
        label = {3: 17, 17: 3}
        swapped = {
            (label.get(a, a), b) if k % 7 == 0 else (a, b): size
            for k, ((a, b), size) in enumerate(sent.items())
        }
        graph = graph_from({ends: n for ends, n in swapped.items() if ends[0] != ends[1]}, 30)
    found = recognise(graph)
    if found.kind != "none":
        require_exact(found, graph)
    assert found.kind in ("none", "tree")


@pytest.mark.parametrize("edges", range(2, 8))
def test_every_small_graph_is_claimed_exactly(edges: int) -> None:
    """All graphs of five tasks with so many pairs."""
    pairs = list(itertools.combinations(range(5), 2))
    for chosen in itertools.combinations(pairs, edges):
        found = recognised(both_ways(chosen), 5)
        if found.kind == "grid" and len(found.tasks) == 5:
            assert len(found.shape) == 1  # five is a prime


# ---- Special sizes, and patterns that are no grids -----------------------------------------------


@pytest.mark.parametrize(
    ("shape", "links", "text"),
    [
        ((2, 2), ("line", "line"), "a 2x2 grid, nearest neighbours, numbering row-major"),
        ((4,), ("ring",), "a ring of 4 tasks, numbering row-major"),
        ((2, 9), ("line", "ring"), "a 2x9 grid, periodic in dimension 2, nearest neighbours"),
        ((2, 9), ("line", "line"), "a 2x9 grid, nearest neighbours"),
        ((4, 9), ("ring", "line"), "a 4x9 grid, periodic in dimension 1, nearest neighbours"),
        ((4, 9), ("line", "line"), "a 4x9 grid, nearest neighbours"),
        ((2, 2, 9), ("line", "line", "line"), "a 2x2x9 grid, nearest neighbours"),
        ((3, 3), ("ring", "ring"), "a 3x3 periodic grid, nearest neighbours"),
        ((3, 9), ("line", "ring"), "a 3x9 grid, periodic in dimension 2, nearest neighbours"),
        ((16,), ("line",), "a line of 16 tasks"),
        ((8, 8), ("ring", "ring"), "an 8x8 periodic grid, nearest neighbours"),
        ((2,) * 4, ("line",) * 4, "a hypercube of 16 tasks (2x2x2x2 grid)"),
        ((4, 4, 4, 4), ("ring",) * 4, "a 4x4x4x4 periodic grid, nearest neighbours"),
        ((5, 7), ("all", "all"), "a transpose: all-to-all in the rows and columns of 5x7 tasks"),
        ((2, 7), ("all", "all"), "a transpose: all-to-all in the rows and columns of 2x7 tasks"),
        ((4, 4, 5), ("all",) * 3, "all-to-all along each dimension of 4x4x5 tasks"),
        ((12,), ("all",), "all-to-all of 12 tasks"),
        ((5, 9), ("all", "line"), "a 5x9 array, all-to-all in dimension 1, lines in dimension 2"),
        ((6, 5), ("none", "all"), "all-to-all in 6 groups of 5"),
        ((3, 4, 5), ("none", "line", "ring"), "3 times a 4x5 grid, periodic in dimension 2"),
        ((7, 2), ("none", "line"), "7 pairs of tasks"),
        ((3, 6), ("none", "ring"), "3 times a ring of 6 tasks"),
    ],
)
def test_what_patterns_are_called(
    shape: tuple[int, ...], links: tuple[str, ...], text: str
) -> None:
    num, rng = math.prod(shape), np.random.default_rng(1)
    found = recognised(product(shape, links), num)
    assert (found.shape, found.links) == (shape, links)
    assert str(found).startswith(text)
    assert str(found).endswith("numbering row-major")
    mixed = permuted(with_noise(product(shape, links, [90] * len(shape)), num, rng), num, rng)
    again = recognised(mixed, num)
    assert again.kind == found.kind
    assert again.numbering == "permuted" or len(shape) == 1 or num == 4


def test_trees_and_groups_of_several_sizes() -> None:
    binomial = both_ways([(task & (task - 1), task) for task in range(1, 32)], 40)
    rng = np.random.default_rng(2)
    assert str(recognised(binomial, 32)) == "a binomial tree of 32 tasks, from task 0"
    mixed = with_noise(permuted(binomial, 32, rng), 32, rng)
    assert str(recognised(mixed, 32)).startswith("a binomial tree of 32 tasks, from task")
    star = both_ways([(3, task) for task in range(9) if task != 3])
    assert str(recognised(star, 9)) == "a star of 9 tasks"
    heap = both_ways([((task - 1) // 2, task) for task in range(1, 20)])
    assert str(recognised(heap, 20)).startswith("a tree of 20 tasks, from task")
    parts = (range(4), range(4, 9), range(9, 12))
    groups = both_ways([pair for part in parts for pair in itertools.combinations(part, 2)])
    assert str(recognised(groups, 12)) == "all-to-all in 3 groups of 3 to 5"


def test_bytes_tell_a_hypercube_from_a_torus() -> None:
    """Recursive halving sends half as much from step to step: no two dimensions are a ring."""
    found = recognised(product((2,) * 6, ("line",) * 6, [64, 32, 16, 8, 4, 2]), 64)
    assert found.shape == (2,) * 6
    assert found.bytes == tuple((2 * size, 2 * size) for size in (64, 32, 16, 8, 4, 2))
    torus = recognised(product((4, 4, 4), ("ring",) * 3, [64, 32, 16]), 64)
    assert torus.shape == (4, 4, 4)


def test_ways_and_bytes_are_kept() -> None:
    grid = GridApplication(shape=[5, 6], periodic=[True, False], bytes=[[9, 2], [4, 0]])
    graph = grid_of(grid).graph()
    found = recognise(graph)
    assert found.application == grid
    assert found.bytes == ((11, 11), (4, 4))
    sent = messages_of(graph)
    sent[0, 1] += 3
    uneven = recognised(sent, 30)
    assert uneven.application == grid
    assert not uneven.is_even
    assert uneven.bytes == ((11, 11), (4, 7))


def test_silent_tasks_are_told() -> None:
    label = [task + task // 4 for task in range(16)]
    sent = {(label[a], label[b]): n for (a, b), n in product((4, 4), ("line", "line")).items()}
    found = recognised(sent, 20)
    assert found.tasks.tolist() == label
    assert "of 16 of the 20 tasks" in str(found)


def test_graphs_without_messages_are_none() -> None:
    for num in (1, 2, 5):
        found = recognise(graph_from({}, num))
        assert found.kind == "none"
        assert str(found).startswith("no pattern found")


def test_extras_are_few_and_small() -> None:
    """An extra message as large as the partners', or many of them, and nothing is claimed."""
    sent = product((6, 6), ("line", "line"), [100, 100])
    assert recognised(sent | {(0, 35): 3}, 36).extras.tolist() == [[0, 35, 3]]
    assert recognised(sent | {(0, 35): 200}, 36).kind == "none"
    many = {(a, b): 2 for a in range(36) for b in range(36) if a != b and (a, b) not in sent}
    assert sum(many.values()) > MOST_EXTRA * sum(sent.values())
    assert recognised(sent | many, 36).kind in ("none", "all-to-all")
    few = {ends: 1 for k, ends in enumerate(many) if k % 2}
    assert recognised(sent | few, 36).shape == (6, 6)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "maplib/amg/bytes.csv",
            "a 4x4x4 grid, full stencil, numbering row-major, and 3,066",
        ),
        ("maplib/lulesh/bytes.csv", "a 4x4x4 grid, full stencil, numbering row-major"),
        (
            "mpip/minimd.64.bytes.csv",
            "a 4x4x4 periodic grid, nearest neighbours, numbering row-major",
        ),
    ],
)
def test_measured_applications(name: str, text: str) -> None:
    graph = graph_of(read_graph(real_file(name)))
    found = recognise(graph)
    assert str(found).startswith(text)
    require_exact(found, graph)
    label = np.random.default_rng(5).permutation(graph.num_tasks)
    mixed = TaskGraph(graph.num_tasks, label[graph.sources], label[graph.targets], graph.bytes)
    again = recognise(mixed)
    require_exact(again, mixed)
    assert (again.shape, again.links, again.form) == (found.shape, found.links, found.form)


# ---- What recognition is used for: bounds through grids, the method auto, the command ------------


def application_of(messages: Messages, num_tasks: int) -> GraphApplication:
    graph = graph_from(messages, num_tasks)
    lists = (graph.sources.tolist(), graph.targets.tolist(), graph.bytes.tolist())
    return GraphApplication(num_tasks=num_tasks, sources=lists[0], targets=lists[1], bytes=lists[2])


def hand_problem() -> tuple[MappingProblem, dict[str, object]]:
    """Return the example of docs/proofs/graphs.md, "Recognised grids"."""
    sent = {(0, 2): 8, (2, 1): 3, (1, 3): 3, (3, 0): 3, (0, 1): 5, (0, 3): 5}
    problem = problem_on(application_of(sent, 4), [2], tasks_per_node=2, wrap=False)
    one = {"numerator": 1, "denominator": 1}
    family = {"extents": [1], "slope": one | {"numerator": 0}, "multiplier": one}
    ring = {"kind": "grid", "shape": [4], "periodic": [True], "bytes": [[3, 0]]}
    return problem, {
        "kind": "recognised",
        "grid": ring,
        "tasks": [0, 2, 1, 3],
        "below": {"kind": "blocks", "families": [family]},
        "beyond": {"kind": "star", "prices": []},
    }


def value_of(problem: MappingProblem, document: dict[str, object]) -> int:
    read = RecognisedCertificate.model_validate_json(json.dumps(document))
    return VALUES["recognised"](read_instance(problem.instance), read)


def test_the_example_by_hand() -> None:
    problem, certificate = hand_problem()
    assert value_of(problem, certificate) == 11
    assert optimum_of(problem) == 16


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"tasks": [0, 1, 2, 3]}, "exchange"),
        ({"tasks": [0, 2, 1, 0]}, "not so many different"),
        ({"tasks": [0, 2, 1]}, "not so many different"),
        ({"tasks": [0, 2, 1, 4]}, "beyond 3"),
        (
            {"grid": {"kind": "grid", "shape": [4], "periodic": [True], "bytes": [[4, 0]]}},
            "more in the grid",
        ),
        (
            {"grid": {"kind": "grid", "shape": [4], "periodic": [True], "bytes": [[99, 0]]}},
            "more bytes than the graph",
        ),
        ({"beyond": {"kind": "total"}}, "takes 2 tasks"),
        ({"below": {"kind": "total"}}, "takes 2 tasks"),
    ],
)
def test_spoilt_certificates_are_refused(change: dict[str, object], said: str) -> None:
    problem, certificate = hand_problem()
    with pytest.raises(RefusedError, match=said):
        value_of(problem, certificate | change)


def test_a_permuted_grid_is_solved_as_a_grid() -> None:
    """A search alone would not prove it: 512 tasks, 8 on a router."""
    problem = problem_on(grid((8, 8, 8), periodic=True, size=100), [4, 4, 4], tasks_per_node=8)
    sent = permuted(messages_of(problem.graph), 512, np.random.default_rng(3))
    mixed = problem_on(application_of(sent, 512), [4, 4, 4], tasks_per_node=8)
    result: MappingResult = solve(mixed, "auto", Options())
    assert result.status == "optimal"
    assert result.check().verified
    assert result.levels[0].certificate.kind == "recognised"
    assert result.notes == [
        "recognised: an 8x8x8 periodic grid, nearest neighbours, numbering permuted; "
        "mapped as a grid by pencils"
    ]
    assert result.notes[0] in str(result)
    assert result.objective == hop_bytes(mixed, np.array(result.solution.nodes))


def test_auto_says_why_it_maps_as_a_graph() -> None:
    graph = random_graph(np.random.default_rng(1), 9, 30)
    result = solve(problem_on(graph, [3, 3]), "auto", Options())
    assert result.notes == [
        "recognised: no pattern found: no grid, no all-to-all in parts, no tree; mapped as a graph"
    ]
    assert result.check().holds


def test_auto_gives_silent_tasks_the_places_left() -> None:
    label = [task + task // 6 for task in range(24)]
    sent = {(label[a], label[b]): n for (a, b), n in product((4, 6), ("line", "line")).items()}
    problem = problem_on(application_of(sent, 28), [4, 7], wrap=False)
    result = solve(problem, "auto", Options())
    assert result.check().verified
    assert "mapped as a grid by" in result.notes[0]
    assert len(set(result.solution.nodes)) == 28
    assert result.objective == result.bound == sum(sent.values())


def test_the_command_and_its_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = np.zeros((6, 6), dtype=int)
    for (a, b), size in product((2, 3), ("line", "ring"), [7, 9]).items():
        table[a, b] = size
    path = tmp_path / "bytes.csv"
    np.savetxt(path, table, fmt="%d", delimiter=",")
    assert str(tp.recognise(path)) == str(tp.recognise(tp.graph(table)))
    cells = tmp_path / "cells.csv"
    assert run(["recognise", str(path), "--csv", str(cells)]) == 0
    text = "a 2x3 grid, periodic in dimension 2, nearest neighbours, numbering row-major"
    assert capsys.readouterr().out == f"{text}\ncells: {cells}\n"
    assert cells.read_text().splitlines()[:3] == ["x0,x1,task", "0,0,0", "0,1,1"]
    assert run(["recognise", str(path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "topoplace.recognise/1"
    assert (document["shape"], document["links"]) == ([2, 3], ["line", "ring"])
    assert document["application"]["bytes"] == [[7, 7], [9, 9]]
    assert run(["recognise", str(tmp_path / "none.csv")]) == 2
