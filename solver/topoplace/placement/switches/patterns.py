"""The pairs of ranks in each step of a communication pattern (docs/proofs/tree.md, "Steps")."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from topoplace.errors import InputError
from topoplace.snapshot.schema import Pattern
from topoplace.types import IntArray


@dataclass(frozen=True, eq=False)
class Step:
    """The pairs of ranks that talk at the same time; read-only, each pair once.

    Attributes
    ----------
    pairs
        Two different ranks each, shape ``(num_pairs, 2)``, at least one pair.
    weight
        Message size relative to the smallest of the pattern, times how often the step repeats.
    """

    pairs: IntArray
    weight: int

    def __post_init__(self) -> None:
        self.pairs.setflags(write=False)  # callers that ask for the same size share the steps


@lru_cache(maxsize=1024)
def pattern_steps(pattern: Pattern, ranks: int) -> tuple[Step, ...]:
    """Return the steps of a pattern among a number of ranks, in their order.

    Recursive doubling, recursive halving with vector doubling, and the binomial tree are those
    of Mishra 2020, section 3.3; sizes that are not a power of two are folded as in MPICH.

    Raises
    ------
    InputError
        If there is no rank.
    """
    if ranks < 1:
        raise InputError("at least one rank", field="ranks", value=ranks)
    return tuple(_STEPS[pattern](ranks))


def _doubling(ranks: int) -> list[Step]:
    return _exchange(ranks, lambda bit, bits: 1, last=1)


def _vector_doubling(ranks: int) -> list[Step]:
    bits = ranks.bit_length() - 1
    return _exchange(ranks, lambda bit, bits: 1 << (bits - 1 - bit), last=1 << bits)


def _exchange(ranks: int, weight: Callable[[int, int], int], last: int) -> list[Step]:
    """Return the exchanges at distance 1, 2, 4, ..; `last` is the weight of unfolding at the end.

    If the size is not a power of two, the surplus ranks first give their part to a neighbour and
    last get the outcome from it; the others exchange.
    """
    bits = ranks.bit_length() - 1
    power = 1 << bits
    surplus = ranks - power
    active = np.concatenate([np.arange(1, 2 * surplus, 2), np.arange(2 * surplus, ranks)])
    place = np.arange(power, dtype=np.int64)
    steps = []
    for bit in range(bits):
        lower = place[(place >> bit) & 1 == 0]
        pairs = np.stack([active[lower], active[lower | (1 << bit)]], axis=1)
        steps.append(Step(pairs, weight(bit, bits)))
    if surplus:
        even = 2 * np.arange(surplus, dtype=np.int64)
        fold = np.stack([even, even + 1], axis=1)
        steps = [Step(fold, 1), *steps, Step(fold, last)]
    return steps


def _binomial(ranks: int) -> list[Step]:
    bits = (ranks - 1).bit_length()
    steps = []
    for bit in reversed(range(bits)):
        senders = np.arange(0, ranks - (1 << bit), 2 << bit, dtype=np.int64)
        steps.append(Step(np.stack([senders, senders + (1 << bit)], axis=1), 1))
    return steps


def _ring(ranks: int) -> list[Step]:
    if ranks == 1:
        return []
    rank = np.arange(ranks if ranks > 2 else 1, dtype=np.int64)
    return [Step(np.stack([rank, (rank + 1) % ranks], axis=1), ranks - 1)]


def _stencil_2d(ranks: int) -> list[Step]:
    return _halo(cubic_grid(ranks, 2))


def _stencil_3d(ranks: int) -> list[Step]:
    return _halo(cubic_grid(ranks, 3))


def _halo(shape: Sequence[int]) -> list[Step]:
    """Return one step per dimension with neighbours: all of them, both ways at once."""
    numbers = np.arange(math.prod(shape), dtype=np.int64).reshape(shape)
    steps = []
    for dim, extent in enumerate(shape):
        if extent > 1:
            layers = np.moveaxis(numbers, dim, 0)
            pairs = np.stack([layers[:-1].ravel(), layers[1:].ravel()], axis=1)
            steps.append(Step(pairs, 1))
    return steps


def cubic_grid(ranks: int, dims: int) -> tuple[int, ...]:
    """Return the most cubic grid of a number of ranks: the least sum of extents, descending.

    Of several (360 = 9 x 8 x 5 = 10 x 6 x 6) the one with the smaller first extents.
    """
    return min(_factors(ranks, dims, ranks), key=lambda grid: (sum(grid), grid))


def _factors(ranks: int, dims: int, largest: int) -> list[tuple[int, ...]]:
    """Return all descending factorisations into `dims` factors up to `largest`."""
    if dims == 1:
        return [(ranks,)] if ranks <= largest else []
    small = [n for n in range(1, math.isqrt(ranks) + 1) if ranks % n == 0]
    return [
        (first, *rest)
        for first in {*small, *(ranks // n for n in small)}
        if first <= largest
        for rest in _factors(ranks // first, dims - 1, first)
    ]


_STEPS: dict[Pattern, Callable[[int], list[Step]]] = {
    Pattern.RECURSIVE_DOUBLING: _doubling,
    Pattern.VECTOR_DOUBLING: _vector_doubling,
    Pattern.BINOMIAL: _binomial,
    Pattern.RING: _ring,
    Pattern.STENCIL_2D: _stencil_2d,
    Pattern.STENCIL_3D: _stencil_3d,
}
