"""The one reading of what other tools write: files and folders that need no conversion.

They are recognised by their content. Every command and function that takes a snapshot or a machine
comes here first.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from topoplace.errors import InputError, visible
from topoplace.formats.beginnings import (
    is_hwloc,
    is_ibnetdiscover,
    is_kubernetes,
    is_node_switch,
    is_slice_scenario,
    is_topograph,
    is_topology_conf,
    is_topology_yaml,
    may_have_pod,
)
from topoplace.formats.text import name_of
from topoplace.kinds import loaded
from topoplace.snapshot.files import STDIN, beginning_of, parse_object, read_bytes
from topoplace.snapshot.schema import MachineModel, Snapshot

File = str | Path
log = logging.getLogger("topoplace")

_YAML = (".yaml", ".yml")


def parted(source: File) -> tuple[File, str | None]:
    """Return a path, and which part of it is meant: ``FILE:PART`` if that itself is no path."""
    path, _, part = str(source).rpartition(":")
    if Path(source).exists() or not path or not (path == STDIN or Path(path).exists()):
        return source, None
    return path, part or None


def other_machine(path: File, part: str | None = None) -> MachineModel | None:
    """Return the machine in another tool's file; None if it is the file of no known tool.

    Parameters
    ----------
    part
        Which topology of the file, if one was named; of Kubernetes also labels of nodes.

    Raises
    ------
    InputError
        If it is one, and malformed.
    """
    beginning = beginning_of(path)
    for looks_so, read in _MACHINES:
        if looks_so(beginning):
            return read(path, part)
    found: MachineModel | None = None
    if beginning.lstrip().startswith("{") and is_node_switch(path):
        found = _read("fabrics:read_node_switch", path)
    elif part is not None:
        found = _slurm_machine(path, part)
    return found


def _read(name: str, *given: Any) -> Any:
    """Return what a reader of `topoplace.formats`, which is imported now, makes of a file."""
    return loaded(f"topoplace.formats.{name}")(*given)


_slurm_machine = partial(_read, "slurm.topology:read_slurm_topology")

_MACHINES: tuple[tuple[Callable[[str], bool], Callable[[File, str | None], MachineModel]], ...] = (
    (is_kubernetes, partial(_read, "kubernetes.snapshots:read_kubernetes_machine")),
    (is_topograph, partial(_read, "topograph:read_topograph")),
    (is_ibnetdiscover, lambda path, _: _read("fabrics:read_ibnetdiscover", path)[0]),
    (is_hwloc, lambda path, _: _read("fabrics:read_hwloc", path)),
    (is_topology_conf, _slurm_machine),
    (is_topology_yaml, _slurm_machine),
)
"""How files begin, and what reads them, with the part that is meant, as machines."""

_slurm_files = partial(_read, "slurm.folder:slurm_files")


def other_snapshot(source: File) -> Snapshot | None:
    """Return the snapshot in another tool's file or folder; None if it is of no known tool.

    A folder has the listings of Slurm's tools (`topoplace.formats.slurm.folder.NAMES`).
    ``FILE:PART`` is one of several topologies, or of Kubernetes the labels of the levels. What a
    person should know about how it was read is logged as a warning.

    Raises
    ------
    InputError
        If it is one, and malformed; or a folder without these listings.
    """
    path, part = parted(source)
    if Path(path).is_dir():
        files = _slurm_files(path, part)
        if files is None:
            expected = "a file, or a folder with topology.conf and squeue.json or nodes.txt"
            raise InputError(expected, file=str(path), found="a folder without them")
        name = name_of(Path(path).resolve())
        return _noted(*_read("slurm.folder:read_slurm_cluster", files, name))
    beginning = beginning_of(path)
    if is_kubernetes(beginning):
        return _noted(*_read("kubernetes.snapshots:read_kubernetes", path, part))
    if may_have_pod(beginning) and is_slice_scenario(parse_object(read_bytes(path), str(path))):
        return _noted(*_read("slices:read_slice_scenario", path))
    if part is not None:
        expected = "a folder of Slurm or objects of Kubernetes before the colon"
        raise InputError(expected, file=str(path), value=part)
    return None


def _noted(snapshot: Snapshot, notes: Iterable[str]) -> Snapshot:
    for note in notes:
        log.warning("%s", visible(f"{snapshot.name}: {note}"))
    return snapshot


def is_other_snapshot(source: File) -> bool:
    """Return whether `other_snapshot` reads a path as Slurm's folder or objects of Kubernetes."""
    path = Path(parted(source)[0])
    if path.is_dir():
        return _slurm_files(path) is not None
    return is_kubernetes(beginning_of(path))


def inputs_below(folder: Path) -> list[Path]:
    """Return what may be instances or results in and below a folder, sorted.

    These are ``*.json`` files, YAML of Kubernetes, and folders of Slurm's listings; none is hidden.
    """
    return sorted(_inputs(folder))


def _inputs(folder: Path) -> Iterator[Path]:
    if is_other_snapshot(folder):
        yield folder
        return
    for path in folder.iterdir():
        if path.name.startswith("."):
            continue
        if path.is_dir():
            if not path.is_symlink():
                yield from _inputs(path)
        elif path.suffix == ".json" or (path.suffix in _YAML and is_other_snapshot(path)):
            yield path
