"""Comparisons: every method against the best bound that any of them proves."""

from __future__ import annotations

from pathlib import Path

import pytest

import topoplace.solving.registry as known
from small_snapshot import small_document, write_small
from topoplace.errors import InputError, TopoplaceError
from topoplace.placement.outcome import Scattered
from topoplace.placement.problem import PlacementProblem
from topoplace.report.table import comparison_csv, comparison_table
from topoplace.report.text import gap_text
from topoplace.result import Interference, Leaf
from topoplace.snapshot import Snapshot, prepare
from topoplace.snapshot.files import write_document
from topoplace.solving import Bound, Options, Outcome, solve
from topoplace.study.compare import compare, compare_files, rows_document
from topoplace.study.subject import Subject, load_subject


@pytest.fixture
def subject() -> Subject:
    return Subject("small", prepare(Snapshot.model_validate(small_document())))


@pytest.fixture
def bounds(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Register methods that start nothing (or all, scattered) and claim the bounds given."""
    claimed: dict[str, int] = {}
    known.methods("placement")
    monkeypatch.setattr(known, "_METHODS", dict(known._METHODS))

    def claiming(name: str) -> None:
        @known.register("placement", name, "a bound and no placement")
        def solver(problem: PlacementProblem, options: Options) -> Outcome:
            proven = Bound(claimed[name], Leaf(scale=1, router_prices="0*48"))
            return Outcome([], (proven, None, None))

    claiming("loose")
    claiming("tight")

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


def test_gaps_are_to_the_best_bound_of_all_methods(
    subject: Subject, bounds: dict[str, int]
) -> None:
    bounds.update(loose=40, tight=20)
    rows = {r.method: r for r in compare([subject], ["loose", "first-fit", "tight"])}
    assert list(rows) == ["loose", "first-fit", "tight"]
    assert {row.bound for row in rows.values()} == {20}
    assert rows["first-fit"].objective == 16
    assert rows["first-fit"].gap == pytest.approx(4 / 16)
    assert rows["loose"].gap == 20  # nothing started: relative to 1
    assert (rows["first-fit"].jobs_started, rows["first-fit"].jobs_queued) == (3, 3)


def test_without_a_bound_there_is_no_gap(subject: Subject) -> None:
    row = compare([subject], ["first-fit"])[0]
    assert (row.bound, row.gap, row.proof) == (None, None, "none")
    assert rows_document([row])["rows"][0]["gap"] is None


def test_a_scattered_method_is_marked_and_may_beat_the_bound(
    subject: Subject, bounds: dict[str, int]
) -> None:
    bounds.update(tight=8)
    rows = {r.method: r for r in compare([subject], ["sprinkled", "tight"])}
    assert not rows["sprinkled"].conforming
    assert rows["sprinkled"].gap == pytest.approx(-8 / 16)
    table = comparison_table(list(rows.values()))
    assert "sprinkled *" in table
    assert "tight *" not in table
    assert "does not obey" in table


def test_a_conforming_placement_above_a_bound_is_an_error(
    subject: Subject, bounds: dict[str, int]
) -> None:
    bounds.update(tight=8)
    with pytest.raises(TopoplaceError, match="first-fit starts 16"):
        compare([subject], ["first-fit", "tight"])


def test_default_methods_are_all_but_the_reference_model(subject: Subject) -> None:
    names = [row.method for row in compare([subject], options=Options(time_limit=5))]
    assert names == [name for name in known.methods("placement") if name != "minizinc"]


def test_a_result_stands_for_its_method(
    tmp_path: Path, subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = solve(subject.state, "first-fit")
    write_document(tmp_path / "r.json", result)
    assert load_subject(tmp_path / "r.json").result == result
    rows = compare_files([tmp_path / "r.json"], ["first-fit", "best-fit"], Options())
    assert [row.method for row in rows] == ["first-fit", "best-fit"]
    assert rows[0].seconds == result.seconds
    off = Options(interference=Interference.OFF)
    rows = compare_files([tmp_path / "r.json"], ["best-fit"], off)  # another rule: not comparable
    assert [row.method for row in rows] == ["best-fit"]


def test_several_snapshots(tmp_path: Path) -> None:
    snapshot = write_small(tmp_path)
    rows = compare_files([snapshot, snapshot], ["first-fit"], Options())
    assert len(rows) == 2
    assert comparison_csv(rows).count("\n") == 3


def test_an_unknown_method_is_named(subject: Subject) -> None:
    with pytest.raises(InputError, match="nonesuch"):
        compare([subject], ["first-fit", "nonesuch"])


@pytest.mark.parametrize(
    ("gap", "text"),
    [(None, "-"), (0.0, "0.00 %"), (1e-9, "< 0.01 %"), (0.0123, "1.23 %"), (-0.5, "-50.00 %")],
)
def test_gap_text(gap: float | None, text: str) -> None:
    assert gap_text(gap) == text
