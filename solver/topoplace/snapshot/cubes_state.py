"""A validated snapshot of a pod of cubes as arrays: the one form in which solvers see it."""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from topoplace.errors import InputError, number_of
from topoplace.machine.cubes import Cubes, Extents
from topoplace.machine.hostlist import NodeLists
from topoplace.snapshot.schema import (
    BY_SETS,
    OF_GANGS,
    CubesModel,
    Request,
    Snapshot,
)
from topoplace.snapshot.sets import HostSet, NodeSets
from topoplace.snapshot.state import NumberedState, Queued, checked_nodes, require_none
from topoplace.snapshot.value import require_value, value_of
from topoplace.types import BoolArray

MAX_CHIPS, MAX_VOLUME = 1 << 16, 512
"""Chips of the largest machine and of its largest cube: certificates may have a price for each."""

_SHAPE = re.compile(r"\d{1,6}(?:x\d{1,6})*")
_OWN = {
    *("id", "nodes", "priority", "shapes", "communication", "application", "walltime"),
    *("submitted", *BY_SETS),
}
"""Fields of a request that speak of no other kind of machine."""


@dataclass(frozen=True)
class CubesRequest(Queued):
    """A queued request: a number of whole cubes, no matter which, or a part of one.

    Attributes
    ----------
    num_cubes
        Whole cubes that it takes, 0 if it takes a part.
    parts
        Extents of the parts it may take, in the order of its shapes; empty if it takes whole cubes.
    allowed
        Sets of chips, of one of which it has all its chips; None for all there are.
    """

    num_cubes: int
    parts: tuple[Extents, ...]
    allowed: frozenset[HostSet | None] = frozenset((None,))

    def among(self, chips: BoolArray) -> list[BoolArray]:
        """Return which of some chips, of any shape of the machine's size, it may have together."""
        return [
            chips if own is None else np.asarray(chips & own.mask.reshape(chips.shape))
            for own in self.allowed
        ]


@dataclass(frozen=True)
class CubesState(NumberedState):
    """What a snapshot of a pod of cubes says; `free` has the shape ``(num_cubes, volume)``."""

    kind = "cubes"

    machine: Cubes
    requests: tuple[CubesRequest, ...]


def prepare_cubes(snapshot: Snapshot) -> CubesState:
    """Check a snapshot of a pod of cubes and return its arrays.

    A chip may be down (draining) and held by a running job.

    Raises
    ------
    InputError
        With the field at fault, for anything the schema alone could not see.
    """
    model = snapshot.on(CubesModel, "a machine of cubes")
    require_value(snapshot)
    machine = Cubes(model.cubes, tuple(model.side))
    if machine.volume > MAX_VOLUME:
        expected = f"at most {MAX_VOLUME} chips in a cube"
        raise InputError(expected, field="machine.side", value=model.side)
    if machine.num_chips > MAX_CHIPS:
        expected = f"at most {MAX_CHIPS} chips in all cubes"
        raise InputError(expected, field="machine.cubes", value=model.cubes)
    lists = NodeLists(max(1, len(snapshot.sets) + len(snapshot.queue)) * machine.num_chips)

    sets = NodeSets(
        snapshot.sets,
        machine.num_chips,
        lambda text, field: lists.numbers(text, machine.num_chips, field),
    )
    held, free, requests = checked_nodes(
        snapshot,
        "cubes",
        lists,
        np.zeros(machine.num_chips, dtype=bool),
        ("apart", "exclusive", "patterns", "prism", "takes", *OF_GANGS),
        lambda _, job, field: _request(job, machine, sets, field, value_of(job, snapshot.value)),
        called="chip {}".format,
        unit="chip",
    )
    return CubesState(snapshot, free.reshape(machine.num_cubes, -1), held, machine, requests)


def _request(
    request: Request, machine: Cubes, sets: NodeSets, field: str, value: int
) -> CubesRequest:
    others = [name for name, _ in request if name not in _OWN]
    require_none(request, others, "cubes", field, shown=True)
    nodes, volume = request.nodes, machine.volume
    parts: list[Extents] = []
    if request.shapes is not None:
        parts = _shapes(request.shapes, machine, nodes, f"{field}.shapes")
    elif nodes < volume:
        parts = _parts(machine.side, nodes)
    if (nodes < volume and not parts) or (nodes % volume and nodes > volume):
        expected = f"a number of chips that a part of a cube has, or a multiple of {volume}"
        raise InputError(expected, field=f"{field}.nodes", value=nodes)
    if nodes > machine.num_chips:
        expected = f"no more chips than the machine's {machine.num_chips}"
        raise InputError(expected, field=f"{field}.nodes", value=nodes)
    masks = sets.of_request(request, field)
    allowed = frozenset(None if mask.all() else HostSet(mask) for mask in masks)
    return CubesRequest(request.id, nodes, value, nodes // volume, tuple(parts), allowed)


@lru_cache(maxsize=1024)
def _parts(side: Extents, nodes: int) -> list[Extents]:
    """Return the extents of all parts that have `nodes` chips."""
    every = itertools.product(*(range(1, n + 1) for n in side))
    return [extents for extents in every if math.prod(extents) == nodes]


def _shapes(text: str, machine: Cubes, nodes: int, field: str) -> list[Extents]:
    """Return the parts that a geometry string allows; none if its shapes are of whole cubes."""
    parts = []
    for shape in map(str.strip, text.split("/")):
        if _SHAPE.fullmatch(shape) is None:
            raise InputError('shapes such as "2x2x4/1x4x4"', field=field, value=shape)
        extents = tuple(map(int, shape.split("x")))
        if len(extents) != len(machine.side):
            raise InputError(
                f"shapes of {number_of(len(machine.side), 'extent')}", field=field, value=shape
            )
        if math.prod(extents) != nodes:
            raise InputError(
                f"shapes of the {number_of(nodes, 'chip')} requested", field=field, value=shape
            )
        pairs = list(zip(extents, machine.side, strict=True))
        if all(e % n == 0 for e, n in pairs):
            continue
        if any(e > n for e, n in pairs):
            side = "x".join(map(str, machine.side))
            expected = f"shapes inside a cube of {side}, or of multiples of its side"
            raise InputError(expected, field=field, value=shape)
        parts.append(extents)
    return list(dict.fromkeys(parts))
