"""Mappings of the applications of jobs, and bounds on these by the extents of prisms."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from topoplace.certify.mapping.check import VALUES, figures_of
from topoplace.certify.mapping.instance import read_instance
from topoplace.certify.report import RefusedError
from topoplace.certify.torus.instance import Instance
from topoplace.certify.torus.starts import Start
from topoplace.errors import number_of
from topoplace.machine import Prism, format_node_set
from topoplace.result import Solution
from topoplace.result.placement import MappingBound
from topoplace.snapshot.schema import MAPPING_SCHEMA, MappingInstance, TasksModel, TorusModel
from topoplace.types import IntArray

HOP_BYTES = (("nodes", "max"), ("hop-bytes", "min"))
"""The levels where applications are mapped."""

_MOST_BOUNDS = 256
"""Most bounds in a certificate: each may take seconds."""


def _on(instance: Instance, tasks: TasksModel, nodes: IntArray) -> MappingInstance:
    """Return the instance of mapping an application to some nodes of the machine."""
    machine = instance.snapshot.on(TorusModel, "a torus or mesh")
    bare = TorusModel(
        name="bare",
        shape=machine.shape,
        wrap=machine.wrap,
        nodes_per_router=machine.nodes_per_router,
    )
    return MappingInstance(
        schema_version=MAPPING_SCHEMA,
        name="job",
        machine=bare,
        nodes=format_node_set(nodes.tolist()),
        tasks_per_node=tasks.per_node,
        application=tasks.application,
    )


def check_mappings(instance: Instance, solution: Solution, starts: Sequence[Start]) -> str:
    """Raise unless just the jobs with an application have a mapping, onto their own nodes.

    Their hop-bytes are measured.
    """
    for placement, start in zip(solution.placements, starts, strict=True):
        mapping, tasks = placement.mapping, start.request.tasks
        if (mapping is None) != (tasks is None):
            raise RefusedError(f"{start.id} has tasks and no mapping, or the reverse")
        if mapping is None or tasks is None:
            continue
        own = read_instance(_on(instance, tasks, start.nodes))
        if len(mapping.nodes) != own.num_tasks:
            raise RefusedError(
                f"{start.id} maps {len(mapping.nodes)} of {number_of(own.num_tasks, 'task')}"
            )
        at = np.array(mapping.nodes, dtype=np.int64)
        if not np.isin(at, start.nodes).all():
            raise RefusedError(f"a task of {start.id} is on a node that is not the job's")
        if np.bincount(at).max() > tasks.per_node:
            raise RefusedError(
                f"a node of {start.id} has more than {number_of(tasks.per_node, 'task')}"
            )
        found = figures_of(own, at).hop_bytes
        if mapping.hop_bytes != found:
            raise RefusedError(f"hop_bytes of {start.id} are {mapping.hop_bytes}, not {found}")
    return f"hop-bytes {total_hop_bytes(solution)}"


def total_hop_bytes(solution: Solution | None) -> int:
    """Return what the mappings of a solution cost together."""
    every = solution.placements if solution is not None else []
    return sum(placement.mapping.hop_bytes for placement in every if placement.mapping is not None)


def costs_of(instance: Instance, bounds: Sequence[MappingBound]) -> dict[str, IntArray]:
    """Return what requests cost at least by the extents of their prisms, entry 0 for extent 1.

    A bound is of the mapping to all nodes of an idle prism. It holds for every prism that fits
    inside, at any place: its nodes are some of the same number of nodes at the same distances.
    Requests with one application share an array.
    """
    if len(bounds) > _MOST_BOUNDS:
        raise RefusedError(f"more than {_MOST_BOUNDS} bounds of mappings")
    tables: dict[str, IntArray] = {}
    for bound in bounds:
        if bound.request not in instance.by_id:
            raise RefusedError(f"a bound of {bound.request}, which is no request")
        tasks = instance.by_id[bound.request].tasks
        if tasks is None:
            raise RefusedError(f"a bound of {bound.request}, which has no tasks")
        value = _proven(instance, tasks, bound)
        alike = [request.id for request in instance.requests if request.tasks == tasks]
        table = tables.get(alike[0])
        if table is None:
            table = np.zeros(instance.torus.shape, dtype=np.int64)
            tables |= dict.fromkeys(alike, table)
        for extents in _turned(instance, tuple(bound.extents)):
            inside = tuple(slice(0, e) for e in extents)
            table[inside] = np.maximum(table[inside], value)
    return tables


def _proven(instance: Instance, tasks: TasksModel, bound: MappingBound) -> int:
    """Return the hop-bytes that a certificate proves of mappings into extents."""
    torus = instance.torus
    prism = Prism((0,) * len(bound.extents), tuple(bound.extents))
    prism.require_inside(torus)
    nodes = np.sort(torus.nodes_of(prism.routers(torus)))
    own = read_instance(_on(instance, tasks, nodes))
    return VALUES[bound.certificate.kind](own, bound.certificate)


def _turned(instance: Instance, extents: tuple[int, ...]) -> set[tuple[int, ...]]:
    """Return extents in all orders of dimensions that are rings, or lines, of one size."""
    torus = instance.torus
    kinds = [*zip(torus.shape, torus.wrap, strict=True)]
    every = itertools.permutations(range(len(kinds)))
    return {
        tuple(extents[d] for d in order) for order in every if [kinds[d] for d in order] == kinds
    }
