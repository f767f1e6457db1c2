"""The exact allocation on trees: against brute force, MiniZinc, and its own parts."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction

import pytest

import topoplace as tp
from minizinc_cases import WITHOUT, needs_minizinc
from reference_models import model_least_cost
from topoplace import clock
from topoplace.certify import check_document
from topoplace.errors import InputError
from topoplace.placement.switches.exact import _annealing, annealing, boxes, settling
from topoplace.placement.switches.exact import job as exact_job
from topoplace.placement.switches.exact.grids import LineOracle
from topoplace.placement.switches.exact.job import Job
from topoplace.placement.switches.exact.leaf_states import StateOracle
from topoplace.placement.switches.exact.requests import least_cost as least_cost_alone
from topoplace.placement.switches.exact.thresholds import ThresholdSearch
from topoplace.placement.switches.problem import TreeProblem
from topoplace.result import Proof, Status
from topoplace.snapshot.hierarchy_state import HierarchyState, prepare_contention
from topoplace.snapshot.schema import Communication, Pattern, PatternUse
from topoplace.solving import solve
from tree_brute_force import least_cost
from tree_cases import HEURISTICS, model_of, snapshot_on, uses
from tree_exact_cases import job_on, jobs_of, number, solved, tiny_state
from tree_threshold_cases import in_order

FOREVER = 1e18


# ---- Against brute force ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("begin", "number_of", "most_ranks", "num_requests"),
    [
        *((chunk * 21, 21, 6, 1) for chunk in range(4)),
        (2000, 30, 4, 2),
        (2000, 30, 3, 3),
        pytest.param(84, 231, 6, 1, marks=pytest.mark.slow),
        pytest.param(1000, 100, 8, 1, marks=pytest.mark.slow),
    ],
)
def test_equals_brute_force(begin: int, number_of: int, most_ranks: int, num_requests: int) -> None:
    for seed in range(begin, begin + number_of):
        state = tiny_state(seed, most_ranks=most_ranks, num_requests=num_requests)
        result = solved(state)
        nodes, cost = result.levels
        assert (number(nodes.objective), number(cost.objective)) == least_cost(state), seed
        assert {nodes.status, cost.status} == {Status.OPTIMAL}, seed
        assert check_document(result).holds, seed


# ---- Against MiniZinc -------------------------------------------------------------------------


@needs_minizinc
@pytest.mark.parametrize(
    ("seeds", "most_ranks", "least"),
    [(range(3000, 3016), 6, 12), pytest.param(range(3100, 3180), 7, 50, marks=pytest.mark.slow)],
)
def test_equals_minizinc(seeds: range, most_ranks: int, least: int) -> None:
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
    assert compared >= least


@needs_minizinc
@pytest.mark.parametrize("nodes", [5, 8, 9])
def test_one_request_is_placed_by_the_model(nodes: int) -> None:
    request = (nodes, uses(Pattern.RECURSIVE_DOUBLING))
    snapshot = snapshot_on(model_of([4, 4, 3]), [("n[0-2]", STRICT)], [request])
    exact, found = tp.place(snapshot), tp.place(snapshot, "minizinc")
    assert found.check().holds
    assert [level.objective for level in found.levels] == [v.objective for v in exact.levels]
    assert {level.proof for level in found.levels} == {Proof.SEARCH}
    own = tp.export(exact, to_format="minizinc", level="cost")
    assert own.notes[0].endswith(f"cost, with nodes >= {exact.levels[0].objective.numerator}")
    with pytest.raises(InputError, match=r"of kind torus or .*, found 'allocation'"):
        tp.export(exact, to_format="opb")
    two = snapshot_on(model_of([9, 9]), [], [request, request])
    with pytest.raises(InputError, match="expected one request, for the model of contention"):
        tp.place(two, "minizinc")


@needs_minizinc
@pytest.mark.parametrize("left_out", [("redundant",), ("symmetry",), ("redundant", "symmetry")])
def test_minizinc_does_not_depend_on_implied_constraints(left_out: tuple[str, ...]) -> None:
    request = (5, uses(Pattern.RECURSIVE_DOUBLING))
    machine = model_of([3, 3, 3])
    problem = TreeProblem(prepare_contention(snapshot_on(machine, [("n0", STRICT)], [request])))
    definitions = "".join(WITHOUT[name] for name in left_out)
    assert model_least_cost(problem, definitions) == model_least_cost(problem)


STRICT = Communication.STRICT


# ---- The relaxation holds of every allocation -------------------------------------------------


def bound_alone(job: Job) -> Fraction:
    """Return what the states of leaves alone prove."""
    search = ThresholdSearch(job, StateOracle(job), 1 << 60, FOREVER)
    bound = next(search.open_thresholds()).cost
    return Fraction(bound * job.price_unit, 100 * job.scale)


def test_bound_alone_never_exceeds_the_optimum() -> None:
    for seed in range(120):
        state = tiny_state(seed, most_ranks=6)
        jobs = [job for job in jobs_of(state) if job.steps] if state.requests[0].intensive else []
        assert not jobs or min(map(bound_alone, jobs)) <= least_cost(state)[1], seed


def test_prices_that_fit_no_64_bits_are_rounded_down(monkeypatch: pytest.MonkeyPatch) -> None:
    patterns = [
        PatternUse(pattern=Pattern.VECTOR_DOUBLING, share=33, message_bytes=7),
        PatternUse(pattern=Pattern.RING, share=67, message_bytes=5),
    ]
    state = prepare_contention(snapshot_on(model_of([3, 3, 2]), [], [(6, patterns)]))
    (job,), (rounded,) = jobs_of(state), jobs_of(state)
    assert job.price_unit == 1
    monkeypatch.setattr(exact_job, "_LARGEST_COST", 1 << 14)
    assert rounded.price_unit > job.price_unit
    assert 0 < bound_alone(rounded) <= bound_alone(job) <= least_cost(state)[1]


# ---- The method -------------------------------------------------------------------------------


def large_state(seed: int) -> HierarchyState:
    """Return six leaves and a request of any pattern."""
    rng = random.Random(f"above-{seed}")
    machine = model_of([rng.randint(4, 10) for _ in range(6)])
    tree = prepare_contention(snapshot_on(machine)).machine
    held = [(name, STRICT) for name in rng.sample(tree.host_names, 8)]
    request = (rng.randint(2, 16), uses(rng.choice(list(Pattern))))
    return prepare_contention(snapshot_on(machine, held, [request]))


@pytest.mark.parametrize("num_requests", [1, 4])
def test_never_above_any_algorithm(num_requests: int) -> None:
    """Also where several requests share the machine and the time is short."""
    for seed in range(40 if num_requests == 1 else 12):
        state = large_state(seed)
        if num_requests > 1:
            state = tiny_state(4000 + seed, most_ranks=8, num_requests=num_requests)
        nodes, cost = solved(state, 0.3).levels
        assert cost.bound is None or number(cost.bound) <= number(cost.objective)
        for name in HEURISTICS:
            other_nodes, other_cost = solve(state, name).levels
            assert number(other_nodes.objective) <= number(nodes.objective)
            if number(other_nodes.objective) == number(nodes.objective):
                assert number(cost.objective) <= number(other_cost.objective)


@pytest.mark.parametrize("end", [1, 9, 60])
@pytest.mark.parametrize("pattern", [Pattern.RECURSIVE_DOUBLING, Pattern.STENCIL_2D, Pattern.RING])
def test_a_time_limit_is_passed_by_one_piece_of_work(
    pattern: Pattern, end: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock goes on by 1 with every piece: some moves, some cuts, a program."""
    spent = 0

    def timed(module: object, name: str, pieces: Callable[..., int] = lambda *args: 1) -> None:
        real = getattr(module, name)

        def piece(*args: object) -> object:
            nonlocal spent
            spent += pieces(*args)
            return real(*args)

        monkeypatch.setattr(module, name, piece)

    job = job_on([7, 7, 6, 6, 5, 5, 3], pattern, 32, [1, 0, 0, 2, 1, 0, 0])
    timed(annealing, "anneal")
    timed(settling, "exchanged", lambda *args: -(-args[3] // _annealing.COOLING))
    timed(boxes, "cut_boxes")
    timed(LineOracle, "_round")
    monkeypatch.setattr(settling, "_STRETCH", _annealing.COOLING)
    monkeypatch.setattr(boxes, "_MOST_CUTS", 1)
    monkeypatch.setattr(clock, "now", lambda: float(spent))
    found = least_cost_alone([job], in_order(job), float(end), 0)
    assert spent <= end + 4
    assert 0 < found.bound <= found.cost
