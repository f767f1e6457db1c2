"""What certificates prove of the largest link load (docs/proofs/mapping.md, "Link loads")."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np

from topoplace.certify.integers import require_room
from topoplace.certify.mapping.graphs import cut_prices
from topoplace.certify.mapping.instance import (
    Instance,
    directed_volumes,
    mutual_volumes,
)
from topoplace.certify.mapping.levels import inside_of
from topoplace.certify.report import Claims, RefusedError, fraction_of
from topoplace.machine.links import scattered_links
from topoplace.result import Fraction as FractionModel
from topoplace.result.mapping import (
    CUT_LAYERS,
    CutLoad,
    InsideCrossing,
    LinkLoad,
    MappingResult,
    MeanLoad,
    SpectralCrossing,
    TaskLoad,
)
from topoplace.result.objects import ObjectsResult
from topoplace.types import BoolArray, IntArray


class Links(NamedTuple):
    """Links by dimension, lower and upper end, bandwidth, and whether they are taken both ways.

    In a ring of two they are not: from either router to the other the positive way is as short.
    """

    dims: IntArray
    lower: IntArray
    upper: IntArray
    bandwidth: IntArray
    both: BoolArray

    @property
    def widths(self) -> IntArray:
        """Bandwidth of the ways that may be taken."""
        return self.bandwidth * (1 + self.both)


@dataclass(frozen=True)
class Guests:
    """Tasks with a load of 1 each, or objects with theirs, and the load every router has room for.

    No room is above the load of all, `total`. All bytes are multiples of `unit`.
    """

    instance: Instance
    loads: IntArray
    room: IntArray
    total: int
    unit: int

    @cached_property
    def links(self) -> Links:
        """The links that messages may take."""
        torus = self.instance.torus
        if max(torus.shape) > CUT_LAYERS:
            raise RefusedError(f"a dimension of more than {CUT_LAYERS} layers")
        used = scattered_links(torus, np.flatnonzero(self.instance.usable_nodes))
        require_room(2 * max(torus.bandwidth) * (1 + len(used)), "the bandwidth of all links")
        dims, lower = np.divmod(used, torus.num_routers)
        at, size = torus.coordinates[lower, dims], np.array(torus.shape)[dims]
        upper = lower + ((at + 1) % size - at) * np.array(torus.strides)[dims]
        one_way = (size == 2) & np.array(torus.wrap)[dims]
        return Links(dims, lower, upper, np.array(torus.bandwidth)[dims], ~one_way)


def guests_of(instance: Instance) -> Guests:
    """Return the tasks of a mapping."""
    num = instance.num_tasks
    ones = np.ones(num, dtype=np.int64)
    unit = math.gcd(*instance.sizes.tolist())
    return Guests(instance, ones, np.minimum(instance.capacity, num), num, unit)


def add_link_load(
    claims: Claims,
    result: MappingResult | ObjectsResult,
    guests: Callable[[], Guests],
    hop_bytes: Callable[[], int],
) -> None:
    """Add the claim about the largest link load of any mapping, if there is one.

    `hop_bytes` returns what is proven of these.
    """
    claimed, solution = result.link_load, result.solution
    reached = None if solution is None else solution.figures.max_link_load
    if claimed is not None:
        claims.add("link-load.bound", lambda: _checked(guests(), claimed, hop_bytes, reached))


def _checked(
    guests: Guests,
    claimed: LinkLoad,
    hop_bytes: Callable[[], int],
    reached: FractionModel | None,
) -> str:
    """Refuse a bound beyond what its certificate proves, or evidence that the solution refutes."""
    bound, proven = fraction_of(claimed.bound), link_load(guests, claimed.certificate, hop_bytes)
    if reached is not None and fraction_of(reached) < proven:
        raise RefusedError(
            f"the certificate proves {proven}, yet the solution reaches {fraction_of(reached)}: "
            "the evidence contradicts itself"
        )
    if bound > proven:
        raise RefusedError(f"bound is {bound}, the certificate only proves {proven}")
    return f"the certificate proves {proven}"


def link_load(
    guests: Guests, certificate: MeanLoad | TaskLoad | CutLoad, hop_bytes: Callable[[], int]
) -> Fraction:
    """Return what a certificate proves: a link load that no mapping's largest is below."""
    if isinstance(certificate, TaskLoad):
        proven = _by_task(guests, certificate.task)
    elif isinstance(certificate, CutLoad):
        proven = _by_cut(guests, certificate)
    else:
        proven = Fraction(hop_bytes(), max(1, int(guests.links.widths.sum())))
    return _reachable(guests, proven)


def _reachable(guests: Guests, value: Fraction) -> Fraction:
    """Return the least load of a link that is no less: bytes come in multiples of a unit."""
    unit = guests.unit or 1
    used = set(guests.links.bandwidth.tolist())
    return min((Fraction(unit * math.ceil(value * b / unit), b) for b in used), default=value)


def _by_task(guests: Guests, task: int) -> Fraction:
    """Return what a task sends, or gets, over the links of its router, wherever that is."""
    if task >= len(guests.loads):
        raise RefusedError(f"there is no task {task}")
    links, widest = guests.links, dict[int, int]()
    out = np.zeros(guests.instance.machine.num_routers, dtype=np.int64)
    np.add.at(out, links.lower, links.bandwidth)
    np.add.at(out, links.upper[links.both], links.bandwidth[links.both])
    usable = guests.instance.usable_nodes > 0
    for room, width in zip(guests.room[usable].tolist(), out[usable].tolist(), strict=True):
        widest[room] = max(widest.get(room, 0), width)
    if not min(widest.values()):
        raise RefusedError("there are routers from which no message goes anywhere")
    own, proven = int(guests.loads[task]), Fraction(0)
    for volumes in directed_volumes(guests.instance):
        mine = volumes.tasks == task
        loads = guests.loads[volumes.partners[mine]].tolist()
        star = tuple(zip(volumes.sizes[mine].tolist(), loads, strict=True))
        least = [Fraction(least_star(star, [room - own]), w) for room, w in widest.items()]
        proven = max(proven, min(least))
    return proven


def least_star(star: tuple[tuple[int, int], ...], rooms: list[int]) -> int:
    """Return the least cost of an object's partners, (bytes, load) each, around it.

    Within every distance there is only so much room. What fits in at the most is a knapsack with
    fractions: by bytes per load, the most first. Whatever is left outside takes one hop more.
    """
    weightless = sum(part for part, load in star if not load)
    order = sorted(
        ((part, load) for part, load in star if load),
        key=lambda each: Fraction(*each),
        reverse=True,
    )
    every, cost = sum(part for part, _ in star), 0
    for room in rooms:
        left, inside = max(0, room), weightless
        for part, load in order:
            if load > left:
                inside += part * left // load
                break
            left -= load
            inside += part
        cost += every - inside
    return cost


def _by_cut(guests: Guests, cut: CutLoad) -> Fraction:
    """Return what crosses between some layers and the others, over the links between them."""
    torus, total = guests.instance.torus, guests.total
    if cut.dimension >= torus.num_dims or cut.layers >= torus.shape[cut.dimension]:
        raise RefusedError(f"there are no {cut.layers} layers beside others")
    size = torus.shape[cut.dimension]
    near = (torus.coordinates[:, cut.dimension] - cut.first) % size < cut.layers
    links = guests.links
    width = int(links.widths[near[links.lower] != near[links.upper]].sum())
    if not width:
        raise RefusedError("no message crosses the cut")
    inner, outer = (min(total, sum(guests.room[side].tolist())) for side in (near, ~near))
    if isinstance(cut.crossing, InsideCrossing):
        return Fraction(_by_inside(guests, inner, outer, cut.crossing), width)
    return Fraction(_by_spectrum(guests, max(inner, outer), cut.crossing), width)


def _by_inside(guests: Guests, near: int, far: int, crossing: InsideCrossing) -> int:
    """Return what is not inside either side, however many tasks these have."""
    psi: list[int] = inside_of(guests.instance, max(near, far), crossing.order).tolist()
    kept = (psi[own] + psi[guests.total - own] for own in range(guests.total - far, near + 1))
    return guests.instance.total - max(kept)


def _by_spectrum(guests: Guests, most: int, crossing: SpectralCrossing) -> int:
    """Return what crosses a cut neither side of which has more than `most` load."""
    volumes = mutual_volumes(guests.instance)
    prices = cut_prices(volumes, guests.loads, crossing)
    uneven = 2 * most - guests.total
    paid = -sum(prices) - crossing.balance * uneven**2
    return volumes.rounded_up(paid, 4 * crossing.scale)
