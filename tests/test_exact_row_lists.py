"""Lists of rows in one array: what is appended, kept and marked is what comes back."""

from __future__ import annotations

import numpy as np
import pytest

from topoplace.placement.exact.rows import RowLists

NUM_ROWS = 5000


@pytest.mark.parametrize("seed", range(5))
def test_row_lists_are_lists_of_rows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    lists, expected = RowLists(NUM_ROWS), list[list[int]]()
    for _ in range(4):
        for _ in range(int(rng.integers(0, 700))):
            rows = rng.integers(0, NUM_ROWS, int(rng.integers(0, 300)))
            lists.append(rows)
            expected.append(rows.tolist())
        kept = rng.random(len(expected)) < 0.8
        if rng.random() < 0.5:
            lists.keep(kept)
            expected = [rows for rows, k in zip(expected, kept, strict=True) if k]
        marked = rng.random(NUM_ROWS) < rng.choice((0.0, 0.3, 1.0))
        which = rng.permutation(len(expected))[: len(expected) // 2]
        starts, found = lists.among(which, marked)
        assert starts[0] == 0
        assert starts[-1] == len(found)
        assert [part.tolist() for part in np.split(found, starts[1:-1])] == (
            [[r for r in expected[k] if marked[r]] for k in which.tolist()] or [[]]
        )
