"""Bounds by pairs of assignments, and trees of partial mappings: valid, strong, and followed."""

from __future__ import annotations

import numpy as np
import pytest

from baseline_instances import application_of, matrix_problem, optimum_of, problem_on, random_graph
from real_files import real_file
from topoplace.certify import check_document
from topoplace.certify.mapping.check import VALUES
from topoplace.certify.mapping.instance import read_instance
from topoplace.certify.report import RefusedError
from topoplace.errors import InputError
from topoplace.mapping.bounds.pairs import pairs_bound
from topoplace.mapping.exact.branch import proof_tree, small_problem
from topoplace.mapping.graphfiles import read_qaplib
from topoplace.mapping.problem import MappingProblem
from topoplace.result import Fraction
from topoplace.result.certificate import Packed, packed, unpacked
from topoplace.result.mapping import PairsCertificate, TreeCertificate
from topoplace.solving import solve

OPTIMA = {"nug12": 578, "nug15": 1150, "scr12": 31410, "esc16a": 68, "tho30": 149936}


def qaplib(name: str) -> MappingProblem:
    """Return the problem of a QAPLIB file: the matrix that is a mesh, or torus, is the machine."""
    read = read_qaplib(real_file(f"qaplib/{name}.dat"), "first")
    meshes = (read.distances, read.flows) if name == "scr12" else (read.flows, read.distances)
    distances, flows = (m * ~np.eye(len(m), dtype=bool) for m in meshes)
    return matrix_problem(application_of(flows), distances)


def proven(problem: MappingProblem, certificate: PairsCertificate | TreeCertificate) -> int:
    """Return what the checker says that a certificate proves."""
    return VALUES[certificate.kind](read_instance(problem.instance), certificate)


@pytest.mark.parametrize("name", ["nug12", "nug15", "scr12", "esc16a"])
def test_optima_of_qaplib_are_proven(name: str) -> None:
    problem = qaplib(name)
    result = solve(problem, "exact")
    assert result.objective == result.bound == OPTIMA[name]
    assert check_document(result).verified
    assert len(result.model_dump_json()) < 1_000_000


@pytest.mark.parametrize(("name", "least"), [("nug12", 568), ("scr12", 31_390), ("esc16a", 64)])
def test_pairs_bound_of_qaplib(name: str, least: int) -> None:
    """The value of the relaxation in the literature, nearly."""
    problem = qaplib(name)
    bound = pairs_bound(problem)
    assert bound is not None
    assert least <= proven(problem, bound.certificate) == bound.value <= OPTIMA[name]


def test_no_eigenvalue_may_be_claimed_that_is_not_there() -> None:
    """Nor may a cost be changed alone: what is left would not be symmetric."""
    problem = problem_on(random_graph(np.random.default_rng(5), 5, 20), [5], wrap=False)
    bound = pairs_bound(problem)
    assert bound is not None
    certificate = bound.certificate
    higher = certificate.model_copy(update={"least": certificate.least + certificate.least // 100})
    with pytest.raises(RefusedError, match="semidefinite"):
        proven(problem, higher)
    numbers = unpacked(certificate.costs, 15 * 3 * 5, "costs")
    numbers[(1 * 3 + 2) * 5] += 1  # tasks 0 and 1, the middle and an end
    other = certificate.model_copy(update={"costs": packed(numbers)})
    with pytest.raises(RefusedError, match="symmetric"):
        proven(problem, other)


@pytest.mark.slow
def test_thirty_places_are_bounded_within_ten_percent() -> None:
    problem = qaplib("tho30")
    bound = pairs_bound(problem, 60.0)
    assert bound is not None
    assert 0.9 * OPTIMA["tho30"] <= proven(problem, bound.certificate) == bound.value
    assert bound.value <= OPTIMA["tho30"]
    assert len(bound.certificate.model_dump_json()) < 1_000_000


# ---- By hand ------------------------------------------------------------------------------------


def test_the_examples_of_the_documentation() -> None:
    """Three tasks, each pair with a byte between them, on a line of three routers."""
    sent = np.triu(np.ones((3, 3), dtype=np.int64), 1)
    problem = problem_on(application_of(sent), [3], wrap=False)
    rows, columns = np.triu_indices(3)
    distance = np.abs(np.arange(3)[:, None] - np.arange(3))
    whole = np.where(rows == columns, 0, 1)[:, None, None] * distance[[0, 1]]
    certificate = PairsCertificate(
        scale=Fraction(numerator=2, denominator=1),
        mirrors=[[2, 1, 0]],
        least=-1,
        costs=packed(2 * whole),
    )
    assert proven(problem, certificate) == 4
    nodes = packed(np.array([2, 0, 0], dtype=np.int64))
    tree = TreeCertificate(guests=[[1, 0, 2]], hosts=[[2, 1, 0]], size=3, nodes=nodes)
    assert proven(problem, tree) == 4


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"hosts": [[1, 0, 2]]}, "host symmetry changes"),
        ({"hosts": [[0, 0, 2]]}, "not a list of all 3"),
        ({"hosts": []}, "ends before"),
        ({"nodes": [2, 0, 1]}, "ends before"),
        ({"nodes": [2, 0, 2]}, "branches on what is not there"),
        ({"nodes": [4, 0, 0]}, "branches on what is not there"),
        ({"nodes": [-4, 0, 0]}, "branches on what is not there"),
        ({"nodes": [0, 0, 0]}, "beyond its end"),
    ],
)
def test_trees_with_a_fault_are_refused(changes: dict[str, object], reason: str) -> None:
    sent = np.triu(np.ones((3, 3), dtype=np.int64), 1)
    problem = problem_on(application_of(sent), [3], wrap=False)
    listed = np.array(changes.pop("nodes", [2, 0, 0]), dtype=np.int64)
    fields = {"guests": [[1, 0, 2]], "hosts": [[2, 1, 0]], "size": 3, "nodes": packed(listed)}
    with pytest.raises(RefusedError, match=reason):
        proven(problem, TreeCertificate.model_validate(fields | changes))


def test_a_tree_proves_no_more_than_there_is() -> None:
    """Asked for more than the optimum the solver has no tree, and a cut one proves less."""
    problem = problem_on(random_graph(np.random.default_rng(8), 5, 12), [2, 3], wrap=False)
    small, least = small_problem(problem), optimum_of(problem)
    assert small is not None
    tree = proof_tree(small, least + small.unit)
    assert tree is not None
    assert proven(problem, tree) == least


# ---- Packed integers ----------------------------------------------------------------------------


@pytest.mark.parametrize("most", [0, 1, 127, 128, 1 << 15, 1 << 40, (1 << 62) - 1])
def test_packed_integers_come_back(most: int) -> None:
    numbers = np.random.default_rng(most & 7).integers(-most, most + 1, size=50)
    again = unpacked(packed(numbers), 50, "numbers")
    assert (again == numbers).all()


@pytest.mark.parametrize(
    "text", ["", "x", "eJw=", "AAAA", packed(np.zeros(4, dtype=np.int64)).text]
)
def test_what_is_not_a_packed_list_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="numbers"):
        unpacked(Packed(width=1, text=text), 3, "numbers")
