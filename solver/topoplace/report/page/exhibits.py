"""What a page shows of every result beside its figures: a small picture, and the file it is in."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from topoplace.errors import InputError
from topoplace.snapshot.files import write_document

if TYPE_CHECKING:
    from topoplace.report.page.thumbnails import Thumbnail
    from topoplace.study.case import AnyResult, State
    from topoplace.study.ranking import Row

PICTURE_BYTES = 2_700_000
"""Bytes of PNG that one page holds, 3.6 MB in its text; pictures that come later are left out."""


Kept = tuple[tuple[str, str | None], str]


class Exhibits:
    """Takes results as they are found, and keeps of each no more than a page needs.

    Parameters
    ----------
    folder
        Where to write every result as a file; None for nowhere. Made if missing.
    pictures
        Whether to draw them.

    Attributes
    ----------
    left_out
        How many pictures found no room on the page.
    settings
        What the results were computed under: time limits, seeds and interference rules.

    Raises
    ------
    InputError
        If the folder cannot be made.
    """

    def __init__(self, folder: Path | None = None, *, pictures: bool = True) -> None:
        self.folder, self.pictures = folder, pictures
        self.left_out = 0
        self.settings: dict[str, set[str]] = {}
        self._room = PICTURE_BYTES
        self._names: set[str] = set()
        self._pictures: dict[Kept, Thumbnail] = {}
        self._files: dict[Kept, Path] = {}
        if folder is not None:
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise InputError(
                    f"a folder that can be made ({error.strerror})",
                    field="--results",
                    value=str(folder),
                ) from None

    def keep(self, row: Row, result: AnyResult, state: State) -> None:
        """Take the result behind a row."""
        from topoplace.report.page.thumbnails import thumbnail  # noqa: PLC0415 - heavy

        limit, rule = result.limits.time_limit, row.interference
        for name, value in (
            ("time limit per solve", "the method's own" if limit is None else f"{limit:g} s"),
            ("seed", "none" if result.seed is None else str(result.seed)),
            *((("interference", rule),) if rule else ()),
        ):
            self.settings.setdefault(name, set()).add(value)
        key = (row.group, row.method)
        if self.folder is not None:
            self._files[key] = self.folder / self._file_name(row)
            write_document(self._files[key], result)
        picture = thumbnail(result, state) if self.pictures else None
        if picture is not None and len(picture.png) > self._room:
            self.left_out += 1
        elif picture is not None:
            self._room -= len(picture.png)
            self._pictures[key] = picture

    def picture_of(self, row: Row) -> Thumbnail | None:
        """Return the picture of a row, unless there was no result or no room."""
        return self._pictures.get((row.group, row.method))

    def file_of(self, row: Row) -> Path | None:
        """Return the file of a row's result, if one was written."""
        return self._files.get((row.group, row.method))

    def _file_name(self, row: Row) -> str:
        """Return a name of a result file, safe on all systems and not given before."""
        stem = re.sub(r"[^A-Za-z0-9._-]", "_", f"{row.instance}-{row.method}").lstrip(".-")
        name, number = f"{stem}.json", 1
        while name.lower() in self._names:  # some file systems do not tell cases apart
            number += 1
            name = f"{stem}-{number}.json"
        self._names.add(name.lower())
        return name
