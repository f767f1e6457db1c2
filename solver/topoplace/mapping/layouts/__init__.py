"""Topaware layouts: where a virtual grid lies on logical routers (Enos 2014 IV)."""

from topoplace.mapping.layouts.admissible import alike_dims, enumerate_layouts
from topoplace.mapping.layouts.cells import cells, node_slots
from topoplace.mapping.layouts.layout import Layout
from topoplace.mapping.layouts.metrics import Metrics, metrics_of
from topoplace.mapping.layouts.ranking import (
    RankedLayout,
    geometry_request,
    one_per_prism,
    rank_layouts,
)
from topoplace.mapping.layouts.traffic import ideal_hop_bytes, off_router_bytes

__all__ = [
    "Layout",
    "Metrics",
    "RankedLayout",
    "alike_dims",
    "cells",
    "enumerate_layouts",
    "geometry_request",
    "ideal_hop_bytes",
    "metrics_of",
    "node_slots",
    "off_router_bytes",
    "one_per_prism",
    "rank_layouts",
]
