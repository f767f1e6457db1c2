"""What files and the screen show of what was found, whatever it is: a form of each by its name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from topoplace.errors import ExitCode, InputError
from topoplace.report.figure import write_figure
from topoplace.report.page.exhibits import Exhibits
from topoplace.shown import offers, work
from topoplace.snapshot.files import make_folder, write_document, write_text

__all__ = ["Exhibits", "exit_code_of", "make_folder", "text_of", "write", "write_text"]

_TEXTS, _PICTURES = ("hostlist", "csv"), ("png", "svg")


def write(found: Any, *, files: Any = None, **asked: Path | None) -> None:
    """Write what was found as the files asked for, each all of it or nothing.

    Parameters
    ----------
    files
        The files of the results behind a comparison or an audit: its page links to them.
    asked
        By form: ``output`` (the document), ``png``, ``svg`` and ``html`` (its picture and page),
        ``hostlist`` and ``csv`` (what starts), ``rank_files`` (a folder of mappings of jobs).

    Raises
    ------
    InputError
        If a file cannot be written.
    """
    given = {form: path for form, path in asked.items() if path is not None}
    if "html" in given and not offers("html", found):
        expected = "a result: there is no page of several"
        raise InputError(expected, field="--html", value=str(given["html"]))
    for form, path in given.items():
        if form == "output":
            write_document(path, found)
        elif form in _TEXTS:
            write_text(path, work(form, found)(found))
        elif form in _PICTURES:
            write_figure(found, path, svg=form == "svg")
        elif form == "html":
            more = () if files is None else (files, path.parent)
            write_text(path, work(form, found)(found, *more))
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
