"""Which routers a request's prism must cover and which it must not, as `cover` branches say."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from topoplace.certify.windows import num_origins
from topoplace.machine import Torus


@dataclass(frozen=True)
class Covers:
    """Routers inside, and routers outside; none if a prism may be anywhere."""

    inside: frozenset[int] = frozenset()
    outside: frozenset[int] = frozenset()

    def split(self, router: int, *, inside: bool) -> Covers:
        """Return one side of a branch on a router."""
        if inside:
            return replace(self, inside=self.inside | {router})
        return replace(self, outside=self.outside | {router})


ANYWHERE = Covers()


def origins_that_cover(
    torus: Torus, routers: frozenset[int], dim: int, extent: int
) -> NDArray[np.bool_]:
    """Mark the canonical origins along a dimension whose interval covers all of some routers."""
    n = torus.shape[dim]
    origins = np.arange(num_origins(n, torus.wrap[dim], extent))
    coords = np.array(sorted(routers), dtype=np.int64) // torus.strides[dim] % n
    return np.asarray(((coords[:, None] - origins) % n < extent).all(axis=0))
