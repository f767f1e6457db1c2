"""Random small grids with every feature of the schema."""

from __future__ import annotations

import math

import numpy as np

from topoplace.snapshot.schema import GridApplication


def random_grid(rng: np.random.Generator, most_tasks: int) -> GridApplication:
    """Return a small grid: 1 to 4 dimensions, some closed, any bytes, some with diagonals."""
    while True:
        dims = int(rng.integers(1, 5))
        shape = rng.integers(1, 7, size=dims).tolist()
        if 2 <= math.prod(shape) <= most_tasks:
            break
    full = bool(rng.random() < 0.4)
    return GridApplication(
        shape=shape,
        periodic=(rng.random(dims) < 0.4).tolist(),
        bytes=rng.choice([0, 1, 1, 3, 12], size=(dims, 2)).tolist(),
        stencil="full" if full else "nearest",
        diagonal_bytes=rng.choice([0, 1, 2, 5], size=dims - 1).tolist() if full else [],
    )
