"""The nodes of a job as its ranks see them: a `Topology` from machines, snapshots or results."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from topoplace.errors import InputError, number_of
from topoplace.given import checked
from topoplace.machine.topology import Topology
from topoplace.mapping.machines import numbered, offer_of
from topoplace.mapping.onto import Places, Source, document_of, offered, problem_on
from topoplace.mapping.rankfiles import read_mapping
from topoplace.model import Model
from topoplace.result import Result
from topoplace.result.mapping import MappingResult
from topoplace.snapshot.faults import faults_of
from topoplace.snapshot.schema import GraphApplication, MachineDocument, MatrixModel, Snapshot
from topoplace.traffic import is_foreign, is_graph, matrix_of
from topoplace.types import IntArray


def source_of(on: Any) -> Source:
    """Return where tasks may go, as `load_places` takes it.

    That is the snapshot of a model, the text of a path, a matrix of distances as a machine, or what
    is given itself.

    Raises
    ------
    InputError
        If it is nothing of that.
    """
    if isinstance(on, Model):
        return on.snapshot
    if isinstance(on, Path):
        return str(on)
    if is_foreign(on) and not is_graph(on):
        fields = {"kind": "matrix", "name": "matrix", "distances": matrix_of(on, "on").tolist()}
        try:
            return MatrixModel.model_validate(fields)
        except ValidationError as error:
            raise faults_of(error, MatrixModel, fields) from None
    if not isinstance(on, str | Result | Snapshot | MachineDocument):
        expected = "a machine, a snapshot, a result, a square array of distances, or a file"
        raise InputError(expected, field="on", found=type(on).__name__)
    found: Source = on  # type: ignore[assignment]  # what others offer is asked of their kind
    return found


@checked
def topology(
    on: Any,
    *,
    job: str | None = None,
    node_class: str | None = None,
    within: str | None = None,
    cores: int = 1,
    ranks: Path | Sequence[Any] | None = None,
    rank_format: str = "csv",
    num_ranks: int | None = None,
) -> Topology:
    """Return the nodes of a job as its ranks see them: sizes, coordinates, hops, routes.

    Parameters
    ----------
    on
        A machine (or its name, file or shorthand, or a square array of distances): all its nodes. A
        `Model`, snapshot or its file:
        the free nodes, or those of a running job. A result or its file: the nodes of a job it
        started, or the tasks of a mapping, which are the ranks.
    job, node_class, within
        As of `map`.
    cores
        Most ranks on a node.
    ranks
        The node of every rank, a number (on trees also a name); or a rank file of a torus, mesh or
        matrix. By default ranks fill node after node (SMP order), in the order that results have
        on trees, else ascending.
    rank_format
        Of a rank file: ``rank-order``, ``hostfile``, ``csv``, ``maplib`` or ``scotch``.
    num_ranks
        By default as many as there is room for.

    Raises
    ------
    InputError
        If an argument cannot be used, or there is no such job.
    """
    on = source_of(on)
    document = document_of(on, placed=False) if isinstance(on, str) else on
    if isinstance(document, MappingResult):
        return _of_mapping(document, job, ranks)
    label = on if isinstance(on, str) else None
    model, nodes, source = offered(document, job, node_class, label)
    places = Places(model, nodes, source)
    if within is not None:
        places = places.within(within)
    given: Any = ranks
    if isinstance(ranks, Path):
        if offer_of(model).names(model):
            raise InputError("ranks in a list, not in a file, on trees", field="ranks")
        num = len(places.nodes) * cores if num_ranks is None else num_ranks
        silent = GraphApplication(num_tasks=num, sources=[], targets=[], bytes=[])
        given = read_mapping(ranks, rank_format, problem_on(places, silent, cores))
    return _ranked(places, cores, given, num_ranks)


def _of_mapping(result: MappingResult, job: str | None, ranks: object) -> Topology:
    """Return the topology whose ranks are the tasks of a mapping."""
    if job is not None or ranks is not None:
        field = "job" if job is not None else "ranks"
        raise InputError("nothing beside a mapping, which has its ranks", field=field)
    if result.solution is None:
        raise InputError("a mapping that has a solution", field="solution", found="none")
    nodes = np.asarray(result.solution.nodes, dtype=np.int64)
    most = result.instance.tasks_per_node or int(np.bincount(nodes).max())
    return Topology(offer_of(model := result.instance.machine).machine(model), nodes, most)


def _ranked(
    places: Places, cores: int, ranks: Sequence[Any] | IntArray | None, num_ranks: int | None
) -> Topology:
    """Return the topology of ranks on nodes, by default filling one after the other (SMP order)."""
    nodes, offer = places.nodes, offer_of(places.machine)
    machine, names = offer.machine(places.machine), offer.names(places.machine)
    if ranks is None:
        num = len(nodes) * cores if num_ranks is None else num_ranks
        if not 1 <= num <= len(nodes) * cores:
            expected = (
                f"from 1 to {number_of(len(nodes) * cores, 'rank')}, the places on "
                f"{number_of(len(nodes), 'node')}"
            )
            raise InputError(expected, field="num_ranks", value=num)
        return Topology(machine, np.repeat(nodes, cores)[:num], cores)
    listed = list(ranks)
    if names and all(isinstance(x, str) for x in listed):
        given = numbered(names, map(str, listed))
    else:
        given = np.asarray(listed)
    if given.dtype.kind not in "iu":
        raise InputError("numbers of nodes", field="ranks", found=f"an array of {given.dtype}")
    outside = given[~np.isin(given, nodes)]
    if len(outside):
        expected = f"some of the {number_of(len(nodes), 'node')} of the job"
        raise InputError(expected, field="ranks", value=int(outside[0]))
    if num_ranks is not None and num_ranks != len(given):
        raise InputError(
            f"a node for each of {number_of(num_ranks, 'rank')}", field="ranks", value=len(given)
        )
    return Topology(machine, given, cores)
