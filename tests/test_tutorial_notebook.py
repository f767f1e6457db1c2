"""The notebook of the tutorial, executed: its figures are those of the commands."""

from __future__ import annotations

import base64
import os
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from scripts_of_the_project import script
from test_tutorial import comparable

NOTEBOOK = Path(__file__).resolve().parent.parent / "docs" / "tutorial-python.ipynb"
COMMANDS = comparable(script("build_tutorial").PAGE.read_text())


def stored() -> nbformat.NotebookNode:
    return nbformat.read(NOTEBOOK, as_version=4)


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
    """Return the lines that the cells print, without times."""
    texts = [output.text for output in outputs if output.output_type == "stream"]
    return [comparable(line) for line in "".join(texts).splitlines()]


def test_the_levels_are_those_of_the_command(printed: list[str]) -> None:
    levels = [line.split() for line in printed if line.endswith(" certificate")]
    assert [level[0] for level in levels] == ["nodes", "shape", "fragmentation"]
    for name, objective, bound, _ in levels:
        sense = "min" if name == "fragmentation" else "max"
        row = f"{name} ({sense}) {int(objective):,} {int(bound):,} 0.00 % optimal certificate"
        assert row in COMMANDS


def test_the_jobs_are_those_of_the_command(printed: list[str]) -> None:
    starts = [line for line in printed if " starts on " in line]
    assert len(starts) == 3
    assert "started 3 of 5 requests" in COMMANDS
    assert "lattice does not start: outbid" in printed
    assert "hero does not start: blocked" in printed


def test_the_checker_accepts_the_result_and_refuses_the_bent_one(printed: list[str]) -> None:
    assert "as it is: True" in printed
    assert any(line.startswith("bent: placements - ") for line in printed)


def test_the_comparison_is_that_of_the_command(printed: list[str]) -> None:
    rows = [line for line in printed if line.startswith(("best-fit", "first-fit", "alps-2y"))]
    assert len(rows) == 3
    assert all(row in COMMANDS for row in rows)


def test_the_mappings_are_those_of_the_command(printed: list[str]) -> None:
    rows = [line.split() for line in printed if " hop-bytes " in line]
    assert [row[0] for row in rows] == ["default", "auto"]
    for method, _, objective, _, bound, status in rows:
        [row] = [line for line in _table_rows(method) if status in line]
        assert row[1:3] == [objective, bound]


def _table_rows(method: str) -> list[list[str]]:
    """Return the rows of a method in the tutorial's comparison of mappings."""
    page = script("build_tutorial").PAGE.read_text()
    table = page[page.index("max hops") :].split("```")[0]
    lines = [line.removeprefix("grid").split() for line in table.splitlines()]
    return [line for line in lines if line[:1] == [method]]


def test_the_pictures_are_drawn(outputs: list[nbformat.NotebookNode]) -> None:
    pictures = [output.data["image/png"] for output in outputs if "data" in output]
    assert len(pictures) == 2
    for picture in pictures:
        assert len(base64.b64decode(picture)) > 20_000


def test_it_is_stored_without_outputs() -> None:
    for cell in stored().cells:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None
