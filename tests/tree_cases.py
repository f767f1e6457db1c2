"""Small tree machines and snapshots on them, for tests."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

from topoplace.machine.hierarchy import Hierarchy, hierarchy_of_switches
from topoplace.machine.switches import switches_of
from topoplace.snapshot.schema import (
    Communication,
    Pattern,
    PatternUse,
    Request,
    RunningJob,
    Snapshot,
    SwitchModel,
    TreeModel,
)

HEURISTICS = ("default", "greedy", "balanced", "adaptive", "fewest-domains", "random")


def two_level(sizes: Sequence[int]) -> Hierarchy:
    """Return leaves of such sizes under one root; nodes are n0, n1, .. leaf by leaf."""
    leaves = [(leaf.name, leaf.nodes.split(",")) for leaf in _leaves(sizes)]
    return built(leaves, [("root", [name for name, _ in leaves])])


def built(
    leaves: Sequence[tuple[str, Sequence[str]]], uppers: Sequence[tuple[str, Sequence[str]]]
) -> Hierarchy:
    """Return the machine of leaf switches (name, nodes) and switches above (name, children)."""
    return hierarchy_of_switches(switches_of(leaves, uppers))


def model_of(sizes: Sequence[int]) -> TreeModel:
    """Return the same machine as a document."""
    leaves = _leaves(sizes)
    root = SwitchModel(name="root", switches=",".join(leaf.name for leaf in leaves))
    return TreeModel(kind="tree", name="tree", switches=[*leaves, root])


def _leaves(sizes: Sequence[int]) -> list[SwitchModel]:
    names = (f"n{k}" for k in itertools.count())
    own = (",".join(itertools.islice(names, size)) for size in sizes)
    return [SwitchModel(name=f"s{k}", nodes=nodes) for k, nodes in enumerate(own)]


def apart(sizes: Sequence[int]) -> TreeModel:
    """Return the same leaves without a common switch."""
    model = model_of(sizes)
    return TreeModel(kind="tree", name="apart", switches=model.switches[:-1])


def snapshot_on(
    machine: TreeModel,
    running: Sequence[tuple[str, Communication]] = (),
    queue: Sequence[tuple[int, Sequence[PatternUse]]] = (),
    down: str = "",
) -> Snapshot:
    """Return a snapshot: running jobs (nodes, kind) j0, j1, .., requests (size, patterns) q0, .."""
    return Snapshot(
        schema_version="topoplace.snapshot/1",
        name="case",
        machine=machine,
        down=down,
        running=[
            RunningJob(id=f"j{k}", nodes=nodes, communication=kind)
            for k, (nodes, kind) in enumerate(running)
        ],
        queue=[
            Request(id=f"q{k}", nodes=size, patterns=list(patterns) or None)
            for k, (size, patterns) in enumerate(queue)
        ],
    )


def uses(*patterns: Pattern) -> list[PatternUse]:
    """Return patterns with the whole run time shared evenly."""
    return [PatternUse(pattern=pattern, share=100 // len(patterns)) for pattern in patterns]


Described = list[tuple[str, list[str]]]
"""Switches, each with the nodes or switches below it."""


def random_switches(rng: random.Random, least_roots: int = 0) -> tuple[Described, Described]:
    """Return leaves of different sizes, and switches above them, below up to two roots."""
    leaves = [
        (f"s{k}", [f"n{k}-{i}" for i in range(rng.randint(1, 6))]) for k in range(rng.randint(1, 6))
    ]
    names = [name for name, _ in leaves]
    cut = rng.randint(0, len(names))
    uppers = [(f"m{k}", part) for k, part in enumerate((names[:cut], names[cut:])) if part]
    roots = [(f"root{k}", [name for name, _ in uppers]) for k in range(rng.randint(least_roots, 2))]
    return leaves, [*uppers, *roots]


def random_tree(rng: random.Random) -> Hierarchy:
    """Return the machine of such switches, with a root."""
    return built(*random_switches(rng, least_roots=1))
