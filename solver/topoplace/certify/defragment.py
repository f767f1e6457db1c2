"""The claims of plans that make room by few moves (docs/proofs/placement.md, "Room")."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from topoplace.certify.hierarchy.instance import machine_of
from topoplace.certify.moves import Repacking, RepackOracle, follow_plan, read_repacking
from topoplace.certify.packing import CheckingOracle, Packings, certified_bound
from topoplace.certify.report import Claims, Number, RefusedError
from topoplace.certify.torus.moves import TorusGround
from topoplace.errors import number_of
from topoplace.machine import parse_node_set
from topoplace.machine.hostlist import NodeLists, format_host_list
from topoplace.result.placement import RepackResult, RepackSolution
from topoplace.snapshot.schema import CubesModel, DefragmentInstance, Request, Room, Snapshot

_ROOM = 2


class Defragment(Packings[RepackResult]):
    """A plan that makes room, as the frame asks for it."""

    levels = (("placed", "max"), ("moves", "min"), ("room", "max"))
    _whole: Repacking

    @property
    def _asked(self) -> DefragmentInstance:
        asked: Any = self.result.instance
        assert isinstance(asked, DefragmentInstance)
        return asked

    def read(self) -> str:
        """Read the instance and return what it is."""
        asked = self._asked
        if asked.room is not Room.PRISM:
            aim = _of_domains(asked) if asked.room is Room.DOMAINS else None
            self._whole = read_repacking(asked, self.result.limits.interference, aim)
        else:
            self._whole = self._of_size(1)
        ground, rule = self._whole.ground, self.result.limits.interference
        counts = f"{ground.num_running} running, {len(ground.movers)} may move"
        what = (
            "a prism" if asked.room is Room.PRISM else f"{number_of(len(ground.wanted), 'request')}"
        )
        moves = f"moves of {asked.most} at most for {what}"
        return f"{ground.text}, {counts}, {moves}, {rule.value} interference"

    def _of_size(self, nodes: int) -> Repacking:
        """Return the instance in which only one job waits, with a given number of nodes."""
        asked = self._asked
        if nodes < 1:
            raise RefusedError(f"a prism of {number_of(nodes, 'node')}")
        request = Request(id=asked.room_id, nodes=nodes, node_class=asked.node_class)
        update = {"queue": [request], "left_out": []}  # a held request may have the same name
        snapshot = asked.snapshot.model_copy(update=update)
        return read_repacking(asked, self.result.limits.interference, snapshot)

    @property
    def least(self) -> Mapping[int, float]:
        """All movers have a place, and moves cost no more than asked for."""
        return {0: len(self._whole.movers), 1: -self._asked.most}

    def follow(self, claims: Claims) -> bool:
        """Add the claims about the places, and about the steps that lead there."""
        solution: Any = self.result.solution
        assert isinstance(solution, RepackSolution)
        repacking = self._whole
        if self._asked.room is Room.PRISM:
            for placement in solution.placements:
                repacking = self._of_size(_size(placement.nodes or "", repacking))
        followed = follow_plan(repacking, solution, claims)
        if followed is None or not claims.hold:
            return False
        cost, _ = followed
        if cost > self._asked.most:
            raise RefusedError(f"moves cost {cost}, and may cost {self._asked.most}")
        values = repacking.ground.wanted
        room = sum(values[placement.request] for placement in solution.placements)
        self.values = [len(repacking.movers), cost, room]
        return True

    @cached_property
    def oracle(self) -> CheckingOracle:
        """The oracle of the instance."""
        return RepackOracle.of(self._whole, makes_room=True)

    def proven(
        self,
        level_idx: int,
        certificate: Any,
        held: Sequence[Number | None],
        oracle: CheckingOracle | None = None,
        claimed: int = 0,
    ) -> tuple[int, str]:
        """Return what a certificate proves (see `Packings.proven`).

        That no prism has more nodes than claimed is proven by what it takes to start one more.
        """
        if level_idx < _ROOM or self._asked.room is not Room.PRISM:
            return super().proven(level_idx, certificate, held, oracle)
        placed, moves = held
        if placed is None or placed < len(self._whole.movers):
            raise RefusedError("not all jobs have to have a place")
        if claimed >= _of_prisms(self._whole).class_size:
            return claimed, ": all nodes of the class"
        larger = self._of_size(claimed + 1)
        oracle = RepackOracle.of(larger)
        all_stay = len(larger.movers) * oracle.weight
        earlier = [] if moves is None else [all_stay + 1]
        found = certified_bound(oracle, certificate, earlier)
        if found is not None and found.value >= (all_stay + 1 if moves is None else -moves):
            raise RefusedError(f"the certificate leaves room for {number_of(claimed + 1, 'node')}")
        return claimed, "" if found is None else found.where


def _of_domains(asked: DefragmentInstance) -> Snapshot:
    """Return the snapshot in which a request waits for each domain that may be free as a whole."""
    snapshot = asked.snapshot
    if asked.level is None:
        pod = snapshot.on(CubesModel, "a pod of cubes")
        return asked.sparing(pod.cubes, nodes=math.prod(pod.side))
    machine = machine_of(snapshot.written)
    of = dict(
        zip(machine.host_names, machine.domain_of[machine.levels.index(asked.level)], strict=True)
    )
    failed = {of[name] for name in NodeLists().hosts(snapshot.down, "down")}
    barred = [name for name in machine.host_names if of[name] in failed]
    shared = [
        name
        for name, amounts in zip(machine.resources, machine.capacity.T.tolist(), strict=True)
        if all(amounts)
    ]
    if not shared:
        raise RefusedError("no resource that every host has")
    excluded = format_host_list(barred) or None
    number = len({*of.values()} - failed)
    return asked.sparing(number, nodes=1, takes={shared[0]: 1}, excluded=excluded)


def _of_prisms(repacking: Repacking) -> TorusGround:
    if not isinstance(repacking.ground, TorusGround):
        raise RefusedError("prisms are of tori and meshes")
    return repacking.ground


def _size(nodes: str, repacking: Repacking) -> int:
    return len(parse_node_set(nodes, _of_prisms(repacking).emptied.torus.num_nodes))
