"""First fit of nodes: every request in turn takes the first usable nodes of a fixed order."""

from __future__ import annotations

import numpy as np

from topoplace.machine import Torus
from topoplace.placement.torus.outcome import Scattered
from topoplace.placement.torus.problem import PlacementProblem
from topoplace.types import IntArray


def place_in_order(problem: PlacementProblem, nodes: IntArray) -> list[Scattered]:
    """Give every request, in queue order, the first nodes that are left for it.

    A request starts if enough usable nodes of its class, inside its region if it names one, are
    left. Geometries and links are ignored: as under ALPS, a job's nodes need not form a prism,
    jobs may share links, and two jobs may have nodes on one router.

    Parameters
    ----------
    nodes
        Every node of the machine, in the order to take them.
    """
    state = problem.state
    left = state.usable.copy()
    started = []
    for idx, request in enumerate(problem.requests):
        fits = left & (state.node_class == request.class_idx)
        if request.region is not None:
            fits &= np.repeat(state.regions[request.region], problem.torus.nodes_per_router)
        taken = nodes[fits[nodes]][: request.nodes]
        if len(taken) == request.nodes:
            left[taken] = False
            started.append(Scattered(idx, np.sort(taken)))
    return started


def nodes_of_routers(torus: Torus, routers: IntArray) -> IntArray:
    """Return the nodes of routers, router by router in the order given."""
    per = torus.nodes_per_router
    nodes: IntArray = (routers[:, None] * per + np.arange(per)).ravel()
    return nodes
