"""Names of array types that every part of the package uses."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

Levels = tuple[tuple[str, str], ...]
"""Name and sense (``max`` or ``min``) of every level of an objective."""
