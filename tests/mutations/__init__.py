"""Ways to spoil a correct result. Each returns a document that is certainly wrong, or None.

A mutation that could leave the result true (a prism moved to a place just as good, say) first
makes sure that it does not, and gives up otherwise. They are in `placements`, `figures` and
`certificates`, by name.
"""

from mutations import certificates, figures, placements
from mutations.registry import CAUGHT_AS, MUTATIONS

__all__ = ["CAUGHT_AS", "MUTATIONS", "certificates", "figures", "placements"]
