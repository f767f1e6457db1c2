"""One layout: partitions per router and logical routers, without a place on the machine."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Layout:
    """How a virtual grid lies on a logical grid of routers (Enos 2014 IV.A, IV.C, IV.E, IV.F).

    Tuples have one entry per machine dimension; docs/proofs.md, "Layouts", has the task -> cell
    rule.

    Attributes
    ----------
    axes
        Virtual dimension on each machine dimension; -1 where there is none.
    logical
        L: logical routers along each machine dimension.
    partitions
        N: partitions (tasks) per router along each machine dimension; 1 where `axes` is -1.
    whole
        Virtual dimension that lies whole on every router, if any.
    folds
        Folds of the virtual dimension on each machine dimension; empty if nothing is folded.
    layer_order
        Layer of each supertile, supertiles row-major; empty if nothing is folded.
    stagger
        Whether odd layers are shifted by one in the first in-plane dimension.
    nodes_per_router
        Nodes among which the tasks of a cell are split.
    split
        Virtual dimension along which they are split (`splitdim` of Fiedler 2014, counted from 0);
        None with one node per router. A virtual one, because it may be `whole`, which lies on no
        machine dimension.
    cell_tasks
        Most tasks of a cell: the product of `partitions` and the size of `whole`.
    """

    axes: tuple[int, ...]
    logical: tuple[int, ...]
    partitions: tuple[int, ...]
    cell_tasks: int
    whole: int | None = None
    folds: tuple[int, ...] = ()
    layer_order: tuple[int, ...] = ()
    stagger: bool = False
    nodes_per_router: int = 1
    split: int | None = None

    @property
    def plane_dims(self) -> tuple[int, ...]:
        """Machine dimensions that carry a virtual dimension, ascending."""
        return tuple(i for i, axis in enumerate(self.axes) if axis >= 0)

    @property
    def tiles(self) -> tuple[int, ...]:
        """Supertiles along each machine dimension: 1 + folds."""
        return tuple(1 + f for f in self.folds) or (1,) * len(self.axes)

    @property
    def layer_dim(self) -> int | None:
        """Machine dimension along which supertiles are stacked; None if nothing is folded."""
        if not self.layer_order:
            return None
        return next(i for i, axis in enumerate(self.axes) if axis < 0 and self.logical[i] > 1)

    @property
    def extents(self) -> tuple[int, ...]:
        """Routers along each dimension of the prism needed with nothing unusable."""
        if not self.stagger:
            return self.logical
        first = self.plane_dims[0]
        return tuple(n + (i == first) for i, n in enumerate(self.logical))

    @property
    def num_cells(self) -> int:
        """Number of logical routers."""
        return math.prod(self.logical)

    @property
    def num_nodes(self) -> int:
        """Number of nodes of the logical routers."""
        return self.num_cells * self.nodes_per_router

    @property
    def map_text(self) -> str:
        """Virtual dimension, from 1, on each machine dimension: ``231`` (Fiedler 2014)."""
        return "".join("-" if axis < 0 else str(axis + 1) for axis in self.axes)

    def partitions_of(self, dim: int, size: int) -> int:
        """Return the partitions per router of virtual dimension `dim` of `size` tasks."""
        return size if dim == self.whole else self.partitions[self.axes.index(dim)]

    def is_balanced(self, shape: tuple[int, ...]) -> bool:
        """Tell whether all logical routers get the same number of tasks (Enos 2014 IV.F)."""
        return all(
            shape[axis] == n * p * t
            for axis, n, p, t in zip(
                self.axes, self.logical, self.partitions, self.tiles, strict=True
            )
            if axis >= 0
        )
