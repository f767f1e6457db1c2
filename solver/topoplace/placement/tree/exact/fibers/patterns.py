"""In what components ranks of a small cube fall that must not meet others of their kind."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

MOST_DIMS = 4


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
    num = 1 << dims
    near = [sum(1 << (corner ^ 1 << dim) for dim in range(dims)) for corner in range(num)]
    around = [0] * (1 << num)  # of a set, itself included
    for corners in range(1, 1 << num):
        lowest = corners & -corners
        around[corners] = around[corners ^ lowest] | near[lowest.bit_length() - 1] | lowest
    most: dict[tuple[int, ...], int] = {}
    for corners in range(1 << num):
        components = []
        rest = corners
        while rest:
            component = rest & -rest
            while (grown := around[component] & corners) != component:
                component = grown
            components.append(component.bit_count())
            rest &= ~component
        name = tuple(sorted(components))
        apart = num - around[corners].bit_count()
        most[name] = max(most.get(name, 0), apart)
    return tuple(Pattern(name, apart) for name, apart in sorted(most.items()))
