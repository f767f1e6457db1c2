"""QAPLIB instances: one matrix of flows, one of distances.

The file holds n and two n x n matrices A and B, its objective being the sum of
``a[i, j] * b[p(i), p(j)]`` over all ordered pairs i, j. With A as directed bytes and B as directed
distances (or the other way round) that sum is hop-bytes as we define it, so that objectives are the
listed values. Where both matrices are symmetric, every unordered pair counts twice in both.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from topoplace.errors import InputError, unknown_name
from topoplace.machine.matrix import MAX_DISTANCE, MAX_PLACES
from topoplace.mapping.graph import IntArray
from topoplace.mapping.graphfiles._fields import MAX_BYTES, Tokens
from topoplace.mapping.graphfiles.matrix import graph_of_matrix, matrix_model
from topoplace.snapshot.application import GraphApplication, MatrixModel
from topoplace.snapshot.readers.lines import name_of

FLOWS = ("first", "second")


@dataclass(frozen=True)
class Qaplib:
    """A QAPLIB instance.

    Attributes
    ----------
    file
        Where it was read from.
    flows, distances
        The two matrices, shape ``(n, n)``, not negative.
    """

    file: str
    flows: IntArray
    distances: IntArray

    @property
    def graph(self) -> GraphApplication:
        """The flows as directed bytes between tasks; their diagonal is ignored."""
        return graph_of_matrix(self.flows)

    @property
    def machine(self) -> MatrixModel:
        """The distances as a machine; `InputError` if they do not suit one."""
        largest = int(self.distances.max())
        if largest > MAX_DISTANCE:
            raise InputError(
                f"distances up to {MAX_DISTANCE}", file=self.file, field="distances", value=largest
            )
        return matrix_model(self.distances, name_of(self.file), self.file)


def read_qaplib(path: str | Path, flow: str | None = None) -> Qaplib:
    """Read a QAPLIB ``.dat`` file: n, then two n x n matrices; line ends mean nothing.

    Parameters
    ----------
    path
        The file.
    flow
        ``first`` or ``second``: which matrix is the flows, the other one being the distances. The
        files keep to no order; by default the flows are the matrix with more zeros off the
        diagonal, of equally many the second.

    Raises
    ------
    InputError
        Naming file, line and value.
    """
    if flow is not None and flow not in FLOWS:
        raise unknown_name(flow, FLOWS, field="--flow")
    tokens = Tokens.of(path)
    size = tokens.take("the size n", MAX_PLACES, least=1)
    first, second = (_matrix(tokens, size, name) for name in FLOWS)
    tokens.end()
    if flow is None:
        flow = "first" if _zeros(first) > _zeros(second) else "second"
    return Qaplib(str(path), *((first, second) if flow == "first" else (second, first)))


def _matrix(tokens: Tokens, size: int, name: str) -> IntArray:
    what = f"entry of the {name} {size} x {size} matrix"
    entries = [tokens.take(what, MAX_BYTES) for _ in range(size * size)]
    return np.array(entries, dtype=np.int64).reshape(size, size)


def _zeros(matrix: IntArray) -> int:
    return int((matrix == 0).sum() - (np.diag(matrix) == 0).sum())
