"""The allocators of the literature: Slurm's, those of Mishra 2020, fewest domains, random nodes.

Ranks follow the order in which an allocator takes the nodes, leaf by leaf; only Slurm's default
puts them in node order, as Slurm does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction

import numpy as np

from topoplace.placement.hierarchy.heuristics.slurm_tree import Leaves
from topoplace.placement.switches.cost import communication_ratio
from topoplace.placement.switches.occupancy import Occupancy
from topoplace.placement.switches.problem import TreeProblem
from topoplace.snapshot.hierarchy_state import HierarchyRequest
from topoplace.snapshot.schema import Pattern, PatternUse
from topoplace.solving import Options, Outcome, register
from topoplace.types import IntArray

Allocator = Callable[[Occupancy, HierarchyRequest, np.random.Generator], IntArray | None]
"""Chooses the node of every rank of a request, or None if it does not fit; changes nothing."""

_ALLOCATORS: dict[str, Allocator] = {}


def register_allocator(name: str, summary: str = "") -> Callable[[Allocator], Allocator]:
    """Return a decorator that registers an allocator, and the method that serves a queue with it.

    The method skips requests that do not fit; later requests see the nodes of earlier ones.
    """

    def add(allocator: Allocator) -> Allocator:
        def method(problem: TreeProblem, options: Options) -> Outcome:
            return Outcome(serve(allocator, problem, options.seed))

        register("allocation", name, summary)(method)
        _ALLOCATORS[name] = allocator
        return allocator

    return add


def serve(allocator: Allocator, problem: TreeProblem, seed: int) -> dict[int, IntArray]:
    """Return the node of every rank of all requests that start if an allocator serves the queue."""
    rng = np.random.default_rng(seed)
    occupancy = problem.occupancy()
    started = {}
    for idx, request in enumerate(problem.requests):
        nodes = allocator(occupancy, request, rng)
        if nodes is not None:
            occupancy.start(nodes, request.intensive)
            started[idx] = nodes
    return started


def registered_allocator(name: str) -> Allocator | None:
    """Return the allocator behind a method, or None if the method serves a queue as a whole."""
    return _ALLOCATORS.get(name)


def fill(occupancy: Occupancy, leaves: Iterable[int], num_nodes: int) -> list[tuple[int, int]]:
    """Return takes of all that is free on one leaf after the other until there is enough."""
    takes = []
    for leaf in leaves:
        count = min(int(occupancy.free_per_leaf[leaf]), num_nodes)
        takes.append((int(leaf), count))
        num_nodes -= count
        if not num_nodes:
            break
    return takes


@register_allocator("default")
def slurm_default(
    occupancy: Occupancy, request: HierarchyRequest, rng: np.random.Generator
) -> IntArray | None:
    """Take leaves by fewest free nodes; ranks are in node order, as Slurm lays them out."""
    takes = Leaves(occupancy.machine, occupancy.free_per_leaf).fullest(request.nodes)
    return None if takes is None else np.sort(occupancy.nodes_of(takes))


@register_allocator("slurm-tree")
def slurm_tree(
    occupancy: Occupancy, request: HierarchyRequest, rng: np.random.Generator
) -> IntArray | None:
    """Take leaves as Slurm 24.11 does; ranks are in node order, as Slurm lays them out."""
    takes = Leaves(occupancy.machine, occupancy.free_per_leaf).choose(request.nodes)
    return None if takes is None else np.sort(occupancy.nodes_of(takes))


@register_allocator("greedy")
def greedy(
    occupancy: Occupancy, request: HierarchyRequest, rng: np.random.Generator
) -> IntArray | None:
    """Take leaves by communication ratio, increasing for an intensive job, else decreasing.

    Leaves of the same ratio are taken in the order of their description.
    """
    leaves = occupancy.leaves_that_fit(request.nodes)
    if leaves is None:
        return None
    sizes = occupancy.machine.leaf_sizes
    sign = 1 if request.intensive else -1

    def key(leaf: int) -> Fraction:
        counts = occupancy.comm[leaf], occupancy.busy[leaf], sizes[leaf]
        return sign * communication_ratio(*(int(count) for count in counts))

    order = sorted(leaves.tolist(), key=key)
    return occupancy.nodes_of(fill(occupancy, order, request.nodes))


@register_allocator("balanced")
def balanced(
    occupancy: Occupancy, request: HierarchyRequest, rng: np.random.Generator
) -> IntArray | None:
    """Take halved shares of the request on the emptiest leaves, and the rest on the fullest.

    A compute-intensive job takes the fullest leaves first. Leaves with as many free nodes come
    in the order of their description.
    """
    leaves = occupancy.leaves_that_fit(request.nodes)
    if leaves is None:
        return None
    free = occupancy.free_per_leaf[leaves]
    if request.intensive:
        order = np.argsort(-free, kind="stable")
        counts = balanced_counts(free[order].tolist(), request.nodes)
        takes = [(int(leaves[order[at]]), count) for at, count in counts]
    else:
        order = leaves[np.argsort(free, kind="stable")]
        takes = fill(occupancy, order, request.nodes)
    return occupancy.nodes_of(takes)


def balanced_counts(free: list[int], num_nodes: int) -> list[tuple[int, int]]:
    """Return what Algorithm 2 takes, in order, as (place of the leaf in `free`, nodes).

    The share is halved, rounding down, for good: as printed, it starts from the request itself,
    so that shares are powers of two only if the request is.

    Parameters
    ----------
    free
        Free nodes of the leaves, descending, no zeros; enough for `num_nodes`.
    """
    takes = []
    left = list(free)
    share = num_nodes
    for at, there in enumerate(free):
        while share > there:
            share //= 2
        takes.append((at, min(share, num_nodes)))
        left[at] -= takes[-1][1]
        num_nodes -= takes[-1][1]
    for at in reversed(range(len(free))):
        takes.append((at, min(left[at], num_nodes)))
        num_nodes -= takes[-1][1]
    return [(at, count) for at, count in takes if count]


_SUPPOSED = (PatternUse(pattern=Pattern.RECURSIVE_DOUBLING),)


@register_allocator("adaptive")
def adaptive(
    occupancy: Occupancy, request: HierarchyRequest, rng: np.random.Generator
) -> IntArray | None:
    """Choose between greedy and balanced by eq. (6): the cheaper for an intensive job.

    A compute-intensive job gets the more expensive one, which leaves the better places to others.
    The paper does not give its cost; here it is that of recursive doubling among the running jobs.
    If both cost the same, the balanced one is chosen.
    """
    first, second = balanced(occupancy, request, rng), greedy(occupancy, request, rng)
    if first is None or second is None:
        return None
    patterns = request.patterns if request.intensive else _SUPPOSED
    costs = [occupancy.cost_with(n, patterns, request.intensive) for n in (first, second)]
    better = costs[1] < costs[0] if request.intensive else costs[1] > costs[0]
    return second if better else first


@register_allocator("fewest-domains")
def fewest_domains(
    occupancy: Occupancy, request: HierarchyRequest, rng: np.random.Generator
) -> IntArray | None:
    """Take the emptiest leaves whole until one can hold the rest; the fullest that can takes it.

    Leaves with as many free nodes come in the order of their description.
    """
    leaves = occupancy.leaves_that_fit(request.nodes)
    if leaves is None:
        return None
    free = occupancy.free_per_leaf[leaves]
    order = np.argsort(-free, kind="stable")
    whole = int(np.searchsorted(np.cumsum(free[order]), request.nodes))
    takes = [(int(leaves[at]), int(free[at])) for at in order[:whole]]
    rest = request.nodes - sum(count for _, count in takes)
    others = np.sort(order[whole:])
    holds = others[free[others] >= rest]
    takes.append((int(leaves[holds[np.argmin(free[holds])]]), rest))
    return occupancy.nodes_of(takes)


@register_allocator("random")
def random_nodes(
    occupancy: Occupancy, request: HierarchyRequest, rng: np.random.Generator
) -> IntArray | None:
    """Draw nodes below the switch with the most free ones; ranks are in the order drawn."""
    leaves = occupancy.widest_leaves()
    free = np.flatnonzero(occupancy.free & np.isin(occupancy.machine.leaf_of, leaves))
    if len(free) < request.nodes:
        return None
    return rng.choice(free, size=request.nodes, replace=False)
