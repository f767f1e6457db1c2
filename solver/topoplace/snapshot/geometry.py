"""The geometry syntax of requests: ``12x2x12/10x5x10:maxz=12`` (Fiedler 2014)."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from topoplace.errors import InputError, number_of
from topoplace.machine import Torus

_SHAPE = re.compile(r"(\d{1,6}(?:x\d{1,6})*)(?::maxz=(\d{1,6}))?")


@dataclass(frozen=True)
class Geometry:
    """One alternative of a geometry request.

    Without `max_depth` the prism has exactly these extents. With it, the prism has the extents
    of the footprint (all but the last) and any depth from ``extents[-1]`` to `max_depth` along
    the last dimension, such that every pencil of the footprint holds at least ``extents[-1]``
    *whole* routers: routers all of whose nodes are usable by the job. The job then takes its
    nodes on the first ``extents[-1]`` whole routers of each pencil.
    """

    extents: tuple[int, ...]
    max_depth: int | None = None

    @property
    def text(self) -> str:
        """The alternative as it is written in a request."""
        body = "x".join(map(str, self.extents))
        return body if self.max_depth is None else f"{body}:maxz={self.max_depth}"

    @property
    def depths(self) -> range:
        """Admissible extents in the last dimension."""
        last = self.extents[-1]
        return range(last, (self.max_depth or last) + 1)


def parse_geometry(text: str, torus: Torus, nodes: int, field: str) -> tuple[Geometry, ...]:
    """Return the alternatives of a geometry string, in the order written.

    Raises
    ------
    InputError
        If the text is malformed or an alternative cannot hold the job on this machine.
    """
    alternatives = []
    for part in text.split("/"):
        match = _SHAPE.fullmatch(part.strip())
        if match is None:
            raise InputError('shapes such as "12x2x12/10x5x10:maxz=12"', field=field, value=part)
        extents = tuple(map(int, match[1].split("x")))
        max_depth = int(match[2]) if match[2] else None
        if len(extents) != torus.num_dims:
            raise InputError(
                f"shapes of {number_of(torus.num_dims, 'extent')}", field=field, value=part
            )
        reach = (*extents[:-1], max_depth or extents[-1])
        if min(extents) < 1 or any(e > n for e, n in zip(reach, torus.shape, strict=True)):
            raise InputError(f"shapes that fit the machine, {torus.text}", field=field, value=part)
        if max_depth is not None and max_depth < extents[-1]:
            raise InputError("maxz no smaller than the last extent", field=field, value=part)
        if math.prod(extents) * torus.nodes_per_router < nodes:
            raise InputError(
                f"shapes that hold the {number_of(nodes, 'node')} requested, "
                f"{torus.nodes_per_router} per router",
                field=field,
                value=part,
            )
        alternatives.append(Geometry(extents, max_depth))
    return tuple(alternatives)
