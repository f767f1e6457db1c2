"""The checker accepts correct mapping results; `test_mutants` has what it rejects."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter

import topoplace as tp
from bending import bent
from mapping_results import document_of, solved
from topoplace.certify import check_document
from topoplace.certify.mapping import graphs
from topoplace.certify.mapping.check import VALUES
from topoplace.certify.mapping.graphs import require_semidefinite
from topoplace.certify.mapping.instance import read_instance
from topoplace.certify.report import RefusedError
from topoplace.result.mapping import MappingCertificate, MappingResult


def test_a_searched_bound_is_reported_as_not_repeated() -> None:
    document = document_of(solved("rough"))
    level = document["levels"][0]
    level.update(certificate=None, proof="search", bound=level["objective"], gap=0.0)
    level["status"] = "optimal"
    document["link_load"] = None  # it would rest on the certificate
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


def test_certificates_of_other_problems_are_rejected() -> None:
    for mine, other in (("star", "classes"), ("cuts", "star")):
        document = document_of(solved(mine))
        document["levels"][0]["certificate"] = document_of(solved(other))["levels"][0][
            "certificate"
        ]
        report = check_document(MappingResult.model_validate_json(json.dumps(document)))
        assert report.failures[0].name == "hop-bytes.bound"


MERGED = (
    "classes = [0, 1, 2, 1, 1, 2, 2, 2, 2, 2, 2, 2, 1, 2, 2, 2]"
    f" & filters = [[0, 0, 1, 0]] & factors = [[]] & rows = {[[0] * 16] * 3}"
)
"""All differences of 2 and more are one class; two neighbours reach only some of them."""


@pytest.mark.parametrize(
    ("case", "changes", "reason"),
    [
        ("classes", "routers[0] = 5", "two routers are one of the host"),
        ("classes", "classes[1] = 2", "a difference without its opposite"),
        ("classes", "classes[10] = 0", "not that of no difference"),
        ("classes", MERGED, "the square of a filter is not constant on class 2"),
        ("classes", "del filters[-1]", "filters and factors differ in number"),
        ("cuts", "balance = 0", "the matrix of the cuts is not positive semidefinite"),
        ("cuts", "triangles = null", "the matrix of the cuts is not positive semidefinite"),
        ("blocks", "families[0].multiplier.numerator = -1", "a multiplier is negative"),
        ("blocks", "families[0].multiplier.numerator = 99", "count the hops of a dimension"),
    ],
)
def test_conditions_of_the_proofs_are_held(case: str, changes: str, reason: str) -> None:
    """Whatever the certificate would prove without them."""
    result = solved(case)
    document = bent(document_of(result)["levels"][0]["certificate"], changes)
    certificate = TypeAdapter[Any](MappingCertificate).validate_python(document)
    with pytest.raises(RefusedError, match=reason):
        VALUES[certificate.kind](read_instance(result.instance), certificate)


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


def test_a_factor_is_a_guess_that_proves_nothing_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = np.array([[1 << 20, 1 << 21], [1 << 21, 1 << 20]], dtype=np.int64)
    monkeypatch.setattr(graphs, "_factor", lambda *_: 1024 * np.eye(2, dtype=np.int64))
    with pytest.raises(RefusedError, match="diagonally dominant"):
        require_semidefinite(matrix, "a matrix")
