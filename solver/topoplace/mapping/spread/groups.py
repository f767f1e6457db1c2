"""Groups of tasks of which none should span many domains of a level."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from topoplace.errors import InputError, unknown_name
from topoplace.machine import LevelMachine, Network, parse_node_set
from topoplace.mapping.parallelism import SHORT
from topoplace.snapshot.files import read_bytes
from topoplace.snapshot.schema import (
    AnyApplication,
    MappingInstance,
    ObjectsGraph,
    ParallelismApplication,
    SpreadGroups,
)
from topoplace.types import IntArray


@dataclass(frozen=True, eq=False)
class Groups:
    """Groups of one kind.

    Attributes
    ----------
    name
        What they are called, for people.
    level
        Number of the level whose domains count, 0 for that of the hosts (`LevelMachine.domain_of`).
    domain_of
        The domain of every router on this level.
    axes
        Numbers of the axes that they go along; none if they are listed.
    first, task
        The tasks of group g are ``task[first[g]:first[g + 1]]``.
    """

    name: str
    level: int
    domain_of: IntArray
    axes: tuple[int, ...]
    first: IntArray
    task: IntArray

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.first) - 1

    @property
    def group(self) -> IntArray:
        """The group of every entry of `task`."""
        return np.repeat(np.arange(len(self)), np.diff(self.first))

    def spans(self, routers: IntArray) -> IntArray:
        """Return how many domains every group spans, given the router of every task."""
        num = int(self.domain_of.max()) + 1
        both = np.unique(self.group * num + self.domain_of[routers[self.task]])
        counts: IntArray = np.bincount(both // num, minlength=len(self))
        return counts


def levels_by_name(machine: LevelMachine) -> dict[str, int]:
    """Return the numbers of the levels of a machine, the lowest first."""
    return {name: number for number, name in enumerate(machine.hierarchy.levels[::-1])}


def groups_of(instance: MappingInstance, machine: Network, num_tasks: int) -> tuple[Groups, ...]:
    """Return the groups of an instance; `InputError` names the field at fault."""
    if not instance.spread:
        return ()
    if machine.levels is None:
        expected = "a tree or hierarchy, for groups to span few domains"
        raise InputError(expected, field="machine", value=machine.text)
    if instance.cap is not None:
        raise InputError("tasks without a cap, for a spread", field="cap", value=instance.cap)
    if instance.moves is not None:
        raise InputError("no limit of moves with a spread", field="moves", found="one")
    return tuple(
        _groups(one, machine.levels, instance.application, num_tasks, f"spread[{k}]")
        for k, one in enumerate(instance.spread)
    )


def _groups(
    one: SpreadGroups, machine: LevelMachine, application: Any, num: int, field: str
) -> Groups:
    """Return groups along axes, or those that are listed."""
    known = levels_by_name(machine)
    if one.level is not None and one.level not in known:
        raise unknown_name(one.level, known, field=f"{field}.level")
    level = min(1, len(known) - 1) if one.level is None else known[one.level]
    own = level, machine.domain_of[level]
    if (one.axes is None) is (one.groups is None):
        raise InputError("either axes or groups", field=field, found="both or neither")
    if one.groups is not None:
        for k, tasks in enumerate(one.groups):
            if max(tasks) >= num or len(set(tasks)) < len(tasks):
                expected = f"tasks below {num}, each once"
                raise InputError(expected, field=f"{field}.groups[{k}]", value=tasks[:8])
        first = np.cumsum([0, *map(len, one.groups)])
        every = np.concatenate([np.array(tasks, dtype=np.int64) for tasks in one.groups])
        return Groups("listed", *own, (), first, every)
    if not isinstance(application, ParallelismApplication):
        found = f"an application of kind {application.kind}"
        raise InputError("listed groups, or a training job", field=f"{field}.axes", found=found)
    names = [axis.name for axis in application.axes]
    for name in one.axes or ():
        if name not in names:
            raise unknown_name(name, names, field=f"{field}.axes")
    if len(set(one.axes or ())) < len(one.axes or ()):
        raise InputError("each axis once", field=f"{field}.axes", value=", ".join(one.axes or ()))
    axes = tuple(sorted(map(names.index, one.axes or ())))
    shape = [axis.size for axis in application.axes]
    size = math.prod(shape[k] for k in axes)
    others = [k for k in range(len(shape)) if k not in axes]
    ranks = np.arange(num).reshape(shape).transpose(*others, *axes).ravel()
    first = np.arange(0, num + 1, size)
    return Groups("+".join(names[k] for k in axes), *own, axes, first, ranks)


# ---- What users write ----------------------------------------------------------------------------


def spread_asked(
    application: AnyApplication | ObjectsGraph,
    groups: str | Path | Sequence[Sequence[int]] | None,
    level: str | None,
) -> list[SpreadGroups]:
    """Return the groups of a text, a file or a list, at a level.

    A text lists axes of a training job, perhaps several for a group and a level,
    ``data,tensor,data+expert:pod``; without it every axis of more than one rank counts. A file has
    a group on every line.
    """
    if groups is None:
        if not isinstance(application, ParallelismApplication):
            raise InputError("groups of tasks for a spread", field="groups", found="none")
        names = [axis.name for axis in application.axes if axis.size > 1]
        names = names or [application.axes[0].name]
        return [SpreadGroups(axes=[name], level=level) for name in names]
    if isinstance(groups, Path) or (isinstance(groups, str) and Path(groups).is_file()):
        return [SpreadGroups(groups=_of_file(str(groups), application.num_tasks), level=level)]
    if not isinstance(groups, str):
        return [SpreadGroups(groups=[list(one) for one in groups], level=level)]
    found = []
    for part in groups.split(","):
        along, colon, own = part.strip().partition(":")
        if not along or (colon and not own):
            expected = "axes such as data,tensor:rack,data+expert, or a file"
            raise InputError(expected, field="groups", value=groups)
        axes = [SHORT.get(name, name) for name in along.split("+")]
        found.append(SpreadGroups(axes=axes, level=own or level))
    return found


def _of_file(path: str, num_tasks: int) -> list[list[int]]:
    """Return the group of every line of a file: numbers and ranges such as ``0-7,16``."""
    found = []
    for number, line in enumerate(read_bytes(path).decode(errors="replace").splitlines(), 1):
        text = line.partition("#")[0].strip()
        if text:
            try:
                listed = parse_node_set(",".join(text.replace(",", " ").split()), num_tasks)
            except InputError:
                expected = f"tasks below {num_tasks}, each once, such as 0-7,16"
                where = {"file": path, "field": f"line {number}"}
                raise InputError(expected, **where, value=text) from None
            found.append(listed.tolist())
    if not found:
        raise InputError("a group of tasks on a line", file=path, found="none")
    return found
