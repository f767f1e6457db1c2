"""What is there: routers, links and prisms. Knows nothing of jobs.

Routes are dimension-ordered ("X, then Y, then Z", Fiedler 2014), the shortest way round a ring; a
tie at half a ring goes the positive way, and counts as both where jobs must not share links.
"""

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
    "scattered_links",
    "uses_whole_ring",
]
