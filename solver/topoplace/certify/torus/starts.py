"""What starts by a solution: whether each request may stand where it does, and all together."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from topoplace.certify.report import RefusedError
from topoplace.certify.torus.instance import (
    Instance,
    Job,
    Request,
    crowded_prism,
    job_on,
    marked,
    prism_of,
)
from topoplace.certify.torus.shapes import Box
from topoplace.errors import number_of
from topoplace.machine import Prism, prism_links
from topoplace.machine.hostlist import NodeLists
from topoplace.result import Placement, Solution
from topoplace.snapshot.schema import Communication
from topoplace.types import IntArray


@dataclass(frozen=True)
class Start(Job):
    """A started request; one in segments has all their routers, and `prism` is the first."""

    request: Request
    others: tuple[Prism, ...] = ()


def read_starts(instance: Instance, solution: Solution, *, maps: bool = False) -> list[Start]:
    """Return the placements after checking each on its own; mappings only where a level `maps`."""
    starts = []
    lists = NodeLists(instance.torus.num_nodes)
    for placement in solution.placements:
        if placement.request not in instance.by_id:
            raise RefusedError(f"{placement.request} is no request of the queue")
        if placement.mapping is not None and not maps:
            raise RefusedError(f"{placement.request} has a mapping, of which no level tells")
        request = instance.by_id[placement.request]
        nodes = lists.numbers(placement.nodes, instance.torus.num_nodes, placement.request)
        starts.append(_start_in_one(instance, request, nodes, placement))
    ids = [start.id for start in starts]
    if len(set(ids)) < len(ids):
        raise RefusedError("a request is started twice")
    return starts


def _start_in_one(
    instance: Instance, request: Request, nodes: IntArray, placement: Placement
) -> Start:
    """Return a start with all nodes of one of the kinds that the request may have."""
    why = None
    for own in request.alone:
        try:
            return replace(_start(instance, own, nodes, placement), request=request)
        except RefusedError as error:
            why = why or error
    assert why is not None, "a request has a kind of nodes"
    raise why


def _start(instance: Instance, request: Request, nodes: IntArray, placement: Placement) -> Start:
    """Return a start of a request with one kind of nodes."""
    torus = instance.torus
    if len(nodes) != request.nodes:
        raise RefusedError(
            f"{request.id} has {number_of(len(nodes), 'node')} and wants {request.nodes}"
        )
    wrong = nodes[~instance.usable[nodes] | ~instance.kinds[request.class_idx][nodes]]
    if len(wrong):
        raise RefusedError(f"{request.id} may not use node {wrong[0]}")
    if placement.other_prisms is not None:
        if request.num_prisms == 1:
            raise RefusedError(f"{request.id} has further prisms, and wants one")
        return _in_segments(instance, request, nodes, placement)
    job = job_on(torus, request.id, nodes, placement.prism, request.sharing)
    if job.prism is not None:
        if request.num_prisms > 1:
            raise RefusedError(f"{request.id} has one prism, and wants {request.num_prisms}")
        if reason := why_no_candidate(instance, request, job.prism):
            raise RefusedError(f"the prism of {request.id} {reason}")
        if not _takes(instance, request, job):
            raise RefusedError(f"{request.id} has nodes that its geometry leaves out")
    elif request.near is not None:
        raise RefusedError(f"{request.id} has no prism, and wants routers near it")
    return Start(**vars(job), request=request)


def _in_segments(
    instance: Instance, request: Request, nodes: IntArray, placement: Placement
) -> Start:
    """Return a request that starts on several disjoint prisms, all of whose nodes it has."""
    if placement.prism is None or placement.other_prisms is None:
        raise RefusedError(f"{request.id} has further prisms, but no first one")
    every = (placement.prism, *placement.other_prisms)
    prisms = [prism_of(instance.torus, model) for model in every]
    if len(prisms) != request.num_prisms or prisms != sorted(prisms):
        raise RefusedError(
            f"{request.id} wants {number_of(request.num_prisms, 'prism')}, ascending"
        )
    for prism in prisms:
        if reason := why_no_candidate(instance, request, prism):
            raise RefusedError(f"the prism {prism.text} of {request.id} {reason}")
    routers = np.concatenate([prism.routers(instance.torus) for prism in prisms])
    if len(np.unique(routers)) < len(routers):
        raise RefusedError(f"two prisms of {request.id} meet")
    if not np.isin(nodes // instance.torus.nodes_per_router, routers).all():
        raise RefusedError(f"{request.id} has nodes outside its prisms")
    first, *others = prisms
    links = prism_links(instance.torus, first)[:0]
    job = Job(request.id, nodes, routers, first, links, request.sharing)
    return Start(**vars(job), request=request, others=tuple(others))


def why_no_candidate(instance: Instance, request: Request, prism: Prism) -> str | None:
    """Return why a prism is no candidate of a request (rules 1 to 4 of "The problem").

    Of one with several kinds of nodes it is what is wrong with the first.
    """
    size = prism.volume * instance.torus.nodes_per_router
    if instance.anchored and (prism not in instance.anchored or size != request.per_prism):
        return "is no anchored prism of just its size"
    inside = prism.routers(instance.torus)
    outside = inside[~instance.allowed(request)[inside]]
    if len(outside):
        reason = "held by a running job" if instance.held[outside[0]] else "outside its region"
        return f"has router {outside[0]}, {reason}"
    if instance.closed(request.sharing)[prism_links(instance.torus, prism)].any():
        return "uses a link that a running job closes to it"
    if request.near is not None and not Box(instance, prism.extents).near(request)[prism.origin]:
        return "has too few of the routers near it that the request asks for"
    each = [_why_too_few(instance, own, prism) for own in request.alone]
    return None if None in each else each[0]


def _why_too_few(instance: Instance, request: Request, prism: Prism) -> str | None:
    """Return why a prism has not what a request with one kind of nodes wants (rule 3)."""
    if request.geometries and not Box(instance, prism.extents).enough(request)[prism.origin]:
        return "is none that its geometry allows"
    inside = prism.routers(instance.torus)
    if instance.usable_counts[request.class_idx][inside].sum() < request.per_prism:
        return "has too few usable nodes"
    return None


def usable_inside(instance: Instance, request: Request, prism: Prism) -> int:
    """Count the usable nodes of a prism that are of the kind that its request has.

    Of several kinds of which the prism holds enough it is the one of which it holds fewest.
    """
    own = [one for one in request.alone if not _why_too_few(instance, one, prism)]
    counts = instance.usable_counts[[one.class_idx for one in own]]
    return int(counts[:, prism.routers(instance.torus)].sum(axis=1).min())


def _takes(instance: Instance, request: Request, job: Job) -> bool:
    """Tell whether the nodes lie where the geometry, if there is one, wants them in the prism."""
    assert job.prism is not None
    box, pencils = Box(instance, job.prism.extents), job.routers.reshape(-1, job.prism.extents[-1])
    whole = instance.whole(request.class_idx)[pencils]
    taken = job.nodes // instance.torus.nodes_per_router
    for geometry in request.geometries:
        if box.fits(request, geometry)[job.prism.origin]:
            first = whole & (np.cumsum(whole, axis=1) <= geometry.extents[-1])
            if geometry.max_depth is None or np.isin(taken, pencils[first]).all():
                return True
    return not request.geometries


def check_exclusive(instance: Instance, starts: list[Start]) -> str:
    """Raise unless no node has two jobs and no prism holds a router of another start."""
    node_users = np.zeros(instance.torus.num_nodes, dtype=np.int64)
    for start in starts:
        node_users[start.nodes] += 1
    if (node_users > 1).any():
        raise RefusedError(f"node {int(node_users.argmax())} has two jobs")
    if crowded := crowded_prism(instance.torus, starts):
        raise RefusedError(f"another started request stands in the prism of {crowded}")
    return "no node and no router of a prism has two jobs"


def require_no_links(instance: Instance, starts: list[Start]) -> str:
    """Raise if a started job shares a link against the rule."""
    if shared := count_shared_links(instance, starts):
        raise RefusedError(f"{number_of(shared, 'link')} shared against the rule")
    return "no link is shared against the rule"


def count_shared_links(instance: Instance, starts: list[Start]) -> int:
    """Count the links that a started job shares, against the rule, with any other job."""
    users = np.zeros(instance.torus.num_links, dtype=np.int64)
    strict = np.zeros(instance.torus.num_links, dtype=bool)
    started = marked(instance.torus.num_links, (start.links for start in starts))
    for job in (*instance.jobs, *starts):
        users[job.links] += 1
        strict[job.links] |= job.sharing is Communication.STRICT
    return int(((users > 1) & strict & started).sum())
