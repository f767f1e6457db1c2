"""What certificates prove of the largest link load (docs/proofs/mapping.md, "Link loads")."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
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


def links_of(instance: Instance) -> Links:
    """Return the links that messages may take."""
    torus = instance.torus
    if max(torus.shape) > CUT_LAYERS:
        raise RefusedError(f"a dimension of more than {CUT_LAYERS} layers")
    used = scattered_links(torus, np.flatnonzero(instance.usable_nodes))
    require_room(2 * max(torus.bandwidth) * (1 + len(used)), "the bandwidth of all links")
    dims, lower = np.divmod(used, torus.num_routers)
    at, size = torus.coordinates[lower, dims], np.array(torus.shape)[dims]
    upper = lower + ((at + 1) % size - at) * np.array(torus.strides)[dims]
    one_way = (size == 2) & np.array(torus.wrap)[dims]
    return Links(dims, lower, upper, np.array(torus.bandwidth)[dims], ~one_way)


def add_link_load(
    claims: Claims, result: MappingResult, instance: Instance, hop_bytes: Callable[[], int]
) -> None:
    """Add the claim about the largest link load of any mapping, if there is one.

    `hop_bytes` returns what is proven of these.
    """
    claimed, solution = result.link_load, result.solution
    reached = None if solution is None else solution.figures.max_link_load
    if claimed is not None:
        claims.add("link-load.bound", lambda: _checked(instance, claimed, hop_bytes, reached))


def _checked(
    instance: Instance,
    claimed: LinkLoad,
    hop_bytes: Callable[[], int],
    reached: FractionModel | None,
) -> str:
    """Refuse a bound beyond what its certificate proves, or evidence that the solution refutes."""
    bound, proven = fraction_of(claimed.bound), link_load(instance, claimed.certificate, hop_bytes)
    if reached is not None and fraction_of(reached) < proven:
        raise RefusedError(
            f"the certificate proves {proven}, yet the solution reaches {fraction_of(reached)}: "
            "the evidence contradicts itself"
        )
    if bound > proven:
        raise RefusedError(f"bound is {bound}, the certificate only proves {proven}")
    return f"the certificate proves {proven}"


def link_load(
    instance: Instance, certificate: MeanLoad | TaskLoad | CutLoad, hop_bytes: Callable[[], int]
) -> Fraction:
    """Return what a certificate proves: a link load that no mapping's largest is below."""
    links = links_of(instance)
    if isinstance(certificate, TaskLoad):
        proven = _by_task(instance, links, certificate.task)
    elif isinstance(certificate, CutLoad):
        proven = _by_cut(instance, links, certificate)
    else:
        proven = Fraction(hop_bytes(), max(1, int(links.widths.sum())))
    return _reachable(instance.unit, links, proven)


def _reachable(unit: int, links: Links, value: Fraction) -> Fraction:
    """Return the least load of a link that is no less: bytes come in multiples of a unit."""
    unit, used = unit or 1, set(links.bandwidth.tolist())
    return min((Fraction(unit * math.ceil(value * b / unit), b) for b in used), default=value)


def _by_task(instance: Instance, links: Links, task: int) -> Fraction:
    """Return what a task sends, or gets, over the links of its router, wherever that is."""
    if task >= len(instance.loads):
        raise RefusedError(f"there is no task {task}")
    widest = dict[int, int]()
    out = np.zeros(instance.machine.num_routers, dtype=np.int64)
    np.add.at(out, links.lower, links.bandwidth)
    np.add.at(out, links.upper[links.both], links.bandwidth[links.both])
    usable = instance.usable_nodes > 0
    for room, width in zip(instance.room[usable].tolist(), out[usable].tolist(), strict=True):
        widest[room] = max(widest.get(room, 0), width)
    if not min(widest.values()):
        raise RefusedError("there are routers from which no message goes anywhere")
    own, proven = int(instance.loads[task]), Fraction(0)
    for volumes in directed_volumes(instance):
        mine = volumes.tasks == task
        loads = instance.loads[volumes.partners[mine]].tolist()
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


def _by_cut(instance: Instance, links: Links, cut: CutLoad) -> Fraction:
    """Return what crosses between some layers and the others, over the links between them."""
    torus, total = instance.torus, instance.total_load
    if cut.dimension >= torus.num_dims or cut.layers >= torus.shape[cut.dimension]:
        raise RefusedError(f"there are no {cut.layers} layers beside others")
    size = torus.shape[cut.dimension]
    near = (torus.coordinates[:, cut.dimension] - cut.first) % size < cut.layers
    width = int(links.widths[near[links.lower] != near[links.upper]].sum())
    if not width:
        raise RefusedError("no message crosses the cut")
    inner, outer = (min(total, sum(instance.room[side].tolist())) for side in (near, ~near))
    if isinstance(cut.crossing, InsideCrossing):
        return Fraction(_by_inside(instance, inner, outer, cut.crossing), width)
    return Fraction(_by_spectrum(instance, max(inner, outer), cut.crossing), width)


def _by_inside(instance: Instance, near: int, far: int, crossing: InsideCrossing) -> int:
    """Return what is not inside either side, however many tasks these have."""
    psi: list[int] = inside_of(instance, max(near, far), crossing.order).tolist()
    total = instance.total_load
    kept = (psi[own] + psi[total - own] for own in range(total - far, near + 1))
    return instance.total - max(kept)


def _by_spectrum(instance: Instance, most: int, crossing: SpectralCrossing) -> int:
    """Return what crosses a cut neither side of which has more than `most` load."""
    volumes = mutual_volumes(instance)
    prices = cut_prices(volumes, instance.loads, crossing)
    uneven = 2 * most - instance.total_load
    paid = -sum(prices) - crossing.balance * uneven**2
    return volumes.rounded_up(paid, 4 * crossing.scale)
