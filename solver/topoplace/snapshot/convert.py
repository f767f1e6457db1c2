"""Turn other tools' files into snapshots and machines."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel

from topoplace.errors import InputError
from topoplace.machine import format_node_set, parse_node_set
from topoplace.snapshot.files import read_document, write_document
from topoplace.snapshot.machines import load_machine, resolve_machine
from topoplace.snapshot.readers import read_cray_neighbours, read_swf, snapshot_of_swf
from topoplace.snapshot.schema import SNAPSHOT_SCHEMA, Snapshot, TorusModel
from topoplace.snapshot.state import prepare, torus_of


@dataclass(frozen=True)
class ConvertOptions:
    """What some conversions ask for besides the file (`swf`: all of it)."""

    machine: str | None = None
    procs_per_node: int = 1
    node_class: str | None = None
    limit: int | None = None


@dataclass(frozen=True)
class Converted:
    """A document, and what a person should know about how it was made."""

    document: BaseModel
    notes: tuple[str, ...] = ()


def convert(
    source: str | Path,
    from_format: str,
    to_format: str,
    output: str | Path,
    options: ConvertOptions | None = None,
) -> tuple[str, ...]:
    """Read a file of one format and write it in another.

    Known pairs: ``snapshot`` to ``snapshot`` (checked, its machine written out, node sets in
    their shortest form), ``cray-neighbours`` to ``machine``, ``swf`` to ``snapshot`` (needs
    `ConvertOptions.machine`).

    Returns
    -------
    tuple of str
        Notes, such as how many jobs were left out.

    Raises
    ------
    InputError
        For an unknown pair of formats or a bad file; nothing is written then.
    """
    pairs = _conversions()
    if (from_format, to_format) not in pairs:
        known = ", ".join(f"{a} to {b}" for a, b in pairs)
        raise InputError(
            f"a known conversion ({known})",
            field="formats",
            value=f"{from_format} to {to_format}",
        )
    converted = pairs[from_format, to_format](source, options or ConvertOptions())
    write_document(output, converted.document)
    return converted.notes


Conversion = Callable[[str | Path, ConvertOptions], Converted]


def _conversions() -> dict[tuple[str, str], Conversion]:
    return {
        ("snapshot", "snapshot"): _normalised_snapshot,
        ("cray-neighbours", "machine"): _machine_of_cray_table,
        ("swf", "snapshot"): _snapshot_of_log,
    }


def _normalised_snapshot(source: str | Path, options: ConvertOptions) -> Converted:
    del options
    snapshot = read_document(source, Snapshot, SNAPSHOT_SCHEMA)
    try:
        snapshot = resolve_machine(snapshot)
        prepare(snapshot)
    except InputError as error:
        raise error.located(str(source)) from None
    machine = snapshot.machine
    assert isinstance(machine, TorusModel)
    num_nodes = torus_of(machine).num_nodes

    def tidy(nodes: str) -> str:
        return format_node_set(parse_node_set(nodes, num_nodes).tolist())

    classes = {name: tidy(nodes) for name, nodes in machine.classes.items()}
    tidied = machine.model_copy(update={"classes": classes, "service": tidy(machine.service)})
    running = [job.model_copy(update={"nodes": tidy(job.nodes)}) for job in snapshot.running]
    return Converted(
        snapshot.model_copy(
            update={"machine": tidied, "down": tidy(snapshot.down), "running": running}
        )
    )


def _machine_of_cray_table(source: str | Path, options: ConvertOptions) -> Converted:
    del options
    table = read_cray_neighbours(source, _name_of(source))
    num = len(table.router_of_nid)
    return Converted(
        table.machine, (f"{num} nodes; all {6 * num} neighbours are those of the torus",)
    )


def _snapshot_of_log(source: str | Path, options: ConvertOptions) -> Converted:
    if options.machine is None:
        raise InputError("the machine the jobs are for", field="--on")
    log = read_swf(source, procs_per_node=options.procs_per_node, node_class=options.node_class)
    snapshot, too_large = snapshot_of_swf(
        log, load_machine(options.machine), _name_of(source), options.limit
    )
    left_out = {
        "larger than the machine": too_large,
        "without a size": log.num_without_size,
        "for a part of a job": log.num_partial,
    }
    notes = [f"{len(snapshot.queue)} jobs queued"]
    notes += [f"left out, {why}: {count}" for why, count in left_out.items() if count]
    return Converted(snapshot, tuple(notes))


def _name_of(path: str | Path) -> str:
    """Return a file's stem as a name a document accepts."""
    return re.sub(r"[\s,;]+", "-", Path(path).stem)[:128] or "unnamed"
