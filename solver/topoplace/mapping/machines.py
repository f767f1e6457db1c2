"""Machines as mappings use them: what each kind of machine offers to tasks.

A kind of machine names its `Offer` in `kind.py` of its folder (`Kind.offer`). A matrix of distances
is a machine of mappings alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from topoplace.errors import InputError, unknown_name
from topoplace.formats.text import field_lines
from topoplace.kinds import kind_of_machine
from topoplace.machine import MatrixMachine, Network, Torus
from topoplace.machine.hostlist import expand_host_list, format_host_list
from topoplace.machine.levels import levels_of_hierarchy
from topoplace.machine.topology import AnyMachine
from topoplace.snapshot.hierarchy_state import hierarchy_of, prepare_hierarchy
from topoplace.snapshot.schema import (
    SNAPSHOT_SCHEMA,
    HierarchyModel,
    MatrixModel,
    Snapshot,
    TorusModel,
    TreeModel,
)
from topoplace.snapshot.state import torus_of
from topoplace.types import IntArray

MachineToMap = TorusModel | MatrixModel | TreeModel | HierarchyModel


class Offer:
    """What a kind of machine offers to tasks."""

    has_classes = False
    """Whether its nodes have classes, of which tasks take one."""

    def machine(self, model: Any) -> AnyMachine:
        """Return the machine of a document as the topology manager has it."""
        raise NotImplementedError

    def network(self, model: Any, level_costs: Sequence[int] | None) -> Any:
        """Return the machine of a document with its distances, by default without costs."""
        refuse_costs(level_costs)
        return self.machine(model)

    def whole(self, model: Any, node_class: str | None) -> tuple[IntArray, str]:
        """Return all nodes of a machine that may run jobs, and the words for them."""
        return np.arange(self.machine(model).num_nodes), ""

    def nodes(
        self, snapshot: Snapshot, job: str | None, node_class: str | None
    ) -> tuple[IntArray, str]:
        """Return the free nodes of a snapshot or those of a running job, and the words for them."""
        raise NotImplementedError

    def names(self, model: Any) -> Sequence[str]:
        """Return the names of all nodes in the order of their numbers; none if they are unknown.

        A node without a name, such as a service node, has an empty one.
        """
        names: Sequence[str] = model.node_names
        return names


class OfNodes(Offer):
    """A machine whose nodes have numbers offers those that are free; its kind prepares snapshots.

    What is prepared has the nodes that are `free`, and those `held` by each running job. By default
    the document has the `matrix` of distances between all nodes.
    """

    def machine(self, model: Any) -> AnyMachine:
        """Return the machine of a document as the topology manager has it."""
        machine: AnyMachine = model.matrix()
        return machine

    def whole(self, model: Any, node_class: str | None) -> tuple[IntArray, str]:
        """Return all nodes that may run jobs."""
        alone = Snapshot(schema_version=SNAPSHOT_SCHEMA, name=model.name, machine=model)
        return self.nodes(alone, None, node_class)

    def nodes(
        self, snapshot: Snapshot, job: str | None, node_class: str | None
    ) -> tuple[IntArray, str]:
        """Return the free nodes of a snapshot or those of a running job, and the words for them."""
        kind = kind_of_machine(snapshot.written.kind)
        assert kind is not None
        state = kind.get("prepare")(snapshot)
        if job is None:
            return self.free(state, node_class)
        held = dict(zip((one.id for one in snapshot.running), state.held, strict=True))
        if job not in held:
            raise one_of(held, "running job", "--job", job)
        return np.sort(held[job]), f", job {job}"

    def free(self, state: Any, node_class: str | None) -> tuple[IntArray, str]:
        """Return the free nodes, and the words for them."""
        return np.flatnonzero(state.free), ""


class OfTorus(OfNodes):
    """A torus or mesh offers the usable nodes of a class."""

    has_classes = True

    def machine(self, model: Any) -> Torus:
        """Return the torus or mesh."""
        return torus_of(model)

    def free(self, state: Any, node_class: str | None) -> tuple[IntArray, str]:
        """Return the usable nodes of a class, by default the first one."""
        wanted = node_class or state.classes[0]
        if wanted not in state.classes:
            raise one_of(state.classes, "class", "--class", wanted)
        usable = state.usable & (state.node_class == state.classes.index(wanted))
        return np.flatnonzero(usable), f", class {wanted}"


class OfLevels(Offer):
    """A tree or hierarchy offers the hosts that are not full; they have names."""

    def machine(self, model: Any) -> AnyMachine:
        """Return the hierarchy."""
        return hierarchy_of(model)

    def network(self, model: Any, level_costs: Sequence[int] | None) -> Network:
        """Return the hierarchy as levels."""
        return levels_of_hierarchy(hierarchy_of(model), level_costs)

    def nodes(
        self, snapshot: Snapshot, job: str | None, node_class: str | None
    ) -> tuple[IntArray, str]:
        """Return the hosts that are not full, or those of a job in the order it lists them in."""
        if job is None:
            return np.flatnonzero(prepare_hierarchy(snapshot).free.any(axis=1)), ""
        held = {running.id: running.nodes for running in snapshot.running}
        if job not in held:
            raise unknown_name(job, held, field="job")
        named = expand_host_list(held[job] or "")
        return numbered(self.names(snapshot.machine), named), f", job {job}"

    def names(self, model: Any) -> Sequence[str]:
        """Return the names of the hosts."""
        return hierarchy_of(model).host_names


class OfMatrix(Offer):
    """A matrix of distances offers all its nodes."""

    def machine(self, model: Any) -> MatrixMachine:
        """Return the matrix."""
        widths = {len(row) for row in model.distances}
        if widths != {len(model.distances)}:
            found = f"rows of {sorted(widths)}"
            raise InputError("a square matrix", field="machine.distances", value=found)
        return MatrixMachine(np.array(model.distances, dtype=np.int64))


OF_MATRIX = OfMatrix()


def offer_of(model: Any) -> Offer:
    """Return what a machine's kind offers to tasks.

    Raises `InputError` if no mapping goes on machines of the kind.
    """
    kind = kind_of_machine(model.kind)
    if kind is None:
        return OF_MATRIX
    found = kind.get("offer")
    if found is None:
        expected, found = "a torus, mesh, matrix, tree or hierarchy", f"a machine of {model.kind}"
        raise InputError(expected, field="--on", found=found)
    offer: Offer = found()
    return offer


def with_names(model: Any, names: Path | Sequence[str], field: str = "--names") -> Any:
    """Return a torus or mesh whose nodes are called so, in the order of their numbers.

    A file has the names, or host lists of them, between blanks, commas or line ends.

    Raises `InputError` if that is not a name for each node (or for each but the service nodes), or
    the nodes of the machine are not to be named.
    """
    if not isinstance(model, TorusModel):
        expected = "a torus or mesh beside it; trees and hierarchies name their nodes themselves"
        raise InputError(expected, field=field, found=f"a machine of {model.kind}")
    file = str(names) if isinstance(names, Path) else None
    try:
        listed = _names_in(names) if isinstance(names, Path) else names
        named = model.model_copy(update={"names": format_host_list(listed)})
        _ = named.node_names  # for its faults
    except InputError as error:
        raise error.at(field) if file is None else error.located(file) from None
    return named


def _names_in(path: Path) -> Iterator[str]:
    """Yield the names of a file."""
    for line, fields in field_lines(path, "#"):
        yield from expand_host_list(",".join(fields), line)


def machine_of(model: MachineToMap, level_costs: Sequence[int] | None = None) -> Network:
    """Return the machine of a model, with costs of levels if it has any."""
    network: Network = offer_of(model).network(model, level_costs)
    return network


def refuse_costs(level_costs: Sequence[int] | None) -> None:
    """Raise `InputError` if costs of levels are given for a machine, which has no levels."""
    if level_costs is not None:
        expected = "no costs of levels but on trees and hierarchies"
        raise InputError(expected, field="level_costs", value=list(level_costs))


def numbered(known: Sequence[str], names: Iterable[str], field: str = "ranks") -> IntArray:
    """Return the numbers of nodes, given the names of all and of these."""
    numbers = {name: number for number, name in enumerate(known) if name}
    listed = list(names)
    strange = [name for name in listed if name not in numbers]
    if strange:
        raise InputError("nodes of the machine", field=field, value=strange[0], known=numbers)
    return np.array([numbers[name] for name in listed], dtype=np.int64)


def one_of(known: Iterable[str], what: str, field: str, value: str | None) -> InputError:
    """Return the error about a name that is none of those known."""
    names = list(known)
    shown = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
    expected = f"one {what} of: {shown}" if names else f"a {what}, of which there are none"
    found = "nothing" if value is None else None
    return InputError(expected, field=field, value=value, found=found, known=names)
