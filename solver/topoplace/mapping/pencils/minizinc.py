"""Pencil selection by the reference MiniZinc model, `models/pencil_layout.mzn` (DESIGN 7).

It is there to be compared with, on windows of a few dozen cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from topoplace.errors import InputError, TopoplaceError
from topoplace.mapping.graph import IntArray
from topoplace.mapping.pencils.terms import CellTerms
from topoplace.mapping.pencils.window import PencilWindow
from topoplace.placement.minizinc_program import checks_in, run_minizinc
from topoplace.snapshot.machines import data_folder

MAX_VALUE = 1 << 30
"""Largest bytes x hops accepted: finite-domain solvers count in 32 bits."""


@dataclass(frozen=True)
class ModelSelection:
    """What the model found.

    Attributes
    ----------
    selection
        Position of every level, shape ``(num_pencils, levels)``.
    hop_bytes
        Bytes x hops, those across the pencils included.
    checks
        What the checker model said of it, if it was asked.
    """

    selection: IntArray
    hop_bytes: int
    checks: tuple[str, ...]


def minizinc_selection(
    window: PencilWindow, terms: CellTerms, *, checked: bool = False, arguments: Sequence[str] = ()
) -> ModelSelection | None:
    """Return a best selection of a window by the MiniZinc model; None if the window has none.

    Raises
    ------
    InputError
        If the values are too large for the model.
    MissingToolError
        If the `minizinc` program is not installed.
    """
    largest = int(terms.weight.sum()) * window.depth
    if largest > MAX_VALUE:
        raise InputError(
            f"bytes x positions of at most {MAX_VALUE} for MiniZinc", field="bytes", value=largest
        )
    model = data_folder("models") / "pencil_layout.mzn"
    checker = (str(model.with_name("pencil_layout.mzc.mzn")),) if checked else ()
    messages = run_minizinc(
        model, data_of(window, terms), includes=model.parent, arguments=(*arguments, *checker)
    )
    status = [m["status"] for m in messages if m["type"] == "status"][-1]
    if status == "UNSATISFIABLE":
        return None
    if status != "OPTIMAL_SOLUTION":
        raise TopoplaceError(f"minizinc ended with {status}")
    found = [m["output"]["json"] for m in messages if m["type"] == "solution"][-1]
    return ModelSelection(
        np.asarray(found["position"], dtype=np.int64),
        terms.fixed + int(found["_objective"]),
        checks_in(messages),
    )


def data_of(window: PencilWindow, terms: CellTerms) -> dict[str, Any]:
    """Return the model's data."""
    return {
        "num_pencils_in": window.num_pencils,
        "levels_in": window.levels,
        "depth_in": window.depth,
        "ring_in": terms.ring or 0,
        "usable_in": [{"set": np.flatnonzero(row).tolist()} for row in window.usable],
        "first": terms.low.tolist(),
        "second": terms.high.tolist(),
        "weight_in": terms.weight.tolist(),
    }
