"""Lists of layouts, the cells of a grid, and the mappings of placed jobs as files."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from topoplace.kinds import kind_named
from topoplace.mapping.evaluate import hop_bytes
from topoplace.mapping.layouts.candidates import RankedLayout
from topoplace.mapping.onto import load_places, problem_on
from topoplace.mapping.pencils.obtaining import Obtained
from topoplace.mapping.problem import MappingProblem
from topoplace.mapping.rankfiles import write_mapping
from topoplace.mapping.recognition import Recognition
from topoplace.report.text import plain_table
from topoplace.snapshot.files import csv_of

_SHARES = ("percent_used", "bal_metric", "ppn_metric", "p2c_metric", "qual_metric")
_HEADER = "no.,routers,partitions,map,folds,split,balanced,used,bal,ppn,p2c,qual,bisection/node"
_NUMBERS = range(7, 15)


def layouts_table(
    numbered: Sequence[tuple[int, RankedLayout]],
    there: Sequence[Obtained | str] = (),
    problem: MappingProblem | None = None,
) -> str:
    """Return the table of layouts; metrics are percentages, cut to integers as Topaware's.

    With a problem, hop-bytes are those of the layout where it lies.
    """
    rows = []
    for (number, entry), where in zip_longest(numbered, there):
        layout = entry.layout
        hops = f"{entry.ideal_hop_bytes:,}" if where is None else "-"
        if problem is not None and isinstance(where, Obtained):
            hops = f"{hop_bytes(problem, where.nodes):,}"
        folds = ",".join(map(str, layout.folds)) + " staggered" * layout.stagger
        if layout.path is not None:
            folds = f"{layout.path.dim + 1} in {'x'.join(map(str, layout.path.block))}"
        rows.append(
            [
                str(number),
                "x".join(map(str, layout.logical)),
                "x".join(map(str, layout.partitions)),
                layout.map_text,
                folds or "-",
                "-" if layout.split is None else str(layout.split + 1),
                "yes" if entry.balanced else "no",
                *(str(int(100 * getattr(entry.metrics, name))) for name in _SHARES),
                f"{float(entry.bisection_per_node):.4f}",
                hops,
                f"{layout.num_nodes:,}",
                *([_where(where)] if where is not None else []),
            ]
        )
    heads = [*_HEADER.split(","), "hop-bytes", "nodes", *(["where"] if there else [])]
    return plain_table(heads, rows, right=(0, *_NUMBERS))


def _where(where: Obtained | str) -> str:
    """Return where a layout lies, or why nowhere."""
    if isinstance(where, str):
        return f"no: {where}"
    return f"at {','.join(map(str, where.model.origin))} depth {where.model.depth}"


def layout_document(
    number: int,
    entry: RankedLayout,
    where: Obtained | str | None = None,
    problem: MappingProblem | None = None,
) -> dict[str, object]:
    """Return a layout as JSON: lists per machine dimension, dimensions counted from 0.

    With a problem, also whether it is obtainable, where it lies and its hop-bytes there, or why
    not.
    """
    there: dict[str, object] = {}
    if isinstance(where, str):
        there = {"obtainable": False, "why": where}
    elif where is not None and problem is not None:
        place = {"origin": where.model.origin, "depth": where.model.depth}
        there = {"obtainable": True, **place, "hop_bytes": hop_bytes(problem, where.nodes)}
    layout, metrics = entry.layout, entry.metrics
    own = ("axes", "logical", "partitions", "whole", "folds", "layer_order", "stagger", "split")
    path = layout.path and dataclasses.asdict(layout.path)
    return {
        "number": number,
        **there,
        **{name: getattr(layout, name) for name in own},
        "path": path,
        "nodes": layout.num_nodes,
        "balanced": entry.balanced,
        **{name: float(getattr(metrics, name)) for name in _SHARES},
        "bisection": float(entry.bisection),
        "bisection_per_node": float(entry.bisection_per_node),
        "off_router_bytes": entry.off_router_bytes,
        "ideal_hop_bytes": entry.ideal_hop_bytes,
    }


def cells_csv(found: Recognition) -> str:
    """Return a line for every cell of a grid: its coordinates, where it has some, and its task."""
    num = len(found.tasks)
    shape = found.shape or (num,)
    cells = np.stack(np.unravel_index(np.arange(num), shape), axis=1) if num else np.zeros((0, 1))
    header = [*(f"x{d}" for d in range(len(shape))), "task"]
    return csv_of(header, np.column_stack([cells, found.tasks]).astype(int).tolist())


def write_rank_files(result: Any, folder: Path) -> None:
    """Write a table of tasks and nodes for every job that is mapped, as its request and ``.csv``.

    `topoplace map --mapping` takes them. The folder is made if there is none.
    """
    mapped = [*kind_named(result.problem).get("view")(result).mapped()]
    if not mapped:
        return
    with contextlib.suppress(OSError):  # what cannot be written is rescued, file by file
        folder.mkdir(parents=True, exist_ok=True)
    for request, tasks, nodes in mapped:
        places = load_places(result, job=request)
        problem = problem_on(places, tasks.application, tasks.per_node)
        write_mapping(folder / f"{request}.csv", "csv", problem, nodes)
