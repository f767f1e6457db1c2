"""The machine: routers, links and prisms. This subpackage contains nothing about jobs.

Routes are dimension-ordered ("X, then Y, then Z", Fiedler 2014), the shortest way round a ring; a
tie at half a ring goes the positive way, and counts as both where jobs must not share links.
"""

from topoplace.machine.hostlist import (
    format_node_set as format_node_set,
    parse_node_set as parse_node_set,
)
from topoplace.machine.links import (
    prism_links as prism_links,
    route_links as route_links,
    scattered_links as scattered_links,
)
from topoplace.machine.levels import LevelMachine as LevelMachine, Network as Network
from topoplace.machine.matrix import MatrixMachine as MatrixMachine
from topoplace.machine.links import (
    Prism as Prism,
    all_origins as all_origins,
    bisection_bandwidth as bisection_bandwidth,
    bisection_per_node as bisection_per_node,
    uses_whole_ring as uses_whole_ring,
)
from topoplace.machine.torus import Torus as Torus
from topoplace.machine.topology import Route as Route, Topology as Topology
