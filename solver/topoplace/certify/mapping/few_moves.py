"""What at most so many moves from a mapping can save (docs/proofs/mapping.md, "Few moves")."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np

from topoplace.certify.integers import require_room
from topoplace.certify.mapping.instance import Instance
from topoplace.certify.mapping.objects import tree_hops
from topoplace.certify.report import RefusedError
from topoplace.result.mapping import FewMovesCertificate
from topoplace.types import IntArray


def few_moves_value(instance: Instance, _: FewMovesCertificate) -> int:
    """Return the hop-bytes before, less what the tasks that gain most can gain by moves."""
    if instance.moves is None:
        raise RefusedError("a certificate of few moves where all may move")
    before, most = instance.moves
    routers = before // instance.machine.nodes_per_router
    num, longest = instance.machine.num_routers, max(1, instance.machine.diameter)
    every = instance.total + sum(tree.size for tree in instance.trees)
    require_room(8 * every * num * longest, "what moves may save")
    away = instance.machine.hops(routers[instance.sources], routers[instance.targets])
    now: int = sum((away * instance.sizes).tolist())
    gains = _of_messages(instance, routers, most)
    for k in range(len(instance.trees)):
        cost, shares = _of_tree(instance, before, k)
        now += cost
        for one, share in shares.items():
            gains[one] += 2 * share
    best = sorted((gain for one, gain in gains.items() if one not in instance.fixed), reverse=True)
    return max(0, int(now) - sum(gain for gain in best[:most] if gain > 0) // 2)


def _of_messages(instance: Instance, routers: IntArray, most: int) -> Counter[int]:
    """Return twice what every task may gain by its messages if at most so many tasks move."""
    machine, volumes = instance.machine, instance.volumes
    usable, loads = np.flatnonzero(instance.usable_nodes), instance.loads.tolist()
    widest = int(instance.room.max())
    gains: Counter[int] = Counter()
    if not most:
        return gains
    begins = np.searchsorted(volumes.tasks, np.arange(instance.num_tasks + 1)).tolist()
    for one, (begin, end) in enumerate(pairwise(begins)):
        if one in instance.fixed or begin == end:
            continue
        goals = usable[instance.room[usable] >= loads[one]]
        left = np.zeros(len(goals), dtype=np.int64)
        halves = np.zeros((end - begin, len(goals)), dtype=np.int64)
        for k in range(begin, end):
            partner, size = int(volumes.partners[k]), int(volumes.sizes[k])
            here = int(machine.hops(routers[[one]], routers[[partner]])[0])
            there = machine.hops(goals, np.full(len(goals), routers[partner]))
            left += 2 * size * (here - there)
            if partner not in instance.fixed:
                apart = machine.torus is not None and loads[one] + loads[partner] > widest
                halves[k - begin] = np.maximum(0, size * (here - apart) - 2 * size * (here - there))
        halves.sort(axis=0)
        kept = min(most - 1, len(halves))
        left += halves[len(halves) - kept :].sum(axis=0)
        if len(goals):
            gains[one] = int(left.max())
    return gains


def _of_tree(instance: Instance, before: IntArray, number: int) -> tuple[int, Counter[int]]:
    """Return what a tree costs before, and how much of it every object may save that moves."""
    tree, machine = instance.trees[number], instance.machine
    routers, groups = before // machine.nodes_per_router, instance.groups(before)[0]
    cost = sum(tree.size * hops for hops in _hops(instance, before, number))
    others = sorted(set(tree.members.tolist()) - {tree.root})
    if not tree.by_node:
        return cost, Counter(dict.fromkeys([*others, tree.root], cost))
    beside = Counter(groups[others].tolist())
    shares = Counter({tree.root: cost})
    for one in others:
        away = int(machine.hops(routers[[tree.root]], routers[[one]])[0])
        shares[one] = -(-tree.size * away // beside[int(groups[one])])
    return cost, shares


def _hops(instance: Instance, before: IntArray, number: int) -> list[int]:
    """Return the hops of every message of a tree."""
    alone = replace(instance, trees=(instance.trees[number],))
    sources, targets, _ = tree_hops(alone, before)
    hops: list[int] = instance.machine.hops(sources, targets).tolist()
    return hops
