"""A queue allocated on a tree: the result document, its text, and the registry of methods."""

from __future__ import annotations

import random

import pytest

from topoplace.certify import check_document
from topoplace.errors import InputError
from topoplace.placement.switches.problem import TreeProblem
from topoplace.report.summary import summary
from topoplace.result import Proof, Status
from topoplace.result.tree import AllocationResult
from topoplace.snapshot.hierarchy_state import HierarchyState, prepare_contention
from topoplace.snapshot.schema import Communication, Pattern, PatternUse
from topoplace.solving import Options, Outcome, methods, register, result_of, solve
from tree_cases import HEURISTICS, model_of, snapshot_on, uses

RD = uses(Pattern.RECURSIVE_DOUBLING)
STRICT, NONE = Communication.STRICT, Communication.NONE


def random_state(rng: random.Random) -> HierarchyState:
    """Return a prepared snapshot with running jobs and a queue on two levels of switches."""
    machine = model_of([rng.randint(1, 6) for _ in range(rng.randint(1, 5))])
    tree = prepare_contention(snapshot_on(machine)).machine
    names = rng.sample(tree.host_names, rng.randint(0, tree.num_nodes // 2))
    running = [(name, rng.choice([STRICT, NONE])) for name in names]
    queue = [
        (rng.randint(1, tree.num_nodes), uses(*rng.sample(list(Pattern), rng.randint(0, 2))))
        for _ in range(rng.randint(0, 4))
    ]
    return prepare_contention(snapshot_on(machine, running, queue))


@pytest.mark.parametrize("name", HEURISTICS)
def test_results_are_sound(name: str) -> None:
    for seed in range(25):
        state = random_state(random.Random(seed))
        result = solve(state, name, Options(seed=seed))
        assert AllocationResult.model_validate_json(result.model_dump_json()) == result
        assert [level.name for level in result.levels] == ["nodes", "cost"]
        assert {level.status for level in result.levels} == {Status.FEASIBLE}
        assert {level.proof for level in result.levels} == {Proof.NONE}
        assert all(level.bound is None for level in result.levels)
        assert result.solution is not None
        assert check_document(result).holds
        found = result.solution.allocations
        assert result.objective == sum(len(allocation.nodes) for allocation in found)
        # With one root whatever fits in the free nodes fits.
        left = int(state.free.sum()) - result.objective
        started = {allocation.request for allocation in found}
        assert all(r.nodes > left for r in state.requests if r.id not in started)


def test_random_is_by_seed() -> None:
    state = prepare_contention(snapshot_on(model_of([9, 9]), queue=[(8, RD)]))
    by_seed = [solve(state, "random", Options(seed=seed)).solution for seed in (1, 1, 2)]
    assert by_seed[0] == by_seed[1] != by_seed[2]


def test_requests_that_do_not_fit_are_skipped_and_later_ones_see_earlier_ones() -> None:
    queue = [(3, RD), (6, RD), (4, RD)]
    state = prepare_contention(snapshot_on(model_of([4, 4]), [("n7", STRICT)], queue))
    result = solve(state, "default")
    assert result.solution is not None
    found = {a.request: a.nodes for a in result.solution.allocations}
    assert found == {"q0": ["n4", "n5", "n6"], "q2": ["n0", "n1", "n2", "n3"]}
    text = summary(result)
    assert "started 2 of 3 requests, 7 nodes" in text
    assert "q1 waits: it fits alone, but not alongside the started jobs" in text
    cost = result.solution.cost
    assert f"total cost {cost.numerator}" in text
    assert "n[4-6]" in text


def test_summary_shows_fractions() -> None:
    thirds = [PatternUse(pattern=Pattern.RING, share=33)]
    state = prepare_contention(snapshot_on(model_of([3] * 11), queue=[(31, thirds)]))
    result = solve(state, "balanced")
    assert result.solution is not None
    cost = result.solution.cost
    text = summary(result)
    assert cost.denominator > 1
    assert f"= {cost.numerator}/{cost.denominator}" in text
    assert f"{cost.numerator / cost.denominator:,.3f}" in text
    assert text.endswith("  n[0-30]")


def test_no_solution_is_unknown() -> None:
    problem = TreeProblem(prepare_contention(snapshot_on(model_of([2]), queue=[(1, RD)])))
    result = result_of(problem, Outcome(None, time_limit_hit=True), "x", Options(), 0.0)
    assert result.status is Status.UNKNOWN
    assert result.objective is result.solution is None
    assert "nothing found that starts any of the 1 request" in summary(result)


def test_registry() -> None:
    assert set(HEURISTICS) <= set(methods("allocation"))
    state = prepare_contention(snapshot_on(model_of([2])))
    with pytest.raises(InputError, match=r"default.*found 'best'"):
        solve(state, "best")
    with pytest.raises(ValueError, match="registered already"):
        register("allocation", "default", "again")(
            lambda problem, options: pytest.fail("not to be run")
        )
