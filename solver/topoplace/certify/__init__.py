"""The independent checker: recomputes every claim of a result from the instance inside.

It shares no code with the solvers: only `machine`, the schemas and docs/proofs.md.
"""

from topoplace.certify.check import check_result
from topoplace.certify.file import check_file
from topoplace.certify.report import Claim, Report

__all__ = ["Claim", "Report", "check_file", "check_result"]
