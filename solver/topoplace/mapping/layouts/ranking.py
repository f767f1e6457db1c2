"""Layouts in order of quality, and the geometry request that asks for them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from topoplace.machine import Torus, bisection_bandwidth, bisection_per_node
from topoplace.mapping.grids import VirtualGrid
from topoplace.mapping.layouts.admissible import alike_dims
from topoplace.mapping.layouts.layout import Layout
from topoplace.mapping.layouts.metrics import Metrics, metrics_of
from topoplace.mapping.layouts.traffic import ideal_hop_bytes, off_router_bytes
from topoplace.snapshot.geometry import Geometry

PartitionKey = tuple[object, ...]


@dataclass(frozen=True)
class RankedLayout:
    """A layout with what speaks for it.

    Attributes
    ----------
    layout, metrics
        The layout and its metrics (Fiedler 2014).
    balanced
        Whether all logical routers get the same number of tasks.
    bisection, bisection_per_node
        Bisection bandwidth of the prism needed with nothing unusable, in the unit of
        `Torus.bandwidth`, and its share per node of the prism.
    off_router_bytes
        Bytes between different cells.
    ideal_hop_bytes
        Hop-bytes with nothing unusable.
    turned
        Whether the same partitions have a larger bisection bandwidth in another orientation.
    partition
        Key of the partitions per virtual dimension, the same in every orientation.
    """

    layout: Layout
    metrics: Metrics
    balanced: bool
    bisection: Fraction
    bisection_per_node: Fraction
    off_router_bytes: int
    ideal_hop_bytes: int
    turned: bool
    partition: PartitionKey


def rank_layouts(
    layouts: Sequence[Layout], grid: VirtualGrid, torus: Torus, tasks_per_node: int
) -> list[RankedLayout]:
    """Return the layouts, best first.

    Those in the best orientation of their partitions come before all `turned` ones (Fiedler 2014
    lists 10x5x10 only, not 10x10x5, whose bisection is half as large); then by `qual_metric`,
    bisection bandwidth per node, ideal hop-bytes, and the longer extent on the faster links.
    Layouts that tie keep their order.
    """
    alike = alike_dims(grid)
    keys = [_partition_key(layout, alike) for layout in layouts]
    widths = [bisection_bandwidth(torus, layout.extents) for layout in layouts]
    widest: dict[PartitionKey, Fraction] = {}
    for key, width in zip(keys, widths, strict=True):
        widest[key] = max(width, widest.get(key, width))
    ranked = [
        RankedLayout(
            layout,
            metrics_of(layout, grid, tasks_per_node),
            layout.is_balanced(grid.shape),
            width,
            bisection_per_node(torus, layout.extents),
            off_router_bytes(layout, grid),
            ideal_hop_bytes(layout, grid, torus),
            width < widest[key],
            key,
        )
        for layout, key, width in zip(layouts, keys, widths, strict=True)
    ]
    fast_first = sorted(range(torus.num_dims), key=lambda d: -torus.bandwidth[d])

    def order(entry: RankedLayout) -> tuple[object, ...]:
        return (
            entry.turned,
            -entry.metrics.product,
            -entry.bisection_per_node,
            entry.ideal_hop_bytes,
            [-entry.layout.extents[d] for d in fast_first],
        )

    return sorted(ranked, key=order)


def one_per_prism(ranked: Iterable[RankedLayout]) -> list[RankedLayout]:
    """Return the first of all layouts with the same partitions and the same prism.

    They differ in which virtual dimension lies on which of two equal extents; Fiedler 2014 lists
    one of them.
    """
    found: dict[PartitionKey, RankedLayout] = {}
    for entry in ranked:
        found.setdefault((entry.partition, entry.layout.extents), entry)
    return list(found.values())


def geometry_request(ranked: Sequence[RankedLayout], torus: Torus) -> str:
    """Return the request for the first layout's prism and others of as many nodes.

    ``10x5x10:maxz=12/20x5x5:maxz=6/5x5x20:maxz=24``: in order of quality, with room for unusable
    routers along the last dimension. Fiedler 2014 asks for "a few greater than the minimum"; its
    three examples are a fifth more, rounded up, which is what is asked for here, at most the
    machine. Turned prisms are left out unless the first is one. Empty without layouts.
    """
    shapes: dict[tuple[int, ...], Geometry] = {}
    for entry in ranked:
        extents = entry.layout.extents
        alike = (entry.layout.num_nodes, entry.turned) == (
            ranked[0].layout.num_nodes,
            ranked[0].turned,
        )
        if alike and extents not in shapes:
            depth = min(extents[-1] + -(-extents[-1] // 5), torus.shape[-1])
            shapes[extents] = Geometry(extents, depth if depth > extents[-1] else None)
    return "/".join(shape.text for shape in shapes.values())


def _partition_key(layout: Layout, alike: Sequence[int]) -> PartitionKey:
    """Return what a layout does to the virtual grid, whichever way it lies on the machine."""
    sides = sorted(
        (alike[layout.axes[i]], layout.partitions[i], layout.tiles[i]) for i in layout.plane_dims
    )
    whole = None if layout.whole is None else alike[layout.whole]
    return (*sides, whole, layout.stagger)
