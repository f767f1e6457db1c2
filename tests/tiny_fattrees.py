"""Tiny fat trees: what is best by trying everything, and whether all permutations can be routed."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import NamedTuple

from random_certificates import Column, Packing
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
        numbers = [tree.leaf_of.index(leaf) + k for leaf, n in own.items() for k in range(n)]
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


def packing_of(
    snapshot: Snapshot,
    earlier: Sequence[int] = (),
    chosen: Sequence[tuple[str, str]] | None = None,
) -> Packing:
    """Return a snapshot as a packing, of some requests with others' places if these are chosen."""
    own = read_instance(snapshot)
    tree, left, requests = own.tree, own.left.tolist(), {one.id: one for one in own.queue}
    leaves = len(tree.sizes)
    free = frozenset(row for row in range(leaves, tree.num_rows) if left[row])
    pairs = [(name, name) for name in requests] if chosen is None else list(chosen)
    rows_of = {name: range(own.start or 0, own.stop) for name, own in tree.families.items()}
    called = {row: (name, k) for name, rows in rows_of.items() for k, row in enumerate(rows)}
    columns, kinds = [], dict[int, list[str]]()
    for name, other in pairs:
        nodes = requests[other].nodes
        kinds.setdefault(nodes, []).append(name)
        for rows, links in places(tree, left[:leaves], free, nodes):
            taken = {called[row]: number for row, number in rows.items()}
            values = requests[name].value, -links
            columns.append(Column(name, taken, frozenset(rows), values))
    return Packing(
        [name for name, _ in pairs],
        {name: [left[row] for row in rows] for name, rows in rows_of.items()},
        columns,
        tree.num_rows,
        (max((one.value for one in own.queue), default=0), tree.num_rows),
        list(kinds.values()),
        partial(packing_of, snapshot, earlier),
        earlier,
    )


def best(snapshot: Snapshot) -> tuple[int, int]:
    """Return the most value that can start, and the fewest links of it."""
    value, links = max(outcomes(snapshot))
    return value, -links


def outcomes(snapshot: Snapshot) -> set[tuple[int, int]]:
    """Return the value and the links, negated, of all placements on no more links than needed."""
    instance = read_instance(snapshot)
    tree, left = instance.tree, Counter(dict(enumerate(instance.left.tolist())))
    hosts = instance.left[: len(tree.sizes)].tolist()
    free = {row for row in range(len(hosts), tree.num_rows) if left[row]}
    own = {
        nodes: places(tree, hosts, free, nodes) for nodes in {one.nodes for one in instance.queue}
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

Pair = tuple[int, int]
"""The leaves of the sender and of the receiver of a message."""


class Job(NamedTuple):
    """The leaves of a job, pod by pod, and its links.

    Attributes
    ----------
    pods, sizes
        Of every leaf its pod, and its nodes.
    switches
        Those to which every leaf has a link.
    spines
        By pod and switch those to which it has a link. Messages through a switch of which no pod is
        named here need no links to spines.
    """

    pods: tuple[int, ...]
    sizes: tuple[int, ...]
    switches: tuple[frozenset[int], ...]
    spines: Mapping[Pair, frozenset[int]]

    def pods_at(self, switch: int) -> dict[int, int]:
        """Return by pod how many of its leaves have a link to a switch, where any has."""
        return Counter(p for p, own in zip(self.pods, self.switches, strict=True) if switch in own)

    def part(self, pods: Collection[int]) -> Job:
        """Return the leaves in some pods."""
        every = zip(self.pods, self.sizes, self.switches, strict=True)
        return Job(*zip(*(leaf for leaf in every if leaf[0] in pods), strict=True), self.spines)

    @property
    def accepted(self) -> bool:
        """Whether the checker accepts it on a tree that it fills."""
        leaves = [*zip(self.pods, self.sizes, strict=True)]
        pods = tuple(tuple(n for p, n in leaves if p == q) for q in sorted({*self.pods}))
        switches = 1 + max((i for own in self.switches for i in own), default=0)
        spines = 1 + max((j for own in self.spines.values() for j in own), default=-1)
        tree = FatTree(pods, switches, spines)
        links = [tree.link(leaf, i) for leaf, own in enumerate(self.switches) for i in own]
        links += [tree.up(p, i, j) for (p, i), own in self.spines.items() for j in own]
        return fault_of(tree, range(tree.num_nodes), links) is None


Routed = Callable[[Iterable[Pair]], bool]
"""Whether all of some messages can go at once."""


def sharing(
    own: Mapping[int, Collection[int]], above: Mapping[int, Routed], *, free: bool
) -> Routed:
    """Return a function: whether each message can have a thing that both its ends own, by trying.

    No two messages from one end have the same thing, and no two to one end. Those that have a thing
    must be able to go on above it. Messages that end where they begin may be free, and need none.
    One with the fewest choices is next. Of things that are alike, and unused, only one is tried.
    """
    things = frozenset().union(*own.values())
    kinds = {x: (*(x in some for some in own.values()), above.get(x)) for x in things}

    def routed(messages: Iterable[Pair]) -> bool:
        out, into = ({end: {*some} for end, some in own.items()} for _ in range(2))
        having: dict[int, list[Pair]] = {x: [] for x in things}

        def search(left: Sequence[Pair]) -> bool:
            if not left:
                return True
            choices = {(a, b): out[a] & into[b] for a, b in left}
            a, b = message = min(choices, key=lambda one: len(choices[one]))
            rest = [*left]
            rest.remove(message)
            unused = {kinds[x]: x for x in choices[message] if not having[x]}
            for x in (*filter(having.get, choices[message]), *unused.values()):
                having[x].append(message)
                if x not in above or above[x](having[x]):
                    out[a].remove(x)
                    into[b].remove(x)
                    if search(rest):
                        return True
                    out[a].add(x)
                    into[b].add(x)
                having[x].pop()
            return False

        return search([(a, b) for a, b in messages if a != b or not free])

    return routed


def router(job: Job, within: str = "") -> Routed:
    """Return a function: whether some messages can go at once, on each link one in each direction.

    Parameters
    ----------
    within
        Messages within a leaf need no links, and those within a pod none to spines. With "leaf",
        the former need links of their leaf nevertheless, with "pod" both need all links.
    """

    names = [*dict.fromkeys(job.pods)]
    limited = {i for _, i in job.spines}

    @cache  # what is above is the same for switches that are alike
    def plane(*spines: frozenset[int]) -> Routed:
        routed = cache(sharing(dict(zip(names, spines, strict=True)), {}, free=within != "pod"))
        return lambda some: routed(tuple(sorted((job.pods[a], job.pods[b]) for a, b in some)))

    above = {i: plane(*(job.spines.get((p, i), frozenset()) for p in names)) for i in limited}
    return sharing(dict(enumerate(job.switches)), above, free=not within)


def cannot_be_routed(job: Job) -> bool:
    """Return whether a permutation is found that cannot be routed.

    In each that is tried, the nodes of two leaves, of three, or of all send to the one so many
    nodes further on (of two pods, or three, where spines are named).
    """
    parts: dict[int, list[int]] = {}
    for leaf, (pod, size) in enumerate(zip(job.pods, job.sizes, strict=True)):
        parts.setdefault(pod if job.spines else leaf, []).extend([leaf] * size)
    few = (itertools.permutations(parts.values(), num) for num in (2, 3))
    lists = ([*itertools.chain(*some)] for some in (*itertools.chain(*few), parts.values()))
    shifted = (
        zip(own, own[k:] + own[:k], strict=True) for own in lists for k in range(1, len(own))
    )
    return not all(map(router(job), shifted))


def permutations(job: Job, within: str = "") -> Iterator[list[Pair]]:
    """Yield all permutations of the nodes of a job, as messages between its leaves.

    Where messages within a leaf are not free, leaves of a pod with as many nodes and links are
    alike, both as senders and as receivers. Where those within a pod are not free, pods whose
    leaves are alike are too. Permutations that differ by such names only count as one: the greatest
    matrix of messages, by senders and receivers, has alike rows and columns in order.
    """
    num = range(len(job.sizes))
    kinds = [*zip(job.pods, job.sizes, job.switches, strict=True)] if within else [*num]
    follows = [k > 0 and kinds[k] == kinds[k - 1] for k in num]  # is like the one before it
    pods = [[k for k in num if job.pods[k] == p] for p in dict.fromkeys(job.pods)]
    alike = [
        within == "pod" and [kinds[k][1:] for k in a] == [kinds[k][1:] for k in b]
        for a, b in itertools.pairwise(pods)
    ]
    Rows = tuple[tuple[int, ...], ...]

    def sent(
        k: int, total: int, most: Sequence[int], bound: list[bool]
    ) -> Iterator[tuple[int, ...]]:
        """Yield how many messages go to leaf k and those after it, in order so far as bound."""
        if k == len(num):
            yield from [()] * (total == 0)
            return
        for first in range(min(total, most[k]), -1, -1):
            for rest in sent(k + 1, total - first, most, bound):
                if not (rest and bound[k + 1] and rest[0] > first):
                    yield (first, *rest)

    def in_order(rows: Rows, equal: list[bool]) -> bool:
        """Return whether the last row is, and its pods are that are equal in all before it."""
        k = len(rows) - 1
        if follows[k] and rows[k] > rows[k - 1]:
            return False
        for (a, b), are, so_far in zip(itertools.pairwise(pods), alike, equal, strict=True):
            if so_far and [rows[k][j] for j in b] > [rows[k][j] for j in a]:
                return False
            if are and k == b[-1] and [rows[j] for j in b] > [rows[j] for j in a]:
                return False
        return True

    def grow(
        rows: Rows, left: Sequence[int], bound: list[bool], equal: list[bool]
    ) -> Iterator[list[Pair]]:
        if len(rows) == len(num):
            yield [(a, b) for a in num for b in num for _ in range(rows[a][b])]
            return
        for own in sent(0, job.sizes[len(rows)], left, bound):
            if in_order((*rows, own), equal):
                both = zip(itertools.pairwise(pods), equal, strict=True)
                yield from grow(
                    (*rows, own),
                    [n - m for n, m in zip(left, own, strict=True)],
                    [bound[j] and own[j] == own[j - 1] for j in num],
                    [e and [own[j] for j in a] == [own[j] for j in b] for (a, b), e in both],
                )

    return grow((), job.sizes, follows, alike)


def families(
    kinds: Sequence[object],
    least: Sequence[int],
    most: Sequence[int],
    alive: Callable[[tuple[frozenset[int], ...]], bool] = lambda _: True,
    *,
    dead_too: bool = True,
) -> Iterator[tuple[tuple[frozenset[int], ...], bool]]:
    """Yield sets of things, and whether all that they begin with are alive; or only such sets.

    Sets have sizes within limits. Those that differ by the names of things only count as one, and
    so do those in which sets of equal kinds, one after the other, are exchanged (the greatest
    matrix of sets and things has rows and columns in order).
    """
    Classes = list[tuple[tuple[int, ...], bool]]  # alike things, and whether the last set has them

    def choices(
        classes: Classes, least: int, most: int, *, bound: bool
    ) -> Iterator[tuple[frozenset[int], Classes]]:
        """Yield sets, no greater than the one before if so bound, and the classes after them."""
        if not classes:
            if least <= 0:
                yield frozenset(), []
            return
        (own, there), *others = classes
        for num in range(min(len(own), most) + 1):
            if bound and num and not there:
                break
            split = [part for part in ((own[:num], True), (own[num:], False)) if part[0]]
            after = bound and (num == len(own) or not there)
            for some, rest in choices(others, least - num, most - num, bound=after):
                yield some.union(own[:num]), [*split, *rest]

    def grow(
        sets: tuple[frozenset[int], ...], classes: Classes, *, live: bool
    ) -> Iterator[tuple[tuple[frozenset[int], ...], bool]]:
        k = len(sets)
        if k == len(kinds):
            yield sets, live
            return
        still, bound = live and (k < 2 or alive(sets)), k > 0 and kinds[k] == kinds[k - 1]
        if not (still or dead_too):
            return
        for own, split in choices(classes, least[k], most[k], bound=bound):
            yield from grow((*sets, own), split, live=still)

    return grow((), [(tuple(range(sum(most))), False)], live=True)
