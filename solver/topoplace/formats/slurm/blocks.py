"""Slurm's topology/block: base blocks, and aligned groups of them, as a hierarchy."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from topoplace.errors import UNSEEN, InputError
from topoplace.machine.hostlist import (
    NodeLists,
    expand_host_list,
    format_host_list,
)
from topoplace.snapshot.hierarchy_state import hierarchy_of
from topoplace.snapshot.schema import HierarchyModel, HostsModel, Part, Segment

BLOCK, NODE = "block", "node"
"""The levels of base blocks and of nodes."""

NODES = {"slots": 1}
"""What a node has room for: one unit, as a job gets whole nodes."""

MAX_SIZE = 1 << 21
MAX_NAME = 128
_NAME = re.compile(rf"[^\s,;/{UNSEEN}]{{1,{MAX_NAME}}}")
_MAX_DOUBLINGS = 15
_UNTOLD = 5  # sizes that Slurm takes where the file has none: the base, and four doublings
_MOST_LEVELS = 16  # of a hierarchy


@dataclass(frozen=True)
class Block:
    """A base block: its name, and its nodes as a host list, empty for one still to come."""

    name: str
    nodes: str


# ---- Blocks and sizes as a machine, whatever file they stand in ----------------------------------


def machine_of_blocks(
    blocks: Sequence[Block], sizes: Sequence[int] | None, name: str, source: str
) -> HierarchyModel:
    """Return the machine of base blocks and Slurm's BlockSizes.

    Above the level of the base blocks there is one for every larger size that is enforced. Its
    domains are aligned groups: consecutive blocks, counted from the first, as many as the size has.
    Sizes after one that spans all blocks are not enforced. Without sizes Slurm takes the nodes of
    the first block that has any, and four doublings of it.

    Raises
    ------
    InputError
        With the field ``block NAME`` or ``block sizes``.
    """
    counts = _counts_of(blocks)
    if sizes is None:
        base = next(count for count in counts if count)
        sizes = [base << doublings for doublings in range(_UNTOLD)]
    _require_sizes(sizes)
    upper = enforced_sizes(sizes, len(blocks))[:0:-1]
    if len(upper) + 2 > _MOST_LEVELS:
        expected = f"at most {_MOST_LEVELS - 2} enforced ones above the base"
        raise InputError(expected, field="block sizes", found=str(len(upper)))
    hosts = []
    for idx, block in enumerate(blocks):
        groups = [_group(blocks, idx, size // sizes[0]) for size in upper]
        if counts[idx]:
            hosts.append(HostsModel(hosts=block.nodes, domains=[*groups, block.name]))
    return HierarchyModel(
        kind="hierarchy",
        name=name,
        levels=[*(level_of_size(size) for size in upper), BLOCK, NODE],
        hosts=hosts,
        block_sizes=list(sizes),
        source=source,
    )


def level_of_size(size: int) -> str:
    """Return the level of the groups of a size above the base."""
    return f"{BLOCK}{size}"


def enforced_sizes(sizes: Sequence[int], num_blocks: int) -> list[int]:
    """Return the sizes that a machine enforces, ascending: up to the first that spans it."""
    enforced: list[int] = []
    for size in sorted(sizes):
        enforced.append(size)
        if size // sizes[0] >= num_blocks:
            break
    return enforced


def _counts_of(blocks: Sequence[Block]) -> list[int]:
    """Return how many nodes every block has, after checking that each has its own."""
    block_of: dict[str, str] = {}
    counts: list[int] = []
    names: set[str] = set()
    lists = NodeLists()
    for block in blocks:
        field = f"block {block.name}"
        if _NAME.fullmatch(block.name) is None:
            expected = f"a name of at most {MAX_NAME} characters, none a blank or one of ,;/"
            raise InputError(expected, field=field, value=block.name)
        if block.name in names:
            raise InputError("each block once", field=field, value=block.name)
        names.add(block.name)
        nodes = lists.hosts(block.nodes, field)
        counts.append(len(nodes))
        for node in nodes:
            if node in block_of:
                expected = f"each node in one block (it is in {block_of[node]} too)"
                raise InputError(expected, field=field, value=node)
            block_of[node] = block.name
    if not block_of:
        raise InputError("at least one block with nodes", found="none")
    return counts


def _require_sizes(sizes: Sequence[int]) -> None:
    for idx, size in enumerate(sizes):
        times, rest = divmod(size, sizes[0])
        if rest or times.bit_count() != 1 or times > 1 << _MAX_DOUBLINGS or size > MAX_SIZE:
            expected = f"{sizes[0]} times a power of two of at most {1 << _MAX_DOUBLINGS}"
            raise InputError(expected, field="block sizes", value=size)
        if size in sizes[:idx]:
            raise InputError("each size once", field="block sizes", value=size)


def _group(blocks: Sequence[Block], idx: int, length: int) -> str:
    """Return the name of the aligned group that a block is in."""
    first = idx // length * length
    last = min(first + length, len(blocks)) - 1
    both = f"{blocks[first].name}..{blocks[last].name}"
    name = both if last > first else blocks[first].name
    return name if len(name) <= MAX_NAME else f"{BLOCK}{first}..{last}"


def asked_of_blocks(
    nodes: int, segment: int | None, exclusive: str | None = None
) -> dict[str, Any]:
    """Return what a job asks of blocks, as fields of a request.

    Without segment it asks for nothing: where Slurm then puts it is Slurm's contract. Where a
    segment does not divide the nodes, which Slurm refuses before 25.05, the rest is a part and a
    smaller segment of its own.
    """
    asked: dict[str, Any] = {"exclusive": exclusive}
    if segment is None:
        return asked
    rest = nodes % segment
    if rest and rest < nodes:
        sizes = {"segments": (nodes - rest, segment), "rest": (rest, rest)}
        parts = [
            Part(id=name, nodes=own, segments=[Segment(size=size, level=BLOCK)], **asked)
            for name, (own, size) in sizes.items()
        ]
        return {"parts": parts, "segments": None, "exclusive": None}
    return asked | {"segments": [Segment(size=rest or segment, level=BLOCK)]}


def blocks_of_machine(machine: HierarchyModel) -> list[Block]:
    """Return the base blocks of a machine, in its order.

    Raises
    ------
    InputError
        If they do not make the machine: if it has no block sizes, or its groups are not aligned.
    """
    if machine.block_sizes is None:
        expected = "a machine with Slurm's block sizes"
        raise InputError(expected, field="block_sizes", found="nothing")
    hierarchy = hierarchy_of(machine)
    nodes: dict[tuple[str, ...], list[str]] = {}
    for group in machine.hosts:
        nodes.setdefault(tuple(group.domains), []).extend(expand_host_list(group.hosts))
    blocks = [Block(path[-1] if path else "", format_host_list(own)) for path, own in nodes.items()]
    made = machine_of_blocks(blocks, machine.block_sizes, machine.name, "")
    other = hierarchy_of(made)
    alike = other.levels == hierarchy.levels and other.domain_names == hierarchy.domain_names
    if not alike or hierarchy.fabrics:
        raise InputError("aligned groups of consecutive blocks of Slurm", field="hosts")
    return blocks
