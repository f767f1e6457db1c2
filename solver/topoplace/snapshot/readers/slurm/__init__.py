"""Slurm's files: the topology, the states of nodes, the jobs."""

from topoplace.snapshot.readers.slurm.jobs import SlurmJobs, read_slurm_jobs
from topoplace.snapshot.readers.slurm.machine import (
    NO_JOBS,
    NodeUse,
    read_slurm_nodes,
    read_topology_conf,
    snapshot_of_slurm,
    topology_conf_of,
)

__all__ = [
    "NO_JOBS",
    "NodeUse",
    "SlurmJobs",
    "read_slurm_jobs",
    "read_slurm_nodes",
    "read_topology_conf",
    "snapshot_of_slurm",
    "topology_conf_of",
]
