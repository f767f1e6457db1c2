"""Hypothesis strategies for small machines, routers and prisms."""

from __future__ import annotations

import math

from hypothesis import strategies as st

from topoplace.machine import Prism, Torus


@st.composite
def tori(draw: st.DrawFn, *, max_routers: int = 150) -> Torus:
    """A torus, mesh or mixture of 1 to 4 dimensions."""
    sizes = st.lists(st.integers(1, 8), min_size=1, max_size=4)
    shape = tuple(draw(sizes.filter(lambda sizes: math.prod(sizes) <= max_routers)))
    wrap = tuple(draw(st.booleans()) for _ in shape)
    bandwidth = tuple(draw(st.integers(1, 3)) for _ in shape)
    return Torus(shape, wrap, bandwidth, draw(st.integers(1, 3)))


@st.composite
def tori_with_routers(draw: st.DrawFn, num: int) -> tuple[Torus, list[int]]:
    """A machine and some of its routers, not always different ones."""
    torus = draw(tori())
    return torus, [draw(st.integers(0, torus.num_routers - 1)) for _ in range(num)]


@st.composite
def tori_with_prism(draw: st.DrawFn) -> tuple[Torus, Prism]:
    """A machine and a canonical prism on it."""
    torus = draw(tori(max_routers=60))
    origin, extents = [], []
    for n, wraps in zip(torus.shape, torus.wrap, strict=True):
        e = draw(st.integers(1, n))
        last = 0 if e == n else n - 1 if wraps else n - e
        extents.append(e)
        origin.append(draw(st.integers(0, last)))
    return torus, Prism(tuple(origin), tuple(extents))
