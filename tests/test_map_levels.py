"""Mapping onto trees and hierarchies, held against the definition and against all mappings."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from random import Random

import numpy as np
import pytest

import topoplace as tp
from level_cases import random_application, random_levels
from level_hops import level_hops
from topoplace.certify import check_document
from topoplace.certify.mapping.check import VALUES
from topoplace.certify.mapping.instance import read_instance
from topoplace.cli import run
from topoplace.errors import InputError
from topoplace.mapping.bounds import levels
from topoplace.mapping.bounds.levels import inside_of_product, levels_bound, orders_of
from topoplace.mapping.evaluate import hop_bytes
from topoplace.mapping.local_search import arrays_of
from topoplace.mapping.onto import load_places, problem_on
from topoplace.mapping.parallelism import (
    Transformer,
    lines_of_axes,
    parallelism,
    parallelism_graph,
    traffic,
)
from topoplace.mapping.rankfiles import read_mapping, write_mapping
from topoplace.snapshot.schema import GraphApplication, ParallelismApplication, Snapshot
from topoplace.solving import Options, solve


@pytest.mark.parametrize("seed", range(40))
def test_costs_are_those_of_the_definition(seed: int) -> None:
    problem = random_levels(Random(seed))
    every = np.arange(problem.machine.num_nodes)
    expected = level_hops(problem.instance)
    assert (problem.machine.hops(every[:, None], every) == expected).all()
    checked = read_instance(problem.instance)
    assert (checked.machine.hops(every[:, None], every) == expected).all()
    for ends in ("sources", "targets"):
        assert len(getattr(checked, ends)) == problem.graph.num_messages
    sent = [
        sorted(zip(x.sources.tolist(), x.targets.tolist(), size.tolist(), strict=True))
        for x, size in ((checked, checked.sizes), (problem.graph, problem.graph.bytes))
    ]
    assert sent[0] == sent[1]


@pytest.mark.parametrize("machine", ["tree:2x3x4", "hierarchy:2x3", "torus:3x4", "mesh:5"])
def test_arrays_of_all_machines_have_the_types_of_the_compiled_kernels(machine: str) -> None:
    """Else their kernels are compiled once more, while the clock of the search runs."""
    problem = problem_on(load_places(machine), tp.grid(4))
    assert all(part.flags.c_contiguous for part in arrays_of(problem))


def test_the_default_order_is_there_to_compare_with(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["map", "--grid", "4x4", "--on", "torus:4x4", "--seed", "1"]
    assert run([*asked, "--periodic", "xy"]) == 0
    assert "\ndefault order: 64 hop-bytes\n" in capsys.readouterr().out
    assert run([*asked, "--method", "default"]) == 0
    assert "default order" not in capsys.readouterr().out


@pytest.mark.parametrize("seed", range(30))
def test_no_set_of_ranks_has_more_inside_than_layers_say(seed: int) -> None:
    application = random_application(Random(seed), "axes")
    assert isinstance(application, ParallelismApplication)
    graph, lines = parallelism_graph(application), lines_of_axes(application)
    tables = [inside_of_product([lines[k] for k in order], 6) for order in orders_of(lines)]
    for size in range(graph.num_tasks + 1):
        most = 0
        for chosen in itertools.combinations(range(graph.num_tasks), size):
            inside = np.isin(graph.sources, chosen) & np.isin(graph.targets, chosen)
            most = max(most, int(graph.bytes[inside].sum()))
        for psi in tables:
            assert psi is not None
            assert most <= psi[size]
            if size == graph.num_tasks or len(lines) == 1:
                assert most == psi[size]


def test_layers_of_cliques_are_those_of_boxes() -> None:
    """Whole tensor groups, and then as many whole ones as fit."""
    job = parallelism("data=4:all:1,tensor=8:all:100")
    psi = inside_of_product(lines_of_axes(job)[::-1], 32)
    assert psi is not None
    assert [int(psi[s]) for s in (8, 16, 32)] == [
        100 * 56,
        2 * 100 * 56 + 8 * 2,
        4 * 100 * 56 + 8 * 12,
    ]


@pytest.mark.parametrize("seed", range(6))
def test_the_semidefinite_part_is_checked(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(levels, "routed", lambda *_: None)  # what would prove more
    rng = np.random.default_rng(seed)
    ends = rng.integers(40, size=(2, 120))
    weights = [(int(a), int(b), 7) for a, b in ends.T if a != b]
    problem = problem_on(load_places("sharedmap:4:3:4/1:10:100"), tp.graph(weights, num_tasks=40))
    bound = levels_bound(problem)
    assert bound is not None
    kinds = [part.kind for part in bound.certificate.levels]  # type: ignore[union-attr]
    assert "spectral" in kinds
    assert VALUES["levels"](read_instance(problem.instance), bound.certificate) == bound.value
    assert bound.value <= hop_bytes(problem, problem.nodes[: problem.num_tasks])


def test_sharedmap_hierarchies_are_read_from_the_bottom_up() -> None:
    """Its README: 4:8:6 is 4 elements on a processor, 8 processors on a node, and 6 nodes."""
    places = load_places("sharedmap:4:8:6/1:10:100")
    machine = problem_on(places, tp.grid(2)).machine
    assert machine.num_nodes == 4 * 8 * 6
    ends = [0, 3, 4, 31, 32, 191]
    assert machine.hops(np.array(0), np.array(ends)).tolist() == [0, 1, 10, 10, 100, 100]
    assert load_places("sharedmap:2:2/1:10", level_costs=[3, 3]).level_costs == (3, 3)


@pytest.mark.parametrize(
    ("on", "application"),
    [
        ("sharedmap:8:8:8/1:10:100", tp.grid(8, 8, 8, periodic=True)),
        ("hierarchy:4x2x16", parallelism("tensor=8,data=4,pipeline=4")),
        ("sharedmap:4:9/1:7", tp.grid(6, 6)),
    ],
)
def test_nested_boxes_are_best_where_they_fit(on: str, application: object) -> None:
    result = tp.map(application, on, "nested-boxes")  # type: ignore[arg-type]
    assert result.status == "optimal"
    assert result.check().verified


def test_nested_boxes_leave_places_that_do_not_divide() -> None:
    problem = problem_on(load_places("sharedmap:5:8/1:7"), tp.grid(4, 8))
    result = solve(problem, "nested-boxes", Options())
    assert result.objective == 64 * 1 + 40 * 7
    assert check_document(result).holds
    with pytest.raises(InputError, match="as many places"):
        solve(
            problem_on(load_places("tree:2x9").only("0-14"), tp.grid(4)), "nested-boxes", Options()
        )


def test_searches_find_the_boxes_of_a_grid() -> None:
    """Sixteen tasks in four leaves of four: squares of two by two are best."""
    result = tp.map(tp.grid(4, 4), "tree:4x4", "search", time_limit=2)
    assert result.objective == 32 * 2 + 16 * 4
    assert result.status == "optimal"
    assert result.check().verified
    assert result.solution is not None
    assert result.solution.figures.level_bytes == [0, 32, 16]


@pytest.mark.parametrize("on", ["tree:2x2x3", "hierarchy:2x2x3", "sharedmap:3:2:2/1:5:9"])
def test_host_files_name_the_nodes(on: str, tmp_path: Path) -> None:
    problem = problem_on(load_places(on), tp.grid(3, 4), 2)
    nodes = np.random.default_rng(0).permutation(np.repeat(problem.nodes, 2))[:12]
    for form in ("hostfile", "csv", "scotch", "rank-order"):
        path = tmp_path / form
        write_mapping(path, form, problem, nodes)
        assert (read_mapping(path, form, problem) == nodes).all()
    name = problem.machine.node_names[nodes[0]]  # type: ignore[union-attr]
    assert (tmp_path / "hostfile").read_text().splitlines()[0] == name
    (tmp_path / "hostfile").write_text("stranger:12\n")
    with pytest.raises(InputError, match="a host of the machine"):
        read_mapping(tmp_path / "hostfile", "hostfile", problem)


def test_free_nodes_and_jobs_of_snapshots_are_places() -> None:
    snapshot = Snapshot.model_validate_json(
        json.dumps(
            {
                "schema": "topoplace.snapshot/1",
                "name": "few",
                "machine": "tree:2x2x2",
                "down": "n7",
                "running": [{"id": "a", "nodes": "n[0,3-4]"}],
            }
        )
    )
    assert load_places(snapshot).node_set == "1-2,5-6"
    assert load_places(snapshot, job="a").node_set == "0,3-4"
    result = tp.map(tp.grid(3), snapshot, job="a")
    assert result.objective == 2 * (4 + 6)
    assert tp.topology(result).hops(0, [0, 1, 2]).max() == 6


FAULTS = {
    "that do not fall from level": ["--on", "tree:2x2", "--level-costs", "3:2"],
    "2 costs, one for every level": ["--on", "tree:2x2", "--level-costs", "3"],
    "costs such as 1:10:100": ["--on", "tree:2x2", "--level-costs", "high"],
    "a tree or hierarchy beside it": ["--on", "torus:2x2", "--level-costs", "1:2"],
    "as many distances": ["--on", "sharedmap:4:8/1"],
    "a torus or mesh beside it": ["--on", "tree:2x2", "--within", "2x2"],
    "a torus, mesh, matrix, tree or hierarchy": ["--on", "cubes:2"],
}


@pytest.mark.parametrize("expected", FAULTS)
def test_faults_are_named_in_a_line(expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["map", "--grid", "2x2", *FAULTS[expected]]) == 2
    said = capsys.readouterr().err
    assert expected in said
    assert said.count("\n") == 1


def test_leaves_below_no_common_switch_or_two_are_no_tree(tmp_path: Path) -> None:
    conf = tmp_path / "topology.conf"
    leaves = "SwitchName=a Nodes=n[0-1]\nSwitchName=b Nodes=n[2-3]\nSwitchName=c Nodes=n[4-5]\n"
    conf.write_text(leaves)
    with pytest.raises(InputError, match="a network above its top level, found a, b, c"):
        tp.map(tp.grid(4), conf)
    tops = "SwitchName=x Switches=a,b\nSwitchName=y Switches=b,c\nSwitchName=z Switches=x,y\n"
    other = tmp_path / "overlapping.conf"
    other.write_text(leaves + tops)
    with pytest.raises(InputError, match="all nodes of one of them or none, found x and y"):
        tp.map(tp.grid(4), other)


# ---- Training jobs -------------------------------------------------------------------------------


def test_traffic_of_a_transformer_is_as_stated() -> None:
    model = Transformer(hidden=4, layers=6, sequence=8, microbatches=2, bytes_per_value=2)
    sent = traffic({"tensor": 2, "pipeline": 3, "data": 4}, model)
    activations = 8 * 2 * 4 * 2
    assert sent["tensor"] * (2 - 1) == 4 * 2 * activations * 2 * (2 - 1) // 2
    assert sent["pipeline"] == activations // 2
    assert sent["data"] == 12 * 16 * 2 // 2 * 2 * 2 * 3 // 4


def test_a_training_job_from_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, hosts = tmp_path / "out.json", tmp_path / "hosts"
    args = ["--parallelism", "pipeline=2,data=3,tensor=4", "--on", "hierarchy:3x2x4"]
    more = ["--level-costs", "1:9:20", "--time-limit", "2", "-o", str(out)]
    assert run(["map", *args, *more, "--hostfile", str(hosts)]) == 0
    assert "training job pipeline 2 x data 3 x tensor 4" in capsys.readouterr().out
    assert len(hosts.read_text().splitlines()) == 24
    assert run(["check", str(out)]) == 0
    assert run(["map", "--parallelism", "speed=2", "--on", "tree:2x2"]) == 2
    assert "tensor" in capsys.readouterr().err
    assert run(["map", "--parallelism", "tensor=2", "--grid", "2", "--on", "tree:2x2"]) == 2


def test_the_checker_refuses_what_solvers_do_not_prove(monkeypatch: pytest.MonkeyPatch) -> None:
    """A psi that is too small, if the solver had one, does not pass."""
    problem = problem_on(load_places("sharedmap:4:4/1:10"), parallelism("data=4,tensor=4"))

    def less(lines: object, limit: int) -> object:
        return np.zeros(limit + 1, dtype=np.int64)

    monkeypatch.setattr(levels, "inside_of_product", less)
    bound = levels_bound(problem)
    assert bound is not None
    assert VALUES["levels"](read_instance(problem.instance), bound.certificate) < bound.value
    assert math.isfinite(bound.value)


def test_a_job_without_messages_costs_nothing() -> None:
    silent = GraphApplication(num_tasks=4, sources=[], targets=[], bytes=[])
    result = tp.map(silent, "tree:2x2")
    assert (result.objective, result.bound) == (0, 0)
    assert result.check().holds
