"""Whether an answer for a torus keeps the rules of docs/proofs.md, "The problem", and if not why.

Names what the checker (`certify`) would only refuse, and lets it have the last word. Shares no
code with the placement methods.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topoplace.certify.report import RefusedError
from topoplace.certify.torus.instance import Instance, Wish, prism_of, read_instance
from topoplace.certify.torus.solution import check_exclusive, fits, read_starts
from topoplace.errors import InputError
from topoplace.machine import Prism, Torus, parse_node_set, prism_links
from topoplace.result import Interference, Placement, Solution
from topoplace.snapshot import Communication, Snapshot
from topoplace.study.external.schema import PlacedJob, Placements
from topoplace.study.external.verdict import MAX_BREACHES, Breach

IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class _Seat:
    """A placement whose request and nodes are understood; routers and links that it takes."""

    wish: Wish
    nodes: IntArray
    prism: Prism | None
    routers: IntArray
    links: IntArray


class _Judge:
    """Collects the breaches of an answer, placement by placement."""

    def __init__(self, instance: Instance) -> None:
        self.breaches: list[Breach] = []
        self.instance = instance
        self._names: list[str] = []  # of jobs; the tables below hold their positions, or -1
        self._node_user = np.full(instance.torus.num_nodes, -1)
        self._router_user = np.full(instance.torus.num_routers, -1)
        self._prism_user = self._router_user.copy()
        self._strict_user = np.full(instance.torus.num_links, -1)
        self._tolerant_user = self._strict_user.copy()
        for job in instance.jobs:
            self._use_links(job.links, job.sharing, job.id)
        self._placed: set[str] = set()

    def judge(self, placement: PlacedJob) -> None:
        """Judge a placement beside the running jobs and the placements before it."""
        name = placement.request
        if name not in self.instance.by_id:
            running = any(job.id == name for job in self.instance.jobs)
            self._breach(name, "runs already" if running else "is no request of the queue")
            return
        if name in self._placed:
            self._breach(name, "is placed twice")
            return
        self._placed.add(name)
        seat = self._seat(self.instance.wishes[self.instance.by_id[name]], placement)
        if seat is None:
            return
        self._judge_nodes(seat)
        if seat.prism is not None:
            self._judge_prism(seat, seat.prism)
        self._judge_overlaps(seat)
        self._judge_links(seat)
        user = self._use_links(seat.links, seat.wish.sharing, name)
        self._node_user[seat.nodes] = self._router_user[seat.routers] = user
        if seat.prism is not None:
            self._prism_user[seat.routers] = user

    def _seat(self, wish: Wish, placement: PlacedJob) -> _Seat | None:
        torus = self.instance.torus
        try:
            nodes = parse_node_set(placement.nodes, torus.num_nodes, "nodes")
            prism = None if placement.prism is None else prism_of(torus, placement.prism)
        except InputError as error:
            self._breach(wish.id, f"has {error}")
            return None
        if prism is None:
            return _Seat(wish, nodes, None, np.unique(nodes // torus.nodes_per_router), nodes[:0])
        uses_links = wish.sharing is not Communication.NONE
        links = prism_links(torus, prism) if uses_links else nodes[:0]
        return _Seat(wish, nodes, prism, prism.routers(torus), links)

    def _judge_nodes(self, seat: _Seat) -> None:
        instance, wish, nodes = self.instance, seat.wish, seat.nodes
        if len(nodes) != wish.nodes:
            self._breach(wish.id, f"has {len(nodes)} nodes and wants {wish.nodes}")
        classes = instance.node_class[nodes]
        service = classes < 0
        held = instance.held[nodes // instance.torus.nodes_per_router] & ~service
        down = ~instance.usable[nodes] & ~service & ~held
        foreign = (classes != wish.class_idx) & ~service
        if held.any():
            node = int(nodes[held.argmax()])
            router = self._held_router(node // instance.torus.nodes_per_router)
            self._breach(wish.id, f"has node {node} on {router}{_and_more(held)}", node=node)
        for wrong, why in (
            (service, "a service node"),
            (down, "which is down"),
            (foreign, "which is not of its class"),
        ):
            if wrong.any():
                node = int(nodes[wrong.argmax()])
                self._breach(wish.id, f"has node {node}, {why}{_and_more(wrong)}", node=node)

    def _held_router(self, router: int) -> str:
        holder = next(job.id for job in self.instance.jobs if router in job.routers)
        return f"router {router}, held by running job {holder}"

    def _judge_prism(self, seat: _Seat, prism: Prism) -> None:
        instance, wish = self.instance, seat.wish
        outside = ~np.isin(seat.nodes // instance.torus.nodes_per_router, seat.routers)
        if outside.any():
            node = int(seat.nodes[outside.argmax()])
            text = f"has node {node} outside its prism {prism.text}{_and_more(outside)}"
            self._breach(wish.id, text, node=node)
        held = seat.routers[instance.held[seat.routers]]
        if len(held):
            self._breach(wish.id, f"has a prism with {self._held_router(int(held[0]))}")
        if wish.region is not None:
            astray = seat.routers[~instance.regions[wish.region][seat.routers]]
            if len(astray):
                text = f"has a prism with router {astray[0]} outside its region {wish.region}"
                self._breach(wish.id, text)
        if wish.geometries and not any(
            fits(instance, wish, geometry, prism) for geometry in wish.geometries
        ):
            wanted = "/".join(geometry.text for geometry in wish.geometries)
            self._breach(wish.id, f"has the prism {prism.text}, which does not fit {wanted}")

    def _judge_overlaps(self, seat: _Seat) -> None:
        """Report a node, or a router of a prism, that another placement has as well."""
        name = seat.wish.id
        taken = self._node_user[seat.nodes] >= 0
        if taken.any():
            node = int(seat.nodes[taken.argmax()])
            owner = self._names[self._node_user[node]]
            self._breach(name, f"has node {node} of {owner}{_and_more(taken)}", node=node)
            return
        users = self._prism_user if seat.prism is None else self._router_user
        taken = users[seat.routers] >= 0
        if taken.any():
            router = int(seat.routers[taken.argmax()])
            other = self._names[users[router]]
            self._breach(name, f"and {other} both have router {router}, one in its prism")

    def _judge_links(self, seat: _Seat) -> None:
        user = self._strict_user[seat.links]
        if seat.wish.sharing is not Communication.TOLERANT:
            user = np.where(user >= 0, user, self._tolerant_user[seat.links])
        shared = user >= 0
        if shared.any():
            link, other = int(seat.links[shared.argmax()]), self._names[user[shared.argmax()]]
            where = link_text(self.instance.torus, link)
            text = f"shares {where} with {other}{_and_more(shared)}"
            self._breach(seat.wish.id, text, link=link)

    def _use_links(self, links: IntArray, sharing: Communication, name: str) -> int:
        """Note who uses links; return its position among the names."""
        self._names.append(name)
        tolerant = sharing is Communication.TOLERANT
        users = self._tolerant_user if tolerant else self._strict_user
        users[links] = len(self._names) - 1
        return len(self._names) - 1

    def _breach(
        self, request: str, text: str, *, node: int | None = None, link: int | None = None
    ) -> None:
        self.breaches.append(Breach(f"{request} {text}", request, node, link))


def torus_breaches(
    snapshot: Snapshot, interference: Interference, answer: Placements
) -> list[Breach]:
    """Return the rules an answer breaks, at most about `MAX_BREACHES`; none if it is a solution.

    Placements without a prism may share links: they are scored as not conforming, like the
    node orders of our own.

    Parameters
    ----------
    snapshot
        With its machine written out.
    interference
        The rule for links.
    """
    judge = _Judge(read_instance(snapshot, interference))
    for placement in answer.placements:
        judge.judge(placement)
        if len(judge.breaches) >= MAX_BREACHES:
            break
    if not judge.breaches:
        judge.breaches += _refusal(judge.instance, answer)
    return judge.breaches


def link_text(torus: Torus, link: int) -> str:
    """Return a link as ``link 57 (3,0,1 to 3,1,1)``."""
    dim, router = divmod(link, torus.num_routers)
    start = torus.coords(router)
    end = tuple((c + 1) % torus.shape[d] if d == dim else c for d, c in enumerate(start))
    return f"link {link} ({','.join(map(str, start))} to {','.join(map(str, end))})"


def _and_more(wrong: NDArray[np.bool_]) -> str:
    more = int(wrong.sum()) - 1
    return f" (and {more} more)" if more else ""


def _refusal(instance: Instance, answer: Placements) -> list[Breach]:
    """Return what the checker has against an answer in which nothing else was found."""
    placements = [
        Placement(request=p.request, prism=p.prism, nodes=p.nodes) for p in answer.placements
    ]
    solution = Solution(placements=placements, num_shared_links=0, conforming=False)
    try:
        check_exclusive(instance, read_starts(instance, solution))
    except (RefusedError, InputError) as error:
        return [Breach(str(error))]
    return []
