"""Symmetries of a small matrix: permutations of its rows and columns that do not change it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from topoplace.kernels import kernel
from topoplace.types import IntArray

MAX_SYMMETRIES = 1 << 13
"""Most permutations listed, and most exchanges; any of them may be left out."""

MAX_COMPARISONS = 1 << 28
"""Most pairs of cells compared to list them: some tenths of a second."""


def symmetries(matrix: IntArray, colour: IntArray) -> NDArray[np.int16]:
    """List permutations p with ``matrix[p[i], p[j]] == matrix[i, j]`` that keep colours, in rows.

    The colours are first refined by the contents of rows and columns in each colour. Exchanges of
    two equal rows come first; large groups are not listed completely, but with about the same
    number of permutations for every image of row 0.
    """
    n = len(matrix)
    _, flat = np.unique(matrix, return_inverse=True)
    cells = flat.reshape(n, n).astype(np.int64)
    fine = _refined(cells, colour)
    share = max(1, MAX_SYMMETRIES // max(1, int((fine == fine[0]).sum())))
    exchanges = _exchanges(cells, fine, MAX_SYMMETRIES)
    return np.concatenate([exchanges, _listed(cells, fine, share, MAX_COMPARISONS // n)])


def _refined(cells: IntArray, colour: IntArray) -> IntArray:
    """Return the coarsest finer colours in which equal colours see equal cells."""
    kinds = cells * (int(cells.max()) + 1) + cells.T
    now = np.unique(colour, return_inverse=True)[1].astype(np.int64)
    while True:
        seen = np.sort(kinds * len(cells) + now[None, :], axis=1)
        signature = np.concatenate([now[:, None], seen], axis=1)
        after = np.unique(signature, axis=0, return_inverse=True)[1].ravel().astype(np.int64)
        if after.max() == now.max():
            return after
        now = after


def _exchanges(cells: IntArray, colour: IntArray, most: int) -> NDArray[np.int16]:
    """Return exchanges of two rows that are symmetries."""
    n = len(cells)
    listed: list[NDArray[np.int16]] = []
    for i in range(n):
        near = (cells[:i] != cells[i]).sum(axis=1) <= 2
        for j in np.flatnonzero(near & (colour[:i] == colour[i])).tolist():
            turn = np.arange(n, dtype=np.int16)
            turn[i], turn[j] = j, i
            alike = (cells[i, turn] == cells[j]).all() and (cells[turn, i] == cells[:, j]).all()
            if alike and len(listed) < most:
                listed.append(turn)
    return np.array(listed, dtype=np.int16).reshape(-1, n)


@kernel()
def _fits(cells: IntArray, image: IntArray, i: int, goal: int) -> bool:
    """Return whether row i may become row `goal`, given the images of the rows before it."""
    for j in range(i):
        at = image[j]
        if cells[at, goal] != cells[j, i] or cells[goal, at] != cells[i, j]:
            return False
    return bool(cells[goal, goal] == cells[i, i])


@kernel()
def _listed(cells: IntArray, colour: IntArray, share: int, budget: int) -> NDArray[np.int16]:
    """List symmetries by backtracking.

    Every image of row 0 gets at most `share` of them and `budget` comparisons.
    """
    n = len(cells)
    found = [np.arange(n).astype(np.int16)]
    for first in range(n if n > 1 else 0):
        if colour[first] != colour[0]:
            continue
        image = np.full(n, -1, dtype=np.int64)
        taken = np.zeros(n, dtype=np.bool_)
        image[0], taken[first] = first, True
        i, count, spent = 1, 0, 0
        while i > 0 and count < share and spent < budget:
            goal = image[i] + 1
            if goal > 0:
                taken[image[i]] = False
            while goal < n and (
                taken[goal] or colour[goal] != colour[i] or not _fits(cells, image, i, goal)
            ):
                goal += 1
            # most misfits show at the first few rows
            spent += i + 4 * (goal - image[i])
            if goal == n:
                image[i] = -1
                i -= 1
                continue
            image[i], taken[goal] = goal, True
            if i < n - 1:
                i += 1
            else:
                count += 1
                found.append(image.astype(np.int16))
    listed = np.empty((len(found), n), dtype=np.int16)
    for s in range(len(found)):
        listed[s] = found[s]
    return listed
