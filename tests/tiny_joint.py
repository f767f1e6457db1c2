"""Tiny machines with applications in the queue, and their optimum by trying everything."""

from __future__ import annotations

import itertools
import math
import random

from brute_force import Choice, Tiny, numbers
from topoplace.result import Interference
from topoplace.snapshot.schema import (
    GraphApplication,
    GridApplication,
    PrismModel,
    Request,
    RunningJob,
    Snapshot,
    TasksModel,
    TorusModel,
)

SHAPES = ([4], [6], [2, 3], [3, 3], [2, 2, 2], [2, 4])
MODES = (Interference.STRICT, Interference.TOLERANT, Interference.OFF)


def random_joint(seed: int, *, holes: bool = False) -> Snapshot:
    """Return a machine with up to three requests, most with grids or graphs of few tasks.

    Without `holes` every node is usable, and every request has as many nodes as its tasks fill.
    """
    rng = random.Random(seed)
    shape = rng.choice(SHAPES)
    per_router = rng.choice((1, 1, 2)) if holes else 1
    machine = TorusModel(
        name="joint",
        shape=shape,
        wrap=[rng.random() < 0.6 for _ in shape],
        nodes_per_router=per_router,
    )
    most = max(1, min(4, math.prod(shape) * per_router // 2))
    queue = [_request(rng, f"q{k}", most) for k in range(rng.randint(1, 3))]
    running = []
    if rng.random() < 0.4:
        prism = PrismModel(origin=[0] * len(shape), extents=[1] * len(shape))
        running = [RunningJob(id="r", nodes=f"0-{per_router - 1}", prism=prism)]
    down = str(rng.randrange(math.prod(shape))) if holes and not running else ""
    return Snapshot(
        schema_version="topoplace.snapshot/1",
        name=f"joint-{seed}",
        machine=machine,
        queue=queue,
        running=running,
        down=down,
    )


def _request(rng: random.Random, name: str, most: int) -> Request:
    nodes, per_node = rng.randint(1, most), rng.choice((1, 1, 2))
    num = min(nodes * per_node, 5)
    nodes = -(-num // per_node)
    application: GridApplication | GraphApplication
    if rng.random() < 0.5:
        sizes = [[rng.randint(0, 3), 1]]
        application = GridApplication(shape=[num], periodic=[rng.random() < 0.5], bytes=sizes)
    else:
        pairs = [p for p in itertools.permutations(range(num), 2) if rng.random() < 0.5]
        application = GraphApplication(
            num_tasks=num,
            sources=[a for a, _ in pairs],
            targets=[b for _, b in pairs],
            bytes=[rng.randint(1, 4) for _ in pairs],
        )
    tasks = None if rng.random() < 0.2 else TasksModel(application=application, per_node=per_node)
    return Request(id=name, nodes=nodes, tasks=tasks, priority=rng.choice((1, 1, 2)))


def messages(tasks: TasksModel) -> tuple[int, list[tuple[int, int, int]]]:
    """Return how many tasks there are, and ends and bytes of their messages."""
    own = tasks.application
    if isinstance(own, GraphApplication):
        return own.num_tasks, [*zip(own.sources, own.targets, own.bytes, strict=True)]
    assert isinstance(own, GridApplication)
    [n], [wraps], [[ahead, back]] = own.shape, own.periodic, own.bytes
    found = []
    for task in range(n):
        for other, size in ((task + 1, ahead), (task - 1, back)):
            if (wraps or 0 <= other < n) and other % n != task:
                found.append((task, other % n, size))
    return n, found


class Joint(Tiny):
    """A tiny machine whose requests have applications."""

    def hops(self, one: int, other: int) -> int:
        total = 0
        ends = zip(self.router_of(one), self.router_of(other), self.shape, self.wrap, strict=True)
        for a, b, n, wraps in ends:
            total += min(abs(a - b), n - abs(a - b)) if wraps else abs(a - b)
        return total

    def least(self, request: Request, choice: Choice) -> int:
        """Return the least hop-bytes of a request in a prism, by all mappings there are."""
        if request.tasks is None:
            return 0
        usable = [n for n in self.class_of if self.router_of(n) in choice.routers]
        every = itertools.combinations(sorted(usable), request.nodes)
        return min(self._on(request.id, nodes) for nodes in every)

    def _on(self, name: str, nodes: tuple[int, ...]) -> int:
        """Return the least hop-bytes of a request on some nodes."""
        known = self.__dict__.setdefault("_known", {})
        if (name, nodes) not in known:
            [tasks] = [r.tasks for r in self.snapshot.queue if r.id == name]
            num, sent = messages(tasks)
            known[name, nodes] = min(
                sum(s * self.hops(at[a], at[b]) for a, b, s in sent)
                for at in itertools.product(nodes, repeat=num)
                if all(at.count(n) <= tasks.per_node for n in nodes)
            )
        return int(known[name, nodes])

    def optimum(self) -> tuple[int, int]:
        """Return the most value, and of its placements the least hop-bytes."""
        options = []
        for request in self.snapshot.queue:
            own = [(0, 0, None)]
            for choice in self.choices(request):
                own.append((-choice.values[0], self.least(request, choice), choice))
            options.append(own)
        best = (0, 0)
        for picked in itertools.product(*options):
            jobs = [choice for _, _, choice in picked if choice is not None]
            if any(a.meets(b) for a, b in itertools.combinations(jobs, 2)):
                continue
            best = min(best, (sum(v for v, _, _ in picked), sum(h for _, h, _ in picked)))
        return -best[0], best[1]


__all__ = ["MODES", "Joint", "messages", "numbers", "random_joint"]
