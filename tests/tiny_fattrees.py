"""Tiny fat trees: what is best by trying everything, and whether all permutations can be routed."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterator, Sequence

from topoplace.certify.fattree.check import fault_of, read_instance
from topoplace.machine.fattree import FatTree
from topoplace.result.fattree import FatTreeModel
from topoplace.snapshot.schema import SNAPSHOT_SCHEMA, Request, RunningJob, Snapshot

TREES = (
    # pods, switches, spines
    ([[2, 2]], 2, 0),
    ([[3, 3]], 3, 0),
    ([[2, 2, 2]], 2, 0),
    ([[1, 2, 3]], 3, 0),
    ([[3, 3, 3]], 3, 0),
    ([[2, 2, 2, 2]], 1, 0),
    ([[1, 1], [1, 1], [1, 1]], 1, 2),
    ([[2], [2], [2]], 2, 1),
    ([[2, 2], [2, 2]], 2, 2),
    ([[2, 2], [2], [1]], 2, 2),
    ([[2, 1], [2, 1]], 2, 1),
)


def random_tree(rng: random.Random) -> Snapshot:
    """Return a tiny tree with links missing, nodes down, jobs running, and two to five requests."""
    pods, switches, spines = rng.choice(TREES)
    bare = FatTreeModel(kind="fattree", name="t", pods=pods, switches=switches, spines=spines)
    tree = bare.tree
    links = list(range(len(tree.sizes), tree.num_rows))
    rng.shuffle(links)
    missing = [links.pop() for _ in range(rng.choice((0, 0, 1, 2)))]
    nodes = rng.sample(range(tree.num_nodes), tree.num_nodes)
    down = [nodes.pop() for _ in range(rng.choice((0, 0, 1)))]
    running, owned = [], {}
    for k in range(rng.choice((0, 1, 1, 2))):
        own = sorted(nodes.pop() for _ in range(min(rng.randint(1, 2), max(1, len(nodes) - 1))))
        running.append(RunningJob(id=f"run{k}", nodes=",".join(map(str, own))))
        owned[f"run{k}"] = tree.text(links.pop() for _ in range(min(2, len(links) - 2)))
    model = bare.model_copy(update={"missing": tree.text(missing), "owned": owned})
    queue = [
        Request(
            id=f"job{k}",
            nodes=rng.choice((1, 2, 2, 3, 3, 4, 5, tree.num_nodes - 2)),
            priority=rng.choice((1, 1, 1, 2)),
        )
        for k in range(rng.randint(2, 5))
    ]
    return Snapshot(
        schema_version=SNAPSHOT_SCHEMA,
        name="tiny",
        machine=model,
        down=",".join(map(str, sorted(down))),
        running=running,
        queue=[one for one in queue if one.nodes <= tree.num_nodes],
    )


def places(
    tree: FatTree, hosts: Sequence[int], free: frozenset[int], nodes: int
) -> list[tuple[Counter[int], int]]:
    """Return all places that no other one is a part of: their rows, and number of links.

    They are all sets of leaves with all sets of links that the checker accepts.
    """
    found: list[tuple[Counter[int], frozenset[int]]] = []
    for counts in itertools.product(*(range(n + 1) for n in hosts)):
        if sum(counts) != nodes:
            continue
        own = Counter({leaf: n for leaf, n in enumerate(counts) if n})
        numbers = [int(tree.first[leaf]) + k for leaf, n in own.items() for k in range(n)]
        switches = [
            [
                [tree.link(leaf, i) for i in some]
                for size in range(n + 1)
                for some in itertools.combinations(range(tree.switches), size)
            ]
            for leaf, n in own.items()
        ]
        for chosen in itertools.product(*switches):
            links = [link for some in chosen for link in some]
            if not {*links} <= free:
                continue
            below = Counter((tree.pod_of[leaf], i) for leaf, i in map(tree.ends, links))
            spines = [
                [
                    [tree.up(pod, i, j) for j in some]
                    for size in range(min(n, tree.spines) + 1)
                    for some in itertools.combinations(range(tree.spines), size)
                ]
                for (pod, i), n in below.items()
            ]
            for above in itertools.product(*spines):
                every = frozenset([*links, *(link for some in above for link in some)])
                if every <= free and fault_of(tree, numbers, every) is None:
                    found.append((own, every))
    found.sort(key=lambda one: len(one[1]))
    least: list[tuple[Counter[int], frozenset[int]]] = []
    for own, links in found:
        if not any(other == own and less <= links for other, less in least):
            least.append((own, links))
    return [(own + Counter(links), len(links)) for own, links in least]


def best(snapshot: Snapshot) -> tuple[int, int]:
    """Return the most value that can start, and the fewest links of it."""
    value, links = max(outcomes(snapshot))
    return value, -links


def outcomes(snapshot: Snapshot) -> set[tuple[int, int]]:
    """Return the value and the links, negated, of all placements on no more links than needed."""
    instance = read_instance(snapshot)
    tree, free = instance.tree, instance.links
    left = Counter(dict(enumerate(instance.hosts)))
    left.update(free)
    own = {
        nodes: places(tree, instance.hosts, free, nodes)
        for nodes in {one.nodes for one in instance.queue}
    }

    def search(k: int, left: Counter[int]) -> set[tuple[int, int]]:
        if k == len(instance.queue):
            return {(0, 0)}
        request = instance.queue[k]
        found = search(k + 1, left)
        for rows, links in own[request.nodes]:
            if all(left[row] >= n for row, n in rows.items()):
                more = search(k + 1, left - rows)
                found |= {(value + request.value, less - links) for value, less in more}
        return found

    return search(0, left)


# ---- Routing ------------------------------------------------------------------------------------


def demands(sizes: Sequence[int]) -> Iterator[list[list[int]]]:
    """Yield how many messages go from which leaf to which, for all permutations of the nodes."""

    def rows(k: int, left: list[int]) -> Iterator[list[list[int]]]:
        if k == len(sizes):
            yield []
            return
        for own in parts(sizes[k], left):
            after = [a - b for a, b in zip(left, own, strict=True)]
            for rest in rows(k + 1, after):
                yield [own, *rest]

    def parts(total: int, most: Sequence[int]) -> Iterator[list[int]]:
        if not most:
            if not total:
                yield []
            return
        for first in range(min(total, most[0]), -1, -1):
            for rest in parts(total - first, most[1:]):
                yield [first, *rest]

    return rows(0, list(sizes))


def routed(
    pods: Sequence[int],
    switches: Sequence[frozenset[int]],
    spines: dict[tuple[int, int], frozenset[int]],
    demand: Sequence[Sequence[int]],
) -> bool:
    """Return whether messages between leaves can go at once, on each link one in each direction."""
    num = range(len(pods))
    messages = [(a, b) for a in num for b in num for _ in range(demand[a][b]) if a != b]
    taken: set[tuple[object, ...]] = set()

    def ways(a: int, b: int) -> Iterator[tuple[tuple[object, ...], ...]]:
        for i in switches[a] & switches[b]:
            own = ("up", a, i), ("down", b, i)
            if pods[a] == pods[b]:
                yield own
                continue
            for j in spines.get((pods[a], i), frozenset()) & spines.get((pods[b], i), frozenset()):
                yield (*own, ("up", pods[a], i, j), ("down", pods[b], i, j))

    def search(k: int) -> bool:
        if k == len(messages):
            return True
        for way in ways(*messages[k]):
            if taken.isdisjoint(way):
                taken.update(way)
                if search(k + 1):
                    return True
                taken.difference_update(way)
        return False

    return search(0)


def matrices(sizes: Sequence[int], num: int) -> Iterator[list[frozenset[int]]]:
    """Yield sets of at most so many of some things, one per size; those renamed count as one."""

    def grow(k: int, classes: list[list[int]]) -> Iterator[list[frozenset[int]]]:
        if k == len(sizes):
            yield []
            return
        for counts in itertools.product(*(range(len(own) + 1) for own in classes)):
            if sum(counts) > sizes[k]:
                continue
            own = frozenset(x for some, n in zip(classes, counts, strict=True) for x in some[:n])
            split = [
                part
                for some, n in zip(classes, counts, strict=True)
                for part in (some[:n], some[n:])
                if part
            ]
            for rest in grow(k + 1, split):
                yield [own, *rest]

    return grow(0, [list(range(num))])
