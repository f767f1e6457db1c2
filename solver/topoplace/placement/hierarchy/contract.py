"""What Slurm's topology/block promises a job, no matter which nodes it then chooses (24.11).

Sizes are in base blocks of the planning size, the first of BlockSizes, not in nodes that exist. A
job without segments lies in one aligned group of blocks: consecutive ones, counted from the first,
of the smallest enforced size that is at least the job; if no size is large enough, it may be
anywhere. In the group it is on at most ceil(job / size) groups of the next lower enforced size, and
a group counts as whole no matter how much of it is busy. A job with segments has every segment
inside one base block, and no other limit. One unit is one node.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from topoplace.errors import InputError, number_of, unknown_name
from topoplace.machine.hierarchy import Hierarchy
from topoplace.placement.hierarchy.problem import Placed
from topoplace.snapshot.held import CONTRACT
from topoplace.snapshot.hierarchy_state import (
    HierarchyRequest,
    HierarchyState,
    PartState,
    prepare_hierarchy,
)
from topoplace.snapshot.schema import HierarchyModel, LeftOut, Request, Segment, Snapshot
from topoplace.types import IntArray

DEFAULT_DOUBLINGS = 4
"""How often the base doubles where BlockSizes is not given: then all those sizes are enforced."""


@dataclass(frozen=True)
class Blocks:
    """The base blocks of a machine, and the sizes of groups of them that are enforced.

    Attributes
    ----------
    block_of
        Of every host, shape ``(num_hosts,)``; blocks in their order.
    num_blocks
        How many base blocks there are.
    sizes
        In nodes, ascending; the first is the planning size of a base block.
    """

    block_of: IntArray
    num_blocks: int
    sizes: tuple[int, ...]

    @property
    def base(self) -> int:
        """Nodes of a base block, by its planning size."""
        return self.sizes[0]

    def per_group(self, size: int) -> int:
        """Return the number of base blocks in a group."""
        return size // self.base

    def group_of(self, size: int) -> IntArray:
        """Return the aligned group of a size that every host is in, shape ``(num_hosts,)``."""
        return np.asarray(self.block_of // self.per_group(size))


@dataclass(frozen=True)
class Limits:
    """What the contract says of a part without segments.

    Attributes
    ----------
    within
        Size of the aligned groups; one of them holds all units. None if they may be anywhere.
    lower
        Size of groups of which at most `most` may be used; None where that limits nothing.
    most
        How many of those.
    """

    within: int | None
    lower: int | None = None
    most: int = 1


def blocks_of(machine: Hierarchy) -> Blocks:
    """Return the base blocks of a machine: the level above its hosts, or all of it as one.

    Without BlockSizes the smallest block is the base, and doubled sizes are enforced.

    Raises
    ------
    InputError
        If a size is no multiple of the first.
    """
    block_of = np.zeros(machine.num_hosts, dtype=np.int64)
    if machine.num_levels > 1:
        block_of = machine.domain_of[-2]
    counts = np.bincount(block_of)
    sizes = machine.block_sizes
    if not sizes:
        base = int(counts.min())
        sizes = tuple(base << doubling for doubling in range(DEFAULT_DOUBLINGS + 1))
    for size in sizes:
        if size % sizes[0]:
            expected = f"a multiple of the base block's {sizes[0]}"
            raise InputError(expected, field="machine.block_sizes", value=str(size))
    return Blocks(block_of, len(counts), sizes)


def limits_of(blocks: Blocks, nodes: int) -> Limits:
    """Return the limits of a part of some nodes without segments."""
    at = next((idx for idx, size in enumerate(blocks.sizes) if size >= nodes), len(blocks.sizes))
    within = blocks.sizes[at] if at < len(blocks.sizes) else None
    if at == 0:
        return Limits(within)
    lower = blocks.sizes[at - 1]
    most = -(-nodes // lower)
    there = blocks.num_blocks if within is None else blocks.per_group(within)
    if there == blocks.per_group(lower) * most:
        return Limits(within)
    return Limits(within, lower, most)


def level_of_groups(machine: Hierarchy, blocks: Blocks, size: int) -> int | None:
    """Return the level whose domains are the aligned groups of a size; None if there is one group.

    Raises
    ------
    InputError
        If the machine has no such level.
    """
    groups = blocks.group_of(size)
    if not groups.any():
        return None
    for level, domain_of in enumerate(machine.domain_of):
        if np.array_equal(domain_of, groups):
            return level
    expected = f"a level of aligned groups of {number_of(blocks.per_group(size), 'block')}"
    raise InputError(expected, field="machine.levels", found=", ".join(machine.levels))


def segment_of(machine: Hierarchy, part: PartState) -> int | None:
    """Return the size of a part's segments if they are of base blocks; None without segments."""
    if len(part.segments) == 1 and part.segments[0][0] == machine.num_levels - 2:
        return part.segments[0][1]
    return None


@dataclass(frozen=True)
class LevelLimits:
    """The limits of a part in addition to its segments, in levels of the machine.

    Attributes
    ----------
    required
        Level on which one domain has to hold all units; None if they may be anywhere.
    most
        Level, and how many of its domains the part may use at most; None where nothing is limited.
    """

    required: int | None
    most: tuple[int, int] | None


def level_limits(machine: Hierarchy, part: PartState) -> LevelLimits | None:
    """Return the limits of a part, or None if Slurm refuses its segments.

    Raises
    ------
    InputError
        If the machine lacks a level of the groups that are limited.
    """
    blocks = blocks_of(machine)
    if part.segments:
        size = segment_of(machine, part)
        return None if size is None or size > blocks.base else LevelLimits(None, None)
    limits = limits_of(blocks, part.units)
    required = most = None
    if limits.within is not None:
        required = level_of_groups(machine, blocks, limits.within)
    if limits.lower is not None:
        level = level_of_groups(machine, blocks, limits.lower)
        most = None if level is None else (level, limits.most)
    return LevelLimits(required, most)


def keeps_contract(machine: Hierarchy, request: HierarchyRequest, placed: Placed) -> bool:
    """Whether a request that is placed keeps the contract, part by part."""
    blocks = blocks_of(machine)
    pairs = zip(request.parts, placed, strict=True)
    return all(_keeps(machine, blocks, part, list(hosts.items())) for part, hosts in pairs)


def _keeps(
    machine: Hierarchy, blocks: Blocks, part: PartState, taken: list[tuple[int, int]]
) -> bool:
    hosts = np.array([host for host, _ in taken])
    units = np.array([own for _, own in taken])
    if (units > 1).any():
        return False
    if part.segments:
        size = segment_of(machine, part)
        by_block = np.bincount(blocks.block_of[hosts])
        return size is not None and size <= blocks.base and not (by_block % size).any()
    limits = limits_of(blocks, part.units)
    if limits.within is not None and len(np.unique(blocks.group_of(limits.within)[hosts])) > 1:
        return False
    if limits.lower is None:
        return True
    return len(np.unique(blocks.group_of(limits.lower)[hosts])) <= limits.most


def under_contract(snapshot: Snapshot) -> Snapshot:
    """Return a snapshot whose requests have the promises of the contract as their own rules.

    They get a required level, and how many domains of the next lower one they may use. A request
    that Slurm refuses, or that has rules which do not go together with these, is held.
    """
    state = prepare_hierarchy(snapshot)
    by_id = {own.id: own for own in state.requests}
    queue, held = [], []
    for request in snapshot.queue:
        own = by_id.get(request.id)  # None if it is held
        said = None if own is None else _said(state.machine, request, own.parts)
        held += [said] if isinstance(said, LeftOut) else []
        queue.append(request.model_copy(update=said) if isinstance(said, dict) else request)
    left_out = [one for one in snapshot.left_out if one.option != CONTRACT or one.request]
    return snapshot.model_copy(update={"queue": queue, "left_out": [*left_out, *held]})


def _said(
    machine: Hierarchy, request: Request, parts: Sequence[PartState]
) -> dict[str, object] | LeftOut:
    """Return the fields of a request that say what the contract promises; or what holds it."""
    limits = [level_limits(machine, part) for part in parts]
    if None in limits:
        expected = "segments of at most a base block, one of each block"
        return LeftOut(request=request.id, option=CONTRACT, value=expected, certain=True)
    alone = len(parts) == 1 and not (request.required or request.at_most)
    if not alone and not all(part.segments for part in parts):
        own = "a request without parts, required level or at_most under the contract"
        return LeftOut(request=request.id, option=CONTRACT, value=own)
    (first, *_), names = [one for one in limits if one is not None], machine.levels
    said: dict[str, object] = {}
    if first.required is not None:
        said["required"] = names[first.required]
    if first.most is not None:
        level, most = first.most
        said["at_most"] = Segment(size=most, level=names[level])
    return said


CONTRACTS: Mapping[str, Callable[[Snapshot], Snapshot]] = {"slurm-block": under_contract}
"""Promises of schedulers in addition to the rules of requests, by name."""


def held_to(snapshot: Snapshot, contract: str) -> Snapshot:
    """Return a snapshot whose requests have the promises of a contract as their own rules.

    Raises
    ------
    InputError
        If there is no such contract, or the machine is not a hierarchy.
    """
    if contract not in CONTRACTS:
        raise unknown_name(contract, CONTRACTS, field="contract")
    if not isinstance(snapshot.machine, HierarchyModel):
        raise InputError("no contract but on hierarchies", field="contract", value=contract)
    return CONTRACTS[contract](snapshot)


def prepared_under(snapshot: Snapshot, contract: str) -> HierarchyState:
    """Return a snapshot held to a contract, ready for any method (see `held_to`)."""
    return prepare_hierarchy(held_to(snapshot, contract))
