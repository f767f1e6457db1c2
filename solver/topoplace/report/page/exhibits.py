"""What a page shows of every result beside its figures: a small picture, and the file it is in.

A picture has a pixel per router or node; its background is the page's, so that it is light or dark
as the page is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from topoplace.kinds import kind_named
from topoplace.report.tiles import (
    GREY_NAMES,
    NOTHING,
    colours_of,
    palette_png,
)
from topoplace.report.view import view_of
from topoplace.snapshot.files import make_folder, write_document

if TYPE_CHECKING:
    from topoplace.result.reading import AnyResult
    from topoplace.study.case import State
    from topoplace.study.ranking import Row

PICTURE_BYTES = 2_700_000
"""Bytes of PNG that one page holds, 3.6 MB in its text; pictures that come later are left out."""

_SHOWN_PIXELS = 300


@dataclass(frozen=True)
class Thumbnail:
    """A PNG image, its size in pixels; it is shown enlarged."""

    png: bytes
    width: int
    height: int

    @property
    def scale(self) -> int:
        """The factor by which to enlarge it."""
        return max(1, _SHOWN_PIXELS // max(self.width, self.height))


def thumbnail(result: AnyResult, state: State) -> Thumbnail:
    """Return the small picture of a result and its instance.

    Of a torus or mesh the slices, of domains the hosts of each, of a mapping how far the messages
    of every router go.
    """
    view = view_of(result, state)
    cells, canvas = view.cells, view.tiles.fitted(4, 3)
    top, left = np.argwhere(canvas.numbers >= 0).min(axis=0)
    codes = np.append(cells.codes, NOTHING)[canvas.numbers[top:, left:]]
    pixels = np.rint(255 * colours_of(codes, cells.inked)).astype(np.uint8)
    return Thumbnail(palette_png(pixels), *codes.shape[::-1])


def swatches(problem: str) -> list[tuple[list[str], str]]:
    """Return colours of the pictures of a problem for CSS: those of answers, then grey by grey."""
    view = kind_named(problem).get("view")
    answers = [view.css(code) for code in range(view.num_inked)]
    return [(answers, ""), *(([view.css(code)], GREY_NAMES[code]) for code in view.greys)]


Kept = tuple[tuple[str, str, str | None], str]


class Exhibits:
    """Takes results as they are found, and keeps of each no more than a page needs.

    With a folder, every result is written into it as a file; `left_out` counts pictures without
    room on the page, and `settings` are the time limits, seeds and interference rules of results.

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
        make_folder(folder, "--results")

    def keep(self, row: Row, result: AnyResult, state: State) -> None:
        """Take the result behind a row."""
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
