"""The independent checker: recomputes every claim of a result from the instance inside.

It has code of its own to decide which placements are allowed, to compute the value of a solution,
and to compute what a certificate proves. It shares with the solvers the geometry of machines, the
models of documents, and the reading of texts such as host lists and shapes. The shared code is
`machine` (tori, trees, hierarchies and distances, with their routes and the reading of node sets),
`result`, `snapshot.schema` with its files and normal form, and `snapshot.geometry`. Besides, both
import the table of kinds of problems, the declaration of compiled kernels, names of types, and the
errors. What claims have to fulfil is in docs/proofs/placement.md, docs/proofs/mapping.md,
docs/proofs/graphs.md and docs/proofs/tree.md.

A reader begins with `check`, the frame of all problems, with `report` and `figures`; `integers`
says how numbers are kept from wrapping round. `packing` walks through certificates of packings,
whatever the topology. Then come the problems one by one: `torus` (placements), `mapping`, and
`switches` (allocations). Each has a plug-in for the frame in its own `check`.
"""

from topoplace.certify.check import check_document, check_file
from topoplace.result.base import Claim, Report
from topoplace.snapshot.normal import sha256_of

__all__ = ["Claim", "Report", "check_document", "check_file", "sha256_of"]
