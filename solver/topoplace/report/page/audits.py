"""The page of an audit: what each group comes to, and every decision."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from topoplace.errors import number_of
from topoplace.report.audit import (
    conclusion,
    rows_of,
    tables_of,
)
from topoplace.report.page.pages import rendered
from topoplace.study.audit.judging import FREE, Row, Verdict
from topoplace.study.audit.run import Audit

_SHADES = {
    Verdict.OPTIMAL: "good",
    Verdict.RIGHTLY_WAITING: "good",
    Verdict.SUBOPTIMAL: "poor",
    Verdict.MISSED: "bad",
    Verdict.INVALID: "bad",
    Verdict.STARTED: "good",
    Verdict.OUT_OF_TURN: "bad",
}


def audit_page(audit: Audit, files: Mapping[tuple[int, str], Path], folder: Path) -> str:
    """Return the page of an audit as HTML that needs no other file, network or script.

    Parameters
    ----------
    files
        The results behind the decisions, by their number and rules (`ResultFiles.names`).
    folder
        Where the page will be: links to result files are relative to it.
    """
    numbers = {id(row): number for number, row in enumerate(audit.rows, start=1)}

    def links(row: Row) -> list[tuple[str, str]]:
        found = []
        for rules in (FREE, audit.contract):
            file = files.get((numbers[id(row)], rules or ""))
            if file is not None:
                address = quote(Path(os.path.relpath(file, folder)).as_posix())
                found.append(("proof" if rules == FREE else f"proof, {rules}", address))
        return found

    return rendered(
        "audit.html",
        title=f"Audit of {number_of(len(audit.rows), 'decision')}",
        audit=audit,
        conclusion=conclusion(audit),
        tables=tables_of(audit),
        rows=rows_of(audit),
        shades=_SHADES,
        links=links,
        linked=bool(files),
    )
