"""The quality metrics of Topaware (Fiedler 2014, "Using Topaware to Find Good Layouts")."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from topoplace.mapping.grids import VirtualGrid
from topoplace.mapping.layouts.layout import Layout


@dataclass(frozen=True)
class Metrics:
    """Quality of a layout; all are shares of 1, exact.

    The slide names the metrics and prints them for one layout (partitions 4x3x5, 30 of 32 tasks
    per node): 100, 100, 93, 80. The formulas of `bal_metric` and `p2c_metric` are inferred:

    - mean over longest side gives the 80; "volume to surface ratio compared to cube" taken at
      its word, 6 V^(2/3) / S, would give 97;
    - with the mean tasks per node cut to an integer the unbalanced list has its ratios (below).

    `qual_metric`, their geometric mean as the slide says, is then the printed 90 90 88 88 88 88
    for the layouts of 40x30x25 after the first. For the first we get 93; the slide prints
    94, although the geometric mean of the four figures printed beside it is 92.9. The list of
    32x32x32 (90 81 81 80 80, its cube that fills all nodes included) is 0.9 times ours, cut to
    integers: a `percent_used` of 0.66 in that run would explain it.

    Attributes
    ----------
    percent_used
        Routers of the prism that hold tasks.
    bal_metric
        Tasks on average over the most, per node that holds some (an average of 1 or more that is
        below the most is cut to an integer).
    ppn_metric
        Most tasks on a node over the tasks it may take.
    p2c_metric
        Mean side of the partitions of a router over the longest side; dimensions that lie whole
        on a router have no side.
    """

    percent_used: Fraction
    bal_metric: Fraction
    ppn_metric: Fraction
    p2c_metric: Fraction

    @property
    def product(self) -> Fraction:
        """The product of the four: the order of `qual_metric` without its rounding."""
        return self.percent_used * self.bal_metric * self.ppn_metric * self.p2c_metric

    @property
    def qual_metric(self) -> float:
        """The geometric mean of the four."""
        return math.sqrt(math.sqrt(self.product))


def metrics_of(layout: Layout, grid: VirtualGrid, tasks_per_node: int) -> Metrics:
    """Return the metrics of a layout for nodes that may take `tasks_per_node` tasks."""
    # Along a virtual dimension the first ceil(D / N) cells hold tasks, supertile after supertile:
    # the count is a product also for folded layouts.
    occupied = math.prod(
        -(-grid.shape[layout.axes[i]] // layout.partitions[i]) for i in layout.plane_dims
    )
    most = Fraction(layout.cell_tasks, layout.nodes_per_router)
    mean = Fraction(grid.num_tasks, occupied * layout.nodes_per_router)
    if 1 <= mean < most:
        mean = Fraction(math.floor(mean))
    sides = [layout.partitions[i] for i in layout.plane_dims]
    return Metrics(
        percent_used=Fraction(occupied, math.prod(layout.extents)),
        bal_metric=mean / most,
        ppn_metric=most / tasks_per_node,
        p2c_metric=Fraction(sum(sides), len(sides) * max(sides)),
    )
