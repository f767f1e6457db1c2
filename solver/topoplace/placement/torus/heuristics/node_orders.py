"""First fit of nodes: every request in turn takes the first usable nodes of a fixed order.

The orders are random, or those of ALPS (`machine.node_orders`).
"""

from __future__ import annotations

import numpy as np

from topoplace.machine.node_orders import ORDERS, Digit, block_order
from topoplace.placement.torus.outcome import Scattered
from topoplace.placement.torus.problem import PlacementProblem
from topoplace.solving import Options, Outcome, register
from topoplace.types import IntArray


def place_in_order(problem: PlacementProblem, nodes: IntArray) -> list[Scattered]:
    """Give every request, in queue order, the first free nodes that it can use.

    A request starts if enough usable nodes of its class, inside its region if it names one, are
    left; of several sets of nodes that it may have it gets the first one that has enough.
    One that has routers in or next to its prism waits, as it would have no prism. Geometries and
    links are ignored: as under ALPS, a job's nodes need not form a prism, jobs may
    share links, and two jobs may have nodes on one router.

    Parameters
    ----------
    nodes
        Every node of the machine, in the order to take them.
    """
    state = problem.state
    left = state.usable.copy()
    started = []
    for idx, request in enumerate(problem.requests):
        if request.near is not None:
            continue
        for way in request.ways:
            fits = left & state.of_kind(way.class_idx)
            if request.region is not None:
                fits &= np.repeat(state.regions[request.region], problem.torus.nodes_per_router)
            taken = nodes[fits[nodes]][: request.nodes]
            if len(taken) == request.nodes:
                left[taken] = False
                started.append(Scattered(idx, np.sort(taken)))
                break
    return started


@register("placement", "random-nodes", uses_prisms=False)
def _random_nodes(problem: PlacementProblem, options: Options) -> Outcome:
    order = np.random.default_rng(options.seed).permutation(problem.torus.num_nodes)
    return Outcome(place_in_order(problem, order))


def _alps(name: str, digits: tuple[Digit, ...]) -> None:
    """Register an order of ALPS."""

    @register("placement", name, uses_prisms=False)
    def _place(problem: PlacementProblem, options: Options) -> Outcome:
        routers = block_order(problem.torus, digits)
        return Outcome(place_in_order(problem, problem.torus.nodes_of(routers)))


for _name, _digits in ORDERS.items():
    _alps(_name, _digits)
