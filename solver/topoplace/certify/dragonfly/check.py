"""The claims of a placement on a dragonfly (docs/proofs/dragonfly.md)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cached_property

from topoplace.certify.dragonfly.instance import Reading, read_dragonfly
from topoplace.certify.dragonfly.oracle import DragonflyOracle
from topoplace.certify.hierarchy.instance import Asked, Place, require_place, require_room, worth
from topoplace.certify.hierarchy.oracle import HierarchyOracle
from topoplace.certify.hierarchy.rows import Rows
from topoplace.certify.packing import Packings
from topoplace.certify.report import Claims, RefusedError
from topoplace.errors import number_of
from topoplace.machine.hostlist import NodeLists
from topoplace.result import Interference
from topoplace.result.dragonfly import DragonflyResult

Started = list[tuple[Asked, list[int]]]


class DragonflyPlacements(Packings[DragonflyResult]):
    """A placement on a dragonfly, as the frame asks for it."""

    searches = "alone"

    @cached_property
    def _reading(self) -> Reading:
        return read_dragonfly(self.result.instance)

    @property
    def levels(self) -> Sequence[tuple[str, str]]:
        """Name and sense of the levels of the instance."""
        return self._reading.inside.levels

    @property
    def _is_strict(self) -> bool:
        return self.result.limits.interference is Interference.STRICT

    def read(self) -> str:
        """Read the instance and return what it is."""
        if self.result.limits.interference is Interference.TOLERANT:
            raise RefusedError("interference is tolerant, which means nothing on a dragonfly")
        reading = self._reading
        nodes = number_of(reading.per_group * reading.num_groups, "node")
        counts = f"{len(self.result.instance.running)} running, {len(reading.inside.queue)} waiting"
        return f"{nodes} in {number_of(reading.num_groups, 'group')}, {counts}"

    def follow(self, claims: Claims) -> bool:
        """Add the claims about the solution."""
        if self.result.solution is None:
            return True
        started = claims.add("placements", self._started, lambda found: f"{len(found)} start")
        if started is None:
            return False
        claims.add("nodes", lambda: self._require_apart(started))
        claims.add("links", lambda: self._require_links(started))
        figures = [
            worth(self._reading.inside, asked, self._place(nodes)) for asked, nodes in started
        ]
        nothing = [0] * len(self.levels)
        self.values = [sum(level) for level in zip(nothing, *figures, strict=True)]
        return True

    def _place(self, nodes: Sequence[int]) -> Place:
        return [Counter(node // self._reading.per_host for node in nodes)]

    def _started(self) -> Started:
        """Return who starts where; raise unless each keeps the rules of its request."""
        reading, found = self._reading, Started()
        waiting = {asked.id: asked for asked in reading.inside.queue}
        total = reading.per_group * reading.num_groups
        lists = NodeLists(total)
        assert self.result.solution is not None
        for own in self.result.solution.placements:
            if own.request not in waiting:
                raise RefusedError(f"{own.request} is no request that waits, or starts twice")
            asked = waiting.pop(own.request)
            nodes = lists.numbers(own.nodes, total, "nodes").tolist()
            taken = {*nodes} - reading.free
            if taken:
                raise RefusedError(f"{asked.id} has node {min(taken)}, which is not free")
            try:
                require_place(reading.inside, asked, self._place(nodes))
            except RefusedError as error:
                raise RefusedError(f"{asked.id}: {error}") from None
            found.append((asked, nodes))
        return found

    def _require_apart(self, started: Started) -> str:
        """Raise unless no node has two jobs, and who wants a group or router alone has it."""
        of = Counter(node for _, nodes in started for node in nodes)
        twice = [node for node, count in of.items() if count > 1]
        if twice:
            raise RefusedError(f"node {min(twice)} has two jobs")
        require_room(
            self._reading.inside, [(asked, self._place(nodes)) for asked, nodes in started]
        )
        return f"no node has two jobs; {number_of(len(of), 'node')}"

    def _require_links(self, started: Started) -> str:
        """Raise if two jobs use the links between two groups against the rule."""
        if not self._is_strict:
            return "interference off: jobs may share links"
        taken = {*self._reading.taken}
        for asked, nodes in started:
            if asked.id in self._reading.silent:
                continue
            own = self._reading.pairs(nodes)
            if own & taken:
                pair = " and ".join(map(str, min(own & taken)))
                raise RefusedError(f"{asked.id} shares the links between groups {pair}")
            taken |= own
        return (
            f"no link between groups has two jobs; {number_of(len(taken), 'pair')} of groups in use"
        )

    @cached_property
    def oracle(self) -> DragonflyOracle | HierarchyOracle:
        """The oracle of groups and routers, and of links between groups under the strict rule."""
        reading = self._reading
        rows, queue = Rows(reading.inside), reading.inside.queue
        if not self._is_strict:
            return HierarchyOracle(rows, queue)
        talks = tuple(asked.id not in reading.silent for asked in queue)
        num, taken = reading.num_groups, reading.taken
        return DragonflyOracle(rows, queue, talks=talks, num_groups=num, taken=taken)
