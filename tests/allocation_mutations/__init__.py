"""Ways to make a right allocation result wrong, by name."""

from allocation_mutations import certificates, levels, solutions
from allocation_mutations.registry import MUTATIONS

__all__ = ["MUTATIONS", "certificates", "levels", "solutions"]
