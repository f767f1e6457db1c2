"""Shapes at anchors: the only prisms that jobs may have on some tori (Slurm's `torus3d`)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from topoplace.errors import Faults, InputError, number_of
from topoplace.machine import Prism, Torus
from topoplace.snapshot.schema import AnchoredModel
from topoplace.types import IntArray

MAX_MEETINGS = 1 << 23
"""Pairs of anchored prisms that meet, by the routers in which they do; a bound on tables."""


@dataclass(frozen=True)
class AnchoredShape:
    """A shape, and where its anchors are; its defaults are filled in."""

    dims: tuple[int, ...]
    seed: tuple[int, ...]
    spacing: tuple[int, ...]

    @property
    def volume(self) -> int:
        """Routers of a prism of this shape."""
        return math.prod(self.dims)

    def positions(self, dim: int, size: int) -> list[int]:
        """Return the anchors along a ring of a size: from the seed on in steps, once round."""
        seed, step = self.seed[dim], self.spacing[dim]
        return [(seed + k * step) % size for k in range(size // math.gcd(step, size))]

    def prisms(self, torus: Torus) -> list[Prism]:
        """Return the prisms in the order in which Slurm lists anchors: the first dimension fastest.

        Where a prism spans a ring, all anchors along it are the same prism, which is there as often
        as there are anchors.
        """
        axes = [
            [0 if e == n else at for at in self.positions(d, n)]
            for d, (e, n) in enumerate(zip(self.dims, torus.shape, strict=True))
        ]
        return [Prism(at[::-1], self.dims) for at in itertools.product(*axes[::-1])]


def anchored_shapes(models: Sequence[AnchoredModel] | None, torus: Torus) -> list[AnchoredShape]:
    """Return the anchored shapes of a machine, checked; none if it has no such list.

    Raises
    ------
    InputError
        With every field at fault.
    """
    faults = Faults()
    if models and not all(torus.wrap):
        raise InputError("a torus that wraps in every dimension", field="anchored")
    shapes: list[AnchoredShape] = []
    for idx, model in enumerate(models or ()):
        with faults.collected():
            shapes.append(_checked(model, torus, f"anchored[{idx}]"))
    faults.require_none()
    meetings = int((_depths(shapes, torus).astype(np.float64) ** 2).sum())
    if meetings > MAX_MEETINGS:
        expected = f"prisms that meet in at most {MAX_MEETINGS} routers, each with each"
        raise InputError(expected, field="anchored", found=str(meetings))
    return shapes


def _checked(model: AnchoredModel, torus: Torus, field: str) -> AnchoredShape:
    dims = model.dims
    seed = [0] * len(dims) if model.seed is None else model.seed
    spacing = dims if model.spacing is None else model.spacing
    for name, numbers in (("dims", dims), ("seed", seed), ("spacing", spacing)):
        own = f"{field}.{name}"
        if len(numbers) != torus.num_dims:
            expected = f"{number_of(torus.num_dims, 'entry')}, one for each dimension"
            raise InputError(expected, field=own, value=numbers)
        # a seed is a coordinate, the others are lengths
        if any(x > n - (name == "seed") for x, n in zip(numbers, torus.shape, strict=True)):
            what = "coordinates" if name == "seed" else "lengths"
            raise InputError(f"{what} inside {torus.text}", field=own, value=numbers)
    return AnchoredShape(tuple(dims), tuple(seed), tuple(spacing))


def _depths(shapes: Sequence[AnchoredShape], torus: Torus) -> IntArray:
    """Return how many anchored prisms hold every router, shape ``(num_routers,)``."""
    total = np.zeros(torus.num_routers, dtype=np.int64)
    for shape in shapes:
        held = np.ones(1, dtype=np.int64)
        for d, n in enumerate(torus.shape):
            begins = np.bincount(shape.positions(d, n), minlength=2 * n)
            open_at = np.cumsum(begins - np.roll(begins, shape.dims[d])).reshape(2, n)
            held = (held[:, None] * open_at.sum(axis=0)).ravel()
        total += held
    return total
