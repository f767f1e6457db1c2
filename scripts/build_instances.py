"""Build instances/machines and instances/snapshots from the code: same command, same bytes."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
from pydantic import BaseModel

from generate_snapshots import FEATURE_DEPTH, XK_BLOCK, generate_snapshot, load_workload
from topoplace.machine import Torus, format_node_set
from topoplace.mapping.objects.builders import BUILDERS
from topoplace.snapshot.files import write_text
from topoplace.snapshot.schema import CubesModel, MachineModel, TorusModel
from topoplace.types import IntArray

INSTANCES = Path(__file__).resolve().parent.parent / "instances"
BUSY_PERCENTS = (0, 20, 30, 40, 50, 60, 70, 80)
SEED = 20140500

# ---- The machines, built from what their papers state --------------------------------------------

_BLADE = 2  # geminis of a blade, neighbours along y
_XK_SERVICE_BLADES = 24
_XE_SERVICE_BLADES = 172
_FEATURE_SERVICE = (76, 94)  # service geminis: 6,912 nodes less 6,760 and less 6,724
_MACHINE_SEED = 2014

_BLUE_WATERS_SOURCE = (
    "Enos 2014: 24x24x24 geminis of two nodes, an XK block of 15x6x24 that wraps, 22,640 XE and "
    "4,224 XK nodes; y links half as fast as x and z. Assumed: the XK block's origin (16,0,0) and "
    "the positions of the 392 service geminis. These are seeded pseudo-random whole blades (two "
    "geminis along y) that agree with every count stated: 24 blades in the XK block, and 6,724 to "
    "6,760 compute nodes (both attained) in the 13 features of six y-planes that avoid the block."
)


_PLAIN = {
    "bluegene_8x8x8": ((8, 8, 8), "Bhatele 2009, Figures 1 and 2: Blue Gene/P"),
    "bluegene_8x8x16": ((8, 8, 16), "Bhatele 2009, Figures 1 and 2: Blue Gene/P"),
    "tpu_v4": ((16, 16, 16), "a TPU v4 pod of 4,096 chips, taken as one fixed torus"),
    "xt3": ((11, 12, 16), "Bhatele 2008: the Cray XT3 BigBen, numbered by coordinates"),
}
"""Shape and source of the machines that are plain tori."""


_PODS = {"tpu_v4_pod": (64, "Jouppi 2023: TPU v4, 64 cubes joined by optical switches")}
"""Cubes of 4x4x4 chips and source of the machines that are pods of cubes."""


def build_machines() -> dict[str, MachineModel]:
    """Return every shipped machine by name."""
    machines: dict[str, MachineModel] = {"blue_waters": blue_waters()}
    for name, (shape, source) in _PLAIN.items():
        machines[name] = TorusModel(
            name=name, shape=list(shape), wrap=[True] * 3, bandwidth=[1] * 3, source=source
        )
    for name, (cubes, source) in _PODS.items():
        machines[name] = CubesModel(kind="cubes", name=name, cubes=cubes, source=source)
    return machines


def blue_waters() -> TorusModel:
    """Return Blue Waters with seeded service positions (see the document's `source`)."""
    torus = Torus((24, 24, 24), bandwidth=(2, 1, 2), nodes_per_router=2)
    service = _service_routers(torus, random.Random(_MACHINE_SEED))
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


def _nodes_of(torus: Torus, routers: IntArray) -> list[int]:
    per = torus.nodes_per_router
    nodes: list[int] = (routers[:, None] * per + np.arange(per)).ravel().tolist()
    return nodes


def _service_routers(torus: Torus, rng: random.Random) -> IntArray:
    """Return service routers, whole blades, ascending."""
    in_block = set(XK_BLOCK.routers(torus).tolist())
    grid = np.arange(torus.num_routers).reshape(torus.shape)
    blades_of_row = [grid[:, y].ravel().tolist() for y in range(0, torus.shape[1], _BLADE)]
    num_block_rows = XK_BLOCK.extents[1] // _BLADE
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
            sum(planes[k : k + FEATURE_DEPTH]) for k in range(len(planes) - FEATURE_DEPTH + 1)
        ]
        if min(features) == least and max(features) == most:
            return rows


# ---- The files -----------------------------------------------------------------------------------


def main() -> None:
    """Write every shipped machine, application and snapshot."""
    machines = build_machines()
    for name, machine in machines.items():
        _write(INSTANCES / "machines" / f"{name}.json", machine)
    for name, build in BUILDERS.items():
        _write(INSTANCES / "applications" / f"{name}.json", build())
    workload, machine = load_workload(), blue_waters()
    for percent in BUSY_PERCENTS:
        snapshot = generate_snapshot(machine, workload, percent, SEED + percent)
        _write(INSTANCES / "snapshots" / f"{snapshot.name}.json", snapshot)


def _write(path: Path, document: BaseModel) -> None:
    raw = document.model_dump(mode="json", exclude_none=True)
    write_text(path, json.dumps(raw, indent=1) + "\n")


if __name__ == "__main__":
    main()
