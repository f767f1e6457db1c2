"""The page of the models: its data and commands are enough to solve each with MiniZinc alone."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from minizinc_cases import needs_minizinc

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "reference" / "models.md").read_text()
EXAMPLES = re.findall(
    r"The data, `(\w+)\.json`:\n\n```json\n(.*?)```\n\n```text\n\$ (.*?)\n(.*?)```", PAGE, re.DOTALL
)


def test_every_model_is_on_the_page_as_a_whole() -> None:
    models = {path.stem for path in (ROOT / "models").glob("*.mzn") if ".mzc" not in path.name}
    assert {name for name, *_ in EXAMPLES} == models
    shown = set(re.findall(r"literalinclude\} \.\./\.\./models/(\S+)", PAGE))
    library = {f"lib/{path.name}" for path in (ROOT / "models" / "lib").glob("*.mzn")}
    assert shown == {f"{name}.mzn" for name in models} | library


@needs_minizinc
@pytest.mark.parametrize(("name", "data", "command", "printed"), EXAMPLES)
def test_its_command_solves_a_model(
    name: str, data: str, command: str, printed: str, tmp_path: Path
) -> None:
    folder = tmp_path / "models"
    shutil.copytree(ROOT / "models", folder)
    (folder / f"{name}.json").write_text(data)
    run = subprocess.run(
        command, shell=True, cwd=folder, capture_output=True, text=True, check=True
    )
    assert [line.rstrip() for line in run.stdout.splitlines()] == printed.splitlines()
