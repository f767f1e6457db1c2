"""Every admissible layout of a virtual grid in a region of a torus or mesh."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from topoplace.errors import InputError
from topoplace.mapping.graph import grid_of
from topoplace.mapping.layouts.candidates import (
    RankedLayout,
    enumerate_layouts,
    geometry_request,
    one_per_prism,
    rank_layouts,
)
from topoplace.report.layouts import layout_document, layouts_table
from topoplace.snapshot.machines import load_torus
from topoplace.snapshot.schema import GridApplication
from topoplace.snapshot.state import torus_of


@dataclass(frozen=True)
class Layouts:
    """Layouts, the best first, and the text that asks a scheduler for their prisms."""

    ranked: Sequence[RankedLayout]
    geometry: str

    def document(self, limit: int) -> dict[str, object]:
        """Return it ready for JSON, with some of the layouts."""
        documents = [layout_document(entry) for entry in self.ranked[:limit]]
        return {
            "layouts": documents,
            "num_layouts": len(self.ranked),
            "geometry": self.geometry,
        }

    def table(self, limit: int) -> str:
        """Return some of the layouts as a table."""
        return layouts_table(self.ranked[:limit])


def layouts(
    application: GridApplication,
    on: str,
    tasks_per_node: int,
    region: tuple[int, ...],
    *,
    balanced: bool = False,
    stagger: bool = False,
) -> Layouts:
    """List every admissible layout of a grid in a region, in routers, of a machine."""
    torus = torus_of(load_torus(on))
    if len(region) != torus.num_dims or any(
        e > n for e, n in zip(region, torus.shape, strict=True)
    ):
        within = "x".join(map(str, region))
        raise InputError(f"a region inside {torus.text}", field="--within", value=within)
    virtual = grid_of(application)
    found = enumerate_layouts(
        virtual,
        tasks_per_node,
        torus.nodes_per_router,
        region,
        rings=[w and e == n for e, n, w in zip(region, torus.shape, torus.wrap, strict=True)],
        balanced=balanced,
        stagger=stagger,
    )
    ranked = one_per_prism(rank_layouts(found, virtual, torus, tasks_per_node))
    return Layouts(ranked, geometry_request(ranked, torus))
