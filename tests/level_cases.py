"""Tiny trees and hierarchies to map to, and applications for them."""

from __future__ import annotations

import math
from random import Random

import numpy as np

from level_hops import num_levels
from tiny_instances import MOST_MAPPINGS, palette, random_graph, random_grid
from topoplace.certify.mapping.instance import read_instance
from topoplace.certify.report import RefusedError
from topoplace.errors import InputError
from topoplace.mapping.problem import MappingProblem, prepare_mapping
from topoplace.snapshot.schema import (
    MAPPING_SCHEMA,
    AnyApplication,
    AxisModel,
    GraphApplication,
    GridApplication,
    HierarchyModel,
    HostsModel,
    MappingInstance,
    ParallelismApplication,
    SwitchModel,
    TreeModel,
)


def random_levels(rng: Random, applications: str = "any") -> MappingProblem:
    """Return a problem on an uneven tree or hierarchy of few enough mappings to try all."""
    while True:
        machine, num = (random_tree if rng.random() < 0.5 else random_hierarchy)(rng)
        application = random_application(rng, applications)
        tasks = num_tasks_of(application)
        nodes = [node for node in range(num) if rng.random() < 0.9] or [0]
        instance = MappingInstance(
            schema_version=MAPPING_SCHEMA,
            name="case",
            machine=machine,
            level_costs=random_costs(rng, machine),
            nodes=",".join(map(str, nodes)),
            tasks_per_node=rng.choice((1, 1, 1, 2, 2, 3)),
            application=application,
        )
        try:
            problem = prepare_mapping(instance)
            few = math.perm(int(problem.capacity.sum()), tasks) <= MOST_MAPPINGS
            if few and ((problem.graph.num_messages and len(nodes) > 1) or rng.random() < 0.05):
                read_instance(instance)
                return problem
        except (InputError, RefusedError, OverflowError):
            continue


def random_tree(rng: Random) -> tuple[TreeModel, int]:
    """Return a tree whose leaves differ in size and depth, and its number of nodes."""
    switches, tops, num = [], [], 0
    for leaf in range(rng.randint(1, 4)):
        size = rng.choice((1, 1, 2, 3))
        switches.append(SwitchModel(name=f"l{leaf}", nodes=f"n[{num}-{num + size - 1}]"))
        tops.append(f"l{leaf}")
        num += size
    for upper in range(8):
        if len(tops) == 1:
            break
        below = [tops.pop(0) for _ in range(min(len(tops), rng.choice((1, 2, 2, 3))))]
        switches.append(SwitchModel(name=f"u{upper}", switches=",".join(below)))
        tops.append(f"u{upper}")
    if len(tops) > 1:
        switches.append(SwitchModel(name="top", switches=",".join(tops)))
    return TreeModel(kind="tree", name="tree", switches=switches), num


def random_hierarchy(rng: Random) -> tuple[HierarchyModel, int]:
    """Return a hierarchy whose hosts are listed in any order, and its number of hosts."""
    depth, num = rng.randint(0, 3), rng.randint(1, 6)
    hosts = []
    for host in range(num):
        domains = [f"d{rng.randrange(2)}" for _ in range(depth)]
        hosts.append(HostsModel(hosts=f"h{host}", domains=domains))
    levels = [f"level{k}" for k in range(depth, -1, -1)]
    return HierarchyModel(kind="hierarchy", name="hierarchy", levels=levels, hosts=hosts), num


def random_costs(rng: Random, machine: TreeModel | HierarchyModel) -> list[int] | None:
    """Return costs of levels, some of which add nothing; None for those by default."""
    if rng.random() < 0.3:
        return None
    steps = rng.choices((0, 1, 1, 2, 2, 9, 90), k=num_levels(machine))
    return np.cumsum(steps).tolist()


def random_application(rng: Random, applications: str = "any") -> AnyApplication:
    """Return a grid, a graph or a training job of few tasks."""
    kind = rng.choice(("grid", "graph", "axes")) if applications == "any" else applications
    if kind == "grid":
        return random_grid(rng)
    if kind == "graph":
        return random_graph(rng)
    while True:
        sizes = [rng.choice((1, 2, 2, 3, 4, 6)) for _ in range(rng.randint(1, 3))]
        if math.prod(sizes) <= 6:
            break
    axes = [
        AxisModel(
            name=f"axis{k}",
            size=size,
            pattern=rng.choice(("all", "ring", "line")),
            bytes=rng.choice(palette(rng)),
        )
        for k, size in enumerate(sizes)
    ]
    return ParallelismApplication(axes=axes)


def num_tasks_of(application: AnyApplication) -> int:
    """Return the number of tasks."""
    if isinstance(application, GraphApplication):
        return application.num_tasks
    if isinstance(application, GridApplication):
        return math.prod(application.shape)
    return math.prod(axis.size for axis in application.axes)
