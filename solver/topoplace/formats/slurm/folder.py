"""A Slurm cluster in files: what its tools print, given one by one or found in a folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from topoplace.errors import InputError, blamed_on
from topoplace.formats.slurm.cluster import SlurmCluster, snapshot_of_slurm
from topoplace.formats.slurm.config import SlurmConfig, read_slurm_config
from topoplace.formats.slurm.jobs import SlurmJobs, read_slurm_jobs
from topoplace.formats.slurm.nodes import read_slurm_nodes, read_slurm_partitions
from topoplace.formats.slurm.reservations import read_slurm_reservations
from topoplace.formats.slurm.topology import read_topology
from topoplace.snapshot.schema import Snapshot

File = str | Path

NAMES = {
    "topology": ("topology.yaml", "topology.conf", "topology.txt"),
    "nodes": ("nodes.txt", "nodes.json"),
    "jobs": ("squeue.json", "jobs.json", "squeue.txt", "jobs.txt"),
    "partitions": ("partitions.txt",),
    "reservations": ("reservations.json", "reservations.txt"),
    "config": ("slurm.conf", "config.txt"),
}
"""What the files of a folder are called, by what they hold; the first of several is read."""

_UNSEEN = {
    "nodes": "nodes that are down",
    "partitions": "limits and states of partitions",
    "reservations": "reservations to come",
}


@dataclass(frozen=True)
class SlurmFiles:
    """Files of a cluster; None for what is not given, or not named."""

    topology: File
    topology_name: str | None = None
    nodes: File | None = None
    jobs: File | None = None
    partitions: File | None = None
    reservations: File | None = None
    config: File | None = None


def slurm_files(folder: File, topology_name: str | None = None) -> SlurmFiles | None:
    """Return the files of a folder: a topology, and nodes or jobs at least; else None.

    Raises
    ------
    InputError
        If a file of JSON is called as one that is read as a text only.
    """
    found = {}
    for what, names in NAMES.items():
        paths = (Path(folder) / name for name in names)
        found[what] = next((path for path in paths if path.is_file()), None)
    topology = found.pop("topology")
    if topology is None or not (found["nodes"] or found["jobs"]):
        return None
    for what, (name, *_) in NAMES.items():
        other = Path(folder) / f"{what}.json"
        if found.get(what, topology) is None and other.is_file():
            raise InputError(name, file=str(folder), value=other.name)
    return SlurmFiles(topology, topology_name, **found)


def read_slurm_cluster(files: SlurmFiles, name: str | None) -> tuple[Snapshot, tuple[str, ...]]:
    """Return a snapshot of a cluster, and notes on what was left out, closed or not seen.

    Without a name it is called as the topology.
    """
    nodes = None if files.nodes is None else read_slurm_nodes(files.nodes)
    names = None if nodes is None else [*nodes]
    partitions = None if files.partitions is None else read_slurm_partitions(files.partitions)
    by_topology: dict[str, frozenset[str]] = {}
    for one in (partitions or {}).values():
        by_topology[one.topology] = by_topology.get(one.topology, frozenset()) | one.nodes
    on = None if partitions is None else by_topology
    topology = read_topology(files.topology, files.topology_name, names, on)
    machine = topology.machine
    cluster = SlurmCluster(
        nodes,
        SlurmJobs() if files.jobs is None else read_slurm_jobs(files.jobs),
        partitions,
        None if files.reservations is None else read_slurm_reservations(files.reservations),
        topology,
        SlurmConfig() if files.config is None else read_slurm_config(files.config),
    )
    with blamed_on(str(files.jobs)):
        snapshot, notes = snapshot_of_slurm(machine, cluster, name or machine.name)
    unseen = {what: about for what, about in _UNSEEN.items() if getattr(files, what) is None}
    if snapshot.queue and unseen:
        given = ", ".join(f"--{what}" for what in unseen)
        notes = (*notes, f"not seen, without {given}: {', '.join(unseen.values())}")
    return snapshot, notes
