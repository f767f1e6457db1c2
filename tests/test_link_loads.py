"""Bounds on the largest link load, against all mappings; and how long a phase takes."""

from __future__ import annotations

import itertools
from collections import Counter
from fractions import Fraction

import pytest

import topoplace as tp
from baseline_instances import problem_on
from link_cases import least_load, ways_of_objects
from tiny_objects import tiny_objects
from topoplace.certify import check_document
from topoplace.certify.mapping.links import Guests, link_load
from topoplace.certify.objects.instance import read_objects
from topoplace.cli import run
from topoplace.errors import InputError
from topoplace.mapping.bounds.star import star_bound
from topoplace.mapping.link_bounds import (
    bisected,
    inside_bound,
    link_load_of,
    loaded,
    mean_bound,
    reachable,
    task_bound,
)
from topoplace.mapping.objects.bounds import shares_bound
from topoplace.mapping.objects.problem import ObjectsProblem
from topoplace.mapping.problem import MappingProblem
from topoplace.solving import Bound, Options, Outcome, solve


def require_bounds(
    problem: MappingProblem | ObjectsProblem,
    guests: Guests,
    hop_bytes: Bound | None,
    least: Fraction,
) -> Counter[str]:
    """Require of every kind of bound that it holds and that the checker finds the same."""
    view, tight = loaded(problem), Counter[str]()
    assert view is not None
    found = [mean_bound(view, hop_bytes), task_bound(view), inside_bound(view), bisected(problem)]
    for bound in found:
        if bound is None or bound.certificate is None:
            continue
        value = reachable(view, Fraction(bound.value))
        proven = link_load(guests, bound.certificate, lambda: int(hop_bytes.value))  # type: ignore[union-attr]
        assert max(Fraction(0), value) == max(Fraction(0), proven), (problem.instance, bound)
        assert value <= least, (problem.instance, bound, least)
        certificate = bound.certificate
        kind = getattr(certificate, "crossing", certificate).kind
        tight[kind] += 1
        tight[f"{kind} tight"] += value == least > 0
    return tight


def test_no_bound_of_objects_is_above_the_least_of_all_mappings() -> None:
    seen: Counter[str] = Counter()
    for seed in range(3000, 3160):
        try:
            problem = tiny_objects(seed, trees=seed >= 3120)
        except InputError:  # no room for what is fixed
            continue
        ways = ways_of_objects(problem)
        least = least_load(problem.torus, problem.graph, ways, problem.instance.trees)
        if least is None or loaded(problem) is None:
            continue
        own = read_objects(problem.instance)
        guests = Guests(own.plain, own.loads, own.room, own.total, own.unit)
        seen += require_bounds(problem, guests, shares_bound(problem), least)
    for kind in ("mean", "task", "spectral"):
        assert seen[kind] > 50, seen
        assert seen[f"{kind} tight"], seen


def all_to_all(num: int) -> MappingProblem:
    pairs = [(a, b, 1) for a, b in itertools.permutations(range(num), 2)]
    return problem_on(tp.graph(pairs), [num], wrap=[False])


def test_by_hand() -> None:
    """All to all on a line of 8: 16 bytes each way through the middle, 12 a link in the mean."""
    problem = all_to_all(8)
    view = loaded(problem)
    assert view is not None
    mean = mean_bound(view, Bound(168, object()))
    cut = bisected(problem)
    assert (mean and mean.value, cut and cut.value) == (12, 16)
    star = problem_on(tp.graph([(0, k, 6) for k in range(1, 8)]), [2, 2, 2])
    seen = loaded(star)
    assert seen is not None
    found = task_bound(seen)
    assert found is not None
    assert found.value == Fraction(42, 3)  # in a ring of two there is one way out


def test_machines_without_links_have_no_link_load() -> None:
    result = tp.map(tp.grid(2, 2), "tree:2x2", "default")
    assert result.link_load is None
    claimed = tp.map(tp.grid(2, 2), "torus:2x2", "default").link_load
    assert claimed is not None
    assert not check_document(result.model_copy(update={"link_load": claimed})).holds
    with pytest.raises(InputError, match="torus or mesh"):
        tp.phase_time(result)


# ---- Phases --------------------------------------------------------------------------------------


def test_a_phase_is_no_shorter_than_the_most_loaded_link_takes() -> None:
    result = tp.map(tp.grid(4, 4), "mesh:2x8", "random-blocks", seed=3)
    assert result.solution is not None
    load = result.solution.figures.max_link_load
    assert load is not None
    time = tp.phase_time(result)
    assert time >= load.numerator / load.denominator
    assert time <= result.objective / 1  # type: ignore[operator]


def test_figures_from_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    given = ["map", "--grid", "4x2", "--on", "mesh:2x2:2", "--method", "default", "--figures"]
    assert run(given) == 0
    said = capsys.readouterr().out
    assert "in any mapping (" in said
    assert "all messages at once: about " in said


def test_the_best_bound_is_in_the_result() -> None:
    problem = all_to_all(8)
    result = solve(problem, "search", Options(time_limit=1.0))
    assert result.link_load is not None
    assert result.link_load.bound.numerator == 16
    quick = link_load_of(problem, Outcome(None, (star_bound(problem),)))
    assert quick is not None
    assert quick.bound.numerator < 16
