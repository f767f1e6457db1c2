"""An external allocator's answer, and the rules it breaks (docs/guide/external-allocators.md).

The documents are strict like all others. The rules are those of docs/proofs/placement.md, "The
problem", and of docs/proofs/tree.md. This module names faults that the checker (`certify`) would
only refuse, lets it judge the rest on a torus, and shares no code with the placement methods.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Annotated, Any, Final, Literal

import numpy as np
from pydantic import Field

from topoplace.certify.report import RefusedError
from topoplace.certify.torus.instance import Instance, Job, prism_of, read_instance
from topoplace.certify.torus.starts import read_starts
from topoplace.errors import InputError, number_of
from topoplace.machine import Torus, parse_node_set, prism_links
from topoplace.result import Interference, Placement, Solution
from topoplace.snapshot.schema import Communication, Model, Name, NodeSet, PrismModel, Snapshot
from topoplace.snapshot.tree_state import TreeState
from topoplace.study.external.verdict import MAX_BREACHES, Breach
from topoplace.types import BoolArray

PLACEMENTS_SCHEMA: Final = "topoplace.placements/1"

SchemaField = Annotated[Literal["topoplace.placements/1"], Field(alias="schema")]


class PlacedJob(Model):
    """A request that starts on a torus: its nodes, and its prism unless nodes are scattered.

    A job in segments also has `other_prisms`, in ascending order of origins.
    """

    request: Name
    nodes: NodeSet
    prism: PrismModel | None = None
    other_prisms: list[PrismModel] | None = None


class Placements(Model):
    """Which requests start where on a torus or mesh; those not listed do not start."""

    schema_version: SchemaField
    placements: list[PlacedJob]


class TreePlacedJob(Model):
    """A request that starts on a tree: the node of every rank, in rank order."""

    request: Name
    nodes: list[Annotated[str, Field(max_length=1024)]]


class TreePlacements(Model):
    """Which requests start where on a tree machine; those not listed do not start."""

    schema_version: SchemaField
    placements: list[TreePlacedJob]


def torus_breaches(
    snapshot: Snapshot, interference: Interference, answer: Placements
) -> list[Breach]:
    """Return the rules an answer breaks, at most `MAX_BREACHES`; none if it is a solution.

    Placements without a prism may share links: they are scored as not conforming, like our own node
    orders. `snapshot` has its machine written out.
    """
    return _TorusJudge(read_instance(snapshot, interference)).breaches_of(answer.placements)


def tree_breaches(state: TreeState, answer: TreePlacements) -> list[Breach]:
    """Return the rules an answer breaks, at most `MAX_BREACHES`; none if it is a solution."""
    return _TreeJudge(state).breaches_of(answer.placements)


class _Judge:
    """Collects the breaches of an answer, placement by placement."""

    def __init__(self, queued: Collection[str], running: Collection[str]) -> None:
        self._queued, self._running = queued, running
        self._placed: set[str] = set()
        self._breaches: list[Breach] = []

    def breaches_of(self, placements: Sequence[Any]) -> list[Breach]:
        for placement in placements:
            name = placement.request
            if name not in self._queued:
                runs = name in self._running
                self._breach(name, "runs already" if runs else "is no request of the queue")
            elif name in self._placed:
                self._breach(name, "is placed twice")
            else:
                self._placed.add(name)
                self._judge(placement)
        return self._breaches[:MAX_BREACHES]

    def _judge(self, placement: Any) -> None:
        """Judge a placement together with the running jobs and the placements before it."""
        raise NotImplementedError

    def _breach(
        self, request: str, text: str, *, node: int | str | None = None, link: int | None = None
    ) -> None:
        self._breaches.append(Breach(f"{request} {text}", request, node, link))


class _TorusJudge(_Judge):
    """Names wrong nodes, and jobs in conflict; the checker judges the rest of each placement."""

    def __init__(self, instance: Instance) -> None:
        super().__init__(instance.by_id, {job.id for job in instance.jobs})
        self._instance, torus = instance, instance.torus
        self._names: list[str] = []  # of jobs; the tables below hold their positions, or -1
        self._node_user = np.full(torus.num_nodes, -1)
        self._router_user, self._prism_user = np.full((2, torus.num_routers), -1)
        self._link_users = {sharing: np.full(torus.num_links, -1) for sharing in Communication}
        for job in instance.jobs:
            self._use_links(job)

    def _judge(self, placement: PlacedJob) -> None:
        instance, torus, known = self._instance, self._instance.torus, len(self._breaches)
        request = instance.by_id[placement.request]
        try:
            nodes = parse_node_set(placement.nodes, torus.num_nodes, "nodes")
            prism = None if placement.prism is None else prism_of(torus, placement.prism)
            others = [prism_of(torus, model) for model in placement.other_prisms or ()]
        except InputError as error:
            self._breach(request.id, f"has {error}")
            return
        routers, links = np.unique(nodes // torus.nodes_per_router), nodes[:0]
        if prism is not None:
            routers = np.concatenate([one.routers(torus) for one in (prism, *others)])
            if request.sharing is not Communication.NONE:
                links = prism_links(torus, prism)
        job = Job(request.id, nodes, routers, prism, links, request.sharing)
        self._judge_nodes(job, request.class_idx)
        self._judge_overlaps(job)
        user = self._use_links(job)
        self._node_user[nodes] = self._router_user[routers] = user
        if prism is not None:
            self._prism_user[routers] = user
        if len(self._breaches) == known:
            model = Placement(**placement.model_dump())
            alone = Solution(placements=[model], num_shared_links=0, conforming=False)
            try:
                read_starts(instance, alone)
            except (RefusedError, InputError) as error:
                self._breaches.append(Breach(str(error), request.id))

    def _judge_nodes(self, job: Job, class_idx: int) -> None:
        """Report nodes that the job may not have, once for every reason."""
        instance, torus = self._instance, self._instance.torus
        routers, classes = job.nodes // torus.nodes_per_router, instance.node_class[job.nodes]
        service, held = classes < 0, instance.held[routers] & (classes >= 0)
        down = ~instance.usable[job.nodes] & ~service & ~held
        foreign = (classes != class_idx) & ~service
        if held.any():
            router = routers[held][0]
            holder = next(other.id for other in instance.jobs if router in other.routers)
            self._breach_of_node(job, held, f" on router {router}, held by running job {holder}")
        self._breach_of_node(job, service, ", a service node")
        self._breach_of_node(job, down, ", which is down")
        self._breach_of_node(job, foreign, ", which is not of its class")
        if job.prism is not None:
            outside = ~np.isin(routers, job.routers)
            self._breach_of_node(job, outside, f" outside its prism {job.prism.text}")

    def _breach_of_node(self, job: Job, wrong: BoolArray, why: str) -> None:
        if wrong.any():
            node = int(job.nodes[wrong.argmax()])
            self._breach(job.id, f"has node {node}{why}{_and_more(wrong)}", node=node)

    def _judge_overlaps(self, job: Job) -> None:
        """Report a node, a router of a prism, and a link that another job has as well."""
        taken = self._node_user[job.nodes]
        routers = (self._prism_user if job.prism is None else self._router_user)[job.routers]
        if (taken >= 0).any():
            self._breach_of_node(job, taken >= 0, f" of {self._names[taken[taken >= 0][0]]}")
        elif (routers >= 0).any():
            router, other = int(job.routers[(routers >= 0).argmax()]), routers[routers >= 0][0]
            text = f"and {self._names[other]} both have router {router}, one in its prism"
            self._breach(job.id, text)
        user = self._link_users[Communication.STRICT][job.links]
        if job.sharing is not Communication.TOLERANT:
            tolerant = self._link_users[Communication.TOLERANT][job.links]
            user = np.where(user >= 0, user, tolerant)
        shared = user >= 0
        if shared.any():
            link, other = int(job.links[shared.argmax()]), self._names[user[shared.argmax()]]
            where = _link_text(self._instance.torus, link)
            self._breach(job.id, f"shares {where} with {other}{_and_more(shared)}", link=link)

    def _use_links(self, job: Job) -> int:
        """Record the job that uses links; return its position among the names."""
        self._names.append(job.id)
        self._link_users[job.sharing][job.links] = len(self._names) - 1
        return len(self._names) - 1


def _link_text(torus: Torus, link: int) -> str:
    """Return a link as ``link 57 (3,0,1 to 3,1,1)``."""
    dim, router = divmod(link, torus.num_routers)
    start = torus.coords(router)
    end = tuple((c + 1) % torus.shape[d] if d == dim else c for d, c in enumerate(start))
    return f"link {link} ({','.join(map(str, start))} to {','.join(map(str, end))})"


def _and_more(wrong: BoolArray) -> str:
    more = int(wrong.sum()) - 1
    return f" (and {more} more)" if more else ""


class _TreeJudge(_Judge):
    def __init__(self, state: TreeState) -> None:
        self._requests = {request.id: request for request in state.requests}
        super().__init__(self._requests, {job.id for job in state.running})
        self._tree, names = state.tree, state.tree.node_names
        self._numbers = {name: node for node, name in enumerate(names)}
        # By node, why no other job may have it.
        self._taken = {names[node]: ", which is down" for node in np.flatnonzero(~state.free)}
        for job in state.running:
            for node in job.nodes:
                self._taken[names[node]] = f", held by running job {job.id}"

    def _judge(self, placement: TreePlacedJob) -> None:
        request, nodes = self._requests[placement.request], placement.nodes
        if len(nodes) != request.nodes:
            self._breach(
                request.id, f"has {number_of(len(nodes), 'node')} and wants {request.nodes}"
            )
        own = set()
        for name in nodes:
            if name not in self._numbers:
                text = f"has {name}, which is no node of the machine"
                self._breach(request.id, text, node=name)
            elif name in self._taken:
                why = " twice" if name in own else self._taken[name]
                self._breach(request.id, f"has node {name}{why}", node=name)
            else:
                self._taken[name] = f" of {request.id}"
                own.add(name)
        self._judge_leaves(request.id, [name for name in nodes if name in self._numbers])

    def _judge_leaves(self, request: str, nodes: Sequence[str]) -> None:
        """Report nodes of a request that have no common switch."""
        leaf_of = self._tree.leaf_of_node[[self._numbers[name] for name in nodes]]
        leaves, first = np.unique(leaf_of, return_index=True)
        if any(set(leaves.tolist()).issubset(root) for root in self._tree.roots):
            return
        one, text = nodes[first[0]], "has nodes of several fabrics: no switch is above all"
        apart = np.argwhere(self._tree.common_level[np.ix_(leaves, leaves)] == 0)
        if len(apart):
            one, other = (nodes[first[k]] for k in apart[0])
            text = f"has {one} and {other}: no switch is above both"
        self._breach(request, text, node=one)
