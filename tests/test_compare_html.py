"""Comparisons and results as pages, and what a browser makes of them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import pytest
from matplotlib.image import imread

from baseline_instances import grid, problem_on, random_graph
from test_study_compare import small, tree
from topoplace.cli.entry import run
from topoplace.report.page import exhibits
from topoplace.report.page.exhibits import PICTURE_BYTES, Exhibits, thumbnail
from topoplace.report.page.pages import comparison_page
from topoplace.report.page.plots import gap_axis, ratio_axis, seconds_axis
from topoplace.report.tiles import rgb
from topoplace.snapshot.files import write_document
from topoplace.solving import Options, solve
from topoplace.study.case import load_result
from topoplace.study.compare import Comparison, compare

NASTY = "<script>&\"it's"
METHODS = ("exact", "first-fit", "alps-2y")


class Page(HTMLParser):
    """What a page holds: its text, its addresses, and whether its elements nest."""

    void = frozenset({"meta", "link", "img"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.opened: list[str] = []
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert self.opened == []
        assert self.tags.count("script") == 1  # our own, whose hash the page names
        for address in self.addresses:
            assert not address.startswith("//")
            assert ":" not in address or address.startswith("data:")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.addresses += [value or "" for name, value in attrs if name in ("href", "src")]
        self.opened += [tag] if tag not in self.void else []

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in self.void:
            self.opened.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.opened.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path, Comparison]:
    """Return a page over three small snapshots, its folder, and the rows."""
    folder = tmp_path_factory.mktemp("page")
    kept = Exhibits(folder / "results of today")
    cases = [small(name=name) for name in ("one", "two", NASTY)]
    found = compare(cases, METHODS, Options(time_limit=5), kept.keep)
    return comparison_page(found, kept, folder), folder, found


def test_a_page_has_every_instance_and_method_and_nothing_from_outside(
    compared: tuple[str, Path, Comparison],
) -> None:
    text, folder, found = compared
    page = Page(text)
    assert "http:" not in text
    assert "https:" not in text
    words = "\n".join(page.words)
    for name in ("one", "two", NASTY, *METHODS, "fragmentation", "time limit per solve: 5 s"):
        assert name in words
    assert page.words.count("alps-2y *") == 3  # marked in the table of each instance
    assert page.tags.count("details") == 3
    images = [address for address in page.addresses if address.startswith("data:image/png")]
    assert len(images) == len(found.rows)
    # Nothing is plotted of gaps that the bound does not hold for.
    gaps = text[text.index("Gap distribution") : text.index("Performance profile")]
    assert gaps.count("<circle") == sum(row.conforming for row in found.rows) == 6
    files = [unquote(link) for link in page.addresses if link.endswith(".json")]
    assert len(set(files)) == len(found.rows)
    for file, row in zip(files, found.rows, strict=True):
        result = load_result(folder / file)
        assert (result.instance.name, result.method) == (row.instance, row.method)
        assert result.objective == row.levels[0].objective
    anchors = [link for link in page.addresses if link.startswith("#")]
    assert all(f'id="{anchor[1:]}"' in text for anchor in anchors)


def test_a_hundred_instances_stay_below_5_mb(
    compared: tuple[str, Path, Comparison], tmp_path: Path
) -> None:
    names = [f"a_snapshot_with_quite_a_long_name_{k:03}" for k in range(100)]
    one = compared[2].rows[0]
    rows = [
        replace(one, instance=name, sha256=name[::-1], method=f"method-number-{k}")
        for name in names
        for k in range(12)
    ]
    text = comparison_page(Comparison(tuple(rows)), Exhibits(), tmp_path)
    assert all(name in text for name in names)
    images = 1200 * 250  # what stands around each picture
    assert len(text.encode()) + images + PICTURE_BYTES * 4 / 3 < 5_000_000


def test_results_of_one_name_and_pictures_without_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = [small(name="../x/y"), small(name="../x/y", down="8"), small(name="../x/y", down="")]
    result = solve(cases[0].state, "first-fit")
    size = len(thumbnail(result, cases[0].state).png)
    monkeypatch.setattr(exhibits, "PICTURE_BYTES", int(2.5 * size))
    kept = Exhibits(tmp_path / "made")
    found = compare(cases, ["first-fit"], keep=kept.keep)
    files = {kept.file_of(row) for row in found.rows}
    assert files == set((tmp_path / "made").iterdir())
    assert len(files) == 3
    text = comparison_page(found, kept, tmp_path)
    assert kept.left_out == 1
    assert text.count("data:image/png") == 2
    assert "1 picture left out" in text


def test_compare_writes_a_page_of_all_kinds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    graph = random_graph(np.random.default_rng(3), 8, 20)
    documents = {
        "tree": tree().instance,
        "grid": problem_on(grid((4, 2, 2)), [2, 2, 2], tasks_per_node=2).instance,
        "graph": problem_on(graph, [3, 3]).instance,
        "small": small(name=NASTY).instance,
    }
    (tmp_path / "in").mkdir()
    for name, document in documents.items():
        write_document(tmp_path / "in" / f"{name}.json", document)
    page, out = tmp_path / "p.html", tmp_path / "out"
    args = ["compare", str(tmp_path / "in"), "--methods", "default,greedy,first-fit,fold-2d"]
    args += ["--html", str(page), "--results", str(out), "--time-limit", "2", "--json"]
    assert run(args) == 0
    found = json.loads(capsys.readouterr().out)
    expected = "mapping default, mapping greedy, mapping fold-2d, placement first-fit, "
    expected += "allocation default, allocation greedy"
    shown = [f"{entry['problem']} {entry['method']}" for entry in found["methods"]]
    assert ", ".join(shown) == expected
    text = page.read_text()
    Page(text)
    solved = [entry for entry in found["rows"] if entry["status"] != "unsuited"]
    assert text.count("data:image/png") == len(solved) == len(list(out.iterdir()))
    for result in out.iterdir():
        assert run(["show", str(result), "--html", str(page)]) == 0
        Page(page.read_text())
        assert page.read_text().count("data:image/png") == 2  # light and dark
    capsys.readouterr()
    # The results alone say the same.
    assert run(["compare", str(out), "--methods", "none", "--json"]) == 0
    again = json.loads(capsys.readouterr().out)["rows"]
    assert sorted(again, key=str) == sorted(solved, key=str)


def browse(text: str, folder: Path) -> tuple[list[str], np.ndarray]:
    """Open a page in headless Chromium; return what its console says, and the pixels shown."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("no chromium here to open the page in")
    page, shot = folder / "p.html", folder / "p.png"
    page.write_text(text)
    command = [chromium, "--headless", "--no-sandbox", "--enable-logging=stderr", "--v=0"]
    command += [f"--screenshot={shot}", "--window-size=1200,1900"]
    command += [f"--user-data-dir={folder / 'profile'}", page.as_uri()]
    said = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stderr
    return [line for line in said.splitlines() if "CONSOLE" in line], imread(shot)[..., :3]


def test_a_browser_draws_the_plots_and_complains_of_what_is_outside_only(
    compared: tuple[str, Path, Comparison], tmp_path: Path
) -> None:
    console, pixels = browse(compared[0], tmp_path)
    assert console == []
    for idx, colour in enumerate(re.findall(r"\.m\d{--m:(#\w+)}", compared[0])[: len(METHODS)]):
        # Its key in the legend has some 50 pixels.
        drawn = (np.abs(pixels - np.array(rgb(colour))).max(axis=2) < 0.01).sum()
        assert drawn > 150, f"line of method {idx} in {colour}"
    bad = compared[0].replace("<h1>", '<img src="http://x.invalid/a.png"><h1>', 1)
    console, _ = browse(bad, tmp_path)
    assert any("Content Security Policy" in line for line in console)


@pytest.mark.parametrize(
    ("axis", "values"),
    [(gap_axis, [0.0, 0.004, 2.5]), (seconds_axis, [0.0001, 0.02, 3.0])]
    + [(ratio_axis, values) for values in ([1.0, 1.07], [1.0, 3.1, 7.7], [1.0, 64.0], [1.0, 1e6])],
)
def test_axes_hold_their_values_and_name_their_ends(axis: Any, values: list[float]) -> None:
    for known in (values, []):
        shown = axis(known)
        places = [shown.at(value) for value in known]
        assert places == sorted(places)
        assert all(0 <= place <= 1 for place in places)
        assert shown.at(shown.ticks[0][0]) == pytest.approx(0, abs=1e-9)
        assert shown.at(shown.ticks[-1][0]) == pytest.approx(1)
        assert 2 <= len(shown.ticks) <= 8
