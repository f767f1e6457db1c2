"""The exact allocation on trees: against brute force, MiniZinc, and its own parts."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest

from minizinc_cases import WITHOUT, needs_minizinc
from reference_models import model_least_cost
from topoplace.certify import check_document
from topoplace.placement.tree.exact.bounding.structure import CUBES, Family, dims_of
from topoplace.placement.tree.exact.bounding.thresholds import ThresholdSearch
from topoplace.placement.tree.exact.bounding.view import View
from topoplace.placement.tree.exact.job import Job
from topoplace.placement.tree.problem import TreeProblem
from topoplace.result import Proof, Status
from topoplace.snapshot.schema import Communication, Pattern
from topoplace.snapshot.tree_state import TreeState, prepare_tree
from topoplace.solving import Options, solve
from tree_brute_force import least_cost
from tree_cases import HEURISTICS, model_of, snapshot_on, uses
from tree_exact_cases import jobs_of, number, solved, tiny_state

CHUNKS, PER_CHUNK = 15, 21  # 315 trees
FOREVER = 1e18


# ---- Against brute force ----------------------------------------------------------------------


def assert_optimal(state: TreeState, seed: int) -> None:
    expected = least_cost(state)
    result = solved(state)
    nodes, cost = result.levels
    assert (number(nodes.objective), number(cost.objective)) == expected, seed
    assert {nodes.status, cost.status} == {Status.OPTIMAL}, seed
    assert check_document(result).holds, seed


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_equals_brute_force(chunk: int) -> None:
    for seed in range(chunk * PER_CHUNK, (chunk + 1) * PER_CHUNK):
        assert_optimal(tiny_state(seed, most_ranks=6), seed)


@pytest.mark.slow
def test_equals_brute_force_with_more_ranks() -> None:
    for seed in range(1000, 1100):
        assert_optimal(tiny_state(seed, most_ranks=8), seed)


@pytest.mark.parametrize("num_requests", [2, 3])
def test_queue_equals_brute_force(num_requests: int) -> None:
    for seed in range(2000, 2030):
        state = tiny_state(seed, most_ranks=6 - num_requests, num_requests=num_requests)
        assert_optimal(state, seed)


# ---- Against MiniZinc -------------------------------------------------------------------------


def assert_equals_minizinc(seeds: range, most_ranks: int) -> int:
    compared = 0
    for seed in seeds:
        state = tiny_state(seed, most_ranks=most_ranks)
        if state.requests[0].intensive:
            compared += 1
            found = model_least_cost(TreeProblem(state), checked=True)
            result = solved(state)
            assert result.solution is not None
            starts = bool(result.solution.allocations)
            assert found == (number(result.solution.cost) if starts else None), seed
    return compared


@needs_minizinc
def test_equals_minizinc() -> None:
    assert assert_equals_minizinc(range(3000, 3016), 6) >= 12


@needs_minizinc
@pytest.mark.slow
def test_equals_minizinc_often() -> None:
    assert assert_equals_minizinc(range(3100, 3180), 7) >= 50


@needs_minizinc
@pytest.mark.parametrize("left_out", [("redundant",), ("symmetry",), ("redundant", "symmetry")])
def test_minizinc_does_not_depend_on_implied_constraints(left_out: tuple[str, ...]) -> None:
    request = (5, uses(Pattern.RECURSIVE_DOUBLING))
    machine = model_of([3, 3, 3])
    problem = TreeProblem(prepare_tree(snapshot_on(machine, [("n0", STRICT)], [request])))
    definitions = "".join(WITHOUT[name] for name in left_out)
    assert model_least_cost(problem, definitions) == model_least_cost(problem)


STRICT = Communication.STRICT


# ---- The relaxation holds of every allocation -------------------------------------------------


def random_allocation(rng: random.Random, job: Job) -> np.ndarray:
    room = [int(leaf) for leaf in job.domain for _ in range(job.free[leaf])]
    leaf = np.array(rng.sample(room, job.ranks))
    return np.sort(leaf) if rng.random() < 0.5 else leaf


def step_values(job: Job, leaf_of_rank: np.ndarray) -> np.ndarray:
    comm = job.comm + np.bincount(leaf_of_rank, minlength=len(job.comm))
    ends = [leaf_of_rank[step.pairs] for step in job.steps]
    values = [job.model.scaled_hops(e[:, 0], e[:, 1], comm).max() for e in ends]
    found = np.array(values, dtype=np.int64)
    for family in job.families:
        alike = [family.steps[dim] for dim in family.alike]
        found[alike] = np.sort(found[alike])
    return found


def test_every_allocation_satisfies_the_relaxation() -> None:
    seen = 0
    for seed in range(250):
        rng = random.Random(f"relaxation-{seed}")
        state = tiny_state(seed, most_ranks=20)
        for job in jobs_of(state) if state.requests[0].intensive else []:
            for _ in range(3 if job.steps else 0):
                leaf_of_rank = random_allocation(rng, job)
                view = View(job, step_values(job, leaf_of_rank), 1 << 20)
                used = states_used(job, leaf_of_rank)
                assert view.alive[used > 0].all(), seed
                assert all(row @ used >= least for row, least in view.rows()), seed
                for bad, near, other in view.crowds():
                    if used[bad].any() and used[other].any():
                        held = (used * job.states.count)[near].sum()
                        assert held > used[bad].sum(), seed
                seen += 1
    assert seen > 300


def states_used(job: Job, leaf_of_rank: np.ndarray) -> np.ndarray:
    counts = np.bincount(leaf_of_rank, minlength=len(job.comm))
    used = np.zeros(len(job.states.count), dtype=np.int64)
    for t, leaves in enumerate(job.states.leaves):
        for count in counts[leaves][counts[leaves] > 0]:
            used[job.states.first[t] + count - 1] += 1
    return used


def test_bound_alone_never_exceeds_the_optimum() -> None:
    for seed in range(120):
        state = tiny_state(seed, most_ranks=6)
        jobs = [job for job in jobs_of(state) if job.steps] if state.requests[0].intensive else []
        if jobs:
            units = 100 * jobs[0].scale
            bounds = [Fraction(ThresholdSearch(job, FOREVER).bound(1 << 60), units) for job in jobs]
            assert min(bounds) <= least_cost(state)[1], seed


@pytest.mark.parametrize("pattern", list(Pattern))
@pytest.mark.parametrize("ranks", [4, 6, 8, 9])
def test_pairs_within_is_a_bound_and_exact_for_cubes(pattern: Pattern, ranks: int) -> None:
    dims = range(len(dims_of(pattern, ranks)))
    family = Family(CUBES[0] if pattern in CUBES else pattern, ranks, tuple(dims))
    for chosen in (frozenset(dims), frozenset(list(dims)[:1])):
        stated = family.pairs_within(chosen, frozenset())
        most = [0] * (ranks + 1)
        pairs = [pair for dim in chosen for pair in dims_of(pattern, ranks)[dim].tolist()]
        for members in range(1 << ranks):
            held = sum(members >> a & members >> b & 1 for a, b in pairs)
            count = members.bit_count()
            most[count] = max(most[count], held)
        assert (stated >= most).all()
        if family.alike or pattern in (Pattern.RING, Pattern.BINOMIAL):
            assert stated.tolist() == most


# ---- The method -------------------------------------------------------------------------------


def test_never_above_any_algorithm() -> None:
    for seed in range(40):
        rng = random.Random(f"above-{seed}")
        machine = model_of([rng.randint(4, 10) for _ in range(6)])
        tree = prepare_tree(snapshot_on(machine)).tree
        held = [(name, STRICT) for name in rng.sample(tree.node_names, 8)]
        request = (rng.randint(2, 16), uses(rng.choice(list(Pattern))))
        state = prepare_tree(snapshot_on(machine, held, [request]))
        exact = solve(state, "exact", Options(time_limit=0.3)).levels[1]
        assert number(exact.bound) <= number(exact.objective)
        for name in HEURISTICS:
            assert number(exact.objective) <= number(solve(state, name).levels[1].objective)


@pytest.mark.parametrize("seed", range(12))
def test_a_queue_is_never_above_any_algorithm(seed: int) -> None:
    """Also where several requests share the machine and the time is short."""
    state = tiny_state(4000 + seed, most_ranks=8, num_requests=4)
    found = solved(state, 0.2)
    most = number(found.levels[0].objective)
    for name in ("default", "greedy", "balanced", "adaptive", "fewest-domains", "random"):
        other = solve(state, name)
        assert number(other.levels[0].objective) <= most
        if number(other.levels[0].objective) == most:
            assert number(found.levels[1].objective) <= number(other.levels[1].objective)


def test_time_limit_returns_answer_and_bound() -> None:
    request = (100, uses(Pattern.BINOMIAL))
    state = prepare_tree(snapshot_on(model_of([7] * 20), [], [request]))
    cost = solve(state, "exact", Options(time_limit=0.2)).levels[1]
    assert cost.status is Status.FEASIBLE
    assert 0 < number(cost.bound) < number(cost.objective)


def test_compute_intensive_requests_cost_nothing() -> None:
    state = prepare_tree(snapshot_on(model_of([2, 2]), [], [(3, ())]))
    result = solved(state)
    assert result.solution is not None
    assert (result.objective, number(result.solution.cost)) == (3, 0)
    assert result.levels[1].status is Status.OPTIMAL


def test_certificate_of_a_job_on_one_leaf() -> None:
    state = prepare_tree(snapshot_on(model_of([4, 4]), [], [(4, uses(Pattern.RECURSIVE_DOUBLING))]))
    result = solved(state)
    assert result.levels[1].proof is Proof.CERTIFICATE
    assert result.levels[1].certificate is not None
    assert number(result.levels[1].objective) == 8  # two steps of 2 (1 + 4/4)
    assert check_document(result).holds
