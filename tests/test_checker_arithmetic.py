"""No integer of the checker wraps round, whatever a certificate says."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import pytest

from soundness import mapping_kinds, packing_kinds, tree_kinds
from soundness.attack import Target, attack
from soundness.watched import Numpy, WrappedError, watch
from topoplace.certify import integers
from topoplace.certify.mapping import graphs
from topoplace.certify.mapping.graphs import require_semidefinite
from topoplace.certify.report import RefusedError

Targets = Callable[[int], Iterator[Target]]

ATTACKS: dict[str, Targets] = {
    **{k: partial(packing_kinds.targets, k) for k in packing_kinds.KINDS if k.startswith("torus")},
    **{f"mapping {kind}": partial(mapping_kinds.targets, kind) for kind in mapping_kinds.KINDS},
    **{f"tree {kind}": targets for kind, targets in tree_kinds.KINDS.items()},
}


def watched_attack(name: str, seed: int, tries: int) -> None:
    """Attack while every sum and product of integers is done again in Python integers."""
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)  # of scalars that overflow
        watch(patch)
        tally = attack(name, ATTACKS[name](seed), seed=seed, tries=tries)
    assert tally.accepted


@pytest.mark.parametrize("name", ATTACKS)
def test_no_integer_wraps_round(name: str) -> None:
    watched_attack(name, seed=2, tries=50)


@pytest.mark.slow
@pytest.mark.parametrize("name", ATTACKS)
def test_no_integer_wraps_round_in_many_tries(name: str) -> None:
    watched_attack(name, seed=3, tries=1_000)


LARGE = np.array([[1 << 61, 1], [-(1 << 61), 1]], dtype=np.int64)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda a: a * 4,
        lambda a: a << 3,
        lambda a: 2 * a + 2 * a,
        lambda a: a @ a,
        lambda a: np.abs(a).sum(axis=0) * 2,
        lambda a: -(a * 2 - 2 * np.abs(a)) * 2,
        lambda a: np.cumsum(np.repeat(a[0], 5)),
        lambda a: np.add.at(a, [0, 0, 0, 0], a[:1].repeat(4, axis=0)),
        lambda a: np.add.reduceat(a[[0, 0, 0, 0], 0], [0]),
    ],
)
def test_what_wraps_round_is_seen(wrap: Callable[[np.ndarray], object]) -> None:
    watched = Numpy().array(LARGE)
    with pytest.raises(WrappedError):
        wrap(watched)


def test_what_fits_is_left_alone() -> None:
    watched = Numpy().array(LARGE) // 4
    assert (np.asarray(watched + watched) == LARGE // 2).all()
    watched += watched
    assert (np.asarray(watched) == LARGE // 2).all()


@pytest.mark.slow
def test_the_kernel_of_a_gain_far_too_small_wrapped_round(monkeypatch: pytest.MonkeyPatch) -> None:
    def shifted_by_the_diagonal(kernel: np.ndarray, gain: int, name: str) -> None:
        num = len(kernel)
        sums = kernel.sum(axis=1)
        centred = num * (num * kernel - sums[:, None] - sums) + sums.sum()
        matrix = num**2 * gain * np.eye(num, dtype=np.int64) - (centred << graphs.GAIN_BITS)
        room = max(0, 49 - int(np.diagonal(matrix).max()).bit_length())
        require_semidefinite(matrix << room, name)

    monkeypatch.setattr(graphs, "_check_gain", shifted_by_the_diagonal)
    with pytest.raises((WrappedError, AssertionError)):
        watched_attack("mapping cuts", seed=0, tries=5_000)


@pytest.mark.parametrize(
    "operation",
    [
        lambda a: integers.times(a, 2, "x"),
        lambda a: integers.times(a // 4, 1 << 62, "x"),
        lambda a: integers.times(a // 4, -(1 << 70), "x"),
        lambda a: integers.total(a, "x"),
        lambda a: integers.row_sums(a, "x"),
        lambda a: integers.product(a, a, "x"),
        lambda a: integers.added_at(1, np.zeros(2, dtype=np.int64), a[:, 0], "x"),
        lambda a: integers.square_of(a, slice(None), "x"),
        lambda a: integers.square_of(a // a * (1 << 27), slice(None), "x"),
    ],
)
def test_what_may_wrap_round_is_refused(operation: Callable[[np.ndarray], object]) -> None:
    with pytest.raises(RefusedError, match="x: up to"):
        operation(LARGE)


def test_the_largest_absolute_value_is_that_of_the_least_integer() -> None:
    least = np.array([-(1 << 63)], dtype=np.int64)
    assert integers.largest(least) == 1 << 63
    assert integers.largest(np.zeros(0, dtype=np.int64)) == 0


def test_floats_are_taken_as_integers_below_a_limit_alone() -> None:
    assert integers.whole(np.array([1.4, -7.6]), 9).tolist() == [1, -8]
    for number in (9.0, -9.0, float("inf"), float("nan")):
        assert integers.whole(np.array([number]), 9) is None
