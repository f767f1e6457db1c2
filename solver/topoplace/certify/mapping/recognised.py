"""What a grid below a graph proves of the graph (docs/proofs/graphs.md, "Recognised grids")."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from topoplace.certify.mapping.blocks import blocks_value, total_value
from topoplace.certify.mapping.graphs import star_value
from topoplace.certify.mapping.instance import (
    Instance,
    axes_of,
    grid_messages,
    merged,
    mutual_volumes,
    read_grid,
)
from topoplace.certify.mapping.levels import levels_value
from topoplace.certify.report import RefusedError
from topoplace.errors import number_of
from topoplace.result.mapping import RecognisedCertificate

PARTS: dict[str, Callable[[Instance, Any], int]] = {
    "blocks": blocks_value,
    "total": total_value,
    "star": star_value,
    "levels": levels_value,
}
"""What a certificate of the grid, or of what is beyond it, proves."""


def recognised_value(instance: Instance, certificate: RecognisedCertificate) -> int:
    """Return the hop-bytes that a grid, and the bytes beyond it, prove of any mapping."""
    if not instance.machine.is_symmetric:
        raise RefusedError("distances differ by direction: bytes both ways cannot be added up")
    below, beyond = parted(instance, certificate)
    return sum(
        PARTS[part.kind](own, part)
        for own, part in ((below, certificate.below), (beyond, certificate.beyond))
    )


def parted(instance: Instance, certificate: RecognisedCertificate) -> tuple[Instance, Instance]:
    """Return the grid, and the graph without it, each as an application on the same places.

    Refuse the grid unless the graph has all its bytes.
    """
    grid = read_grid(certificate.grid)
    sources, targets, sizes = grid_messages(grid)
    num_cells = math.prod(grid.shape)
    tasks = np.asarray(certificate.tasks, dtype=np.int64)
    if len(tasks) != num_cells or len(np.unique(tasks)) != num_cells:
        cells = number_of(num_cells, "cell")
        raise RefusedError(f"the tasks of {cells} are not so many different ones")
    if int(tasks.max()) >= instance.num_tasks:
        raise RefusedError(f"a cell stands for a task beyond {instance.num_tasks - 1}")
    if sum(map(int, sizes)) > instance.total:  # then no sum below is above 64 bits
        raise RefusedError("the grid has more bytes than the graph")
    has = mutual_volumes(instance)
    ends = np.concatenate([tasks[sources], tasks[targets]])
    others = np.concatenate([tasks[targets], tasks[sources]])
    pairs = has.tasks * has.num_tasks + has.partners
    wanted = merged(instance.num_tasks, ends, others, np.concatenate([sizes, sizes]))
    keys = wanted.tasks * wanted.num_tasks + wanted.partners
    at = np.searchsorted(pairs, keys)
    left = np.append(has.sizes, 0)
    if len(keys) and (int(at.max()) >= len(pairs) or (pairs[at] != keys).any()):
        raise RefusedError("two neighbours of the grid exchange nothing in the graph")
    left[at] -= wanted.sizes
    if int(left.min()) < 0:
        raise RefusedError("two neighbours exchange more in the grid than in the graph")
    once = (has.tasks < has.partners) & (left[:-1] > 0)
    below = replace(
        instance,
        num_tasks=num_cells,
        sources=sources,
        targets=targets,
        sizes=sizes,
        grid=grid,
        axes=axes_of(grid),
    )
    beyond = replace(
        instance, sources=has.tasks[once], targets=has.partners[once], sizes=left[:-1][once]
    )
    return below, beyond
