"""The independent checker: recomputes every claim of a result from the instance inside.

It shares no code with the solvers: only `machine`, the schemas and docs/proofs.md
and docs/proofs-mapping.md.
"""

from topoplace.certify.check import check_result
from topoplace.certify.file import check_document, check_file
from topoplace.certify.mapping import check_mapping
from topoplace.certify.report import Claim, Report
from topoplace.snapshot.normal import sha256_of

__all__ = [
    "Claim",
    "Report",
    "check_document",
    "check_file",
    "check_mapping",
    "check_result",
    "sha256_of",
]
