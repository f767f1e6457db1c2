"""Sets of node numbers written as ranges, such as ``"0-47,60,62-63"``."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable

import numpy as np

from topoplace.errors import InputError
from topoplace.types import IntArray

_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")


def parse_node_set(text: str, num_nodes: int, field: str = "nodes") -> IntArray:
    """Return the node numbers of a range list, ascending.

    Raises
    ------
    InputError
        If the text is malformed, names a node twice or a node outside ``0..num_nodes-1``.
    """
    spans: list[tuple[int, int]] = []
    for part in text.split(",") if text.strip() else []:
        match = _RANGE.fullmatch(part.strip())
        if match is None:
            raise InputError('ranges such as "0-47,60"', field=field, value=part)
        low = int(match[1])
        high = int(match[2]) if match[2] else low
        if high < low:
            raise InputError("ranges that ascend", field=field, value=part)
        if high >= num_nodes:
            raise InputError(f"node numbers from 0 to {num_nodes - 1}", field=field, value=part)
        spans.append((low, high))
    spans.sort()
    for (_, end), (start, _) in itertools.pairwise(spans):
        if start <= end:
            raise InputError("each node once", field=field, found=f"node {start} twice")
    if not spans:
        return np.zeros(0, dtype=np.int64)
    return np.concatenate([np.arange(a, b + 1, dtype=np.int64) for a, b in spans])


def format_node_set(nodes: Iterable[int]) -> str:
    """Return node numbers as a range list, ascending and without repetition."""
    parts = []
    ordered = np.unique(np.fromiter(nodes, dtype=np.int64))
    for run in np.split(ordered, np.flatnonzero(np.diff(ordered) > 1) + 1) if len(ordered) else ():
        parts.append(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]))
    return ",".join(parts)
