"""The pages on what is read of other tools' files are those of the tables."""

from __future__ import annotations

import pytest

from scripts_of_the_project import script
from topoplace.formats.declared import Use
from topoplace.formats.sources import SOURCES

PAGES = script("build_reading_pages")


def test_the_pages_are_up_to_date() -> None:
    for path, text in PAGES.pages().items():
        written = path.read_text(encoding="utf-8") if path.exists() else ""
        assert written == text, "python scripts/build_reading_pages.py writes them anew"
    assert {*PAGES.FOLDER.glob("*.md")} == {*PAGES.pages()}


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.page)
def test_every_field_has_one_use_and_what_restricts_says_when(source) -> None:
    for table in source.tables():
        names = [field.name for field in table.fields]
        assert len(names) == len({*names}), [name for name in names if names.count(name) > 1]
        for field in table.fields:
            assert field.use is not Use.RESTRICTS or (field.about and " " not in field.held_by)
