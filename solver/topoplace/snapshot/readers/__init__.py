"""Readers of other tools' files; an `InputError` names file, line, field and value."""

from topoplace.snapshot.readers.slurm import (
    read_slurm_nodes,
    read_topology_conf,
    snapshot_of_slurm,
)
from topoplace.snapshot.readers.slurm_jobs import read_slurm_jobs
from topoplace.snapshot.readers.tables import (
    CrayTable,
    SwfLog,
    read_cray_neighbours,
    read_swf,
    snapshot_of_swf,
)

__all__ = [
    "CrayTable",
    "SwfLog",
    "read_cray_neighbours",
    "read_slurm_jobs",
    "read_slurm_nodes",
    "read_swf",
    "read_topology_conf",
    "snapshot_of_slurm",
    "snapshot_of_swf",
]
