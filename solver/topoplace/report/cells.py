"""What stands on every router or node, and in which colour: the same in all pictures.

A job has the colour of its rank by size in the queue, whatever else starts. Everything else is one
grey, more or less of it over the paper, so that a picture without paper fits light and dark pages.
"""

from __future__ import annotations

import colorsys
import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from topoplace.machine import Prism, format_node_set, parse_node_set
from topoplace.mapping.problem import MappingProblem
from topoplace.report.answer import starts_of
from topoplace.snapshot.cubes_state import CubesState
from topoplace.snapshot.hierarchy_state import HierarchyState
from topoplace.snapshot.tree_state import TreeState
from topoplace.types import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from topoplace.report.summary import AnyResult
    from topoplace.result import PlacementResult
    from topoplace.result.cubes import CubesResult
    from topoplace.result.hierarchy import HierarchyResult
    from topoplace.result.mapping import MappingResult
    from topoplace.result.objects import ObjectsResult
    from topoplace.result.tree import AllocationResult
    from topoplace.snapshot.state import SnapshotState
    from topoplace.study.case import State

RGB = tuple[float, float, float]

FREE, RUNNING, UNUSABLE, DOWN, NOTHING = -1, -2, -3, -4, -5
"""Codes of routers without a started job; `NOTHING` is where a picture has no router."""

GREY_NAMES = {FREE: "free", RUNNING: "running", UNUSABLE: "not usable", DOWN: "down"}
CLASS_COLOUR = "#e5342b"
GREY = "#6b7077"
_OPACITY = {FREE: 0.0, RUNNING: 0.32, UNUSABLE: 0.6, DOWN: 1.0}
_PALETTE, _SAME_BITS = 256, 0xF8F8F8F8
_NOTHING = (0.29, 0.50, 0.71, 0.5)
# Of middle lightness, for white and near-black paper, and none like the red of classes.
# fmt: off
_JOB_COLOURS = (
    "#1f77b4", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf",
    "#a0624f", "#e377c2", "#4a5cff", "#8fbf00", "#0f8a6c",
    "#d12a94", "#6fb1ff", "#c58b3f", "#1fd69a", "#8250ff",
    "#ff9f80", "#2f8fa3", "#b8a5ff", "#6d8f1a", "#ff5fa2",
)
_FAR_COLOURS = (
    "#d5ecd4", "#aeddb0", "#7fc9ab", "#52b1b0", "#368fb5",
    "#3b6cb0", "#4f4fa8", "#6a329b", "#8d1f86", "#a3155f",
)
# fmt: on
NUM_FAR = len(_FAR_COLOURS)


def job_colour(rank: int) -> RGB:
    """Return the colour of a request by its rank by size in the queue."""
    if rank < len(_JOB_COLOURS):
        return rgb(_JOB_COLOURS[rank])
    # The golden angle never repeats a hue; lightness alternates to part near neighbours.
    return colorsys.hls_to_rgb((0.55 + 0.618034 * rank) % 1, (0.4, 0.55, 0.68)[rank % 3], 0.65)


def far_colour(code: int) -> RGB:
    """Return the colour of a router of a mapping, the darker the farther its messages go."""
    return rgb(_FAR_COLOURS[code])


def colour_of(
    code: int, inked: Callable[[int], RGB] = job_colour
) -> tuple[float, float, float, float]:
    """Return red, green, blue and opacity of a code; `inked` has the colours of codes from 0 on."""
    if code == NOTHING:
        return _NOTHING
    return (*inked(code), 1.0) if code >= 0 else (*rgb(GREY), _OPACITY[code])


def colours_of(codes: IntArray, inked: Callable[[int], RGB] = job_colour) -> FloatArray:
    """Return red, green, blue and opacity of every cell, shape ``(*codes.shape, 4)``."""
    kinds, where = np.unique(codes, return_inverse=True)
    table = [colour_of(int(code), inked) for code in kinds]
    return np.array(table).reshape(-1, 4)[where.reshape(codes.shape)]


def rgb(text: str) -> RGB:
    """Return a ``#rrggbb`` colour as three numbers from 0 to 1."""
    red, green, blue = (int(text[k : k + 2], 16) / 255 for k in (1, 3, 5))
    return red, green, blue


def palette_png(pixels: NDArray[np.uint8]) -> bytes:
    """Return a PNG file of pixels, ``(height, width, 4)``, with a palette of 256 at most.

    Of more colours, the most frequent ones are kept, one of those that agree in their first bits;
    others become the nearest. Such a file has a third of the bytes of any other.
    """
    from PIL import Image  # noqa: PLC0415 - heavy
    from scipy.spatial import KDTree  # noqa: PLC0415 - heavy

    keys = np.ascontiguousarray(pixels).view(np.uint32)[..., 0]
    found, where, counts = np.unique(keys, return_inverse=True, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    alike = found[order] & (_SAME_BITS if len(found) > _PALETTE else 0xFFFFFFFF)
    _, first = np.unique(alike, return_index=True)
    palette = found[order[np.sort(first)[:_PALETTE]]].view(np.uint8).reshape(-1, 4)
    _, nearest = KDTree(palette).query(found.view(np.uint8).reshape(-1, 4))
    image = Image.fromarray(nearest.astype(np.uint8)[where.reshape(keys.shape)])
    image.putpalette(palette.tobytes(), "RGBA")
    stream = io.BytesIO()
    image.save(stream, "png", optimize=True)
    return stream.getvalue()


@dataclass(frozen=True)
class Cells:
    """The routers of a torus or mapping, or the nodes of a tree, by what holds them.

    Attributes
    ----------
    codes
        Of a job, of how far the messages of a mapping's router go, or `FREE`, `RUNNING`,
        `UNUSABLE`, `DOWN`; shape ``torus.shape`` or ``(num,)``, as `owner` and `special`.
    owner
        Which job holds a router, started or running; -1 if none.
    special, special_name
        Whether the router is of a class that is not the default one; the names of such classes.
    jobs
        What a legend says of started jobs, by code: their rank by size in the queue, from 0 on.
    tasks
        Of a mapping, the tasks on routers.
    inked
        The colours of codes from 0 on.
    """

    codes: IntArray
    owner: IntArray
    special: BoolArray
    special_name: str = ""
    jobs: Mapping[int, str] = field(default_factory=dict)
    tasks: Mapping[int, str] = field(default_factory=dict)
    inked: Callable[[int], RGB] = job_colour

    @property
    def colours(self) -> FloatArray:
        """Red, green, blue and opacity, shape ``(*codes.shape, 4)``."""
        return colours_of(self.codes, self.inked)


def cells_of(result: AnyResult, state: State) -> Cells:
    """Return what stands on every router or node of an instance by a result."""
    of: Callable[..., Cells] = _of_placement
    if isinstance(state, MappingProblem):
        of = _of_mapping
    elif isinstance(state, TreeState):
        of = _of_allocation
    elif isinstance(state, HierarchyState):
        of = _of_hierarchy
    elif isinstance(state, CubesState):
        of = _of_cubes
    return of(result, state)


def _of_placement(result: PlacementResult, state: SnapshotState) -> Cells:
    """Return what stands on every router of a torus.

    A service or down router inside a job's prism stays what it is; all other routers of a prism
    carry the job's code, the idle ones too. Of several jobs on one router the smallest is shown.
    """
    torus = state.torus
    node_class = state.node_class.reshape(torus.num_routers, -1)
    up = np.ones(torus.num_nodes, dtype=bool)
    up[parse_node_set(state.snapshot.down, torus.num_nodes)] = False
    codes = np.where(up.reshape(torus.num_routers, -1).any(axis=1), FREE, DOWN)
    codes[(node_class < 0).all(axis=1)] = UNUSABLE
    fixed = codes != FREE
    owner = np.full(torus.num_routers, -1, dtype=np.int64)
    for idx, running in enumerate(state.running, start=len(state.queue)):
        codes[running.routers[~fixed[running.routers]]] = RUNNING
        owner[running.routers] = idx
    ranks, jobs = _ranks(state.queue), {}
    sizes = {request.id: request.nodes for request in state.queue}
    started = result.solution.placements if result.solution else []
    for start in sorted(started, key=lambda start: ranks[start.request]):
        code = ranks[start.request]
        jobs[code] = f"{start.request}: {sizes[start.request]:,}"
        held = parse_node_set(start.nodes, torus.num_nodes) // torus.nodes_per_router
        if start.prism is not None:
            prisms = [start.prism, *(start.other_prisms or ())]
            boxes = [Prism(tuple(p.origin), tuple(p.extents)) for p in prisms]
            held = np.concatenate([box.routers(torus) for box in boxes])
            shapes = dict.fromkeys("x".join(map(str, box.extents)) for box in boxes)
            jobs[code] += f", {' and '.join(shapes)}"
        codes[held[~fixed[held]]] = code
        owner[held] = code
    special = np.asarray((node_class > 0).any(axis=1)).reshape(torus.shape)
    codes = codes.reshape(torus.shape)
    block = np.ix_(*map(np.unique, np.nonzero(special)))
    if (special | (codes == UNUSABLE))[block].all():
        special[block] = True
    names = ", ".join(state.classes[1:]).upper()
    return Cells(codes, owner.reshape(torus.shape), special, names, jobs)


def _of_allocation(result: AllocationResult, state: TreeState) -> Cells:
    """Return what stands on every node of a tree."""
    codes = np.where(state.free, FREE, DOWN)
    owner = np.full(codes.shape, -1, dtype=np.int64)
    for idx, running in enumerate(state.running, start=len(state.requests)):
        codes[running.nodes] = RUNNING
        owner[running.nodes] = idx
    numbers = {name: idx for idx, name in enumerate(state.tree.node_names)}
    ranks, jobs = _ranks(state.requests), {}
    for start in result.solution.allocations if result.solution else []:
        code = ranks[start.request]
        held = [numbers[name] for name in start.nodes]
        codes[held] = owner[held] = code
        jobs[code] = f"{start.request}: {len(start.nodes):,}"
    return Cells(codes, owner, np.zeros(codes.shape, dtype=bool), jobs=dict(sorted(jobs.items())))


def _of_hierarchy(result: HierarchyResult, state: HierarchyState) -> Cells:
    """Return what stands on every host of a hierarchy; of several jobs the smallest is shown."""
    codes = np.where(state.occupied, RUNNING, FREE)
    codes[~state.free.any(axis=1) & ~state.occupied] = DOWN
    owner = np.full(codes.shape, -1, dtype=np.int64)
    ranks, jobs = _ranks(state.requests), {}
    for start in sorted(starts_of(result), key=lambda start: ranks[start.request]):
        code = ranks[start.request]
        held = sorted(set(start.nodes))
        codes[held] = owner[held] = code
        jobs[code] = f"{start.request}: {len(start.nodes):,}"
    return Cells(codes, owner, np.zeros(codes.shape, dtype=bool), jobs=dict(sorted(jobs.items())))


def _of_cubes(result: CubesResult, state: CubesState) -> Cells:
    """Return what stands on every chip of a pod of cubes."""
    codes = np.where(state.free, FREE, DOWN).ravel()
    owner = np.full(codes.shape, -1, dtype=np.int64)
    for idx, chips in enumerate(state.held, start=len(state.requests)):
        codes[chips], owner[chips] = RUNNING, idx
    ranks, jobs = _ranks(state.requests), {}
    for start in starts_of(result):
        code, held = ranks[start.request], list(start.nodes)
        codes[held] = owner[held] = code
        jobs[code] = f"{start.request}: {len(held):,}"
    return Cells(codes, owner, np.zeros(codes.shape, dtype=bool), jobs=dict(sorted(jobs.items())))


def _of_mapping(result: MappingResult | ObjectsResult, problem: MappingProblem) -> Cells:
    """Return how far the messages of every router of a mapping go, and the tasks on it.

    The code of a router with tasks is the mean of the hops of the bytes that it sends and receives,
    on a square-root scale from 0 to `NUM_FAR`, the machine's diameter, so that pictures of one
    machine compare; others are `FREE` or `UNUSABLE`.
    """
    machine, graph = problem.machine, problem.graph
    codes = np.where(problem.capacity > 0, FREE, UNUSABLE)
    nobody, plain = np.full(codes.shape, -1), np.zeros(codes.shape, dtype=bool)
    if result.solution is None:
        return Cells(codes, nobody, plain, inked=far_colour)
    routers = problem.routers_of(np.asarray(result.solution.nodes, dtype=np.int64))
    ends = routers[graph.sources], routers[graph.targets]
    hops = machine.hops(*ends).astype(float)
    total, weighted = np.zeros(machine.num_routers), np.zeros(machine.num_routers)
    for end in ends:
        total += np.bincount(end, graph.bytes, machine.num_routers)
        weighted += np.bincount(end, graph.bytes * hops, machine.num_routers)
    order = np.argsort(routers, kind="stable")
    used, first = np.unique(routers[order], return_index=True)
    mean = weighted[used] / np.maximum(total[used], 1)
    share = np.sqrt(mean / max(1, machine.diameter))
    codes[used] = np.minimum(NUM_FAR * share, NUM_FAR - 1).astype(np.int64)
    names = map(format_node_set, np.split(order, first[1:]))
    tasks = dict(zip(used.tolist(), names, strict=True))
    return Cells(codes, nobody, plain, tasks=tasks, inked=far_colour)


def _ranks(queue: tuple[Any, ...]) -> dict[str, int]:
    """Return the rank of every request by size, the largest 0; of one size in queue order."""
    by_size = sorted((-request.nodes, place) for place, request in enumerate(queue))
    return {queue[place].id: rank for rank, (_, place) in enumerate(by_size)}
