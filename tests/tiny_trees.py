"""Random switch trees small enough for brute force by the definition: sets of nodes, no levels.

Leaves are at several depths, several switches may hold the same nodes, and there may be several
roots.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from typing import Any

from topoplace.snapshot.schema import SNAPSHOT_SCHEMA, Snapshot
from values import value_of

Nodes = frozenset[str]


def random_tree(rng: random.Random) -> dict[str, Any]:
    """Return a machine document of one to six leaves, of which two switches nest or are apart."""
    names = (f"n{k}" for k in itertools.count())
    switches: list[dict[str, str]] = []
    tops: list[str] = []
    for k in range(rng.randint(1, 6)):
        own = ",".join(itertools.islice(names, rng.choice((1, 1, 1, 2, 2, 3))))
        switches.append({"name": f"l{k}", "nodes": own})
        tops.append(f"l{k}")
    roots = rng.choice((1, 1, 1, 2, 3))
    for k in itertools.count():
        if len(tops) <= roots and rng.random() < 0.7:
            break
        chosen = rng.sample(tops, min(len(tops), rng.choice((1, 2, 2, 2, 3))))
        if len(tops) - len(chosen) + 1 < min(roots, len(tops)):
            continue
        below = ",".join(chosen)
        tops = [name for name in tops if name not in chosen]
        for twin in range(rng.choice((1, 1, 1, 2))):  # of a fat tree: all share their children
            switches.append({"name": f"u{k}-{twin}", "switches": below})
        if switches[-1]["name"].endswith("-1"):
            switches.append({"name": f"t{k}", "switches": f"u{k}-0,u{k}-1"})
        tops.append(switches[-1]["name"])
    rng.shuffle(switches)
    return {"kind": "tree", "name": "tiny", "switches": switches}


def random_snapshot(seed: str) -> Snapshot:
    """Return a snapshot of such a tree with up to three requests without patterns."""
    rng = random.Random(seed)
    machine = random_tree(rng)
    nodes = sorted(n for s in machine["switches"] for n in s.get("nodes", "").split(",") if n)
    held = [node for node in nodes if rng.random() < 0.2]
    down = [node for node in nodes if node not in held and rng.random() < 0.1]
    queue: list[dict[str, Any]] = [
        {
            "id": f"q{k}",
            "nodes": rng.randint(1, min(len(nodes), 5)),
            "priority": rng.choice((1, 1, 1, 3)),
        }
        for k in range(rng.randint(1, 3))
    ]
    document = {
        "schema": SNAPSHOT_SCHEMA,
        "name": seed,
        "machine": machine,
        "down": ",".join(down),
        "running": [{"id": f"r{node}", "nodes": node} for node in held],
        "queue": queue,
    }
    return Snapshot.model_validate(document)


# ---- By the definition -----------------------------------------------------------------------


class Truth:
    """What a snapshot of a tree means: which sets of nodes switches hold, and how high they are."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        switches = snapshot.machine.switches  # type: ignore[union-attr]
        nodes_of: dict[str, Nodes] = {}
        while len(nodes_of) < len(switches):
            for switch in switches:
                if switch.nodes is not None:
                    nodes_of[switch.name] = frozenset(switch.nodes.split(","))
                elif all(name in nodes_of for name in switch.switches.split(",")):
                    below = (nodes_of[name] for name in switch.switches.split(","))
                    nodes_of[switch.name] = frozenset().union(*below)
        self.sets = set(nodes_of.values())
        self.height = {own: self._height(own) for own in self.sets}
        self.roots = [own for own in self.sets if not any(own < other for other in self.sets)]
        taken = {job.nodes for job in snapshot.running} | set(snapshot.down.split(","))
        every = frozenset().union(*self.sets)
        self.free = sorted(every - taken)

    def _height(self, own: Nodes) -> int:
        return 1 + max((self._height(other) for other in self.sets if other < own), default=0)

    @property
    def counted(self) -> list[int]:
        """Heights whose domains count, the highest first: not that of the roots, but leaves."""
        top = max(self.height.values())
        return list(range(max(1, top - 1), 0, -1))

    def domain(self, node: str, height: int) -> Nodes:
        """Return the largest set that holds a node and is no higher."""
        return max((s for s in self.sets if node in s and self.height[s] <= height), key=len)

    def worth(self, number: int, chosen: Sequence[str]) -> tuple[int, ...]:
        """Return what a request on some nodes is worth on every level, all to be maximised."""
        request = self.snapshot.queue[number]
        used = [-len({self.domain(node, height) for node in chosen}) for height in self.counted]
        return (value_of(self.snapshot, request), *used, -len(chosen), 0)

    def places(self, number: int) -> Iterator[tuple[str, ...]]:
        """Yield the nodes that a request can have: below one root."""
        for chosen in itertools.combinations(self.free, self.snapshot.queue[number].nodes):
            if any(root.issuperset(chosen) for root in self.roots):
                yield chosen

    def best(self) -> tuple[int, ...]:
        """Return the best values of all placements, one level after the other."""
        found = (0,) * (len(self.counted) + 3)
        every = [
            {(frozenset(own), self.worth(q, own)) for own in self.places(q)}
            for q in range(len(self.snapshot.queue))
        ]
        reached = {(frozenset[str](), found)}
        for own in every:
            more = {
                (taken | chosen, tuple(a + b for a, b in zip(values, worth, strict=True)))
                for taken, values in reached
                for chosen, worth in own
                if not taken & chosen
            }
            reached |= more
        return max(values for _, values in reached)
