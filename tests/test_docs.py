"""The documentation is complete: commands, methods, bounds, links to files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

from scripts_of_the_project import script
from topoplace.result.mapping import MappingCertificate
from topoplace.solving import method_names

ROOT = Path(__file__).resolve().parent.parent
METHODS = (ROOT / "docs" / "methods.md").read_text()


def named_under(heading: str) -> set[str]:
    """Return what stands in the first column of the tables of a section, without backticks."""
    section = METHODS.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return set(re.findall(r"^\| `?([\w -]+?)`? \|", section, re.MULTILINE))


@pytest.mark.parametrize(
    ("heading", "problem"),
    [
        ("Jobs on a torus or mesh", "placement"),
        ("Jobs on a tree", "allocation"),
        ("Tasks on nodes", "mapping"),
    ],
)
def test_every_method_has_a_line(heading: str, problem: str) -> None:
    names = set(method_names(problem))
    assert len(names) > 5
    assert names <= named_under(heading)


def test_every_bound_of_mappings_has_a_line() -> None:
    models = get_args(get_args(MappingCertificate)[0])
    kinds = {model.model_fields["kind"].default for model in models}
    assert "star" in kinds
    assert kinds <= named_under("Tasks on nodes")


def test_the_page_of_commands_is_up_to_date() -> None:
    page = script("build_commands")
    text = page.page_text()
    assert "| `--time-limit S` |" in text
    assert page.PAGE.read_text() == text, "python scripts/build_commands.py writes it anew"


def test_links_of_the_readme_lead_to_files() -> None:
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", (ROOT / "README.md").read_text())
    local = [link for link in links if "://" not in link]
    assert "docs/tutorial.md" in local
    assert [link for link in local if not (ROOT / link).exists()] == []


def test_the_example_of_adding_a_machine(capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs" / "adding-a-machine.md").read_text()
    [example] = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    exec(example, {})
    assert capsys.readouterr().out == "3 3 3\n0 0 0\n"
