"""The notebook of the tutorial, executed: its figures are those of the commands."""

from __future__ import annotations

import base64
import os
import re
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from scripts_of_the_project import script
from test_tutorial import comparable

ROOT = Path(__file__).resolve().parent.parent
PAGE = script("build_tutorial").PAGE.read_text()
COMMANDS = " ".join(PAGE.replace(",", "").split())


def stored() -> nbformat.NotebookNode:
    return nbformat.read(ROOT / "docs" / "tutorial-python.ipynb", as_version=4)


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> list[nbformat.NotebookNode]:
    """Execute the notebook in an empty folder and return what its cells put out."""
    notebook = stored()
    modules = os.pathsep.join(filter(None, sys.path))
    folder = {"metadata": {"path": str(tmp_path_factory.mktemp("notebook"))}}
    client = NotebookClient(notebook, timeout=300, kernel_name="python3", resources=folder)
    client.execute(env=os.environ | {"PYTHONPATH": modules})
    return [output for cell in notebook.cells for output in cell.get("outputs", [])]


@pytest.fixture(scope="module")
def printed(outputs: list[nbformat.NotebookNode]) -> list[str]:
    texts = [output.text for output in outputs if output.output_type == "stream"]
    return "".join(texts).splitlines()


def test_its_first_cell_is_the_example_of_the_readme() -> None:
    [example] = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    first = next(cell.source for cell in stored().cells if cell.cell_type == "code")
    shown = "%matplotlib inline\n" + re.sub(r"  #.*", "", example)
    shown = re.sub(r'\.figure\.savefig\(".*"\)', ";", shown)
    assert shown.strip() == first


def test_its_figures_are_those_of_the_commands(printed: list[str]) -> None:
    levels = [line.split() for line in printed if line.endswith(" 0.0 certificate")]
    assert [level[0] for level in levels] == ["nodes", "shape", "fragmentation"]
    for name, objective, bound, *_ in levels:
        sense = "min" if name == "fragmentation" else "max"
        assert f"{name} ({sense}) {objective} {bound} 0.00 % optimal certificate" in COMMANDS
    starts = [line.split()[0] for line in printed if " starts on " in line]
    assert starts == ["cfd", "weather", "genome"]
    assert "started 3 of 5 requests" in COMMANDS
    mapped = [line.split() for line in printed if " hop-bytes " in line]
    assert [row[0] for row in mapped] == ["default", "auto"]
    for method, _, objective, _, bound, status in mapped:
        assert re.search(rf"{method} {objective} {bound} .{{,30}}{status}", COMMANDS)
    rows = [line for line in printed if line.startswith((" " * 10 + "best", " " * 10 + "first"))]
    assert len(rows) == 2
    assert all(comparable(row) in comparable(PAGE) for row in rows)
    assert "103 on n[17-32] costs 35" in printed
    assert "103 16 35 n[17-32]" in COMMANDS


def test_the_checker_accepts_results_and_refuses_the_bent_one(printed: list[str]) -> None:
    assert "as it is: True" in printed
    assert any(line.startswith("bent: ") for line in printed)


def test_errors_and_pictures_are_shown(
    outputs: list[nbformat.NotebookNode], printed: list[str]
) -> None:
    assert any("did you mean 'exact'?" in line for line in printed)
    pictures = [
        output.data["image/png"] for output in outputs if "image/png" in output.get("data", {})
    ]
    assert len(pictures) == 4
    assert all(len(base64.b64decode(picture)) > 10_000 for picture in pictures)


def test_it_is_stored_without_outputs() -> None:
    for cell in stored().cells:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None
