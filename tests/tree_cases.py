"""Small tree machines and snapshots on them, for tests."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

from topoplace.machine.tree import SwitchTree, build_tree
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


def two_level(sizes: Sequence[int]) -> SwitchTree:
    """Return leaves of such sizes under one root; nodes are n0, n1, .. leaf by leaf."""
    leaves = [(leaf.name, leaf.nodes.split(",")) for leaf in _leaves(sizes)]
    return build_tree(leaves, [("root", [name for name, _ in leaves])])


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


def random_tree(rng: random.Random) -> SwitchTree:
    """Return a tree of two or three levels, leaves of different sizes, now and then two roots."""
    leaves = [
        (f"s{k}", [f"n{k}-{i}" for i in range(rng.randint(1, 6))]) for k in range(rng.randint(1, 6))
    ]
    names = [name for name, _ in leaves]
    cut = rng.randint(0, len(names))
    uppers = [(f"m{k}", part) for k, part in enumerate((names[:cut], names[cut:])) if part]
    roots = [(f"root{k}", [name for name, _ in uppers]) for k in range(rng.randint(1, 2))]
    return build_tree(leaves, [*uppers, *roots])
