"""Ranks, performance ratios and profiles, and comparisons of mappings that use them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from baseline_instances import grid, problem_on, random_graph
from comparison_rows import row
from topoplace.snapshot.files import write_document
from topoplace.solving import Options, solve
from topoplace.study.compare_mapping import compare_mapping_files, compare_mappings
from topoplace.study.mapping_subject import MappingSubject
from topoplace.study.ranking import by_instance, performance_profile, ranks, ratios, summaries


def test_ties_share_the_better_rank() -> None:
    assert ranks([(3,), (1,), None, (1,), (2,)]) == [4, 1, None, 1, 3]
    assert ranks([(-8, 5), (-9, 7), (-9, 6)]) == [3, 2, 1]
    assert ranks([None]) == [None]


def test_performance_ratios() -> None:
    assert ratios([4, 5, None, 8]) == [1.0, 1.25, None, 2.0]
    assert ratios([8, 10, 0], larger_is_better=True) == [1.25, 1.0, None]
    assert ratios([0, 0, 3]) == [1.0, 1.0, None]
    assert ratios([None, None]) == [None, None]


def test_a_profile_counts_failures_among_the_instances() -> None:
    assert performance_profile([1.0, 2.0, None, 1.0]) == [(1.0, 0.5), (2.0, 0.75)]
    assert performance_profile([None]) == []


def test_rows_part_by_instance_and_sum_up_by_method() -> None:
    rows = [
        row("a", "m", 0.1, 1),
        row("a", "star", -0.5, None),
        row("a", "m", 0.3, 2),  # another instance of the same name
        row("b", "m", None, 1),
    ]
    assert [len(group) for group in by_instance(rows)] == [2, 1, 1]
    best, star = summaries(rows)
    assert (best.instances, best.wins, best.mean_rank) == (3, 2, pytest.approx(4 / 3))
    assert (best.median_gap, best.largest_gap) == (pytest.approx(0.2), 0.3)
    assert (star.ranked, star.wins, star.mean_rank, star.median_gap) == (0, 0, None, None)


def test_default_mapping_methods_suit_the_application() -> None:
    problem = problem_on(random_graph(np.random.default_rng(3), 6, 12), [2, 3])
    seen: list[str] = []
    rows = compare_mappings(
        [MappingSubject(problem)],
        options=Options(time_limit=0.2),
        keep=lambda result, _: seen.append(result.method),
    )
    assert [entry.method for entry in rows if entry.status != "unsuited"] == seen
    assert {"exact", "greedy"} <= set(seen)
    assert not {"auto", "scotch", "pencils"} & {entry.method for entry in rows}
    assert rows[0].bound is not None
    assert {entry.objective for entry in rows if entry.rank == 1} == {
        min(entry.objective for entry in rows if entry.objective is not None)
    }


def test_a_mapping_result_stands_for_its_method(tmp_path: Path) -> None:
    result = solve(problem_on(grid((4, 4)), [4, 4]), "default")
    write_document(tmp_path / "r.json", result.model_copy(update={"seconds": 77.0}))
    rows = compare_mapping_files([tmp_path / "r.json"], ["default", "greedy"])
    assert [(entry.method, entry.seconds == 77.0) for entry in rows] == [
        ("default", True),
        ("greedy", False),
    ]
