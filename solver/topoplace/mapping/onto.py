"""Where tasks may go: the nodes of a machine, a snapshot or a placed job, or a matrix."""

from __future__ import annotations

import contextlib
import logging
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from topoplace.errors import InputError, number_of
from topoplace.kinds import kind_named, known
from topoplace.machine import Prism, format_node_set, parse_node_set
from topoplace.machine.hostlist import expand_host_list
from topoplace.mapping.graphfiles import read_matrix_machine
from topoplace.mapping.machines import (
    MachineToMap,
    machine_of,
    numbered,
    offer_of,
    one_of,
    with_names,
)
from topoplace.mapping.problem import MappingProblem, prepare_mapping
from topoplace.result import RESULT_SCHEMA, Result
from topoplace.result.reading import parse_result
from topoplace.snapshot.files import file_meant, parse_object, read_bytes
from topoplace.snapshot.machines import load_any, load_machine, regular_hierarchy, resolve_machine
from topoplace.snapshot.reading import other_snapshot, parted
from topoplace.snapshot.schema import (
    SNAPSHOT_SCHEMA,
    AnyApplication,
    CubesModel,
    HierarchyModel,
    MappingInstance,
    ObjectsGraph,
    Snapshot,
)
from topoplace.types import IntArray

log = logging.getLogger("topoplace")

MATRIX = "matrix:"
"""The prefix of the file of a matrix of distances that is a machine."""
SHAREDMAP = "sharedmap:"
"""The prefix of a hierarchy and distances in the form of SharedMap: ``4:8:6/1:10:100``."""
MOST_PER_NODE = 1 << 20
_NUMBERS = re.compile(r"[\d\s,-]*")

Document = Result[Any, Any, Any] | Snapshot | MachineToMap | CubesModel
Source = str | Document
"""A document, or its file, shipped name or shorthand."""


@dataclass(frozen=True)
class Places:
    """A machine, its nodes that tasks may go to (ascending), and where both come from."""

    machine: MachineToMap
    nodes: IntArray
    source: str
    level_costs: tuple[int, ...] | None = None
    units: Mapping[int, int] = field(default_factory=dict)
    """How many units a job has on each of its nodes; one where nothing is said."""

    def most_tasks(self, asked: int | None) -> int:
        """Return the most tasks on a node: what is asked for, by default as many as units.

        Raises `InputError` if a node has fewer units, or nothing is asked for and nodes differ. One
        unit on every node is the node itself, which takes any number.
        """
        units = sorted({self.units.get(node, 1) for node in self.nodes.tolist()}) or [1]
        if asked is None and len(units) == 1:
            return units[0]
        if asked is None or (units[-1] > 1 and asked > units[0]):
            shown = ", ".join(map(str, units))
            expected = f"from 1 to {units[0]}, the fewest units of the job on a host ({shown})"
            found = "nothing" if asked is None else str(asked)
            raise InputError(expected, field="--tasks-per-node", found=found)
        return asked

    @property
    def node_set(self) -> str:
        """The nodes as ranges."""
        return format_node_set(self.nodes.tolist())

    def named(self, names: Path | Sequence[str]) -> Places:
        """Return the places on a machine whose nodes are called so (`with_names`)."""
        return replace(self, machine=with_names(self.machine, names))

    def only(self, subset: str | Sequence[str | int], field: str = "--subset") -> Places:
        """Return the part of the places on the nodes of a set: ``0-47,60``, or ``n[01-16]``.

        Where nodes have names, numbers are positions. Tasks fill nodes in the order of their
        numbers, whatever the order in the set; where that differs, a warning says so.

        Raises `InputError` if the set is malformed, or names a node that is not one of these.
        """
        text = subset if isinstance(subset, str) else ",".join(map(str, subset))
        try:
            wanted = self._numbers(text, field)
        except InputError:
            if not os.path.isfile(text):  # a text may be too long for a path
                raise
            expected = f'nodes; those of a file are --subset "$(paste -sd, {text})"'
            raise InputError(expected, field=field, found=f"the file {text}") from None
        strange = np.setdiff1d(wanted, self.nodes)
        if len(strange):
            raise InputError(
                f"some of the {number_of(len(self.nodes), 'usable node')}",
                field=field,
                value=int(strange[0]),
            )
        if (np.diff(wanted) < 0).any():
            log.warning("%s: nodes are used in the order of their numbers, not as listed", field)
        return replace(self, nodes=np.unique(wanted), source=f"{self.source}, some nodes")

    def _numbers(self, subset: str, field: str) -> IntArray:
        """Return the nodes of a set in the order in which it lists them."""
        names = offer_of(self.machine).names(self.machine)
        if names:
            listed = expand_host_list(subset, field)
            if not _NUMBERS.fullmatch(subset) or {*listed} <= {*names}:
                return numbered(names, listed, field)
        if not names and not _NUMBERS.fullmatch(subset):
            expected = "numbers of nodes such as 0-47,60, as their names are not known"
            hint = "" if self.machine.kind != "torus" else " (--names FILE)"
            raise InputError(expected + hint, field=field, value=subset)
        nodes = parse_node_set(subset, machine_of(self.machine).num_nodes, field)
        firsts = [int(part.partition("-")[0]) for part in subset.split(",") if len(nodes)]
        lasts = [int(part.rpartition("-")[2]) for part in subset.split(",") if len(nodes)]
        ranges = [np.arange(a, b + 1) for a, b in zip(firsts, lasts, strict=True)]
        return np.concatenate(ranges) if ranges else nodes

    def within(self, text: str, field: str = "--within") -> Places:
        """Return the part on a prism of routers such as ``12x8x12@0,4,0``; by default from 0 on.

        Raises `InputError` if the text is malformed or the prism does not lie on the machine.
        """
        match = re.fullmatch(r"(\d{1,7}(?:x\d{1,7})*)(?:@(\d{1,7}(?:,\d{1,7})*))?", text)
        if match is None:
            raise InputError("a prism such as 12x8x12@0,4,0", field=field, value=text)
        torus = machine_of(self.machine, self.level_costs).torus
        if torus is None:
            raise InputError("a torus or mesh beside it (or --subset)", field=field, value=text)
        extents = tuple(map(int, match[1].split("x")))
        origin = tuple(map(int, match[2].split(","))) if match[2] else (0,) * len(extents)
        prism = Prism(origin, extents)
        prism.require_inside(torus, field)
        inside = np.isin(self.nodes // torus.nodes_per_router, prism.routers(torus))
        return replace(self, nodes=self.nodes[inside], source=f"{self.source}, {prism.text}")


def load_places(
    on: Source,
    *,
    level_costs: Sequence[int] | None = None,
    job: str | None = None,
    node_class: str | None = None,
    within: str | None = None,
) -> Places:
    """Return the nodes that a machine, a snapshot or a result offers.

    Parameters
    ----------
    on
        A machine (all its nodes but the service nodes; also a shipped name, a shorthand,
        ``matrix:FILE``, or ``sharedmap:4:8:6/1:10:100``), a snapshot (its usable nodes, or those of
        a running job), or a placement result (the nodes of a job it started); the document or its
        file.
    level_costs
        On trees and hierarchies, what a byte costs by the level at which its ends meet, the lowest
        first.
    job
        The job inside whose nodes to map.
    node_class
        Class of the nodes of a machine or snapshot; its default class if not given.
    within
        A prism such as ``12x8x12@0,0,0`` to stay inside.

    Raises
    ------
    InputError
        If there is no such thing, or no such job or class in it; or if a matrix is asked for a
        job, a class or a prism.
    """
    if isinstance(on, str) and on.startswith(SHAREDMAP):
        on, given = _sharedmap(on)
        level_costs = given if level_costs is None else level_costs
    document = document_of(on) if isinstance(on, str) else on
    label = Path(on).name if isinstance(on, str) else None
    model, nodes, source = offered(document, job, node_class, label)
    if level_costs is not None and offer_of(model).network(model, None).levels is None:
        expected = "a tree or hierarchy beside it"
        raise InputError(expected, field="--level-costs", value=":".join(map(str, level_costs)))
    costs = tuple(level_costs) if level_costs else None
    places = Places(model, np.sort(nodes), source, costs, _units_of(document, job))
    return places if within is None else places.within(within)


def offered(
    document: Document, job: str | None, node_class: str | None, label: str | None = None
) -> tuple[Any, IntArray, str]:
    """Return the machine of a document, the nodes that it offers, and the words for them.

    Of a machine these are all nodes that may run jobs, of a snapshot the free ones or those of a
    running job, of a result those of a job that it started, each once and in the order of its
    ranks. The `label` is what the document is called, by default its name.
    """
    if isinstance(document, Result):
        _require_placement(document.problem, label)
        snapshot: Snapshot = resolve_machine(document.instance)
        offer_of(snapshot.machine)
        _refuse_class(snapshot.machine, node_class)
        job, nodes = _started(document, job)
        return snapshot.machine, nodes, f"{label or snapshot.name}, job {job}"
    if isinstance(document, Snapshot):
        snapshot = resolve_machine(document)
        offer = offer_of(snapshot.machine)
        _refuse_class(snapshot.machine, node_class)
        nodes, words = offer.nodes(snapshot, job, node_class)
        return snapshot.machine, nodes, (label or snapshot.name) + words
    offer = offer_of(document)
    if job is not None:
        raise InputError("a snapshot or a result that has jobs", field="--on", value=label)
    _refuse_class(document, node_class)
    nodes, words = offer.whole(document, node_class)
    return document, nodes, (label or document.name) + words


def _require_placement(problem: str, file: str | None) -> None:
    if problem in known() and kind_named(problem).machine is None:
        expected, found = "the result of a placement", f"that of {problem}"
        raise InputError(expected, file=file, field="problem", found=found)


def _refuse_class(model: Any, node_class: str | None) -> None:
    if node_class is not None and not offer_of(model).has_classes:
        raise InputError("a torus or mesh beside it", field="--class", value=node_class)


def document_of(spec: str, *, placed: bool = True) -> Document:
    """Return the document of a file, a name, a shorthand, or a matrix.

    Results have to be those of placements, unless it does not matter whether they have `placed` a
    queue; others are refused unread.
    """
    if spec.startswith(MATRIX):
        return read_matrix_machine(spec.removeprefix(MATRIX))
    if file_meant(parted(spec)[0]).exists():
        snapshot = other_snapshot(spec)
        if snapshot is not None:
            return snapshot
        schema, problem = (_field_of(spec, name) for name in ("schema", "problem"))
        if schema == RESULT_SCHEMA:
            if placed and isinstance(problem, str):
                _require_placement(problem, spec)
            return parse_result(read_bytes(spec), spec)
        if schema == SNAPSHOT_SCHEMA:
            return load_any(spec).snapshot
    return load_machine(spec)


_SHAREDMAP = re.compile(r"(\d{1,7}(?::\d{1,7})*)/(\d{1,7}(?::\d{1,7})*)")


def _sharedmap(spec: str) -> tuple[HierarchyModel, tuple[int, ...]]:
    """Return the hierarchy and the costs of ``sharedmap:4:8:6/1:10:100``.

    SharedMap lists both from the bottom up: 4 processing elements on a processor at distance 1, 8
    processors on a node, whose elements are at distance 10, and 6 nodes (Schulz and Woydt 2025).
    """
    match = _SHAREDMAP.fullmatch(spec.removeprefix(SHAREDMAP))
    sizes, costs = (
        ([int(x) for x in part.split(":")] for part in match.groups()) if match else ([], [])
    )
    if not sizes or len(sizes) != len(costs) or len(sizes) > len(SHAREDMAP_LEVELS):
        expected = "a hierarchy and as many distances, such as sharedmap:4:8:6/1:10:100"
        raise InputError(expected, field="--on", value=spec)
    named = dict(zip(SHAREDMAP_LEVELS[-len(sizes) :], sizes[::-1], strict=True))
    name = spec.replace(":", "-").replace("/", "-")
    return regular_hierarchy(named, {"slots": 1}, name), tuple(costs)


SHAREDMAP_LEVELS = (*(f"level{k}" for k in range(15, 0, -1)), "element")
"""Names of the levels of such a hierarchy, from its last one up."""


def _field_of(spec: str, name: str) -> object:
    """Return a field of a JSON document, such as its schema; None for other files."""
    with contextlib.suppress(InputError):
        return parse_object(read_bytes(spec), spec).get(name)
    return None


def _started(result: Result[Any, Any, Any], job: str | None) -> tuple[str, IntArray]:
    """Return a job that a result starts, and its nodes, each once, in the order of its ranks."""
    nodes_of = {start.request: start.nodes for start in result.placements}
    if job is None and len(nodes_of) == 1:
        (job,) = nodes_of
    if job is None or job not in nodes_of:
        raise one_of(nodes_of, "started job", "--job", job)
    return job, np.array(list(dict.fromkeys(nodes_of[job])), dtype=np.int64)


def _units_of(document: Document, job: str | None) -> dict[int, int]:
    """Return how many units the job of a result has on each of its nodes."""
    if not isinstance(document, Result):
        return {}
    nodes_of = {start.request: start.nodes for start in document.placements}
    return dict(Counter(nodes_of[_started(document, job)[0]]))


def problem_on(
    places: Places,
    application: AnyApplication | ObjectsGraph,
    tasks_per_node: int | None = 1,
    *,
    name: str | None = None,
    file: str | None = None,
    **loaded: Any,
) -> MappingProblem:
    """Return the problem of mapping an application to places, with a limit of tasks on a node.

    For objects that is None, and `loaded` are the fields of the instance in its place. An instance
    is named as the kind of the application if not told otherwise; errors name the `file` that it
    was read from.

    Raises `InputError` if there are more tasks than places, or hop-bytes would not be exact in 64
    bits.
    """
    if tasks_per_node is not None and not 1 <= tasks_per_node <= MOST_PER_NODE:
        raise InputError(
            f"from 1 to {MOST_PER_NODE}", field="--tasks-per-node", value=tasks_per_node
        )
    instance = MappingInstance(
        schema_version="topoplace.mapping/1",
        name=name or application.kind,
        machine=places.machine,
        level_costs=list(places.level_costs) if places.level_costs else None,
        nodes=format_node_set(places.nodes.tolist()),
        tasks_per_node=tasks_per_node,
        application=application,
        source=places.source,
        **loaded,
    )
    try:
        return prepare_mapping(instance)
    except InputError as error:
        raise (error if file is None else error.located(file)) from None
