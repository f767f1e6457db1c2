"""The checker accepts right certificates of graph bounds and rejects spoilt ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from baseline_instances import problem_on, random_graph
from graph_bound_cases import application_of, matrix_problem
from mapping_results import document_of
from topoplace.certify import check_document
from topoplace.mapping.bounds.distance_classes import distance_classes_bound
from topoplace.mapping.bounds.star import star_bound
from topoplace.mapping.mapped import outcome_of
from topoplace.result.mapping import MappingResult
from topoplace.solving import Options, result_of

Certificate = dict[str, Any]


@cache
def solved(name: str) -> MappingResult:
    """Return a result with a certificate of a kind that proves more than simpler ones."""
    if name == "star":
        distances = np.add.outer(np.arange(8), np.arange(8) ** 2)
        distances = np.minimum(distances, distances.T) + 1
        np.fill_diagonal(distances, 0)
        star = np.zeros((8, 8), dtype=np.int64)
        star[5, :4] = 3, 5, 7, 9
        problem = matrix_problem(application_of(star), distances)
        bound = star_bound(problem)
    else:
        problem = problem_on(random_graph(np.random.default_rng(5), 16, 40), [4, 4])
        bound = distance_classes_bound(problem)
    assert bound is not None
    outcome = outcome_of(problem.nodes[: problem.num_tasks], bound=bound)
    return result_of(problem, outcome, "by-hand", Options(), 0.5)


def _set(*path: str | int) -> Callable[[Any], Callable[[Certificate], None]]:
    """Return a change that puts a function of the old value at a place of the certificate."""

    def with_function(function: Any) -> Callable[[Certificate], None]:
        def change(certificate: Certificate) -> None:
            at: Any = certificate
            for step in path[:-1]:
                at = at[step]
            at[path[-1]] = function(at[path[-1]])

        return change

    return with_function


MUTATIONS: dict[str, tuple[str, Callable[[Certificate], None]]] = {
    "prices dropped": ("star", _set("prices")(lambda _: [])),
    "prices too few": ("star", _set("prices")(lambda old: old[1:])),
    "a price raised": ("star", _set("prices", 3)(lambda old: old + 1000)),
    "a price beyond 64 bits": ("star", _set("prices", 3)(lambda _: 1 << 70)),
    "scale doubled": ("classes", _set("scale")(lambda old: 2 * old)),
    "scale halved": ("classes", _set("scale")(lambda old: old // 2)),
    "another host": ("classes", _set("shape")(lambda _: [16])),
    "a smaller host": ("classes", _set("shape")(lambda _: [4, 2])),
    "a huge host": ("classes", _set("shape")(lambda _: [1 << 20, 1 << 20])),
    "a router twice": ("classes", _set("routers", 0)(lambda _: 5)),
    "a router outside": ("classes", _set("routers", 0)(lambda _: 16)),
    "a router too few": ("classes", _set("routers")(lambda old: old[1:])),
    "routers moved": (
        "classes",
        _set("routers")(lambda old: sorted(old, key=lambda r: r * 7 % 16)),
    ),
    "a class without opposite": ("classes", _set("classes", 1)(lambda _: 2)),
    "a class empty": ("classes", _set("classes")(lambda old: [c + (c > 1) for c in old])),
    "no first class": ("classes", _set("classes", 0)(lambda _: 1)),
    "two of the first class": ("classes", _set("classes", 10)(lambda _: 0)),
    "classes too few": ("classes", _set("classes")(lambda old: old[:-1])),
    "a class that is none": ("classes", _set("classes", 10)(lambda _: 1 << 60)),
    "classes exchanged": (
        "classes",
        _set("classes")(lambda old: [{1: 2, 2: 1}.get(c, c) for c in old]),
    ),
    "filter raised": ("classes", _set("filters", 0, 2)(lambda old: old + 1)),
    "filter of the identity": ("classes", _set("filters", 0, 0)(lambda old: old + 1)),
    "filter shortened": ("classes", _set("filters", 0)(lambda old: old[1:])),
    "filters dropped": ("classes", _set("filters")(lambda _: [])),
    "filters reversed": ("classes", _set("filters")(lambda old: old[::-1])),
    "factors dropped": ("classes", _set("factors")(lambda old: [[] for _ in old])),
    "a factor shortened": ("classes", _set("factors", -1, -1)(lambda old: old[1:])),
    "a factor doubled": ("classes", _set("factors", -1, -1)(lambda old: [2 * x for x in old])),
    "a huge entry": ("classes", _set("factors", -1, -1, 0)(lambda old: old + (1 << 80))),
    "a row raised": ("classes", _set("rows", 1, 0)(lambda old: old + (1 << 70))),
    "a row lowered": ("classes", _set("rows", 1, 0)(lambda old: old - (1 << 70))),
    "rows too few": ("classes", _set("rows")(lambda old: old[1:])),
    "rows ragged": ("classes", _set("rows", 1)(lambda old: old[1:])),
}


@pytest.mark.parametrize("name", ["star", "classes"])
def test_correct_certificates_hold(name: str) -> None:
    report = check_document(solved(name))
    assert report.holds, report.failures
    assert report.claims[-1].name == "hop-bytes.bound"


@pytest.mark.parametrize("name", MUTATIONS)
def test_spoilt_certificates_are_rejected(name: str) -> None:
    case, change = MUTATIONS[name]
    document = json.loads(json.dumps(document_of(solved(case))))
    change(document["levels"][0]["certificate"])
    assert document != document_of(solved(case))
    report = check_document(MappingResult.model_validate_json(json.dumps(document)))
    assert [claim.name for claim in report.failures] == ["hop-bytes.bound"]


def test_classes_of_another_machine_are_rejected() -> None:
    certificate = solved("classes").levels[0].certificate
    document = document_of(solved("star"))
    document["levels"][0]["certificate"] = certificate.model_dump(mode="json")  # type: ignore[union-attr]
    report = check_document(MappingResult.model_validate_json(json.dumps(document)))
    assert [claim.name for claim in report.failures] == ["hop-bytes.bound"]
