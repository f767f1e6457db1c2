"""In what components ranks of a small cube fall that must not meet others of their kind."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from topoplace.placement.tree.exact.fibers.kernels.sets import components_of_sets

MOST_DIMS = 4
"""Of a cube: the corners have 2^16 sets."""


class Pattern(NamedTuple):
    """Components that no pair joins, and how many ranks are neither in nor next to one.

    Attributes
    ----------
    components
        Their sizes, ascending.
    apart
        The most ranks that may be apart, of any choice of such components.
    """

    components: tuple[int, ...]
    apart: int


@lru_cache(maxsize=MOST_DIMS + 1)
def patterns(dims: int) -> tuple[Pattern, ...]:
    """Return the components of all sets of corners of a cube, each with the most apart."""
    corners = np.arange(1 << dims)
    near = sum((1 << (corners ^ 1 << dim) for dim in range(dims)), np.zeros_like(corners))
    found = components_of_sets(near, len(corners))
    most: dict[tuple[int, ...], int] = {}
    for apart, *numbers in np.unique(found, axis=0).tolist():
        components = tuple(
            size for size, number in enumerate(numbers, start=1) for _ in range(number)
        )
        most[components] = max(most.get(components, 0), apart)
    return tuple(Pattern(components, apart) for components, apart in sorted(most.items()))
