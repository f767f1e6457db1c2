"""Random tiny machines whose prisms are anchored, and their optimum by trying every placement.

Written from the definitions with plain sets, as `brute_force` is: anchors are walked to, and what
is blocked is counted anchor by anchor.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence

from brute_force import Box, Choice, Coords, Tiny, numbers
from random_certificates import Column, Packing
from random_instances import random_snapshot
from tiny_packing import link_number
from topoplace.result import Interference
from topoplace.snapshot.schema import (
    AnchoredModel,
    Communication,
    Request,
    Snapshot,
    TorusModel,
)
from values import value_of


def random_anchored(seed: int | str, max_routers: int = 16, *, segmented: bool = False) -> Snapshot:
    """Return a tiny machine with one to four anchored shapes, jobs, nodes down, and requests.

    Where they are segmented, most requests have several prisms, and use no links then.
    """
    rng = random.Random(f"anchored-{seed}")
    snapshot = random_snapshot(rng, max_routers)
    machine = snapshot.machine
    assert isinstance(machine, TorusModel)
    shapes = [_shape(rng, machine.shape) for _ in range(rng.choice((1, 2, 2, 3, 3, 4)))]
    update = {"wrap": None, "anchored": shapes}
    if rng.random() < 0.6:
        update |= {"classes": {}, "service": ""}
        classes = {machine.default_class}
    else:
        classes = {machine.default_class, *machine.classes}
    machine = machine.model_copy(update=update)
    queue = [_sized(rng, request, machine) for request in snapshot.queue[:4]]
    if segmented:
        queue = [_segmented(rng, request) for request in queue]
    own = [r for r in queue if r.node_class is None or r.node_class in classes]
    changed = {"machine": machine, "queue": _admitted(own, machine)}
    if rng.random() < 0.3:
        changed |= {"running": [], "down": ""}
    return snapshot.model_copy(update=changed)


def _shape(rng: random.Random, shape: list[int]) -> AnchoredModel:
    dims = [rng.randint(1, n) if rng.random() < 0.3 else rng.randint(1, min(2, n)) for n in shape]
    seed = [rng.randrange(n) for n in shape] if rng.random() < 0.4 else None
    spacing = [rng.randint(1, n) for n in shape] if rng.random() < 0.4 else None
    return AnchoredModel(dims=dims, seed=seed, spacing=spacing)


def _sized(rng: random.Random, request: Request, machine: TorusModel) -> Request:
    """Return a request of the size of a shape, now and then of another."""
    assert machine.anchored is not None
    nodes = request.nodes
    if rng.random() < 0.93:
        nodes = machine.nodes_per_router
        for e in rng.choice(machine.anchored).dims:
            nodes *= e
    region = request.region if rng.random() < 0.5 else None
    return request.model_copy(update={"nodes": nodes, "shapes": None, "region": region})


def _segmented(rng: random.Random, request: Request) -> Request:
    """Return a request of one to three prisms of the size that it had."""
    count = rng.choice((1, 2, 2, 2, 3, 3))
    if count == 1 and rng.random() < 0.5:
        return request
    update = {"nodes": count * request.nodes, "segment": request.nodes}
    kind = Communication.NONE if count > 1 else request.communication
    return request.model_copy(update={**update, "communication": kind})


def _admitted(queue: list[Request], machine: TorusModel) -> list[Request]:
    """Return the requests that want no more nodes than the machine has of their class."""
    bare = Snapshot(schema_version="topoplace.snapshot/1", name="bare", machine=machine)
    there = list(Tiny(bare, Interference.OFF).class_of.values())
    return [r for r in queue if r.nodes <= there.count(r.node_class or machine.default_class)]


class AnchoredTiny(Tiny):
    """A snapshot of such a machine as dictionaries and sets."""

    def __init__(self, snapshot: Snapshot, interference: Interference) -> None:
        super().__init__(snapshot, interference)
        machine = snapshot.machine
        assert isinstance(machine, TorusModel)
        assert machine.anchored is not None
        self.listed = [(box, self.inside(box)) for s in machine.anchored for box in self.anchors(s)]
        every = {*range(len(self.all_routers) * self.per_router)}
        gone = every - {*self.class_of} - numbers(machine.service)
        self.busy = {self.router_of(node) for node in gone}

    def anchors(self, shape: AnchoredModel) -> Iterator[Box]:
        """Walk to every anchor of a shape."""
        axes = []
        for d, n in enumerate(self.shape):
            at, places = (shape.seed or [0] * len(self.shape))[d], []
            while at not in places:
                places.append(at)
                at = (at + (shape.spacing or shape.dims)[d]) % n
            axes.append(places)
        for origin in itertools.product(*axes):
            yield origin, tuple(shape.dims)

    def choices_of_one(self, request: Request) -> list[Choice]:
        """Return all candidates of a request, each set of prisms once."""
        if request.segment is None or request.segment == request.nodes:
            return self._choices_of_one(request)
        one = request.model_copy(update={"nodes": request.segment, "segment": None})
        every, values = self._choices_of_one(one), (value_of(self.snapshot, request), 0, 0)
        return [
            Choice(some[0].kind, frozenset().union(*apart), frozenset(), some[0].box, values)
            for some in itertools.combinations(every, request.nodes // request.segment)
            for apart in [[choice.routers for choice in some]]
            if sum(map(len, apart)) == len(frozenset().union(*apart))
        ]

    def _choices_of_one(self, request: Request) -> list[Choice]:
        """Return the prisms of just its size, each set of routers once."""
        allowed = set(self.all_routers)
        if request.region is not None:
            prisms = self.snapshot.regions[request.region]
            boxes = [(tuple(p.origin), tuple(p.extents)) for p in prisms]
            allowed = set().union(*(self.inside(box) for box in boxes))
        found: dict[frozenset[Coords], Choice] = {}
        for (origin, extents), routers in self.listed:
            if len(routers) * self.per_router != request.nodes or not routers <= allowed:
                continue
            if any(self.count(request, r) < self.per_router for r in routers):
                continue
            job = self.job(request.communication.value, routers)
            if any(job.meets(other) for other in self.jobs):
                continue
            spans = zip(origin, extents, self.shape, strict=True)
            box = tuple(0 if e == n else o for o, e, n in spans), extents
            values = value_of(self.snapshot, request), 0, 0
            found[job.routers] = Choice(job.kind, job.routers, job.links, box, values)
        return list(found.values())

    def fragmentation(self, taken: set[Coords]) -> int:
        """Return what the anchors hold that a busy or taken router is in."""
        gone = self.busy | taken
        return sum(len(rs) * self.per_router for _, rs in self.listed if rs & gone)

    @property
    def total(self) -> int:
        """What all anchors hold together."""
        return sum(len(routers) * self.per_router for _, routers in self.listed)

    def best(self) -> tuple[int, int]:
        """Return the most nodes, and the least fragmentation with as many."""
        return self.best_placement()[0]

    def best_placement(self) -> tuple[tuple[int, int], dict[str, Choice]]:
        """Return the optimum, and a placement that reaches it."""
        queue = [(r, own) for r in self.snapshot.queue if (own := self.choices(r))]
        worth = [value_of(self.snapshot, r) for r, _ in queue]
        best = (-1, 0)
        best_chosen: dict[str, Choice] = {}

        def search(idx: int, total: int, chosen: dict[str, Choice]) -> None:
            nonlocal best, best_chosen
            if total + sum(worth[idx:]) < best[0]:
                return
            if idx == len(queue):
                taken = set().union(*(c.routers for c in chosen.values()))
                value = total, -self.fragmentation(taken)
                if value > best:
                    best, best_chosen = value, chosen
                return
            request, choices = queue[idx]
            for choice in choices:
                if not any(choice.meets(other) for other in chosen.values()):
                    search(idx + 1, total + worth[idx], chosen | {request.id: choice})
            search(idx + 1, total, chosen)

        search(0, 0, {})
        return (best[0], -best[1]), best_chosen


def packing_of(
    tiny: AnchoredTiny, earlier: Sequence[int] = (), chosen: Sequence[tuple[str, str]] | None = None
) -> Packing:
    """Return such a snapshot as a packing, of some requests, each with the places of another."""
    of = {request.id: request for request in tiny.snapshot.queue}
    number = {router: k for k, router in enumerate(tiny.all_routers)}
    sharing = {name: tiny.kind(request.communication.value) for name, request in of.items()}
    families = {"routers": len(number)}
    if tiny.mode is not Interference.OFF:
        links = len(tiny.shape) * len(number)
        tolerant = [f"links of {name}" for name, kind in sharing.items() if kind == "tolerant"]
        families |= dict.fromkeys(["links", *tolerant], links)
    free, families["free"] = _rows_that_stay(tiny)
    stays = {f"free:{'x'.join(map(str, box[1]))}@{'.'.join(map(str, box[0]))}": box for box in free}
    names = [*of, *stays]
    columns, kinds = [], {}
    for name, other in [(name, name) for name in names] if chosen is None else chosen:
        if name in stays:
            routers, rows = free[stays[name]]
            count = sum(rs == routers for _, rs in tiny.listed)
            own = {("free", row): 1 for row in rows.values()}
            worth = count * len(routers) * tiny.per_router
            columns.append(Column(name, own, frozenset(), (0, worth)))
            kinds[name] = [name]
            continue
        request, kind = of[name], sharing[name]
        pays = {"strict": [f for f in families if f.startswith("links")]}.get(kind, [])
        pays = [f"links of {name}"] if kind == "tolerant" else pays
        sizes = {"nodes": of[other].nodes, "segment": of[other].segment}
        for choice in tiny.choices(request.model_copy(update=sizes)):
            covers = frozenset(number[router] for router in choice.routers)
            own = {("routers", router): 1 for router in covers}
            own |= {(f, link_number(tiny, link)): 1 for f in pays for link in choice.links}
            for _, rows in free.values():
                own |= {("free", row): 1 for r, row in rows.items() if r in choice.routers}
            columns.append(Column(name, own, covers, (value_of(tiny.snapshot, request), 0)))
        sizes = request.nodes, request.segment or request.nodes
        sets = request.eligible, request.excluded, str(request.one_of)
        alike = request.node_class or tiny.default_class, request.region, kind, *sizes, *sets
        kinds.setdefault(alike, []).append(name)
    kept = names if chosen is None else [name for name, _ in chosen]
    largest = max((value_of(tiny.snapshot, r) for r in tiny.snapshot.queue), default=0), tiny.total
    return Packing(
        kept,
        {family: [1] * num for family, num in families.items()},
        columns,
        len(number),
        largest,
        list(kinds.values()),
        lambda some: packing_of(tiny, earlier, some),
        earlier,
    )


def _rows_that_stay(
    tiny: AnchoredTiny,
) -> tuple[dict[Box, tuple[set[Coords], dict[Coords, int]]], int]:
    """Return by prism that nothing blocks its routers, and the row of each; and how many rows."""
    boxes: dict[Box, set[Coords]] = {}
    for (origin, extents), routers in tiny.listed:
        spans = zip(origin, extents, tiny.shape, strict=True)
        boxes[tuple(0 if e == n else o for o, e, n in spans), extents] = routers
    every = [boxes[box] for box in sorted(boxes, key=lambda box: (box[1], box[0]))]
    found: dict[Box, tuple[set[Coords], dict[Coords, int]]] = {}
    num = 0
    for box in sorted(boxes, key=lambda box: (box[1], box[0])):
        if boxes[box] & tiny.busy:
            continue
        rows: dict[Coords, int] = {}
        of_block: dict[tuple[bool, ...], int] = {}
        for router in sorted(boxes[box]):
            block = tuple(router in other for other in every)
            if block not in of_block:
                of_block[block], num = num, num + 1
            rows[router] = of_block[block]
        found[box] = boxes[box], rows
    return found, num
