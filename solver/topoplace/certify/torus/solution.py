"""Whether a solution is a placement, and what it is worth (docs/proofs.md)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from topoplace.certify.report import RefusedError
from topoplace.certify.torus.instance import Instance, Job, Request, crowded_prism, job_on
from topoplace.certify.torus.shapes import Box
from topoplace.machine import Prism, parse_node_set, prism_links
from topoplace.result import Placement, Solution
from topoplace.snapshot.schema import Communication


@dataclass(frozen=True)
class Start(Job):
    """A started request."""

    request: Request


def read_starts(instance: Instance, solution: Solution) -> list[Start]:
    """Return the placements after checking each on its own.

    Raises
    ------
    RefusedError, InputError
        At the first placement that is not a candidate with the right nodes.
    """
    starts = []
    for placement in solution.placements:
        if placement.request not in instance.by_id:
            raise RefusedError(f"{placement.request} is no request of the queue")
        starts.append(_start(instance, placement))
    ids = [start.id for start in starts]
    if len(set(ids)) < len(ids):
        raise RefusedError("a request is started twice")
    return starts


def _start(instance: Instance, placement: Placement) -> Start:
    torus = instance.torus
    request = instance.by_id[placement.request]
    nodes = parse_node_set(placement.nodes, torus.num_nodes, placement.request)
    if len(nodes) != request.nodes:
        raise RefusedError(f"{request.id} has {len(nodes)} nodes and wants {request.nodes}")
    wrong = nodes[~instance.usable[nodes] | (instance.node_class[nodes] != request.class_idx)]
    if len(wrong):
        raise RefusedError(f"{request.id} may not use node {wrong[0]}")
    job = job_on(torus, request.id, nodes, placement.prism, request.sharing)
    if job.prism is not None:
        if reason := why_no_candidate(instance, request, job.prism):
            raise RefusedError(f"the prism of {request.id} {reason}")
        if not _takes(instance, request, job):
            raise RefusedError(f"{request.id} has nodes that its geometry leaves out")
    return Start(**vars(job), request=request)


def why_no_candidate(instance: Instance, request: Request, prism: Prism) -> str | None:
    """Return why a prism is no candidate of a request (rules 1 to 4 of "The problem")."""
    inside = prism.routers(instance.torus)
    outside = inside[~instance.allowed(request)[inside]]
    if len(outside):
        reason = "held by a running job" if instance.held[outside[0]] else "outside its region"
        return f"has router {outside[0]}, {reason}"
    if instance.closed(request.sharing)[prism_links(instance.torus, prism)].any():
        return "uses a link that a running job closes to it"
    if not fits(instance, request, prism):
        return "is none that its geometry allows"
    if instance.usable_counts[request.class_idx][inside].sum() < request.nodes:
        return "has too few usable nodes"
    return None


def fits(instance: Instance, request: Request, prism: Prism) -> bool:
    """Tell whether a prism fits an alternative of the geometry, if there is one (rule 3)."""
    box = Box(instance, prism.extents)
    return not request.geometries or bool(box.enough(request)[prism.origin])


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


def count_shared_links(instance: Instance, starts: list[Start]) -> int:
    """Count the links that a started job shares, against the rule, with any other job."""
    users = np.zeros(instance.torus.num_links, dtype=np.int64)
    strict = np.zeros(instance.torus.num_links, dtype=bool)
    started = np.zeros(instance.torus.num_links, dtype=bool)
    for job in (*instance.jobs, *starts):
        users[job.links] += 1
        strict[job.links] |= job.sharing is Communication.STRICT
    for start in starts:
        started[start.links] = True
    return int(((users > 1) & strict & started).sum())


def worth(instance: Instance, starts: list[Start]) -> list[int | None]:
    """Return the value of the solution per level, maximising; None where scattered has none."""
    if any(start.prism is None for start in starts):
        return [sum(start.request.value for start in starts), None, None]
    each = [_values(instance, s.request, s.prism) for s in starts if s.prism is not None]
    return [sum(v[k] for v in each) for k in range(3)]


def _values(instance: Instance, request: Request, prism: Prism) -> tuple[int, int, int]:
    """Return the values of a candidate on the three levels, all to be maximised."""
    box, inside = Box(instance, prism.extents), prism.routers(instance.torus)
    idle = int(instance.usable_counts[request.class_idx][inside].sum()) - request.nodes
    shape = box.score - instance.snapshot.weights.idle * idle
    return request.value, shape, -int(box.faces(instance.free)[prism.origin])
