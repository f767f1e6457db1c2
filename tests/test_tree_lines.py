"""Grids on trees: what the search over lines proves is true, and the checker follows it."""

from __future__ import annotations

import itertools
import math
import random
from pathlib import Path

import numpy as np
import pytest

from topoplace.certify.report import RefusedError
from topoplace.certify.tree_machine.line_states import Assumed, LineStates, least_met
from topoplace.certify.tree_machine.steps import GRIDS, grid_of
from topoplace.cli import run
from topoplace.placement.tree.exact.bounding.relaxation import Relaxation
from topoplace.placement.tree.exact.lines.tables import (
    Guess,
    met,
    no_guess,
    standing,
    tables_of,
)
from topoplace.placement.tree.patterns import cubic_grid
from topoplace.result.tree import AllocationResult, LineNogood, LineProof
from topoplace.snapshot.schema import Pattern, PatternUse
from topoplace.snapshot.tree_state import prepare_tree
from tree_brute_force import least_cost
from tree_cases import model_of, snapshot_on
from tree_line_cases import (
    follow,
    grid_snapshot,
    in_order,
    job_on,
    proven,
    relaxed_of,
    step_values,
)

MIDDLING = {"ranks": (8, 11, 12, 13, 16, 18, 24, 27, 30), "sizes": (3, 5, 6), "num_leaves": (5, 9)}


# ---- Bounds are below the optimum, and the checker agrees ---------------------------------------


@pytest.mark.parametrize("chunk", range(5))
def test_tiny_bounds_are_below_brute_force(chunk: int) -> None:
    met_ = 0
    for seed in range(50 * chunk, 50 * (chunk + 1)):
        snapshot = grid_snapshot(seed, (2, 3, 4, 4, 5, 6, 6))
        bound, nogoods = proven(job_on(snapshot))
        optimum = least_cost(prepare_tree(snapshot))[1]
        assert bound <= optimum, seed
        follow(snapshot, nogoods, bound)
        met_ += bound == optimum
    assert met_ > 40


@pytest.mark.parametrize("seed", range(12))
def test_eight_ranks_against_brute_force(seed: int) -> None:
    snapshot = grid_snapshot(seed, (8,), (5, 6), (2, 2))
    bound, nogoods = proven(job_on(snapshot))
    assert bound <= least_cost(prepare_tree(snapshot))[1]
    follow(snapshot, nogoods, bound)


def test_no_allocation_is_ruled_out() -> None:
    branched = 0
    for seed in range(24):
        rng = random.Random(f"allocations-{seed}")
        snapshot = grid_snapshot(seed, **MIDDLING)
        job = job_on(snapshot)
        bound, nogoods = proven(job, seconds=1)
        follow(snapshot, nogoods, bound)
        branched += any(nogood.proof.kind == "branch" for nogood in nogoods)
        values = Relaxation(job).values
        corners = [values[nogood.at] for nogood in nogoods]
        for _ in range(5):
            hops = step_values(job, some_leaves(rng, job))
            assert not any((hops <= corner).all() for corner in corners), seed
            lifted = [at_least(nogood, values, hops) for nogood in nogoods[:3]]
            for nogood in lifted:
                with pytest.raises(RefusedError):
                    follow(snapshot, [nogood], bound)
    assert branched > 3


def some_leaves(rng: random.Random, job) -> np.ndarray:
    room = np.repeat(job.domain, job.free[job.domain]).tolist()
    leaves = np.array(rng.sample(room, job.ranks))
    return np.sort(leaves) if rng.random() < 0.5 else leaves


def at_least(nogood: LineNogood, values: np.ndarray, hops: np.ndarray) -> LineNogood:
    """Return a nogood raised to thresholds that some allocation has."""
    at = np.maximum(nogood.at, np.searchsorted(values, hops))
    return nogood.model_copy(update={"at": at.tolist()})


# ---- The checker's own parts against the solver's -----------------------------------------------


def test_grids_are_the_same() -> None:
    for pattern, num_dims in GRIDS.items():
        for ranks in range(1, 400):
            assert grid_of(pattern, ranks) == cubic_grid(ranks, num_dims)


@pytest.mark.parametrize("extents", [(7,), (3, 3), (5, 2), (3, 2, 2), (2, 2, 2)])
def test_cells_meet_as_many_lines_as_said(extents: tuple[int, ...]) -> None:
    cells = list(itertools.product(*map(range, extents)))
    for chosen in itertools.product((False, True), repeat=len(cells)):
        part = [cell for cell, there in zip(cells, chosen, strict=True) if there]
        if not part:
            continue
        lines = [len({cell[:d] + cell[d + 1 :] for cell in part}) for d in range(len(extents))]
        least = least_met(len(part), extents)
        assert (least <= np.array(lines)[:, None]).all(axis=0).any(), part


@pytest.mark.parametrize("extents", [(13,), (8, 4), (6, 5, 3), (4, 4, 4), (32, 16), (8, 8, 8)])
def test_least_numbers_of_lines_are_those_of_the_solver(extents: tuple[int, ...]) -> None:
    for ranks in range(1, min(20, math.prod(extents)) + 1):
        assert sorted(map(tuple, least_met(ranks, extents).T.tolist())) == sorted(
            met(ranks, extents)
        )


def test_states_left_are_those_of_the_solver() -> None:
    left, emptied = 0, 0
    for seed in range(60):
        rng = random.Random(f"states-{seed}")
        snapshot = grid_snapshot(seed, **MIDDLING)
        job, relaxed = job_on(snapshot), relaxed_of(snapshot)
        tables, values = tables_of(job), Relaxation(job).values
        states = LineStates(relaxed, tables.extents.tolist())
        assert states.ranks.tolist() == tables.ranks.tolist()
        for guess in (no_guess(tables), some_guess(rng, len(tables.ranks))):
            top = len(relaxed.values) - 1
            at = [rng.randint(rng.randint(0, top), top) for _ in tables.extents]
            theirs = standing(tables, values[at], guess)
            complete = frozenset(np.flatnonzero(guess.done).tolist())
            own = states.view(at, Assumed(tuple(guess.forced.tolist()), complete))
            if own is None or theirs is None:
                assert own is None, seed
                emptied += 1
                continue
            left += 1
            # never more than the solver leaves, and the same where no leaves are assumed
            assert theirs.alive[own.states].all()
            pairs = theirs.pairs[:, own.states][:, :, own.states]
            assert (own.beside <= pairs).all()
            if not guess.forced.any():
                assert own.states.tolist() == np.flatnonzero(theirs.alive).tolist()
                assert (own.beside == pairs).all()
                assert (own.keeps == theirs.keeps[:, own.states]).all()
    assert left > 20
    assert emptied > 20


def some_guess(rng: random.Random, num: int) -> Guess:
    forced = np.array([rng.random() < 0.08 for _ in range(num)], dtype=np.int64)
    return Guess(forced, np.array([rng.random() < 0.2 for _ in range(num)]))


@pytest.mark.parametrize("pattern", list(Pattern))
def test_thresholds_ruled_out_are_those_of_the_solver(pattern: Pattern) -> None:
    answers = set()
    for seed in range(15):
        rng = random.Random(f"plain-{seed}")
        snapshot = grid_snapshot(seed, **MIDDLING)
        request = snapshot.queue[0].model_copy(update={"patterns": [PatternUse(pattern=pattern)]})
        snapshot = snapshot.model_copy(update={"queue": [request]})
        relaxed, plain = relaxed_of(snapshot), Relaxation(job_on(snapshot), plain=True)
        for _ in range(4):
            at = [rng.randrange(len(relaxed.values)) for _ in relaxed.prices]
            possible = plain.possible(plain.values[at].tolist())
            assert relaxed.possible(at) is possible, seed
            answers.add(possible)
    assert answers == {True, False}


# ---- The whole way ------------------------------------------------------------------------------


def test_place_and_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    use = PatternUse(pattern=Pattern.STENCIL_2D)
    snapshot = snapshot_on(model_of([6, 6, 7, 5]), [("n0", "strict")], [(12, [use])])
    source, result = tmp_path / "snapshot.json", tmp_path / "result.json"
    source.write_text(snapshot.model_dump_json(exclude_none=True), encoding="utf-8")
    assert run(["place", str(source), "--method", "exact", "-o", str(result)]) == 0
    found = AllocationResult.model_validate_json(result.read_text(encoding="utf-8"))
    (proof,) = found.levels[1].certificate.proofs
    assert isinstance(proof, LineProof)
    assert proof.line_nogoods
    assert run(["check", str(result)]) == 0
    assert "certificate" in capsys.readouterr().out


def test_an_allocation_is_at_least_as_dear() -> None:
    snapshot = grid_snapshot(3, **MIDDLING)
    job = job_on(snapshot)
    bound, _ = proven(job, seconds=1)
    assert bound * 100 * job.scale <= job.cost(in_order(job))
