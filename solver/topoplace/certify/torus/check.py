"""The claims of a placement on a torus or mesh, and its value (docs/proofs/placement.md)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from topoplace.certify.packing import (
    ANYWHERE,
    CheckingOracle,
    Packings,
    Prices,
    certified_bound,
)
from topoplace.certify.report import Claims, Number, RefusedError
from topoplace.certify.torus.anchored import Anchored, oracle_of
from topoplace.certify.torus.instance import (
    Instance,
    Job,
    Request,
    both_tolerant,
    marked,
    prism_of,
    read_instance,
)
from topoplace.certify.torus.joint import (
    HOP_BYTES,
    check_mappings,
    costs_of,
    total_hop_bytes,
)
from topoplace.certify.torus.oracle import TorusOracle
from topoplace.certify.torus.shapes import Box
from topoplace.certify.torus.starts import (
    Start,
    check_exclusive,
    count_shared_links,
    read_starts,
    require_no_links,
    usable_inside,
    why_no_candidate,
)
from topoplace.certify.twice import TwiceOracle, lasting, lasts, reserved_nodes, twice
from topoplace.errors import number_of
from topoplace.machine import Prism, prism_links
from topoplace.result import Explanation, Placement, PlacementResult, Solution
from topoplace.result.certificate import Reserved
from topoplace.result.placement import HopBytesCertificate
from topoplace.snapshot.schema import Communication, TorusModel


class TorusPlacement(Packings[PlacementResult]):
    """A placement, as the frame asks for it."""

    searches = "alone"
    _instance: Instance
    _scattered = False

    @property
    def levels(self) -> tuple[tuple[str, str], ...]:
        """Name and sense of every level: shapes have no value where they are anchored."""
        machine = self.result.instance.on(TorusModel, "a torus or mesh")
        if machine.anchored:  # and nothing is mapped
            return (("nodes", "max"), ("fragmentation", "min"))
        if [level.name for level in self.result.levels] == [name for name, _ in HOP_BYTES]:
            return HOP_BYTES
        return (("nodes", "max"), ("shape", "max"), ("fragmentation", "min"))

    def read(self) -> str:
        """Read the instance and return what it is."""
        self._instance = read_instance(self.result.instance, self.result.limits.interference)
        counts = f"{len(self._instance.jobs)} running, {len(self._instance.requests)} waiting"
        rule = f"{self._instance.interference.value} interference"
        return f"{self._instance.torus.text}, {counts}, {rule}"

    def follow(self, claims: Claims) -> bool:
        """Add the claims about the solution and the explanations."""
        instance, solution = self._instance, self.result.solution
        starts: list[Start] | None = []
        if solution is not None:
            starts = claims.add("placements", lambda: self._starts(solution), _counts)
        if starts is None:
            return False
        known = starts
        if solution is not None:
            claims.add("exclusive", lambda: check_exclusive(instance, known))
            claims.add("links", lambda: _links(instance, known, solution))
            self._scattered = any(start.prism is None for start in known)
        if solution is not None and self._maps:
            claims.add("mappings", lambda: check_mappings(instance, solution, known))
        explanations = self.result.explanations
        claims.add("explanations", lambda: check_explanations(instance, known, explanations))
        if claims.hold and solution is not None:
            self.values = worth(instance, known)
            if self._maps:
                self.values = [self.values[0], total_hop_bytes(solution)]
        return True

    def _starts(self, solution: Solution) -> list[Start]:
        return read_starts(self._instance, solution, maps=self._maps)

    @property
    def _maps(self) -> bool:
        """Whether the second level is the hop-bytes of applications."""
        return self.levels == HOP_BYTES

    def places(self, solution: Solution, distinct: str) -> Mapping[str, Hashable]:
        """Return the places of what starts, as `TorusOracle.best_charged` knows them."""
        if self._instance.anchored:
            raise RefusedError("places on a machine with anchored prisms")
        found: dict[str, Hashable] = {}
        for start in self._starts(solution):
            inside = start.routers[self._instance.open_to(start.request)[start.routers]].tolist()
            found[start.id] = start.prism if distinct == "prisms" else frozenset(inside)
        return found

    @cached_property
    def oracle(self) -> CheckingOracle:
        """The oracle of prisms."""
        return _oracle_of(self._instance)

    def later(self, at: int | None, request: str) -> TwiceOracle:
        """Return an oracle of now and some seconds from now, when one request is placed."""
        now, then = (_oracle_of(own, keeps=False) for own in (self._instance, self._then(at)))
        return twice(now, then, self._instance.snapshot, at, request)

    def _then(self, at: int | None) -> Instance:
        if self._maps:
            raise RefusedError("a reservation of what is mapped")
        return read_instance(lasting(self._instance.snapshot, at), self._instance.interference)

    def require_reserved(self, reserved: Reserved) -> None:
        """Raise unless a reservation is a place alongside all that start and last until then."""
        instance, solution = self._then(reserved.at), self.result.solution
        if solution is None or reserved.prism is None:
            raise RefusedError(f"{reserved.request}: the reservation is no prism")
        first = Placement(
            request=reserved.request,
            prism=reserved.prism,
            other_prisms=reserved.other_prisms,
            nodes=reserved_nodes(reserved),
        )
        ends = {one.id: one.walltime for one in instance.snapshot.queue}
        own = [p for p in solution.placements if lasts(ends[p.request], reserved.at)]
        there = solution.model_copy(update={"placements": [*own, first]})
        starts = read_starts(instance, there)
        check_exclusive(instance, starts)
        require_no_links(instance, starts)

    def turned(self, level_idx: int, value: int) -> int:
        """Return a value as it is maximised; of anchored prisms that is what stays free."""
        if level_idx and self._instance.anchored:
            return Anchored(self._instance).total - value
        return super().turned(level_idx, value)

    def bound(self, level_idx: int) -> tuple[Number, str]:
        """Return what the certificate of a level proves, and where."""
        if self._scattered:
            raise RefusedError("a bound on prisms says nothing of scattered nodes")
        certificate = self.result.levels[level_idx].certificate
        if isinstance(certificate, HopBytesCertificate) != (self._maps and level_idx == 1):
            raise RefusedError("the certificate is one of another level")
        if not isinstance(certificate, HopBytesCertificate):
            return super().bound(level_idx)
        oracle = TorusOracle(self._instance, costs_of(self._instance, certificate.mappings))
        known = self.held[0]
        assert known is not None, "a solution that holds has nodes"
        proven = certified_bound(oracle, certificate.packing, [int(known)])
        if proven is None:
            raise RefusedError("the certificate leaves no placement at all")
        return -proven.value, proven.where


def _counts(starts: list[Start]) -> str:
    return (
        f"{number_of(len(starts), 'request')} placed, "
        f"{number_of(sum(len(start.nodes) for start in starts), 'node')}"
    )


def _links(instance: Instance, starts: list[Start], solution: Solution) -> str:
    shared = count_shared_links(instance, starts)
    if solution.num_shared_links != shared:
        raise RefusedError(f"num_shared_links is {solution.num_shared_links}, not {shared}")
    scattered = any(start.prism is None for start in starts)
    if shared and not scattered:
        raise RefusedError(f"{number_of(shared, 'link')} shared against the rule")
    if solution.conforming == (scattered or shared > 0):
        raise RefusedError(f"conforming is {solution.conforming}")
    return f"{number_of(shared, 'link')} shared against the rule"


# ---- What a solution is worth --------------------------------------------------------------------


def _oracle_of(instance: Instance, *, keeps: bool = True) -> CheckingOracle:
    """Return the oracle of prisms; of anchored ones with those that may stay free, if it keeps."""
    if not instance.anchored:
        return TorusOracle(instance)
    return oracle_of(Anchored(instance, keeps))


def worth(instance: Instance, starts: list[Start]) -> list[int | None]:
    """Return the value of the solution per level; None where scattered starts have none."""
    value = sum(start.request.value for start in starts)
    if instance.anchored:
        scattered = any(start.prism is None for start in starts)
        prisms = [p for start in starts if start.prism for p in (start.prism, *start.others)]
        return [value, None if scattered else Anchored(instance).fragmentation(prisms)]
    shape = faces = 0
    for start in starts:
        if start.prism is None:
            return [value, None, None]
        box, request = Box(instance, start.prism.extents), start.request
        idle = usable_inside(instance, request, start.prism) - request.nodes
        shape += box.score - instance.snapshot.weights.idle * idle
        faces += int(box.faces(instance.free)[start.prism.origin])
    return [value, shape, faces]


# ---- Whether the explanations of requests that did not start are true ----------------------------

MOST_ROUTERS = 200
"""Routers of machines on which explanations are compared with all prisms."""


def check_explanations(
    instance: Instance, starts: list[Start], explanations: list[Explanation]
) -> str:
    """Raise unless every explanation is of another request that waits, and is true.

    That its reason is the first that applies and no prism is nearer to free is found by going
    through all prisms, on small machines (docs/proofs/placement.md, "Explanations"). Returns a
    summary.
    """
    started = {start.id for start in starts}
    explained: set[str] = set()
    settings = _Settings(instance, starts)
    for explanation in explanations:
        name = explanation.request
        if name not in instance.by_id or name in started or name in explained:
            raise RefusedError(f"{name} is no request that waits, or is explained twice")
        explained.add(name)
        request = instance.by_id[name]
        try:
            _check(settings, request, explanation)
        except RefusedError as error:
            raise RefusedError(f"{name}: {error}") from None
    summary = f"{number_of(len(explanations), 'request')} explained"
    if explanations and not settings.are_small:
        summary += "; on a machine of this size, that no prism is nearer is not repeated"
    return summary


class _Settings:
    """The settings of a waiting request: the machine as it is, and idle."""

    def __init__(self, instance: Instance, starts: list[Start]) -> None:
        self.instance, self.starts = instance, starts
        self.are_small = instance.torus.num_routers <= MOST_ROUTERS

    @cached_property
    def idle(self) -> Instance:
        snapshot = self.instance.snapshot.model_copy(update={"running": []})
        idle = read_instance(snapshot, self.instance.interference)
        return replace(idle, requests=self.instance.requests)  # of several regions, those of now

    def of(self, reason: str) -> tuple[Instance, Sequence[Job]]:
        """Return the instance in which a reason is checked, and the jobs that run there."""
        if reason == "outbid":
            return self.instance, self.starts
        return self.idle, self.instance.jobs

    def nearest(self, request: Request) -> tuple[str, tuple[int, int] | None]:
        """Return the first reason that applies, on a small machine.

        With it come nodes of others and volume of a prism nearest to free, if there is one: the
        cheapest if routers cost so much for every node of another that volume only decides ties.
        """
        torus, q = self.instance.torus, self.instance.requests.index(request)
        for reason in ("outbid", "blocked"):
            setting, others = self.of(reason)
            held = np.zeros(torus.num_routers, dtype=np.int64)
            for other in others:
                np.add.at(held, other.nodes // torus.nodes_per_router, 1)
            per_node = torus.num_routers + 1
            prices = Prices({"routers": held * per_node + 1}, 0, (0,))
            gain = _oracle_of(setting).best(prices, {q: ANYWHERE})[q]
            if gain is not None:
                return reason, divmod(-gain, per_node)
        return "no-shape", None


def _check(settings: _Settings, request: Request, explanation: Explanation) -> None:
    instance, reason = settings.instance, explanation.reason
    nearest: tuple[int, int] | None = None
    if settings.are_small:
        first, nearest = settings.nearest(request)
        if reason != first:
            raise RefusedError(f"the reason is {reason}, not {first}")
    if reason == "no-shape":
        named = explanation.prism, explanation.nodes_to_free
        if named != (None, None) or explanation.jobs:
            raise RefusedError("no shape fits, yet a prism, jobs or nodes are named")
        return
    if explanation.prism is None:
        raise RefusedError("the prism is missing")
    prism = prism_of(instance.torus, explanation.prism)
    setting, others = settings.of(reason)
    if why_no_candidate(setting, request, prism):
        raise RefusedError(f"{prism.text} could not hold the request if it were free")
    names, held = _standing(instance, request, prism, others)
    if reason == "blocked" and not names:
        raise RefusedError(f"nothing blocks {prism.text}")
    if sorted(explanation.jobs) != sorted(names):
        raise RefusedError(f"jobs are {explanation.jobs}, not {names}")
    if explanation.nodes_to_free != held:
        raise RefusedError(f"nodes_to_free is {explanation.nodes_to_free}, not {held}")
    if nearest not in (None, (held, prism.volume)):
        raise RefusedError(
            f"{prism.text} holds {number_of(held, 'node')} of others in "
            f"{number_of(prism.volume, 'router')}, "
            f"one nearer to free {nearest[0]} in {nearest[1]}"
        )


def _standing(
    instance: Instance, request: Request, prism: Prism, others: Sequence[Job]
) -> tuple[list[str], int]:
    """Return which of the others are in the way, and the nodes they have in the prism."""
    torus = instance.torus
    inside = marked(torus.num_routers, [prism.routers(torus)])
    uses_links = request.sharing is not Communication.NONE
    used = marked(torus.num_links, [prism_links(torus, prism)] if uses_links else [])
    names, held = [], 0
    for other in others:
        both = both_tolerant(other.sharing, request.sharing)
        if inside[other.routers].any() or (not both and used[other.links].any()):
            names.append(other.id)
        held += int(inside[other.nodes // torus.nodes_per_router].sum())
    return names, held
