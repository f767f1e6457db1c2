"""What data shows of itself by the work of rooms that know it: text, tables, pictures, checks.

Results and what studies find are data and import nobody who reads them. What they offer users is
named here, by class, and imported when it is first used.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from topoplace.errors import number_of
from topoplace.kinds import Ref, loaded

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

_WORK: Mapping[str, Mapping[str, Ref]] = {
    "check": {"Kept": "topoplace.certify.check:check_document"},
    "result": {"Optima": "topoplace.solving.solve:result_at"},
    "text": {
        "Result": "topoplace.report.summary:brief",
        "Frontier": "topoplace.report.several:summary",
        "Optima": "topoplace.report.several:optima_summary",
        "Comparison": "topoplace.report.studies:comparison_table",
        "Audit": "topoplace.report.audit:audit_text",
        "Batch": "topoplace.report.studies:batch_text",
        "WhatIf": "topoplace.report.studies:what_if_table",
    },
    "summary": {
        "Result": "topoplace.report.summary:summary",
        "Frontier": "topoplace.report.several:summary",
        "Optima": "topoplace.report.several:optima_summary",
        "WhatIf": "topoplace.report.studies:what_if_table",
    },
    "exit_code": {
        "Result": "topoplace.report.summary:exit_code_of",
        "Several": "topoplace.report.several:exit_code_of",
    },
    "notebook": {"Result": "topoplace.report.frames:result_html"},
    "frame": {
        "Result": "topoplace.report.frames:result_frame",
        "Comparison": "topoplace.report.frames:comparison_frame",
        "Audit": "topoplace.report.frames:audit_frame",
        "Batch": "topoplace.report.frames:batch_frame",
    },
    "figures": {
        "Result": "topoplace.report.figure:figures_of",
        "Frontier": "topoplace.report.several:plot_figures",
        "Optima": "topoplace.report.several:optima_figures",
    },
    "html": {
        "Result": "topoplace.report.page.pages:result_page",
        "Comparison": "topoplace.report.page.pages:comparison_page",
        "Audit": "topoplace.report.page.audits:audit_page",
    },
    "hostlist": {"Result": "topoplace.report.view:hostlist_text"},
    "csv": {
        "Result": "topoplace.report.view:csv_text",
        "Comparison": "topoplace.report.studies:comparison_csv",
        "Audit": "topoplace.report.audit:audit_csv",
        "Recognition": "topoplace.report.mappings:cells_csv",
    },
    "rank_files": {"Result": "topoplace.report.mappings:write_rank_files"},
    "ranks": {"MappingResult": "topoplace.mapping.resultfiles:write_ranks"},
    "svg": {"Comparison": "topoplace.report.page.pages:comparison_svg"},
    "plot": {
        "Result": "topoplace.report.figure:plot",
        "Frontier": "topoplace.report.several:plot",
        "Optima": "topoplace.report.several:plot_optima",
    },
}


def offers(name: str, of: object) -> bool:
    """Return whether data offers something of this name."""
    return any(one.__name__ in _WORK[name] for one in type(of).__mro__)


def work(name: str, of: object) -> Callable[..., Any]:
    """Return the function that does what data offers, by the nearest of its classes named above."""
    refs = _WORK[name]
    found: Callable[..., Any] = loaded(
        next(refs[one.__name__] for one in type(of).__mro__ if one.__name__ in refs)
    )
    return found


class Told:
    """Data that prints itself in words."""

    def __repr__(self) -> str:
        return str(work("text", self)(self))

    __str__ = __repr__


@dataclass(frozen=True, repr=False)
class Picture:
    """A picture that notebooks show, and that follows their light or dark theme.

    Attributes
    ----------
    svg
        The text of an SVG file.
    """

    svg: str

    def save(self, path: str | Path) -> Path:
        """Write the SVG file, whose path is returned; `InputError` if that fails."""
        loaded("topoplace.snapshot.files:write_text")(Path(path), self.svg)
        return Path(path)

    def __repr__(self) -> str:
        return f"<Picture: SVG of {number_of(len(self.svg), 'character')}>"

    def _repr_html_(self) -> str:
        data = base64.b64encode(self.svg.encode()).decode("ascii")
        return f'<img src="data:image/svg+xml;base64,{data}" style="width:100%;max-width:62rem"/>'


class Tabled(Told):
    """Data that is also a table."""

    def to_frame(self) -> DataFrame:
        """Return its rows, in the columns of the CSV file (pandas)."""
        frame: DataFrame = work("frame", self)(self)
        return frame


class Drawn(Told):
    """Data that is also a picture."""

    def plot(self, ax: Axes | None = None, *, dark: bool = False) -> Axes:
        """Draw what matters most into `ax`, or into a new figure of pyplot, which notebooks show.

        `dark` is for dark backgrounds. `topoplace show --png` draws more.
        """
        axes: Axes = work("plot", self)(self, ax, dark=dark)
        return axes
