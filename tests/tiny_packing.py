"""Tiny snapshots of tori and meshes as packings, for random certificates."""

from __future__ import annotations

from collections.abc import Sequence

from brute_force import Tiny
from random_certificates import Column, Packing
from topoplace.certify.torus.instance import read_instance
from topoplace.certify.torus.oracle import TorusOracle
from topoplace.result import Interference
from values import value_of


def link_number(tiny: Tiny, link: tuple[int, tuple[int, ...]]) -> int:
    """Return the number of a link in documents."""
    number = 0
    for c, n in zip(link[1], tiny.shape, strict=True):
        number = number * n + c
    return link[0] * len(tiny.all_routers) + number


def packing_of(
    tiny: Tiny, earlier: Sequence[int] = (), chosen: Sequence[tuple[str, str]] | None = None
) -> Packing:
    """Return a snapshot as a packing; of some requests that need as few nodes as others."""
    of = {request.id: request for request in tiny.snapshot.queue}
    pairs = [(name, name) for name in of] if chosen is None else list(chosen)
    sharing = {name: tiny.kind(of[name].communication.value) for name, _ in pairs}
    families = {"routers": len(tiny.all_routers)}
    if tiny.mode is not Interference.OFF:
        links = len(tiny.shape) * len(tiny.all_routers)
        tolerant = [name for name, kind in sharing.items() if kind == "tolerant"]
        families |= dict.fromkeys(["links", *(f"links of {name}" for name in tolerant)], links)
    number = {router: k for k, router in enumerate(tiny.all_routers)}
    columns, kinds = [], {}
    for name, other in pairs:
        request, kind = of[name], sharing[name]
        pays = {"strict": list(families)[1:], "tolerant": [f"links of {name}"]}.get(kind, [])
        for choice in tiny.choices(request.model_copy(update={"nodes": of[other].nodes})):
            covers = frozenset(number[router] for router in choice.routers)
            rows = {("routers", router): 1 for router in covers}
            rows |= {(f, link_number(tiny, link)): 1 for f in pays for link in choice.links}
            values = (value_of(tiny.snapshot, request), *choice.values[1:])
            columns.append(Column(name, rows, covers, values))
        if not request.shapes:
            sets = request.eligible, request.excluded, str(request.one_of), str(request.near)
            alike = request.node_class or tiny.default_class, request.region, kind, sets
            kinds.setdefault(alike, []).append(name)
    return Packing(
        [name for name, _ in pairs],
        {family: [1] * num for family, num in families.items()},
        columns,
        len(number),
        TorusOracle(read_instance(tiny.snapshot, tiny.mode)).largest,
        list(kinds.values()),
        lambda some: packing_of(tiny, earlier, some),
        earlier,
    )
