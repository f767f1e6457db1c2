"""The checker of allocations accepts what is right; `test_mutants` has what it rejects."""

from __future__ import annotations

from pathlib import Path

import pytest

from topoplace.certify import check_document, check_file
from topoplace.certify.switches.instance import steps_of
from topoplace.snapshot.schema import Pattern
from topoplace.solving import solve
from tree_brute_force import steps_of as slow_steps
from tree_cases import HEURISTICS
from tree_exact_cases import solved, tiny_state


def test_right_results_hold() -> None:
    for seed in range(30):
        state = tiny_state(seed, most_ranks=5, num_requests=2)
        for name in HEURISTICS:
            report = check_document(solve(state, name))
            assert report.holds, (seed, name, report.failures)


@pytest.mark.parametrize("pattern", list(Pattern))
def test_steps_of_the_checker(pattern: Pattern) -> None:
    for ranks in range(1, 41):
        found = [(sorted(pairs), weight) for pairs, weight in steps_of(pattern, ranks)]
        assert found == [(sorted(p), weight) for p, weight in slow_steps(pattern, ranks)]


def test_file_of_an_allocation_is_checked(tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    result = solved(tiny_state(1, most_ranks=4))
    file.write_text(result.model_dump_json(), encoding="utf-8")
    assert check_file(file).holds
