"""The pages on schedulers show what their commands print, on the files that they show."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from scripts_of_the_project import script
from test_tutorial import comparable
from topoplace.cli import run
from topoplace.errors import ExitCode

TUTORIAL = script("build_tutorial")
ENDS = (ExitCode.DONE, ExitCode.CHECK_FAILED, ExitCode.REGRET)


def test_all_pages_have_commands() -> None:
    with_commands = {page.stem for page in TUTORIAL.SCHEDULERS if "\n```sh\n" in page.read_text()}
    assert with_commands == {"slurm-block", "slurm-tree", "slurm-torus3d", "kueue", "kai-volcano"}


@pytest.mark.parametrize("page", TUTORIAL.SCHEDULERS, ids=lambda page: page.stem)
def test_commands_print_what_the_page_shows(
    page: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for language, name, body in TUTORIAL.BLOCK.findall(page.read_text()):
        if name:
            Path(name).write_text(body)
        elif language == "sh" and body.startswith("topoplace "):
            capsys.readouterr()
            for line in body.splitlines():
                program, *arguments = shlex.split(line)
                assert (program, run(arguments) in ENDS) == ("topoplace", True), line
        elif language == "text":
            told = "python scripts/build_tutorial.py writes the outputs anew"
            assert comparable("".join(capsys.readouterr())) == comparable(body), told
