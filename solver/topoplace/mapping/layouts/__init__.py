"""Topaware layouts: where a virtual grid lies on logical routers (Enos 2014 IV)."""

from topoplace.mapping.layouts.candidates import (
    RankedLayout,
    enumerate_layouts,
    geometry_request,
    ideal_hop_bytes,
    off_router_bytes,
    one_per_prism,
    rank_layouts,
)
from topoplace.mapping.layouts.layout import Layout, cells, metrics_of, node_slots

__all__ = [
    "Layout",
    "RankedLayout",
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
