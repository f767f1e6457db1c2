"""The pool: cubes that need not be told apart, as what fits there by number fits in place."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from topoplace.machine.cubes import Extents
from topoplace.placement.cubes.problem import CubesProblem
from topoplace.types import BoolArray, IntArray


class Pool:
    """Cubes where requests fit in place if they fit by number (docs/proofs/cubes.md, "Exact").

    Every size of a part has a shape that all requests of that size take, and each of these divides
    the next larger one. So their free blocks are nested: of the largest parts first, as many fit as
    there are blocks. A cube is of the pool if other shapes fit no more often: the chips that parts
    of a size or larger can reach are too few for one more of that size.

    Attributes
    ----------
    sizes, chain
        Chips of parts, ascending, and the shape of each; no cube is of the pool without shapes.
    cubes
        Marks the cubes of the pool, shape ``(num_cubes,)``.
    blocks
        By size how many free blocks the pool has, and at the end how many free cubes.
    blocks_of_cube
        How many of each one free cube is.
    """

    def __init__(self, problem: CubesProblem) -> None:
        self._problem = problem
        shapes: dict[int, set[Extents]] = {}
        common: dict[int, set[Extents]] = {}
        for request in problem.requests:
            if request.parts:
                own = {*request.parts}
                shapes[request.nodes] = shapes.get(request.nodes, own) | own
                common[request.nodes] = common.get(request.nodes, own) & own
        self.sizes = sorted(shapes)
        chain = _chain([sorted(common[size]) for size in self.sizes])
        self.chain = dict(zip(self.sizes, chain or (), strict=False))
        free = problem.state.free
        whole = free.all(axis=1)
        self.cubes = np.full(len(free), chain is not None)
        counts = np.zeros((len(self.sizes), len(free)), dtype=np.int64)
        reached = np.zeros_like(free)
        for idx in reversed(range(len(self.sizes) if self.chain else 0)):
            size = self.sizes[idx]
            for extents in shapes[size]:
                reached |= self._free_parts(extents)[1]
            counts[idx] = self._free_parts(self.chain[size])[0]
            self.cubes &= reached.sum(axis=1) // size == counts[idx]
        self.has_free = bool((whole & self.cubes).any())
        self.blocks = [*counts[:, self.cubes].sum(axis=1).tolist(), int((whole & self.cubes).sum())]
        self.blocks_of_cube = [*counts[:, whole].max(axis=1, initial=0).tolist(), 1]

    def blocks_of(self, nodes: int) -> list[int]:
        """Return how many blocks of each size a part takes."""
        return [nodes // size if size <= nodes else 0 for size in self.sizes] + [0]

    def _free_parts(self, extents: Extents) -> tuple[IntArray, BoolArray]:
        """Return how many free parts of a shape every cube has, and mark the chips of these."""
        machine, free = self._problem.machine, self._problem.state.free
        reached = np.zeros_like(free)
        num = np.zeros(len(free), dtype=np.int64)
        for origin in machine.origins(extents):
            chips = machine.inside(origin, extents)
            fits = free[:, chips].all(axis=1)
            num += fits
            reached[np.ix_(fits, chips)] = True
        return num, reached


def _chain(choices: Sequence[Sequence[Extents]]) -> list[Extents] | None:
    """Return a choice of shapes each of which divides the next one; None if none does.

    Of several, it is the one whose largest shape comes first, then whose second largest does.
    """
    ends: list[list[Extents]] = []
    for shapes in choices:
        below = ends[-1] if ends else None
        fitting = [e for e in shapes if below is None or any(divides(b, e) for b in below)]
        if not fitting:
            return None
        ends.append(fitting)
    chain: list[Extents] = []
    for shapes in reversed(ends):
        chain.insert(0, next(e for e in shapes if not chain or divides(e, chain[0])))
    return chain


def divides(one: Extents, other: Extents) -> bool:
    """Tell whether extents divide others in every dimension."""
    return all(o % e == 0 for e, o in zip(one, other, strict=True))
