"""Comparisons: every result against the best bound that holds for it, and ranks of methods."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import topoplace as tp
from baseline_instances import grid, problem_on, random_graph
from small_snapshot import small_document, write_small
from topoplace.cli import run
from topoplace.errors import InputError, TopoplaceError
from topoplace.report.studies import comparison_csv
from topoplace.report.text import gap_text
from topoplace.result import Interference, Proof
from topoplace.result.reading import AnyResult
from topoplace.snapshot.files import write_document
from topoplace.snapshot.hierarchy_state import prepare_contention
from topoplace.snapshot.schema import Pattern, Snapshot
from topoplace.snapshot.state import prepare
from topoplace.solving import Options, method_names, solve
from topoplace.study import ranking
from topoplace.study.case import Case, load_case, load_cases, load_document
from topoplace.study.compare import Comparison, compare
from tree_cases import model_of, snapshot_on, uses


def small(**changes: Any) -> Case:
    return Case(prepare(Snapshot.model_validate(small_document() | changes)))


def tree() -> Case:
    pattern = uses(Pattern.RECURSIVE_DOUBLING)
    return Case(
        prepare_contention(snapshot_on(model_of([4, 4, 4]), [], [(4, pattern), (3, pattern)]))
    )


def mapping() -> Case:
    return Case(problem_on(grid((4, 4)), [4, 4]))


def solved(case: Case, method: str, **options: Any) -> AnyResult:
    return solve(case.state, method, Options(**options))


def claiming(result: AnyResult, *bounds: int, proof: Proof = Proof.CERTIFICATE) -> AnyResult:
    """Return a result whose levels claim bounds, whoever proved them."""
    levels = list(result.levels)
    for k, bound in enumerate(bounds):
        number = type(levels[k].objective)
        value = bound if number is int else number(numerator=bound, denominator=1)
        levels[k] = levels[k].model_copy(update={"bound": value, "proof": proof})
    return result.model_copy(update={"levels": levels})


def held(case: Case, *results: AnyResult) -> Comparison:
    """Hold results of a case against each other."""
    return compare([replace(case, results=results)], [])


def bounds_of(comparison: Comparison, k: int) -> list[Any]:
    return [row.levels[k].bound for row in comparison.rows]


def test_gaps_are_to_the_best_bound_that_is_certified() -> None:
    case = small()
    first, scattered = solved(case, "first-fit"), solved(case, "random-nodes")
    found = held(case, claiming(first, 40), first, claiming(first, 20), scattered)
    assert bounds_of(found, 0) == [20] * 4
    assert [row.gap for row in found.rows] == [4 / 16] * 4
    assert [row.rank for row in found.rows] == [1, 1, 1, None]
    assert found.rows[0].facts == {"started": 3, "queued": 3, "shared": 0}
    # What obeys no rule may beat a bound, and is marked.
    found = held(case, claiming(scattered, 8))
    assert found.rows[0].gap == -8 / 16
    assert "random-nodes *" in str(found)
    assert "does not obey" in str(found)


def test_a_bound_by_search_is_shared_only_where_none_is_certified() -> None:
    case = mapping()
    plain = claiming(solved(case, "greedy"), 0, proof=Proof.NONE)
    best = plain.objective
    assert best is not None
    sure, weak = claiming(plain, best, proof=Proof.SEARCH), claiming(plain, 1)
    for results, bounds in (((plain, sure), [best, best]), ((plain, weak, sure), [1, 1, best])):
        found = held(case, *results)
        assert bounds_of(found, 0) == bounds
        assert "search" in str(found)


def test_later_bounds_hold_among_equals_only() -> None:
    case = small()
    first = solved(case, "first-fit")
    best, shape = (level.objective for level in first.levels[:2])
    less = first.model_copy(update={"levels": solved(small(queue=[]), "first-fit").levels})
    found = held(case, first, less, claiming(first, best, shape + 1))
    assert bounds_of(found, 0) == [best] * 3
    assert bounds_of(found, 1) == [shape + 1, None, shape + 1]
    with pytest.raises(TopoplaceError, match=r"first-fit reaches \d+ shape, better .* report this"):
        held(case, first, claiming(first, best, shape - 1))


@pytest.mark.parametrize("proof", [Proof.CERTIFICATE, Proof.SEARCH])
@pytest.mark.parametrize(
    ("make", "wrong"),
    [(small, (8,)), (tree, (7, 1000)), (mapping, (1000,))],
    ids=["torus", "tree", "mapping"],
)
def test_an_answer_beyond_a_proven_bound_is_an_error(make: Any, wrong: Any, proof: Proof) -> None:
    case = make()
    result = solved(case, "first-fit" if make is small else "greedy")
    with pytest.raises(TopoplaceError, match="claims to have proved; please report this"):
        held(case, result, claiming(result, *wrong, proof=proof))


def test_results_of_one_instance_meet_wherever_they_come_from(tmp_path: Path) -> None:
    case = small()
    first, exact = solved(case, "first-fit"), solved(case, "exact", time_limit=5)
    (tmp_path / "deep").mkdir()
    slow = first.model_copy(update={"seconds": 77.0})
    for name, document in (("b", first), ("deep/a", exact), ("deep/same", first), ("slow", slow)):
        write_document(tmp_path / f"{name}.json", document)
    write_document(tmp_path / "other.json", small(down="8").instance)  # of the same name
    (tmp_path / "table.json").write_text('{"schema": "topoplace.batch/1"}')
    cases, notes = load_cases([tmp_path])
    assert notes == [f"{tmp_path}: skipped 1 of other kinds: table.json"]
    found = compare(cases, [])
    assert [row.method for row in found.rows] == ["first-fit", "exact", "first-fit #2"]
    assert bounds_of(found, 0) == [exact.bound] * 3
    assert found.notes == ("small: no result, and no method that ran on it",)
    # A result stands for its method; those of another rule keep to themselves.
    found = compare([load_case(tmp_path / "slow.json")], ["first-fit"])
    assert [row.seconds for row in found.rows] == [77]
    assert found.notes == ("no bound for small: add the method exact, or a result of it",)
    options = Options(interference=Interference.OFF)
    found = compare([replace(case, results=(exact,))], ["first-fit"], options)
    assert [row.label for row in found.rows] == ["small", "small (off)"]
    assert bounds_of(found, 0) == [exact.bound, None]
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="a folder of instances or results"):
        load_cases([tmp_path / "empty"])


def test_problems_of_all_kinds_in_one_call() -> None:
    kept: list[str] = []
    found = compare(
        [mapping(), tree(), small(), tree()],
        ["default", "fold-2d", "greedy", "first-fit"],
        keep=lambda row, result, state: kept.append(result.method),
    )
    assert [row.method for row in found.rows if row.status != "unsuited"] == kept
    assert [[row.method for row in rows] for rows in found.by_problem] == [
        ["default", "greedy", "fold-2d"],
        ["default", "greedy"],
        ["first-fit"],
    ]
    refused = found.rows[2]
    assert (refused.status, refused.seconds, refused.rank) == ("unsuited", None, None)
    assert any("fold-2d: machine: expected" in note for note in found.notes)
    assert isinstance(found.rows[3].decider.objective, Fraction)
    document = found.document()
    assert document["schema"] == "topoplace.comparison/2"
    assert document["rows"][3]["levels"][1]["objective"] == str(found.rows[3].decider.objective)
    assert comparison_csv(found).count("\n") == 1 + len(found.rows)
    assert all(name in str(found) for name in ("max hops", "hop-bytes", "cost", "shared"))


def test_nodes_that_priorities_weigh_are_called_so() -> None:
    queue = [request | {"priority": 2} for request in small_document()["queue"]]
    plain, weighted = (
        compare([small(**changes)], ["first-fit"]) for changes in ({}, {"queue": queue})
    )
    assert "  weighted nodes  bound  " in str(weighted)
    assert "  nodes  bound  " in str(plain)
    assert "weighted" not in str(plain)
    assert [row.weighted for row in plain.rows + weighted.rows] == [False, True]
    assert weighted.document()["rows"][0]["weighted"] is True


def test_default_methods(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise InputError("another instance")

    monkeypatch.setattr("topoplace.study.compare.solve", refuse)
    names = [row.method for row in compare([small()]).rows]
    # two by name alone, the other for anchored prisms
    left_out = ("cp-sat", "minizinc", "slurm-torus3d")
    assert names == [name for name in method_names("placement") if name not in left_out]
    graph = Case(problem_on(random_graph(np.random.default_rng(3), 6, 12), [2, 3]))
    names = [row.method for row in compare([graph]).rows]
    assert {"exact", "greedy"} <= set(names)
    assert not {"auto", "scotch", "pencils"} & set(names)


def test_a_line_says_which_method_is_waited_for_and_how_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    limits = []

    def timed(state: Any, method: Any, options: Options) -> Any:
        limits.append((method.name, options.time_limit))
        return solve(state, method, options)

    monkeypatch.setattr("topoplace.study.compare.solve", timed)
    file = str(write_small(tmp_path))
    assert run(["compare", file]) == 0
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("small: ")]
    most = {name: f", {limit:g} s at most" if limit else "" for name, limit in limits}
    assert said == [
        f"small: {name}, {k} of {len(limits)}{most[name]}" for k, (name, _) in enumerate(limits, 1)
    ]
    assert {name for name, limit in limits if limit is not None} == {"exact"}
    assert most["exact"] == ", 60 s at most"
    told: list[str] = []
    tp.compare(file, methods=["first-fit"], time_limit=3, begin=told.append)
    assert told == ["small: first-fit, 1 of 1, 3 s at most"]
    for quiet in (["--methods", "first-fit"], ["-q"]):
        assert run(["compare", file, *quiet]) == 0
        assert "small: " not in capsys.readouterr().err


@pytest.mark.parametrize("make", [small, tree, mapping])
def test_documents_of_all_kinds_load(make: Any, tmp_path: Path) -> None:
    case, path = make(), tmp_path / "d.json"
    result = solved(case, "first-fit" if make is small else "greedy")
    for document in (case.instance, result):
        write_document(path, document)
        for source in (path, document.model_dump(mode="json"), document):
            loaded = load_case(source)
            assert (type(loaded.state), loaded.sha256) == (type(case.state), case.sha256)
    assert load_document(path) == result
    with pytest.raises(InputError, match="document: levels: expected the levels"):
        load_case(result.model_copy(update={"levels": []}))
    with pytest.raises(InputError, match="expected a document of JSON values"):
        load_document({"schema": path})


def test_ranks_performance_ratios_and_profiles() -> None:
    assert ranking.ranks([(3,), (1,), None, (1,), (2,)]) == [4, 1, None, 1, 3]
    assert ranking.ranks([(-8, 5), (-9, 7), (-9, 6)]) == [3, 2, 1]
    assert ranking.ratios([4, 5, None, 8]) == [1.0, 1.25, None, 2.0]
    assert ranking.ratios([8, 10, 0], larger_is_better=True) == [1.25, 1.0, None]
    assert ranking.ratios([0, 0, 3]) == [1.0, 1.0, None]
    assert ranking.ratios([None, None]) == [None, None]
    assert ranking.performance_profile([1.0, 2.0, None, 1.0]) == [(1.0, 0.5), (2.0, 0.75)]
    assert ranking.performance_profile([None]) == []


def test_rows_part_by_instance_and_sum_up_by_method() -> None:
    row = held(small(), solved(small(), "first-fit")).rows[0]

    def changed(sha256: str, method: str, gap: float | None, rank: int | None) -> ranking.Row:
        levels = (replace(row.levels[0], gap=gap), *row.levels[1:])
        fits = rank is not None
        changes = {"levels": levels, "rank": rank, "conforming": fits, "method": method}
        return replace(row, sha256=sha256, **changes)

    rows = [
        changed("1", "m", 0.1, 1),
        changed("2", "m", 0.3, 2),  # another instance of the same name
        changed("1", "star", -0.5, None),
        changed("3", "m", None, 1),
    ]
    assert [len(group) for group in ranking.by_instance(rows)] == [2, 1, 1]
    best, star = ranking.summaries(rows)
    assert (best.instances, best.wins, best.mean_rank) == (3, 2, pytest.approx(4 / 3))
    assert (best.median_gap, best.largest_gap) == (pytest.approx(0.2), 0.3)
    assert (star.ranked, star.wins, star.mean_rank, star.median_gap) == (0, 0, None, None)


@pytest.mark.parametrize(
    ("gap", "text"),
    [(None, "-"), (0.0, "0.00 %"), (1e-9, "< 0.01 %"), (0.0123, "1.23 %"), (-0.5, "-50.00 %")],
)
def test_gap_text(gap: float | None, text: str) -> None:
    assert gap_text(gap) == text
