"""Hosts or cubes that are kept as spares, as running jobs that end where one is used."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from topoplace.errors import InputError
from topoplace.machine import format_node_set, parse_node_set
from topoplace.machine.cubes import Cubes
from topoplace.machine.hierarchy import Hierarchy
from topoplace.machine.hostlist import NodeLists, format_host_list
from topoplace.snapshot.hierarchy_state import hierarchy_of
from topoplace.snapshot.schema import (
    RESERVATION_PREFIX,
    SPARE_PREFIX,
    CubesModel,
    HierarchyModel,
    RunningJob,
    Snapshot,
    TreeModel,
)
from topoplace.snapshot.state import numbers_of


def with_spares(snapshot: Snapshot, named: str) -> Snapshot:
    """Return a snapshot with a running job for each spare that is up and free.

    Parameters
    ----------
    named
        A node set of the snapshot, a reservation, or a list of nodes. The jobs are on one host, or
        on the chips of a whole cube, and hold of it what a reservation does, or all.

    Raises
    ------
    InputError
        If it names no spare that is up and free, or machines have none.
    """
    name = f"{RESERVATION_PREFIX}{named}"
    held = [j for j in snapshot.running if j.id == name or j.id.startswith(f"{name}/")]
    rest = [job for job in snapshot.running if job not in held]
    given = [(job.nodes, job.takes) for job in held] or [(snapshot.sets.get(named, named), None)]
    found = [
        RunningJob(id=f"{SPARE_PREFIX}{nodes}", nodes=nodes, takes=takes)
        for text, takes in given
        for nodes in _units(snapshot, text, [] if held else [job.nodes for job in rest])
    ]
    if not found:
        raise InputError("spares that are up and free", field="spares", value=named)
    return snapshot.model_copy(update={"running": [*rest, *found]})


def _units(snapshot: Snapshot, text: str, taken: Iterable[str]) -> list[str]:
    """Return the hosts of a list, or the chips of its whole cubes, that are up and not taken."""
    machine, closed = snapshot.written, [*taken, snapshot.down]
    if isinstance(machine, CubesModel):
        pod = Cubes(machine.cubes, tuple(machine.side))
        chips = {*parse_node_set(text, pod.num_chips, "spares").tolist()}
        for own in closed:
            chips.difference_update(parse_node_set(own, pod.num_chips).tolist())
        cubes = [pod.chips_of(cube).tolist() for cube in range(pod.num_cubes)]
        return [format_node_set(own) for own in cubes if chips.issuperset(own)]
    if not isinstance(machine, HierarchyModel | TreeModel):
        raise InputError("a hierarchy, tree or pod of cubes", field="spares", value=text)
    cluster, lists = hierarchy_of(machine), NodeLists()
    hosts = lists.hosts(text, "spares")
    numbers_of(hosts, cluster.numbers, "host", "spares")
    gone = {host for own in closed for host in lists.hosts(own)}
    gone.update(cluster.host_names[number] for number in _alone(snapshot, cluster, lists))
    return [format_host_list([host]) for host in hosts if host not in gone]


def _alone(snapshot: Snapshot, machine: Hierarchy, lists: NodeLists) -> set[int]:
    """Return the hosts of domains that a running job has to itself."""
    found: set[int] = set()
    for job in snapshot.running:
        asked = job.asked
        level = asked and (asked.parts[0] if asked.parts else asked).exclusive
        if level:
            of = machine.domain_of[machine.levels.index(level)]
            own = of[[machine.numbers[host] for host in lists.hosts(job.nodes)]]
            found.update(np.flatnonzero(np.isin(of, own)).tolist())
    return found
