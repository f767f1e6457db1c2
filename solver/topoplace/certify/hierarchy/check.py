"""The claims of a placement on a hierarchy (docs/proofs/hierarchy.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from topoplace.certify.candidates import placed
from topoplace.certify.hierarchy.free import FreeOracle, free_oracle
from topoplace.certify.hierarchy.instance import (
    Asked,
    Instance,
    Place,
    read_instance,
    require_place,
    require_room,
    with_later,
    worth,
)
from topoplace.certify.hierarchy.oracle import HierarchyOracle
from topoplace.certify.hierarchy.rows import Rows
from topoplace.certify.packing import Packings
from topoplace.certify.report import Claims, RefusedError
from topoplace.errors import number_of
from topoplace.machine.hostlist import NodeLists
from topoplace.result.certificate import Reserved
from topoplace.result.placement import HierarchyPlacement, HierarchyResult


class HierarchyPlacements(Packings[HierarchyResult]):
    """A placement on a hierarchy, as the frame asks for it."""

    searches = "alone"

    @cached_property
    def _instance(self) -> Instance:
        return read_instance(self.result.instance)

    @property
    def levels(self) -> Sequence[tuple[str, str]]:
        """Name and sense of the levels of the instance."""
        return self._instance.levels

    def read(self) -> str:
        """Read the instance and return what it is."""
        machine = self._instance.machine
        counts = f"{self._instance.num_running} running, {len(self._instance.queue)} waiting"
        return f"{number_of(machine.num_hosts, 'host')} in {' > '.join(machine.levels)}, {counts}"

    def follow(self, claims: Claims) -> bool:
        """Add the claims about the solution."""
        if self.result.solution is None:
            return True
        started = claims.add("placements", self._started, lambda found: f"{len(found)} start")
        if started is None:
            return False
        claims.add("hosts", lambda: require_room(self._instance, started))
        figures = [worth(self._instance, asked, place) for asked, place in started]
        nothing = [0] * len(self.levels)
        self.values = [sum(level) for level in zip(nothing, *figures, strict=True)]
        if self._instance.free_domains is not None:
            used = {host for _, place in started for units in place for host in units}
            at = self.levels.index((self._instance.free_name, "max"))
            self.values[at] = self._instance.num_free(used)
        return True

    def _started(self) -> list[tuple[Asked, Place]]:
        """Return who starts where; raise unless each keeps the rules of its request."""
        waiting = {asked.id: asked for asked in self._instance.queue}
        found: list[tuple[Asked, Place]] = []
        assert self.result.solution is not None
        lists = NodeLists()
        for asked, own in placed(self.result.solution.placements, waiting):
            try:
                place = self._place(asked, own, lists)
                require_place(self._instance, asked, place)
            except RefusedError as error:
                raise RefusedError(f"{own.request}: {error}") from None
            found.append((asked, place))
        return found

    def _place(self, asked: Asked, own: Any, lists: NodeLists) -> Place:
        """Return where a request is; raise if its nodes are others."""
        place = place_of(asked, own, self._numbers, lists)
        require_nodes(own, place, self._numbers)
        return place

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return self._instance.numbers

    @cached_property
    def oracle(self) -> HierarchyOracle | FreeOracle:
        """The oracle of domains, with a spare for every free one where these count."""
        rows = Rows(self._instance)
        if self._instance.free_domains is None:
            return HierarchyOracle(rows, self._instance.queue)
        return free_oracle(rows, self._instance.queue)

    def later(self, at: int | None, request: str) -> HierarchyOracle:
        """Return an oracle of now and some seconds from now, when one request is placed."""
        own = with_later(self.result.instance, self._instance, at, request)
        return HierarchyOracle(Rows(own), own.queue)

    def require_reserved(self, reserved: Reserved) -> None:
        """Raise unless a reservation is a place alongside all that start and last until then."""
        own = with_later(self.result.instance, self._instance, reserved.at, reserved.request)
        by_id = {asked.id: asked for asked in own.queue}
        first = by_id[reserved.request]
        place = place_of(first, reserved, self._numbers, NodeLists())
        require_place(own, first, place)
        beside = [(by_id[asked.id], at) for asked, at in self._started()]
        require_room(own, [*beside, (first, place)])


def require_nodes(own: HierarchyPlacement, place: Place, numbers: Mapping[str, int]) -> None:
    """Raise unless the nodes of a placement, if it has them, are the hosts of its parts."""
    if own.nodes is None:
        return
    hosts = {host for units in place for host in units}
    named = [numbers.get(name) for name in NodeLists().hosts(own.nodes, "nodes")]
    if len(named) != len(hosts) or {*named} != hosts:
        raise RefusedError("its nodes are not the hosts of its parts")


def place_of(
    asked: Asked, own: HierarchyPlacement | Reserved, numbers: Mapping[str, int], lists: NodeLists
) -> Place:
    """Return the units of every part by host."""
    if tuple(part.part for part in own.parts) != asked.part_names:
        raise RefusedError("its parts are not those of the request, in their order")
    place = []
    for part in own.parts:
        units: dict[int, int] = {}
        for share in part.shares:
            for name in lists.hosts(share.hosts, "hosts"):
                if name not in numbers or numbers[name] in units:
                    raise RefusedError(f"{name} is no host, or named twice")
                units[numbers[name]] = share.units
        if not units:
            raise RefusedError("a part without hosts")
        place.append(units)
    return place
