"""The exact method on the shipped snapshots of a Blue Waters-size machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from few import few_of
from topoplace.certify import check_document
from topoplace.result import PlacementResult, Proof, Status
from topoplace.snapshot.machines import load_snapshot
from topoplace.solving import Options, solve

OPEN = pytest.mark.xfail(reason='a target not reached yet: docs/develop/benchmarks.md, "Open"')
SNAPSHOTS = Path(__file__).resolve().parent.parent / "instances" / "snapshots"


def placed(label: str, time_limit: float | None = None) -> PlacementResult:
    state = load_snapshot(SNAPSHOTS / f"blue_waters_{label}.json")
    return solve(state, "exact", Options(time_limit=time_limit, first_level=time_limit is None))


@pytest.mark.parametrize("label", few_of(["80", "70", "60", "50"], 2))  # the README has 60
def test_optimal_with_a_certificate_the_checker_accepts(label: str) -> None:
    result = placed(label)
    assert (result.status, result.proof, result.gap) == (Status.OPTIMAL, Proof.CERTIFICATE, 0)
    report = check_document(result)
    assert report.holds, report


@pytest.mark.slow
@pytest.mark.parametrize(
    ("label", "time_limit", "gap"),
    [
        pytest.param("50", 120, 0.01),
        pytest.param("40", 120, 0.01),
        pytest.param("30", 120, 0.01),
        pytest.param("20", 120, 0.01, marks=OPEN),
        pytest.param("empty", 300, 0.03),
    ],
)
def test_gap_within_the_time_limit(label: str, time_limit: float, gap: float) -> None:
    result = placed(label, time_limit)
    assert result.proof is Proof.CERTIFICATE
    assert result.gap is not None
    assert result.gap <= gap
    assert check_document(result).holds
