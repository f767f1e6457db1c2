"""The result of a mapping as files of other tools: rank orders, host files, tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from topoplace.errors import InputError, refuse
from topoplace.mapping.machines import with_names
from topoplace.mapping.problem import MappingProblem, prepare_mapping
from topoplace.mapping.rankfiles import node_list_beside, note_on_names, write_mapping
from topoplace.snapshot.files import csv_of, write_text
from topoplace.snapshot.schema import MappingInstance

RANKS_ALONE = ("rank_order", "hostfile", "maplib", "scotch_map", "rankfile", "ranks")
"""Files of mappings of tasks alone; objects have ``csv``."""


def write_nodes(
    problem: MappingProblem,
    result: Any,
    node_list: Path | None = None,
    tpu_host: Sequence[int] | None = None,
    **forms: Path | None,
) -> str | None:
    """Write where tasks or objects are, by form: ``csv``, ``hostfile``, ``maplib`` and so on.

    `node_list` is where that of a ``rank_order`` goes, `tpu_host` the chips of a host in ``ranks``.
    Without a mapping there is no file. What a person should know of the files is returned.
    """
    if result.solution is None:
        return None
    nodes = np.asarray(result.solution.nodes, dtype=np.int64)
    written = []
    for name, path in forms.items():
        form = name.removesuffix("_map").replace("_", "-")
        if path is None:
            continue
        if problem.instance.cap is not None:
            write_text(path, csv_of(("object", "node"), enumerate(result.solution.nodes)))
        else:
            write_mapping(path, form, problem, nodes, node_list=node_list, chips=tpu_host)
            written.append(form)
    return note_on_names(written, problem, tpu_host)


def write_ranks(
    result: Any,
    names: Path | Sequence[str] | None = None,
    node_list: Path | None = None,
    tpu_host: Sequence[int] | None = None,
    **forms: Path | None,
) -> str | None:
    """Write the mapping of a result as `write_nodes` does; `names` are those of a torus or mesh.

    Raises
    ------
    InputError
        If the result has no mapping, or none that such a file can hold.
    """
    instance = result.instance
    if not isinstance(instance, MappingInstance):
        refuse("the result of a mapping with this option", names=names, **forms)
    if result.solution is None:
        raise InputError("a result with a mapping", field="solution", found="none")
    if names is not None:
        machine = with_names(instance.machine, names, "--names")
        instance = instance.model_copy(update={"machine": machine})
    if instance.cap is not None:
        refuse("no such file of objects", **{name: forms.get(name) for name in RANKS_ALONE})
    order = forms.get("rank_order")
    node_list = node_list_for(order, node_list)
    if forms.get("ranks") is None:
        refuse("--ranks with this option", tpu_host=tpu_host)
    return write_nodes(prepare_mapping(instance), result, node_list, tpu_host, **forms)


def node_list_for(rank_order: Path | None, node_list: Path | None) -> Path | None:
    """Return where the node list of a rank order goes: beside it, where ``--mapping`` looks."""
    if rank_order is None and node_list is not None:
        raise InputError("--rank-order with it", field="--node-list", found="--node-list alone")
    return node_list_beside(rank_order) if rank_order and not node_list else node_list
