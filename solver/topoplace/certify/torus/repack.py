"""The claims of a repacking plan, and what its bounds prove (docs/proofs/placement.md)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np

from topoplace.certify.candidates import candidates
from topoplace.certify.order import is_ordered
from topoplace.certify.packing import Covers, Prices, certified_bound
from topoplace.certify.report import Claims, Number, Problem, RefusedError, require_none
from topoplace.certify.torus.instance import (
    Instance,
    Job,
    Request,
    both_tolerant,
    read_instance,
)
from topoplace.certify.torus.shapes import Box, ShapeTables, link_length, num_origins
from topoplace.certify.torus.starts import (
    Start,
    check_exclusive,
    read_starts,
    require_no_links,
)
from topoplace.errors import number_of
from topoplace.machine import Torus
from topoplace.result import Interference, Solution
from topoplace.result.placement import Action, RepackResult, RepackSolution
from topoplace.snapshot.geometry import Geometry
from topoplace.snapshot.schema import (
    BY_SETS,
    Communication,
    DefragmentInstance,
    KeepShape,
    RepackInstance,
    Snapshot,
)
from topoplace.types import BoolArray, IntArray

Extents = tuple[int, ...]

MOST_SETS = 200_000
"""Sets of jobs, too few to be suspended, that are tried one by one."""


@dataclass(frozen=True)
class Repacking:
    """An instance as the checker reads it.

    Attributes
    ----------
    whole
        The snapshot with all that runs, and the requests that have to start as its queue.
    movers
        The jobs that may move, as requests for the prisms that they may move to, and what each
        costs.
    """

    whole: Instance
    movers: tuple[Job, ...]
    moving: tuple[Request, ...]
    costs: tuple[int, ...]

    @cached_property
    def emptied(self) -> Instance:
        """The snapshot without the movers, which are the first of its queue."""
        return self.after(job.id for job in self.movers)

    def after(self, moved: Iterable[str]) -> Instance:
        """Return the snapshot without some movers, which become requests like those that start."""
        names = set(moved)
        snapshot = self.whole.snapshot
        stay = [job for job in snapshot.running if job.id not in names]
        left = read_instance(snapshot.model_copy(update={"running": stay}), self.whole.interference)
        gone = (request for request in self.moving if request.id in names)
        return replace(left, requests=(*gone, *left.requests))


def read_repacking(
    document: RepackInstance | DefragmentInstance,
    interference: Interference,
    snapshot: Snapshot | None = None,
) -> Repacking:
    """Return the checker's view of an instance, by default with the queue that it has.

    Where moves make room, all of the queue is wanted.
    """
    ids = [job.id for job in document.snapshot.running]
    ids += [request.id for request in document.snapshot.queue]
    if len({*ids}) < len(ids):
        raise RefusedError("two jobs of the instance have one id")
    snapshot = snapshot or document.snapshot
    queue = {request.id: request for request in candidates(snapshot)}
    names = {job.id for job in snapshot.running}
    start = document.wanted(queue)
    for some, known in ((start, queue), (document.fixed, names), (document.costs, names)):
        if len({*some}) < len(some) or not {*some} <= {*known}:
            raise RefusedError("start, fixed or costs name somebody twice, or nobody")
    wanted = [queue[name] for name in start]
    whole = read_instance(snapshot.model_copy(update={"queue": wanted}), interference)
    if whole.anchored:
        raise RefusedError("prisms of the machine are anchored")
    if is_ordered(snapshot):
        raise RefusedError("requests start in an order, and jobs move")
    for request in wanted:
        require_none(request, *BY_SETS)
    movers = tuple(j for j in whole.jobs if j.id not in document.fixed and _may_move(whole, j))
    moving = tuple(_as_request(whole, job, document.keep_shape) for job in movers)
    costs = tuple(document.costs.get(job.id, 1) for job in movers)
    return Repacking(whole, movers, moving, costs)


def _may_move(whole: Instance, job: Job) -> bool:
    """Tell whether a job has a prism, nodes of one class, and shares no link against the rule."""
    if job.prism is None or len({*whole.node_class[job.nodes].tolist()}) > 1:
        return False
    return not any(_share_links(job, other) for other in whole.jobs if other is not job)


def _share_links(one: Job, other: Job) -> bool:
    """Return whether two jobs share a link against the rule."""
    both = both_tolerant(one.sharing, other.sharing)
    return not both and not {*one.links.tolist()}.isdisjoint(other.links.tolist())


def _as_request(whole: Instance, job: Job, keep: KeepShape) -> Request:
    """Return a running job as a request for the prisms that it may move to."""
    assert job.prism is not None
    torus, tables, own = whole.torus, ShapeTables(whole), job.prism.extents
    shapes: list[Extents] = [own] if keep is KeepShape.SAME else []
    if keep is KeepShape.AS_GOOD:
        every = [*itertools.product(*(range(1, n + 1) for n in torus.shape))]
        scores = tables.scores(np.array([own, *every], dtype=np.int64)).tolist()
        size = len(job.nodes)
        shapes = [
            e
            for e, score in zip(every, scores[1:], strict=True)
            if score >= scores[0] and math.prod(e) * torus.nodes_per_router >= size
        ]
    class_idx = int(whole.node_class[job.nodes[0]])
    geometries = tuple(Geometry(extents) for extents in shapes)
    return Request(job.id, len(job.nodes), 0, class_idx, geometries, None, job.sharing)


# ---- The plan ------------------------------------------------------------------------------------


class Repack(Problem[RepackResult]):
    """A plan, as the frame asks for it."""

    levels = (("started", "max"), ("moves", "min"), ("moved_nodes", "min"))
    searches = "none"
    _repacking: Repacking

    def read(self) -> str:
        """Read the instance and return what it is."""
        rule = self.result.limits.interference
        self._repacking = read_repacking(self.result.instance, rule)
        whole, movers = self._repacking.whole, self._repacking.movers
        counts = f"{len(whole.jobs)} running, {len(movers)} may move, {len(whole.requests)} start"
        return f"{whole.torus.text}, {counts}, {rule.value} interference"

    def follow(self, claims: Claims) -> bool:
        """Add the claims about the places, and about the steps that lead there."""
        solution = self.result.solution
        if solution is None:
            return True
        followed = follow_plan(self._repacking, solution, claims)
        if followed is not None and claims.hold:
            cost, nodes = followed
            self.values = [len(solution.placements), cost, nodes]
        return followed is not None

    def bound(self, level_idx: int) -> tuple[Number, str]:
        """Return what the certificate of a level proves, and where."""
        level = self.result.levels[level_idx]
        assert level.certificate is not None
        oracle = self._oracle
        shift = len(self._repacking.movers) * oracle.weight
        known = [int(value) for value in self.values[:level_idx] if value is not None]
        earlier = [shift + known[0], *(-value for value in known[1:])] if known else []
        proven = certified_bound(oracle, level.certificate, earlier)
        if proven is None:
            raise RefusedError("the certificate leaves no plan at all")
        return -proven.value if level_idx else proven.value - shift, proven.where

    @cached_property
    def _oracle(self) -> RepackOracle:
        return RepackOracle.of(self._repacking)


def follow_plan(
    repacking: Repacking, solution: RepackSolution, claims: Claims
) -> tuple[int, int] | None:
    """Add the claims about a plan; return what its moves cost and hold, None if it is none."""
    found = claims.add("placements", lambda: _starts(repacking, solution), _counts)
    if found is None:
        return None
    after, starts = found
    claims.add("exclusive", lambda: check_exclusive(after, starts))
    claims.add("links", lambda: require_no_links(after, starts))
    claims.add("steps", lambda: _check_steps(repacking, starts, solution))
    moved = {placement.request for placement in solution.moves}
    names = (job.id for job in repacking.movers)
    costs = dict(zip(names, repacking.costs, strict=True))
    nodes = sum(len(start.nodes) for start in starts if start.id in moved)
    return sum(costs[name] for name in moved), nodes


def _starts(repacking: Repacking, solution: RepackSolution) -> tuple[Instance, list[Start]]:
    moved = [placement.request for placement in solution.moves]
    if not {*moved} <= {job.id for job in repacking.movers}:
        raise RefusedError("a job moves that may not")
    queue = {request.id for request in repacking.whole.requests}
    if not {placement.request for placement in solution.placements} <= queue:
        raise RefusedError("a request starts that is none of those that have to")
    after = repacking.after(moved)
    every = [*solution.moves, *solution.placements]
    if any(placement.prism is None for placement in every):
        raise RefusedError("a job has no prism")
    placed = Solution(placements=every, num_shared_links=0, conforming=True)
    return after, read_starts(after, placed)


def _counts(found: tuple[Instance, list[Start]]) -> str:
    return f"moved or started: {number_of(len(found[1]), 'job')}"


def _apart(one: Job, other: Job) -> bool:
    """Tell whether two jobs may stand at the same time."""
    apart = {*one.routers.tolist()}.isdisjoint(other.routers.tolist())
    return apart and not _share_links(one, other)


def _check_steps(repacking: Repacking, starts: list[Start], solution: RepackSolution) -> str:
    """Carry out the steps one by one; raise at the first that is not possible."""
    present: dict[str, Job] = {job.id: job for job in repacking.whole.jobs}
    target: dict[str, Job] = {start.id: start for start in starts}
    moved = {placement.request for placement in solution.moves}
    done: dict[str, list[Action]] = {}
    for step in solution.steps:
        name, action = step.job, step.action
        done.setdefault(name, []).append(action)
        if name not in target:
            raise RefusedError(f"a step of {name}, which neither moves nor starts")
        if action is not Action.SUSPEND:
            for other in present.values():
                if not _apart(target[name], other):
                    raise RefusedError(f"{name} would stand where {other.id} stands")
            present[name] = target[name]
        else:
            present.pop(name, None)
    aside = {n for n, actions in done.items() if actions == [Action.SUSPEND, Action.RESUME]}
    for name in target:
        right = [[Action.MOVE], [Action.SUSPEND, Action.RESUME]]
        if done.get(name) not in (right if name in moved else [[Action.START]]):
            raise RefusedError(f"the steps of {name} are not what moves or starts it")
    if len(solution.suspended) != len(aside) or {*solution.suspended} != aside:
        raise RefusedError("other jobs are suspended than the steps say")
    if solution.fewest_suspended:
        _check_fewest(repacking, {name: target[name] for name in moved}, len(aside))
    fewest = ", no fewer will do" if solution.fewest_suspended and aside else ""
    return (
        f"{number_of(len(solution.steps), 'step')}, {number_of(len(aside), 'job')} "
        f"suspended{fewest}"
    )


def _check_fewest(repacking: Repacking, target: Mapping[str, Job], number: int) -> None:
    """Raise unless no fewer jobs, suspended, let the others move through free space."""
    now = {job.id: job for job in repacking.movers}
    waits = {
        name: {other for other in target if not _apart(job, now[other])}
        for name, job in target.items()
    }
    turning = {name for name in waits if name in _reached(waits, name)}
    if number and math.comb(len(turning), number - 1) > MOST_SETS:
        raise RefusedError("too many jobs move to try all that might be suspended")
    if not number:
        return
    for gone in itertools.combinations(sorted(turning), min(number - 1, len(turning))):
        left = {name: others - {*gone} for name, others in waits.items() if name not in gone}
        if not any(name in _reached(left, name) for name in left):
            raise RefusedError(f"{number_of(number, 'job')} suspended where {number - 1} would do")


def _reached(waits: Mapping[str, set[str]], name: str) -> set[str]:
    """Return for whom a job waits, for whom these wait, and so on."""
    found: set[str] = set()
    todo = [name]
    while todo:
        new = waits[todo.pop()] - found
        found |= new
        todo += new
    return found


# ---- The packing ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Party:
    """A mover or a request that has to start, as the packing has it."""

    id: str
    value: int


@dataclass(frozen=True)
class RepackOracle:
    """Movers where they stand or elsewhere, and requests (see `CheckingOracle`).

    `chosen` are the numbers of the requests that it has, of all of the emptied instance. Where
    moves make room, requests count by their value on the third level, and on no other.
    """

    repacking: Repacking
    chosen: tuple[int, ...]
    makes_room: bool = False

    @classmethod
    def of(cls, repacking: Repacking, *, makes_room: bool = False) -> RepackOracle:
        """Return the oracle of all movers and requests."""
        return cls(repacking, tuple(range(len(repacking.emptied.requests))), makes_room)

    @property
    def _num_movers(self) -> int:
        return len(self.repacking.movers)

    @property
    def weight(self) -> int:
        """The value of a mover on the first level: more than all that have to start."""
        return 1 if self.makes_room else len(self.repacking.whole.requests) + 1

    @cached_property
    def requests(self) -> tuple[Party, ...]:
        """The movers, then the requests that have to start."""
        every = self.repacking.emptied.requests
        return tuple(
            Party(every[q].id, self.weight if q < self._num_movers else 1 - self.makes_room)
            for q in self.chosen
        )

    @property
    def _num_routers(self) -> int:
        return self.repacking.whole.torus.num_routers

    @property
    def _num_pairs(self) -> int:
        return self._num_movers * len(self.repacking.whole.requests)

    @property
    def coverable(self) -> int:
        """Routers and pairs are covered."""
        return self._num_routers + self._num_pairs

    @cached_property
    def rows(self) -> dict[str, IntArray]:
        """One job per router, pair and link."""
        of_torus = self.repacking.emptied.rows
        pairs = {"pairs": np.ones(self._num_pairs, dtype=np.int64)}
        return {"routers": of_torus["routers"]} | pairs | of_torus

    @cached_property
    def largest(self) -> tuple[int, int, int]:
        """Limits of a candidate's value on the first level, cost and nodes."""
        nodes = [len(job.nodes) for job in self.repacking.movers]
        values = [request.value for request in self.repacking.whole.requests]
        third = max(values if self.makes_room else nodes, default=0)
        return self.weight, max(self.repacking.costs, default=0), third

    def may_replace(self, one: int, other: int) -> bool:
        """No request takes another's place."""
        return one == other

    def among(self, chosen: Sequence[tuple[int, int]]) -> RepackOracle:
        """Return an oracle of some requests alone."""
        return replace(self, chosen=tuple(self.chosen[q] for q, _ in chosen))

    def best(self, prices: Prices, wanted: Mapping[int, Covers]) -> dict[int, int | None]:
        """Return what the best places gain, going through all of them."""
        factors = (*prices.factors, 0, 0)[:3]
        found: dict[int, int | None] = {}
        for q, covers in wanted.items():
            own = self.chosen[q]
            gains = [self._starting(own, prices, covers, factors)]
            if own < self._num_movers:
                gains.append(self._staying(own, prices, covers, factors[0]))
            found[q] = max((gain for gain in gains if gain is not None), default=None)
        return found

    def _staying(self, q: int, prices: Prices, covers: Covers, to_value: int) -> int | None:
        """Return the gain of a mover at its place, None if it may not stay there."""
        job = self.repacking.movers[q]
        start, step = self._num_routers + q, self._num_movers
        held = {*job.routers.tolist(), *range(start, self.coverable, step)}
        if not covers.admit(held):
            return None
        paid = 0
        if "routers" in prices.rows:
            paid += int(prices.rows["routers"][job.routers].sum())
        if "pairs" in prices.rows:
            paid += int(prices.rows["pairs"][q::step].sum())
        links = self._links(q, prices)
        if links is not None:
            paid += int(links[job.links].sum())
        return to_value * self.weight - paid

    def _starting(
        self, q: int, prices: Prices, covers: Covers, factors: tuple[int, ...]
    ) -> int | None:
        """Return what a mover gains elsewhere, or a request, None if it has no place."""
        gain, amounts = factors[0], np.zeros(self._num_movers, dtype=np.int64)
        first = (q - self._num_movers) * self._num_movers
        mine = range(first, first + self._num_movers) if first >= 0 else range(0)
        if first < 0:
            nodes = 0 if self.makes_room else len(self.repacking.movers[q].nodes)
            gain = gain * self.weight - factors[1] * self.repacking.costs[q] - factors[2] * nodes
        elif self.makes_room:
            gain = factors[2] * self.repacking.emptied.requests[q].value
        if first >= 0 and "pairs" in prices.rows:
            amounts = prices.rows["pairs"][mine.start : mine.stop]
        places, routers = self._places_of(q), prices.rows.get("routers")
        least: int | None = None
        for some in places:
            kept = np.ones(len(some.origins), dtype=bool)
            for row, inside in covers.named:
                taken = np.zeros_like(kept)
                if row < self._num_routers:
                    taken = some.holding(row)
                elif row - self._num_routers in mine:
                    taken = some.beside[:, row - self._num_routers - first] == 0
                kept &= taken == inside
            if not kept.any():
                continue
            paid = some.paid(routers, self._links(q, prices))
            if amounts.any():
                paid = paid + (~some.beside).astype(np.int64) @ amounts
            cheapest = int(paid[kept].min())
            least = cheapest if least is None else min(least, cheapest)
        return None if least is None else gain - least

    def _links(self, q: int, prices: Prices) -> IntArray | None:
        """Return what a request pays by link: in all families, or in its own if it is tolerant."""
        request = self.repacking.emptied.requests[q]
        paid = [row for family, row in prices.rows.items() if request.pays(family)]
        return np.asarray(np.sum(paid, axis=0)) if paid else None

    def _places_of(self, q: int) -> list[Places]:
        """Return the places of a request, as those of its kind have them."""
        r = self.repacking.emptied.requests[q]
        key = q >= self._num_movers, r.kind, r.nodes, r.geometries
        if key not in self._known:
            jobs = self.repacking.movers if q >= self._num_movers else ()
            self._known[key] = [*_places(self.repacking.emptied, r, jobs)]
        return self._known[key]

    @cached_property
    def _known(self) -> dict[object, list[Places]]:
        return {}


@dataclass(frozen=True)
class Places:
    """The places of a request with the same extents.

    `beside` says which jobs can stay if each of them is taken, shape ``(num_places, num_jobs)``.
    """

    box: Box
    origins: IntArray
    beside: BoolArray

    def holding(self, router: int) -> BoolArray:
        """Tell which places have a router."""
        torus = self.box.instance.torus
        ahead = (np.array(torus.coords(router)) - self.origins) % np.array(torus.shape)
        return np.asarray((ahead < np.array(self.box.extents)).all(axis=1))

    def paid(self, routers: IntArray | None, links: IntArray | None) -> IntArray:
        """Return what the places pay for routers and links."""
        at, total = tuple(self.origins.T), np.zeros(len(self.origins), dtype=np.int64)
        if routers is not None and routers.any():
            total = total + self.box.sums(routers)[at]
        if links is not None and links.any():
            total = total + self.box.links(links)[at]
        return total


def _places(instance: Instance, request: Request, jobs: Sequence[Job]) -> Iterator[Places]:
    """Yield the prisms that a request may have and that contain no smaller one that it may have.

    The rows of a prism are among those of a larger one around it, so the smaller ones are enough.
    """
    torus = instance.torus
    asked = {(*g.extents[:-1], depth) for g in request.geometries for depth in g.depths}
    blocked, closed = ~instance.allowed(request), instance.closed(request.sharing)

    @cache
    def free(extents: Extents) -> BoolArray:
        box = Box(instance, extents)
        return np.asarray(box.sums(blocked) + box.links(closed) == 0)

    @cache
    def good(extents: Extents) -> BoolArray:
        return np.asarray(free(extents) & Box(instance, extents).enough(request))

    heads = itertools.product(*(range(1, n + 1) for n in torus.shape[:-1]))
    for head in heads:
        most = math.prod(head) * torus.nodes_per_router
        for depth in range(1, torus.shape[-1] + 1):
            extents = (*head, depth)
            if most * depth < request.nodes or (asked and extents not in asked):
                continue
            fitting = good(extents)
            minimal = fitting.copy()
            for d, e in enumerate(extents):
                less = (*extents[:d], e - 1, *extents[d + 1 :])
                if e > 1 and (not asked or less in asked):
                    minimal &= ~_holds(torus, d, e, good(less))
            if minimal.any():
                origins = np.argwhere(minimal)
                yield Places(
                    Box(instance, extents), origins, _beside(torus, request, extents, origins, jobs)
                )
            if not asked and (fitting | ~free(extents)).all():
                break  # deeper ones are blocked, or contain one of these


def _holds(torus: Torus, dim: int, extent: int, smaller: BoolArray) -> BoolArray:
    """Tell which prisms contain one of those whose extent in a dimension is less by one."""
    n = torus.shape[dim]
    num = num_origins(n, torus.wrap[dim], extent)
    if torus.wrap[dim] and extent == n:
        return np.asarray(smaller.any(axis=dim, keepdims=True))
    at = np.arange(num)
    after = np.take(smaller, (at + 1) % smaller.shape[dim], axis=dim)
    return np.asarray(np.take(smaller, at, axis=dim) | after)


def _beside(
    torus: Torus, request: Request, extents: Extents, origins: IntArray, jobs: Sequence[Job]
) -> BoolArray:
    """Return which prisms leave room for which jobs, shape ``(num_prisms, num_jobs)``.

    Links of a dimension are a box like the routers, as long as a row of them in that dimension.
    """
    prisms = [job.prism for job in jobs if job.prism is not None]
    first = np.array([p.origin for p in prisms], dtype=np.int64).reshape(-1, len(extents))
    theirs = np.array([p.extents for p in prisms], dtype=np.int64).reshape(first.shape)
    pairs = [(request.sharing, job.sharing) for job in jobs]
    closes = [Communication.NONE not in pair and not both_tolerant(*pair) for pair in pairs]
    ahead = [(first[:, d] - np.arange(n)[:, None]) % n for d, n in enumerate(torus.shape)]
    behind = [(n - part) % n for n, part in zip(torus.shape, ahead, strict=True)]

    def meet(mine: IntArray, others: IntArray) -> BoolArray:
        """Return which boxes have a place in common; one without length has none."""
        sides = zip(ahead, behind, mine, others.T, strict=True)
        along = [(m > 0) & (x > 0) & ((a < m) | (b < x)) for a, b, m, x in sides]
        every = [own[origins[:, d]] for d, own in enumerate(along)]  # they are by origin
        return np.asarray(np.logical_and.reduce(every))

    clash = meet(np.array(extents), theirs)
    for d, e in enumerate(extents):
        mine, other = np.array(extents), theirs.copy()
        mine[d] = link_length(torus, d, e)
        other[:, d] = [link_length(torus, d, x) for x in theirs[:, d].tolist()]
        clash |= meet(mine, other) & np.array(closes, dtype=bool)
    return ~clash
