"""The tutorial shows what its commands print."""

from __future__ import annotations

import re
from pathlib import Path

from scripts_of_the_project import script

TUTORIAL = script("build_tutorial")


def comparable(output: str) -> str:
    """Return an output without what may differ: times, and the white space of tables."""
    untimed = re.sub(r"\b\d+\.\d+ s\b|\b\d+\.\d\d\b(?! %)", "SECONDS", output)
    return " ".join(re.sub(r"-{3,}", "---", untimed).split())


def test_the_tutorial_shows_what_its_commands_print(tmp_path: Path) -> None:
    page = TUTORIAL.PAGE.read_text()
    shown = TUTORIAL.BLOCK.findall(page)
    came = TUTORIAL.BLOCK.findall(TUTORIAL.played(page, tmp_path))
    outputs = [
        (comparable(block[-1]), comparable(real[-1]))
        for block, real in zip(shown, came, strict=True)
        if block[:2] == ("text", "")
    ]
    assert len(outputs) > 10
    for block, real in outputs:
        assert real == block, "python scripts/build_tutorial.py writes the outputs anew"
    assert (tmp_path / "result.png").read_bytes().startswith(b"\x89PNG")


def test_only_times_and_white_space_are_ignored() -> None:
    table = "method  gap  seconds\n------  ---  -------\nexact  0.00 %  1.25\n"
    assert comparable(table) == "method gap seconds --- --- --- exact 0.00 % SECONDS"
    assert comparable("cost 34.6250, 6.3 s, 108") == "cost 34.6250, SECONDS, 108"
