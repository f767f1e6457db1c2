"""README, front page and tutorial show what they print; the notebook has the same figures."""

from __future__ import annotations

import base64
import os
import re
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from few import few_of
from scripts_of_the_project import script

ROOT = Path(__file__).resolve().parent.parent
TUTORIAL = script("build_tutorial")


def comparable(output: str) -> str:
    """Return an output without what may differ: times, and the white space of tables."""
    untimed = re.sub(r"\b\d+(\.\d+)? s\b|\b\d+\.\d\d\b(?! %)", "SECONDS", output)
    return " ".join(re.sub(r"-{3,}", "---", untimed).split())


def stored() -> nbformat.NotebookNode:
    return nbformat.read(ROOT / "docs" / "guide" / "tutorial-python.ipynb", as_version=4)


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> list[nbformat.NotebookNode]:
    """Execute the notebook in an empty folder and return what its cells put out."""
    notebook = stored()
    modules = os.pathsep.join(filter(None, sys.path))
    folder = {"metadata": {"path": str(tmp_path_factory.mktemp("notebook"))}}
    client = NotebookClient(notebook, timeout=300, kernel_name="python3", resources=folder)
    client.execute(env=os.environ | {"PYTHONPATH": modules})
    return [output for cell in notebook.cells for output in cell.get("outputs", [])]


def compare_outputs(path: Path, folder: Path) -> int:
    """Run a page and require that it shows what is printed; return how many outputs it has."""
    shown, came = (
        TUTORIAL.BLOCK.findall(page) for page in (path.read_text(), TUTORIAL.played(path, folder))
    )
    blocks = [pair for pair in zip(shown, came, strict=True) if pair[0][:2] == ("text", "")]
    for block, real in blocks:
        told = "python scripts/build_tutorial.py writes the outputs again"
        assert comparable(real[-1]) == comparable(block[-1]), told
    assert all(one.read_bytes().startswith(b"\x89PNG") for one in folder.glob("*.png"))
    return len(blocks)


@pytest.mark.parametrize("path", few_of(TUTORIAL.FRONT, 1), ids=lambda path: path.stem)
def test_front_pages_show_what_their_examples_print(path: Path, tmp_path: Path) -> None:
    assert compare_outputs(path, tmp_path) == 1


def test_the_front_page_of_the_documentation_has_the_example_of_the_readme() -> None:
    """So the README's, which is run, stands for both."""
    readme, index = (path.read_text() for path in TUTORIAL.FRONT)
    [(_, _, code), (_, _, printed)] = TUTORIAL.BLOCK.findall(index)
    blocks = [block[-1] for block in TUTORIAL.BLOCK.findall(readme)]
    example = re.sub(r"  #.*", "", blocks[1])
    assert set(code.splitlines()) <= set(example.splitlines())
    assert comparable(printed) == comparable(blocks[2])


@pytest.mark.usefixtures("batches_here")
@pytest.mark.parametrize("path", TUTORIAL.CHAPTERS, ids=lambda path: path.stem)
def test_chapters_show_what_their_commands_print(path: Path, tmp_path: Path) -> None:
    assert compare_outputs(path, tmp_path) >= 2


def test_all_chapters_are_run_in_the_order_of_the_contents() -> None:
    contents = (TUTORIAL.GUIDE / "tutorial" / "index.md").read_text()
    [listed] = re.findall(r"```{toctree}\n:hidden:\n\n(.*?)```", contents, re.DOTALL)
    assert tuple(listed.split()) == TUTORIAL.NAMES


def test_only_times_and_white_space_are_ignored() -> None:
    table = "method  gap  seconds\n------  ---  -------\nexact  0.00 %  1.25\n"
    assert comparable(table) == "method gap seconds --- --- --- exact 0.00 % SECONDS"
    assert comparable("cost 34.6250, 6.3 s, 108") == "cost 34.6250, SECONDS, 108"


def test_the_notebook_begins_as_the_readme_and_is_stored_without_outputs() -> None:
    [example] = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    cells = [cell for cell in stored().cells if cell.cell_type == "code"]
    shown = "%matplotlib inline\n" + re.sub(r"  #.*", "", example)
    shown = re.sub(r'\.figure\.savefig\(".*"\)', ";", shown)
    assert shown.strip() == cells[0].source
    assert not any(cell.outputs or cell.execution_count for cell in cells)


def test_figures_of_the_notebook_are_those_of_the_commands(
    outputs: list[nbformat.NotebookNode],
) -> None:
    page = "\n".join(chapter.read_text() for chapter in TUTORIAL.CHAPTERS)
    commands = " ".join(page.replace(",", "").split())
    texts = [output.text for output in outputs if output.output_type == "stream"]
    printed = "".join(texts).splitlines()
    levels = [line.split() for line in printed if line.endswith(" 0.0 certificate")]
    assert [level[0] for level in levels] == ["nodes", "shape", "fragmentation"]
    for name, objective, bound, *_ in levels:
        sense = "min" if name == "fragmentation" else "max"
        assert f"{name} ({sense}) {objective} {bound} 0.00 % optimal certificate" in commands
    starts = [line.split()[0] for line in printed if " starts on " in line]
    assert starts == ["cfd", "weather", "genome"]
    assert "started 3 of 5 requests" in commands
    mapped = [line.split() for line in printed if " hop-bytes " in line]
    assert [row[0] for row in mapped] == ["default", "auto"]
    for method, _, objective, _, bound, status in mapped:
        assert re.search(rf"{method} {objective} {bound} .{{,30}}{status}", commands)
    rows = [line for line in printed if line.startswith((" " * 10 + "best", " " * 10 + "first"))]
    assert len(rows) == 2
    assert all(comparable(row) in comparable(page) for row in rows)
    assert "103 on n[17-32] costs 35" in printed
    assert "103 16 35 n[17-32]" in commands
    assert "as it is: True" in printed
    assert any(line.startswith("bent: ") for line in printed)
    assert any("did you mean 'exact'?" in line for line in printed)
    pictures = [
        output.data["image/png"] for output in outputs if "image/png" in output.get("data", {})
    ]
    assert len(pictures) == 4
    assert all(len(base64.b64decode(picture)) > 10_000 for picture in pictures)
