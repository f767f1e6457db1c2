"""The claims of a placement on a pod of cubes, and its value (docs/proofs/cubes.md)."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from topoplace.certify.candidates import placed
from topoplace.certify.cubes.instance import Instance, read_instance
from topoplace.certify.cubes.oracle import CubesOracle, Tables
from topoplace.certify.packing import Packings
from topoplace.certify.report import Claims, RefusedError
from topoplace.certify.twice import TwiceOracle, lasting, lasts, reserved_nodes, twice
from topoplace.errors import number_of
from topoplace.machine import format_node_set, parse_node_set
from topoplace.machine.hostlist import NodeLists
from topoplace.result.certificate import Reserved
from topoplace.result.placement import CubesPlacement, CubesResult, CubesSolution


class CubesPlacements(Packings[CubesResult]):
    """A placement on a pod of cubes, as the frame asks for it."""

    searches = "alone"
    levels = (("nodes", "max"), ("free_cubes", "max"))
    _instance: Instance

    def read(self) -> str:
        """Read the instance and return what it is."""
        self._instance = read_instance(self.result.instance)
        num, side = len(self._instance.free), "x".join(map(str, self._instance.side))
        counts = f"{len(self.result.instance.running)} running, {len(self._instance.queue)} waiting"
        return f"{number_of(num, 'cube')} of {side}, {counts}"

    def follow(self, claims: Claims) -> bool:
        """Add the claims about the solution."""
        solution = self.result.solution
        if solution is None:
            return True
        chips = claims.add("placements", lambda: read_solution(self._instance, solution), _counts)
        if chips is None:
            return False
        claims.add("exclusive", lambda: require_free(self._instance, chips))
        if claims.hold:
            self.values = [*value_of(self._instance, chips)]
        return True

    @cached_property
    def oracle(self) -> CubesOracle:
        """The oracle of positions."""
        return CubesOracle(self._instance.requests, Tables(self._instance))

    def later(self, at: int | None, request: str) -> TwiceOracle:
        """Return an oracle of now and some seconds from now, when one request is placed."""
        now, then = (
            CubesOracle(own.queue, Tables(own, merges=False))
            for own in (self._instance, read_instance(lasting(self.result.instance, at)))
        )
        return twice(now, then, self.result.instance, at, request)

    def require_reserved(self, reserved: Reserved) -> None:
        """Raise unless a reservation is a place alongside all that start and last until then."""
        instance, solution = self.result.instance, self.result.solution
        then = read_instance(lasting(instance, reserved.at))
        chips = parse_node_set(reserved_nodes(reserved), then.free.size, reserved.request)
        if not len(chips):
            raise RefusedError(f"{reserved.request}: the reservation has no chips")
        first = CubesPlacement(
            request=reserved.request,
            cubes=sorted({int(chip) // then.volume for chip in chips}),
            prism=reserved.prism,
            nodes=format_node_set(chips.tolist()),
        )
        ends = {one.id: one.walltime for one in instance.queue}
        every = () if solution is None else solution.placements
        own = [p for p in every if lasts(ends[p.request], reserved.at)]
        require_free(then, read_solution(then, CubesSolution(placements=[*own, first])))


def read_solution(instance: Instance, solution: CubesSolution) -> dict[str, list[int]]:
    """Return the chips of what starts after checking each placement on its own."""
    found: dict[str, list[int]] = {}
    lists = NodeLists(instance.free.size)
    for request, placement in placed(solution.placements, instance.by_id):
        name = request.id
        found[name] = chips_of(instance, placement)
        if not request.may_have(found[name]):
            raise RefusedError(f"{name} has a chip that it may not have")
        listed = lists.numbers(placement.nodes, instance.free.size, name).tolist()
        if listed != found[name]:
            raise RefusedError(f"{name} has other nodes than its place has")
    return found


def chips_of(instance: Instance, placement: CubesPlacement) -> list[int]:
    """Return the chips of a placement, ascending."""
    request, cubes, volume = instance.by_id[placement.request], placement.cubes, instance.volume
    if sorted(set(cubes)) != cubes or cubes[-1] >= len(instance.free):
        raise RefusedError(f"{request.id} has cubes that do not ascend, or are none")
    if placement.prism is None:
        if len(cubes) != request.count:
            raise RefusedError(
                f"{request.id} has {number_of(len(cubes), 'whole cube')}, not {request.count}"
            )
        return [cube * volume + k for cube in cubes for k in range(volume)]
    origin, shape = tuple(placement.prism.origin), tuple(placement.prism.extents)
    if shape not in request.shapes or len(cubes) != 1:
        raise RefusedError(f"{request.id} has a part that it does not ask for")
    if origin not in instance.origins(shape):
        raise RefusedError(f"the part of {request.id} begins at no multiple of its extents inside")
    return instance.chips(cubes[0], origin, shape)


def value_of(instance: Instance, chips: dict[str, list[int]]) -> list[int]:
    """Return the value of what starts, and how many cubes it leaves free."""
    left = instance.free.copy()
    for own in chips.values():
        left.ravel()[own] = False
    value = sum(instance.by_id[name].value for name in chips)
    return [value, int(left.all(axis=1).sum())]


def require_free(instance: Instance, chips: dict[str, list[int]]) -> str:
    """Raise unless all chips are free, and none has two jobs."""
    users = np.zeros(instance.free.size, dtype=np.int64)
    for name, own in chips.items():
        closed = [chip for chip in own if not instance.free.ravel()[chip]]
        if closed:
            raise RefusedError(f"{name} may not use chip {closed[0]}")
        users[own] += 1
    if (users > 1).any():
        raise RefusedError(f"chip {int(users.argmax())} has two jobs")
    return "all chips are free, and none has two jobs"


def _counts(chips: dict[str, list[int]]) -> str:
    return (
        f"{number_of(len(chips), 'request')} placed, "
        f"{number_of(sum(map(len, chips.values())), 'chip')}"
    )
