"""The independent checker: recomputes every claim of a result from the instance inside.

It shares no code with the solvers: of the package it imports only `machine` (tori, trees and
distances, with their routes), the models of the documents (`result`, `snapshot`) with the reading
of node sets and geometries, the declaration of compiled kernels, and the errors. What a claim has
to fulfil stand docs/proofs.md, docs/proofs-mapping.md, docs/proofs-graphs.md and
docs/proofs-tree.md.

A reader begins with `check`, the frame of all problems, with `report` and `figures`; `integers`
says how numbers are kept from wrapping round. Then come the problems one by one: `torus`
(placements), `mapping`, and `switches` (allocations). Each has a plug-in for the frame in its
own `check`.
"""

from topoplace.certify.check import check_document, check_file
from topoplace.certify.report import Claim, Report
from topoplace.snapshot.normal import sha256_of

__all__ = ["Claim", "Report", "check_document", "check_file", "sha256_of"]
