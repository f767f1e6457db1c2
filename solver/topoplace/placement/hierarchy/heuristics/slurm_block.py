"""The node selection of Slurm's topology/block (24.11, equal nodes), written from its behaviour.

`contract` says where a job may be. Of the groups that can hold it, the one with the fewest free
nodes is taken, the last of those. Inside, base blocks are taken one after another: one of a lower
group already in use, if the contract limits lower groups; else of a lower group that holds all the
rest (of several the one with the fewest nodes, else the one with the most); there a block that
holds all the rest (likewise). Of equal ones the last is taken, and its nodes by number. Segments
are placed one after another, each like a small job. A choice is never reconsidered.

Two of its habits are not part of the contract. A group is taken to hold what the permitted number
of its largest lower groups hold together; if a machine is not a whole number of lower groups, the
rest is not counted. And a lower group in use whose next block has no free node ends the search.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property

import numpy as np

from topoplace.errors import InputError
from topoplace.placement.hierarchy.contract import Blocks, blocks_of, limits_of, segment_of
from topoplace.placement.hierarchy.heuristics.queue import Vacancy, asks_only, register_rule
from topoplace.placement.hierarchy.heuristics.slurm_tree import by_node, has_tasks
from topoplace.placement.hierarchy.problem import HierarchyProblem, Placed, room
from topoplace.snapshot.hierarchy_state import HierarchyRequest
from topoplace.types import IntArray


class Refusal(StrEnum):
    """Why a request does not start: `refused` at submission, `pending` as things are."""

    REFUSED = "refused"
    PENDING = "pending"


@register_rule("slurm-block")
def slurm_block(
    vacancy: Vacancy, request: HierarchyRequest, _: np.random.Generator
) -> Placed | None:
    """Place a job, which has no parts, and at most segments of base blocks."""
    if any(has_tasks(vacancy.machine, part) for part in request.parts):
        expected = "jobs with a number of nodes, as tasks on any nodes are not modelled"
        raise InputError(expected, found=request.id)
    part = by_node(vacancy.machine, request.parts[0])
    request = replace(request, parts=(part, *request.parts[1:]))
    segment = segment_of(vacancy.machine, part)
    known = segment is not None or not part.segments
    if len(request.parts) > 1 or not known or not asks_only(request, "segments"):
        return None
    free = np.flatnonzero(room(vacancy.free, part) > 0)
    hosts = choose(blocks_of(vacancy.machine), free, part.units, segment)
    if hosts is None:
        return None
    placed = dict.fromkeys(hosts.tolist(), 1)
    vacancy.take(part, placed)
    return (placed,)


def reason(problem: HierarchyProblem, request: HierarchyRequest) -> Refusal | None:
    """Return why Slurm does not start a request on what the running jobs leave, or None.

    Slurm refuses at submission a job that would not start even on the idle machine, all nodes up.
    """
    rng = np.random.default_rng(0)
    if slurm_block(Vacancy(problem), request, rng) is not None:
        return None
    idle = Vacancy(problem)
    idle.free[:] = problem.machine.capacity
    refused = slurm_block(idle, request, rng) is None
    return Refusal.REFUSED if refused else Refusal.PENDING


def choose(blocks: Blocks, free: IntArray, nodes: int, segment: int | None) -> IntArray | None:
    """Return the hosts that a job gets, or None.

    Parameters
    ----------
    free
        Hosts with room, ascending.
    """
    if segment is None:
        return _choose_together(blocks, free, nodes)
    if segment > blocks.base or nodes % segment:
        return None
    found = []
    for _ in range(nodes // segment):
        hosts = _choose_together(blocks, free, segment)
        if hosts is None:
            return None
        found.append(hosts)
        free = np.setdiff1d(free, hosts, assume_unique=True)
    return np.concatenate(found)


def _choose_together(blocks: Blocks, free: IntArray, nodes: int) -> IntArray | None:
    """Return the hosts of a job without segments, or None."""
    counts = np.bincount(blocks.block_of[free], minlength=blocks.num_blocks)
    search = Search.of(blocks, counts.tolist(), nodes)
    group = search.group()
    if group is None:
        return None
    found = []
    for block, taken in search.blocks_within(group):
        found.append(free[blocks.block_of[free] == block][:taken])
        nodes -= taken
    return np.concatenate(found) if nodes == 0 else None


@dataclass(frozen=True)
class Search:
    """One choice of blocks for a job without segments.

    Attributes
    ----------
    counts
        Free nodes of every base block.
    per_group, per_lower
        Base blocks in a group that can hold the job, and in a lower group.
    most
        How many of the lower ones it may use; None if they play no part.
    """

    counts: Sequence[int]
    nodes: int
    per_group: int
    per_lower: int
    most: int | None

    @classmethod
    def of(cls, blocks: Blocks, counts: Sequence[int], nodes: int) -> Search:
        """Return the search for a job."""
        limits = limits_of(blocks, nodes)
        groups = len(counts) if limits.within is None else blocks.per_group(limits.within)
        if limits.lower is None:
            return cls(counts, nodes, groups, 1, None)
        return cls(counts, nodes, groups, blocks.per_group(limits.lower), limits.most)

    def group(self) -> range | None:
        """Return the blocks of the group with the fewest free nodes that can hold the job."""
        best, fewest = None, 0
        for first in range(0, len(self.counts), self.per_group):
            blocks = range(first, min(first + self.per_group, len(self.counts)))
            free = self._free(blocks)
            if self._usable(blocks) >= self.nodes and (best is None or free <= fewest):
                best, fewest = blocks, free
        return best

    def _usable(self, blocks: range) -> int:
        """Return how many free nodes of a group count as usable for the job."""
        if self.most is None:
            return self._free(blocks)
        first = blocks.start // self.per_lower
        counted = self.lower_counts[first : first + self.per_group // self.per_lower]
        return sum(sorted(counted, reverse=True)[: self.most])

    def _free(self, blocks: range) -> int:
        return sum(self.counts[blocks.start : blocks.stop])

    @cached_property
    def lower_counts(self) -> list[int]:
        """Free nodes of every lower group."""
        firsts = range(0, len(self.counts), self.per_lower)
        return [sum(self.counts[first : first + self.per_lower]) for first in firsts]

    def blocks_within(self, group: range) -> list[tuple[int, int]]:
        """Return blocks of a group and how many nodes of each; too few if the search gives up."""
        left, rest = list(group), self.nodes
        used: set[int] = set()
        found = []
        while rest and left:
            block = max(left, key=lambda block: self._merit(block, rest, used))
            lower = block // self.per_lower
            taken = min(rest, self.counts[block])
            over = self.most is not None and len(used | {lower}) > self.most
            if over or not taken:
                break
            used.add(lower)
            left.remove(block)
            found.append((block, taken))
            rest -= taken
        return found

    def _merit(self, block: int, rest: int, used: set[int]) -> tuple[object, ...]:
        """Return the criteria by which the remaining blocks are compared, the best last."""
        own = (*_fit(self.counts[block], rest), block)
        if self.most is None:
            return own
        lower = block // self.per_lower
        return (lower in used, *_fit(self.lower_counts[lower], rest), *own)


def _fit(free: int, rest: int) -> tuple[bool, int]:
    """Return whether `free` nodes hold the rest: then fewer are better, else more."""
    return free >= rest, -free if free >= rest else free
