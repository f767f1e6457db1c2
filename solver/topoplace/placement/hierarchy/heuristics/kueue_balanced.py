"""Kueue's balanced placement (v0.19.0, feature gate TASBalancedPlacement; KEP-2724).

It is for a preferred level. In the level above, it looks for the domain below which the job can be
on as few domains as a greedy choice needs, with as many slices as possible on the domain that has
the fewest. These fewest slices are the threshold. Domains that cannot hold that number are left
out; of the others, the fewest and then the tightest are taken, each gets the threshold, and the
rest goes to the largest. If that fails, BestFit places the job (`kueue`).

The domains compared are those one level below the preferred one, or at it if it is the slices' own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import chain

import numpy as np

from topoplace.placement.hierarchy.heuristics.kueue import (
    Demand,
    Domain,
    Search,
    Share,
    Tree,
    mixed,
    place,
)
from topoplace.placement.hierarchy.heuristics.queue import Vacancy, register_rule
from topoplace.placement.hierarchy.problem import Placed
from topoplace.snapshot.hierarchy_state import HierarchyRequest


@register_rule("kueue-balanced")
def kueue_balanced(
    vacancy: Vacancy, request: HierarchyRequest, _: np.random.Generator
) -> Placed | None:
    """Place a request as Kueue does if balanced placement is switched on."""
    return place(vacancy, request, mixed, balanced_shares)


@dataclass(frozen=True)
class Greedy:
    """A greedy choice of domains.

    Attributes
    ----------
    num_domains
        How many it takes.
    threshold
        The most slices that its last domains, with and without the leader, and an equal share
        allow.
    reserved
        The same if the last domain without the leader has to be able to hold it too.
    """

    num_domains: int
    threshold: int
    reserved: int


def balanced_shares(tree: Tree, demand: Demand) -> list[Share] | None:
    """Return the shares of hosts; None if balancing does not apply, or fails."""
    if not demand.climbs:
        return None
    balancing = Balancing(tree, demand)
    threshold, domains = balancing.best_threshold()
    if not threshold:
        return None
    level = demand.level
    if level < demand.slice_level:
        domains = below(balancing.fewest(domains, by_entropy=True))
        level += 1
    shares = balancing.even(domains, threshold)
    return None if shares is None else balancing.search.below(level, shares)


class Balancing:
    """The steps of a balanced placement."""

    def __init__(self, tree: Tree, demand: Demand) -> None:
        self.tree, self.demand = tree, demand
        self.search = Search(tree, demand, least_free=False)

    # ---- The threshold

    def best_threshold(self) -> tuple[int, list[Domain]]:
        """Return the largest threshold, 0 if there is none, and the domains that can reach it."""
        best, fewest, found = 0, 0, list[Domain]()
        for siblings in self._families():
            own = siblings if self.demand.level == self.demand.slice_level else below(siblings)
            greedy = self.greedy(own)
            if greedy is None or greedy.threshold < best:
                continue
            for threshold in dict.fromkeys((greedy.threshold, greedy.reserved)):
                if threshold < max(best, 1):
                    break
                pruned = self._pruned(siblings, threshold)
                after = self.greedy(pruned)
                if after is not None:
                    if (threshold, -after.num_domains) > (best, -fewest):
                        best, fewest, found = threshold, after.num_domains, pruned
                    break
        return best, found

    def _families(self) -> list[list[Domain]]:
        level = self.demand.level
        if level == 0:
            return [self.tree.levels[0]]
        return [domain.children for domain in self.tree.levels[level - 1]]

    def greedy(self, domains: Sequence[Domain]) -> Greedy | None:
        """Take the leader's domain and then the largest until all slices fit; None if they do not.

        A threshold of 0 can come out, which balances nothing.
        """
        wanted, leaders = self.demand.slices, self.demand.leaders
        limits, taken = [], 0
        rest = list(domains)
        if leaders:
            rest = self.search.sorted_with_leader(domains)
            if not rest or not rest[0].leads:
                return None
            limits.append(rest[0].led_slices)
            wanted -= rest[0].led_slices
            rest, taken = rest[1:], 1
        last = None
        for domain in self.search.sorted(rest):
            if wanted <= 0:
                break
            if not domain.slices:
                return None
            last, taken, wanted = domain, taken + 1, wanted - domain.slices
        if wanted > 0:
            return None
        limits += [] if last is None else [last.slices]
        threshold = min([self.demand.slices // taken, *limits])
        reserved = threshold if last is None or not leaders else min(threshold, last.led_slices)
        return Greedy(taken, threshold, reserved)

    def _pruned(self, siblings: Sequence[Domain], threshold: int) -> list[Domain]:
        """Return copies of domains without those that cannot reach a threshold."""
        domains = deepcopy(list(siblings))
        for child in below(domains):
            self._prune(child, threshold)
        self.tree.count(domains, self.demand.level, {})
        for domain in domains:
            self._prune(domain, threshold)
        return domains

    def _prune(self, domain: Domain, threshold: int) -> None:
        if domain.slices < threshold:
            clear(domain, leader_only=False)
        elif self.demand.leaders and domain.leads and domain.led_slices < threshold:
            clear(domain, leader_only=True)

    # ---- The domains

    def fewest(self, domains: Sequence[Domain], by_entropy: bool) -> list[Domain]:
        """Return the tightest of the sets of as few domains as a greedy choice; [] if none fits.

        A dynamic program over the domains, by the number taken and the rest to place; of sets that
        leave the same rest, the first one stays.
        """
        greedy = self.greedy(domains)
        if greedy is None:
            return []
        units = self.demand.slices * self.demand.slice_size
        sets: list[dict[tuple[int, int], tuple[Domain, ...]]]
        sets = [{} for _ in range(greedy.num_domains + 1)]
        sets[0][self.demand.leaders, units] = ()
        for domain in sorted(domains, key=_by_room if by_entropy else _by_name):
            for number in range(greedy.num_domains, 0, -1):
                for left, chosen in sorted(sets[number - 1].items(), key=lambda item: item[0]):
                    for after in _after(left, domain):
                        sets[number].setdefault(after, (*chosen, domain))
        enough = [left for leaders, left in sets[-1] if leaders == 0 and left <= 0]
        return list(sets[-1][0, max(enough)]) if enough else []

    def even(self, domains: Sequence[Domain], threshold: int) -> list[Share] | None:
        """Return shares: each of the domains gets the threshold, and the largest ones get the rest.

        None if that does not place all.
        """
        chosen = self.search.sorted_with_leader(self.fewest(domains, by_entropy=False))
        extra, leaders = self.demand.slices - len(chosen) * threshold, self.demand.leaders
        if not chosen or extra < 0:
            return None
        shares = []
        for domain in chosen:
            room = domain.led_slices if leaders else domain.slices
            more = min(room - threshold, extra)
            shares.append(Share(domain, (threshold + more) * self.demand.slice_size, leaders))
            extra, leaders = extra - more, 0
        return None if extra else shares


def below(domains: Iterable[Domain]) -> list[Domain]:
    """Return the children of domains."""
    return list(chain.from_iterable(domain.children for domain in domains))


def clear(domain: Domain, leader_only: bool) -> None:
    """Leave a domain no space, or none for the leader and for workers with it."""
    if not leader_only:
        domain.units = domain.slices = 0
    domain.led_units = domain.led_slices = domain.leads = 0
    for child in domain.children:
        clear(child, leader_only)


def entropy(domain: Domain) -> float:
    """Return how evenly the free space of a domain is spread over its children, in bits."""
    total = sum(child.units for child in domain.children)
    shares = [child.units / total for child in domain.children if child.units]
    return sum(-share * math.log2(share) for share in shares)


def _by_name(domain: Domain) -> int:
    return domain.rank


def _by_room(domain: Domain) -> tuple[int, int, float, int]:
    return -domain.leads, -domain.led_slices, -entropy(domain), domain.rank


def _after(left: tuple[int, int], domain: Domain) -> Iterable[tuple[int, int]]:
    """Yield the rest to place, leaders and units, after one more domain is taken."""
    leaders, units = left
    if leaders <= 0 and units <= 0:
        return
    if leaders > 0 and domain.leads:
        yield leaders - domain.leads, units - domain.led_units
    if domain.slices:
        yield leaders, units - domain.units
