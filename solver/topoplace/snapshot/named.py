"""The machines topoplace ships, built from what their papers state."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np

from topoplace.machine import Prism, Torus, format_node_set
from topoplace.snapshot.schema import PrismModel, TorusModel

XK_BLOCK = Prism((16, 0, 0), (15, 6, 24))
"""The XK region of Blue Waters: its size is Enos 2014's, its origin is ours."""

_BLADE = 2  # geminis of a blade, neighbours along y
_FEATURE_DEPTH = 6  # y-planes of a node feature
_XK_SERVICE_BLADES = 24
_XE_SERVICE_BLADES = 172
_FEATURE_SERVICE = (76, 94)  # service geminis: 6,912 nodes less 6,760 and less 6,724
_SEED = 2014

_BLUE_WATERS_SOURCE = (
    "Enos 2014: 24x24x24 geminis of two nodes, an XK block of 15x6x24 that wraps, 22,640 XE and "
    "4,224 XK nodes; y links half as fast as x and z. Assumed: the XK block's origin (16,0,0) and "
    "the positions of the 392 service geminis. These are seeded pseudo-random whole blades (two "
    "geminis along y) that agree with every count stated: 24 blades in the XK block, and 6,724 to "
    "6,760 compute nodes (both attained) in the 13 features of six y-planes that avoid the block."
)


def build_machines() -> dict[str, TorusModel]:
    """Return every shipped machine by name."""
    builders: dict[str, Callable[[], TorusModel]] = {
        "blue_waters": blue_waters,
        "bluegene_8x8x8": lambda: _plain(
            "bluegene_8x8x8", (8, 8, 8), "Bhatele 2009, Figures 1 and 2: Blue Gene/P"
        ),
        "bluegene_8x8x16": lambda: _plain(
            "bluegene_8x8x16", (8, 8, 16), "Bhatele 2009, Figures 1 and 2: Blue Gene/P"
        ),
        "tpu_v4": lambda: _plain(
            "tpu_v4", (16, 16, 16), "a TPU v4 pod of 4,096 chips, taken as one fixed torus"
        ),
        "xt3": lambda: _plain(
            "xt3", (11, 12, 16), "Bhatele 2008: the Cray XT3 BigBen, numbered by coordinates"
        ),
    }
    return {name: build() for name, build in builders.items()}


def _plain(name: str, shape: tuple[int, ...], source: str) -> TorusModel:
    return TorusModel(
        name=name,
        shape=list(shape),
        wrap=[True] * len(shape),
        bandwidth=[1] * len(shape),
        source=source,
    )


def blue_waters() -> TorusModel:
    """Return Blue Waters with seeded service positions (see the document's `source`)."""
    torus = Torus((24, 24, 24), bandwidth=(2, 1, 2), nodes_per_router=2)
    service = _service_routers(torus, random.Random(_SEED))
    block = np.setdiff1d(XK_BLOCK.routers(torus), service)
    return TorusModel(
        name="blue_waters",
        shape=list(torus.shape),
        wrap=list(torus.wrap),
        bandwidth=list(torus.bandwidth),
        nodes_per_router=torus.nodes_per_router,
        default_class="xe",
        classes={"xk": format_node_set(_nodes_of(torus, block))},
        service=format_node_set(_nodes_of(torus, service)),
        source=_BLUE_WATERS_SOURCE,
    )


def blue_waters_features() -> dict[str, list[PrismModel]]:
    """Return the 24x6x24 node features s1 to s13, which avoid the XK planes (Enos 2014, II.B.1)."""
    first = XK_BLOCK.origin[1] + XK_BLOCK.extents[1]
    return {
        f"s{k + 1}": [PrismModel(origin=[0, first + k, 0], extents=[24, _FEATURE_DEPTH, 24])]
        for k in range(24 - first - _FEATURE_DEPTH + 1)
    }


def _nodes_of(torus: Torus, routers: np.typing.NDArray[np.int64]) -> list[int]:
    per = torus.nodes_per_router
    nodes: list[int] = (routers[:, None] * per + np.arange(per)).ravel().tolist()
    return nodes


def _service_routers(torus: Torus, rng: random.Random) -> np.typing.NDArray[np.int64]:
    """Return service routers, whole blades, ascending."""
    in_block = set(XK_BLOCK.routers(torus).tolist())
    num_x, num_y, num_z = torus.shape
    block_planes = XK_BLOCK.extents[1]
    blades_of_row = [
        [torus.router((x, y, z)) for x in range(num_x) for z in range(num_z)]
        for y in range(0, num_y, _BLADE)
    ]
    num_block_rows = block_planes // _BLADE
    beside = [b for row in blades_of_row[:num_block_rows] for b in row]
    per_row = _blades_per_row(rng, len(blades_of_row) - num_block_rows)
    blades = rng.sample([b for b in beside if b in in_block], _XK_SERVICE_BLADES)
    blades += rng.sample(
        [b for b in beside if b not in in_block], _XE_SERVICE_BLADES - sum(per_row)
    )
    for row, count in zip(blades_of_row[num_block_rows:], per_row, strict=True):
        blades += rng.sample(row, count)
    first = np.asarray(sorted(blades), dtype=np.int64)
    return np.sort(np.concatenate([first, first + torus.strides[1]]))


def _blades_per_row(rng: random.Random, num_rows: int) -> list[int]:
    """Draw service blades per row of blades until the features hold what Enos 2014 states."""
    least, most = _FEATURE_SERVICE
    while True:
        rows = [rng.randrange(10, 20) for _ in range(num_rows)]
        planes = [count for count in rows for _ in range(_BLADE)]
        features = [
            sum(planes[k : k + _FEATURE_DEPTH]) for k in range(len(planes) - _FEATURE_DEPTH + 1)
        ]
        if min(features) == least and max(features) == most:
            return rows
