"""Machines and snapshots in other tools' files, told by their content."""

from __future__ import annotations

import re
from pathlib import Path

from topoplace.formats.kubernetes.snapshots import read_kubernetes, read_kubernetes_machine
from topoplace.formats.slices import is_slice_scenario, read_slice_scenario
from topoplace.formats.slurm.topology import (
    is_topology_conf,
    is_topology_yaml,
    read_slurm_topology,
)
from topoplace.formats.slurm.torus import NamedTorus
from topoplace.formats.text import first_said
from topoplace.formats.topograph import read_topograph
from topoplace.snapshot.files import parse_object
from topoplace.snapshot.schema import MachineModel, Snapshot

_BEGINNING = 1 << 16  # characters in which a file shows what it is


_KUBERNETES = re.compile(r"(apiVersion|kind|items|metadata)\s*:")
_KUBERNETES_JSON = re.compile(r'"apiVersion"\s*:')


def is_kubernetes(text: str) -> bool:
    """Tell whether a text begins as an object or a list of Kubernetes, in JSON or YAML."""
    if text.lstrip().startswith("{"):
        return _KUBERNETES_JSON.search(text) is not None
    return _KUBERNETES.match(first_said(text)) is not None


_POD = re.compile(rb'"pod"\s*:')
_TOPOGRAPH = re.compile(r"(switches|blocks)\s*:")


def is_topograph(text: str) -> bool:
    """Tell whether a text begins as a model of topograph."""
    return _TOPOGRAPH.match(first_said(text)) is not None


def other_machine(path: str | Path, text: bytes, part: str | None = None) -> MachineModel | None:
    """Return the machine of another tool's file; None if it is none that is known.

    Parameters
    ----------
    path, text
        The file, and its content.
    part
        Which topology of the file, if one was named.

    Raises
    ------
    InputError
        If it is one, and malformed.
    """
    beginning = text[:_BEGINNING].decode(errors="replace")
    if is_kubernetes(beginning):
        return read_kubernetes_machine(path, part)
    if is_topograph(beginning):
        return read_topograph(path, part)
    if part is not None or is_topology_conf(beginning) or is_topology_yaml(beginning):
        machine = read_slurm_topology(path, topology=part)
        return machine.machine if isinstance(machine, NamedTorus) else machine
    return None


def other_snapshot(path: str | Path, text: bytes) -> Snapshot | None:
    """Return the snapshot of another tool's file; None if it is none that is known.

    Raises
    ------
    InputError
        If it is one, and malformed.
    """
    if is_kubernetes(text[:_BEGINNING].decode(errors="replace")):
        return read_kubernetes(path)[0]
    if _POD.search(text[:_BEGINNING]) and is_slice_scenario(parse_object(text, str(path))):
        return read_slice_scenario(path)[0]
    return None
