"""The answer of an external allocator, and which rules it breaks (docs/external-allocators.md).

The documents are strict like all others. The rules are those of docs/proofs.md, "The problem", and
of docs/proofs-tree.md. They name what the checker (`certify`) would only refuse, let it have the
last word on a torus, and share no code with the placement methods.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Annotated, Final, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from topoplace.certify.report import RefusedError
from topoplace.certify.torus.instance import Instance, Wish, prism_of, read_instance
from topoplace.certify.torus.solution import check_exclusive, fits, read_starts
from topoplace.errors import InputError
from topoplace.machine import Prism, Torus, parse_node_set, prism_links
from topoplace.result import Interference, Placement, Solution
from topoplace.snapshot import Communication, Snapshot
from topoplace.snapshot.schema import Model, Name, NodeSet, PrismModel
from topoplace.snapshot.tree_state import TreeRequest, TreeState
from topoplace.study.external.verdict import MAX_BREACHES, Breach

IntArray = NDArray[np.int64]

PLACEMENTS_SCHEMA: Final = "topoplace.placements/1"

SchemaField = Annotated[Literal["topoplace.placements/1"], Field(alias="schema")]


class PlacedJob(Model):
    """A request that starts on a torus: its nodes, and its prism unless nodes are scattered."""

    request: Name
    nodes: NodeSet
    prism: PrismModel | None = None


class Placements(Model):
    """Who starts where on a torus or mesh; requests that are not listed do not start."""

    schema_version: SchemaField
    placements: list[PlacedJob]


class TreePlacedJob(Model):
    """A request that starts on a tree: the node of every rank, in rank order."""

    request: Name
    nodes: list[Annotated[str, Field(max_length=1024)]]


class TreePlacements(Model):
    """Who starts where on a tree machine; requests that are not listed do not start."""

    schema_version: SchemaField
    placements: list[TreePlacedJob]


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
    judge = _TorusJudge(read_instance(snapshot, interference))
    for placement in answer.placements:
        if judge.knows(placement.request):
            judge.judge(placement)
        if len(judge.breaches) >= MAX_BREACHES:
            break
    if not judge.breaches:
        judge.breaches += _refusal(judge.instance, answer)
    return judge.breaches


def tree_breaches(state: TreeState, answer: TreePlacements) -> list[Breach]:
    """Return the rules an answer breaks, at most about `MAX_BREACHES`; none if it is a solution."""
    judge = _TreeJudge(state)
    for placement in answer.placements:
        if judge.knows(placement.request):
            judge.judge(placement)
        if len(judge.breaches) >= MAX_BREACHES:
            break
    return judge.breaches


class _Judge:
    """Collects the breaches of an answer."""

    def __init__(self, queued: Collection[str], running: Collection[str]) -> None:
        self.breaches: list[Breach] = []
        self._queued, self._running = queued, running
        self._placed: set[str] = set()

    def knows(self, name: str) -> bool:
        """Tell whether this is a request that no placement before was for."""
        if name not in self._queued:
            wrong = "runs already" if name in self._running else "is no request of the queue"
            self.breach(name, wrong)
            return False
        if name in self._placed:
            self.breach(name, "is placed twice")
            return False
        self._placed.add(name)
        return True

    def breach(
        self, request: str, text: str, *, node: int | str | None = None, link: int | None = None
    ) -> None:
        self.breaches.append(Breach(f"{request} {text}", request, node, link))


@dataclass(frozen=True)
class _Seat:
    """A placement whose request and nodes are understood; routers and links that it takes."""

    wish: Wish
    nodes: IntArray
    prism: Prism | None
    routers: IntArray
    links: IntArray


class _TorusJudge(_Judge):
    def __init__(self, instance: Instance) -> None:
        super().__init__(instance.by_id, {job.id for job in instance.jobs})
        self.instance = instance
        self._names: list[str] = []  # of jobs; the tables below hold their positions, or -1
        self._node_user = np.full(instance.torus.num_nodes, -1)
        self._router_user = np.full(instance.torus.num_routers, -1)
        self._prism_user = self._router_user.copy()
        self._strict_user = np.full(instance.torus.num_links, -1)
        self._tolerant_user = self._strict_user.copy()
        for job in instance.jobs:
            self._use_links(job.links, job.sharing, job.id)

    def judge(self, placement: PlacedJob) -> None:
        """Judge a placement beside the running jobs and the placements before it."""
        seat = self._seat(self.instance.wishes[self.instance.by_id[placement.request]], placement)
        if seat is None:
            return
        self._judge_nodes(seat)
        if seat.prism is not None:
            self._judge_prism(seat, seat.prism)
        self._judge_overlaps(seat)
        self._judge_links(seat)
        user = self._use_links(seat.links, seat.wish.sharing, placement.request)
        self._node_user[seat.nodes] = self._router_user[seat.routers] = user
        if seat.prism is not None:
            self._prism_user[seat.routers] = user

    def _seat(self, wish: Wish, placement: PlacedJob) -> _Seat | None:
        torus = self.instance.torus
        try:
            nodes = parse_node_set(placement.nodes, torus.num_nodes, "nodes")
            prism = None if placement.prism is None else prism_of(torus, placement.prism)
        except InputError as error:
            self.breach(wish.id, f"has {error}")
            return None
        if prism is None:
            return _Seat(wish, nodes, None, np.unique(nodes // torus.nodes_per_router), nodes[:0])
        uses_links = wish.sharing is not Communication.NONE
        links = prism_links(torus, prism) if uses_links else nodes[:0]
        return _Seat(wish, nodes, prism, prism.routers(torus), links)

    def _judge_nodes(self, seat: _Seat) -> None:
        instance, wish, nodes = self.instance, seat.wish, seat.nodes
        if len(nodes) != wish.nodes:
            self.breach(wish.id, f"has {len(nodes)} nodes and wants {wish.nodes}")
        classes = instance.node_class[nodes]
        routers = nodes // instance.torus.nodes_per_router
        service = classes < 0
        held = instance.held[routers] & ~service
        down = ~instance.usable[nodes] & ~service & ~held
        foreign = (classes != wish.class_idx) & ~service
        on_router = f" on {self._held_router(int(routers[held.argmax()]))}" if held.any() else ""
        for wrong, why in (
            (held, on_router),
            (service, ", a service node"),
            (down, ", which is down"),
            (foreign, ", which is not of its class"),
        ):
            if wrong.any():
                node = int(nodes[wrong.argmax()])
                self.breach(wish.id, f"has node {node}{why}{_and_more(wrong)}", node=node)

    def _held_router(self, router: int) -> str:
        holder = next(job.id for job in self.instance.jobs if router in job.routers)
        return f"router {router}, held by running job {holder}"

    def _judge_prism(self, seat: _Seat, prism: Prism) -> None:
        instance, wish = self.instance, seat.wish
        outside = ~np.isin(seat.nodes // instance.torus.nodes_per_router, seat.routers)
        if outside.any():
            node = int(seat.nodes[outside.argmax()])
            text = f"has node {node} outside its prism {prism.text}{_and_more(outside)}"
            self.breach(wish.id, text, node=node)
        held = seat.routers[instance.held[seat.routers]]
        if len(held):
            self.breach(wish.id, f"has a prism with {self._held_router(int(held[0]))}")
        if wish.region is not None:
            astray = seat.routers[~instance.regions[wish.region][seat.routers]]
            if len(astray):
                text = f"has a prism with router {astray[0]} outside its region {wish.region}"
                self.breach(wish.id, text)
        if wish.geometries and not any(
            fits(instance, wish, geometry, prism) for geometry in wish.geometries
        ):
            wanted = "/".join(geometry.text for geometry in wish.geometries)
            self.breach(wish.id, f"has the prism {prism.text}, which does not fit {wanted}")

    def _judge_overlaps(self, seat: _Seat) -> None:
        """Report a node, or a router of a prism, that another placement has as well."""
        name = seat.wish.id
        taken = self._node_user[seat.nodes] >= 0
        if taken.any():
            node = int(seat.nodes[taken.argmax()])
            owner = self._names[self._node_user[node]]
            self.breach(name, f"has node {node} of {owner}{_and_more(taken)}", node=node)
            return
        users = self._prism_user if seat.prism is None else self._router_user
        taken = users[seat.routers] >= 0
        if taken.any():
            router = int(seat.routers[taken.argmax()])
            other = self._names[users[router]]
            self.breach(name, f"and {other} both have router {router}, one in its prism")

    def _judge_links(self, seat: _Seat) -> None:
        user = self._strict_user[seat.links]
        if seat.wish.sharing is not Communication.TOLERANT:
            user = np.where(user >= 0, user, self._tolerant_user[seat.links])
        shared = user >= 0
        if shared.any():
            link, other = int(seat.links[shared.argmax()]), self._names[user[shared.argmax()]]
            where = _link_text(self.instance.torus, link)
            text = f"shares {where} with {other}{_and_more(shared)}"
            self.breach(seat.wish.id, text, link=link)

    def _use_links(self, links: IntArray, sharing: Communication, name: str) -> int:
        """Note who uses links; return its position among the names."""
        self._names.append(name)
        tolerant = sharing is Communication.TOLERANT
        users = self._tolerant_user if tolerant else self._strict_user
        users[links] = len(self._names) - 1
        return len(self._names) - 1


def _link_text(torus: Torus, link: int) -> str:
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


class _TreeJudge(_Judge):
    def __init__(self, state: TreeState) -> None:
        self._requests = {request.id: request for request in state.requests}
        super().__init__(self._requests, {job.id for job in state.running})
        self._state = state
        self._numbers = {name: node for node, name in enumerate(state.tree.node_names)}
        self._holders = {int(node): job.id for job in state.running for node in job.nodes}
        self._taken: dict[int, str] = {}

    def judge(self, placement: TreePlacedJob) -> None:
        """Judge a placement beside the running jobs and the placements before it."""
        request = self._requests[placement.request]
        if len(placement.nodes) != request.nodes:
            wanted = f"has {len(placement.nodes)} nodes and wants {request.nodes}"
            self.breach(request.id, wanted)
        for node in placement.nodes:
            self._take(request.id, node)
            if len(self.breaches) >= MAX_BREACHES:
                return
        if request.intensive:
            self._judge_leaves(request, placement)

    def _take(self, request: str, name: str) -> None:
        node = self._numbers.get(name)
        if node is None:
            self.breach(request, f"has {name}, which is no node of the machine", node=name)
            return
        wrong = None
        if self._taken.get(node) == request:
            wrong = " twice"
        elif node in self._taken:
            wrong = f" of {self._taken[node]}"
        elif node in self._holders:
            wrong = f", held by running job {self._holders[node]}"
        elif not self._state.free[node]:
            wrong = ", which is down"
        if wrong is not None:
            self.breach(request, f"has node {name}{wrong}", node=name)
        self._taken.setdefault(node, request)

    def _judge_leaves(self, request: TreeRequest, placement: TreePlacedJob) -> None:
        tree = self._state.tree
        nodes = [self._numbers[name] for name in placement.nodes if name in self._numbers]
        leaves, first = np.unique(tree.leaf_of_node[nodes], return_index=True)
        apart = np.argwhere(tree.common_level[np.ix_(leaves, leaves)] == 0)
        if len(apart):
            one, other = (tree.node_names[nodes[first[k]]] for k in apart[0])
            text = f"communicates between {one} and {other}: no switch is above both"
            self.breach(request.id, text, node=one)
