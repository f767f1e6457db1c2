"""What files and the screen show of what was found, whatever it is: a form of each by its name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from topoplace.errors import ExitCode, InputError
from topoplace.kinds import Ref, loaded
from topoplace.shown import offers, work
from topoplace.snapshot.files import make_folder, write_document, write_text

__all__ = ["exit_code_of", "make_folder", "text_of", "write", "write_text"]

_TEXTS: Mapping[str, Ref] = {
    "hostlist": "topoplace.report.view:hostlist_text",
    "csv": "topoplace.report.view:csv_text",
}


def write(found: Any, **files: Path | None) -> None:
    """Write results, or several placements, as the files asked for, each all of it or nothing.

    Parameters
    ----------
    files
        By form: ``output`` (the document), ``png`` and ``html`` (its picture and page),
        ``hostlist`` and ``csv`` (what starts), ``rank_files`` (a folder of mappings of jobs).

    Raises
    ------
    InputError
        If a file cannot be written.
    """
    asked = {form: path for form, path in files.items() if path is not None}
    if "html" in asked and not offers("html", found):
        expected = "a result: there is no page of several"
        raise InputError(expected, field="--html", value=str(asked["html"]))
    for form, path in asked.items():
        if form == "output":
            write_document(path, found)
        elif form in _TEXTS:
            write_text(path, loaded(_TEXTS[form])(found))
        else:
            work(form, found)(found, path)


def text_of(found: Any, size: int | None = None) -> str:
    """Return all that a command says of what it found.

    Parameters
    ----------
    size
        Characters of a line of a result; of scenarios, how many running jobs to name.
    """
    return str(work("summary", found)(found, size))


def exit_code_of(found: Any) -> ExitCode:
    """Return the exit code that tells a script what came of a solve."""
    code: ExitCode = work("exit_code", found)(found)
    return code
