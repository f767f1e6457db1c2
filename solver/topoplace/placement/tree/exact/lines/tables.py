"""A grid, the states of its leaves, and what thresholds leave of them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from topoplace.placement.tree.exact.bounding._kernels import NEVER
from topoplace.placement.tree.exact.bounding.structure import GRIDS
from topoplace.placement.tree.exact.job import Job
from topoplace.placement.tree.exact.lines.kernels.standing import stand
from topoplace.placement.tree.patterns import cubic_grid

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


class Tables(NamedTuple):
    """States of a job whose only pattern is a grid, and the grid.

    Attributes
    ----------
    ranks, leaf_type, inside
        Per state: ranks on the leaf, its type, hops inside.
    pair
        Hops between leaves in two states, `NEVER` if there is only one leaf of the kind.
    multiplicity
        Leaves per type.
    extents, lines
        Per dimension: cells of a line, number of lines.
    cells
        Of the grid.
    layout_state, layouts
        Numbers of segments, per dimension, that the ranks of a leaf may have at least: the state,
        shape ``(num_layouts,)``, and the segments, shape ``(num_dims, num_layouts)``; 1 only
        where a single one has them all.
    """

    ranks: IntArray
    leaf_type: IntArray
    inside: IntArray
    pair: IntArray
    multiplicity: IntArray
    extents: IntArray
    lines: IntArray
    cells: int
    layout_state: IntArray
    layouts: IntArray


class Guess(NamedTuple):
    """What is assumed of the leaves: so many in a state, and in which there are no more."""

    forced: IntArray
    done: BoolArray


class Standing(NamedTuple):
    """What thresholds leave.

    Attributes
    ----------
    alive
        Which states are left.
    able, keeps
        Per dimension, whether a state may have neighbours inside, and whether it has all its
        neighbours inside; shape ``(num_dims, num_states)``.
    pairs
        Per dimension, which states may be neighbours; shape ``(num_dims, num_states, num_states)``.
    """

    alive: BoolArray
    able: BoolArray
    keeps: BoolArray
    pairs: BoolArray


def tables_of(job: Job) -> Tables:
    """Return the tables of a job whose only pattern is a grid."""
    grid = cubic_grid(job.ranks, GRIDS[job.families[0].pattern])
    extents = tuple(extent for extent in grid if extent > 1)
    ranks = job.states.count.tolist()
    layouts = [(s, parts) for s, x in enumerate(ranks) for parts in _segments(x, extents)]
    return box_tables(job, extents)._replace(
        layout_state=np.array([s for s, _ in layouts], dtype=np.int64),
        layouts=np.array([parts for _, parts in layouts], dtype=np.int64).T.copy(),
    )


def box_tables(job: Job, extents: Sequence[int]) -> Tables:
    """Return the tables of a job whose ranks form a box; there are no layouts in them."""
    states = job.states
    lone = (states.multiplicity == 1)[states.type]
    same = states.type[:, None] == states.type
    return Tables(
        ranks=states.count.astype(np.int64),
        leaf_type=states.type.astype(np.int64),
        inside=states.inside[states.kind].astype(np.int64),
        pair=np.where(same & lone, NEVER, states.crossing[np.ix_(states.kind, states.kind)]),
        multiplicity=states.multiplicity,
        extents=np.array(extents, dtype=np.int64),
        lines=np.array([job.ranks // extent for extent in extents], dtype=np.int64),
        cells=job.ranks,
        layout_state=np.zeros(0, dtype=np.int64),
        layouts=np.zeros((len(extents), 0), dtype=np.int64),
    )


def no_guess(tables: Tables) -> Guess:
    """Return the guess that assumes nothing."""
    num = len(tables.ranks)
    return Guess(np.zeros(num, dtype=np.int64), np.zeros(num, dtype=np.bool_))


def branches(guess: Guess, state: int) -> tuple[Guess, Guess]:
    """Return a guess with no leaf more in a state, and with one more."""
    done, forced = guess.done.copy(), guess.forced.copy()
    done[state] = True
    forced[state] += 1
    return Guess(guess.forced, done), Guess(forced, guess.done)


def standing(tables: Tables, thresholds: IntArray, guess: Guess) -> Standing | None:
    """Return what thresholds per dimension leave, None if that cannot hold all ranks."""
    left, *parts = stand(tables, thresholds, guess.forced, guess.done)
    return Standing(*parts) if left else None


def _segments(ranks: int, extents: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Return how many segments some cells may have at least, with all in one or in none."""
    num_dims = len(extents)
    if ranks == 1:
        return [(1,) * num_dims]
    runs = [
        tuple(1 if other == dim else ranks for other in range(num_dims))
        for dim, extent in enumerate(extents)
        if ranks <= extent
    ]
    return sorted(runs + met(ranks, extents, 2))


@lru_cache(maxsize=4096)
def met(ranks: int, extents: tuple[int, ...], least_of_all: int = 1) -> list[tuple[int, ...]]:
    """Return how many lines of every dimension some cells of a grid meet, where none is fewer.

    The product of the lines of two dimensions is at least the cells, that of three at least
    their square (Loomis and Whitney). Numbers below `least_of_all` count as that.
    """
    least = [max(least_of_all, -(-ranks // extent)) for extent in extents]
    most = [max(least_of_all, min(ranks, math.prod(extents) // extent)) for extent in extents]
    if len(extents) == 1:
        return [(least[0],)]
    wanted = ranks if len(extents) == 2 else ranks * ranks
    found = []
    ranges = [range(a, b + 1) for a, b in zip(least[:-1], most[:-1], strict=True)]
    for head in itertools.product(*ranges):
        last = max(least[-1], -(-wanted // math.prod(head)))
        if last <= most[-1]:
            found.append((*head, last))
    return [one for one in found if not any(_under(other, one) for other in found)]


def _under(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    return one != other and all(a <= b for a, b in zip(one, other, strict=True))
