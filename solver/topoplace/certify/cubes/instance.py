"""The checker's own reading of a snapshot of a pod of cubes."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from topoplace.certify.candidates import candidates
from topoplace.certify.report import RefusedError
from topoplace.certify.sets import Hosts, hosts_of
from topoplace.certify.value import require_value, value_of
from topoplace.errors import number_of
from topoplace.machine import parse_node_set
from topoplace.machine.hostlist import NodeLists
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
    held = np.zeros(num, dtype=np.int64)
    lists = NodeLists(max(1, len(snapshot.sets) + len(snapshot.queue)) * num)
    for job in snapshot.running:
        chips = lists.numbers(job.nodes, num, "running")
        if not len(chips) or job.prism or job.patterns or job.takes:
            raise RefusedError(f"running job {job.id} is none of a pod of cubes")
        held[chips] += 1
    if (held > 1).any():
        raise RefusedError(f"two running jobs hold chip {int(held.argmax())}")
    held[parse_node_set(snapshot.down, num, "down")] += 1
    require_value(snapshot)
    every = frozenset(range(num))
    named = {name: frozenset(_chips(lists, text, num)) for name, text in snapshot.sets.items()}
    queue = tuple(
        replace(
            _request(one, side, num, value_of(one, snapshot.value)[0]),
            allowed=_allowed(one, named, every, lists),
        )
        for one in candidates(snapshot)
    )
    names = Counter(
        [job.id for job in snapshot.running] + [request.id for request in snapshot.queue]
    )
    if names and max(names.values()) > 1:
        raise RefusedError("two jobs of the instance have one id")
    if snapshot.regions:
        raise RefusedError("a pod of cubes has no regions")
    return Instance(side, held.reshape(model.cubes, -1) == 0, queue)


def _chips(lists: NodeLists, text: str, num: int) -> list[int]:
    return [int(chip) for chip in lists.numbers(text, num, "a set of chips")]


def _allowed(
    one: RequestModel, named: Mapping[str, Hosts], every: Hosts, lists: NodeLists
) -> frozenset[Hosts | None]:
    """Return the sets of chips of one of which a request has all; None for all there are."""
    found = every if one.eligible is None else hosts_of(one.eligible, named, every)
    if one.excluded is not None:
        found -= frozenset(_chips(lists, one.excluded, len(every)))
    texts = one.one_of or ()
    sets = [found & hosts_of(text, named, every) for text in texts] if texts else [found]
    return frozenset(None if own == every else own for own in sets)


def _request(model: RequestModel, side: Shape, num_chips: int, value: int) -> Request:
    foreign = {name for name, value in model if value is not None} - _PLAIN
    if foreign:
        raise RefusedError(f"request {model.id} has {min(foreign)}, which cubes have not")
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
