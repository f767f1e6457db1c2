"""The checker accepts correct mapping results and rejects every spoilt one.

The mutation classes are the table of `mapping_mutations`.
"""

from __future__ import annotations

import itertools
import json
import math
import random
from pathlib import Path

import numpy as np
import pytest

import topoplace as tp
from baseline_instances import grid, problem_on
from mapping_mutations import MUTATIONS
from mapping_results import CASES, document_of, result_for, solved, some_nodes
from topoplace.certify import check_document, check_file
from topoplace.errors import InputError
from topoplace.mapping.evaluate import hop_bytes
from topoplace.mapping.graph import IntArray
from topoplace.mapping.mapped import outcome_of
from topoplace.mapping.pencils.search import search_pencils
from topoplace.mapping.problem import MappingProblem, prepare_mapping
from topoplace.result.mapping import LayoutModel, MappingResult
from topoplace.snapshot.schema import MAPPING_SCHEMA, MappingInstance, MatrixModel
from topoplace.solving import Options


@pytest.mark.parametrize("name", CASES)
def test_correct_results_hold(name: str) -> None:
    report = check_document(solved(name))
    assert report.holds, report.failures
    assert report.claims[-1].name == "hop-bytes.bound"
    assert ("optimum" in [claim.name for claim in report.claims]) == (
        solved(name).solution.optimum is not None  # type: ignore[union-attr]
    )


@pytest.mark.parametrize("name", MUTATIONS)
def test_spoilt_results_are_rejected(name: str) -> None:
    mutation = MUTATIONS[name]
    for case in mutation.cases:
        document = json.loads(json.dumps(document_of(solved(case))))
        mutation.change(document, random.Random(name))
        assert document != document_of(solved(case)), case
        report = check_document(MappingResult.model_validate_json(json.dumps(document)))
        assert not report.holds, f"{name} of {case} was accepted"
        assert report.failures[0].name in mutation.caught_as, (case, report.failures[0])
        assert report.failures[0].detail


def test_the_list_is_long_enough() -> None:
    assert len(MUTATIONS) >= 30


def test_files_are_read_by_their_problem(tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    file.write_text(json.dumps(document_of(solved("blocks"))))
    assert check_file(file).holds
    file.write_text(json.dumps({**document_of(solved("blocks")), "objective": "many"}))
    with pytest.raises(InputError, match="objective"):
        check_file(file)


def test_a_result_without_solution_holds() -> None:
    problem = prepare_mapping(solved("rough").instance)
    report = check_document(result_for(problem, outcome_of(None, hit=True)))
    assert report.holds, report.failures


def test_a_searched_bound_is_reported_as_not_repeated() -> None:
    document = document_of(solved("rough"))
    level = document["levels"][0]
    level.update(certificate=None, proof="search", bound=level["objective"], gap=0.0)
    level["status"] = "optimal"
    for field in ("status", "bound", "gap", "proof"):
        document[field] = level[field]
    report = check_document(MappingResult.model_validate_json(json.dumps(document)))
    assert report.holds, report.failures
    assert "not repeated" in report.claims[-1].detail


@pytest.mark.parametrize(("machine", "confirmed"), [((4, 4, 4), True), ((6, 4, 4), False)])
def test_an_optimum_of_pencils_that_bounds_any_mapping_is_verified(
    machine: tuple[int, ...], confirmed: bool
) -> None:
    result = tp.map(tp.grid(4, 4, 4, periodic=True), tp.torus(*machine), "pencils")
    report = result.check()
    claim = next(claim for claim in report.claims if claim.name == "optimum")
    assert report.holds
    assert claim.by_search is not confirmed
    assert report.verified is confirmed


def test_a_matrix_machine_is_checked() -> None:
    rng = np.random.default_rng(0)
    distances = rng.integers(1, 9, size=(6, 6))
    np.fill_diagonal(distances, 0)
    instance = MappingInstance(
        schema_version=MAPPING_SCHEMA,
        name="case",
        machine=MatrixModel(kind="matrix", name="machine", distances=distances.tolist()),
        nodes="0-5",
        tasks_per_node=1,
        application=grid((3, 2)),
    )
    problem = prepare_mapping(instance)
    result = result_for(problem, outcome_of(np.arange(6)))
    assert result.bound is not None
    assert result.bound >= problem.graph.total_bytes
    assert check_document(result).holds
    document = document_of(result)
    document["instance"]["machine"]["distances"][0][1] = 0
    report = check_document(MappingResult.model_validate_json(json.dumps(document)))
    assert {claim.name for claim in report.failures} & {"figures", "hop-bytes.bound"}


def _selections(problem: MappingProblem, layout: LayoutModel) -> list[list[tuple[int, ...]]]:
    """Return the possible selections of every pencil, pencils being the last dimension."""
    whole = problem.whole_routers.reshape(problem.torus.shape)
    found = []
    for at in itertools.product(*map(range, layout.logical[:-1])):
        row = [(o + c) % n for o, c, n in zip(layout.origin, at, problem.torus.shape, strict=False)]
        positions = [(layout.origin[-1] + t) % problem.torus.shape[-1] for t in range(layout.depth)]
        usable = [t for t, z in enumerate(positions) if whole[(*row, z)]]
        found.append(list(itertools.combinations(usable, layout.logical[-1])))
    return found


def _nodes(problem: MappingProblem, layout: LayoutModel, chosen: IntArray) -> IntArray:
    """Return the mapping of a selection, shape ``(num_pencils, levels)``."""
    assert problem.grid is not None
    tasks = problem.grid.coordinates()
    cells = tasks[:, layout.axes] // np.asarray(layout.partitions)
    pencil = np.ravel_multi_index(tuple(cells[:, :-1].T), layout.logical[:-1])
    at = np.column_stack([cells[:, :-1], chosen[pencil, cells[:, -1]]]) + np.asarray(layout.origin)
    nodes: IntArray = np.ravel_multi_index(tuple(at.T), problem.torus.shape, mode="wrap")
    return nodes


@pytest.mark.parametrize("seed", range(12))
def test_flows_prove_the_best_selection(seed: int) -> None:
    """Against all selections of the window."""
    rng = np.random.default_rng(seed)
    shape = [2, 2, 3 + seed % 3]
    machine = [2, 2, 5 if seed % 3 else 4]
    nodes = some_nodes(seed, math.prod(machine), int(rng.integers(1, 4)))
    application = grid(shape, periodic=seed % 2 == 1, size=int(rng.integers(1, 5)))
    problem = problem_on(application, machine, tasks_per_node=2, wrap=seed % 4 == 3, nodes=nodes)
    outcome = search_pencils(problem, Options(max_depth=machine[-1]))
    assert outcome.solution.optimum is not None
    assert outcome.solution.layout is not None
    result = result_for(problem, outcome)
    report = check_document(result)
    assert report.holds, report.failures
    every = itertools.product(*_selections(problem, outcome.solution.layout))
    model = outcome.solution.layout
    least = min(hop_bytes(problem, _nodes(problem, model, np.asarray(one))) for one in every)
    assert result.objective == least
    assert outcome.solution.optimum.window_bound in (None, least)
