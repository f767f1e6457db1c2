"""The checker's own reading of groups of tasks that should span few domains."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from topoplace.certify.report import RefusedError
from topoplace.machine import Network
from topoplace.snapshot.schema import MappingInstance, ParallelismApplication, SpreadGroups
from topoplace.types import IntArray


class Kind(NamedTuple):
    """Groups of one kind: the number of the level, 0 for hosts, their axes if any, their tasks."""

    level: int
    axes: frozenset[int]
    groups: tuple[IntArray, ...]


def read_kinds(model: MappingInstance, machine: Network, num_tasks: int) -> tuple[Kind, ...]:
    """Return the groups of an instance; refuse those that are of no level, axis or task."""
    if not model.spread:
        return ()
    if machine.levels is None or model.cap is not None or model.moves is not None:
        raise RefusedError("groups span domains of trees and hierarchies, without a cap or moves")
    names = machine.levels.hierarchy.levels[::-1]
    return tuple(_kind(one, names, model, num_tasks) for one in model.spread)


def _kind(
    one: SpreadGroups, names: tuple[str, ...], model: MappingInstance, num_tasks: int
) -> Kind:
    if one.level is None:
        level = 1 if len(names) > 1 else 0
    elif one.level in names:
        level = names.index(one.level)
    else:
        raise RefusedError(f"the machine has no level {one.level}")
    if (one.axes is None) == (one.groups is None):
        raise RefusedError("groups are either along axes or listed")
    if one.groups is not None:
        for tasks in one.groups:
            if len({*tasks}) < len(tasks) or max(tasks) >= num_tasks:
                raise RefusedError("a group has a task twice, or one that there is not")
        return Kind(level, frozenset(), tuple(np.array(tasks) for tasks in one.groups))
    assert one.axes is not None
    application = model.application
    if not isinstance(application, ParallelismApplication):
        raise RefusedError("only training jobs have axes")
    known = [axis.name for axis in application.axes]
    if len({*one.axes}) < len(one.axes) or not {*one.axes} <= {*known}:
        raise RefusedError(f"an axis is twice in {', '.join(one.axes)}, or there is none")
    along = frozenset(known.index(name) for name in one.axes)
    # who differs along these axes alone has the same coordinates along the others
    key, rest = np.zeros(num_tasks, dtype=np.int64), np.arange(num_tasks)
    for number in reversed(range(len(known))):
        size = application.axes[number].size
        rest, at = np.divmod(rest, size)
        key = key if number in along else key * size + at
    order = np.argsort(key, kind="stable")
    cuts = np.flatnonzero(np.diff(key[order])) + 1
    return Kind(level, along, tuple(np.split(order, cuts)))
