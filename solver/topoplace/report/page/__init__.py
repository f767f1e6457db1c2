"""Self-contained HTML pages: a comparison of methods, and a single result."""

from topoplace.report.page.exhibits import Exhibits
from topoplace.report.page.page import (
    comparison_page,
    result_page,
    write_comparison_page,
    write_result_page,
)

__all__ = [
    "Exhibits",
    "comparison_page",
    "result_page",
    "write_comparison_page",
    "write_result_page",
]
