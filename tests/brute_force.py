"""A tiny snapshot's optimum by trying all placements (docs/proofs/placement.md, "The problem").

Written from the definitions with plain sets and recursion, apart from everything that solves or
checks: routes are walked, boundaries counted link by link, shapes tried one after the other.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from topoplace.result import Interference
from topoplace.snapshot.schema import Request, RunningJob, Snapshot, TorusModel
from values import value_of

Coords = tuple[int, ...]
Link = tuple[int, Coords]  # dimension, and the router it leads away from in positive direction
Box = tuple[Coords, Coords]  # origin, extents


@dataclass(frozen=True)
class Job:
    """What a job holds; without links if none may disturb it."""

    kind: str
    routers: frozenset[Coords]
    links: frozenset[Link]

    def meets(self, other: Job) -> bool:
        """Tell whether two jobs may not run side by side."""
        share = self.kind == other.kind == "tolerant"
        return bool(self.routers & other.routers or (self.links & other.links and not share))


@dataclass(frozen=True)
class Choice(Job):
    """One candidate of a request."""

    box: Box
    values: tuple[int, int, int]


class Tiny:
    """A snapshot as dictionaries and sets."""

    def __init__(self, snapshot: Snapshot, interference: Interference) -> None:
        machine = snapshot.machine
        assert isinstance(machine, TorusModel)
        self.snapshot = snapshot
        self.mode = interference
        self.shape = tuple(machine.shape)
        self.wrap = machine.wrap or [True] * len(self.shape)
        self.bandwidth = machine.bandwidth or [1] * len(self.shape)
        self.per_router = machine.nodes_per_router
        self.default_class = machine.default_class
        self.all_routers = list(itertools.product(*map(range, self.shape)))
        self._walked = cache(self.routes)
        self._links: dict[frozenset[Coords], frozenset[Link]] = {}
        node_class: dict[int, str] = {}
        for node in range(len(self.all_routers) * self.per_router):
            node_class[node] = machine.default_class
        for name, text in machine.classes.items():
            node_class.update(dict.fromkeys(numbers(text), name))
        self.jobs = [self.running(job) for job in snapshot.running]
        self.held = set().union(*(job.routers for job in self.jobs))
        unusable = numbers(machine.service) | numbers(snapshot.down)
        self.class_of = {
            node: name
            for node, name in node_class.items()
            if node not in unusable and self.router_of(node) not in self.held
        }
        self.usable: dict[Coords, list[str]] = {router: [] for router in self.all_routers}
        for node, name in self.class_of.items():
            self.usable[self.router_of(node)].append(name)
        self.free = {router for router, names in self.usable.items() if names}
        self.sets = {name: numbers(text) for name, text in snapshot.sets.items()}
        self._may = cache(self._allowed)

    def _allowed(self, eligible: str | None, excluded: str | None) -> set[int]:
        """Return the nodes of an expression, by Python's own and, or, not."""
        words = {"&": " and ", "|": " or ", "!": " not "}

        def holds(node: int) -> bool:
            def word(match: re.Match[str]) -> str:
                return words.get(match[0]) or str(node in self.sets[match[0]])

            return bool(eval(re.sub(r"[&|!]|[^\s&|!()]+", word, eligible or "True")))

        nodes = range(len(self.all_routers) * self.per_router)
        may = {*nodes} if eligible is None else {node for node in nodes if holds(node)}
        return may - numbers(excluded or "")

    def count(self, request: Request, router: Coords) -> int:
        """Return how many usable nodes of a router a request may have."""
        wanted = request.node_class or self.default_class
        may = self._may(request.eligible, request.excluded)
        first = self.all_routers.index(router) * self.per_router
        nodes = range(first, first + self.per_router)
        return sum(self.class_of.get(node) == wanted and node in may for node in nodes)

    def running(self, job: RunningJob) -> Job:
        routers = {self.router_of(node) for node in numbers(job.nodes)}
        if job.prism is not None:
            routers = self.inside((tuple(job.prism.origin), tuple(job.prism.extents)))
        return self.job(job.communication.value, routers)

    def job(self, communication: str, routers: set[Coords]) -> Job:
        kind = self.kind(communication)
        links = frozenset() if kind == "none" else self.links_between(routers)
        return Job(kind, frozenset(routers), links)

    def kind(self, communication: str) -> str:
        if self.mode is Interference.OFF or communication == "none":
            return "none"
        return "strict" if self.mode is Interference.STRICT else communication

    def router_of(self, node: int) -> Coords:
        return self.all_routers[node // self.per_router]

    def inside(self, box: Box) -> set[Coords]:
        axes = [[(o + i) % n for i in range(e)] for o, e, n in zip(*box, self.shape, strict=True)]
        return set(itertools.product(*axes))

    def boxes(self) -> Iterator[Box]:
        for extents in itertools.product(*(range(1, n + 1) for n in self.shape)):
            axes = [
                range(1) if e == n else range(n) if wraps else range(n - e + 1)
                for e, n, wraps in zip(extents, self.shape, self.wrap, strict=True)
            ]
            for origin in itertools.product(*axes):
                yield origin, extents

    def routes(self, source: Coords, target: Coords) -> set[Link]:
        """Walk the dimension-ordered route; at a tie walk both ways round."""
        used: set[Link] = set()
        at = source
        for d, n in enumerate(self.shape):
            ahead = (target[d] - at[d]) % n
            back = (at[d] - target[d]) % n
            if self.wrap[d]:
                go_ahead, go_back = ahead <= back, back <= ahead
            else:
                go_ahead, go_back = target[d] > at[d], target[d] < at[d]
            if go_ahead:
                for i in range(ahead):
                    used.add((d, (*at[:d], (at[d] + i) % n, *at[d + 1 :])))
            if go_back:
                for i in range(1, back + 1):
                    used.add((d, (*at[:d], (at[d] - i) % n, *at[d + 1 :])))
            at = (*at[:d], target[d], *at[d + 1 :])
        return used

    def links_between(self, routers: Collection[Coords]) -> frozenset[Link]:
        key = frozenset(routers)
        if key not in self._links:  # boxes are looked at for one request after the other
            walked = (self._walked(a, b) for a in key for b in key)
            self._links[key] = frozenset().union(*walked)
        return self._links[key]

    def neighbours(self, router: Coords) -> Iterator[Coords]:
        """Yield the router at the far end of every link, so a router can come twice."""
        for d, n in enumerate(self.shape):
            for step in (1, -1):
                at = router[d] + step
                if n > 1 and (self.wrap[d] or 0 <= at < n):
                    yield (*router[:d], at % n, *router[d + 1 :])

    def bisection(self, extents: Coords) -> Fraction:
        cuts = []
        for d, (e, n) in enumerate(zip(extents, self.shape, strict=True)):
            factor = Fraction(1)
            if self.wrap[d] and n > 1 and e == n:
                factor = Fraction(2)
            elif self.wrap[d] and 2 * e > n > 1:
                factor = Fraction(2 * (e - 1), n - 1)
            cuts.append(Fraction(math.prod(extents), e) * self.bandwidth[d] * factor)
        return min(cuts)

    def score(self, box: Box, idle: int) -> int:
        weights = self.snapshot.weights
        extents = box[1]
        volume = math.prod(extents)
        per_node = self.bisection(extents) / (volume * self.per_router)
        hops = wraps = 0
        for e, n, ring in zip(extents, self.shape, self.wrap, strict=True):
            hops += min(e - 1, n // 2) if ring else e - 1
            wraps += ring and 1 < e < n and 2 * (e - 1) >= n
        return (
            weights.bisection * math.floor(1000 * per_node / min(self.bandwidth))
            - weights.volume * volume
            - weights.hops * hops
            - weights.idle * idle
            - weights.wrap * wraps
        )

    def fits(self, request: Request, box: Box, count: int) -> bool:
        if request.shapes is None:
            return count >= request.nodes
        extents = box[1]
        for part in request.shapes.split("/"):
            text, _, depth = part.partition(":maxz=")
            shape = tuple(map(int, text.split("x")))
            if not depth:
                if extents == shape and count >= request.nodes:
                    return True
                continue
            if extents[:-1] != shape[:-1] or not shape[-1] <= extents[-1] <= int(depth):
                continue
            whole: dict[Coords, int] = {r[:-1]: 0 for r in self.inside(box)}
            for router in self.inside(box):
                whole[router[:-1]] += self.count(request, router) == self.per_router
            if min(whole.values()) >= shape[-1]:
                return True
        return False

    def has_near(self, request: Request, routers: set[Coords]) -> bool:
        """Tell whether enough routers are in a prism, or next to a router of it."""
        if request.near is None:
            return True
        there = routers.union(*(self.neighbours(router) for router in routers))
        down = numbers(self.snapshot.down)
        nodes = self._may(request.near.of, None) - down
        return len({self.router_of(node) for node in nodes} & there) >= request.near.routers

    def choices(self, request: Request) -> list[Choice]:
        """Return all candidates of a request, those with all nodes of some set if it has several.

        Such a candidate leaves idle what it does in the set in which it leaves least.
        """
        best: dict[tuple[Box, frozenset[Coords]], Choice] = {}
        for own in in_each_set(request):
            for choice in self.choices_of_one(own):
                key = choice.box, choice.routers
                best[key] = max(best.get(key, choice), choice, key=lambda one: one.values)
        return list(best.values())

    def choices_of_one(self, request: Request) -> list[Choice]:
        """Return all candidates of a request without several sets."""
        allowed = set(self.all_routers)
        names = request.region if isinstance(request.region, list) else [request.region]
        for name in names if request.region is not None else []:
            boxes = [(tuple(p.origin), tuple(p.extents)) for p in self.snapshot.regions[name]]
            allowed = set().union(*(self.inside(box) for box in boxes))
            free = sum(self.count(request, router) for router in allowed - self.held)
            if free >= request.nodes or len(names) == 1:
                break
            allowed = set()
        found = []
        for box in self.boxes():
            routers = self.inside(box)
            if routers & self.held or not routers <= allowed:
                continue
            count = sum(self.count(request, router) for router in routers)
            if not self.fits(request, box, count) or not self.has_near(request, routers):
                continue
            job = self.job(request.communication.value, routers)
            if any(job.meets(other) for other in self.jobs):
                continue
            outward = sum(
                b not in routers and b in self.free for a in routers for b in self.neighbours(a)
            )
            values = (
                value_of(self.snapshot, request),
                self.score(box, count - request.nodes),
                -outward,
            )
            found.append(Choice(job.kind, job.routers, job.links, box, values))
        return found


def in_each_set(request: Request) -> list[Request]:
    """Return a request with one of its several sets alone, for each of them."""
    if request.one_of is None:
        return [request]
    also = "" if request.eligible is None else f" & ({request.eligible})"
    texts = [f"({text}){also}" for text in request.one_of]
    return [request.model_copy(update={"eligible": text, "one_of": None}) for text in texts]


def numbers(text: str) -> set[int]:
    """Return the numbers of a range list."""
    found: set[int] = set()
    for low, high in re.findall(r"(\d+)(?:-(\d+))?", text):
        found |= set(range(int(low), int(high or low) + 1))
    return found


def best_placement(
    snapshot: Snapshot, interference: Interference
) -> tuple[tuple[int, int, int], dict[str, Choice]]:
    """Return the lexicographic optimum in maximising sense, and a placement that reaches it."""
    tiny = Tiny(snapshot, interference)
    queue = []
    for request in snapshot.queue:
        choices = sorted(tiny.choices(request), key=lambda c: c.values, reverse=True)
        if choices:
            queue.append((request, choices))
    queue.sort(key=lambda item: -item[1][0].values[0])
    # No completion that starts all the rest is worth more than `rest`, level by level; one that
    # leaves a request out is worth less on the first level already.
    rest = [(0, 0, 0)]
    for _, choices in reversed(queue):
        tops = [max(c.values[k] for c in choices) for k in range(3)]
        rest.append(tuple(a + b for a, b in zip(rest[-1], tops, strict=True)))
    rest.reverse()
    best = (-1, 0, 0)
    best_chosen: dict[str, Choice] = {}
    chosen: dict[str, Choice] = {}

    def search(idx: int, total: tuple[int, int, int]) -> None:
        nonlocal best, best_chosen
        if tuple(a + b for a, b in zip(total, rest[idx], strict=True)) <= best:
            return
        if idx == len(queue):
            best, best_chosen = total, dict(chosen)
            return
        request, choices = queue[idx]
        for choice in choices:
            if not any(choice.meets(other) for other in chosen.values()):
                chosen[request.id] = choice
                values = tuple(a + b for a, b in zip(total, choice.values, strict=True))
                search(idx + 1, values)
                del chosen[request.id]
        search(idx + 1, total)

    search(0, (0, 0, 0))
    return best, best_chosen


def brute_force(snapshot: Snapshot, interference: Interference) -> tuple[int, int, int]:
    """Return the optimal objectives of the three levels, all in maximising sense."""
    return best_placement(snapshot, interference)[0]
