"""The checker's own reading of a snapshot of a pod of cubes."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from topoplace.certify.candidates import candidates, require_plain
from topoplace.certify.report import RefusedError, require_only
from topoplace.certify.sets import Hosts, NodeSets
from topoplace.certify.value import require_value, value_of
from topoplace.errors import number_of
from topoplace.snapshot.schema import BY_SETS, CubesModel, Snapshot
from topoplace.snapshot.schema import Request as RequestModel
from topoplace.types import BoolArray

Shape = tuple[int, ...]

MOST_CHIPS, MOST_IN_A_CUBE = 1 << 16, 512
"""Most chips of a machine, and of one cube, that the checker reads."""

_PLAIN = {"id", "nodes", "priority", "shapes", "communication", "application"}
_PLAIN |= {"walltime", "submitted", *BY_SETS}
_TEXT = re.compile(r"[0-9]{1,6}(x[0-9]{1,6})*")


@dataclass(frozen=True)
class Request:
    """What may start: on `count` whole cubes, or (0) on a part of one of some shapes.

    A spare is no request of the queue: it keeps a cube free, which counts on the second level.
    It has all its chips of one of the sets `allowed`, of which None is all there are.
    """

    id: str
    value: int
    count: int
    shapes: frozenset[Shape]
    is_spare: bool = False
    allowed: frozenset[Hosts | None] = frozenset((None,))

    def may_have(self, chips: Iterable[int]) -> bool:
        """Return whether it may have all of some chips."""
        every = {*chips}
        return any(own is None or own >= every for own in self.allowed)

    @property
    def nodes(self) -> int:
        """Chips of a part."""
        return max(map(math.prod, self.shapes), default=0)


@dataclass(frozen=True)
class Instance:
    """A snapshot: which chips are free, shape ``(num_cubes, volume)``, and who waits."""

    side: Shape
    free: BoolArray
    queue: tuple[Request, ...]

    @property
    def volume(self) -> int:
        """Chips of a cube."""
        return math.prod(self.side)

    @cached_property
    def by_id(self) -> dict[str, Request]:
        """The queue by name."""
        return {request.id: request for request in self.queue}

    @cached_property
    def whole(self) -> BoolArray:
        """The cubes that are free as a whole."""
        return np.asarray(self.free.all(axis=1))

    @cached_property
    def requests(self) -> tuple[Request, ...]:
        """The queue and a spare for every free cube, with names that no request has."""
        num = int(self.whole.sum())
        tilde = next(
            text
            for length in itertools.count(1)
            for text in ["~" * length]
            if not any(request.id[:length] == text for request in self.queue)
        )
        spares = (Request(f"{tilde}{k}", 0, 1, frozenset(), is_spare=True) for k in range(num))
        return (*self.queue, *spares)

    def chips(self, cube: int, origin: Shape, shape: Shape) -> list[int]:
        """Return the chips of a part of a cube, ascending."""
        found = []
        for at in itertools.product(*map(range, shape)):
            number = 0
            for n, o, x in zip(self.side, origin, at, strict=True):
                number = number * n + o + x
            found.append(cube * self.volume + number)
        return found

    def origins(self, shape: Shape) -> list[Shape]:
        """Return where parts of a shape may begin: at multiples of their extents."""
        ranges = (range(n // e) for n, e in zip(self.side, shape, strict=True))
        steps = itertools.product(*ranges)
        return [tuple(k * e for k, e in zip(step, shape, strict=True)) for step in steps]


def read_instance(snapshot: Snapshot) -> Instance:
    """Return the checker's view of a snapshot."""
    model = snapshot.on(CubesModel, "a pod of cubes")
    side = tuple(model.side)
    num = model.cubes * math.prod(side)
    if num > MOST_CHIPS or math.prod(side) > MOST_IN_A_CUBE:
        raise RefusedError(f"{number_of(num, 'chip')} are too many, or {math.prod(side)} in a cube")
    sets = NodeSets(snapshot, num)
    _, free = sets.held_and_free(snapshot, "prism", "patterns", "takes")
    require_value(snapshot)
    queue = tuple(
        replace(
            _request(one, side, num, value_of(one, snapshot.value)[0]),
            allowed=frozenset(None if own == sets.every else own for own in sets.of(one)),
        )
        for one in candidates(snapshot)
    )
    require_plain(snapshot, "a pod of cubes")
    is_free = np.isin(np.arange(num), [*free])
    return Instance(side, is_free.reshape(model.cubes, -1), queue)


def _request(model: RequestModel, side: Shape, num_chips: int, value: int) -> Request:
    require_only(model, _PLAIN)
    volume = math.prod(side)
    if model.nodes > num_chips:
        raise RefusedError(f"request {model.id} wants more chips than there are")
    if model.shapes is None:
        within = itertools.product(*(range(1, n + 1) for n in side))
        shapes = {shape for shape in within if math.prod(shape) == model.nodes}
    else:
        shapes = {_shape(text, model, side) for text in model.shapes.split("/")}
    if model.nodes >= volume:
        if model.nodes % volume:
            raise RefusedError(f"request {model.id} wants no whole number of cubes")
        return Request(model.id, value, model.nodes // volume, frozenset())
    if not shapes:
        raise RefusedError(
            f"no part of a cube has the {number_of(model.nodes, 'chip')} of {model.id}"
        )
    return Request(model.id, value, 0, frozenset(shapes))


def _shape(text: str, model: RequestModel, side: Shape) -> Shape:
    text = text.strip()
    shape = tuple(map(int, text.split("x"))) if _TEXT.fullmatch(text) else ()
    if len(shape) != len(side) or math.prod(shape) != model.nodes:
        raise RefusedError(f"request {model.id} has a shape {text[:80]!r}, which is none for it")
    inside = all(e <= n for e, n in zip(shape, side, strict=True))
    if not inside and any(e % n for e, n in zip(shape, side, strict=True)):
        raise RefusedError(f"request {model.id} has a shape {text}, of no part and no whole cubes")
    return shape
