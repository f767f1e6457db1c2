"""The placement of Kueue's topology-aware scheduling (v0.19.0; KEP-2724, "Design Details").

A group of parts is placed by itself, in two phases. The first counts: how many units every host can
hold, how many slices (outermost segments) that makes at their level, and the sums of both for every
domain above. The second chooses: a level with domains that hold all slices, then level by level
down, never reconsidering a level. The order of choice is called a profile:

- BestFit splits over the largest domains first, and ends with the smallest that holds the rest;
- LeastFreeCapacity, which leaves large domains whole, takes the smallest domain that holds all, or
  else fills the smallest first.

By default (feature gate TASProfileMixed) requests with neither a required nor a preferred level use
the second, all others the first. A third way, balanced placement, is in `kueue_balanced`.

One part of a group may be a leader, a single unit placed with the rest, its workers: domains then
also know whether they can take the leader, and how many workers they can hold besides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from topoplace.machine.hierarchy import Hierarchy
from topoplace.placement.hierarchy.heuristics.queue import (
    Vacancy,
    asks_only,
    groups_of,
    register_rule,
)
from topoplace.placement.hierarchy.problem import Placed, room
from topoplace.snapshot.hierarchy_state import HierarchyRequest, PartState


@dataclass
class Domain:
    """What one domain, or host, can hold.

    Attributes
    ----------
    rank
        Its place when domains are sorted by the names on their paths.
    units, slices
        How many it can hold; no slices below their own level.
    led_units, led_slices
        The same if the leader is there as well.
    leads
        How many leaders it can hold: 0 or 1.
    host
        Number of the host; None above.
    """

    rank: int
    children: list[Domain] = field(default_factory=list)
    host: int | None = None
    units: int = 0
    slices: int = 0
    led_units: int = 0
    led_slices: int = 0
    leads: int = 0


@dataclass(frozen=True)
class Share:
    """The share of a domain."""

    domain: Domain
    units: int
    leaders: int


@dataclass(frozen=True)
class Demand:
    """The request of a group.

    Attributes
    ----------
    workers, leader
        Numbers of parts of the request; without a leader, of the only part.
    level
        At which the search for domains begins.
    required, climbs
        Whether one domain there has to hold all; whether levels above are tried if none does.
    slice_level, slice_size
        Level and size of the outermost segments; single units on hosts if there are none.
    inner
        By level the size of the inner segments that have to be in one of its domains.
    """

    workers: int
    leader: int | None
    units: int
    level: int
    required: bool
    climbs: bool
    slice_level: int
    slice_size: int
    inner: dict[int, int]

    @property
    def leaders(self) -> int:
        """Number of leaders."""
        return int(self.leader is not None)

    @property
    def slices(self) -> int:
        """Number of slices."""
        return self.units // self.slice_size


Profile = Callable[[Demand], bool]
"""Whether a demand fills the smallest domains first (LeastFreeCapacity) instead of BestFit."""

Chosen = tuple[int, list[Domain]]
"""A level, and the domains there that are to hold the slices."""


@register_rule("kueue")
def kueue(vacancy: Vacancy, request: HierarchyRequest, _: np.random.Generator) -> Placed | None:
    """Place a request as Kueue does by default (TASProfileMixed)."""
    return place(vacancy, request, mixed)


@register_rule("kueue-least-free")
def kueue_least_free(
    vacancy: Vacancy, request: HierarchyRequest, _: np.random.Generator
) -> Placed | None:
    """Place a request by LeastFreeCapacity, with or without a level."""
    return place(vacancy, request, lambda _: True)


def mixed(demand: Demand) -> bool:
    """Whether the default profile is LeastFreeCapacity for a demand: without a level it is."""
    return not (demand.required or demand.climbs)


def place(
    vacancy: Vacancy,
    request: HierarchyRequest,
    profile: Profile,
    before: Callable[[Tree, Demand], list[Share] | None] = lambda tree, demand: None,
) -> Placed | None:
    """Place the groups of a request one after another, without a step back.

    Parameters
    ----------
    before
        Another way to choose the hosts, tried first; it returns None if it does not apply.
    """
    if not asks_only(request, "segments", "required"):
        return None
    placed: list[dict[int, int]] = [{} for _ in request.parts]
    for group in groups_of(request):
        demand = demand_of(request, group, vacancy.machine)
        if demand is None:
            return None
        tree = Tree(vacancy, request, demand)
        shares = before(tree, demand)
        if shares is None:
            shares = Search(tree, demand, profile(demand)).shares()
        if shares is None or not is_whole(shares, demand):
            return None
        for share in shares:
            host = share.domain.host
            assert host is not None
            if share.units:
                placed[demand.workers][host] = share.units
            if share.leaders and demand.leader is not None:
                placed[demand.leader][host] = share.leaders
        for number in (demand.workers, demand.leader):
            if number is not None:
                vacancy.take(request.parts[number], placed[number])
    return tuple(placed)


def is_whole(shares: Sequence[Share], demand: Demand) -> bool:
    """Whether shares are all that was asked for: v0.19.0 may lose the leader (issue 7446)."""
    hosts = {share.domain.host for share in shares}
    units = sum(share.units for share in shares)
    leaders = sum(share.leaders for share in shares)
    return len(hosts) == len(shares) and (units, leaders) == (demand.units, demand.leaders)


# ---- What a group asks for


def demand_of(request: HierarchyRequest, group: list[int], machine: Hierarchy) -> Demand | None:
    """Return the request of a group in Kueue's terms, or None if Kueue cannot express it."""
    workers, leader = group[0], None
    if len(group) > 1:
        workers, leader = group[:2]
        if request.parts[leader].units > request.parts[workers].units:
            workers, leader = leader, workers
        if len(group) > 2 or request.parts[leader].units > 1:
            return None
    part = request.parts[workers]
    last = machine.num_levels - 1
    slice_level, slice_size = part.segments[-1] if part.segments else (last, 1)
    level = level_of(part, last)
    if level > slice_level:
        return None
    inner: dict[int, int] = {}
    above = slice_level
    for lower, size in reversed(part.segments[:-1]):
        inner |= dict.fromkeys(range(above + 1, lower + 1), size)
        above = lower
    required = part.required is not None
    climbs = not required and part.preferred is not None
    return Demand(
        workers, leader, part.units, level, required, climbs, slice_level, slice_size, inner
    )


def level_of(part: PartState, last: int) -> int:
    """Return the level at which the search begins: that of the hosts for unconstrained parts."""
    for level in (part.required, part.preferred):
        if level is not None:
            return level
    return 0 if part.segments else last


# ---- The first phase: counting


class Tree:
    """The domains of a machine with what each can hold, for one group of parts.

    Attributes
    ----------
    levels
        By level its domains, in the order of the names on their paths.
    """

    def __init__(self, vacancy: Vacancy, request: HierarchyRequest, demand: Demand) -> None:
        self.demand = demand
        self.levels = domains_of(vacancy)
        part = request.parts[demand.workers]
        units = led = room(vacancy.free, part)
        leads = np.zeros_like(units)
        if demand.leader is not None:
            leader = request.parts[demand.leader]
            leads = np.minimum(room(vacancy.free, leader), 1)
            beside = vacancy.free - leads[:, None] * np.array(leader.takes)
            led = room(beside, part)
        for domain in self.levels[-1]:
            host = domain.host
            domain.units, domain.led_units = int(units[host]), int(led[host])
            domain.leads = int(leads[host])
        self.count(self.levels[0], 0, demand.inner)

    def count(self, domains: Iterable[Domain], level: int, inner: dict[int, int]) -> None:
        """Count again, from the hosts up, what domains of a level can hold."""
        below, sliced = inner.get(level + 1, 1), level == self.demand.slice_level
        for domain in domains:
            if domain.children:
                self.count(domain.children, level + 1, inner)
                self._add_up(domain, below)
            if sliced:
                domain.slices = domain.units // self.demand.slice_size
                domain.led_slices = domain.led_units // self.demand.slice_size

    def _add_up(self, domain: Domain, size: int) -> None:
        """Add up the children of a domain, each rounded down to segments of a size."""
        units = [child.units // size * size for child in domain.children]
        domain.units = sum(units)
        domain.slices = sum(child.slices for child in domain.children)
        domain.leads = max(child.leads for child in domain.children)
        displaced = [
            (own - child.led_units // size * size, child.slices - child.led_slices)
            for own, child in zip(units, domain.children, strict=True)
            if child.leads or not self.demand.leaders
        ]
        domain.led_units = domain.led_slices = 0
        if displaced:
            domain.led_units = domain.units - min(own for own, _ in displaced)
            domain.led_slices = domain.slices - min(own for _, own in displaced)


def domains_of(vacancy: Vacancy) -> list[list[Domain]]:
    """Return empty domains by level, each with its children, in the order of their paths."""
    machine = vacancy.machine
    levels: list[list[Domain]] = []
    above: list[Domain] = []
    for level, ranks in enumerate(vacancy.name_ranks):
        domains = [Domain(rank) for rank in ranks]
        in_order = sorted(range(len(ranks)), key=ranks.__getitem__)
        if level:
            parents = machine.parents[level]
            for number in in_order:
                above[parents[number]].children.append(domains[number])
        levels.append([domains[number] for number in in_order])
        above = domains
    for host, number in enumerate(machine.domain_of[-1]):
        above[number].host = host
    return levels


# ---- The second phase: choosing

Count = Callable[[Domain], int]


@dataclass(frozen=True)
class Counts:
    """How the pieces of units that domains can hold are counted.

    Attributes
    ----------
    plain, led
        Without the leader, and with it.
    size
        Units of a piece.
    keeps_leader
        False where v0.19.0 loses the leader if its domain does not hold all the rest.
    """

    plain: Count
    led: Count
    size: int
    keeps_leader: bool = True


def tightest(domains: Sequence[Domain], wanted: int, count: Count) -> Domain:
    """Return the domain with the least space that is enough, the first of those."""
    return min((d for d in domains if count(d) >= wanted), key=count, default=domains[0])


class Search:
    """Chooses domains for a group, level by level downwards, by one of two profiles."""

    def __init__(self, tree: Tree, demand: Demand, least_free: bool) -> None:
        self.tree, self.demand, self.least_free = tree, demand, least_free

    def shares(self) -> list[Share] | None:
        """Return the shares of hosts; None if there is no place."""
        chosen = self._at_level(self.demand.level)
        if chosen is None:
            return None
        level, domains = chosen
        shares = self.split_slices(domains)
        last = len(self.tree.levels) - 1
        while shares is not None and level < min(last, self.demand.slice_level):
            below = [child for share in shares for child in share.domain.children]
            shares = self.split_slices(self.sorted(below))
            level += 1
        return None if shares is None else self.below(level, shares)

    def below(self, level: int, shares: list[Share]) -> list[Share] | None:
        """Split the shares of domains of a level over their children, down to the hosts."""
        for lower in range(level + 1, len(self.tree.levels)):
            size = self.demand.inner.get(lower, 1)
            if lower <= self.demand.slice_level:
                size = self.demand.slice_size
            found: list[Share] = []
            for share in shares:
                parts = self._split_share(share, size)
                if parts is None:
                    return None
                found += parts
            shares = found
        return shares

    # ---- Orders

    def sorted(self, domains: Iterable[Domain]) -> list[Domain]:
        """Return domains in the order in which workers take them."""
        sign = 1 if self.least_free else -1
        return sorted(domains, key=lambda d: (sign * d.slices, d.units, d.rank))

    def sorted_with_leader(self, domains: Iterable[Domain]) -> list[Domain]:
        """Return domains in the order in which they are taken while there is a leader to place."""
        sign = 1 if self.least_free else -1
        return sorted(domains, key=lambda d: (-d.leads, sign * d.led_slices, d.led_units, d.rank))

    # ---- The level of the search

    def _at_level(self, level: int) -> Chosen | None:
        """Return domains that hold all slices, of this level or, where it climbs, one above."""
        wanted, leaders = self.demand.slices, self.demand.leaders
        domains = self.sorted_with_leader(self.tree.levels[level])
        if self.least_free:
            best = next((d for d in domains if d.slices >= wanted), None)
            if best is not None:
                return level, [best]
        else:
            best = domains[0]
            if best.led_slices >= wanted and best.leads >= leaders:
                best = tightest(domains, wanted, _led_slices if leaders else _slices)
                if best.leads >= leaders:
                    return level, [best]
        if self.demand.required:
            return None
        if level > 0 and self.demand.climbs:
            return self._at_level(level - 1)
        several = self._several(domains)
        return None if several is None else (level, several)

    def _several(self, domains: list[Domain]) -> list[Domain] | None:
        """Return domains of a level that hold all slices together, sorted with the leader."""
        wanted, leaders = self.demand.slices, self.demand.leaders
        found: list[Domain] = []
        while leaders > 0 and domains and domains[0].leads:
            best, domains = domains[0], domains[1:]
            if not self.least_free and best.led_slices >= wanted:
                best = tightest([best, *domains], wanted, _led_slices)
            found.append(best)
            leaders -= best.leads
            wanted -= best.led_slices
        if leaders > 0:
            return None
        domains = self.sorted(domains)
        for at, first in enumerate(domains):
            if wanted <= 0:
                break
            best = first
            if not self.least_free and best.slices >= wanted:
                best = tightest(domains[at:], wanted, _slices)
            found.append(best)
            wanted -= best.slices
        return None if wanted > 0 else found

    # ---- Splitting

    def split_slices(self, domains: Sequence[Domain]) -> list[Share] | None:
        """Split all slices over domains."""
        counts = Counts(_slices, _led_slices, self.demand.slice_size)
        return self._split(domains, self.demand.units, self.demand.leaders, counts)

    def _split_share(self, share: Share, size: int) -> list[Share] | None:
        """Split the share of a domain over its children, in pieces of a size."""
        counts = Counts(
            lambda d: d.units // size, lambda d: d.led_units // size, size, keeps_leader=size > 1
        )
        children = self.sorted(share.domain.children)
        return self._split(children, share.units, share.leaders, counts)

    def _split(
        self, domains: Sequence[Domain], units: int, leaders: int, counts: Counts
    ) -> list[Share] | None:
        """Split pieces over domains in their order; with BestFit the last one is the tightest."""
        wanted = units // counts.size
        found: list[Share] = []
        for at, first in enumerate(domains):
            count = counts.led if leaders else counts.plain
            best = first
            if not self.least_free and count(best) >= wanted and best.leads >= leaders:
                best = tightest(domains[at:], wanted, count)
            if count(best) >= wanted and best.leads >= leaders:
                found.append(Share(best, wanted * counts.size, leaders))
                return found
            if leaders and best.leads and not counts.keeps_leader:
                return None
            taken = min(count(best), wanted)
            found.append(Share(best, taken * counts.size, min(best.leads, leaders)))
            wanted, leaders = wanted - taken, leaders - found[-1].leaders
        return None


def _slices(domain: Domain) -> int:
    return domain.slices


def _led_slices(domain: Domain) -> int:
    return domain.led_slices
