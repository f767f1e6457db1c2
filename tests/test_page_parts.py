"""The parts of pages: images, axes, elements."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from baseline_instances import grid, problem_on
from small_snapshot import small_document
from topoplace.report.cells import UNUSABLE, colours_of, palette_png
from topoplace.report.page.markup import Markup, element
from topoplace.report.page.plots import Axis, decades_axis, gap_axis, ratio_axis
from topoplace.report.page.thumbnails import thumbnail
from topoplace.snapshot import Snapshot, prepare
from topoplace.solving import solve


@pytest.mark.parametrize("num_colours", [1, 3, 15, 200, 1000])
def test_palette_images_decode_to_their_colours(num_colours: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(num_colours)
    palette = rng.integers(0, 256, size=(num_colours, 4), dtype=np.uint8)
    picture = palette[rng.integers(num_colours, size=(37, 53))]
    picture[:20] = 7
    path = tmp_path / "p.png"
    path.write_bytes(palette_png(picture))
    off = np.abs(255 * imread(path) - picture)
    assert off[:20].max() < 0.01  # what is frequent stays exactly
    assert off.max() < (0.01 if num_colours < 256 else 130)


def test_a_thumbnail_shows_every_router(tmp_path: Path) -> None:
    state = prepare(Snapshot.model_validate(small_document()))
    picture = thumbnail(solve(state, "first-fit"), state)
    path = tmp_path / "p.png"
    path.write_bytes(picture.png)
    pixels = imread(path)
    assert pixels.shape[:2] == (picture.height, picture.width)
    # Router 0,0,0 holds the service nodes: first slice, first column, lowest row.
    assert pixels[2, 0] == pytest.approx(colours_of(np.array(UNUSABLE)), abs=0.01)


def test_nearer_messages_are_lighter(tmp_path: Path) -> None:
    problem = problem_on(grid((4, 4, 4)), [4, 4, 4])
    shades = []
    for method in ("default", "round-robin", "random-blocks"):
        path = tmp_path / f"{method}.png"
        path.write_bytes(thumbnail(solve(problem, method), problem).png)
        pixels = imread(path)
        shades.append(float(pixels[pixels[..., 3] == 1][:, :3].mean()))
    assert shades[0] == shades[1] > shades[2]  # the first two are the identity here


@pytest.mark.parametrize(
    ("axis", "values"),
    [
        (gap_axis([0.0, 0.004, 2.5], "gap"), [0.0, 0.004, 2.5]),
        (gap_axis([], "gap"), [0.0]),
        (decades_axis([0.02, 3.0], "seconds", 0.001), [0.02, 3.0]),
        (decades_axis([], "seconds", 0.001), [0.001]),
        (ratio_axis([1.0, 1.07], "factor"), [1.0, 1.07]),
        (ratio_axis([1.0, 3.1, 7.7], "factor"), [1.0, 3.1, 7.7]),
        (ratio_axis([1e6], "factor"), [1.0, 1e6]),
        (ratio_axis([], "factor"), [1.0]),
    ],
)
def test_axes_hold_their_values_and_name_their_ends(axis: Axis, values: list[float]) -> None:
    places = [axis.at(value) for value in values]
    assert places == sorted(places)
    assert 0 <= places[0] <= places[-1] <= 1
    assert axis.at(axis.ticks[0][0]) == pytest.approx(0, abs=1e-9)
    assert axis.at(axis.ticks[-1][0]) == pytest.approx(1)
    assert 2 <= len(axis.ticks) <= 8


def test_elements_escape_what_is_not_markup() -> None:
    inner = element("b", "<i>", title='"')
    assert inner == '<b title="&quot;">&lt;i&gt;</b>'
    assert element("p", inner, "&", class_=None, open=True) == f"<p open>{inner}&amp;</p>"
    assert isinstance(inner, Markup)
