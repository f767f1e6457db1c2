"""The checker's own reading of the snapshot inside a result."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeVar

import numpy as np

from topoplace.certify.candidates import candidates
from topoplace.certify.report import RefusedError, require_none
from topoplace.certify.sets import Hosts, NodeSets
from topoplace.certify.value import require_value, value_of
from topoplace.machine import Prism, Torus, parse_node_set, prism_links, scattered_links
from topoplace.machine.hostlist import NodeLists
from topoplace.result import Interference
from topoplace.snapshot.geometry import Geometry, parse_geometry
from topoplace.snapshot.schema import (
    BY_SETS,
    FREE_PREFIX,
    ON_HIERARCHIES,
    AnchoredModel,
    Communication,
    Order,
    PrismModel,
    RunningJob,
    Snapshot,
    TasksModel,
    TorusModel,
)
from topoplace.snapshot.schema import Request as RequestModel
from topoplace.types import BoolArray, IntArray

MAX_MEETINGS = 1 << 23
"""Pairs of anchored prisms that meet, by the routers in which they do, of an instance at most."""

MAX_SEGMENTS = 256
"""Prisms of a request of an instance at most."""

Named = TypeVar("Named", str, str | None)


@dataclass(frozen=True)
class Job:
    """A job: its nodes, the routers it holds, its prism, and the links it uses under the rule.

    Scattered nodes have no prism; they hold the routers they are on.
    """

    id: str
    nodes: IntArray
    routers: IntArray
    prism: Prism | None
    links: IntArray
    sharing: Communication


@dataclass(frozen=True)
class Request:
    """A queued request, its value on level 1, and how its links count under the rule.

    `tasks` are what is mapped to its nodes. `segment` are the nodes of each of its prisms if it has
    several, all of them anchored. It has all its nodes of one kind: `class_idx`, or one of
    `others`. It has so many of some routers in its prism or next to it, if `near` names them.
    """

    id: str
    nodes: int
    value: int
    class_idx: int
    geometries: tuple[Geometry, ...]
    region: str | None
    sharing: Communication
    tasks: TasksModel | None = None
    segment: int | None = None
    others: tuple[int, ...] = ()
    near: tuple[int, frozenset[int]] | None = None

    @property
    def kinds(self) -> tuple[int, ...]:
        """The kinds of nodes of one of which it has all, ascending, each once."""
        return tuple(sorted({self.class_idx, *self.others}))

    @property
    def alone(self) -> list[Request]:
        """The request as if it had one of these kinds alone, for each of them."""
        return [replace(self, class_idx=kind, others=()) for kind in self.kinds]

    @property
    def per_prism(self) -> int:
        """Nodes of each of its prisms."""
        return self.nodes if self.segment is None else self.segment

    @property
    def num_prisms(self) -> int:
        """How many prisms the request has."""
        return self.nodes // self.per_prism

    @property
    def kind(self) -> tuple[object, ...]:
        """What requests without a geometry share if they may be in the same prisms."""
        return self.kinds, self.region, self.sharing, self.near

    def pays(self, family: str) -> bool:
        """Return whether it takes of a family of link rows: a strict one of all, else its own."""
        is_strict = self.sharing is Communication.STRICT
        return family == f"links of {self.id}" or (is_strict and family.startswith("links"))


@dataclass(frozen=True)
class Instance:
    """A snapshot under an interference rule (docs/proofs/placement.md, "The problem").

    `node_class` is the class of every node, -1 for service nodes. `kinds` are the nodes that
    requests may have by their class and sets; the first ones are the classes. `usable` nodes are of
    a class, not down, and on a router that is not `held` by a running job. `anchored` are the only
    prisms that jobs may have, and what each counts if it is blocked; empty if any prism will do.
    """

    torus: Torus
    snapshot: Snapshot
    node_class: IntArray
    usable: BoolArray
    held: BoolArray
    jobs: tuple[Job, ...]
    requests: tuple[Request, ...]
    regions: dict[str, BoolArray]
    kinds: tuple[BoolArray, ...]
    interference: Interference
    anchored: Mapping[Prism, int] = field(default_factory=dict)

    @cached_property
    def by_id(self) -> dict[str, Request]:
        """The queue by name."""
        return {request.id: request for request in self.requests}

    @cached_property
    def rows(self) -> dict[str, IntArray]:
        """One job per router, and per link by family of link rows."""
        links = np.ones(self.torus.num_links, dtype=np.int64)
        found = {"routers": np.ones(self.torus.num_routers, dtype=np.int64)}
        if self.interference is not Interference.OFF:
            found["links"] = links
        # only under the tolerant rule does any request count as tolerant
        tolerant = (r for r in self.requests if r.sharing is Communication.TOLERANT)
        return found | {f"links of {request.id}": links for request in tolerant}

    @cached_property
    def usable_counts(self) -> IntArray:
        """Usable nodes of every kind on every router, shape ``(num_kinds, num_routers)``."""
        per = self.torus.nodes_per_router
        return np.array([(own & self.usable).reshape(-1, per).sum(axis=1) for own in self.kinds])

    @cached_property
    def free(self) -> BoolArray:
        """Routers with a usable node of any kind."""
        return np.asarray(self.usable_counts.any(axis=0))

    def whole(self, class_idx: int) -> BoolArray:
        """Routers whose nodes are all usable by a kind."""
        return np.asarray(self.usable_counts[class_idx] == self.torus.nodes_per_router)

    def open_to(self, request: Request) -> BoolArray:
        """Routers with a usable node of one of the kinds of a request."""
        return np.asarray(self.usable_counts[[*request.kinds]].any(axis=0))

    def allowed(self, request: Request) -> BoolArray:
        """Routers that a prism of the request may contain."""
        return ~self.held if request.region is None else ~self.held & self.regions[request.region]

    def closed(self, sharing: Communication) -> BoolArray:
        """Links that running jobs close to a request (rule 4 of "The problem")."""
        if sharing is Communication.NONE:
            return marked(self.torus.num_links, [])
        others = (j for j in self.jobs if not both_tolerant(j.sharing, sharing))
        return marked(self.torus.num_links, (job.links for job in others))


def both_tolerant(one: Communication, other: Communication) -> bool:
    """Return whether two jobs may share links."""
    return one is other is Communication.TOLERANT


def marked(size: int, parts: Iterable[IntArray]) -> BoolArray:
    """Mark the places that some parts name, of `size` places."""
    mask = np.zeros(size, dtype=bool)
    for places in parts:
        mask[places] = True
    return mask


def torus_of(model: TorusModel) -> Torus:
    """Return the torus or mesh of a document."""
    lists = (tuple(model.shape), tuple(model.wrap or ()), tuple(model.bandwidth or ()))
    return Torus(*lists, model.nodes_per_router)


def read_instance(snapshot: Snapshot, interference: Interference) -> Instance:
    """Return the checker's view of a snapshot."""
    model = snapshot.on(TorusModel, "a torus or mesh")
    torus = torus_of(model)
    names, node_class = _classes(model, torus)
    lists = NodeLists(torus.num_nodes)
    jobs = tuple(_job(torus, job, lists, node_class, interference) for job in snapshot.running)
    held = _held(torus, jobs)
    usable = (node_class >= 0) & ~np.repeat(held, torus.nodes_per_router)
    usable[parse_node_set(snapshot.down, torus.num_nodes, "down")] = False
    regions = {
        name: marked(torus.num_routers, (prism_of(torus, one).routers(torus) for one in prisms))
        for name, prisms in snapshot.regions.items()
    }
    for request in snapshot.queue:
        require_none(request, *ON_HIERARCHIES)
        if request.tasks is not None:
            require_none(request, *BY_SETS, "near")
        if model.anchored:
            require_none(request, "near")
    require_value(snapshot)
    kinds = _Kinds(snapshot, names, node_class)
    known = candidates(snapshot)
    classes = [_known(one.node_class or names[0], names, one, "class") for one in known]
    own = [kinds.of(one, names.index(name)) for one, name in zip(known, classes, strict=True)]
    requests = tuple(
        Request(
            request.id,
            request.nodes,
            value_of(request, snapshot.value)[0],
            first,
            parse_geometry(request.shapes, torus, request.nodes, "shapes")
            if request.shapes is not None
            else (),
            _region(request, snapshot, regions, usable & kinds.masks[first], torus.num_routers),
            sharing_of(request.communication, interference),
            request.tasks,
            _segment(request, model),
            tuple(others),
            kinds.near(request, torus),
        )
        for request, (first, *others) in zip(known, own, strict=True)
    )
    if len({job.id for job in jobs} | {r.id for r in snapshot.queue}) < len(snapshot.queue) + len(
        jobs
    ):
        raise RefusedError("two jobs of the instance have one id")
    linked = (r.id for r in requests if r.num_prisms > 1 and r.sharing is not Communication.NONE)
    if (name := next(linked, None)) is not None:
        raise RefusedError(f"{name} is in segments, and its links matter")
    if model.anchored and any(r.shapes is not None or r.id.startswith(FREE_PREFIX) for r in known):
        raise RefusedError("a request has shapes, or the name of an anchored prism")
    queue = jobs, requests, regions
    rest = tuple(kinds.masks), interference, _anchored(model, torus)
    return Instance(torus, snapshot, node_class, usable, held, *queue, *rest)


class _Kinds:
    """Which nodes requests may have: of a class, and of sets if they name some; each once."""

    def __init__(self, snapshot: Snapshot, classes: Sequence[str], node_class: IntArray) -> None:
        self._node_class, self._sets = node_class, NodeSets(snapshot, len(node_class))
        self._down = self._sets.numbers(snapshot.down)
        self.masks = [np.asarray(node_class == number) for number in range(len(classes))]
        self._known: dict[tuple[int, Hosts], int] = {}

    def of(self, request: RequestModel, class_idx: int) -> list[int]:
        """Return the numbers of the kinds of a request: it has all its nodes of one of them."""
        return [self._number(class_idx, own) for own in self._sets.of(request)]

    def near(self, request: RequestModel, torus: Torus) -> tuple[int, frozenset[int]] | None:
        """Return how many routers a request has near its prism, and which count: not down."""
        if request.near is None:
            return None
        nodes = self._sets.named(request.near.of) - self._down
        return request.near.routers, frozenset(node // torus.nodes_per_router for node in nodes)

    def _number(self, class_idx: int, found: Hosts) -> int:
        if found == self._sets.every:
            return class_idx
        if (class_idx, found) not in self._known:
            self._known[class_idx, found] = len(self.masks)
            some = np.isin(np.arange(len(self._node_class)), [*found])
            self.masks.append(self.masks[class_idx] & some)
        return self._known[class_idx, found]


def _segment(request: RequestModel, machine: TorusModel) -> int | None:
    """Return the nodes of every prism of a request that has several."""
    if request.segment is None:
        return None
    if not machine.anchored or request.nodes % request.segment:
        raise RefusedError(f"{request.id} has segments of {request.segment}, which is impossible")
    if request.nodes // request.segment > MAX_SEGMENTS:
        raise RefusedError(f"{request.id} has too many segments")
    return request.segment


def _region(
    request: RequestModel,
    snapshot: Snapshot,
    regions: Mapping[str, BoolArray],
    free: BoolArray,
    num_routers: int,
) -> str | None:
    """Return the region of a request: of several, the first that holds enough of the free nodes.

    Where none does, the request has no place, and the first one says so as well as any other.
    """
    if not isinstance(request.region, list):
        return _known(request.region, (None, *snapshot.regions), request, "region")
    if snapshot.order is Order.BACKFILL or request.one_of is not None:
        text = "in the order backfill, or beside one_of"
        raise RefusedError(f"request {request.id} has several regions {text}")
    per_router = free.reshape(num_routers, -1).sum(axis=1)
    for name in request.region:
        _known(name, snapshot.regions, request, "region")
        if int(per_router[regions[name]].sum()) >= request.nodes:
            return name
    return request.region[0]


def _known(name: Named, names: Collection[Named], request: RequestModel, what: str) -> Named:
    if name not in names:
        raise RefusedError(f"request {request.id} wants the unknown {what} {name}")
    return name


def prism_of(torus: Torus, model: PrismModel) -> Prism:
    """Return a prism after checking that it is a canonical one of the machine."""
    prism = Prism(tuple(model.origin), tuple(model.extents))
    prism.require_inside(torus)
    return prism


def sharing_of(communication: Communication, interference: Interference) -> Communication:
    """Return how a job's links count: all that use links are strict under the strict rule."""
    if interference is Interference.OFF or communication is Communication.NONE:
        return Communication.NONE
    return Communication.STRICT if interference is Interference.STRICT else communication


def _anchored(model: TorusModel, torus: Torus) -> dict[Prism, int]:
    """Return every anchored prism, by extents, then origin, and its value.

    An anchor is recognised by its coordinates: along every ring it is the seed plus a multiple of
    the greatest common divisor of the spacing and the ring.
    """
    worth: dict[Prism, int] = {}
    room = MAX_MEETINGS
    for shape in model.anchored or ():
        _require_inside(shape, torus)
        size = math.prod(shape.dims) * torus.nodes_per_router
        spacing = zip(shape.spacing or shape.dims, torus.shape, strict=True)
        steps = [math.gcd(length, n) for length, n in spacing]
        num = math.prod(n // step for n, step in zip(torus.shape, steps, strict=True))
        room -= num * math.prod(shape.dims)
        if room < 0:
            raise RefusedError("anchored prisms are too many, or too large")
        seed = shape.seed or [0] * torus.num_dims
        axes = [
            [at for at in range(n) if (at - first) % step == 0]
            for n, first, step in zip(torus.shape, seed, steps, strict=True)
        ]
        for at in itertools.product(*axes):
            spans = zip(at, shape.dims, torus.shape, strict=True)
            origin = tuple(0 if e == n else o for o, e, n in spans)
            prism = Prism(origin, tuple(shape.dims))
            worth[prism] = worth.get(prism, 0) + size
    held = np.zeros(torus.num_routers, dtype=np.int64)
    for prism, count in worth.items():
        held[prism.routers(torus)] += count // (prism.volume * torus.nodes_per_router)
    if int((held.astype(np.float64) ** 2).sum()) > MAX_MEETINGS:
        raise RefusedError("anchored prisms meet in too many routers")
    return dict(sorted(worth.items(), key=lambda item: (item[0].extents, item[0].origin)))


def _require_inside(shape: AnchoredModel, torus: Torus) -> None:
    lists = [shape.dims, shape.spacing or shape.dims, [at + 1 for at in shape.seed or ()]]
    good = all(torus.wrap) and all(
        len(some) == torus.num_dims and all(x <= n for x, n in zip(some, torus.shape, strict=True))
        for some in lists
        if some
    )
    if not good:
        raise RefusedError(f"the anchored shape {shape.dims} is none of this machine")


def _classes(model: TorusModel, torus: Torus) -> tuple[list[str], IntArray]:
    names = list(dict.fromkeys([model.default_class, *model.classes]))
    node_class = np.zeros(torus.num_nodes, dtype=np.int64)
    named = np.zeros(torus.num_nodes, dtype=np.int64)
    sets = [(names.index(name), text) for name, text in model.classes.items()]
    lists = NodeLists(torus.num_nodes)
    for class_idx, text in [*sets, (-1, model.service)]:
        nodes = lists.numbers(text, torus.num_nodes, "machine")
        node_class[nodes] = class_idx
        named[nodes] += 1
    if (named > 1).any():
        raise RefusedError(f"node {int(named.argmax())} is of two classes")
    return names, node_class


def job_on(
    torus: Torus, name: str, nodes: IntArray, model: PrismModel | None, sharing: Communication
) -> Job:
    """Return the job that holds some nodes, in a prism or without."""
    routers = np.unique(nodes // torus.nodes_per_router)
    if model is None:
        prism, links = None, scattered_links(torus, routers)
    else:
        prism = prism_of(torus, model)
        inside = prism.routers(torus)
        if not np.isin(routers, inside).all():
            raise RefusedError(f"{name} has nodes outside its prism")
        routers, links = inside, prism_links(torus, prism)
    if sharing is Communication.NONE:
        links = links[:0]
    return Job(name, nodes, routers, prism, links, sharing)


def _job(
    torus: Torus,
    job: RunningJob,
    lists: NodeLists,
    node_class: IntArray,
    interference: Interference,
) -> Job:
    nodes = lists.numbers(job.nodes, torus.num_nodes, "running")
    if not len(nodes) or (node_class[nodes] < 0).any():
        raise RefusedError(f"running job {job.id} holds no node, or a service node")
    return job_on(torus, job.id, nodes, job.prism, sharing_of(job.communication, interference))


def _held(torus: Torus, jobs: tuple[Job, ...]) -> BoolArray:
    """Return the routers of all jobs; scattered ones may share routers, never nodes."""
    nodes = np.concatenate([np.zeros(0, dtype=np.int64), *(job.nodes for job in jobs)])
    if len(np.unique(nodes)) < len(nodes):
        raise RefusedError("two running jobs hold one node")
    if crowded := crowded_prism(torus, jobs):
        raise RefusedError(f"another running job stands in the prism of {crowded}")
    return marked(torus.num_routers, (job.routers for job in jobs))


def crowded_prism(torus: Torus, jobs: Sequence[Job]) -> str | None:
    """Return a job in whose prism another one holds a router; None if there is none."""
    holders = np.zeros(torus.num_routers, dtype=np.int64)
    for job in jobs:
        holders[job.routers] += 1
    crowded = (j.id for j in jobs if j.prism is not None and (holders[j.routers] > 1).any())
    return next(crowded, None)
