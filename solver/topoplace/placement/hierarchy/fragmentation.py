"""Slurm's own figure of how fragmented a machine of blocks is, before and after a decision.

`topology_p_get_fragmentation` of Slurm's topology/block (26.11), with which its backfill compares
start times. It is an additional figure and not a level: no method here places by it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from topoplace.machine.hierarchy import Hierarchy
from topoplace.machine.hostlist import expand_host_list
from topoplace.placement.hierarchy.contract import blocks_of
from topoplace.result.placement import HierarchyResult
from topoplace.snapshot.hierarchy_state import prepare_hierarchy
from topoplace.snapshot.schema import Snapshot
from topoplace.types import BoolArray


@dataclass(frozen=True)
class Fragmentation:
    """Slurm's figure, in nodes: before a decision, after it, and after the optimum found.

    Attributes
    ----------
    after
        None where the decision breaks a rule.
    optimum
        After the placement that proves the optimum under all rules; other optimal ones may leave
        less.
    """

    before: int
    after: int | None
    optimum: int | None


def slurm_fragmentation(machine: Hierarchy, available: BoolArray) -> int:
    """Return the summed size of all blocks and groups of blocks that are unavailable, and more.

    A base block is available if as many of its nodes are available as `BlockSizes` gives it. Every
    aligned group of an enforced size that lies inside the machine counts whole if one of its blocks
    is not available, and so does a base block. The blocks behind the last group of a size count as
    one group if one of them is not available although the whole last group is, because Slurm does
    not reset a mark there. Nodes that are not available are added.

    Parameters
    ----------
    available
        Nodes that are idle and up, shape ``(num_hosts,)``.
    """
    blocks = blocks_of(machine)
    idle = np.bincount(blocks.block_of, weights=available, minlength=blocks.num_blocks)
    whole = idle >= blocks.base
    total = int((~available).sum())
    for size in blocks.sizes:
        per = blocks.per_group(size)
        groups = [whole[at : at + per] for at in range(0, blocks.num_blocks, per)]
        rest = groups.pop() if blocks.num_blocks % per else None
        total += size * sum(not group.all() for group in groups)
        if rest is not None and groups and groups[-1].all() and not rest.all():
            total += size
    return total


def before(snapshot: Snapshot) -> int:
    """Return the figure of a machine of blocks as it is."""
    return _with(snapshot, ())


def after(snapshot: Snapshot, hosts: Iterable[str]) -> int:
    """Return the figure once some more hosts, by name, are taken."""
    return _with(snapshot, hosts)


def after_result(snapshot: Snapshot, result: HierarchyResult) -> int | None:
    """Return the figure after the placement of a result; None if it has no solution."""
    if result.solution is None:
        return None
    shares = (s for p in result.solution.placements for part in p.parts for s in part.shares)
    return _with(snapshot, (host for share in shares for host in expand_host_list(share.hosts)))


def _with(snapshot: Snapshot, hosts: Iterable[str]) -> int:
    state = prepare_hierarchy(snapshot)
    taken = set(hosts)
    named = np.array([name in taken for name in state.machine.host_names], dtype=bool)
    idle = (state.free == state.machine.capacity).all(axis=1)
    return slurm_fragmentation(state.machine, idle & ~named)
