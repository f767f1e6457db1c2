"""The compiled counts of rows that two columns have in common are those that sets give."""

from __future__ import annotations

import numpy as np
import pytest

from topoplace.placement.exact._bundle import gram, rows_in_words


@pytest.mark.parametrize("num_rows", [1, 63, 64, 65, 511, 512, 513, 1200])
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_common_marked_rows_are_counted(num_rows: int, share: float) -> None:
    rng = np.random.default_rng(num_rows)
    marked = rng.random(num_rows) < share
    held = [np.flatnonzero(rng.random(num_rows) < rng.random()) for _ in range(11)]
    starts = np.concatenate([[0], np.cumsum([len(rows) for rows in held])]).astype(np.uint32)
    columns = rng.permutation(11)[:7]
    words = rows_in_words(columns, starts, np.concatenate(held).astype(np.uint32), marked)
    assert len(words) == 8
    common = gram(words)
    of = [set(rows.tolist()) & set(np.flatnonzero(marked).tolist()) for rows in held]
    for i, first in enumerate(columns.tolist()):
        for j, second in enumerate(columns.tolist()):
            assert common[i, j] == len(of[first] & of[second])
    assert not common[7].any()
