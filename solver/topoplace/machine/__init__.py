"""What is there: routers, links, routes and prisms. Knows nothing of jobs."""

from topoplace.machine.links import prism_links, scattered_links
from topoplace.machine.matrix import MatrixMachine
from topoplace.machine.nodeset import format_node_set, parse_node_set
from topoplace.machine.prism import (
    Prism,
    all_origins,
    bisection_bandwidth,
    bisection_per_node,
    uses_whole_ring,
)
from topoplace.machine.routing import route
from topoplace.machine.torus import Torus

__all__ = [
    "MatrixMachine",
    "Prism",
    "Torus",
    "all_origins",
    "bisection_bandwidth",
    "bisection_per_node",
    "format_node_set",
    "parse_node_set",
    "prism_links",
    "route",
    "scattered_links",
    "uses_whole_ring",
]
