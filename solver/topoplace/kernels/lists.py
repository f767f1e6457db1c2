"""Compiled steps on lists that the kernels share.

Numba's own, an assignment to a slice or a sort, take a second or two to compile wherever they stand
in a kernel: `write` takes none, `ranks` takes it once.
"""

# Compiled for the array types it is called with; annotations would be noise.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import numpy as np

from topoplace.kernels import kernel


@kernel()
def write(values, to):
    """Overwrite a list by another."""
    for k in range(to.shape[0]):
        to[k] = values[k]


@kernel()
def ranks(keys):
    """Return what sorts the keys."""
    return np.argsort(keys)
