"""Comparisons: every result against the best bound that holds for it, and ranks of methods."""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import topoplace.solving.registry as known
from baseline_instances import grid, problem_on, random_graph
from small_snapshot import small_document
from topoplace.errors import InputError, TopoplaceError
from topoplace.placement.outcome import Scattered
from topoplace.placement.problem import PlacementProblem
from topoplace.report.table import comparison_csv
from topoplace.report.text import gap_text
from topoplace.result import Interference, Leaf, Proof
from topoplace.snapshot import Snapshot, prepare
from topoplace.snapshot.files import write_document
from topoplace.snapshot.schema import Pattern
from topoplace.snapshot.tree_state import prepare_tree
from topoplace.solving import Bound, Options, Outcome, solve
from topoplace.study.case import AnyResult, Case, load_case, load_cases, load_document, state_of
from topoplace.study.compare import compare
from topoplace.study.ranking import (
    Figure,
    Row,
    by_instance,
    performance_profile,
    ranks,
    ratios,
    summaries,
)
from tree_cases import model_of, snapshot_on, uses


def small(**changes: Any) -> Case:
    return Case(prepare(Snapshot.model_validate(small_document() | changes)))


def tree() -> Case:
    pattern = uses(Pattern.RECURSIVE_DOUBLING)
    return Case(prepare_tree(snapshot_on(model_of([4, 4, 4]), [], [(4, pattern), (3, pattern)])))


def mapping() -> Case:
    return Case(problem_on(grid((4, 4)), [4, 4]))


def solved(case: Case, method: str, **options: Any) -> AnyResult:
    return solve(case.state, method, Options(**options))


def claiming(result: AnyResult, *bounds: int, proof: Proof = Proof.CERTIFICATE) -> AnyResult:
    """Return a result whose levels claim bounds."""
    number = type(result.levels[0].objective)
    levels = [
        level.model_copy(
            update={
                "bound": bound if number is int else number(numerator=bound, denominator=1),
                "proof": proof,
            }
        )
        for level, bound in zip(result.levels, bounds, strict=False)
    ]
    return result.model_copy(
        update={"levels": [*levels, *result.levels[len(levels) :]], "method": "sure"}
    )


@pytest.fixture
def bounds(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Register methods that start nothing (or all, scattered) and claim the bounds given."""
    claimed: dict[str, int] = {}
    known.methods("placement")
    monkeypatch.setattr(known, "_METHODS", dict(known._METHODS))

    def register(name: str) -> None:
        @known.register("placement", name, "a bound and no placement")
        def solver(problem: PlacementProblem, options: Options) -> Outcome:
            return Outcome([], (Bound(claimed[name], Leaf(scale=1, router_prices="0*48")),))

    register("loose")
    register("tight")

    @known.register("placement", "sprinkled", "on the last usable nodes", uses_prisms=False)
    def sprinkled(problem: PlacementProblem, options: Options) -> Outcome:
        state = problem.state
        started, taken = [], state.usable.copy()
        for idx, request in enumerate(problem.requests):
            fits = (taken & (state.node_class == request.class_idx)).nonzero()[0]
            nodes = fits[-request.nodes :]
            taken[nodes] = False
            started.append(Scattered(idx, nodes))
        return Outcome(started)

    return claimed


def test_gaps_are_to_the_best_certified_bound_of_all(bounds: dict[str, int]) -> None:
    bounds.update(loose=40, tight=20)
    rows = {r.method: r for r in compare([small()], ["loose", "first-fit", "tight"]).rows}
    assert list(rows) == ["loose", "first-fit", "tight"]
    assert {row.decider.bound for row in rows.values()} == {20}
    assert rows["first-fit"].decider.objective == 16
    assert rows["first-fit"].gap == pytest.approx(4 / 16)
    assert rows["loose"].gap == 20  # nothing started: relative to 1
    assert rows["first-fit"].facts == {"started": 3, "queued": 3, "shared": 0}


def test_a_scattered_method_is_marked_and_may_beat_the_bound(bounds: dict[str, int]) -> None:
    bounds.update(tight=8)
    found = compare([small()], ["sprinkled", "tight"])
    row = found.rows[0]
    assert (row.conforming, row.rank, row.gap) == (False, None, pytest.approx(-8 / 16))
    assert "sprinkled *" in str(found)
    assert "tight *" not in str(found)
    assert "does not obey" in str(found)


def test_results_of_one_instance_meet_wherever_they_come_from(tmp_path: Path) -> None:
    case = small()
    first, exact = solved(case, "first-fit"), solved(case, "exact", time_limit=5)
    (tmp_path / "deep").mkdir()
    write_document(tmp_path / "b.json", first)
    write_document(tmp_path / "deep" / "a.json", exact)
    write_document(tmp_path / "deep" / "same.json", first)
    write_document(tmp_path / "deep" / "slow.json", first.model_copy(update={"seconds": 77.0}))
    write_document(tmp_path / "other.json", small(name="small", down="8").instance)
    (tmp_path / "table.json").write_text('{"schema": "topoplace.batch/1"}')
    cases, notes = load_cases([tmp_path])
    assert notes == [f"{tmp_path}: skipped 1 of other kinds: table.json"]
    found = compare(cases, [])
    assert [row.method for row in found.rows] == ["first-fit", "exact", "first-fit #2"]
    assert {row.decider.bound for row in found.rows} == {exact.bound}
    assert found.notes == ("small: no result, and no method that ran on it",)
    # A result stands for its method; of another rule it is in a group of its own, without bounds.
    found = compare([load_case(tmp_path / "b.json")], ["first-fit"])
    assert [row.seconds for row in found.rows] == [first.seconds]
    assert found.notes == ("no bound for small: add the method exact, or a result of it",)
    options = Options(interference=Interference.OFF)
    rows = compare([dataclasses.replace(case, results=(exact,))], ["first-fit"], options).rows
    assert [(row.interference, row.decider.bound) for row in rows] == [
        ("strict", exact.bound),
        ("off", None),
    ]


def test_later_bounds_hold_among_equals_only() -> None:
    case = small()
    first = solved(case, "first-fit")
    best, shape = first.objective, first.levels[1].objective
    assert best is not None
    nothing = solved(small(queue=[]), "first-fit").levels
    less = first.model_copy(update={"levels": nothing, "method": "less", "objective": 0})
    sure = claiming(first, best, shape + 1)
    rows = compare([dataclasses.replace(case, results=(first, less, sure))], []).rows
    assert [[level.bound for level in row.levels[:2]] for row in rows] == [
        [best, shape + 1],
        [best, None],
        [best, shape + 1],
    ]
    with pytest.raises(TopoplaceError, match=r"first-fit reaches \d+ shape, better .* report this"):
        compare([dataclasses.replace(case, results=(first, claiming(first, best, shape - 1)))], [])


@pytest.mark.parametrize("make", [small, tree, mapping])
def test_an_answer_beyond_a_proven_bound_is_an_error(make: Any) -> None:
    case = make()
    result = solved(case, "first-fit" if case.kind == "placement" else "greedy")
    wrong = {"placement": (8,), "allocation": (7, 1000), "mapping": (1000,)}[case.kind]
    for proof in (Proof.CERTIFICATE, Proof.SEARCH):
        bent = dataclasses.replace(case, results=(result, claiming(result, *wrong, proof=proof)))
        with pytest.raises(
            TopoplaceError, match="that a method claims to have proved; please report"
        ):
            compare([bent], [])


def test_a_bound_by_search_is_shared_only_where_none_is_certified() -> None:
    case = mapping()
    result = solved(case, "greedy")
    best = result.objective
    assert best is not None
    plain = claiming(result, 0, proof=Proof.NONE).model_copy(update={"method": "plain"})
    sure = claiming(result, best, proof=Proof.SEARCH)
    weak = claiming(result, 1).model_copy(update={"method": "weak"})
    for results, bounds in (((plain, sure), [best, best]), ((plain, weak, sure), [1, 1, best])):
        found = compare([dataclasses.replace(case, results=results)], [])
        assert [row.decider.bound for row in found.rows] == bounds
        assert "search" in str(found)


def test_problems_of_all_kinds_in_one_call() -> None:
    kept = []
    found = compare(
        [mapping(), tree(), small(), tree()],
        ["default", "fold-2d", "greedy", "first-fit"],
        Options(time_limit=2),
        lambda row, result, state: kept.append((row.method, result.method, state)),
    )
    assert [row.method for row in found.rows if row.status != "unsuited"] == [k[0] for k in kept]
    assert all(mine == theirs for mine, theirs, _ in kept)
    assert [[row.method for row in rows] for rows in found.by_problem] == [
        ["default", "greedy", "fold-2d"],
        ["default", "greedy"],
        ["first-fit"],
    ]
    of_mapping, of_tree, of_torus = found.by_problem
    refused = of_mapping[2]
    assert (refused.status, refused.seconds, refused.rank) == ("unsuited", None, None)
    assert isinstance(of_tree[0].decider.objective, Fraction)
    assert of_torus[0].decider.name == "nodes"
    assert any("fold-2d: machine: expected" in note for note in found.notes)
    document = found.document()
    assert document["schema"] == "topoplace.comparison/2"
    assert [row["problem"] for row in document["rows"]] == [row.problem for row in found.rows]
    assert comparison_csv(found).count("\n") == 1 + len(found.rows)
    assert all(name in str(found) for name in ("max hops", "hop-bytes", "cost", "shared"))


def test_default_methods() -> None:
    asked = Options(time_limit=0.2)
    names = [row.method for row in compare([small()], options=asked).rows]
    assert names == [name for name in known.methods("placement") if name != "minizinc"]
    graph = Case(problem_on(random_graph(np.random.default_rng(3), 6, 12), [2, 3]))
    rows = compare([graph], options=asked).rows
    names = [row.method for row in rows]
    assert {"exact", "greedy"} <= set(names)
    assert not {"auto", "scotch", "pencils"} & set(names)
    least = min(row.decider.objective for row in rows if row.decider.objective is not None)
    assert {row.decider.objective for row in rows if row.rank == 1} == {least}


@pytest.mark.parametrize(
    ("methods", "told"),
    [
        (["first-fit", "nonesuch"], "nonesuch"),
        (["first-fit", "first-fit"], "each method once"),
        ([], "methods to run, or results"),
    ],
)
def test_methods_that_make_no_sense(methods: list[str], told: str) -> None:
    with pytest.raises(InputError, match=told):
        compare([small()], methods)


def test_documents_of_all_kinds_load(tmp_path: Path) -> None:
    for case, method in ((small(), "first-fit"), (tree(), "default"), (mapping(), "default")):
        result = solved(case, method)
        for document in (case.instance, result):
            path = tmp_path / "d.json"
            write_document(path, document)
            for source in (path, document.model_dump(mode="json", by_alias=True)):
                loaded = load_case(source)
                assert type(loaded.state) is type(case.state)
                assert loaded.sha256 == case.sha256
        assert load_document(path) == result
        assert type(state_of(result)) is type(case.state)
    assert isinstance(load_case("tiny_features"), Case)
    with pytest.raises(InputError, match="expected a document of JSON values"):
        load_document({"schema": Path()})
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="a folder of instances or results"):
        load_cases([tmp_path / "empty"])


def test_ranks_and_performance_ratios() -> None:
    assert ranks([(3,), (1,), None, (1,), (2,)]) == [4, 1, None, 1, 3]
    assert ranks([(-8, 5), (-9, 7), (-9, 6)]) == [3, 2, 1]
    assert ratios([4, 5, None, 8]) == [1.0, 1.25, None, 2.0]
    assert ratios([8, 10, 0], larger_is_better=True) == [1.25, 1.0, None]
    assert ratios([0, 0, 3]) == [1.0, 1.0, None]
    assert ratios([None, None]) == [None, None]


def test_a_profile_counts_failures_among_the_instances() -> None:
    assert performance_profile([1.0, 2.0, None, 1.0]) == [(1.0, 0.5), (2.0, 0.75)]
    assert performance_profile([None]) == []


def test_rows_part_by_instance_and_sum_up_by_method() -> None:
    def row(sha256: str, method: str, gap: float | None, rank: int | None) -> Row:
        level = Figure("nodes", "max", 10, 12, gap, Proof.CERTIFICATE)
        fits = rank is not None
        return Row("placement", "a", sha256, "strict", method, "", 0.5, fits, (level,), 0, {}, rank)

    rows = [
        row("1", "m", 0.1, 1),
        row("2", "m", 0.3, 2),  # another instance of the same name
        row("1", "star", -0.5, None),
        row("3", "m", None, 1),
    ]
    assert [len(group) for group in by_instance(rows)] == [2, 1, 1]
    best, star = summaries(rows)
    assert (best.instances, best.wins, best.mean_rank) == (3, 2, pytest.approx(4 / 3))
    assert (best.median_gap, best.largest_gap) == (pytest.approx(0.2), 0.3)
    assert (star.ranked, star.wins, star.mean_rank, star.median_gap) == (0, 0, None, None)


@pytest.mark.parametrize(
    ("gap", "text"),
    [(None, "-"), (0.0, "0.00 %"), (1e-9, "< 0.01 %"), (0.0123, "1.23 %"), (-0.5, "-50.00 %")],
)
def test_gap_text(gap: float | None, text: str) -> None:
    assert gap_text(gap) == text
