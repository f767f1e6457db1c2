"""Training jobs as applications: grids of parallelism axes, and the messages along them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from topoplace.errors import InputError, number_of, unknown_name
from topoplace.given import checked
from topoplace.mapping.graph import TaskGraph, VirtualGrid
from topoplace.snapshot.schema import MAX_TASKS, AxisModel, ParallelismApplication
from topoplace.types import IntArray

# ---- The messages of a parallelism grid ----------------------------------------------------------


def parallelism_graph(application: ParallelismApplication) -> TaskGraph:
    """Return the messages of all axes, axis by axis in order of the senders."""
    shape = tuple(axis.size for axis in application.axes)
    ranks = np.arange(int(np.prod(shape, dtype=np.int64)), dtype=np.int64)
    at = np.stack(np.unravel_index(ranks, shape))
    parts = [(ranks[:0],) * 3]
    for d, axis in enumerate(application.axes):
        if not axis.bytes:
            continue
        for step in _steps(axis):
            there = at.copy()
            there[d] += step
            inside = np.ones(len(ranks), dtype=bool)
            if axis.pattern == "line":
                inside = (there[d] >= 0) & (there[d] < axis.size)
            there[d] %= axis.size
            sources = ranks[inside]
            targets = np.ravel_multi_index(tuple(there), shape)[inside]
            parts.append((sources, targets, np.full(len(sources), axis.bytes)))
    return TaskGraph(len(ranks), *map(np.concatenate, zip(*parts, strict=True)))


def _steps(axis: AxisModel) -> Sequence[int]:
    if axis.size == 1:
        return ()
    if axis.pattern == "all":
        return range(1, axis.size)
    return (1,) if axis.pattern == "ring" else (1, -1)


# ---- The traffic of a transformer: bytes per axis, in a training step ----------------------------


@dataclass(frozen=True)
class Transformer:
    """A model and a step of its training, from which the bytes of every axis follow.

    The assumptions (docs/guide/training-jobs.md): activations and gradients have `bytes_per_value`;
    a layer has 12 hidden^2 parameters besides its experts, and four all-reduces of its activations
    per microbatch between tensor ranks, two forward and two backward (Shoeybi et al. 2019, section
    3); a pipeline rank sends activations to the next one and their gradients back; data ranks
    all-reduce the gradients of their parameters once per step round a ring; context ranks pass
    keys and values round a ring; expert ranks exchange `experts_per_token` copies of every token in
    each layer there and back, forward and backward.
    """

    hidden: int = 8192
    layers: int = 80
    sequence: int = 4096
    microbatches: int = 16
    experts_per_token: int = 2
    bytes_per_value: int = 2


PATTERNS = {
    "tensor": "all",
    "data": "ring",
    "pipeline": "line",
    "expert": "all",
    "context": "ring",
}
"""The patterns of the axes whose traffic is known."""


def traffic(sizes: dict[str, int], model: Transformer) -> dict[str, int]:
    """Return the bytes that a rank sends to each partner along every axis of `PATTERNS`.

    All-reduces of n ranks move 2 (n - 1) / n of their values from every rank, whether round a ring
    or between all pairs; everything is rounded down, to at least 1 byte.
    """
    tensor, pipeline = sizes.get("tensor", 1), sizes.get("pipeline", 1)
    context = sizes.get("context", 1)
    tokens = model.sequence // context * model.microbatches  # of a rank in a step
    own_layers = max(1, model.layers // pipeline)
    activations = tokens * model.hidden * model.bytes_per_value
    parameters = 12 * model.hidden**2 * own_layers // tensor
    data, expert = sizes.get("data", 1), sizes.get("expert", 1)
    sent = {
        "tensor": 4 * own_layers * activations * 2 // tensor,
        "data": parameters * model.bytes_per_value * 2 * (data - 1) // data,
        "pipeline": activations // tensor,
        "expert": 4 * own_layers * model.experts_per_token * activations // (tensor * expert),
        "context": 4 * own_layers * activations // tensor * (context - 1),
    }
    return {name: max(1, size) for name, size in sent.items()}


_AXIS = re.compile(r"([A-Za-z_]\w*)=(\d{1,7})(?::(all|ring|line):(\d{1,15}))?")


SHORT = {"tp": "tensor", "pp": "pipeline", "dp": "data", "ep": "expert", "cp": "context"}
"""Usual short names of axes; Megatron's sequence parallelism goes along its tensor axis."""


@checked
def parallelism(
    axes: str | Mapping[str, int], model: Transformer | None = None, *, field: str = "axes"
) -> ParallelismApplication:
    """Return the application of axes such as ``pipeline=4,data=16,tensor=8``, the slowest first.

    They may be a dictionary, ``{"pipeline": 4, "data": 16}``, and have their short names (`SHORT`).

    An axis may say what its ranks send, ``data=16:ring:1000000``; without that it must be one of
    `PATTERNS`, and the bytes follow from the model (`Transformer`).

    Raises `InputError`, naming `field`, if the text is malformed or an axis is unknown or twice.
    """
    if not isinstance(axes, str):
        axes = ",".join(f"{name}={size}" for name, size in axes.items())
    matches = [_AXIS.fullmatch(part) for part in axes.split(",")]
    if not all(matches):
        expected = "axes such as pipeline=4,data=16,tensor=8 or data=16:ring:1000"
        raise InputError(expected, field=field, value=axes)
    parts = [(SHORT.get(m[1], m[1]), *m.groups()[1:]) for m in matches if m]
    sizes = {name: int(size) for name, size, *_ in parts}
    if len(sizes) < len(parts):
        raise InputError("each axis once", field=field, value=axes)
    if len(sizes) > 6 or not all(1 <= size <= MAX_TASKS for size in sizes.values()):
        raise InputError(f"up to 6 axes of 1 to {MAX_TASKS} ranks", field=field, value=axes)
    sent = traffic(sizes, model or Transformer())
    found = []
    for name, size, pattern, amount in parts:
        if pattern is None and name not in PATTERNS:
            raise unknown_name(name, [*PATTERNS, *SHORT], field=field)
        size_of_message = int(amount or sent.get(name, 0))
        if size_of_message > 1 << 53:
            raise InputError(
                f"at most {number_of(1 << 53, 'byte')}", field=field, value=size_of_message
            )
        own = {"pattern": pattern or PATTERNS[name], "bytes": size_of_message}
        found.append(AxisModel.model_validate({"name": name, "size": int(size), **own}))
    return ParallelismApplication(axes=found)


# ---- Bytes inside a set of ranks: grids as products of lines -------------------------------------


@dataclass(frozen=True)
class Line:
    """A factor of a product of graphs: the tasks on a line, and which of them are partners.

    `weight` are the bytes of two partners, both ways together.
    """

    size: int
    pattern: str
    weight: int

    @property
    def shares(self) -> IntArray:
        """By rank of size, largest layer first, the weight of layers (`inside_of_product`)."""
        if self.pattern == "all":
            return np.arange(self.size)
        shares = np.ones(self.size, dtype=np.int64)
        shares[0] = 0
        if self.pattern == "ring" and self.size > 2:
            shares[-1] = 2
        return shares

    def crossing(self, extent: int) -> int:
        """Return the bytes between the parts of a line that is cut every `extent` tasks."""
        parts = self.size // extent
        if self.pattern == "all":
            return self.weight * (self.size * (self.size - extent) // 2)
        closes = self.pattern == "ring" and self.size > 2 and parts > 1
        return self.weight * (parts - 1 + closes)


def lines_of_grid(grid: VirtualGrid) -> tuple[Line, ...]:
    """Return the lines of a grid, a dimension each; diagonal messages are left out."""
    weights = [0] * grid.num_dims
    for offset, size in grid.offsets:
        moved = [d for d, step in enumerate(offset) if step]
        if len(moved) == 1:
            weights[moved[0]] += size
    return tuple(
        Line(n, "ring" if wraps else "line", weight * (2 if wraps and n == 2 else 1))
        for n, wraps, weight in zip(grid.shape, grid.periodic, weights, strict=True)
    )


def lines_of_axes(application: ParallelismApplication) -> tuple[Line, ...]:
    """Return the lines of a parallelism grid, an axis each."""

    def weight(axis: AxisModel) -> int:
        return axis.bytes if axis.pattern == "ring" and axis.size > 2 else 2 * axis.bytes

    return tuple(Line(axis.size, axis.pattern, weight(axis)) for axis in application.axes)
