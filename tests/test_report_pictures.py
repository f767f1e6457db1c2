"""Pictures: what is drawn agrees with the result, router by router."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.image import imread
from mpl_toolkits.mplot3d.art3d import Poly3DCollection

from small_snapshot import small_document
from topoplace.placement.problem import PlacementProblem
from topoplace.report.cells import DOWN, FREE, RUNNING, SERVICE, CellMap, cell_map
from topoplace.report.colours import cell_colours, job_colour, rgb
from topoplace.report.torus import legend_handles, placement_figure, title, write_picture
from topoplace.report.voxels import ELEVATION
from topoplace.result import PlacementResult
from topoplace.snapshot import Snapshot, SnapshotState, load_snapshot, prepare
from topoplace.snapshot.machines import data_folder, load_machine
from topoplace.solving import Options, solve


def solved(**changes: Any) -> tuple[PlacementResult, SnapshotState]:
    state = prepare(Snapshot.model_validate(small_document() | changes))
    return solve(state, "first-fit", Options()), state


def on_machine(spec: str) -> tuple[PlacementResult, SnapshotState]:
    queue = [{"id": "a", "nodes": 4}, {"id": "b", "nodes": 3}]
    running = [{"id": "r", "nodes": "1"}]
    machine = load_machine(spec).model_dump()
    return solved(machine=machine, queue=queue, running=running, down="2")


def test_every_router_is_what_the_result_says() -> None:
    result, state = solved()
    cells = cell_map(result, state)
    assert cells.codes[0, 0, 0] == SERVICE  # nodes 0-1
    assert cells.codes[1, 0, 0] == cells.codes[1, 0, 1] == RUNNING
    jobs = {job.name: idx for idx, job in enumerate(cells.jobs)}
    assert list(jobs) == ["first", "second", "third"]  # the largest first
    for placement in result.solution.placements:
        volume = int(np.prod(placement.prism.extents))
        shown = np.count_nonzero(cells.owner == jobs[placement.request])
        assert shown == volume
    assert cells.special.sum() == 4  # nodes 48-55
    assert cells.special_name == "XK"


def test_a_router_is_down_when_all_its_nodes_are() -> None:
    result, state = solved(down="8-9,11", queue=[])
    cells = cell_map(result, state)
    assert cells.codes[0, 1, 1] == DOWN
    assert cells.codes[0, 1, 2] == FREE


def test_service_inside_a_block_of_a_class_belongs_to_it() -> None:
    state = load_snapshot(data_folder("instances") / "snapshots" / "blue_waters_60.json")
    empty = solve(state, "first-fit")
    cells = cell_map(empty, state)
    block = cells.special_block
    assert block is not None
    assert block.extents == (15, 6, 24)  # Enos 2014: XK
    assert cells.special.sum() == block.volume


def test_colours_follow_the_codes_and_differ() -> None:
    result, state = solved()
    cells = cell_map(result, state)
    colours = cell_colours(cells)
    assert tuple(colours[0, 0, 0]) == rgb("#ffd400")
    first = np.argwhere(cells.codes == 0)[0]
    assert tuple(colours[tuple(first)]) == job_colour(0)
    assert len({job_colour(idx) for idx in range(200)}) == 200


def test_a_3d_figure_has_all_its_artists() -> None:
    result, state = solved()
    cells = cell_map(result, state)
    space, maps = placement_figure(result, state).axes
    cubes = next(c for c in space.collections if isinstance(c, Poly3DCollection))
    assert len(cubes.get_facecolor()) == expected_faces(cells)
    assert space.elev == ELEVATION
    assert len(maps.images) == 4  # one map for each y
    labels = {text.get_text() for text in maps.texts}
    assert {f"y = {k}" for k in range(4)} <= labels
    job_lines, class_lines = [c for c in maps.collections if isinstance(c, LineCollection)][1:]
    assert len(class_lines.get_segments()) > 0
    assert len(job_lines.get_segments()) > 0


def expected_faces(cells: CellMap) -> int:
    """Count faces router by router: three for a small cube, the uncovered seen ones for a job."""
    total = 0
    for at in np.ndindex(cells.shape):
        for dim, side in enumerate((1, -1, 1)):
            ahead = list(at)
            ahead[dim] += side
            inside = 0 <= ahead[dim] < cells.shape[dim]
            code = cells.codes[at]
            solid = code >= 0 or code == RUNNING
            if solid and inside:
                code_ahead = cells.codes[tuple(ahead)]
                solid_ahead = code_ahead >= 0 or code_ahead == RUNNING
                if solid_ahead and cells.owner[at] == cells.owner[tuple(ahead)]:
                    continue
            total += 1
    return total


@pytest.mark.parametrize(
    ("spec", "num_maps"),
    [("torus:9", 1), ("mesh:5x4", 1), ("torus:4x3x2x5", 6), ("torus:3x2x2x2x2", 8)],
)
def test_other_dimensions_are_maps_only(spec: str, num_maps: int) -> None:
    (maps,) = placement_figure(*on_machine(spec)).axes
    assert len(maps.images) == num_maps
    image = np.stack([np.asarray(image.get_array()) for image in maps.images])
    assert image.shape[0] == num_maps
    state = on_machine(spec)[1]
    assert image[..., 0].size == state.torus.num_routers


def test_the_picture_is_a_png_of_sensible_size(tmp_path: Path) -> None:
    path = tmp_path / "f.png"
    write_picture(*solved(), path)
    assert path.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    height, width = imread(path).shape[:2]
    assert 1000 < height < 2500
    assert 1500 < width < 4000
    assert [p.name for p in tmp_path.iterdir()] == ["f.png"]


def test_title_and_legend() -> None:
    result, state = solved()
    assert "objective 16" in title(result)
    assert "3 of 3 requests" in title(result)
    assert "bound" not in title(result)  # first-fit proves none
    labels = [handle.get_label() for handle in legend_handles(cell_map(result, state))]
    assert any(label.startswith("1  first: 8, ") for label in labels)
    assert "class XK" in labels


def test_a_result_without_solution_is_drawn_as_it_stands() -> None:
    result, state = solved()
    bare = result.model_copy(update={"solution": None, "objective": None})
    assert cell_map(bare, state).jobs == ()
    assert PlacementProblem(state).requests  # the queue is still there
    assert len(placement_figure(bare, state).axes) == 2
