"""Machines and snapshots in other tools' files, told by their content."""

from __future__ import annotations

from pathlib import Path

from topoplace.snapshot.readers.slurm_topology import (
    is_topology_conf,
    is_topology_yaml,
    read_slurm_topology,
)
from topoplace.snapshot.readers.slurm_torus import NamedTorus
from topoplace.snapshot.schema import MachineModel

_BEGINNING = 1 << 16  # characters in which a file shows what it is


def other_machine(path: str | Path, text: bytes, part: str | None = None) -> MachineModel | None:
    """Return the machine of another tool's file; None if it is none that is known.

    Parameters
    ----------
    path, text
        The file, and its content.
    part
        Which topology of a topology.yaml, if one was named.

    Raises
    ------
    InputError
        If it is one, and malformed.
    """
    beginning = text[:_BEGINNING].decode(errors="replace")
    if part is not None or is_topology_conf(beginning) or is_topology_yaml(beginning):
        machine = read_slurm_topology(path, topology=part)
        return machine.machine if isinstance(machine, NamedTorus) else machine
    return None
