"""The checker accepts right certificates of cuts and rejects spoilt ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from baseline_instances import problem_on
from cut_cases import regular_graph
from mapping_results import document_of
from topoplace.certify import check_document
from topoplace.certify.mapping.cuts import require_semidefinite
from topoplace.certify.report import RefusedError
from topoplace.mapping.bounds.cuts import cuts_bound
from topoplace.mapping.mapped import outcome_of
from topoplace.result.mapping import MappingResult
from topoplace.snapshot.schema import GraphApplication
from topoplace.solving import Options, result_of

Certificate = dict[str, Any]


def _near(side: int) -> GraphApplication:
    """Return a grid's messages, of uneven bytes: cuts across it differ much in theirs."""
    task = np.arange(side * side).reshape(side, side)
    sources = np.concatenate([task[1:].ravel(), task[:, 1:].ravel()])
    targets = np.concatenate([task[:-1].ravel(), task[:, :-1].ravel()])
    return GraphApplication(
        num_tasks=side * side,
        sources=sources.tolist(),
        targets=targets.tolist(),
        bytes=(97 + np.arange(len(sources)) % 7).tolist(),
    )


@cache
def solved(name: str) -> MappingResult:
    """Return a result with a certificate that has factors, or lines alone."""
    if name == "factors":
        problem = problem_on(_near(6), [6, 6])
    else:
        graph = regular_graph(np.random.default_rng(5), 60, 3)
        problem = problem_on(graph, [6, 10], wrap=False)
    bound = cuts_bound(problem)
    outcome = outcome_of(problem.nodes[: problem.num_tasks], bound=bound)
    return result_of(problem, outcome, "by-hand", Options(), 0.5)


def _certificate(name: str) -> Certificate:
    found: Certificate = document_of(solved(name))["levels"][0]["certificate"]
    return found


def test_the_cases_are_of_both_kinds() -> None:
    assert _certificate("factors")["factors"]
    assert _certificate("factors")["gains"]
    lines = _certificate("lines")
    assert not lines["factors"]
    assert len(lines["lines"]) > 1
    assert not any(lines["wrap"])


def _times(values: list[int], numerator: int, denominator: int) -> list[int]:
    return [x * numerator // denominator for x in values]


def _line(change: Callable[[Certificate], Certificate]) -> Callable[[Certificate], Certificate]:
    """Return the change of every line, as a change of a certificate."""
    return lambda c: {**c, "lines": [{**line, **change(line)} for line in c["lines"]]}


MUTATIONS: dict[str, tuple[str, Callable[[Certificate], Certificate]]] = {
    "a price lowered": (
        "lines",
        _line(lambda x: {"prices": [x["prices"][0] - (1 << 46), *x["prices"][1:]]}),
    ),
    "all prices lowered": (
        "lines",
        _line(lambda x: {"prices": [p - (1 << 40) for p in x["prices"]]}),
    ),
    "all prices raised": (
        "lines",
        _line(lambda x: {"prices": [p + (1 << 44) for p in x["prices"]]}),
    ),
    "a price beyond 52 bits": ("lines", _line(lambda x: {"prices": [1 << 70, *x["prices"][1:]]})),
    "a price too few": ("lines", _line(lambda x: {"prices": x["prices"][1:]})),
    "a price too many": ("lines", _line(lambda x: {"prices": [*x["prices"], 0]})),
    "balance raised": ("lines", _line(lambda x: {"balance": 4 * x["balance"] + (1 << 46)})),
    "balance dropped": ("lines", _line(lambda _: {"balance": 0})),
    "balance beyond 52 bits": ("lines", _line(lambda _: {"balance": 1 << 70})),
    "scale doubled": ("lines", lambda c: {**c, "scale": 2 * c["scale"]}),
    "scale halved": ("lines", lambda c: {**c, "scale": c["scale"] // 2}),
    "scale beyond 52 bits": ("lines", lambda c: {**c, "scale": c["scale"] << 20}),
    "rings closed": ("lines", lambda c: {**c, "wrap": [True, True]}),
    "a dimension too few": ("lines", lambda c: {**c, "wrap": [False]}),
    "a ring opened": ("factors", lambda c: {**c, "wrap": [True, False]}),
    "factors dropped": ("factors", lambda c: {**c, "factors": []}),
    "a factor dropped": ("factors", lambda c: {**c, "factors": c["factors"][1:]}),
    "a factor doubled": (
        "factors",
        lambda c: {**c, "factors": [_times(c["factors"][0], 2, 1), *c["factors"][1:]]},
    ),
    "a factor that does not add up to 0": (
        "factors",
        lambda c: {**c, "factors": [[c["factors"][0][0] + 1, *c["factors"][0][1:]]]},
    ),
    "a factor shortened": ("factors", lambda c: {**c, "factors": [[1, -1]]}),
    "a huge factor": (
        "factors",
        lambda c: {**c, "factors": [[1 << 40, -(1 << 40)] + [0] * 34]},
    ),
    "gains dropped": ("factors", lambda c: {**c, "gains": []}),
    "gains of 0": ("factors", lambda c: {**c, "gains": [0 for _ in c["gains"]]}),
    "gains lowered": ("factors", lambda c: {**c, "gains": _times(c["gains"], 99, 100)}),
    "gains raised": ("factors", lambda c: {**c, "gains": _times(c["gains"], 11, 10)}),
    "a huge gain": ("factors", lambda c: {**c, "gains": [1 << 60 for _ in c["gains"]]}),
}


@pytest.mark.parametrize("name", ["factors", "lines"])
def test_correct_certificates_hold(name: str) -> None:
    report = check_document(solved(name))
    assert report.holds, report.failures
    assert report.claims[-1].name == "hop-bytes.bound"
    assert report.verified


@pytest.mark.parametrize("name", MUTATIONS)
def test_spoilt_certificates_are_rejected(name: str) -> None:
    case, change = MUTATIONS[name]
    document = document_of(solved(case))
    document["levels"][0]["certificate"] = change(document["levels"][0]["certificate"])
    assert document != document_of(solved(case))
    report = check_document(MappingResult.model_validate_json(json.dumps(document)))
    assert [claim.name for claim in report.failures] == ["hop-bytes.bound"]


def test_cuts_of_another_graph_are_rejected() -> None:
    document = document_of(solved("lines"))
    document["levels"][0]["certificate"] = _certificate("factors")
    report = check_document(MappingResult.model_validate_json(json.dumps(document)))
    assert [claim.name for claim in report.failures] == ["hop-bytes.bound"]


@pytest.mark.parametrize("seed", range(20))
def test_semidefinite_is_what_eigenvalues_say(seed: int) -> None:
    """Matrices whose least eigenvalue is known: just above 0 accepted, just below refused."""
    rng = np.random.default_rng(seed)
    num = int(rng.integers(2, 60))
    root = rng.integers(-(1 << 20), 1 << 20, size=(num, num - 1))
    singular = root @ root.T
    above = int(np.diag(singular).max()) >> 12
    require_semidefinite(singular + above * np.eye(num, dtype=np.int64), "a matrix")
    with pytest.raises(RefusedError):
        require_semidefinite(singular - above * np.eye(num, dtype=np.int64), "a matrix")


def test_singular_and_tiny_matrices_are_refused() -> None:
    """The test errs on the side of refusal."""
    for matrix in (np.ones((3, 3)), np.zeros((3, 3)), -np.eye(3), np.eye(3)):
        with pytest.raises(RefusedError):
            require_semidefinite(matrix.astype(np.int64), "a matrix")
