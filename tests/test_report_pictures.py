"""Pictures: what is drawn agrees with the result, router by router."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.image import imread
from mpl_toolkits.mplot3d import Axes3D
from mpl_toolkits.mplot3d.art3d import Poly3DCollection

import topoplace as tp
from baseline_instances import grid, problem_on, random_graph
from small_snapshot import small_document
from topoplace.report.domains import Boxes
from topoplace.report.figure import WIDTH, draw, draw_torus, full_figure, title, write_figure
from topoplace.report.page.exhibits import thumbnail
from topoplace.report.tiles import (
    DOWN,
    FREE,
    RUNNING,
    UNUSABLE,
    Box,
    colours_of,
    job_colour,
    machine_tiles,
    palette_png,
)
from topoplace.report.view import view_of
from topoplace.result import PlacementResult
from topoplace.snapshot.files import data_folder
from topoplace.snapshot.hierarchy_state import prepare_contention
from topoplace.snapshot.machines import load_machine, load_snapshot
from topoplace.snapshot.schema import Pattern, Snapshot
from topoplace.snapshot.state import SnapshotState, prepare
from topoplace.solving import solve
from tree_cases import model_of, snapshot_on, uses


def solved(method: str = "first-fit", **changes: Any) -> tuple[PlacementResult, SnapshotState]:
    state = prepare(Snapshot.model_validate(small_document() | changes))
    return solve(state, method), state


def pixels_of(png: bytes) -> np.ndarray:
    return imread(io.BytesIO(png))


def image_of(axes: Axes) -> np.ndarray:
    (image,) = axes.images
    return np.asarray(image.get_array())


def texts_of(axes: Axes) -> list[str]:
    return [text.get_text() for text in axes.texts]


def legend_of(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_every_router_is_what_the_result_says() -> None:
    result, state = solved()
    cells = view_of(result, state).cells
    assert cells.codes[0, 0, 0] == UNUSABLE  # nodes 0-1
    assert cells.codes[1, 0, 0] == cells.codes[1, 0, 1] == RUNNING
    codes = {text.split(":")[0]: code for code, text in cells.jobs.items()}
    assert list(codes) == ["first", "second", "third"]  # the largest first
    for placement in result.solution.placements:
        volume = int(np.prod(placement.prism.extents))
        assert np.count_nonzero(cells.owner == codes[placement.request]) == volume
    assert cells.special.sum() == 4  # nodes 48-55
    assert cells.special_name == "XK"
    assert title(result)[-1] == "3 of 3 requests started"
    bare = result.model_copy(update={"solution": None, "objective": None})
    assert view_of(bare, state).cells.jobs == {}
    assert (len(full_figure(bare).axes), len(title(bare))) == (2, 1)
    down = view_of(*solved(down="8-9,11", queue=[])).cells.codes
    assert (down[0, 1, 1], down[0, 1, 2]) == (DOWN, FREE)  # down if all its nodes are


def test_service_inside_a_block_of_a_class_belongs_to_it() -> None:
    state = load_snapshot(data_folder("instances") / "snapshots" / "blue_waters_60.json")
    special = view_of(solve(state, "first-fit"), state).cells.special
    spans = [int(special.any(axis=axes).sum()) for axes in ((1, 2), (0, 2), (0, 1))]
    assert spans == [15, 6, 24]  # Enos 2014: XK
    assert special.sum() == 15 * 6 * 24


def test_a_job_keeps_its_colour_whatever_else_starts() -> None:
    result, state = solved()
    first, *_, last = result.solution.placements
    alone = result.solution.model_copy(update={"placements": [last]})
    fewer = view_of(result.model_copy(update={"solution": alone}), state).cells
    every = view_of(result, state).cells
    assert len(fewer.jobs) == 1 < len(every.jobs)
    assert fewer.jobs.items() <= every.jobs.items()
    at = tuple(first.prism.origin)
    assert tuple(colours_of(every.codes)[at]) == (*job_colour(every.codes[at]), 1)
    assert len({job_colour(rank) for rank in range(200)}) == 200


def test_in_space_jobs_are_opaque_and_running_ones_can_be_seen() -> None:
    cells = view_of(*solved(down="8-9")).cells
    axes = Figure().add_subplot(projection="3d")
    assert isinstance(axes, Axes3D)
    draw_torus(axes, cells)
    (cubes,) = (c for c in axes.collections if isinstance(c, Poly3DCollection))
    opacity = np.asarray(cubes.get_facecolor())[:, 3]
    jobs = running = small = 0
    empty = np.pad(cells.codes, 1, constant_values=FREE)
    for at in np.ndindex(cells.codes.shape):
        code = cells.codes[at]
        for ahead in ((2, 1, 1), (1, 0, 1), (1, 1, 2)):  # the sides that are seen
            before = empty[tuple(np.add(at, ahead))]
            jobs += code >= 0 and before < 0
            running += code == RUNNING and before < 0 and before != RUNNING
            small += code in (UNUSABLE, DOWN)
    assert np.count_nonzero(opacity) == jobs + running + small < len(opacity)  # and edges
    assert np.count_nonzero((opacity > 0.15) & (opacity < 0.3)) == running
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_zlabel()) == ("x", "y", "z")


@pytest.mark.parametrize(
    ("spec", "num_tiles"),
    [
        ("torus:9", 1),
        ("torus:99", 7),
        ("mesh:5x4", 1),
        ("torus:4x3x2x5", 6),
        ("torus:3x2x2x2x2", 8),
    ],
)
def test_tiles_show_every_router_once_with_its_colour(spec: str, num_tiles: int) -> None:
    queue = [{"id": "a", "nodes": 4}, {"id": "b", "nodes": 3}]
    machine, running = load_machine(spec).model_dump(), [{"id": "r", "nodes": "1"}]
    result, state = solved(machine=machine, queue=queue, running=running, down="2")
    tiles = view_of(result, state).tiles
    assert len(tiles.numbers) == num_tiles
    canvas = tiles.fitted(600, 300, 7).numbers
    assert sorted(canvas[canvas >= 0]) == list(range(state.torus.num_routers))
    assert len(full_figure(result).axes) == 1
    image = image_of(draw(result)).reshape(-1, 4)
    kinds, counts = np.unique(image, axis=0, return_counts=True)
    codes = view_of(result, state).cells.codes
    for code in np.unique(codes[codes != FREE]):
        colour = colours_of(np.array(code))
        assert counts[(kinds == colour).all(axis=1)] == np.count_nonzero(codes == code)


def test_drawing_needs_no_pyplot_and_numbers_axes_and_jobs(tmp_path: Path) -> None:
    result = solved()[0]
    given = Figure().subplots(1, 2)[1]
    assert result.plot(given, dark=True) is given
    assert {f"y = {k}" for k in range(4)} | {"1", "2"} <= set(texts_of(given))
    assert (given.get_xlabel(), given.get_ylabel()) == ("x", "z")
    assert {"0", "1", "2"} <= {label.get_text() for label in given.get_xticklabels()}
    program = (
        "import sys, topoplace; from topoplace.report.figure import write_figure;"
        "result = topoplace.load(sys.argv[1]);"
        "[write_figure(result, f'{k}.png', dark=k) for k in (False, True)]; print(*sys.modules)"
    )
    command = [sys.executable, "-c", program, result.save(tmp_path / "r.json")]
    run = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert "matplotlib.figure" in run.stdout.split()
    assert "matplotlib.pyplot" not in run.stdout.split()
    for name, paper in (("False.png", "#ffffff"), ("True.png", "#15171a")):
        pixels = imread(tmp_path / name)[..., :3]
        assert 1000 < len(pixels) < 2500
        assert tuple(pixels[0, 0]) == pytest.approx(to_rgb(paper), abs=0.01)
    assert len(list(tmp_path.iterdir())) == 3


def test_the_legend_can_be_read_and_has_what_fits() -> None:
    names = [f"a-job-with-quite-a-long-name-in-the-queue-{k}" for k in range(40)]
    result, state = solved(queue=[{"id": name, "nodes": 1} for name in names])
    figure = full_figure(result)
    (legend,) = figure.legends
    assert min(text.get_fontsize() for text in legend.get_texts()) * 900 / 96 / WIDTH >= 8
    names = legend_of(figure)
    shown = [name for name in names if "a-job-with" in name]
    assert names[-1] == f"and {len(view_of(result, state).cells.jobs) - len(shown)} more"
    figure.canvas.draw()
    box = legend.get_window_extent()
    assert 0 <= box.x0 < box.x1 <= figure.bbox.x1
    assert 0 <= box.y0 < box.y1 <= figure.bbox.y1
    assert [name.split(":")[0] for name in names[:3]] == ["free", "running", "not usable"]


@pytest.mark.parametrize("sizes", [(3, 2), (130, 3, 1), (1,) * 40, (64,) * 9])
@pytest.mark.parametrize("text", [0.0, 7.0])
def test_boxes_hold_their_hosts_and_the_boxes_inside_and_no_others(
    sizes: tuple[int, ...], text: float
) -> None:
    leaf_of = np.repeat(np.arange(len(sizes)), sizes)
    shuffled = np.random.default_rng(1).permutation(leaf_of)  # numbers are in any order
    boxes = Boxes(
        ("top", "leaf", "host"),
        [["t"], [f"leaf{k}" for k in range(len(sizes))]],
        np.stack([shuffled * 0, shuffled]),
    )
    canvas = boxes.fitted(600, 400, text)
    assert canvas.unit * canvas.size[0] <= 601
    assert canvas.unit * canvas.size[1] <= 401
    at = {
        int(host): (left + column, top + row)
        for tile, (top, left) in zip(canvas.tiles, canvas.corners, strict=True)
        for (row, column), host in np.ndenumerate(tile)
        if host >= 0
    }
    assert sorted(at) == list(range(len(leaf_of)))
    assert len(set(at.values())) == len(at)
    for box in canvas.boxes:

        def inside(x: float, y: float, size: float = 1.0, box: Box = box) -> bool:
            right, low = box.left + box.width, box.top + box.height
            return box.left <= x <= right - size + 1e-9 and box.top <= y <= low - size + 1e-9

        held = {host for host, place in at.items() if inside(*place)}
        assert held == set(np.flatnonzero(boxes.domain_of[box.level] == box.domain))
    if not text:
        shown = canvas.numbers[canvas.numbers >= 0]
        assert sorted(shown) == list(range(len(leaf_of)))


def test_boxes_of_very_many_domains_have_no_names() -> None:
    leaf_of = np.repeat(np.arange(4000), 2)
    canvas = Boxes(("rack", "host"), [[f"r{k}" for k in range(4000)]], leaf_of[None]).fitted(
        600, 400, 7.0
    )
    assert canvas.named == 0
    assert sum(tile.size for tile in canvas.tiles) == 8000


def test_a_tree_is_a_box_for_every_switch() -> None:
    state = prepare_contention(
        snapshot_on(model_of([3, 2]), [("n0", "strict")], [(2, uses(Pattern.RING))])
    )
    result = solve(state, "default")
    codes = view_of(result, state).cells.codes
    assert sorted(codes) == [RUNNING, FREE, FREE, 0, 0]
    axes = draw(result)
    drawn = [c.get_facecolor() for c in axes.collections if isinstance(c, PolyCollection)]
    assert sum((own == [*job_colour(0), 1]).all(axis=-1).sum() for own in drawn) == 2
    assert set(state.machine.leaf_names) <= set(texts_of(axes))
    assert "boxes: leaf; squares: node" in axes.get_xlabel()


def test_hosts_of_several_jobs_have_stripes() -> None:
    hosts = [{"hosts": "a[0-3]", "domains": ["r"], "capacity": {"slots": 4}}]
    machine = {"kind": "hierarchy", "name": "m", "levels": ["rack", "host"], "hosts": hosts}
    queue = [{"id": "$x$", "nodes": 6}, {"id": "$\\y$", "nodes": 10}]  # no formulas
    document = {"schema": "topoplace.snapshot/1", "name": "n", "machine": machine, "queue": queue}
    result = tp.place(document)
    cells = view_of(result).cells
    assert set(map(tuple, cells.several.values())) == {(0, 1)}
    assert "stripes: several jobs" in draw(result).get_xlabel()
    assert "2  $x$: 6" in legend_of(full_figure(result))


def test_boxes_of_a_mapping_say_which_share_of_their_bytes_leaves() -> None:
    graph = random_graph(np.random.default_rng(5), 12, 40)
    result = tp.map(graph, "hierarchy:2x3x2", method="default")
    view = view_of(result)
    graph = view.problem.graph  # without messages of a task to itself
    levels, host = view.problem.machine.levels, np.array(result.solution.nodes)
    for row, own in zip(levels.domain_of[-2:0:-1], view.shares, strict=True):
        inside, leaves = dict.fromkeys(own, 0), dict.fromkeys(own, 0)
        for a, b, size in zip(graph.sources, graph.targets, graph.bytes, strict=True):
            ends = {int(row[host[a]]), int(row[host[b]])}
            for domain in ends:
                (inside if len(ends) == 1 else leaves)[domain] += int(size)
        assert own == {k: pytest.approx(leaves[k] / (leaves[k] + inside[k])) for k in own}
    texts = texts_of(draw(result))
    assert {f"rack{k} {100 * share:.2g} %" for k, share in view.shares[1].items() if k < 3} <= {
        *texts
    }
    assert sum(text in {str(k) for k in range(12)} for text in texts) == 12


def test_a_picture_is_written_as_svg_whose_text_is_text(tmp_path: Path) -> None:
    result = solved(name="<b>&")[0]
    write_figure(result, tmp_path / "p.svg", svg=True)
    text = (tmp_path / "p.svg").read_text()
    root = ElementTree.fromstring(text)
    inner = root.find("{http://www.w3.org/2000/svg}svg")
    assert inner is not None
    assert root.get("viewBox") == f"0 0 {inner.get('width')} {inner.get('height')}"
    words = "".join(root.itertext())
    assert "<b>&" in words
    assert "3 of 3 requests started" in words


@pytest.mark.parametrize(
    ("shape", "across", "up", "slices"),
    [
        ((4, 3, 5), "x", "z", 3),
        ((12, 12, 12, 2, 3, 2), "x; above: y,u,v,w", "z", 144),
        ((2, 3, 2, 9, 8), "u; above: x,y,z", "v", 12),
    ],
)
def test_machines_of_many_dimensions_are_few_slices_whose_names_have_room(
    shape: tuple[int, ...], across: str, up: str, slices: int
) -> None:
    tiles = machine_tiles(shape)
    assert (tiles.across, tiles.up, len(tiles.numbers)) == (across, up, slices)
    assert sorted(tiles.numbers.ravel()) == list(range(np.prod(shape)))
    canvas = tiles.fitted(650, 500, 7)
    lefts = np.unique(canvas.corners[:, 1])
    longest = max(map(len, tiles.names))
    assert np.diff(lefts).min() * canvas.unit > 0.55 * 7 * longest


def test_mappings_show_their_tasks_or_the_levels_of_pencils() -> None:
    graph = random_graph(np.random.default_rng(3), 8, 20)
    mapped = solve(problem_on(graph, [3, 3]), "greedy")
    tasks = texts_of(draw(mapped))
    assert sorted(map(int, tasks)) == list(range(8))
    assert legend_of(draw(mapped).figure)[-1] == "free: 1 router"
    assert len(full_figure(mapped).axes) == 2  # and the load of all links
    pencils = solve(problem_on(grid((4, 4, 2)), [4, 4, 2]), "pencils")
    assert texts_of(draw(pencils)).count("1") == 4
    assert len(full_figure(pencils).axes) == 2


@pytest.mark.parametrize("num_colours", [1, 3, 15, 200, 1000])
def test_palette_images_decode_to_their_colours(num_colours: int) -> None:
    rng = np.random.default_rng(num_colours)
    palette = rng.integers(0, 256, size=(num_colours, 4), dtype=np.uint8)
    picture = palette[rng.integers(num_colours, size=(37, 53))]
    picture[:20] = 7
    off = np.abs(255 * pixels_of(palette_png(picture)) - picture)
    assert off[:20].max() < 0.01  # what is frequent stays exactly
    assert off.max() < (0.01 if num_colours < 256 else 130)


def test_thumbnails_show_every_router_and_nearer_messages_lighter() -> None:
    picture = thumbnail(*solved())
    pixels = pixels_of(picture.png)
    assert pixels.shape[:2] == (picture.height, picture.width)
    # Router 0,0,0 holds the service nodes: first slice, first column, lowest row.
    assert pixels[2, 0] == pytest.approx(colours_of(np.array(UNUSABLE)), abs=0.01)
    problem = problem_on(grid((4, 4, 4)), [4, 4, 4])
    shades = []
    for method in ("default", "round-robin", "random-blocks"):
        pixels = pixels_of(thumbnail(solve(problem, method), problem).png)
        shades.append(float(pixels[pixels[..., 3] == 1][:, :3].mean()))
    assert shades[0] == shades[1] > shades[2]  # the first two are the identity here
