"""What the files of mappings share: the numbering of ranks, what is checked, and tables."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from topoplace.errors import InputError
from topoplace.machine import Torus
from topoplace.mapping.graph import IntArray
from topoplace.mapping.problem import MappingProblem
from topoplace.snapshot.files import write_text
from topoplace.snapshot.readers.tables import field_lines, integer

# ---- Node ids and host names of a site, and our node numbers -------------------------------------

_HOST = re.compile(r"nid(\d{1,18})")


class Numbering:
    """The node ids (nids) of a site's files.

    Parameters
    ----------
    node_of_nid
        Our node number (``router * nodes_per_router + k``) of every nid, such as
        `CrayTable.router_of_nid` of a machine with one node per router. Without it a nid is our
        node number.

    Raises
    ------
    InputError
        If two nids stand for one node.
    """

    def __init__(self, node_of_nid: Mapping[int, int] | None = None) -> None:
        self._nodes = None if node_of_nid is None else dict(node_of_nid)
        self._nids = {node: nid for nid, node in (self._nodes or {}).items()}
        if self._nodes is not None and len(self._nids) < len(self._nodes):
            raise InputError("one nid for each node", field="node_of_nid")

    def nid(self, node: int) -> int:
        """Return the nid of a node."""
        if self._nodes is None:
            return node
        if node not in self._nids:
            raise InputError("a nid for every node of the mapping", field="node", value=node)
        return self._nids[node]

    def node(self, nid: int, *, file: str, field: str) -> int:
        """Return the node of a nid."""
        if self._nodes is None:
            return nid
        if nid not in self._nodes:
            raise InputError("a nid of the machine", file=file, field=field, value=nid)
        return self._nodes[nid]

    def host(self, node: int) -> str:
        """Return the host name of a node, such as ``nid00012``."""
        return f"nid{self.nid(node):05d}"

    def node_of_host(self, host: str, *, file: str, field: str) -> int:
        """Return the node of a host name."""
        match = _HOST.fullmatch(host)
        if match is None:
            raise InputError("a host name such as nid00012", file=file, field=field, value=host)
        return self.node(int(match[1]), file=file, field=field)


# ---- Tests whether a list of nodes is a mapping of an instance -----------------------------------


def require_mapping(
    problem: MappingProblem,
    nodes: IntArray,
    *,
    file: str | None = None,
    where: Callable[[int], str] = "task {}".format,
) -> None:
    """Raise `InputError` unless every task has a usable node and no node too many tasks.

    Parameters
    ----------
    problem
        The instance.
    nodes
        Node of every task.
    file, where
        For messages: the file the mapping was read from, and the place in it of a task.
    """
    if len(nodes) != problem.num_tasks:
        raise InputError(f"nodes for {problem.num_tasks} tasks", file=file, value=len(nodes))
    strange = np.flatnonzero(~np.isin(nodes, problem.nodes))
    if len(strange):
        task = int(strange[0])
        raise InputError(
            "a node that tasks may go to", file=file, field=where(task), value=int(nodes[task])
        )
    count = np.bincount(nodes)
    if count.max() > problem.tasks_per_node:
        node = int(count.argmax())
        task = int(np.flatnonzero(nodes == node)[problem.tasks_per_node])
        raise InputError(
            f"at most {problem.tasks_per_node} tasks on a node",
            file=file,
            field=where(task),
            value=f"{count[node]} on node {node}",
        )


# ---- Mappings as CSV: ``task,node,c0,c1,...`` with the coordinates of the router -----------------


def write_csv(problem: MappingProblem, nodes: IntArray, path: str | Path) -> None:
    """Write one row per task: its number, its node, and the coordinates of its router.

    A machine without coordinates gets its router number as the only one.

    Raises
    ------
    InputError
        If `nodes` is no mapping of the instance.
    """
    require_mapping(problem, nodes)
    places = _places(problem, nodes)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_header(places.shape[1]))
    rows = np.column_stack([np.arange(problem.num_tasks), nodes, places])
    writer.writerows(rows.tolist())
    write_text(path, out.getvalue())


def read_csv(problem: MappingProblem, path: str | Path) -> IntArray:
    """Read a table with the columns task and node and return the node of every task.

    Rows may come in any order. Coordinates may be left out (all of them); where they are given
    they must be those of the node's router.

    Raises
    ------
    InputError
        Naming file, line and value.
    """
    file = str(path)
    rows = [
        (line, [text.strip() for text in " ".join(fields).split(",")])
        for line, fields in field_lines(path, "#")
    ]
    full = _header(_places(problem, problem.nodes[:1]).shape[1])
    if not rows or rows[0][1] not in (full, full[:2]):
        raise InputError(
            f"a header {','.join(full)} or task,node",
            file=file,
            field=rows[0][0] if rows else None,
            value=",".join(rows[0][1]) if rows else None,
        )
    width = len(rows[0][1])
    nodes = np.full(problem.num_tasks, -1, dtype=np.int64)
    where = [""] * problem.num_tasks
    given = np.zeros((problem.num_tasks, width - 2), dtype=np.int64)
    for line, fields in rows[1:]:
        if len(fields) != width:
            raise InputError(f"{width} columns", file=file, field=line, value=len(fields))
        task, node, *coordinates = (integer(text, 0, file=file, field=line) for text in fields)
        if task >= problem.num_tasks:
            raise InputError(f"tasks below {problem.num_tasks}", file=file, field=line, value=task)
        if nodes[task] >= 0:
            raise InputError("each task once", file=file, field=line, value=task)
        nodes[task], given[task], where[task] = node, coordinates, line
    missing = np.flatnonzero(nodes < 0)
    if len(missing):
        raise InputError("a row for every task", file=file, value=f"no task {missing[0]}")
    require_mapping(problem, nodes, file=file, where=where.__getitem__)
    if width > 2:
        wrong = np.flatnonzero((given != _places(problem, nodes)).any(axis=1))
        if len(wrong):
            raise InputError(
                "the coordinates of the node's router",
                file=file,
                field=where[wrong[0]],
                value=given[wrong[0]].tolist(),
            )
    return nodes


def _header(num_coordinates: int) -> list[str]:
    return ["task", "node", *(f"c{d}" for d in range(num_coordinates))]


def _places(problem: MappingProblem, nodes: IntArray) -> IntArray:
    """Return the coordinates of every node's router."""
    routers = problem.routers_of(nodes)
    if not isinstance(problem.machine, Torus):
        return routers[:, None]
    return problem.machine.coordinates[routers]
