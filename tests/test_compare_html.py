"""Comparisons and results as pages, and what a browser makes of them."""

from __future__ import annotations

import json
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pytest
from matplotlib.image import imread

from baseline_instances import grid, problem_on, random_graph
from comparison_rows import row
from small_snapshot import small_document, write_small
from topoplace.cli.entry import run
from topoplace.report.colours import rgb
from topoplace.report.page import Exhibits, comparison_page, exhibits, result_page
from topoplace.report.page.exhibits import PICTURE_BYTES
from topoplace.report.page.style import STYLE
from topoplace.report.page.thumbnails import placement_thumbnail
from topoplace.snapshot import Snapshot, prepare
from topoplace.snapshot.files import write_document
from topoplace.snapshot.schema import Pattern
from topoplace.snapshot.tree_state import prepare_tree
from topoplace.solving import Options, solve
from topoplace.study.compare import ComparisonRow, compare
from topoplace.study.subject import Subject, load_result
from tree_cases import model_of, snapshot_on, uses

MOST_BYTES = 5_000_000
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

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.addresses += [value or "" for name, value in attrs if name in ("href", "src")]
        if tag not in self.void:
            self.opened.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in self.void:
            self.opened.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.opened.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    def require_offline(self) -> None:
        assert "script" not in self.tags
        for address in self.addresses:
            assert not address.startswith("//")
            assert ":" not in address or address.startswith("data:")


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path, list[ComparisonRow]]:
    """Return a page over three small snapshots, its folder, and the rows."""
    folder = tmp_path_factory.mktemp("page")
    kept = Exhibits(folder / "results of today")
    subjects = [
        Subject(name, prepare(Snapshot.model_validate(small_document() | {"name": name})))
        for name in ("one", "two", NASTY)
    ]
    rows = compare(subjects, METHODS, Options(time_limit=5), kept.placement)
    return comparison_page(rows, kept, folder), folder, rows


def test_conforming_placements_alone_are_ranked(
    compared: tuple[str, Path, list[ComparisonRow]],
) -> None:
    of_method = {entry.method: entry for entry in compared[2]}
    assert of_method["exact"].rank == of_method["first-fit"].rank == 1
    assert of_method["exact"].gap == 0
    assert (of_method["alps-2y"].rank, of_method["alps-2y"].ratio) == (None, None)


def test_a_page_has_every_instance_and_method_and_nothing_from_outside(
    compared: tuple[str, Path, list[ComparisonRow]],
) -> None:
    text, _, rows = compared
    page = Page(text)
    page.require_offline()
    assert "http:" not in text
    assert "https:" not in text
    words = "\n".join(page.words)
    for name in ("one", "two", NASTY, *METHODS, "time limit per solve: 5 s"):
        assert name in words
    assert page.words.count("alps-2y *") == 3  # marked in the table of each instance
    assert page.tags.count("details") == 3
    images = [address for address in page.addresses if address.startswith("data:image/png")]
    assert len(images) == len(rows)
    # Nothing is plotted of gaps that the bound does not hold for.
    gaps = text[text.index("Gap distribution") : text.index("Performance profile")]
    assert gaps.count("<circle") == sum(r.gap is not None and r.conforming for r in rows) == 6


def test_links_lead_to_the_result_files(compared: tuple[str, Path, list[ComparisonRow]]) -> None:
    text, folder, rows = compared
    files = [unquote(link) for link in Page(text).addresses if link.endswith(".json")]
    assert len(set(files)) == len(files) == len(rows)
    for file, entry in zip(files, rows, strict=True):
        result, _ = load_result(folder / file)
        assert (result.instance.name, result.method) == (entry.snapshot, entry.method)
        assert result.objective == entry.objective
    anchors = [link for link in Page(text).addresses if link.startswith("#")]
    assert all(f'id="{anchor[1:]}"' in text for anchor in anchors)


def test_a_hundred_instances_stay_below_5_mb(tmp_path: Path) -> None:
    names = [f"a_snapshot_with_quite_a_long_name_{k:03}" for k in range(100)]
    methods = [f"method-number-{k}" for k in range(12)]
    rows = [row(name, method, k / 7, 1 + k) for name in names for k, method in enumerate(methods)]
    text = comparison_page(rows, Exhibits(), tmp_path)
    assert all(name in text for name in names)
    images = 1200 * 250  # what stands around each picture
    assert len(text.encode()) + images + PICTURE_BYTES * 4 / 3 < MOST_BYTES


def test_pictures_without_room_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = prepare(Snapshot.model_validate(small_document()))
    result = solve(state, "first-fit")
    size = len(placement_thumbnail(result, state).png)
    monkeypatch.setattr(exhibits, "PICTURE_BYTES", 2 * size)
    kept = Exhibits()
    for _ in range(3):
        kept.placement(result, state)
    assert kept.left_out == 1
    rows = [row("small", "first-fit", None, 1)] * 3
    text = comparison_page(rows, kept, tmp_path)
    assert text.count("data:image/png") == 2
    assert "1 pictures are left out" in text


def test_result_files_of_one_name_do_not_overwrite_each_other(tmp_path: Path) -> None:
    state = prepare(Snapshot.model_validate(small_document() | {"name": "../x/y"}))
    kept = Exhibits(tmp_path / "made", pictures=False)
    result = solve(state, "first-fit")
    kept.placement(result, state)
    kept.placement(result, state)
    first, second = (kept.take("../x/y", "first-fit") for _ in range(2))
    assert first is not None
    assert second is not None
    assert {first.file, second.file} == set((tmp_path / "made").iterdir())
    assert kept.take("../x/y", "first-fit") is None


def test_compare_writes_pages_of_trees_and_mappings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rd = uses(Pattern.RECURSIVE_DOUBLING)
    tree = snapshot_on(model_of([4, 4, 4]), [("n0,n1", "strict")], [(4, rd), (3, rd)])
    graph = random_graph(np.random.default_rng(3), 8, 20)
    boxes = problem_on(grid((4, 2, 2)), [2, 2, 2], tasks_per_node=2)
    for name, document, methods in (
        ("tree", tree, "default,greedy"),
        ("grid", boxes.instance, "default,exact"),
        ("graph", problem_on(graph, [3, 3]).instance, "greedy,fold-2d"),
    ):
        source, page = tmp_path / f"{name}.json", tmp_path / f"{name}.html"
        write_document(source, document)
        args = ["compare", str(source), str(source), "--methods", methods, "--time-limit", "2"]
        out = ["--html", str(page), "--results", str(tmp_path / name), "--json"]
        assert run([*args, *out]) == 0
        found = json.loads(capsys.readouterr().out)
        assert [entry["method"] for entry in found["methods"]] == methods.split(",")
        assert min(entry["rank"] for entry in found["rows"] if entry["rank"]) == 1
        text = page.read_text()
        Page(text).require_offline()
        solved = [entry for entry in found["rows"] if entry["status"] != "unsuited"]
        assert text.count("data:image/png") == len(solved)
        assert len(list((tmp_path / name).iterdir())) == len(solved)


def test_kinds_of_instances_do_not_mix(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_document(tmp_path / "m.json", problem_on(grid((2, 2)), [2, 2]).instance)
    assert run(["compare", str(write_small(tmp_path)), str(tmp_path / "m.json")]) == 2
    assert (
        "m.json: expected instances of one kind, here tori, found mappings"
        in capsys.readouterr().err
    )


def test_show_writes_a_page_of_any_result(tmp_path: Path) -> None:
    state = prepare(Snapshot.model_validate(small_document()))
    tree = prepare_tree(snapshot_on(model_of([2, 2]), [], [(2, uses(Pattern.RING))]))
    solved: dict[str, tuple[object, str]] = {
        "torus": (solve(state, "first-fit"), "objective"),
        "tree": (solve(tree, "default"), "total cost"),
        "mapping": (solve(problem_on(grid((2, 2)), [2, 2]), "default"), "hop-bytes"),
    }
    for name, (result, told) in solved.items():
        source, page = tmp_path / f"{name}.json", tmp_path / f"{name}.html"
        write_document(source, result)
        assert run(["show", str(source), "--html", str(page)]) == 0
        text = page.read_text()
        Page(text).require_offline()
        assert told in text
        assert text.count("data:image/png") == 1
    assert not list(tmp_path.glob("*.png"))


def test_a_result_page_escapes_names() -> None:
    state = prepare(Snapshot.model_validate(small_document() | {"name": NASTY}))
    page = Page(result_page(solve(state, "first-fit")))
    page.require_offline()
    assert NASTY in page.words


def test_show_wants_something_to_write(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["show", str(write_small(tmp_path))]) == 2
    assert "--html" in capsys.readouterr().err


def browse(text: str, folder: Path) -> tuple[list[str], np.ndarray]:
    """Open a page in headless Chromium; return what its console says, and the pixels shown."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("no chromium here to open the page in")
    (folder / "p.html").write_text(text)
    command = [chromium, "--headless", "--no-sandbox", "--enable-logging=stderr", "--v=0"]
    command += [f"--screenshot={folder / 'p.png'}", "--window-size=1200,1900"]
    command += [f"--user-data-dir={folder / 'profile'}", (folder / "p.html").as_uri()]
    said = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stderr
    console = [line for line in said.splitlines() if "CONSOLE" in line]
    return console, np.rint(255 * imread(folder / "p.png")[..., :3]).astype(int)


def test_a_browser_draws_the_plots_and_complains_of_nothing(
    compared: tuple[str, Path, list[ComparisonRow]], tmp_path: Path
) -> None:
    console, pixels = browse(compared[0], tmp_path)
    assert console == []
    methods = STYLE[STYLE.index(".m0{") :]
    for idx in range(len(METHODS)):
        colour = methods[methods.index(f".m{idx}{{--m:") :][len(f".m{idx}{{--m:") :][:7]
        shown = np.rint(255 * np.array(rgb(colour))).astype(int)
        # Its key in the legend has some 50 pixels.
        drawn = (np.abs(pixels - shown).max(axis=2) <= 2).sum()
        assert drawn > 150, f"line of method {idx} in {colour}"


def test_the_page_refuses_to_load_what_a_browser_would(
    compared: tuple[str, Path, list[ComparisonRow]], tmp_path: Path
) -> None:
    bad = compared[0].replace("<h1>", '<img src="http://x.invalid/a.png"><h1>', 1)
    console, _ = browse(bad, tmp_path)
    assert any("Content Security Policy" in line for line in console)
