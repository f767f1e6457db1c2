"""Pages for schedulers, users and developers show what the commands and programs in them print."""

from __future__ import annotations

from pathlib import Path

import pytest

from test_tutorial import TUTORIAL, compare_outputs


def test_all_pages_have_commands() -> None:
    with_commands = {page.stem for page in TUTORIAL.SCHEDULERS if "\n```sh\n" in page.read_text()}
    assert with_commands == {"slurm-block", "slurm-tree", "slurm-torus3d", "kueue", "kai-volcano"}


@pytest.mark.parametrize(
    "page",
    [*TUTORIAL.SCHEDULERS, *TUTORIAL.USERS, *TUTORIAL.DEVELOP],
    ids=lambda page: f"{page.parent.stem}-{page.stem}",
)
def test_commands_print_what_the_page_shows(page: Path, tmp_path: Path) -> None:
    compare_outputs(page, tmp_path)
