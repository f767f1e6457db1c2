"""The independent checker: recomputes every claim of a result from the instance inside.

It shares no code with the solvers. All that both import is `machine` (tori, trees and distances,
with their routes and the reading of node sets), the models of the documents (`result`,
`snapshot.schema`, their files and normal form), `snapshot.geometry`, which parses the geometry of a
request, the declaration of compiled kernels, names of types, and the errors. What claims have to
fulfil is in docs/proofs.md, docs/proofs-mapping.md, docs/proofs-graphs.md and docs/proofs-tree.md.

A reader begins with `check`, the frame of all problems, with `report` and `figures`; `integers`
says how numbers are kept from wrapping round. `packing` walks through certificates of packings,
whatever the topology. Then come the problems one by one: `torus` (placements), `mapping`, and
`switches` (allocations). Each has a plug-in for the frame in its own `check`.
"""

from topoplace.certify.check import check_document, check_file
from topoplace.certify.report import Claim, Report
from topoplace.snapshot.normal import sha256_of

__all__ = ["Claim", "Report", "check_document", "check_file", "sha256_of"]
