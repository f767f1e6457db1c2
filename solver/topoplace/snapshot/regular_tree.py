"""Regular switch trees, from the shorthand ``tree:4x6x16``."""

from __future__ import annotations

import math
from collections.abc import Sequence

from topoplace.errors import InputError
from topoplace.machine.hostlist import MAX_HOSTS
from topoplace.snapshot.schema import SwitchModel, TreeModel
from topoplace.snapshot.tree_state import MAX_LEAVES

_MAX_LEVELS = 16


def regular_tree(sizes: Sequence[int], spec: str) -> TreeModel:
    """Return the tree with these numbers of children at every level, from the root down.

    The last number is the nodes of a leaf: ``[24, 16]`` has 24 leaves of 16 nodes below a root.
    Switch ``s2-0`` is the first of level 2 (leaves are level 1), node ``n0`` the first of leaf
    ``s1-0``.

    Parameters
    ----------
    sizes
        Children per switch, then nodes per leaf.
    spec
        The shorthand, for the machine's name and for errors.

    Raises
    ------
    InputError
        For a number below 1, or a machine that is too large.
    """
    num_leaves = math.prod(sizes[:-1])
    if min(sizes) < 1 or len(sizes) > _MAX_LEVELS:
        raise InputError(f"1 to {_MAX_LEVELS} numbers from 1", field="machine", value=spec)
    if num_leaves > MAX_LEAVES or num_leaves * sizes[-1] > MAX_HOSTS // 2:
        raise InputError(
            f"at most {MAX_LEAVES} leaves and {MAX_HOSTS // 2} nodes", field="machine", value=spec
        )
    switches: list[SwitchModel] = []
    for level, size in enumerate(reversed(sizes), start=1):
        num_switches = math.prod(sizes[: len(sizes) - level])
        for k in range(num_switches):
            below = f"[{k * size}-{(k + 1) * size - 1}]"
            switches.append(
                SwitchModel(name=f"s{level}-{k}", nodes=f"n{below}")
                if level == 1
                else SwitchModel(name=f"s{level}-{k}", switches=f"s{level - 1}-{below}")
            )
    return TreeModel(kind="tree", name=spec.replace(":", "-"), switches=switches)
