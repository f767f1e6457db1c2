"""Cases of the study of pencils: grids, regions, and what is unusable in them."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np

from study_mapping_gaps import SNAPSHOTS, problem_of
from topoplace.machine import Prism, Torus
from topoplace.mapping.layouts import ideal_hop_bytes
from topoplace.mapping.onto import Places, load_places
from topoplace.mapping.pencils.space import admissible_layouts
from topoplace.snapshot.machines import load_torus
from topoplace.snapshot.schema import TorusModel
from topoplace.snapshot.state import torus_of
from topoplace.types import IntArray

SCATTERED, PRISMS, SNAPSHOT = "scattered", "prisms", "snapshot"
"""What is unusable: single routers, prisms of them, what a snapshot says."""

PERCENTS = (0, 1, 2, 3, 5, 8)
HOLE_EXTENTS = (1, 3)  # of a prism of unusable routers, least and largest, in every dimension


@dataclass(frozen=True)
class Grid:
    """A grid with its most tasks per node, and the region it is laid into.

    `nodes_per_router` is 2 on Blue Waters; with 1 the grid is one of routers.
    """

    shape: tuple[int, ...]
    tasks_per_node: int
    region: tuple[int, int, int]
    nodes_per_router: int = 2

    @property
    def name(self) -> str:
        """Its extents."""
        return "x".join(map(str, self.shape))


GRIDS = (
    Grid((32, 32, 32), 32, (12, 8, 12)),
    Grid((110, 120), 16, (12, 4, 12)),
    Grid((168, 132), 16, (12, 8, 12)),
    Grid((11, 12, 11, 12), 24, (12, 4, 12)),
    Grid((21, 2, 21, 24), 12, (24, 2, 24)),
    Grid((24, 6, 20), 1, (24, 6, 24), 1),
)
"""Enos 2014, Tables III to VIII, with the regions of Tables III to VI; and a grid of routers whose
layout is 24x6x20 in depth 24."""


@dataclass(frozen=True)
class Case:
    """A grid and what is unusable: a snapshot's name, or a seeded draw in the grid's region."""

    setting: str
    grid: Grid
    percent: int = 0
    seed: int = 0
    snapshot: str = ""


def unusable(torus: Torus, routers: IntArray, case: Case) -> IntArray:
    """Draw the unusable ones of a region's routers.

    Prisms have extents drawn evenly from `HOLE_EXTENTS`, and lie apart; one that would exceed the
    share is drawn again, so that the share is met to a router.
    """
    rng = np.random.default_rng([case.seed, case.percent])
    target = round(case.percent * len(routers) / 100)
    if case.setting == SCATTERED:
        return rng.choice(routers, target, replace=False)
    taken = np.empty(0, dtype=np.int64)
    low, high = HOLE_EXTENTS
    while len(taken) < target:
        extents = tuple(rng.integers(low, high, endpoint=True, size=torus.num_dims).tolist())
        hole = Prism(torus.coords(int(rng.choice(routers))), extents).routers(torus)
        inside = np.isin(hole, routers).all()
        if inside and len(taken) + len(hole) <= target and not np.isin(hole, taken).any():
            taken = np.concatenate([taken, hole])
    return taken


def everywhere(grid: Grid, setting: str) -> Places:
    """Return the nodes of a grid's region, or of Blue Waters, with nothing unusable."""
    bare = {"name": "bare", "service": "", "classes": {}, "nodes_per_router": grid.nodes_per_router}
    machine = load_torus("blue_waters").model_copy(update=bare)
    nodes = np.arange(torus_of(machine).num_nodes)
    whole = Places(machine, nodes, "nothing unusable")
    return whole if setting == SNAPSHOT else whole.within("x".join(map(str, grid.region)))


def allocation_of(case: Case) -> Places:
    """Return the usable nodes of a case."""
    if case.setting == SNAPSHOT:
        return load_places(str(SNAPSHOTS / f"{case.snapshot}.json"))
    whole = everywhere(case.grid, case.setting)
    assert isinstance(whole.machine, TorusModel)
    routers = whole.nodes // case.grid.nodes_per_router
    bad = unusable(torus_of(whole.machine), np.unique(routers), case)
    return Places(whole.machine, whole.nodes[~np.isin(routers, bad)], case.setting)


@cache
def needed(grid: Grid, setting: str) -> int:
    """Return the least hop-bytes of any layout with nothing unusable."""
    problem = problem_of(grid.shape, False, grid.tasks_per_node, everywhere(grid, setting))
    assert problem.grid is not None
    layouts = admissible_layouts(problem)
    return min(ideal_hop_bytes(layout, problem.grid, problem.torus) for layout in layouts)


def cases(options: argparse.Namespace) -> Iterator[Case]:
    """Yield every case of a study."""
    chosen = [grid for grid in GRIDS if grid.name in options.grids]
    for grid in chosen:
        for percent in options.percents:
            for setting in (SCATTERED, PRISMS) if percent else (SCATTERED,):
                for seed in range(options.seeds if percent else 1):
                    yield Case(setting, grid, percent, options.seed + seed)
    for name in options.snapshots:
        for grid in chosen:
            if grid.nodes_per_router == 2:  # that of the snapshots
                yield Case(SNAPSHOT, grid, snapshot=f"blue_waters_{name}")
