"""Random certificates with any integers as prices, which all bound something, however badly."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

from brute_force import Tiny
from topoplace.result import (
    CoverBranch,
    Interference,
    Leaf,
    LeafRef,
    Part,
    Parts,
    SharedLeaves,
    StartBranch,
)
from topoplace.result.certificate import CertificateNode, WholeTree


def link_number(tiny: Tiny, link: tuple[int, tuple[int, ...]]) -> int:
    """Return the number of a link in documents."""
    number = 0
    for c, n in zip(link[1], tiny.shape, strict=True):
        number = number * n + c
    return link[0] * len(tiny.all_routers) + number


def real_links(tiny: Tiny) -> list[int]:
    """Return the numbers of all links of a machine."""
    links = [
        (d, router)
        for router in tiny.all_routers
        for d, n in enumerate(tiny.shape)
        if n > 1 and (tiny.wrap[d] or router[d] < n - 1)
    ]
    return sorted(link_number(tiny, link) for link in links)


def run_lengths(rng: random.Random, prices: Iterable[int]) -> str:
    """Return prices as a document has them, now and then with runs."""
    words: list[str] = []
    last, count = None, 0
    for price in [*prices, None]:
        if price == last and rng.random() < 0.9:
            count += 1
            continue
        if last is not None:
            words.append(str(last) if count == 1 else f"{last}*{count}")
        last, count = price, 1
    return " ".join(words)


def link_families(tiny: Tiny) -> list[str]:
    """Return the families of link rows that a leaf may price."""
    if tiny.mode is Interference.OFF:
        return []
    queue = [r for r in tiny.snapshot.queue if tiny.kind(r.communication) == "tolerant"]
    return ["links", *(f"links of {r.id}" for r in queue)]


def random_leaf(rng: random.Random, tiny: Tiny, level_idx: int) -> Leaf:
    """Return a leaf with random prices of a random size."""
    scale = rng.choice((1, 1, 3, 1000))
    top = rng.choice((0, 1, 10, 1000)) * scale
    links = real_links(tiny)
    families: dict[str, str] = {}
    for name in link_families(tiny):
        if links and rng.random() < 0.6:
            row = [0] * (len(tiny.shape) * len(tiny.all_routers))
            for link in rng.choices(links, k=rng.randint(1, len(links))):
                row[link] = rng.randint(0, top)
            families[name] = run_lengths(rng, row)
    prices = [rng.choice((0, rng.randint(0, top))) for _ in tiny.all_routers]
    if rng.random() < 0.4:  # every usable node at the price of the most valuable request
        most = max((request.priority for request in tiny.snapshot.queue), default=0)
        prices = [scale * most * len(tiny.usable[router]) for router in tiny.all_routers]
    return Leaf(
        scale=scale,
        prices={"routers": run_lengths(rng, prices), **families},
        multipliers=[rng.choice((0, rng.randint(0, 5 * scale))) for _ in range(level_idx)],
    )


def random_tree(rng: random.Random, tiny: Tiny, level_idx: int, depth: int = 0) -> WholeTree:
    """Return a tree of a few leaves; on the first level they may be shared."""
    if level_idx or rng.random() < 0.5:
        return _grow(rng, tiny, level_idx, depth, {}, 0)
    shared = [random_leaf(rng, tiny, 0) for _ in range(rng.randint(1, 3))]
    tree = _grow(rng, tiny, 0, depth, {}, len(shared))
    return SharedLeaves(alike=random_groups(rng, tiny), leaves=shared, tree=tree)


def random_parts(rng: random.Random, tiny: Tiny, depth: int) -> Parts:
    """Return trees of a few leaves for the parts of a queue, some of which may have no request."""
    names = [request.id for request in tiny.snapshot.queue]
    rng.shuffle(names)
    some: list[list[str]] = [[] for _ in range(rng.randint(1, 3))]
    for name in names:
        rng.choice(some).append(name)
    return Parts(
        parts=[
            Part(requests=part, certificate=random_tree(rng, with_only(tiny, part), 0, depth))
            for part in some
        ]
    )


def with_only(tiny: Tiny, names: Sequence[str]) -> Tiny:
    """Return the machine with some requests in its queue, in their order."""
    of = {request.id: request for request in tiny.snapshot.queue}
    queue = [of[name] for name in names]
    return Tiny(tiny.snapshot.model_copy(update={"queue": queue}), tiny.mode)


def random_groups(rng: random.Random, tiny: Tiny) -> list[list[str]]:
    """Return groups of requests that may be said to be alike, often none."""
    kinds: dict[object, list[str]] = {}
    for request in tiny.snapshot.queue:
        if not request.shapes and rng.random() < 0.8:
            kind = tiny.kind(request.communication.value)
            wanted = request.node_class or tiny.default_class
            kinds.setdefault((wanted, request.region, kind), []).append(request.id)
    return [names for names in kinds.values() if rng.random() < 0.7]


def _grow(
    rng: random.Random,
    tiny: Tiny,
    level_idx: int,
    depth: int,
    fixed: dict[str, bool],
    num_shared: int,
) -> CertificateNode:
    def grown(also: dict[str, bool]) -> CertificateNode:
        return _grow(rng, tiny, level_idx, depth - 1, fixed | also, num_shared)

    undecided = [r.id for r in tiny.snapshot.queue if r.id not in fixed]
    forced = [name for name, starts in fixed.items() if starts]
    if depth and forced and rng.random() < 0.6:
        return CoverBranch(
            request=rng.choice(forced),
            row=rng.randrange(len(tiny.all_routers)),
            inside=grown({}),
            outside=grown({}),
        )
    if depth and undecided:
        name = rng.choice(undecided)
        return StartBranch(request=name, out=grown({name: False}), into=grown({name: True}))
    if num_shared and rng.random() < 0.8:
        times, over = rng.choice(((1, 1), (0, 1), (1, 2), (3, 1), (1000, 1024), (7, 5)))
        return LeafRef(leaf=rng.randrange(num_shared), times=times, over=over)
    return random_leaf(rng, tiny, level_idx)
