"""The independent checker of mappings.

It shares no code with `topoplace.mapping` and `topoplace.bounds`: only `machine`, the schemas
and docs/proofs-mapping.md.
"""

from topoplace.certify.mapping.check import check_mapping

__all__ = ["check_mapping"]
