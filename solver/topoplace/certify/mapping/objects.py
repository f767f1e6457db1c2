"""What certificates prove of hop-bytes and loads of objects (docs/proofs/objects.md)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from topoplace.certify.integers import require_room
from topoplace.certify.mapping._objects_kernels import branch, walk
from topoplace.certify.mapping.graphs import in_bytes, in_parts, least_trees
from topoplace.certify.mapping.instance import Instance, Volumes
from topoplace.certify.mapping.links import least_star
from topoplace.certify.report import RefusedError
from topoplace.errors import number_of
from topoplace.machine import Torus
from topoplace.result.certificate import unpacked
from topoplace.result.mapping import (
    DENOMINATOR,
    ENUMERATION_WORK,
    EnumerationCertificate,
    SharesCertificate,
)
from topoplace.types import BoolArray, IntArray

Trees = tuple[
    tuple[IntArray, IntArray, BoolArray],
    *tuple[IntArray, IntArray, IntArray],
    BoolArray,
    *tuple[IntArray, IntArray, IntArray],
]
"""Trees as kernels have them (`walk`)."""

# ---- Trees: their links, and how many there are at least -----------------------------------------


def listed_trees(instance: Instance) -> Trees:
    """Return the trees as kernels have them; a machine without links has none."""
    linked = any(not tree.by_node for tree in instance.trees)
    torus = instance.torus if linked else Torus((1,))
    geometry = np.array(torus.shape), np.array(torus.strides), np.array(torus.wrap)
    objects = [[tree.root, *tree.members.tolist()] for tree in instance.trees]
    begins = np.cumsum([0, *map(len, objects)])
    every = np.array([one for own in objects for one in own], dtype=np.int64)
    sizes = np.array([tree.size for tree in instance.trees], dtype=np.int64)
    marks = np.zeros(2 * torus.num_links + 1, dtype=np.int64)
    tails, heads = np.zeros((2, torus.num_routers), dtype=np.int64)
    by_node = np.array([tree.by_node for tree in instance.trees], dtype=np.bool_)
    return geometry, begins, every, sizes, by_node, marks, tails, heads


def tree_hops(instance: Instance, nodes: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Return what trees send as messages: where from, where to, and the bytes of each.

    Every link is a message of one hop. A tree that goes once to a node is a message to each.
    """
    geometry, begins, every, _, _, marks, tails, heads = listed_trees(instance)
    routers, groups = nodes // instance.machine.nodes_per_router, instance.groups(nodes)[0]
    parts = [(np.zeros(0, dtype=np.int64),) * 3]
    for tree, (first, last) in zip(instance.trees, pairwise(begins), strict=True):
        at = routers[every[first:last]]
        if tree.by_node:
            _, some = np.unique(groups[tree.members], return_index=True)
            here, there = np.full(len(some), at[0]), at[1:][some]
            size = np.full(len(some), tree.size, dtype=np.int64)
            parts.append((there, here, size) if tree.reduces else (here, there, size))
            continue
        links = branch(geometry, at[0], at[1:], marks, tails, heads)
        start, end = (heads, tails) if tree.reduces else (tails, heads)
        size = np.full(links, tree.size, dtype=np.int64)
        parts.append((start[:links].copy(), end[:links].copy(), size))
    sources, targets, sizes = (np.concatenate(part) for part in zip(*parts, strict=True))
    return sources, targets, sizes


# ---- Shares --------------------------------------------------------------------------------------


def shares_value(instance: Instance, certificate: SharesCertificate) -> int:
    """Return the hop-bytes that a certificate of shares proves."""
    volumes, parts = in_parts(instance)
    lower = volumes.tasks < volumes.partners
    shares = unpacked(certificate.shares, int(lower.sum()), "shares")
    if len(shares) and not 0 <= int(shares.min()) <= int(shares.max()) <= DENOMINATOR:
        raise RefusedError(f"a share is not between 0 and {DENOMINATOR}")
    require_room(DENOMINATOR * sum(volumes.sizes.tolist()), "shares of all bytes")
    # ascending by the lower object, then the higher one, as `volumes` lists the pairs
    given = dict(
        zip(
            zip(volumes.tasks[lower].tolist(), volumes.partners[lower].tolist(), strict=True),
            shares.tolist(),
            strict=True,
        )
    )
    around = _around(instance)
    known: dict[tuple[int, tuple[tuple[int, int], ...]], int] = {}
    total = 0
    for task, partners in _stars(volumes):
        star = []
        for partner, size in partners:
            share = given[min(task, partner), max(task, partner)]
            part = size * (share if task < partner else DENOMINATOR - share)
            star.append((part, int(instance.loads[partner])))
        key = int(instance.loads[task]), tuple(sorted(star))
        if key not in known:
            known[key] = least_star(key[1], [room - key[0] for room in around])
        total += known[key]
    return in_bytes(instance, volumes.rounded_up(total, DENOMINATOR), parts) + least_trees(instance)


def _stars(volumes: Volumes) -> Iterator[tuple[int, list[tuple[int, int]]]]:
    """Yield every object that has partners, with these and their bytes."""
    begins = np.searchsorted(volumes.tasks, np.arange(volumes.num_tasks + 1)).tolist()
    partners, sizes = volumes.partners.tolist(), volumes.sizes.tolist()
    for task, (begin, end) in enumerate(pairwise(begins)):
        if end > begin:
            yield task, list(zip(partners[begin:end], sizes[begin:end], strict=True))


def _around(instance: Instance) -> list[int]:
    """Return the most load within 0, 1, 2, ... hops of a usable router, before all fits."""
    machine, room = instance.machine, instance.room
    centres = np.flatnonzero(instance.usable_nodes)
    if machine.is_transitive and (room == room[0]).all():
        centres = centres[:1]
    most: dict[int, int] = {}
    for centre in centres.tolist():
        away = machine.hops(np.full(len(room), centre), np.arange(len(room)))
        near = np.bincount(away, weights=None, minlength=1)
        inside = 0
        for hops in range(len(near)):
            # all rooms are at most the load of all objects, and there are fewer than 2^22 of them
            inside += sum(room[away == hops].tolist())
            most[hops] = max(most.get(hops, 0), inside)
    found: list[int] = []
    for hops in range(len(most)):
        if most[hops] >= instance.total_load:
            return found
        found.append(most[hops])
    return found


# ---- Enumeration ---------------------------------------------------------------------------------


def enumerated(
    instance: Instance, certificate: EnumerationCertificate, hops: int, load: int | None
) -> str:
    """Refuse unless no mapping has fewer hop-bytes than `hops` and no larger load than `load`.

    The mappings are gone through here, by at most `ENUMERATION_WORK`; None stands for any load.
    """
    order = np.asarray(certificate.order, dtype=np.int64)
    num = instance.num_tasks
    if sorted(certificate.order) != list(range(num)):
        raise RefusedError("the order is not one of all objects")
    machine = instance.machine
    where, rooms = _cells(instance, load)
    if num * len(where) > 1 << 16:
        raise RefusedError(
            f"too many to go through: {number_of(num, 'object')} on "
            f"{number_of(len(where), 'place')}"
        )
    between = machine.hops(where[:, None], where[None, :])
    require_room(int(between.max()) * instance.total, "bytes times distances")
    bytes_ = np.zeros((num, num), dtype=np.int64)
    volumes = instance.volumes
    bytes_[volumes.tasks, volumes.partners] = volumes.sizes
    allowed = np.ones((num, len(where)), dtype=np.bool_)
    for one, node in instance.fixed.items():
        allowed[one] = _is_cell(instance, node)
    stay, moves = np.full(num, -1, dtype=np.int64), num
    if instance.moves is not None:
        before, most_moves = instance.moves
        stay = np.array([int(_is_cell(instance, node).argmax()) for node in before.tolist()])
        moves = min(num, most_moves)
    elif (
        machine.is_transitive
        and not instance.fixed
        and len(set(instance.usable_nodes.tolist())) == 1
    ):
        allowed[order[0]] &= where == where[0]  # any mapping may be moved round the torus
    # no sum of loads leaves 64 bits, nor do rooms, which are cut down to all loads
    most = ENUMERATION_WORK // allowed.size**2
    trees = listed_trees(instance)
    own = instance.loads, rooms, allowed, (stay, moves), order, hops, most
    steps = walk(between, bytes_, trees, where, *own)
    if steps == -1:
        raise RefusedError(f"there is a mapping of less than {hops} hop-bytes under these caps")
    if steps < 0:
        raise RefusedError(f"more than {number_of(most, 'step')}")
    return f"{number_of(steps, 'step')}"


def _cells(instance: Instance, load: int | None) -> tuple[IntArray, IntArray]:
    """Return the routers of all that has a cap, in the order of nodes, and the load it may have."""
    nodes = instance.usable_nodes
    cap = instance.cap if load is None else min(instance.cap, load)
    routers = np.flatnonzero(nodes)
    if instance.pooled:
        widths = nodes[routers].tolist()
    else:
        routers = np.repeat(routers, nodes[routers])
        widths = [1] * len(routers)
    rooms = [min(cap * width, instance.total_load) for width in widths]
    return routers, np.array(rooms, dtype=np.int64)


def _is_cell(instance: Instance, node: int) -> BoolArray:
    """Tell of all that has a cap whether it is that of a node."""
    usable = np.flatnonzero(instance.usable)
    if not instance.pooled:
        return np.equal(usable, node)
    per = instance.machine.nodes_per_router
    return np.equal(np.unique(usable // per), node // per)


# ---- The largest load ----------------------------------------------------------------------------


def spread_value(instance: Instance) -> int:
    """Return a load that some node has in any mapping."""
    nodes = int(instance.usable.sum())
    average = -(-instance.total_load // nodes)
    if instance.pooled:
        return average
    loads: list[int] = sorted(instance.loads.tolist(), reverse=True)
    two = loads[nodes - 1] + loads[nodes] if len(loads) > nodes else 0
    return max(average, loads[0], two)
