"""Results, comparisons and audits as data frames of pandas, and what notebooks show."""

from __future__ import annotations

import html
import io
from dataclasses import asdict
from typing import TYPE_CHECKING

import pandas as pd

from topoplace.report.audit import audit_csv
from topoplace.report.studies import comparison_csv
from topoplace.report.summary import LEVEL_HEADER, headline, level_rows
from topoplace.report.view import AnyResult, view_of

if TYPE_CHECKING:
    from topoplace.study.audit.run import Audit
    from topoplace.study.batch.run import Batch
    from topoplace.study.compare import Comparison


def result_frame(result: AnyResult) -> pd.DataFrame:
    """Return a row for every request, or for every task of a mapping."""
    return pd.DataFrame(view_of(result).frame())


def comparison_frame(comparison: Comparison) -> pd.DataFrame:
    """Return a row for every result, in the columns of the CSV file."""
    return pd.read_csv(io.StringIO(comparison_csv(comparison)))


def batch_frame(done: Batch) -> pd.DataFrame:
    """Return a row for every file, in the columns of the table of the batch."""
    return pd.DataFrame([asdict(row) for row in done.rows])


def audit_frame(audit: Audit) -> pd.DataFrame:
    """Return a row for every decision, in the columns of the CSV file."""
    return pd.read_csv(io.StringIO(audit_csv(audit)))


def result_html(result: AnyResult) -> str:
    """Return what notebooks show: what is proven, the levels, and what was found."""
    levels = pd.DataFrame(level_rows(result), columns=LEVEL_HEADER)
    found = result_frame(result).drop(columns="nodes", errors="ignore")
    tables = (table.to_html(index=False, max_rows=15, na_rep="") for table in (levels, found))
    return f"<p>{html.escape(headline(result))}</p>" + "".join(tables)
